"""The fields of instances, nodes and groups that can be asked for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.integrations.ganeti.machine_model import Group, Instance, Nic, Node
from tenure.integrations.ganeti.query.network_fields import Field, by_name, cell, wire_cell
from tenure.kernel.plan.plan_model import Network

INSTANCE_DEFAULT = ("name", "node", "group", "networks", "ips")
NODE_DEFAULT = ("name", "group", "primary_ip", "secondary_ip", "inst_cnt")
GROUP_DEFAULT = ("name", "node_cnt", "inst_cnt", "network_list")


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """An instance, and the networks of its NICs by uuid."""

    instance: Instance
    networks: Mapping[str, Network]

    def network_name(self, nic: Nic) -> str | None:
        """Name the network that a NIC is on; by its uuid where nobody knows it."""
        known = None if nic.network is None else self.networks.get(nic.network)
        return nic.network if known is None else known.name

    @property
    def nics(self) -> list[dict[str, Any]]:
        """Tell all about the NICs, in order."""
        return [self._nic(nic) for nic in self.instance.nics]

    def _nic(self, nic: Nic) -> dict[str, Any]:
        words = {"uuid": nic.uuid, "name": nic.name, "mac": nic.mac}
        wire = {"mode": nic.mode, "link": nic.link, "vlan": nic.vlan}
        place = {"network": self.network_name(nic), "network_uuid": nic.network}
        return {**words, **place, **wire, "ips": [ip.address for ip in nic.ips]}


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node, and the instances that may be on it."""

    node: Node
    instances: Sequence[Instance] = ()

    @property
    def carried(self) -> list[str]:
        """Name the instances on the node."""
        return sorted(each.name for each in self.instances if each.node == self.node.name)


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """A group, and the nodes, instances and networks that may belong to it."""

    group: Group
    nodes: Sequence[Node] = ()
    instances: Sequence[Instance] = ()
    networks: Sequence[Network] = ()

    @property
    def members(self) -> list[str]:
        """Name the nodes of the group."""
        return sorted(each.name for each in self.nodes if each.group == self.group.name)

    @property
    def carried(self) -> list[str]:
        """Name the instances in the group."""
        return sorted(each.name for each in self.instances if each.group == self.group.name)

    @property
    def wires(self) -> list[tuple[str, str, str, str]]:
        """Tell which networks reach the group, and how."""
        found = ((network.name, network.connection(self.group.name)) for network in self.networks)
        return sorted((name, each.mode, each.link, each.vlan) for name, each in found if each is not None)


def _ips_cell(nics: Iterable[list[str | None]]) -> str:
    return ";".join(cell(ips) or "-" for ips in nics)


def _nics_cell(nics: Iterable[Mapping[str, Any]]) -> str:
    return ";".join(cell([nic["mac"], nic["network"], *nic["ips"]]) for nic in nics)


INSTANCE_FIELDS: Mapping[str, Field[InstanceFacts]] = by_name(
    Field("name", "Instance", "the instance's name", lambda facts: facts.instance.name),
    Field("node", "Node", "the node it is on", lambda facts: facts.instance.node),
    Field("group", "Group", "the group of that node", lambda facts: facts.instance.group),
    Field("nic_count", "NICs", "number of its NICs", lambda facts: len(facts.instance.nics)),
    Field("nics", "NICList", "its NICs, whole", lambda facts: facts.nics, _nics_cell),
    Field("ips", "IPs", "addresses, a list for each NIC", lambda facts: [nic["ips"] for nic in facts.nics], _ips_cell),
    Field("macs", "MACs", "the MAC of each NIC", lambda facts: [nic.mac for nic in facts.instance.nics]),
    Field("networks", "Networks", "the network of each NIC", lambda facts: [nic["network"] for nic in facts.nics]),
    Field("uuid", "UUID", "the instance's uuid", lambda facts: facts.instance.uuid),
    Field("serial_no", "SerialNo", "how often it was changed, from 1", lambda facts: facts.instance.serial),
)

NODE_FIELDS: Mapping[str, Field[NodeFacts]] = by_name(
    Field("name", "Node", "the node's name", lambda facts: facts.node.name),
    Field("group", "Group", "the group it belongs to", lambda facts: facts.node.group),
    Field("primary_ip", "PrimaryIP", "its own address", lambda facts: facts.node.primary_ip),
    Field("secondary_ip", "SecondaryIP", "its address for replication", lambda facts: facts.node.secondary_ip),
    Field("inst_list", "InstanceList", "instances on it", lambda facts: facts.carried),
    Field("inst_cnt", "Instances", "number of these instances", lambda facts: len(facts.carried)),
    Field("uuid", "UUID", "the node's uuid", lambda facts: facts.node.uuid),
)

GROUP_FIELDS: Mapping[str, Field[GroupFacts]] = by_name(
    Field("name", "Group", "the group's name", lambda facts: facts.group.name),
    Field("node_list", "NodeList", "nodes of the group", lambda facts: facts.members),
    Field("node_cnt", "Nodes", "number of these nodes", lambda facts: len(facts.members)),
    Field("inst_list", "InstanceList", "instances in the group", lambda facts: facts.carried),
    Field("inst_cnt", "Instances", "number of these instances", lambda facts: len(facts.carried)),
    Field(
        "network_list",
        "NetworkList",
        "networks connected to it: network, mode, link, vlan",
        lambda facts: facts.wires,
        wire_cell,
    ),
    Field("network_cnt", "Networks", "number of these networks", lambda facts: len(facts.wires)),
    Field("uuid", "UUID", "the group's uuid", lambda facts: facts.group.uuid),
)
