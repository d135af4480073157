"""In what CAPM3's real manager differs from ours: each row of ``docs/reference/metal3-data.md``, as it was seen."""

import base64
import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
)
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, key_of
from tests.integrations.kubernetes.metal3.serving import (
    OperatorThread,
    RefusedByServer,
    operator_in,
    settings_for,
    until,
)
from tests.integrations.kubernetes.metal3_data.capm3.capm3_manager import capm3_manager
from tests.integrations.kubernetes.metal3_data.capm3.capm3_park import WITHIN_S, Capm3Park
from tests.integrations.kubernetes.metal3_data.capm3.conftest import Capm3Cluster
from tests.integrations.kubernetes.metal3_data.machine_park import CLUSTER_LABEL, CONTROLLERS, rendering_in

pytestmark = pytest.mark.proof

DATA_FINALIZER = "metal3data.infrastructure.cluster.x-k8s.io"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - a route, nothing listens on it
IN_CLUSTER = {"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "icp"}
NOTED = {"object": "metal3machine", "annotation": "pool"}


@pytest.fixture
def served(capm3_cluster: Capm3Cluster, capm3_park: Capm3Park) -> Iterator[Capm3Park]:
    """Give a namespace with a cluster, in which CAPM3 makes machines and our operator serves claims."""
    with capm3_manager(capm3_park.server, capm3_cluster.place), operator_in(capm3_park.server, capm3_park.name):
        capm3_park.cluster()
        capm3_park.pool("p", "10.0.0.1-10.0.0.9", prefix=24, gateway="10.0.0.254", dnsServers=["10.0.0.53"])
        yield capm3_park


@contextlib.contextmanager
def taken_over(cluster: Capm3Cluster, park: Capm3Park, **spec: Any) -> Iterator[dict[str, Object]]:
    """Make a machine ``m`` with CAPM3; give its secrets while our controller renders the same machine again."""
    server = park.server
    with capm3_manager(server, cluster.place), operator_in(server, park.name):
        park.cluster()
        park.pool("p", "10.0.0.1-10.0.0.9", prefix=24, gateway="10.0.0.254", dnsServers=["10.0.0.53"])
        park.template("t", **spec)
        park.machine("m", template="t", notes={"pool": "p"})
        park.rendered("m")
        theirs = park.secrets()
    for name in theirs:
        park.delete(SECRET, name)
    with rendering_in(server, park.name):
        yield theirs


def network(pool: str = "p", **more: Any) -> Object:
    """Return a network."""
    return {"id": "n", "link": "e", "ipAddressFromIPPool": pool, **more}


def claims_of(park: Capm3Park) -> set[str]:
    """Return the names of all claims."""
    return {key_of(each)[1] for each in park.all(IP_CLAIM)}


def test_dns_servers_in_metadata_are_claimed_and_not_rendered(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    item = {"key": "dns", "name": "p"}
    with taken_over(capm3_cluster, capm3_park, metaData={"dnsServersFromPool": [item]}) as theirs:
        assert claims_of(capm3_park) == {"t-0-p"}
        assert theirs["m-metadata"]["content"].keys() == {"providerid"}
        ours = until(lambda: capm3_park.secret("m-metadata", "metaData"))
        assert ours == {**theirs["m-metadata"]["content"], "dns": "10.0.0.53"}


def test_secrets_of_a_template_without_a_label_have_an_empty_one_and_the_cluster_s_with_ours(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    with taken_over(capm3_cluster, capm3_park, metaData={}) as theirs:
        assert theirs["m-metadata"]["labels"] == {CLUSTER_LABEL: ""}
        ours = until(lambda: capm3_park.secrets().get("m-metadata"))
        assert ours == {**theirs["m-metadata"], "labels": {CLUSTER_LABEL: "blue"}}


def test_a_key_that_is_there_twice_has_the_last_value_and_is_refused_by_ours(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    meta_data = {"strings": [{"key": "a", "value": "text"}], "namespaces": [{"key": "a"}]}
    with taken_over(capm3_cluster, capm3_park, metaData=meta_data) as theirs:
        assert theirs["m-metadata"]["content"]["a"] == "text"
        assert capm3_park.error("m", "spec").startswith("spec.metaData.namespaces[0].key: 'a' is there twice")


def test_a_template_that_is_there_cannot_be_changed_and_with_ours_it_can(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    """Ours is ``test_r8_a_machine_that_is_ready_stays_so_whatever_becomes_of_its_template``."""
    with capm3_manager(capm3_park.server, capm3_cluster.place):
        capm3_park.cluster()
        capm3_park.template("t", metaData={"namespaces": [{"key": "a"}]})
        changed = {"spec": {"metaData": {"namespaces": [{"key": "b"}]}}}

        with pytest.raises(RefusedByServer, match="cannot be modified"):
            capm3_park.patch(capm3_park.templates, "t", changed)


def test_texts_that_readers_of_yaml_take_for_signs_are_written_bare(served: Capm3Park) -> None:
    """Ours quotes them (``test_r10_every_text_comes_back_as_the_text_that_it_was``)."""
    texts = [{"key": "a", "value": "="}, {"key": "b", "value": "<<"}]
    served.template("t", metaData={"strings": texts})
    served.machine("m", template="t")
    secret = until(lambda: served.get(SECRET, "m-metadata"), WITHIN_S)
    written = base64.b64decode(secret["data"]["metaData"]).decode()

    assert written.startswith("a: =\nb: <<\n")
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(written)


def test_a_bond_without_links_has_null_and_an_empty_list_with_ours(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    bond = {
        "id": "b", "bondMode": "802.3ad", "macAddress": {"string": "0c:42:a1:5e:10:02"},
        "parameters": [{"name": "x", "value": {}}],
    }  # fmt: skip
    with taken_over(capm3_cluster, capm3_park, networkData={"links": {"bonds": [bond]}}) as theirs:
        (link,) = theirs["m-networkdata"]["content"]["links"]
        assert link["bond_links"] is None
        (ours,) = until(lambda: capm3_park.secret("m-networkdata", "networkData"))["links"]
        assert ours == {**link, "bond_links": []}


def test_a_number_of_more_than_32_bits_turns_negative_and_is_right_with_ours(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    """The second machine of the template has it: the first number is the largest that CAPM3's field has."""
    park = capm3_park
    with capm3_manager(park.server, capm3_cluster.place), operator_in(park.server, park.name):
        park.cluster()
        park.template("t", metaData={"indexes": [{"key": "i", "offset": 2**31 - 1}]})
        for name in ("m", "n"):
            park.machine(name, template="t")
            park.rendered(name)
        theirs = {name: park.secret(f"{name}-metadata", "metaData")["i"] for name in ("m", "n")}
    for name in ("m", "n"):
        park.delete(SECRET, f"{name}-metadata")
    with rendering_in(park.server, park.name):
        ours = {name: until(lambda name=name: park.secret(f"{name}-metadata", "metaData"))["i"] for name in ("m", "n")}  # type: ignore[misc]

    assert sorted(theirs.values()) == [str(-(2**31)), str(2**31 - 1)]
    assert sorted(ours.values()) == [str(2**31 - 1), str(2**31)]


def test_a_pool_of_the_other_family_is_rendered_all_the_same_and_refused_by_ours(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    networks = {"ipv6": [network()]}
    with taken_over(capm3_cluster, capm3_park, networkData={"networks": networks}) as theirs:
        (found,) = theirs["m-networkdata"]["content"]["networks"]
        assert (found["ip_address"], found["netmask"]) == ("10.0.0.1", "ffff:ff00::")
        assert capm3_park.error("m", "spec") == (
            "spec.networkData.networks.ipv6[0]: 10.0.0.1 of the pool is of another family than the network"
        )


def test_a_claim_that_failed_goes_on_when_our_operator_serves_it(served: Capm3Park) -> None:
    """No difference: what stops such a machine for ever is Metal3's IPAM, which never tries a claim again (KS8)."""
    served.pool("one", "10.1.0.1-10.1.0.1", prefix=24)
    served.template("t", networkData={"networks": {"ipv4": [network("one")]}})
    served.machine("first", template="t")
    served.rendered("first")
    served.machine("second", template="t")
    until(lambda: served.data_of("second").get("status", {}).get("errorMessage"), WITHIN_S)

    assert served.error("second", "IP") == "IP Allocation for one failed : Exhausted IP Pools"
    served.patch(IP_POOL, "one", {"spec": {"pools": [{"start": "10.1.0.1", "end": "10.1.0.2"}]}})
    assert served.rendered("second")[1]["networks"][0]["ip_address"] == "10.1.0.2"


def test_claims_from_pools_of_annotations_are_not_released(served: Capm3Park) -> None:
    """Beside one from a named pool, which is."""
    served.pool("noted", "10.1.0.1-10.1.0.9", prefix=24)
    noted = {"id": "a", "link": "e", "fromPoolAnnotation": NOTED}
    served.template("t", networkData={"networks": {"ipv4": [noted, network()]}})
    served.machine("m", template="t", notes={"pool": "noted"})
    served.rendered("m")
    served.remove_machine("m")
    until(lambda: served.get(IP_CLAIM, "t-0-p") is None and not served.all(served.datas), WITHIN_S)

    left = served.get(IP_CLAIM, "t-0-noted")
    assert left is not None
    assert DATA_FINALIZER in left["metadata"]["finalizers"]
    assert [each["spec"]["address"] for each in served.all(IP_ADDRESS)] == ["10.1.0.1"]


def test_a_pool_whose_gateway_is_not_used_gives_an_address_too(served: Capm3Park) -> None:
    served.pool("other", "10.1.0.1-10.1.0.9", prefix=24)
    route = {"network": EVERYWHERE, "gateway": {"string": "10.0.0.1", "fromIPPool": "other"}}
    served.template("t", networkData={"networks": {"ipv4": [network(routes=[route])]}})
    served.machine("m", template="t")
    served.rendered("m")

    assert claims_of(served) == {"t-0-p", "t-0-other"}


def test_a_pool_that_does_not_exist_is_claimed_from_and_only_its_claim_tells_of_it(served: Capm3Park) -> None:
    """CAPM3 says what the claim says, which is our operator's word; ours, in its place, makes no claim."""
    served.template("t", networkData={"networks": {"ipv4": [network("misspelt")]}})
    served.machine("m", template="t")
    claim = until(lambda: _with_message(served.get(IP_CLAIM, "t-0-misspelt")), WITHIN_S)
    until(lambda: _with_message(served.data_of("m")), WITHIN_S)

    said = "IPPool misspelt does not exist; the claim is served as soon as it does"
    assert claim["status"]["errorMessage"] == said
    assert served.error("m", "IP") == f"IP Allocation for misspelt failed : {said}"
    assert not served.secrets()
    served.pool("misspelt", "10.1.0.1-10.1.0.9", prefix=24)
    assert served.rendered("m")[1]["networks"][0]["ip_address"] == "10.1.0.1"


def _with_message(object: Object | None) -> Object | None:
    return object if object and object.get("status", {}).get("errorMessage") else None


def test_an_annotated_gateway_of_a_network_that_finds_its_address_fails(served: Capm3Park) -> None:
    """CAPM3 looks for such pools in static networks only; ours renders it."""
    route = {"network": EVERYWHERE, "gateway": {"fromPoolAnnotation": NOTED}}
    served.template("t", networkData={"networks": {"ipv4DHCP": [{"id": "n", "link": "e", "routes": [route]}]}})
    served.machine("m", template="t", notes={"pool": "p"})
    until(lambda: served.data_of("m").get("status", {}).get("errorMessage"), WITHIN_S)

    assert served.error("m", "f") == "failed to fetch pool from cache"


def test_the_kind_of_a_pool_in_metadata_is_ignored(served: Capm3Park) -> None:
    """CAPM3 takes it for an IPPool of the name; ours claims from the pool that is named."""
    served.template("t", metaData={"ipAddressesFromPool": [{"key": "ip", **IN_CLUSTER}]})
    served.machine("m", template="t")
    until(lambda: served.get(IP_CLAIM, "t-0-icp"), WITHIN_S)

    assert not served.all(CLUSTER_API_CLAIM)


def test_a_secret_of_a_machine_that_had_the_same_name_is_taken_for_the_new_one_s(served: Capm3Park) -> None:
    owner = {"apiVersion": served.datas.api_version, "kind": "Metal3Data", "name": "t-7", "uid": "gone-for-ever"}
    body = {
        "metadata": {"name": "m-networkdata", "ownerReferences": [owner]},
        "stringData": {"networkData": "old: {}\n"},
    }
    served.ask("POST", SECRET.path(served.name), body)
    served.template("t", networkData={"networks": {"ipv4": [network()]}})
    served.machine("m", template="t")

    assert served.rendered("m")[1] == {"old": {}}


def test_data_that_is_deleted_stays_for_as_long_as_its_claim(served: Capm3Park) -> None:
    """No difference."""
    served.template("t", networkData={"networks": {"ipv4": [network()]}})
    served.machine("m", template="t")
    served.rendered("m")
    served.delete(served.datas, "t-0")
    served.machine("n", template="t")
    served.rendered("n")

    assert served.get(IP_CLAIM, "t-0-p") is not None
    served.remove_machine("m")
    until(lambda: served.get(served.datas, "t-0") is None and served.get(IP_CLAIM, "t-0-p") is None, WITHIN_S)


def test_a_pool_of_another_provider_is_claimed_and_rendered_alike(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    """No difference; the provider's part is done by hand."""
    park, server = capm3_park, capm3_park.server
    entry = {"id": "n", "link": "e", "fromPoolRef": IN_CLUSTER}
    with capm3_manager(server, capm3_cluster.place), operator_in(server, park.name):
        park.cluster()
        park.template("t", networkData={"networks": {"ipv4": [entry]}})
        park.machine("m", template="t")
        claim = until(lambda: park.get(CLUSTER_API_CLAIM, "t-0-icp"), WITHIN_S)
        assert claim["spec"]["poolRef"] == IN_CLUSTER
        spec = {
            "address": "10.9.0.4", "prefix": 20, "gateway": "10.9.0.1", "poolRef": IN_CLUSTER,
            "claimRef": {"name": "t-0-icp"},
        }  # fmt: skip
        park.create(CLUSTER_API_ADDRESS, "t-0-icp", spec)
        park.patch(CLUSTER_API_CLAIM, "t-0-icp", {"status": {"addressRef": {"name": "t-0-icp"}}}, "status")
        theirs = park.rendered("m")[1]
    park.delete(SECRET, "m-networkdata")
    with rendering_in(server, park.name):
        assert until(lambda: park.secret("m-networkdata", "networkData")) == theirs

    assert (theirs["networks"][0]["ip_address"], theirs["networks"][0]["netmask"]) == ("10.9.0.4", "255.255.240.0")


def test_kd12_ours_stops_while_capm3_is_at_work_and_goes_on_serving_its_claims(
    capm3_cluster: Capm3Cluster, capm3_park: Capm3Park
) -> None:
    park, server = capm3_park, capm3_park.server
    thread = OperatorThread(server, settings_for(server, park.name, controllers=CONTROLLERS))
    thread.start()
    try:
        with capm3_manager(server, capm3_cluster.place):
            park.cluster()
            park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
            park.template("t", networkData={"networks": {"ipv4": [network()]}})
            park.machine("m", template="t")
            until(lambda: "another controller of machines' data" in thread.readiness(), WITHIN_S)
            park.machine("n", template="t")
            given = [park.rendered(name)[1]["networks"][0]["ip_address"] for name in ("m", "n")]
    finally:
        thread.stop()

    assert sorted(given) == ["10.0.0.1", "10.0.0.2"]
    found = park.ask("GET", f"/apis/events.k8s.io/v1/namespaces/{park.name}/events")["items"]
    (event,) = [each for each in found if each["reason"] == "OtherController"]
    written = rf"Metal3Data(Template {park.name}/t|Claim {park.name}/m| {park.name}/t-0)"  # whichever is seen first
    assert re.match(f"CAPM3's manager wrote the status of {written} at ", event["note"]), event["note"]
