"""Instances of a Ganeti file and their NICs: one IP in text, or a list of IPs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tenure.integrations.ganeti.files.file_model import INSTANCES, NetworkFile, made_uuid
from tenure.integrations.ganeti.files.json_parts import Part, read_uuid, text
from tenure.integrations.ganeti.machine_model import Instance, Nic, NicIp, Node
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name, check_text, shown
from tenure.kernel.plan.plan_model import Connection

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
MARKED = 8
"""How many characters of a NIC's uuid its slots and its mark in the index have."""

Wire = tuple[str, str, str]


@dataclass(slots=True)
class InstanceReferences:
    """What instances refer to: networks by uuid, nodes by uuid and name, and the wire of NICs that do not say it."""

    networks: Mapping[str, NetworkFile]
    nodes: Mapping[str, Node]
    wire: Wire
    lists: bool = False
    """Whether a NIC was met whose IPs are a list."""


def read_instance(part: Part, uuid: str, name: str, known: InstanceReferences) -> Instance:
    """Read an instance."""
    ident = part.needed("primary_node", text)
    node = None if ident is None else known.nodes.get(ident)
    if ident is not None and node is None:
        part.faults.add(part.at("primary_node"), f"no node {ident[:80]}")
    group = "" if node is None else node.group
    # A NIC without a uuid gets one of its place, so that it is the same NIC whenever the file is read.
    nics = tuple(
        nic
        for index, each in enumerate(part.members("nics"))
        if (nic := _nic(each, made_uuid(uuid, str(index)), group, known)) is not None
    )
    _check_marks(part, nics)
    serial = part.document.get("serial_no")
    # To Python, JSON's true is a number.
    counted = serial if isinstance(serial, int) and not isinstance(serial, bool) and serial > 0 else 1
    return Instance(name, uuid, "" if node is None else node.name, group, nics, counted)


def _check_marks(part: Part, nics: Iterable[Nic]) -> None:
    seen: set[str] = set()
    for nic in nics:
        if nic.uuid[:MARKED] in seen:
            part.faults.add(part.at("nics"), f"two NICs whose uuids begin with {nic.uuid[:MARKED]}")
        seen.add(nic.uuid[:MARKED])


def _nic(part: Part, made: str, group: str, known: InstanceReferences) -> Nic | None:
    mac = part.needed("mac", _mac)
    uuid = part.read("uuid", read_uuid, made)
    ident = part.read("network", text, None)
    network = None if ident is None else known.networks.get(ident)
    if ident is not None and network is None:
        part.faults.add(part.at("network"), f"no network {ident[:80]}")
    mode, link, vlan = _wire(part, None if network is None else _line(network, group), known.wire)
    known.lists = known.lists or isinstance(part.document.get("ip"), list)
    addresses: list[str] = part.read("ip", read_ips, [])
    for address in addresses if network is not None else []:
        if network is not None and network.subnet_at(parse_address(address)) is None:
            part.faults.add(part.at("ip"), f"{address} lies in no subnet of network {network.name}")
    if mac is None:
        return None
    name = part.read("name", lambda value, field: check_text(value, field=field) or None, None)
    slots = [f"{uuid[:MARKED]}/{n}" if network is not None else "" for n in range(len(addresses))]
    ips = tuple(NicIp(slot, address) for slot, address in zip(slots, addresses, strict=True))
    return Nic(uuid, mac, name, None if network is None else network.uuid, mode, link, vlan, ips)


def read_ips(value: Any, field: str) -> list[str]:
    """Read a NIC's addresses: one in text, or a list (Q13); written the one way."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise Invalid(f"{field}: an address or a list of addresses is needed, not {shown(value)}", field=field)
    return [format_address(parse_address(each, field=field)) for each in value]


def _mac(value: object, field: str) -> str:
    if not isinstance(value, str) or not _MAC.fullmatch(value.lower()):
        raise Invalid(f"{field}: {shown(value)} is not a MAC address", field=field)
    return value.lower()


def _line(network: NetworkFile, group: str) -> Connection | None:
    return next((line for line in network.connections if line.group == group), None)


def _wire(part: Part, line: Connection | None, usual: Wire) -> Wire:
    """Read mode, link and vlan; what a NIC does not say is its network's, or else the cluster's."""
    said = part.part("nicparams")
    mode, link, vlan = usual if line is None else (line.mode, line.link, line.vlan)
    return (
        said.read("mode", lambda value, field: check_name(value, field=field), mode),
        said.read("link", lambda value, field: check_text(value, field=field), link),
        said.read("vlan", lambda value, field: check_text(value, field=field), vlan),
    )


def used_once(whole: Part, instances: Iterable[Instance], keys: Mapping[tuple[str, str], str]) -> None:
    """Note addresses that two NICs of one network have (U30), and MACs that two NICs have."""
    seen: dict[tuple[str, str], str] = {}
    for instance in instances:
        place = f"{INSTANCES}[{keys[INSTANCES, instance.uuid][:80]}]"
        for index, nic in enumerate(instance.nics):
            things = [("mac", nic.mac, "")]
            if nic.network is not None:
                things += [("ip", address, nic.network) for address in nic.addresses]
            for field, thing, where in things:
                if (thing, where) in seen:
                    other = seen[thing, where]
                    whole.faults.add(f"{place}.nics[{index}].{field}", f"{thing} is used by instance {other} as well")
                seen.setdefault((thing, where), instance.name)
