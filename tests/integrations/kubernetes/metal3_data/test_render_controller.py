"""Machines rendered on a real API server under the shipped role: the published rules by number, and cases around."""

import time

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_CLAIM,
    IN_CLUSTER_POOL,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    PAUSED,
)
from tenure.integrations.kubernetes.metal3_data import claim_making, data_pass
from tenure.integrations.kubernetes.metal3_data.data_kinds import HOST
from tenure.integrations.kubernetes.metal3_data.template.machine_reading import HOST_ANNOTATION
from tenure.integrations.kubernetes.metal3_data.template.read_template import ADDRESSES, PER_NETWORK
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, key_of, uid_of
from tests.integrations.kubernetes.metal3.serving import OperatorThread, settings_for, until
from tests.integrations.kubernetes.metal3_data.machine_park import CONTROLLERS, MachinePark, owner_of, rendering_in

DATA_FINALIZER = "metal3data.infrastructure.cluster.x-k8s.io"
ANNOTATED = {"object": "baremetalhost", "annotation": "pool"}
IN_CLUSTER_SPEC = {"addresses": ["10.9.0.1-10.9.0.9"], "prefix": 24}
TWICE = {"strings": [{"key": "a", "value": "b"}], "namespaces": [{"key": "a"}]}
"""Metadata with a key that is there twice."""


def networks(*pools: str) -> Object:
    """Return network data with a network for each pool."""
    entries = [{"id": f"n{number}", "link": "e", "ipAddressFromIPPool": pool} for number, pool in enumerate(pools)]
    return {"networks": {"ipv4": entries}}


def addresses_of(park: MachinePark, machine: str) -> list[str]:
    """Wait until a machine is rendered, and return the addresses of its networks."""
    return [each["ip_address"] for each in park.rendered(machine)[1]["networks"]]


def indexes_of(park: MachinePark, template: str) -> dict[str, int]:
    """Return the numbers that a template lists, in whichever shape its version has."""
    found = ((park.get(park.templates, template) or {}).get("status") or {}).get("indexes") or {}
    return found if isinstance(found, dict) else {each["name"]: each["index"] for each in found}


def test_r6_claims_and_r8_secrets_have_the_published_owners_labels_and_finalizers(park: MachinePark) -> None:
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.template("t", metaData={}, networkData=networks("p"))
    machine = park.machine("m", template="t")
    park.rendered("m")

    data = park.data_of("m")
    own = {
        "apiVersion": data["apiVersion"],
        "kind": "Metal3Data",
        "name": "t-0",
        "uid": uid_of(data),
        "controller": True,
    }
    (claim,) = park.all(IP_CLAIM)
    assert claim["metadata"]["ownerReferences"] == [own]
    assert claim["metadata"]["labels"] == data["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "blue"}
    assert DATA_FINALIZER in claim["metadata"]["finalizers"]
    assert claim["spec"]["pool"] == {"name": "p", "namespace": park.name}
    owners = [(each["kind"], each["name"]) for each in data["metadata"]["ownerReferences"]]
    assert owners == [("Metal3DataTemplate", "t"), ("Metal3DataClaim", "m"), ("Metal3Machine", "m")]
    assert data["metadata"]["ownerReferences"][2]["uid"] == uid_of(machine)
    for name, key in (("m-metadata", "metaData"), ("m-networkdata", "networkData")):
        secret = park.get(SECRET, name)
        assert secret is not None
        assert secret["type"] == "infrastructure.cluster.x-k8s.io/secret"
        assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "blue"}
        assert secret["metadata"]["ownerReferences"] == [own]
        assert list(secret["data"]) == [key]
        assert data["spec"][key]["name"] == name
    claim_status = (park.get(park.data_claims, "m") or {})["status"]
    assert claim_status["renderedData"]["name"] == "t-0"
    until(lambda: indexes_of(park, "t") == {"m": 0})
    status = (park.get(park.templates, "t") or {})["status"]
    assert status["lastUpdated"]
    assert status.get("dataNames") == ({"m": "t-0"} if park.version == "v1beta1" else None)
    park.remove_machine("m")
    until(lambda: indexes_of(park, "t") == {})
    assert not (park.get(park.templates, "t") or {})["status"].get("dataNames")


def test_r6_no_pool_no_claim_and_r8_a_part_that_is_absent_is_skipped(park: MachinePark) -> None:
    park.template("t", metaData={"strings": [{"key": "a", "value": "52:54:00:12:34:56"}]})
    park.machine("m", "h", "t")
    meta_data, network_data = park.rendered("m")

    assert meta_data == {"a": "52:54:00:12:34:56", "providerid": f"{park.name}/h/m"}
    assert network_data is None
    assert not park.all(IP_CLAIM)
    assert "networkData" not in park.data_of("m")["spec"]


def test_story_2_a_control_plane_and_two_deployments_share_one_pool(park: MachinePark) -> None:
    """Each has a template of its own, with numbers of its own; the pool gives each machine another address."""
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    for name in ("kcp", "md-a", "md-b"):
        park.template(name, networkData=networks("p"))
        for number in range(2):
            park.machine(f"{name}-m{number}", template=name)

    machines = [f"{name}-m{number}" for name in ("kcp", "md-a", "md-b") for number in range(2)]
    given = [addresses_of(park, machine)[0] for machine in machines]
    assert sorted(given) == [f"10.0.0.{number}" for number in range(1, 7)]
    for name in ("kcp", "md-a", "md-b"):
        until(lambda name=name: sorted(indexes_of(park, name).values()) == [0, 1])  # type: ignore[misc]


def test_r6_by_option_a_machine_has_several_addresses_from_one_pool(park: MachinePark) -> None:
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.template("t", networkData=networks("p", "p"), annotations={ADDRESSES: PER_NETWORK})
    park.template("u", networkData=networks("p", "p"))
    park.machine("m", template="t")
    park.machine("n", template="u")

    first, second = addresses_of(park, "m")
    assert first != second
    assert len(set(addresses_of(park, "n"))) == 1
    assert {key_of(each)[1] for each in park.all(IP_CLAIM)} == {"t-0-p", "t-0-p-2", "u-0-p"}
    park.remove_machine("m")
    until(lambda: {key_of(each)[1] for each in park.all(IP_CLAIM)} == {"u-0-p"})


def test_r7_an_error_of_a_claim_is_reported_and_ks8_cleared_when_it_is_served(park: MachinePark) -> None:
    park.pool("p", "10.0.0.1-10.0.0.1", prefix=24)
    park.template("t", networkData=networks("p"))
    park.machine("first", template="t")
    assert addresses_of(park, "first") == ["10.0.0.1"]
    park.machine("second", template="t")

    assert park.error("second", "IP") == "IP Allocation for p failed : Exhausted IP Pools"
    assert park.get(SECRET, "second-networkdata") is None
    park.patch(IP_POOL, "p", {"spec": {"pools": [{"start": "10.0.0.1", "end": "10.0.0.2"}]}})
    assert addresses_of(park, "second") == ["10.0.0.2"]
    assert "errorMessage" not in park.data_of("second")["status"]


def test_r7_a_claim_that_somebody_deletes_before_it_has_an_address_is_made_again(park: MachinePark) -> None:
    """Nobody serves a claim that is being deleted."""
    park.pool("p", "10.0.0.1-10.0.0.1", prefix=24)
    park.template("t", networkData=networks("p"))
    park.machine("first", template="t")
    addresses_of(park, "first")
    park.machine("second", template="t")
    park.error("second", "IP")
    former = uid_of(park.get(IP_CLAIM, "t-1-p") or {})
    park.delete(IP_CLAIM, "t-1-p")
    park.patch(IP_POOL, "p", {"spec": {"pools": [{"start": "10.0.0.1", "end": "10.0.0.2"}]}})

    assert addresses_of(park, "second") == ["10.0.0.2"]
    assert uid_of(park.get(IP_CLAIM, "t-1-p") or {}) != former


def test_a_machine_lets_go_of_a_claim_for_which_it_waits_no_longer_and_keeps_what_it_has(park: MachinePark) -> None:
    """Its template was mended meanwhile: the claim would take an address that somebody else waits for."""
    park.pool("full", "10.0.0.1-10.0.0.1", prefix=24)
    park.pool("a", "10.0.1.1-10.0.1.9", prefix=24)
    park.pool("b", "10.0.2.1-10.0.2.9", prefix=24)
    park.template("t", networkData=networks("full"))
    park.machine("first", template="t")
    addresses_of(park, "first")
    park.patch(park.templates, "t", {"spec": {"networkData": networks("a", "full")}})
    park.machine("second", template="t")
    park.error("second", "IP")
    park.patch(park.templates, "t", {"spec": {"networkData": networks("b")}})

    assert addresses_of(park, "second") == ["10.0.2.1"]
    park.gone(IP_CLAIM, "t-1-full")
    assert {key_of(each)[1] for each in park.all(IP_CLAIM)} == {"t-0-full", "t-1-a", "t-1-b"}
    for name in ("first", "second"):
        park.remove_machine(name)
    until(park.none_left)


def test_r7_a_claim_of_another_owner_is_not_used_but_waited_for(park: MachinePark) -> None:
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.claim("t-0-p")
    park.template("t", networkData=networks("p"))
    park.machine("m", template="t")

    assert park.error("m", "IPClaim") == "IPClaim t-0-p is not this machine's"
    park.delete(IP_CLAIM, "t-0-p")
    assert addresses_of(park, "m") == ["10.0.0.1"]


def test_r7_a_claim_for_another_kind_of_pool_is_not_used(park: MachinePark) -> None:
    """Its address would be of a pool that the template does not name any more."""

    def network_data(kind: str) -> Object:
        reference = {"name": "icp", "apiGroup": "ipam.cluster.x-k8s.io", "kind": kind}
        return {"networks": {"ipv4": [{"id": "n", "link": "e", "fromPoolRef": reference}]}}

    park.create(IN_CLUSTER_POOL, "icp", IN_CLUSTER_SPEC)
    park.template("t", networkData=network_data("InClusterIPPool"))
    park.machine("m", template="t")
    until(lambda: park.get(CLUSTER_API_CLAIM, "t-0-icp"))
    park.patch(park.templates, "t", {"spec": {"networkData": network_data("GlobalInClusterIPPool")}})

    assert park.error("m", "IP") == "IPAddressClaim t-0-icp is not for GlobalInClusterIPPool icp"
    park.remove_machine("m")
    until(lambda: park.get(CLUSTER_API_CLAIM, "t-0-icp") is None)


def test_a_pool_that_does_not_exist_is_reported_with_the_path_of_the_field(park: MachinePark) -> None:
    """No claim is made until it exists; then the machine goes on."""
    park.template("t", networkData=networks("p"), metaData={})
    park.machine("m", template="t")

    path = "spec.networkData.networks.ipv4[0].ipAddressFromIPPool"
    assert park.error("m", "spec") == f"{path}: there is no IPPool 'p'"
    assert not park.all(IP_CLAIM)
    assert park.get(SECRET, "m-metadata") is None
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    assert addresses_of(park, "m") == ["10.0.0.1"]


def test_a_pool_of_another_provider_that_does_not_exist_is_reported_with_the_path_of_the_field(
    park: MachinePark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that can be looked up gets no claim; of others it is said what they wait for."""
    monkeypatch.setattr(data_pass, "WAITS_S", 0.2)
    monkeypatch.setattr(claim_making, "SAYS_AFTER_S", 0.0)
    for name, kind in (("t", "InClusterIPPool"), ("u", "InClusterIPPol")):
        reference = {"name": "icp", "apiGroup": "ipam.cluster.x-k8s.io", "kind": kind}
        park.template(name, networkData={"networks": {"ipv4": [{"id": "n", "link": "e", "fromPoolRef": reference}]}})
        park.machine(f"{name}-m", template=name)

    path = "spec.networkData.networks.ipv4[0].fromPoolRef"
    assert park.error("t-m", "spec") == f"{path}: there is no InClusterIPPool 'icp'"
    waits = "IPAddressClaim u-0-icp waits for an address of InClusterIPPol 'icp' of ipam.cluster.x-k8s.io"
    assert park.error("u-m", "spec") == f"{path}: {waits}"
    assert [key_of(each)[1] for each in park.all(CLUSTER_API_CLAIM)] == ["u-0-icp"]
    park.create(IN_CLUSTER_POOL, "icp", IN_CLUSTER_SPEC)
    until(lambda: park.get(CLUSTER_API_CLAIM, "t-0-icp"))


def test_r3_r4_what_comes_first_where_a_template_names_several_sources(park: MachinePark) -> None:
    """Each in a template of its own; the last of them is spelt as in v1beta2."""
    for place, pool in enumerate(("named", "referred", "noted"), start=1):
        park.pool(pool, f"10.{place}.0.1-10.{place}.0.9", prefix=24, gateway=f"10.{place}.0.254")
    reference = {"name": "referred", "apiGroup": "ipam.metal3.io", "kind": "IPPool"}
    on_machine = {"object": "machine", "annotation": "pool"}
    entry = {"id": "n", "link": "e", "ipAddressFromIPPool": "named"}
    route = {"network": "10.200.0.0", "prefix": 16, "gateway": {"string": "10.1.0.7", "fromIPPool": "referred"}}
    entries = {
        "reference": {**entry, "fromPoolRef": reference},
        "annotation": {**entry, "fromPoolRef": reference, "fromPoolAnnotation": on_machine},
        "gateway": {**entry, "routes": [route]},
    }
    for name, each in entries.items():
        park.template(name, networkData={"networks": {"ipv4": [each]}})
    lists = ("ipAddresses", "prefixes", "gateways")
    newer = {f"{each}FromPool": [{"key": each, **reference}] for each in lists}
    noted = {"fromAnnotations": [{"key": "note", "object": "machine", "annotation": "pool"}]}
    park.template("spelt", metaData={**newer, **noted})
    made = {name: park.machine(name) for name in ("spelt", *entries)}
    for name in made:
        park.patch(park.machines, name, {"metadata": {"annotations": {"pool": "noted"}}})
    for name in entries:
        park.data_claim(made[name], name)

    assert addresses_of(park, "annotation") == ["10.3.0.1"]
    park.data_claim(made["spelt"], "spelt")  # whose machine's annotation is known by now, as it was made before
    assert addresses_of(park, "reference")[0].startswith("10.2.0.")
    (network,) = park.rendered("gateway")[1]["networks"]
    assert (network["ip_address"], network["routes"][0]["gateway"]) == ("10.1.0.1", "10.1.0.7")
    meta_data = park.rendered("spelt")[0]
    assert (meta_data["prefixes"], meta_data["gateways"], meta_data["note"]) == ("24", "10.2.0.254", "noted")
    assert meta_data["ipAddresses"].startswith("10.2.0.")
    assert {key_of(each)[1] for each in park.all(IP_CLAIM)} == {
        "reference-0-referred", "annotation-0-noted", "gateway-0-named", "spelt-0-referred",
    }  # fmt: skip


def test_a_bad_template_is_reported_on_the_machine_and_nothing_is_half_rendered(park: MachinePark) -> None:
    links = {"ethernets": [{"type": "phy", "id": "e", "macAddress": {"fromHostInterface": "eno9"}}]}
    park.template("t", metaData={"strings": [{"key": "a", "value": "b"}]}, networkData={"links": links})
    park.template("u", metaData=TWICE)
    reference = {"name": "p", "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool"}
    two_kinds = [{"id": "a", "link": "e", "fromPoolRef": reference}, *networks("p")["networks"]["ipv4"]]
    park.template("v", metaData={}, networkData={"networks": {"ipv4": two_kinds}})
    park.host("h", cards={"eno1": "0c:42:a1:5e:10:02"})
    park.machine("m", "h", "t")
    park.machine("n", "h2", "u")
    park.machine("o", "h3", "v")

    card = "BareMetalHost 'h' has no network card 'eno9'; it has eno1"
    assert park.error("m", "spec") == f"spec.networkData.links.ethernets[0].macAddress: {card}"
    assert park.get(SECRET, "m-metadata") is None
    assert park.error("n", "spec").startswith("spec.metaData.namespaces[0].key: 'a' is there twice")
    path = "spec.networkData.networks.ipv4[1].ipAddressFromIPPool"
    assert park.error("o", "spec").startswith(f"{path}: IPPool of ipam.metal3.io has the name of InClusterIPPool of")
    assert not [*park.all(IP_CLAIM), *park.all(CLUSTER_API_CLAIM)]
    assert park.get(SECRET, "o-metadata") is None
    park.inspect("h", {"eno9": "0c:42:a1:5e:10:09"})
    assert park.rendered("m")[1]["links"][0]["ethernet_mac_address"] == "0c:42:a1:5e:10:09"


def test_a_template_of_another_cluster_is_refused_for_a_machine(park: MachinePark) -> None:
    park.cluster("green")
    park.template("t", metaData={}, clusterName="green")
    park.machine("m", template="t")

    assert park.error("m", "spec") == "spec.clusterName: the template is of cluster 'green', the machine of 'blue'"
    assert park.get(SECRET, "m-metadata") is None


def test_an_index_that_an_older_machine_has_is_refused(park: MachinePark) -> None:
    park.template("t", metaData={"indexes": [{"key": "i"}]})
    park.machine("m", template="t")
    park.rendered("m")
    made = park.machine("n")
    spec = {
        "index": 0,
        "template": {"name": "t", "namespace": park.name},
        "claim": {"name": "n", "namespace": park.name},
    }
    owner = {"apiVersion": park.metal3_machines.api_version, "kind": "Metal3Machine", "name": "n", "uid": uid_of(made)}
    park.create(park.datas, "z-by-hand", spec, ownerReferences=[owner])

    assert park.error("n", "spec") == "spec.index: 0 is also that of Metal3Data t-0"
    assert park.get(SECRET, "n-metadata") is None
    park.remove_machine("m")
    assert park.rendered("n")[0]["i"] == "0"


def test_r8_a_secret_that_is_there_is_never_rendered_again(park: MachinePark) -> None:
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    body = {"metadata": {"name": "m-metadata"}, "stringData": {"metaData": "own: text\n"}}
    park.ask("POST", SECRET.path(park.name), body)
    park.template("t", metaData={"strings": [{"key": "a", "value": "b"}]}, networkData=networks("p"))
    park.machine("m", template="t")
    meta_data, network_data = park.rendered("m")

    assert meta_data == {"own": "text"}
    assert network_data["networks"][0]["ip_address"] == "10.0.0.1"
    park.patch(SECRET, "m-networkdata", {"stringData": {"networkData": "links: []\n"}})
    park.patch(park.datas, "t-0", {"metadata": {"annotations": {"touched": "yes"}}})
    park.machine("n", template="t")
    park.rendered("n")
    assert park.secret("m-networkdata", "networkData") == {"links": []}


def test_r8_a_machine_that_is_ready_stays_so_whatever_becomes_of_its_template(park: MachinePark) -> None:
    park.template("t", metaData={"strings": [{"key": "a", "value": "b"}]})
    park.machine("m", template="t")
    park.rendered("m")
    park.patch(park.templates, "t", {"spec": {"metaData": TWICE}})
    park.machine("n", template="t")
    assert park.error("n", "spec").startswith("spec.metaData.namespaces[0].key: 'a' is there twice")

    assert park.data_of("m")["status"] == {"ready": True}
    park.delete(SECRET, "m-metadata")
    park.patch(park.datas, "t-0", {"metadata": {"annotations": {"touched": "yes"}}})
    assert park.error("m", "spec").startswith("spec.metaData.namespaces[0].key: 'a' is there twice")


def test_r8_a_secret_of_a_machine_that_had_this_name_is_not_taken_for_its_own(park: MachinePark) -> None:
    """Nobody collects garbage here: the old secret has the owner that is gone, and the old address."""
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    owner = {"apiVersion": park.datas.api_version, "kind": "Metal3Data", "name": "t-7", "uid": "gone-for-ever"}
    body = {
        "metadata": {"name": "m-networkdata", "ownerReferences": [owner]},
        "stringData": {"networkData": "old: {}\n"},
    }
    park.ask("POST", SECRET.path(park.name), body)
    park.template("t", networkData=networks("p"))
    park.machine("m", template="t")

    assert addresses_of(park, "m") == ["10.0.0.1"]


def test_r8_an_old_secret_stays_until_the_one_that_replaces_it_is_rendered(park: MachinePark) -> None:
    """A host may run by it."""
    owner = {"apiVersion": park.datas.api_version, "kind": "Metal3Data", "name": "t-7", "uid": "gone-for-ever"}
    body = {
        "metadata": {"name": "m-networkdata", "ownerReferences": [owner]},
        "stringData": {"networkData": "old: {}\n"},
    }
    park.ask("POST", SECRET.path(park.name), body)
    park.template("t", networkData=networks("p"))
    park.machine("m", template="t")
    park.error("m", "spec")

    assert park.secret("m-networkdata", "networkData") == {"old": {}}
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    assert addresses_of(park, "m") == ["10.0.0.1"]


def test_r11_claims_from_pools_of_annotations_are_released_too(park: MachinePark) -> None:
    """Also if the annotation, or the template, is gone by then."""
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    entry = {"id": "n", "link": "e", "fromPoolAnnotation": ANNOTATED}
    park.template("t", networkData={"networks": {"ipv4": [entry]}})
    park.host("h", annotations={"pool": "p"})
    park.machine("m", "h", "t")
    assert addresses_of(park, "m") == ["10.0.0.1"]
    park.patch(HOST, "h", {"metadata": {"annotations": {"pool": None}}})
    park.remove_machine("m")

    until(park.none_left)
    until(lambda: indexes_of(park, "t") == {})


def test_everything_of_a_machine_goes_and_its_number_and_address_are_free_again(park: MachinePark) -> None:
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.template("t", metaData={"indexes": [{"key": "i"}]}, networkData=networks("p"))
    for name in ("a", "b"):
        park.machine(name, template="t")
        park.rendered(name)
    park.remove_machine("a")
    until(lambda: not any("a-" in each or "t-0" in each for each in park.left()))
    park.machine("c", template="t")

    meta_data, network_data = park.rendered("c")
    assert (meta_data["i"], network_data["networks"][0]["ip_address"]) == ("0", "10.0.0.1")
    park.delete(park.templates, "t")
    for name in ("b", "c"):
        park.remove_machine(name)
    until(park.none_left)
    park.gone(park.templates, "t")


def test_data_that_is_deleted_directly_stays_for_as_long_as_its_claim(park: MachinePark) -> None:
    """Its address is in use by the machine: nothing of it is released."""
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.template("t", networkData=networks("p"))
    park.machine("m", template="t")
    park.rendered("m")
    park.delete(park.datas, "t-0")
    park.machine("n", template="t")
    assert addresses_of(park, "n") == ["10.0.0.2"]

    assert park.get(IP_CLAIM, "t-0-p") is not None
    park.remove_machine("m")
    until(lambda: park.get(IP_CLAIM, "t-0-p") is None and park.get(park.datas, "t-0") is None)


def test_ks7_claims_are_named_by_the_host_by_option_so_that_fixed_addresses_reach_machines(
    bare_park: MachinePark,
) -> None:
    """And turning it on does not rename claims that live."""
    bare_park.cluster()
    bare_park.pool("p", "10.0.0.1-10.0.0.9", prefix=24, preAllocations={"rack3-u12-p": "10.0.0.7"})
    bare_park.template("t", networkData=networks("p"))
    with rendering_in(bare_park.server, bare_park.name):
        bare_park.machine("old", "rack1-u1", "t")
        assert addresses_of(bare_park, "old") == ["10.0.0.1"]
    with rendering_in(bare_park.server, bare_park.name, claims_by_host=True):
        bare_park.delete(SECRET, "old-networkdata")
        bare_park.patch(bare_park.datas, "t-0", {"metadata": {"annotations": {"touched": "yes"}}})
        bare_park.machine("new", "rack3-u12", "t")
        assert addresses_of(bare_park, "new") == ["10.0.0.7"]
        until(lambda: bare_park.get(SECRET, "old-networkdata"))

        assert addresses_of(bare_park, "old") == ["10.0.0.1"]
        assert {key_of(each)[1] for each in bare_park.all(IP_CLAIM)} == {"t-0-p", "rack3-u12-p"}
        labels = (bare_park.get(IP_CLAIM, "rack3-u12-p") or {})["metadata"]["labels"]
        assert labels["infrastructure.cluster.x-k8s.io/data-name"] == "t-1"
        assert labels["infrastructure.cluster.x-k8s.io/pool-name"] == "p"
        for name in ("old", "new"):
            bare_park.remove_machine(name)
        until(bare_park.none_left)


def test_6_9_ks7_a_host_of_a_sticky_pool_gets_its_former_address_after_another_machine_came(
    bare_park: MachinePark,
) -> None:
    """No pre-allocation is needed: the claim has the host's name again, whichever machine is on it."""
    bare_park.cluster()
    bare_park.pool("p", "10.0.0.1-10.0.0.9", prefix=24, tenure={"sticky": True})
    bare_park.template("t", networkData=networks("p"))
    with rendering_in(bare_park.server, bare_park.name, claims_by_host=True):
        bare_park.machine("first", "rack1-u1", "t")
        assert addresses_of(bare_park, "first") == ["10.0.0.1"]
        bare_park.remove_machine("first")
        bare_park.gone(IP_CLAIM, "rack1-u1-p")
        bare_park.machine("between", "rack1-u2", "t")
        assert addresses_of(bare_park, "between") == ["10.0.0.2"]
        bare_park.machine("again", "rack1-u1", "t")

        assert addresses_of(bare_park, "again") == ["10.0.0.1"]
        assert {key_of(each)[1] for each in bare_park.all(IP_CLAIM)} == {"rack1-u1-p", "rack1-u2-p"}


def test_ks7_a_machine_that_is_given_another_host_lets_go_of_the_claim_by_the_former(bare_park: MachinePark) -> None:
    bare_park.cluster()
    bare_park.pool("p", "10.0.0.1-10.0.0.1", prefix=24)
    bare_park.template("t", networkData=networks("p"))
    with rendering_in(bare_park.server, bare_park.name, claims_by_host=True):
        bare_park.machine("first", "rack1-u1", "t")
        addresses_of(bare_park, "first")
        bare_park.machine("second", "rack1-u2", "t")
        bare_park.error("second", "IP")
        bare_park.host("rack1-u3")
        annotations = {HOST_ANNOTATION: f"{bare_park.name}/rack1-u3"}
        bare_park.patch(bare_park.metal3_machines, "second", {"metadata": {"annotations": annotations}})

        until(lambda: {key_of(each)[1] for each in bare_park.all(IP_CLAIM)} == {"rack1-u1-p", "rack1-u3-p"})


def test_r3_a_pool_of_another_provider_is_claimed_by_cluster_api_s_kind(park: MachinePark) -> None:
    """The address is then the provider's business; this one is served by hand."""
    reference = {"name": "icp", "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool"}
    entry = {"id": "n", "link": "e", "fromPoolRef": reference}
    park.create(IN_CLUSTER_POOL, "icp", IN_CLUSTER_SPEC)
    park.template("t", networkData={"networks": {"ipv4": [entry]}})
    park.machine("m", template="t")
    claim = until(lambda: park.get(CLUSTER_API_CLAIM, "t-0-icp"))

    assert claim["spec"]["poolRef"] == reference
    assert not park.all(IP_CLAIM)
    park.remove_machine("m")
    until(lambda: park.get(CLUSTER_API_CLAIM, "t-0-icp") is None)


def test_a_paused_cluster_s_machines_are_left_alone(park: MachinePark) -> None:
    park.template("t", metaData={})
    park.patch(park.clusters, "blue", {"spec": {"paused": True}})
    until(lambda: (park.get(park.clusters, "blue") or {})["spec"]["paused"])
    park.machine("m", template="t")
    park.template("other", metaData={}, clusterName="green")
    park.cluster("green")
    made = park.machine("n")
    park.data_claim(made, "other", cluster="green")
    until(lambda: park.data_of("n"))

    assert not park.data_of("m")
    park.patch(park.clusters, "blue", {"spec": {"paused": False}})
    park.rendered("m")


def test_a_template_of_a_cluster_is_its_cluster_s_and_waits_for_it(bare_park: MachinePark) -> None:
    with rendering_in(bare_park.server, bare_park.name):
        bare_park.template("t", metaData={})
        bare_park.machine("m", template="t")
        bare_park.template("free", metaData={}, clusterName="other")
        bare_park.cluster("other")
        until(lambda: (bare_park.get(bare_park.templates, "free") or {})["metadata"].get("ownerReferences"))
        assert not bare_park.data_of("m")
        bare_park.cluster()
        bare_park.rendered("m")

        template = bare_park.get(bare_park.templates, "t") or {}
        assert [(each["kind"], each["name"]) for each in template["metadata"]["ownerReferences"]] == [
            ("Cluster", "blue")
        ]
        assert template["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": "blue"}


def test_kd6_what_is_moved_away_is_not_released(park: MachinePark) -> None:
    """Clusterctl marks objects, deletes them, and takes their finalizers away itself."""
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.template("t", networkData=networks("p"))
    park.machine("m", template="t")
    park.rendered("m")
    mark = {"metadata": {"annotations": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}}}
    for kind, name in ((IP_CLAIM, "t-0-p"), (park.datas, "t-0"), (park.data_claims, "m")):
        park.patch(kind, name, mark)
        park.delete(kind, name)
    park.machine("n", template="t")
    park.rendered("n")

    assert park.get(IP_ADDRESS, "p-10-0-0-1") is not None
    assert DATA_FINALIZER in (park.get(IP_CLAIM, "t-0-p") or {})["metadata"]["finalizers"]
    assert park.get(SECRET, "m-networkdata") is not None


def test_the_host_may_come_late_and_a_marked_machine_is_left_alone(park: MachinePark) -> None:
    park.template("t", metaData={"objectNames": [{"key": "h", "object": "baremetalhost"}]})
    park.machine("m", None, "t")
    data = until(lambda: park.data_of("m"))
    park.patch(park.datas, key_of(data)[1], {"metadata": {"annotations": {PAUSED: ""}}})
    park.host("late")
    park.patch(park.metal3_machines, "m", {"metadata": {"annotations": {HOST_ANNOTATION: f"{park.name}/late"}}})
    park.machine("n", template="t")
    park.rendered("n")

    assert park.get(SECRET, "m-metadata") is None
    park.patch(park.datas, key_of(data)[1], {"metadata": {"annotations": {PAUSED: None}}})
    assert park.rendered("m")[0]["h"] == "late"


def test_what_a_machine_waits_for_is_said_after_a_while(park: MachinePark, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is misspelt, or in a namespace that nobody looks after, would be waited for without a word."""
    monkeypatch.setattr(claim_making, "SAYS_AFTER_S", 0.0)
    park.template("t", metaData={})
    park.machine("m", None, "t")
    says = "it waits for a host: metal3.io/BareMetalHost of Metal3Machine m is to say NAMESPACE/NAME"
    assert park.error("m", "it waits for") == says

    for written, waits_for in (
        ("rack3", says),
        (f"{park.name}/rack3", f"it waits for BareMetalHost {park.name}/rack3"),
    ):
        park.patch(park.metal3_machines, "m", {"metadata": {"annotations": {HOST_ANNOTATION: written}}})
        assert park.error("m", waits_for) == waits_for
    spec = (park.get(park.machines, "m") or {})["spec"]
    park.delete(park.machines, "m")
    park.host("rack3")
    machine = "it waits for Machine m, which is to own Metal3Machine m"
    assert park.error("m", machine) == machine
    park.create(park.machines, "m", spec)
    park.rendered("m")
    assert "errorMessage" not in park.data_of("m")["status"]


def test_a_claim_without_a_machine_is_refused_on_itself(park: MachinePark) -> None:
    park.template("t", metaData={})
    park.create(park.data_claims, "alone", {"template": {"name": "t", "namespace": park.name}})

    assert park.claim_error("alone") == "Metal3Machine not found in owner references"
    assert not park.all(park.datas)


def test_a_template_of_another_namespace_is_refused_on_the_claim(park: MachinePark) -> None:
    """CAPM3's webhooks do not let such claims in; a template of the same name at home is not the one that is named."""
    park.template("t", metaData={})
    owner = owner_of(park.metal3_machines, park.machine("m"))
    spec = {"template": {"name": "t", "namespace": "elsewhere"}}
    park.create(park.data_claims, "m", spec, ownerReferences=[owner])

    assert park.claim_error("m") == "spec.template.namespace: 'elsewhere' is not the claim's own namespace"
    assert not park.all(park.datas)


def test_kd12_a_status_by_capm3_s_manager_stops_ours_with_an_event(bare_park: MachinePark) -> None:
    """The server calls the manager by the name that it gives itself."""
    park = bare_park
    park.cluster()
    park.template("t", metaData={})
    thread = OperatorThread(park.server, settings_for(park.server, park.name, controllers=CONTROLLERS))
    thread.start()
    try:
        park.machine("m", template="t")
        park.rendered("m")
        place = f"{park.datas.path(park.name, 't-0', 'status')}?fieldManager=cluster-api-provider-metal3-manager"
        park.ask("PATCH", place, {"status": {"errorMessage": "theirs"}})
        until(lambda: "another controller of machines' data" in thread.readiness())
        park.machine("n", template="t")
        (event,) = until(lambda: [e for e in park.events(park.data_of("m")) if e["reason"] == "OtherController"])
        time.sleep(0.5)
    finally:
        thread.stop()

    assert event["note"].startswith(f"CAPM3's manager wrote the status of Metal3Data {park.name}/t-0 at ")
    assert not park.data_of("n")
