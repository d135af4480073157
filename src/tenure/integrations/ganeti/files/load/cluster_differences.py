"""How a file differs from the ledger that an earlier file of the same cluster was brought into, object by object.

Objects are the same if they have one uuid. Each difference says what the file has, and which command brings the ledger
there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tenure.integrations.ganeti.files.file_model import GROUPS, INSTANCES, NETWORKS, NODES, ClusterConfiguration
from tenure.integrations.ganeti.files.unknown_fields_papers import Plain, plain_objects
from tenure.integrations.ganeti.machine_model import Group, Instance, Node

T = TypeVar("T", Group, Node, Instance)


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """One thing that the file says otherwise than the ledger, and the command that follows it, if there is one."""

    kind: str
    name: str
    reason: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.reason}" + (f"; `{self.command}`" if self.command else "")


def differences(file: ClusterConfiguration, ledger: ClusterConfiguration) -> list[ClusterDifference]:
    """List what of the ledger is otherwise in a settled file, or not there, in an order in which to follow it.

    What is new in the file is no difference: an import makes it. Nor are addresses in use: they follow from NICs.
    """
    ours = {(each.section, each.uuid): each for each in plain_objects(ledger)}
    theirs = {(each.section, each.uuid): each for each in plain_objects(file)}
    changed = [key for key, plain in theirs.items() if key in ours and plain.digest != ours[key].digest]
    readers: dict[str, Callable[[str], list[ClusterDifference]]] = {
        GROUPS: lambda uuid: list(_group(_by_uuid(file.groups)[uuid], _by_uuid(ledger.groups)[uuid])),
        NODES: lambda uuid: list(_node(uuid, file, ledger)),
        NETWORKS: lambda uuid: list(_network(theirs[NETWORKS, uuid], ours[NETWORKS, uuid])),
        INSTANCES: lambda uuid: list(_instance(uuid, file, ledger)),
    }
    going = [plain for key, plain in ours.items() if key not in theirs]
    found = [difference for section, uuid in changed for difference in readers[section](uuid)]
    # Instances go before the nodes that they are on, and those before their groups.
    return [*found, *(_going(plain) for plain in reversed(going))]


_KINDS = {GROUPS: "group", NODES: "node", NETWORKS: "network", INSTANCES: "instance"}


def _by_uuid(objects: tuple[T, ...]) -> dict[str, T]:
    return {each.uuid: each for each in objects}


def _going(plain: Plain) -> ClusterDifference:
    kind = _KINDS[plain.section]
    return ClusterDifference(kind, plain.name, "is no longer in the file", f"tenure {kind} remove {plain.name}")


def _renamed(kind: str, name: str, new: str) -> Iterator[ClusterDifference]:
    if name != new:
        yield ClusterDifference(kind, name, f"is called {new} in the file", f"tenure {kind} rename {name} {new}")


def _group(new: Group, old: Group) -> Iterator[ClusterDifference]:
    yield from _renamed("group", old.name, new.name)
    if old.name == new.name:
        yield ClusterDifference("group", old.name, "the networks that reach it, or how, differ")


def _node(uuid: str, file: ClusterConfiguration, ledger: ClusterConfiguration) -> Iterator[ClusterDifference]:
    new, old = _by_uuid(file.nodes)[uuid], _by_uuid(ledger.nodes)[uuid]
    names = {group.uuid: group.name for group in file.groups}
    # A group that only gets another name is the same group to its nodes.
    home = {group.name: names.get(group.uuid, group.name) for group in ledger.groups}
    said = {
        "--primary-ip": (old.primary_ip, new.primary_ip),
        "--secondary-ip": (old.secondary_ip, new.secondary_ip),
        "--group": (home.get(old.group, old.group), new.group),
    }
    flags = [f"{flag} {after or 'none'}" for flag, (before, after) in said.items() if before != after]
    if flags:
        command = f"tenure node modify {old.name} {' '.join(flags)}"
        yield ClusterDifference("node", old.name, "its addresses or group differ", command)
    yield from _renamed("node", old.name, new.name)


def _network(new: Plain, old: Plain) -> Iterator[ClusterDifference]:
    yield from _renamed("network", old.name, new.name)
    if old.name == new.name:
        said = "its subnets, pools, reserved addresses, tags or MAC prefix differ"
        yield ClusterDifference("network", old.name, said, f"tenure network modify … {old.name}")


def _instance(uuid: str, file: ClusterConfiguration, ledger: ClusterConfiguration) -> Iterator[ClusterDifference]:
    new, old = _by_uuid(file.instances)[uuid], _by_uuid(ledger.instances)[uuid]
    names = {node.uuid: node.name for node in file.nodes}
    home = {node.name: names.get(node.uuid, node.name) for node in ledger.nodes}
    moved = home.get(old.node, old.node) != new.node
    if moved:
        command = f"tenure instance move {old.name} --node {new.node}"
        yield ClusterDifference("instance", old.name, f"is on node {new.node} in the file", command)
    # The wires of a NIC follow from a move; without one they are a difference of their own.
    if _nics(old, wires=not moved) != _nics(new, wires=not moved):
        command = f"tenure instance modify --net … {old.name}"
        yield ClusterDifference("instance", old.name, f"its NICs differ: {_shown(new)} in the file", command)
    yield from _renamed("instance", old.name, new.name)


def _nics(instance: Instance, *, wires: bool) -> list[tuple[object, ...]]:
    return [
        (nic.uuid, nic.mac, nic.name, nic.network, *nic.addresses, *((nic.mode, nic.link, nic.vlan) if wires else ()))
        for nic in instance.nics
    ]


def _shown(instance: Instance) -> str:
    return "; ".join(f"{nic.mac} {', '.join(nic.addresses) or 'no address'}" for nic in instance.nics) or "none"
