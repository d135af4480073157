"""A template with every field that is rendered, its machines, and what they get: CAPM3's manager renders the same."""

from typing import Any

from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark
from tests.integrations.kubernetes.metal3_data.worked_example import Document

CARDS = {"eno1": "0c:42:a1:5e:10:02", "eno2": "0c:42:a1:5e:10:03"}
BOOTS_BY = "0c:42:a1:5e:10:ff"
NOTED_MAC = "0C-42-A1-5E-10-0A"
NOTES = {"pool": "noted", "mac": NOTED_MAC}
EVERYWHERE = "0.0.0.0"  # noqa: S104 - a route, nothing listens on it
OBJECTS = ("machine", "metal3machine", "baremetalhost")
OTHER = {"name": "other", "apiGroup": "ipam.metal3.io", "kind": "IPPool"}
ON_MACHINE = {"object": "metal3machine", "annotation": "pool"}


def add_machine(park: MachinePark, number: int) -> str:
    """Create a machine and its host, which have what the template looks at; return its name."""
    park.host(f"rack{number}", cards=CARDS, boots_by=BOOTS_BY, annotations=NOTES, labels={"rack": f"r{number}"})
    park.machine(f"m{number}", f"rack{number}", "whole", notes=NOTES)
    return f"m{number}"


def add_pools(park: MachinePark) -> None:
    """Create the pools that the template names."""
    park.pool("v4", "10.40.8.20-10.40.8.29", prefix=22, gateway="10.40.8.1", dnsServers=["10.40.0.53", "10.41.0.53"])
    park.pool("v6", "fd20:7:8::100-fd20:7:8::1ff", prefix=64, gateway="fd20:7:8::1", dnsServers=["fd20:7::53"])
    park.pool("bare", "10.50.0.1-10.50.0.9", prefix=32)
    park.pool("noted", "10.60.0.1-10.60.0.9", prefix=24, gateway="10.60.0.254")
    park.pool("other", "10.70.0.1-10.70.0.9", prefix=16, gateway="10.70.0.254")


def whole_spec(version: str) -> Document:
    """Return what the template says, in the spelling of a version."""
    services = {"dns": ["1.1.1.1"], "dnsFromIPPool": "v6"}
    network_data = {"links": _links(version), "networks": _networks(), "services": services}
    return {"metaData": _meta_data(version), "networkData": network_data}


def _meta_data(version: str) -> Document:
    pool = {"apiGroup": "ipam.metal3.io", "kind": "IPPool"}
    end = "FromIPPool" if version == "v1beta1" else "FromPool"
    return {
        "strings": [{"key": "text", "value": "some text"}, {"key": "digits", "value": "52:54:00:12:34:56"}],
        "objectNames": [{"key": f"name-{each}", "object": each} for each in OBJECTS],
        "indexes": [{"key": "number"}, {"key": "host", "prefix": "n", "offset": 100, "step": 3, "suffix": ".rack"}],
        "namespaces": [{"key": "space"}],
        f"ipAddresses{end}": [{"key": "ip4", "name": "v4", **pool}, {"key": "ip6", "name": "v6", **pool}],
        f"prefixes{end}": [{"key": "length4", "name": "v4", **pool}, {"key": "length6", "name": "v6", **pool}],
        f"gateways{end}": [{"key": "gateway4", "name": "v4", **pool}, {"key": "none", "name": "bare", **pool}],
        "fromHostInterfaces": [{"key": "card", "interface": "eno1"}, {"key": "boots", "fromBootMAC": True}],
        "fromLabels": [{"key": f"rack-{each}", "object": each, "label": "rack"} for each in OBJECTS],
        "fromAnnotations": [{"key": f"note-{each}", "object": each, "annotation": "pool"} for each in OBJECTS],
    }


def _links(version: str) -> Document:
    parameters = {"miimon": {"every": 100}, "extra": {"words": ["a", "1e3"]}}
    listed = [{"name": name, "value": value} for name, value in parameters.items()]
    bond = {"bondMode": "802.3ad", "parameters": parameters if version == "v1beta1" else listed}
    noted = {"fromAnnotation": {"object": "baremetalhost", "annotation": "mac"}}
    return {
        "vlans": [
            {"id": "vlan810", "name": "v810", "vlanID": 810, "vlanLink": "bond0", "macAddress": noted},
            {"id": "vlan0", "vlanID": 0, "vlanLink": "bond0", "macAddress": {"fromHostInterface": "eno2"}},
        ],
        "ethernets": [
            {"type": "phy", "id": "eno1", "mtu": 9000, "macAddress": {"fromHostInterface": "eno1"}},
            {"type": "vif", "id": "eno2", "name": "second", "macAddress": noted},
        ],
        "bonds": [
            {
                "id": "bond0", "name": "lan", "mtu": 9000, "bondXmitHashPolicy": "layer3+4",
                "bondLinks": ["eno1", "eno2"], "macAddress": {"string": "0c:42:a1:5e:10:02"}, **bond,
            }
        ],
    }  # fmt: skip


def _networks() -> Document:
    services = {"dns": ["9.9.9.9"], "dnsFromIPPool": "v4"}
    to6 = {"network": "fd00::", "prefix": 8, "gateway": {"fromIPPool": "v6"}, "services": {"dnsFromIPPool": "v6"}}
    routes: list[Document] = [
        {"network": EVERYWHERE, "gateway": {"fromIPPool": "v4"}, "services": services},
        {"network": "10.0.0.0", "prefix": 8, "gateway": {"fromPoolRef": OTHER}},
        {"network": "10.1.0.0", "prefix": 16, "gateway": {"fromPoolAnnotation": ON_MACHINE}},
        {"network": "10.2.3.0", "prefix": 24, "gateway": {"string": "10.40.8.7"}},
        {"network": "10.2.4.1", "prefix": 32, "gateway": {"fromIPPool": "bare"}},
    ]
    return {
        "ipv6SLAAC": [{"id": "slaac", "link": "eno1"}],
        "ipv6DHCP": [{"id": "dhcp6", "link": "eno1", "routes": [to6]}],
        "ipv4DHCP": [{"id": "dhcp", "link": "eno1", "routes": routes[:2]}, {"id": "plain", "link": "eno2"}],
        "ipv6": [{"id": "six", "link": "bond0", "ipAddressFromIPPool": "v6", "routes": [{**to6, "prefix": 0}]}],
        "ipv4": [
            {"id": "named", "link": "bond0", "ipAddressFromIPPool": "v4", "routes": routes},
            {"id": "again", "link": "vlan0", "ipAddressFromIPPool": "v4"},
            {"id": "referred", "link": "vlan810", "fromPoolRef": OTHER},
            {"id": "noted", "link": "vlan810", "ipAddressFromIPPool": "v4", "fromPoolAnnotation": ON_MACHINE},
            {"id": "bare", "link": "eno1", "ipAddressFromIPPool": "bare"},
        ],
    }


def whole_meta_data(namespace: str, number: int) -> dict[str, str]:
    """Return the metadata of a machine; they are numbered from 0, in the order in which they got addresses."""
    return {
        "text": "some text", "digits": "52:54:00:12:34:56",
        "name-machine": f"m{number}", "name-metal3machine": f"m{number}", "name-baremetalhost": f"rack{number}",
        "number": str(number), "host": f"n{100 + 3 * number}.rack", "space": namespace,
        "ip4": f"10.40.8.{20 + number}", "ip6": f"fd20:7:8::10{number}", "length4": "22", "length6": "64",
        "gateway4": "10.40.8.1", "none": "", "card": CARDS["eno1"], "boots": BOOTS_BY,
        "rack-machine": "", "rack-metal3machine": "", "rack-baremetalhost": f"r{number}",
        "note-machine": "", "note-metal3machine": "noted", "note-baremetalhost": "noted",
        "providerid": f"{namespace}/rack{number}/m{number}",
    }  # fmt: skip


def whole_network_data(number: int) -> Document:
    """Return the network data of a machine."""
    return {
        "links": [
            {
                "type": "bond", "id": "bond0", "name": "lan", "mtu": 9000, "bond_mode": "802.3ad",
                "bond_xmit_hash_policy": "layer3+4", "bond_links": ["eno1", "eno2"],
                "bond_miimon": {"every": 100}, "bond_extra": {"words": ["a", "1e3"]},
                "ethernet_mac_address": "0c:42:a1:5e:10:02",
            },
            {"type": "phy", "id": "eno1", "mtu": 9000, "ethernet_mac_address": CARDS["eno1"]},
            {"type": "vif", "id": "eno2", "name": "second", "mtu": 1500, "ethernet_mac_address": NOTED_MAC},
            {
                "type": "vlan", "id": "vlan810", "name": "v810", "mtu": 1500, "vlan_id": 810, "vlan_link": "bond0",
                "vlan_mac_address": NOTED_MAC,
            },
            {
                "type": "vlan", "id": "vlan0", "mtu": 1500, "vlan_id": 0, "vlan_link": "bond0",
                "vlan_mac_address": CARDS["eno2"],
            },
        ],
        "networks": _rendered_networks(number),
        "services": _dns("1.1.1.1", "fd20:7::53"),
    }  # fmt: skip


def _rendered_networks(number: int) -> list[Document]:
    routes = [
        _route(EVERYWHERE, EVERYWHERE, "10.40.8.1", "9.9.9.9", "10.40.0.53", "10.41.0.53"),
        _route("10.0.0.0", "255.0.0.0", "10.70.0.254"),
        _route("10.1.0.0", "255.255.0.0", "10.60.0.254"),
        _route("10.2.3.0", "255.255.255.0", "10.40.8.7"),
        _route("10.2.4.1", "255.255.255.255", ""),
    ]
    first, masks = f"10.40.8.{20 + number}", ("255.255.252.0", "255.255.0.0", "255.255.255.0", "255.255.255.255")
    return [
        _network("ipv4", "named", "bond0", first, masks[0], routes),
        _network("ipv4", "again", "vlan0", first, masks[0], []),
        _network("ipv4", "referred", "vlan810", f"10.70.0.{1 + number}", masks[1], []),
        _network("ipv4", "noted", "vlan810", f"10.60.0.{1 + number}", masks[2], []),
        _network("ipv4", "bare", "eno1", f"10.50.0.{1 + number}", masks[3], []),
        _network(
            "ipv6", "six", "bond0", f"fd20:7:8::10{number}", "ffff:ffff:ffff:ffff::",
            [_route("fd00::", "::", "fd20:7:8::1", "fd20:7::53")],
        ),
        {"type": "ipv4_dhcp", "id": "dhcp", "link": "eno1", "routes": routes[:2]},
        {"type": "ipv4_dhcp", "id": "plain", "link": "eno2", "routes": []},
        {
            "type": "ipv6_dhcp", "id": "dhcp6", "link": "eno1",
            "routes": [_route("fd00::", "ff00::", "fd20:7:8::1", "fd20:7::53")],
        },
        {"type": "ipv6_slaac", "id": "slaac", "link": "eno1", "routes": []},
    ]  # fmt: skip


def _network(kind: str, name: str, link: str, address: str, netmask: str, routes: list[Document]) -> Document:
    return {"type": kind, "id": name, "link": link, "ip_address": address, "netmask": netmask, "routes": routes}


def _route(network: str, netmask: str, gateway: str, *servers: str) -> Document:
    return {"network": network, "netmask": netmask, "gateway": gateway, "services": _dns(*servers)}


def _dns(*servers: str) -> list[dict[str, Any]]:
    return [{"type": "dns", "address": server} for server in servers]
