"""Bad templates are refused with the path of the field, all faults at once, before anything is rendered."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddresses
from tenure.integrations.kubernetes.metal3_data.template.read_template import ADDRESSES, PER_NETWORK, read_template
from tenure.integrations.kubernetes.metal3_data.template.template_fields import TemplateRefused
from tests.integrations.kubernetes.metal3_data.worked_example import Document, document, facts, template_with

EVERYWHERE = "0.0.0.0"  # noqa: S104 - a route, nothing listens on it
NETWORK = {"id": "n", "link": "l", "ipAddressFromIPPool": "p"}
MAC = {"string": "0c:42:a1:5e:10:02"}


def refused(written: Document) -> list[tuple[str, str]]:
    with pytest.raises(TemplateRefused) as raised:
        read_template(written)
    return list(raised.value.faults)


def network_data(**networks: Any) -> Document:
    return template_with(networkData={"networks": networks})


@pytest.mark.parametrize(
    ("written", "path", "reason"),
    [
        (template_with(metadata={}), "spec.metadata", "is not known; known here:"),
        (template_with(metaData={"string": []}), "spec.metaData.string", "is not known"),
        (
            template_with(metaData={"strings": [{"key": "a", "value": "b", "vaule": "c"}]}),
            "spec.metaData.strings[0].vaule",
            "is not known",
        ),
        (template_with(metaData={"strings": {"key": "a"}}), "spec.metaData.strings", "must be a list"),
        (template_with(metaData={"strings": ["a"]}), "spec.metaData.strings[0]", "must be a map"),
        (template_with(metaData=7), "spec.metaData", "must be a map"),
        (template_with(metaData={"strings": [{"value": "b"}]}), "spec.metaData.strings[0].key", "is missing"),
        (
            template_with(metaData={"strings": [{"key": "a", "value": 7}]}),
            "spec.metaData.strings[0].value",
            "must be text, not 7",
        ),
        (
            template_with(metaData={"indexes": [{"key": "a"}, {"key": "a"}]}),
            "spec.metaData.indexes[1].key",
            "is there twice: spec.metaData.indexes[0] has it",
        ),
        (
            template_with(metaData={"strings": [{"key": "providerid", "value": "x"}]}),
            "spec.metaData.strings[0].key",
            "what every machine has",
        ),
        (
            template_with(metaData={"indexes": [{"key": "a", "offset": 2**63}]}),
            "spec.metaData.indexes[0].offset",
            "must be a number from",
        ),
        (
            template_with(metaData={"indexes": [{"key": "a", "step": "2"}]}),
            "spec.metaData.indexes[0].step",
            "must be a whole number",
        ),
        (
            template_with(metaData={"indexes": [{"key": "a", "offset": True}]}),
            "spec.metaData.indexes[0].offset",
            "must be a whole number",
        ),
        (
            template_with(metaData={"objectNames": [{"key": "a", "object": "host"}]}),
            "spec.metaData.objectNames[0].object",
            "must be one of machine",
        ),
        (
            template_with(metaData={"fromHostInterfaces": [{"key": "a"}]}),
            "spec.metaData.fromHostInterfaces[0].interface",
            "is missing",
        ),
        (
            template_with(metaData={"fromHostInterfaces": [{"key": "a", "interface": "e", "fromBootMAC": True}]}),
            "spec.metaData.fromHostInterfaces[0].interface",
            "must be empty where fromBootMAC is true",
        ),
        (
            template_with(metaData={"fromHostInterfaces": [{"key": "a", "fromBootMAC": "yes"}]}),
            "spec.metaData.fromHostInterfaces[0].fromBootMAC",
            "must be true or false, not 'yes'",
        ),
        (
            template_with(metaData={"ipAddressesFromIPPool": [{"key": "a"}]}),
            "spec.metaData.ipAddressesFromIPPool[0].name",
            "is missing",
        ),
        (
            network_data(ipv4=[{"id": "n", "link": "l"}]),
            "spec.networkData.networks.ipv4[0]",
            "one of ipAddressFromIPPool, fromPoolRef",
        ),
        (network_data(ipv4DHCP=[NETWORK]), "spec.networkData.networks.ipv4DHCP[0].ipAddressFromIPPool", "is not known"),
        (network_data(ipv5=[]), "spec.networkData.networks.ipv5", "is not known"),
        (
            network_data(ipv4=[{**NETWORK, "routes": [{"network": "::", "gateway": {}}]}]),
            "spec.networkData.networks.ipv4[0].routes[0].network",
            "must be an IPv4 address",
        ),
        (
            network_data(ipv4=[{**NETWORK, "routes": [{"gateway": {}}]}]),
            "spec.networkData.networks.ipv4[0].routes[0].network",
            "is missing",
        ),
        (
            network_data(ipv4=[{**NETWORK, "routes": [{"network": EVERYWHERE, "netmask": 0, "gateway": {}}]}]),
            "spec.networkData.networks.ipv4[0].routes[0].netmask",
            "known here: network, prefix",
        ),
        (
            network_data(ipv4=[{**NETWORK, "routes": [{"network": EVERYWHERE, "prefix": 33, "gateway": {}}]}]),
            "spec.networkData.networks.ipv4[0].routes[0].prefix",
            "from 0 to 32",
        ),
        (
            network_data(ipv4=[{**NETWORK, "routes": [{"network": EVERYWHERE, "gateway": {"string": "x"}}]}]),
            "spec.networkData.networks.ipv4[0].routes[0].gateway.string",
            "must be an IPv4",
        ),
        (
            network_data(ipv4=[{**NETWORK, "fromPoolAnnotation": {"object": "machine"}}]),
            "spec.networkData.networks.ipv4[0].fromPoolAnnotation.annotation",
            "is missing",
        ),
        (
            template_with(networkData={"services": {"dns": ["8.8.8"]}}),
            "spec.networkData.services.dns[0]",
            "must be an IP address",
        ),
        (
            template_with(networkData={"services": [{"type": "ntp", "address": "8.8.8.8"}]}),
            "spec.networkData.services[0].type",
            "must be one of dns",
        ),
        (
            template_with(networkData={"links": {"ethernets": [{"type": "phy", "id": "e"}]}}),
            "spec.networkData.links.ethernets[0].macAddress",
            "is missing",
        ),
        (
            template_with(networkData={"links": {"ethernets": [{"type": "phy", "id": "e", "macAddress": {}}]}}),
            "spec.networkData.links.ethernets[0].macAddress",
            "one of string",
        ),
        (
            template_with(
                networkData={"links": {"ethernets": [{"type": "phy", "id": "e", "macAddress": {"string": "0c:42"}}]}}
            ),
            "spec.networkData.links.ethernets[0].macAddress.string",
            "must be a MAC address",
        ),
        (
            template_with(
                networkData={"links": {"ethernets": [{"type": "phy", "id": "e", "name": "0eth", "macAddress": MAC}]}}
            ),
            "spec.networkData.links.ethernets[0].name",
            "must be a letter and up to 14 letters",
        ),
        (
            template_with(networkData={"links": {"ethernets": [{"type": "wifi", "id": "e", "macAddress": MAC}]}}),
            "spec.networkData.links.ethernets[0].type",
            "must be one of bridge",
        ),
        (
            template_with(
                networkData={"links": {"ethernets": [{"type": "phy", "id": "e", "mtu": 9001, "macAddress": MAC}]}}
            ),
            "spec.networkData.links.ethernets[0].mtu",
            "from 0 to 9000",
        ),
        (
            template_with(networkData={"links": {"vlans": [{"id": "v", "vlanLink": "e", "macAddress": MAC}]}}),
            "spec.networkData.links.vlans[0].vlanID",
            "is missing",
        ),
        (
            template_with(
                networkData={
                    "links": {
                        "bonds": [{"id": "b", "bondMode": "802.3ad", "macAddress": MAC, "parameters": {"mode": 1}}]
                    }
                }
            ),
            "spec.networkData.links.bonds[0].parameters.mode",
            "has a field of its own",
        ),
        ({**template_with(), "kind": "Metal3Data"}, "kind", "must be a Metal3DataTemplate"),
        ({**template_with(), "apiVersion": "infrastructure.cluster.x-k8s.io/v2"}, "apiVersion", "v1beta1 or v1beta2"),
        (
            {**template_with(), "metadata": {"name": "t", "annotations": {ADDRESSES: "many"}}},
            f"metadata.annotations.{ADDRESSES}",
            "must be one-per-pool or one-per-network",
        ),
    ],
)
def test_a_bad_template_is_refused_with_the_path_of_the_field(written: Document, path: str, reason: str) -> None:
    faults = refused(written)

    assert [each for each, _ in faults] == [path]
    assert reason in faults[0][1]


def test_all_faults_are_said_at_once() -> None:
    written = document()
    written["spec"]["metaData"]["indexes"][0]["offset"] = "far"
    written["spec"]["networkData"]["networks"]["ipv4"][0]["routes"][0]["prefix"] = 64
    del written["spec"]["networkData"]["links"]["vlans"][0]["vlanLink"]

    assert [path for path, _ in refused(written)] == [
        "spec.metaData.indexes[0].offset",
        "spec.networkData.links.vlans[0].vlanLink",
        "spec.networkData.networks.ipv4[0].routes[0].prefix",
    ]


def test_r6_pools_of_one_name_and_different_kinds_are_refused() -> None:
    """One machine has one claim of a name, and it can be for one of the two only."""
    reference = {"name": "p", "apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool"}
    written = template_with(
        metaData={"ipAddressesFromIPPool": [{"key": "a", "name": "p"}]},
        networkData={"networks": {"ipv4": [{"id": "n", "link": "l", "fromPoolRef": reference}]}},
    )

    with pytest.raises(TemplateRefused) as raised:
        NeededAddresses(read_template(written).template, None)
    ((path, reason),) = raised.value.faults
    assert path == "spec.networkData.networks.ipv4[0].fromPoolRef"
    assert "at spec.metaData.ipAddressesFromIPPool[0].name" in reason


def test_r6_claims_of_further_networks_do_not_meet_those_of_other_pools() -> None:
    entries = [{**NETWORK, "ipAddressFromIPPool": name} for name in ("p", "p", "p-2")]
    written = template_with(networkData={"networks": {"ipv4": entries}})
    written["metadata"]["annotations"] = {ADDRESSES: PER_NETWORK}

    with pytest.raises(TemplateRefused, match=r"ipv4\[1\]: its claim would have the name of that of .*ipv4\[2\]"):
        NeededAddresses(read_template(written).template, facts())


def test_r3_an_annotation_that_is_missing_is_refused_with_its_name() -> None:
    annotation = {"object": "metal3machine", "annotation": "no-pool"}
    written = template_with(
        networkData={"networks": {"ipv4": [{"id": "n", "link": "l", "fromPoolAnnotation": annotation}]}}
    )
    template = read_template(written).template

    assert list(NeededAddresses(template, None)) == []
    with pytest.raises(
        TemplateRefused, match="annotation no-pool is missing or empty on metal3machine blue-md-0-x7k2p"
    ):
        NeededAddresses(template, facts())


def test_r6_the_gateway_that_is_written_needs_no_pool() -> None:
    """CAPM3 claims an address also from a pool whose gateway is then not used."""
    gateway = {"string": "10.0.0.1", "fromIPPool": "other"}
    route = {"network": EVERYWHERE, "gateway": gateway}
    template = read_template(network_data(ipv4=[{**NETWORK, "routes": [route]}])).template

    assert [each.suffix for each in NeededAddresses(template, facts())] == ["p"]
