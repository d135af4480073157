"""What is rendered: the published rules by number (KD16), the worked example, and the design's own template."""

from typing import Any

import pytest
import yaml

from tenure.integrations.kubernetes.metal3_data.template.data_yaml import data_yaml
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.read_template import ADDRESSES as HOW_MANY
from tenure.integrations.kubernetes.metal3_data.template.read_template import PER_NETWORK, read_template
from tenure.integrations.kubernetes.metal3_data.template.render_data import RenderRules
from tenure.integrations.kubernetes.metal3_data.template.template_fields import TemplateRefused
from tests.integrations.kubernetes.metal3_data.worked_example import (
    ADDRESSES,
    META_DATA,
    NETWORK_DATA,
    SEED_ADDRESSES,
    SEED_META_DATA,
    SEED_NETWORK_DATA,
    SEED_TEMPLATE,
    Document,
    document,
    facts,
    rendered,
    template_with,
)

EVERYWHERE = "0.0.0.0"  # noqa: S104 - a route, nothing listens on it
MAC = {"string": "0c:42:a1:5e:10:02"}
ROUTE4, ROUTE6 = {"network": "10.9.0.0", "prefix": 16}, {"network": "fd00::", "prefix": 8}
REFERENCE = {"apiGroup": "ipam.metal3.io", "kind": "IPPool"}


def metadata_of(**lists: Any) -> dict[str, str]:
    found = rendered(template_with(metaData=lists)).meta_data
    assert found is not None
    return {key: value for key, value in found.items() if key != "providerid"}


def networks_of(**networks: Any) -> list[Document]:
    found = rendered(template_with(networkData={"networks": networks})).network_data
    assert found is not None
    rendered_: list[Document] = found["networks"]
    return rendered_


def routes_of(*routes: Document) -> list[Document]:
    (network,) = networks_of(ipv4=[{"id": "n", "link": "l", "ipAddressFromIPPool": "bm-v4", "routes": list(routes)}])
    found: list[Document] = network["routes"]
    return found


def test_the_worked_example_is_rendered_as_it_is_published() -> None:
    """Whatever CAPM3 renders; with its forgotten key left out, as it does."""
    found = rendered(document(), rules=RenderRules(dns_in_meta_data=False))

    assert found.meta_data == META_DATA
    assert found.network_data == NETWORK_DATA


def test_r2_dns_servers_are_rendered_into_metadata_where_capm3_forgets_them() -> None:
    found = rendered(document())

    assert found.meta_data == {**META_DATA, "dns4": "10.40.0.53,10.41.0.53"}
    assert found.network_data == NETWORK_DATA


def test_ks9_the_design_s_own_template_is_rendered_as_printed() -> None:
    machine = facts(namespace="default", index=0)
    objects = {
        sort: type(each)(name)
        for (sort, each), name in zip(machine.objects.items(), ("machine-1", "machine-1", "host-1"), strict=True)
    }
    found = rendered(document(SEED_TEMPLATE), facts(namespace="default", index=0, objects=objects), SEED_ADDRESSES)

    assert found.meta_data == SEED_META_DATA
    assert found.network_data == SEED_NETWORK_DATA


def test_ks9_what_was_translated_is_said() -> None:
    translated = read_template(document(SEED_TEMPLATE)).translated

    assert "apiVersion infrastructure.cluster.x-k8s.io/v1alpha4 is read as v1beta1" in translated
    assert "spec.metaData.ipAddressesFromIPPool[0].Name is read as name" in translated
    assert "spec.metaData.gatewaysFromIPPool[0].Key is read as key" in translated
    first = "spec.networkData.networks.ipv4[0]"
    assert f"{first}.ipAddressfromIPPool is read as ipAddressFromIPPool" in translated
    assert f"{first}.routes[0].services is read as a map with dns" in translated
    assert not read_template(document()).translated


@pytest.mark.parametrize("end", ["FromIPPool", "FromPool"])
def test_r1_both_versions_spell_the_lists_of_pools_in_their_way(end: str) -> None:
    item = {"name": "bm-v4", **REFERENCE}
    lists = {
        f"ipAddresses{end}": [{"key": "a", **item}],
        f"prefixes{end}": [{"key": "p", **item}],
        f"gateways{end}": [{"key": "g", "name": "bm-v4"}],
        f"dnsServers{end}": [{"key": "d", **item}],
    }

    assert metadata_of(**lists) == {"a": "10.40.8.20", "p": "22", "g": "10.40.8.1", "d": "10.40.0.53,10.41.0.53"}


def test_r3_an_address_comes_from_an_annotation_else_a_reference_else_a_name() -> None:
    annotation = {"object": "baremetalhost", "annotation": "pool"}  # bm-v6
    sources: Document = {
        "ipAddressFromIPPool": "bm-v4",
        "fromPoolRef": {"name": "other", **REFERENCE},
        "fromPoolAnnotation": {"object": "machine", "annotation": "pool"},
    }
    both = networks_of(
        ipv4=[{"id": "a", "link": "l", **sources}, {"id": "b", "link": "l", "ipAddressFromIPPool": "bm-v4"}],
        ipv6=[
            {"id": "c", "link": "l", "ipAddressFromIPPool": "", "fromPoolAnnotation": annotation},
            {"id": "d", "link": "l", "ipAddressFromIPPool": "bm-v4", "fromPoolRef": {"name": "bm-v6", **REFERENCE}},
        ],
    )

    assert [each["ip_address"] for each in both] == ["10.40.8.20", "10.40.8.20", "fd20:7:8::100", "fd20:7:8::100"]


def test_r3_networks_without_a_fixed_address_have_id_link_and_routes_only() -> None:
    entry = {"id": "n", "link": "l"}
    found = networks_of(
        ipv6SLAAC=[entry],
        ipv6DHCP=[entry],
        ipv4DHCP=[{**entry, "routes": [{**ROUTE4, "gateway": {"string": "10.0.0.1"}}]}],
    )

    assert [each["type"] for each in found] == ["ipv4_dhcp", "ipv6_dhcp", "ipv6_slaac"]
    assert found[1] == {"type": "ipv6_dhcp", "id": "n", "link": "l", "routes": []}
    assert found[0]["routes"] == [
        {"network": "10.9.0.0", "netmask": "255.255.0.0", "gateway": "10.0.0.1", "services": []}
    ]


def test_r4_a_written_gateway_wins_and_the_prefix_is_0_by_default() -> None:
    gateways: list[Document] = [
        {"string": "10.40.8.7", "fromIPPool": "bm-v4"},
        {"fromPoolRef": {"name": "bm-v4", **REFERENCE}},
        {"fromPoolAnnotation": {"object": "machine", "annotation": "pool"}},
        {"fromIPPool": "bm-v4"},
        {},
    ]
    found = routes_of(*({"network": EVERYWHERE, "gateway": each} for each in gateways))

    assert [each["gateway"] for each in found] == ["10.40.8.7", "10.40.8.1", "10.40.8.1", "10.40.8.1", ""]
    assert {each["netmask"] for each in found} == {EVERYWHERE}


def test_r5_written_dns_servers_come_before_those_of_the_pool() -> None:
    services = {"dns": ["1.1.1.1"], "dnsFromIPPool": "bm-v4"}
    (route,) = routes_of({**ROUTE4, "gateway": {}, "services": services})
    found = rendered(template_with(networkData={"services": {"dns": ["fd00::1", "1.1.1.1"], "dnsFromIPPool": "bm-v6"}}))

    assert [each["address"] for each in route["services"]] == ["1.1.1.1", "10.40.0.53", "10.41.0.53"]
    assert found.network_data is not None
    assert [each["address"] for each in found.network_data["services"]] == ["fd00::1", "1.1.1.1", "fd20:7::53"]


def test_r6_two_keys_and_two_networks_on_one_pool_have_one_address() -> None:
    entry = {"link": "l", "ipAddressFromIPPool": "bm-v4"}
    found = networks_of(ipv4=[{"id": "a", **entry}, {"id": "b", **entry}])
    values = metadata_of(ipAddressesFromIPPool=[{"key": "a", "name": "bm-v4"}, {"key": "b", "name": "bm-v4"}])

    assert {each["ip_address"] for each in found} == set(values.values()) == {"10.40.8.20"}


def test_r6_by_option_each_network_has_an_address_of_its_own_with_its_own_gateway() -> None:
    """Section 6, 3: one address for each card, asked for since 2021."""
    route = {**ROUTE4, "gateway": {"fromIPPool": "bm-v4"}, "services": {"dnsFromIPPool": "bm-v4"}}
    entry = {"link": "l", "ipAddressFromIPPool": "bm-v4", "routes": [route]}
    written = template_with(
        metaData={"ipAddressesFromIPPool": [{"key": "a", "name": "bm-v4"}]},
        networkData={"networks": {"ipv4": [{"id": "a", **entry}, {"id": "b", **entry}]}},
    )
    written["metadata"]["annotations"] = {HOW_MANY: PER_NETWORK}
    second = PoolAddress("10.50.0.9", 24, "10.50.0.1", ("10.50.0.53",))
    found = rendered(written, addresses={**ADDRESSES, "bm-v4-2": second})

    assert found.network_data is not None
    assert found.meta_data is not None
    assert [each["ip_address"] for each in found.network_data["networks"]] == ["10.40.8.20", "10.50.0.9"]
    assert [each["routes"][0]["gateway"] for each in found.network_data["networks"]] == ["10.40.8.1", "10.50.0.1"]
    assert found.network_data["networks"][1]["routes"][0]["services"] == [{"type": "dns", "address": "10.50.0.53"}]
    assert found.meta_data["a"] == "10.40.8.20"


def test_r8_a_part_that_the_template_does_not_have_is_not_rendered() -> None:
    assert rendered(template_with(metaData={})).network_data is None
    assert rendered(template_with(networkData={})).meta_data is None


def test_r9_metadata_is_a_flat_map_of_texts_with_the_machine_s_identity() -> None:
    found = metadata_of(
        strings=[{"key": "s", "value": "text"}, {"key": "e", "value": ""}],
        objectNames=[{"key": f"n-{sort}", "object": sort} for sort in ("machine", "metal3machine", "baremetalhost")],
        indexes=[{"key": "i"}, {"key": "j", "step": 0, "offset": -5, "suffix": "z"}],
        namespaces=[{"key": "ns"}],
        fromHostInterfaces=[{"key": "mac", "interface": "eno1"}],
        fromLabels=[
            {"key": "l", "object": "machine", "label": "rack"},
            {"key": "m", "object": "machine", "label": "x"},
        ],
        fromAnnotations=[{"key": "a", "object": "metal3machine", "annotation": "note"}],
    )

    assert found == {
        "s": "text",
        "e": "",
        "n-machine": "blue-md-0-x7k2p-capi",
        "n-metal3machine": "blue-md-0-x7k2p",
        "n-baremetalhost": "rack3-u12",
        "i": "3",
        "j": "-2z",
        "ns": "metal",
        "mac": "0c:42:a1:5e:10:02",
        "l": "3",
        "m": "",
        "a": "m3",
    }
    assert rendered(template_with(metaData={})).meta_data == {"providerid": "metal/rack3-u12/blue-md-0-x7k2p"}


def test_r9_network_data_has_three_lists_and_links_are_bonds_ethernets_vlans() -> None:
    links = {
        "vlans": [{"id": "v", "vlanID": 7, "vlanLink": "b", "macAddress": {"fromHostInterface": "eno1"}}],
        "ethernets": [
            {
                "type": "phy",
                "id": "e",
                "macAddress": {"fromAnnotation": {"object": "baremetalhost", "annotation": "mac"}},
            }
        ],
        "bonds": [
            {"id": "b", "bondMode": "802.3ad", "bondLinks": ["e"], "macAddress": MAC, "parameters": {"miimon": 100}},
            {
                "id": "c",
                "bondMode": "802.3ad",
                "bondXmitHashPolicy": "layer3+4",
                "mtu": 9000,
                "macAddress": MAC,
                "parameters": [{"name": "lacp_rate", "value": "fast"}],
            },
        ],
    }
    found = rendered(template_with(networkData={"links": links})).network_data

    bond = {"type": "bond", "mtu": 1500, "bond_mode": "802.3ad", "ethernet_mac_address": MAC["string"]}
    assert found == {
        "links": [
            {**bond, "id": "b", "bond_links": ["e"], "bond_xmit_hash_policy": "", "bond_miimon": 100},
            {
                **bond,
                "id": "c",
                "mtu": 9000,
                "bond_links": [],
                "bond_xmit_hash_policy": "layer3+4",
                "bond_lacp_rate": "fast",
            },
            {"type": "phy", "id": "e", "mtu": 1500, "ethernet_mac_address": "0c:42:a1:5e:10:09"},
            {"type": "vlan", "id": "v", "mtu": 1500, "vlan_id": 7, "vlan_link": "b", "vlan_mac_address": MAC["string"]},
        ],
        "networks": [],
        "services": [],
    }


def test_r9_a_link_has_the_name_that_the_machine_is_to_call_it_by() -> None:
    """CAPM3 has the field since v1.13."""
    links = {
        "vlans": [{"id": "v", "name": "vlan7", "vlanID": 7, "vlanLink": "b", "macAddress": MAC}],
        "ethernets": [{"type": "phy", "id": "e", "name": "lan_0", "macAddress": MAC}],
        "bonds": [{"id": "b", "name": "a-card-of-15-ch", "bondMode": "802.3ad", "macAddress": MAC}],
    }
    found = rendered(template_with(networkData={"links": links})).network_data

    assert found is not None
    assert [each["name"] for each in found["links"]] == ["a-card-of-15-ch", "lan_0", "vlan7"]


@pytest.mark.parametrize(
    ("address", "prefix", "netmask"),
    [
        ("10.0.0.9", 0, EVERYWHERE),
        ("10.0.0.9", 32, "255.255.255.255"),
        ("fd00::9", 0, "::"),
        ("fd00::9", 64, "ffff:ffff:ffff:ffff::"),
    ],
)
def test_r9_netmasks_are_written_as_addresses(address: str, prefix: int, netmask: str) -> None:
    family = "ipv6" if ":" in address else "ipv4"
    written = template_with(networkData={"networks": {family: [{"id": "n", "link": "l", "ipAddressFromIPPool": "p"}]}})
    found = rendered(written, addresses={"p": PoolAddress(address, prefix)})

    assert found.network_data is not None
    assert found.network_data["networks"][0]["netmask"] == netmask


@pytest.mark.parametrize(
    "text",
    [
        "52:54:00:12:34:56",
        "1e3",
        "12e4",
        "0x1F",
        "0o17",
        "22",
        "-1",
        ".5",
        "1_000",
        "y",
        "No",
        "on",
        "null",
        "~",
        "",
        " ",
        "2020-04-02",
        "a: b",
        "a #b",
        "fd20:7:8::",
        "é",
        "10.40.8.1",
        "true",
        "- x",
        "{",
        "'",
        '"',
        "\n",
        "=",
        "<<",
        "!x",
        "&a",
    ],
)
def test_r10_every_text_comes_back_as_the_text_that_it_was(text: str) -> None:
    """Also with YAML 1.1, for which a MAC address of digits is a number to the base of sixty."""
    written = data_yaml({"key": text, "other": [text]})

    assert yaml.safe_load(written) == {"key": text, "other": [text]}
    is_quoted = written.startswith('key: "')
    assert is_quoted or text in ("10.40.8.1", "fd20:7:8::"), written


def test_r9_keys_are_written_in_order() -> None:
    assert data_yaml({"b": "x1", "a": ["y1"]}) == "a:\n- y1\nb: x1\n"


def test_nothing_is_half_rendered_when_a_fact_is_missing() -> None:
    links = {"ethernets": [{"type": "phy", "id": "e", "macAddress": {"fromHostInterface": "eno9"}}]}
    written = template_with(metaData={}, networkData={"links": links})

    def refused(**known: Any) -> str:
        with pytest.raises(TemplateRefused) as refused:
            rendered(written, facts(**known))
        return refused.value.message.removeprefix("spec.networkData.links.ethernets[0].macAddress: BareMetalHost ")

    assert refused(interfaces={"eno1": "", "eno2": ""}) == "'rack3-u12' has no network card 'eno9'; it has eno1, eno2"
    assert refused(interfaces={}) == "'rack3-u12' has no network card 'eno9'; it has none"
    assert refused(interfaces=None) == "'rack3-u12' has no status.hardware.nics: it was not inspected yet"


def test_a_pool_of_the_other_family_is_refused_with_the_path_of_the_network() -> None:
    entry = {"id": "n", "link": "l", "ipAddressFromIPPool": "bm-v6"}

    with pytest.raises(
        TemplateRefused, match=r"^spec\.networkData\.networks\.ipv4\[0\]: fd20:7:8::100 of the pool is of another"
    ):
        networks_of(ipv4=[entry])
    with pytest.raises(
        TemplateRefused, match=r"ipv4DHCP\[0\]\.routes\[0\]\.gateway: fd20:7:8::1 of the pool is of another"
    ):
        networks_of(ipv4DHCP=[{"id": "n", "link": "l", "routes": [{**ROUTE4, "gateway": {"fromIPPool": "bm-v6"}}]}])


def test_a_number_beyond_what_the_api_has_is_refused() -> None:
    with pytest.raises(TemplateRefused, match=r"^spec\.metaData\.indexes\[0\]: machine 3 would have a number beyond"):
        metadata_of(indexes=[{"key": "i", "offset": 2**63 - 1, "step": 1}])
