"""A Ganeti configuration read: the whole document, with every fault at once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tenure.integrations.ganeti.files.file_model import (
    GROUPS,
    INSTANCES,
    NETWORKS,
    NODES,
    REVISED,
    SECTIONS,
    TODAY,
    ClusterConfiguration,
    NetworkFile,
    made_uuid,
)
from tenure.integrations.ganeti.files.json_parts import (
    FileFaults,
    Part,
    parse_document,
    read_uuid,
    read_word,
    text,
)
from tenure.integrations.ganeti.files.read.file_instances import InstanceReferences, Wire, read_instance, used_once
from tenure.integrations.ganeti.files.read.file_networks import check_gateways, read_network
from tenure.integrations.ganeti.machine_model import (
    DEFAULT_LINK,
    DEFAULT_MODE,
    GROUP,
    INSTANCE,
    NODE,
    UUID,
    Group,
    Node,
)
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.names import check_name, check_text, shown
from tenure.kernel.plan.plan_model import Connection

T = TypeVar("T")

_WORDS = {GROUPS: GROUP, NODES: NODE, INSTANCES: INSTANCE}

_SHARING = {INSTANCES: (INSTANCES, NODES)}
"""Which sections have no uuid in common: the ledger tells a node and an instance by it."""


def read_file(data: bytes) -> ClusterConfiguration:
    """Read a configuration from the bytes of its file."""
    return read_cluster(parse_document(data))


def read_cluster(document: object) -> ClusterConfiguration:
    """Read a configuration; Invalid names every fault with its place."""
    cluster, faults = examine(document)
    faults.check()
    return cluster


def examine(document: object) -> tuple[ClusterConfiguration, FileFaults]:
    """Read a configuration as far as it can be read."""
    faults = FileFaults()
    if not isinstance(document, dict):
        faults.add("file", f"an object is needed, not {shown(document)}")
        return ClusterConfiguration(TODAY), faults
    whole = Part(document, "", faults)
    _check_kind(whole)
    keys: dict[tuple[str, str], str] = {}
    # Each section is read when those are known that it refers to: groups name networks, nodes groups, instances both.
    networks = _section(whole, NETWORKS, keys, _network)
    homes = _section(whole, GROUPS, keys, lambda part, uuid, name: (Group(name, uuid), part))
    groups = [group for group, _ in homes]
    lines = _connections(homes, {network.uuid: network for network in networks})
    networks = [replace(network, connections=tuple(lines.get(network.uuid, ()))) for network in networks]
    nodes = _section(whole, NODES, keys, lambda part, uuid, name: _node(part, uuid, name, _by_ident(groups)))
    known = InstanceReferences({network.uuid: network for network in networks}, _by_ident(nodes), _default_wire(whole))
    instances = _section(whole, INSTANCES, keys, lambda part, uuid, name: read_instance(part, uuid, name, known))
    used_once(whole, instances, keys)
    form = TODAY if not known.lists and all(network.form == TODAY for network in networks) else REVISED
    master_ip = whole.part("cluster").read("master_ip", _address, None)
    return ClusterConfiguration(
        form, tuple(networks), tuple(groups), tuple(nodes), tuple(instances), document, keys, master_ip
    ), faults


def _check_kind(whole: Part) -> None:
    """Refuse what is JSON and something else than a configuration: nothing in it would be found."""
    if not any(section in whole.document for section in SECTIONS):
        whole.faults.add("file", f"no Ganeti configuration: it has none of {', '.join(SECTIONS)}")


def _section(
    whole: Part, section: str, keys: dict[tuple[str, str], str], read: Callable[[Part, str, str], T]
) -> list[T]:
    """Read the objects of a section, each named and with a uuid; keyed by uuid, or by name in older files."""
    found: list[T] = []
    names: set[str] = set()
    for key, part in whole.named(section):
        name = part.needed("name", lambda value, field: _object_name(section, value, field))
        if name is None:
            continue
        uuid = _uuid(part, section, key, name)
        # A fault is noted and the object is read on: all faults of a file are reported at once.
        if key not in (uuid, name):
            part.faults.add(part.at("uuid"), f"is {uuid}, the key is {key[:80]}")
        if name in names:
            part.faults.add(part.at("name"), f"{name!r} stands twice")
        if any((each, uuid) in keys for each in _SHARING.get(section, (section,))):
            part.faults.add(part.at("uuid"), f"{uuid} stands twice")
        names.add(name)
        keys[section, uuid] = key
        found.append(read(part, uuid, name))
    return found


def _network(part: Part, uuid: str, name: str) -> NetworkFile:
    network = read_network(part, uuid, name)
    check_gateways(part, network)
    return network


def _uuid(part: Part, section: str, key: str, name: str) -> str:
    """Read the uuid of an object; where it has none its key stands for it, unless that is the name."""
    if part.has(UUID) or key == name:
        return part.read(UUID, read_uuid, made_uuid(section, name))
    return part.faults.tried(part.at(UUID), lambda: read_uuid(key, part.at(UUID)), made_uuid(section, key))


def _object_name(section: str, value: object, field: str) -> str:
    return check_name(value, field=field) if section == NETWORKS else read_word(value, _WORDS[section], field)


def _by_ident(objects: Iterable[Any]) -> Mapping[str, Any]:
    """Let objects be found by uuid and, as older files do, by name."""
    every = list(objects)
    # In this order, a uuid wins over a name that is spelled like it.
    return {**{each.name: each for each in every}, **{each.uuid: each for each in every}}


def _connections(
    homes: Iterable[tuple[Group, Part]], networks: Mapping[str, NetworkFile]
) -> dict[str, list[Connection]]:
    """Read which network reaches which group, and how."""
    found: dict[str, list[Connection]] = {}
    for group, part in homes:
        for ident, wire in part.named("networks"):
            network = networks.get(ident)
            if network is None:
                part.faults.add(wire.place, f"no network {ident[:80]}")
                continue
            lines = found.setdefault(network.uuid, [])
            if any(line.group == group.name for line in lines):
                part.faults.add(wire.place, f"network {network.name} stands twice")
            lines.append(_connection(wire, group.name))
    return found


def _connection(wire: Part, group: str) -> Connection:
    mode = wire.read("mode", lambda value, field: check_name(value, field=field), DEFAULT_MODE)
    link = wire.read("link", lambda value, field: check_text(value, field=field), DEFAULT_LINK)
    return Connection(group, mode, link, wire.read("vlan", lambda value, field: check_text(value, field=field), ""))


def _node(part: Part, uuid: str, name: str, groups: Mapping[str, Group]) -> Node:
    ident = part.needed("group", text)
    group = None if ident is None else groups.get(ident)
    if ident is not None and group is None:
        part.faults.add(part.at("group"), f"no node group {ident[:80]}")
    home = "" if group is None else group.name
    return Node(name, home, uuid, part.read("primary_ip", _address, None), part.read("secondary_ip", _address, None))


def _address(value: Any, field: str) -> str:
    return format_address(parse_address(value, field=field))


def _default_wire(whole: Part) -> Wire:
    """Find how NICs are connected that say nothing of it."""
    default = whole.part("cluster").part("nicparams").part("default").document
    said = [default.get(key) for key in ("mode", "link", "vlan")]
    mode, link, vlan = (word if isinstance(word, str) else None for word in said)
    return mode or DEFAULT_MODE, link or DEFAULT_LINK, vlan or ""
