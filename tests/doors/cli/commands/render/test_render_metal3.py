"""``tenure render metal3``: a machine's data without a cluster, from files, from options and from a ledger."""

import json
from pathlib import Path

import pytest
import yaml

from tests.doors.cli.site import Site
from tests.integrations.kubernetes.metal3_data.worked_example import (
    META_DATA,
    NETWORK_DATA,
    POOLS,
    SEED_META_DATA,
    SEED_NETWORK_DATA,
    SEED_TEMPLATE,
    TEMPLATE,
)

MACHINE = ("--machine", "blue-md-0-x7k2p", "--host", "rack3-u12", "--index", "3")
SEEDS_POOLS = ("--pool", "pool-1=192.168.0.11/24,gateway=192.168.0.1", "--pool", "pool-2=192.168.1.11/24")
LEDGERS_TEMPLATE = """
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3DataTemplate
metadata: {name: t}
spec:
  clusterName: blue
  metaData:
    ipAddressesFromPool: [{key: ip, name: p}]
    prefixesFromPool: [{key: length, name: p}]
    gatewaysFromPool: [{key: gateway, name: p}]
    dnsServersFromPool: [{key: dns, name: p}]
"""


META_DATA_TEXT = """\
gw4: 10.40.8.1
hostname: rack3-u12
idx: n106
ip4: 10.40.8.20
ip6: fd20:7:8::100
plen4: "22"
providerid: metal/rack3-u12/blue-md-0-x7k2p
"""


@pytest.fixture
def worked(site: Site) -> Site:
    """Give a folder with the files of the worked example."""
    (site.folder / "pools.yaml").write_text(POOLS, "utf-8")
    (site.folder / "template.yaml").write_text(TEMPLATE, "utf-8")
    return site


def test_the_worked_example_comes_out_as_published(worked: Site) -> None:
    shown = worked.text("render", "metal3", "template.yaml", "pools.yaml", *MACHINE, "--like-capm3")
    document = worked.json("render", "metal3", "template.yaml", "pools.yaml", *MACHINE, "--like-capm3")

    meta_data, network_data = yaml.safe_load_all(shown)
    assert meta_data == document["metaData"] == META_DATA
    assert network_data == document["networkData"] == NETWORK_DATA
    assert document["claims"] == {"blue-md-0-3-bm-v4": "10.40.8.20", "blue-md-0-3-bm-v6": "fd20:7:8::100"}
    assert document["notes"] == []


def test_metadata_is_written_as_the_published_text(worked: Site) -> None:
    shown = worked.text(
        "render", "metal3", "template.yaml", "pools.yaml", *MACHINE, "--like-capm3", "--only", "metadata"
    )

    assert shown == META_DATA_TEXT


def test_r2_dns_servers_are_rendered_unless_capm3_is_followed(worked: Site) -> None:
    document = worked.json("render", "metal3", "template.yaml", "pools.yaml", *MACHINE)

    assert document["metaData"] == {**META_DATA, "dns4": "10.40.0.53,10.41.0.53"}


def test_ks9_the_design_s_template_is_read_as_printed_and_what_was_translated_is_said(site: Site) -> None:
    (site.folder / "seed.yaml").write_text(SEED_TEMPLATE, "utf-8")
    result = site.call("render", "metal3", "seed.yaml", "--machine", "machine-1", "--host", "host-1", *SEEDS_POOLS)

    meta_data, network_data = yaml.safe_load_all(result.stdout)
    assert meta_data == SEED_META_DATA
    assert network_data == SEED_NETWORK_DATA
    assert "note: spec.metaData.ipAddressesFromIPPool[0].Name is read as name\n" in result.stderr
    assert "note: apiVersion infrastructure.cluster.x-k8s.io/v1alpha4 is read as v1beta1\n" in result.stderr


def test_addresses_come_from_a_ledger(site: Site) -> None:
    """By the owner that the machine is there, with what its subnet says."""
    site.text("subnet", "modify", "net1", "192.0.2.0/24", "--dns", "192.0.2.53")
    site.text("allocate", "net1", "metal3machine/node-1")
    (site.folder / "t.yaml").write_text(LEDGERS_TEMPLATE, "utf-8")
    before = site.state()
    words = ("render", "metal3", "t.yaml", "--machine", "node-1", "--pool", "p=ledger:net1")
    found = site.json(*words)["metaData"]

    assert found["length"] == "24"
    assert found["gateway"] == "192.0.2.1"
    assert found["dns"] == "192.0.2.53"
    assert found["ip"].startswith("192.0.2.")
    assert site.json(*words, "--owner", "instance/db-0")["metaData"]["ip"] == "192.0.2.12"
    code, error = site.error(*words, "--owner", "instance/nobody")
    assert "`tenure allocate net1 instance/nobody` gives it one" in error["message"]
    assert code != 0
    assert site.state() == before


def test_files_may_know_the_machine_its_host_its_number_and_its_addresses(worked: Site) -> None:
    objects = [
        {
            "kind": "Metal3Machine",
            "metadata": {
                "name": "m",
                "annotations": {"metal3.io/BareMetalHost": "metal/rack9"},
                "ownerReferences": [{"kind": "Machine", "name": "capi-m"}],
            },
        },
        {
            "kind": "BareMetalHost",
            "metadata": {"name": "rack9"},
            "status": {"hardware": {"nics": [{"name": "eno1", "mac": "52:54:00:12:34:56"}]}},
        },
        {
            "kind": "Metal3Data",
            "metadata": {"name": "blue-md-0-7", "ownerReferences": [{"kind": "Metal3Machine", "name": "m"}]},
            "spec": {"index": 7, "template": {"name": "blue-md-0"}, "claim": {"name": "m"}},
        },
        {
            "kind": "IPAddress",
            "metadata": {"name": "a"},
            "spec": {
                "address": "10.40.8.29",
                "prefix": 22,
                "gateway": "10.40.8.1",
                "pool": {"name": "bm-v4"},
                "claim": {"name": "blue-md-0-7-bm-v4"},
            },
        },
        {
            "kind": "IPAddress",
            "metadata": {"name": "b"},
            "spec": {"address": "fd20:7:8::100", "pool": {"name": "bm-v6"}, "claim": {"name": "other"}},
        },
    ]
    (worked.folder / "machine.json").write_text(json.dumps({"kind": "List", "items": objects}), "utf-8")
    document = worked.json("render", "metal3", "template.yaml", "pools.yaml", "machine.json", "--machine", "m")

    assert document["metaData"]["providerid"] == "metal/rack9/m"
    assert document["metaData"]["idx"] == "n114"
    assert document["claims"] == {"blue-md-0-7-bm-v4": "10.40.8.29", "blue-md-0-7-bm-v6": "fd20:7:8::101"}


def test_a_machine_that_is_new_gets_neither_the_number_nor_the_address_of_another(worked: Site) -> None:
    """The files have what a cluster has: the first machine of the template, with the first address."""
    spec = {"index": 0, "template": {"name": "blue-md-0"}, "claim": {"name": "first"}}
    held = {"address": "10.40.8.20", "pool": {"name": "bm-v4"}, "claim": {"name": "blue-md-0-0-bm-v4"}}
    objects = [
        {"kind": "Metal3Data", "metadata": {"name": "blue-md-0-0"}, "spec": spec},
        {"kind": "IPAddress", "metadata": {"name": "a"}, "spec": held},
    ]
    (worked.folder / "live.json").write_text(json.dumps({"kind": "List", "items": objects}), "utf-8")
    words = ("render", "metal3", "template.yaml", "pools.yaml", "live.json", "--machine", "new")
    document = worked.json(*words)

    assert document["metaData"]["idx"] == "n102"
    assert document["claims"]["blue-md-0-1-bm-v4"] == "10.40.8.21"
    code, error = worked.error(*words, "--index", "0")
    assert code != 0
    assert error["message"] == "index: 0 is that of another machine, by Metal3Data 'blue-md-0-0'"


def test_ks7_fixed_addresses_are_found_by_the_name_of_the_claim(worked: Site) -> None:
    pools = POOLS.replace("prefix: 22", "prefix: 22\n  preAllocations: {rack3-u12-bm-v4: 10.40.8.25}")
    (worked.folder / "pools.yaml").write_text(pools, "utf-8")
    words = ("render", "metal3", "template.yaml", "pools.yaml", *MACHINE)

    assert worked.json(*words)["claims"]["blue-md-0-3-bm-v4"] == "10.40.8.20"
    assert worked.json(*words, "--claims-by-host")["claims"]["rack3-u12-bm-v4"] == "10.40.8.25"


@pytest.mark.parametrize("option", [(), ("--claims-by-host",)])
def test_ks7_claims_that_are_there_keep_their_names_whatever_the_option_says(
    worked: Site, option: tuple[str, ...]
) -> None:
    """Cluster API's claims are never named by the host; nor is one of a former machine of the host this machine's."""
    text = TEMPLATE.replace("ipAddressFromIPPool: bm-v6", "fromPoolRef: {name: v6, kind: Other, apiGroup: other.io}")
    text = text.replace("ipAddressesFromIPPool: [{key: ip4, name: bm-v4}, {key: ip6, name: bm-v6}]", "strings: []")
    (worked.folder / "template.yaml").write_text(text, "utf-8")
    label = "infrastructure.cluster.x-k8s.io/data-name"
    held = [
        ("bm-v4", "rack3-u12-bm-v4", "10.40.8.28", {label: "blue-md-0-3"}),
        ("bm-v6", "rack3-u12-bm-v6", "fd20:7:8::107", {label: "blue-md-0-1"}),
        ("bm-v6", "blue-md-0-3-bm-v6", "fd20:7:8::108", {}),
        ("v6", "blue-md-0-3-v6", "fd20:9::5", {}),
    ]
    objects = [
        {
            "kind": "IPAddress",
            "metadata": {"name": f"a{number}", "labels": labels},
            "spec": {"address": address, "prefix": 22, "poolRef": {"name": pool}, "claimRef": {"name": claim}},
        }
        for number, (pool, claim, address, labels) in enumerate(held)
    ]
    (worked.folder / "held.json").write_text(json.dumps({"kind": "List", "items": objects}), "utf-8")
    document = worked.json("render", "metal3", "template.yaml", "pools.yaml", "held.json", *MACHINE, *option)

    assert document["claims"] == {
        "rack3-u12-bm-v4": "10.40.8.28",
        "blue-md-0-3-bm-v6": "fd20:7:8::108",
        "blue-md-0-3-v6": "fd20:9::5",
    }


PER_NETWORK = """
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3DataTemplate
metadata: {name: t, annotations: {ipam.tenure.dev/addresses: one-per-network}}
spec:
  networkData:
    networks:
      ipv4:
      - {id: a, link: e, ipAddressFromIPPool: p}
      - {id: b, link: e, ipAddressFromIPPool: p}
      - {id: c, link: e, ipAddressFromIPPool: p}
---
apiVersion: ipam.metal3.io/v1alpha1
kind: IPPool
metadata: {name: p}
spec: {namePrefix: p, prefix: 24, pools: [{start: 10.0.0.1, end: 10.0.0.9}]}
---
apiVersion: ipam.metal3.io/v1alpha1
kind: IPAddress
metadata: {name: a}
spec: {address: 10.0.0.3, pool: {name: p}, claim: {name: other}}
"""


def test_an_address_that_is_named_is_given_to_no_other_network_and_not_taken_from_another_machine(site: Site) -> None:
    (site.folder / "t.yaml").write_text(PER_NETWORK, "utf-8")
    words = ("render", "metal3", "t.yaml", "--machine", "m")

    assert site.json(*words)["claims"] == {"t-0-p": "10.0.0.1", "t-0-p-2": "10.0.0.2", "t-0-p-3": "10.0.0.4"}
    named = site.json(*words, "--pool", "p-3=10.0.0.1/24")["claims"]
    assert named == {"t-0-p": "10.0.0.2", "t-0-p-2": "10.0.0.4", "t-0-p-3": "10.0.0.1"}
    code, error = site.error(*words, "--pool", "p-2=10.0.0.3/24")
    assert code != 0
    assert error["message"] == "pool 'p': 10.0.0.3 is for claim 't-0-p-2', and claim 'other' holds it"
    code, error = site.error(*words, "--pool", "p=10.0.0.5/24", "--pool", "p-3=10.0.0.5/24")
    assert error["message"] == "pool 'p': 10.0.0.5 is for claim 't-0-p-3', and claim 't-0-p' holds it"


def test_a_pool_that_nothing_knows_is_refused_with_its_path_and_the_way_out(worked: Site) -> None:
    code, error = worked.error("render", "metal3", "template.yaml", *MACHINE)

    assert code != 0
    assert "spec.metaData.ipAddressesFromIPPool[0].name: there is no pool 'bm-v4'" in error["message"]
    assert "--pool bm-v4=ADDRESS/PREFIX" in error["message"]


LINKS = "networkData: {links: {ethernets: [{type: phy, id: e, macAddress: {fromHostInterface: eno1}}]}}"
CARDS = "metaData: {fromHostInterfaces: [{key: mac, %s}]}"


@pytest.mark.parametrize(
    ("data", "words", "place"),
    [
        (LINKS, (), "networkData.links.ethernets[0].macAddress: the files have no BareMetalHost 'web-0'"),
        (LINKS, ("--host", "u12"), "networkData.links.ethernets[0].macAddress: the files have no BareMetalHost 'u12'"),
        (CARDS % "fromBootMAC: true", (), "metaData.fromHostInterfaces[0]: the files have no BareMetalHost 'web-0'"),
    ],
)
def test_a_host_that_the_files_lack_is_asked_for_where_its_cards_are_needed(
    site: Site, data: str, words: tuple[str, ...], place: str
) -> None:
    """It may have been inspected long ago."""
    head = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: Metal3DataTemplate\nmetadata: {name: t}"
    (site.folder / "t.yaml").write_text(f"{head}\nspec: {{clusterName: blue, {data}}}\n", "utf-8")
    _, error = site.error("render", "metal3", "t.yaml", "--machine", "web-0", *words)

    assert error["message"] == f"spec.{place}: add the file with it, or name the one that they have with --host"


def test_a_bad_template_writes_no_file(worked: Site) -> None:
    text = TEMPLATE.replace("objectNames", "objectName")
    (worked.folder / "bad.yaml").write_text(text, "utf-8")
    code, error = worked.error("render", "metal3", "bad.yaml", "pools.yaml", *MACHINE, "--output", "out.yaml")

    assert code != 0
    assert error["message"].startswith("spec.metaData.objectName: is not known; known here: strings, objectNames")
    assert not (worked.folder / "out.yaml").exists()


def test_a_file_is_written_whole(worked: Site) -> None:
    worked.text(
        "render", "metal3", "template.yaml", "pools.yaml", *MACHINE, "--only", "networkdata", "--output", "n.yaml"
    )

    assert yaml.safe_load(Path("n.yaml").read_text("utf-8")) == NETWORK_DATA


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--pool", "x=10.0.0.1/24"), "--pool: the template needs no address of 'x'; it needs: bm-v4, bm-v6"),
        (("--pool", "bm-v4"), "is not of the form NAME=ADDRESS/PREFIX"),
        (("--pool", "bm-v4=ledger:"), "is not of the form NAME=ADDRESS/PREFIX or NAME=ledger:NETWORK"),
        (("--host", "Rack 3"), "host: must be the name of an object"),
        (("--pool", "bm-v4=10.0.0.1/33"), "is not a length of IPv4"),
        (("--pool", f"bm-v4=10.0.0.1/{'1' * 5000}"), "is not a length of IPv4"),
        (("--pool", "bm-v4=10.0.0.1/24,ntp=10.0.0.2"), "neither gateway=ADDRESS nor dns=ADDRESS"),
        (("--pool", "bm-v4=fd00::1/64"), "spec.networkData.networks.ipv4[0]: fd00::1 of the pool is of another family"),
        (("--index", "9223372036854775808"), "index: must be a number from 0 to 9223372036854775807"),
        (("--template", "other"), "no Metal3DataTemplate 'other' of the files"),
    ],
)
def test_what_is_wrong_is_said(worked: Site, words: tuple[str, ...], reason: str) -> None:
    code, error = worked.error("render", "metal3", "template.yaml", "pools.yaml", *MACHINE, *words)

    assert code != 0
    assert reason in error["message"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "this is no YAML"),
        ("- a\n", "['a'] is no object of Kubernetes"),
        ("a: 1\na: 2\n", "line 2: 'a' is there twice"),
        ("a: &a {b: *a}\n", "aliases"),
        ('a: "\\ud800"\n', "line 1: half of a character"),
    ],
)
def test_a_file_that_is_no_yaml_is_refused_with_its_name(worked: Site, text: str, reason: str) -> None:
    (worked.folder / "broken.yaml").write_text(text, "utf-8")
    code, error = worked.error("render", "metal3", "broken.yaml", *MACHINE)

    assert code != 0
    assert error["message"].startswith("broken.yaml: ")
    assert reason in error["message"]


def test_a_claim_whose_name_no_object_can_have_is_refused_as_by_the_operator(worked: Site) -> None:
    pool = "p" * 250
    (worked.folder / "template.yaml").write_text(TEMPLATE.replace("bm-v4", pool), "utf-8")
    (worked.folder / "pools.yaml").write_text(POOLS.replace("bm-v4", pool), "utf-8")
    code, error = worked.error("render", "metal3", "template.yaml", "pools.yaml", *MACHINE)

    assert code != 0
    assert error["message"].startswith(
        "spec.metaData.ipAddressesFromIPPool[0].name: the name of its claim, blue-md-0-3-p"
    )


def test_what_kubectl_prints_may_be_piped_in(worked: Site) -> None:
    words = ("render", "metal3", "-", "pools.yaml", *MACHINE, "--like-capm3", "--only", "metadata")

    assert worked.call(*words, fed=TEMPLATE).stdout == META_DATA_TEXT
    assert "standard input: this is no YAML" in worked.call(*words, fed="a: [").stderr
    assert "standard input: this is no YAML" in worked.call(*words, fed=b"\xff").stderr


def test_a_template_of_another_cluster_than_the_machine_s_is_refused(worked: Site) -> None:
    machine = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Metal3Machine\n"
    labels = "labels: {cluster.x-k8s.io/cluster-name: green}"
    metadata = f"metadata: {{name: blue-md-0-x7k2p, namespace: metal, {labels}}}\n"
    (worked.folder / "machine.yaml").write_text(machine + metadata, "utf-8")
    files = ("template.yaml", "pools.yaml", "machine.yaml")
    code, error = worked.error("render", "metal3", *files, *MACHINE)

    assert code != 0
    assert error["message"] == "spec.clusterName: the template is of cluster 'blue', the machine of 'green'"
