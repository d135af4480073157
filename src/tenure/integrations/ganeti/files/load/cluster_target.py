"""The cluster as the ledger will have it when a later file was followed: the file's objects, and the ledger's own.

Objects are the same if they have one uuid. What an earlier file brought in and the later one no longer has is *going*.
What no file brought in (another orchestrator's network, an instance that was added by a command) stays, under its name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from tenure.integrations.ganeti.files.file_model import (
    GROUPS,
    INSTANCES,
    NETWORKS,
    NODES,
    ClusterConfiguration,
    NetworkFile,
)
from tenure.integrations.ganeti.files.ledger_snapshot import Snapshot
from tenure.integrations.ganeti.instance_records import rewired
from tenure.integrations.ganeti.machine_model import Group, Instance, Nic, Node
from tenure.kernel.errors import Conflict
from tenure.kernel.plan.plan_model import Connection, Network

T = TypeVar("T", Group, Node, Instance, NetworkFile, Network)

KINDS = {GROUPS: "group", NODES: "node", NETWORKS: "network", INSTANCES: "instance"}
"""What one object of a section is called."""


def by_uuid(objects: Iterable[T]) -> dict[str, T]:
    """Index objects by uuid."""
    return {each.uuid: each for each in objects}


@dataclass(frozen=True)
class ClusterTarget:
    """A settled file, in which subnets are those of the ledger, beside the ledger that it is to be followed in."""

    file: ClusterConfiguration
    snapshot: Snapshot

    @property
    def ledger(self) -> ClusterConfiguration:
        """Return the cluster as the ledger has it."""
        return self.snapshot.cluster

    def goes(self, section: str, uuid: str) -> bool:
        """Return whether the ledger is to remove an object: a file brought it in, and this one no longer has it."""
        return f"{section}/{uuid}" in self.snapshot.kept and uuid not in self._of_file[section]

    def stays(self, section: str, uuid: str) -> bool:
        """Return whether an object is the ledger's own."""
        return uuid not in self._of_file[section] and not self.goes(section, uuid)

    def loses(self, uuid: str, position: int) -> bool:
        """Return whether a network of the ledger goes, or will have no subnet any more at a position."""
        wanted = self.networks.get(uuid)
        return self.goes(NETWORKS, uuid) if wanted is None else wanted.subnet_at(position) is None

    @cached_property
    def _of_file(self) -> dict[str, set[str]]:
        file = self.file
        sections: dict[str, Sequence[Any]] = {
            GROUPS: file.groups, NODES: file.nodes, NETWORKS: file.networks, INSTANCES: file.instances,
        }  # fmt: skip
        return {section: {each.uuid for each in objects} for section, objects in sections.items()}

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Return the groups that there will be, by uuid."""
        return {**by_uuid(self._own(GROUPS, self.ledger.groups)), **by_uuid(self.file.groups)}

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Return the nodes that there will be, by uuid."""
        own = (replace(node, group=self.group_names[node.group]) for node in self._own(NODES, self.ledger.nodes))
        return {**by_uuid(own), **by_uuid(self.file.nodes)}

    @cached_property
    def instances(self) -> dict[str, Instance]:
        """Return the instances that there will be, by uuid; their slots are those of the file."""
        own = (self._follower(each) for each in self._own(INSTANCES, self.ledger.instances))
        return {**by_uuid(own), **by_uuid(self.file.instances)}

    @cached_property
    def networks(self) -> dict[str, NetworkFile]:
        """Return the networks of the file, by uuid."""
        return by_uuid(self.file.networks)

    @cached_property
    def group_names(self) -> dict[str, str]:
        """Return what the ledger's groups will be called, by what they are; those that go keep their name."""
        return {group.name: self.groups.get(group.uuid, group).name for group in self.ledger.groups}

    def node_of(self, name: str) -> Node | None:
        """Return a node of the ledger as it will be; None if it goes."""
        return self.nodes.get(self._node_uuids[name]) if name in self._node_uuids else None

    @cached_property
    def _node_uuids(self) -> dict[str, str]:
        return {node.name: node.uuid for node in self.ledger.nodes}

    @cached_property
    def owners(self) -> dict[str, str]:
        """Return the owners of the ledger's instances, by uuid."""
        return {instance.uuid: instance.owner for instance in self.ledger.instances}

    def _own(self, section: str, objects: Iterable[T]) -> Iterator[T]:
        return (each for each in objects if self.stays(section, each.uuid))

    def _follower(self, instance: Instance) -> Instance:
        """Let an instance of the ledger's own follow its node to another name or group, with the wires there."""
        node = self.node_of(instance.node)
        if node is None:  # a problem that is reported: nothing is written
            return instance
        moved = self.group_names.get(instance.group) != node.group
        nics = tuple(self._wired(nic, node.group) if moved else nic for nic in instance.nics)
        placed = replace(instance, node=node.name, group=node.group, nics=nics)
        return placed if placed == instance else replace(placed, serial=instance.serial + 1)

    def _wired(self, nic: Nic, group: str) -> Nic:
        network = None if nic.network is None else self.snapshot.networks.get(nic.network)
        if network is None:
            return nic
        return rewired(nic, replace(network, connections=tuple(self.lines(network))), group)

    def lines(self, network: Network) -> list[Connection]:
        """List how a ledger's network will be connected: as the file says, and to the ledger's own groups as before."""
        wanted = self.networks.get(network.uuid)
        homes = {group.name: group.uuid for group in self.ledger.groups}
        own = [
            replace(line, group=self.group_names.get(line.group, line.group))
            for line in network.connections
            if wanted is None or line.group not in homes or self.stays(GROUPS, homes[line.group])
        ]
        return [*own, *(wanted.connections if wanted is not None else ())]

    @cached_property
    def going(self) -> Mapping[str, Sequence[str]]:
        """Return the names of what goes, by section."""
        ledger = self.ledger
        sections: dict[str, Sequence[Any]] = {
            INSTANCES: ledger.instances, NETWORKS: ledger.networks, NODES: ledger.nodes, GROUPS: ledger.groups,
        }  # fmt: skip
        return {
            section: [each.name for each in objects if self.goes(section, each.uuid)]
            for section, objects in sections.items()
        }

    @cached_property
    def problems(self) -> list[str]:
        """List what of the ledger's own is in the way: names and MACs that the file has too, and users of what goes."""
        try:
            every = [*self._taken_names(), *self._taken_macs(), *self._users()]
            _ = every or self.instances  # wires of the ledger's own instances
        except Conflict as error:
            return [error.message]
        return every

    def _taken_names(self) -> Iterator[str]:
        file, ledger = self.file, self.ledger
        pairs: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {
            GROUPS: (file.groups, ledger.groups), NODES: (file.nodes, ledger.nodes),
            NETWORKS: (file.networks, ledger.networks), INSTANCES: (file.instances, ledger.instances),
        }  # fmt: skip
        for section, (theirs, ours) in pairs.items():
            own = {each.name for each in self._own(section, ours)}
            yield from (f"{KINDS[section]} {each.name!r} exists already" for each in theirs if each.name in own)

    def _taken_macs(self) -> Iterator[str]:
        own = {nic.mac: each.name for each in self._own(INSTANCES, self.ledger.instances) for nic in each.nics}
        for instance in self.file.instances:
            for nic in instance.nics:
                if nic.mac in own:
                    yield f"MAC {nic.mac} of instance {instance.name!r} is that of instance {own[nic.mac]!r}"

    def _users(self) -> Iterator[str]:
        """Name what the file does not have, and what uses an object that it no longer has."""
        groups, nodes = set(self.going[GROUPS]), set(self.going[NODES])
        for node in self._own(NODES, self.ledger.nodes):
            if node.group in groups:
                yield _used("group", node.group, f"node {node.name!r}")
        for instance in self._own(INSTANCES, self.ledger.instances):
            if instance.node in nodes:
                yield _used("node", instance.node, f"instance {instance.name!r}")
            yield from self._cut_off(instance)
        for network in self._own(NETWORKS, self.snapshot.networks.values()):
            for line in network.connections:
                if line.group in groups:
                    yield _used("group", line.group, f"network {network.name!r}")

    def _cut_off(self, instance: Instance) -> Iterator[str]:
        """Name the networks that an instance of the ledger's own would lose, or lose its way to."""
        for nic in instance.nics:
            network = None if nic.network is None else self.snapshot.networks.get(nic.network)
            if network is None or network.connection(instance.group) is None:
                continue
            node = self.node_of(instance.node)
            home = instance.group if node is None else node.group
            if self.goes(NETWORKS, network.uuid):
                yield _used("network", network.name, f"instance {instance.name!r}")
            elif all(line.group != home for line in self.lines(network)):
                where = f"network {network.name!r} is not connected to group {home!r} in the file"
                yield f"{where}, and instance {instance.name!r}, which the file does not have, is on it"


def _used(kind: str, name: str, user: str) -> str:
    return f"{kind} {name!r} is no longer in the file, and {user}, which no file brought in, still uses it"
