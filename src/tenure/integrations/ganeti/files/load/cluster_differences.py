"""How a file differs from the ledger that an earlier file of the same cluster was brought into, object by object.

Objects are the same if they have one uuid. Each difference says what the file has, and which command brings the ledger
there; ``follow_file`` brings it there in one step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tenure.integrations.ganeti.files.file_model import NETWORKS, NetworkFile
from tenure.integrations.ganeti.files.load.cluster_target import KINDS, ClusterTarget, by_uuid
from tenure.integrations.ganeti.files.load.network_changes import differing
from tenure.integrations.ganeti.machine_model import Instance
from tenure.kernel.plan.plan_model import Connection, Network


@dataclass(frozen=True, slots=True)
class ClusterDifference:
    """One thing that the file says otherwise than the ledger, and the command that follows it."""

    kind: str
    name: str
    reason: str
    command: str = ""

    @property
    def text(self) -> str:
        """Say what differs, without the command."""
        return f"{self.kind} {self.name}: {self.reason}"

    def __str__(self) -> str:
        return self.text + (f"; `{self.command}`" if self.command else "")


def differences(target: ClusterTarget, half: frozenset[str] = frozenset()) -> list[ClusterDifference]:
    """List what of the ledger is otherwise in a settled file, or not there, in an order in which to follow it.

    What is new in the file is no difference: an import makes it, and goes on with networks that are ``half`` made. Nor
    are addresses in use: they follow from NICs.
    """
    networks = [network for network in target.snapshot.networks.values() if network.name not in half]
    known = [(network, target.networks[network.uuid]) for network in networks if network.uuid in target.networks]
    return [
        *(
            each
            for group in target.ledger.groups
            for each in _renamed("group", group.name, target.group_names[group.name])
        ),
        *_nodes(target),
        *(each for network, wanted in known for each in _network(network, wanted)),
        *(each for network, wanted in known for each in _lines(target, network, wanted)),
        *_instances(target),
        *_master(target),
        *_going(target),
    ]


def _renamed(kind: str, name: str, new: str) -> Iterator[ClusterDifference]:
    if name != new:
        yield ClusterDifference(kind, name, f"is called {new} in the file", f"tenure {kind} rename {name} {new}")


def _nodes(target: ClusterTarget) -> Iterator[ClusterDifference]:
    wanted = by_uuid(target.file.nodes)
    for old in target.ledger.nodes:
        if (new := wanted.get(old.uuid)) is None:
            continue
        said = {
            "--primary-ip": (old.primary_ip, new.primary_ip),
            "--secondary-ip": (old.secondary_ip, new.secondary_ip),
            # A group that only gets another name is the same group to its nodes.
            "--group": (target.group_names.get(old.group, old.group), new.group),
        }
        flags = [f"{flag} {after or 'none'}" for flag, (before, after) in said.items() if before != after]
        if flags:
            command = f"tenure node modify {old.name} {' '.join(flags)}"
            yield ClusterDifference("node", old.name, "its addresses or group differ", command)
        yield from _renamed("node", old.name, new.name)


def _network(network: Network, wanted: NetworkFile) -> Iterator[ClusterDifference]:
    if what := differing(network, wanted):
        reason = f"its {', '.join(what)} differ"
        yield ClusterDifference("network", network.name, reason, f"tenure network modify … {network.name}")
    yield from _renamed("network", network.name, wanted.name)


def _lines(target: ClusterTarget, network: Network, wanted: NetworkFile) -> Iterator[ClusterDifference]:
    """Compare how groups are reached that the ledger has: a new group is connected when it is made."""
    now = {target.group_names.get(line.group, line.group): line for line in network.connections}
    then = {line.group: line for line in target.lines(network)}
    known = set(target.group_names.values())
    for group, line in then.items():
        old, name = now.get(group), wanted.name
        if group in known and (old is None or _wire(old) != _wire(line)):
            command = f"tenure network connect {name} {group} -N {_option(line)}"
            yield ClusterDifference(
                "network",
                network.name,
                f"reaches group {group} by {_shown_wire(line)} in the file",
                command if old is None else f"{command} --replace",
            )
    for group in now:
        if group not in then:
            command = f"tenure network disconnect {wanted.name} {group}"
            yield ClusterDifference("network", network.name, f"does not reach group {group} in the file", command)


def _wire(line: Connection) -> tuple[str, str, str]:
    return line.mode, line.link, line.vlan


def _option(line: Connection) -> str:
    said = {"mode": line.mode, "link": line.link, "vlan": line.vlan}
    return ",".join(f"{word}={value}" for word, value in said.items() if value)


def _shown_wire(line: Connection) -> str:
    return " ".join(word for word in _wire(line) if word)


def _instances(target: ClusterTarget) -> Iterator[ClusterDifference]:
    wanted = by_uuid(target.file.instances)
    for old in target.ledger.instances:
        if (new := wanted.get(old.uuid)) is None:
            continue
        home = target.node_of(old.node)
        moved = home is None or home.name != new.node
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


def _master(target: ClusterTarget) -> Iterator[ClusterDifference]:
    """Compare the master's address, if both say one: a file without one says nothing of it."""
    known, wanted = target.snapshot.master.ip, target.file.master_ip
    if known is not None and wanted not in (None, known):
        command = f"tenure cluster modify --master-ip {wanted}"
        yield ClusterDifference("cluster", "master", f"answers at {wanted} in the file, not at {known}", command)


def _going(target: ClusterTarget) -> Iterator[ClusterDifference]:
    """Name what goes: instances before the nodes that they are on, and those before their groups."""
    for section, names in target.going.items():
        for name in names:
            kind = KINDS[section]
            command = f"tenure {kind} remove {name}"
            if any(each.name == name and each.connections for each in target.ledger.networks if section == NETWORKS):
                command = f"tenure network disconnect {name} && {command}"
            yield ClusterDifference(kind, name, "is no longer in the file", command)
