"""The network that the cases speak of, and a few more, with instances on them."""

from dataclasses import replace

from tenure.integrations.ganeti.machine_model import Instance, Nic, NicIp
from tenure.kernel.addressing.ranges import parse_range
from tenure.kernel.holdings.holding_model import Holding, Row, State
from tenure.kernel.plan import edits
from tenure.kernel.plan.plan_model import Connection, Network
from tests.kernel.plans import planned


def of_cases(*steps: edits.Edit) -> Network:
    """Plan net1: three subnets, one pool in the first, two of one name in the second, none in the third."""
    plan = planned(
        edits.AddNetwork(network="net1"),
        edits.AddSubnet(network="net1", cidr="192.0.2.0/24", gateway="192.0.2.1", name="subnet1", uuid="s1"),
        edits.AddSubnet(network="net1", cidr="10.0.0.0/24", name="subnet2", uuid="s2"),
        edits.AddSubnet(network="net1", cidr="2001:db8::/64", gateway="2001:db8::1", name="six", uuid="s3"),
        edits.AddPool(network="net1", range="192.0.2.10-192.0.2.100", name="pool1"),
        edits.AddPool(network="net1", range="10.0.0.8/29", name="pool3"),
        edits.AddPool(network="net1", range="10.0.0.40-10.0.0.45", name="pool3"),
        *steps,
    )
    return replace(plan.network("net1"), connections=(Connection("default", "bridged", "br100"),))


def of_today(name: str = "c") -> Network:
    """Plan what ``add --network 192.0.2.0/28 --gateway 192.0.2.1`` makes."""
    plan = planned(
        edits.AddNetwork(network=name),
        edits.AddSubnet(network=name, cidr="192.0.2.0/28", gateway="192.0.2.1", uuid="s1"),
        edits.AddPool(network=name, range="192.0.2.0/28"),
    )
    return plan.network(name)


def nic(network: Network | None, *addresses: str | None, number: int = 0, name: str | None = None) -> Nic:
    """Make a NIC with these addresses."""
    ips = tuple(NicIp(f"nic{number}/ip{each}", address) for each, address in enumerate(addresses))
    uuid = None if network is None else network.uuid
    return Nic(f"nic-uuid-{number}", f"aa:00:00:00:00:0{number}", name, uuid, "bridged", "br100", "", ips)


def instance(name: str, *nics: Nic) -> Instance:
    """Put an instance on the cases' node."""
    return Instance(name, f"uuid-of-{name}", "node1", "default", nics)


def holding(network: Network, what: str, owner: str = "instance/web", state: State = State.HELD) -> Holding:
    """Hold an address, or a block of them."""
    held = parse_range(what)
    row = Row(1, network.id, held.first, held.last, owner, "nic0/ip0", state, 1, 0)
    return Holding(network.name, row, 24)
