"""What must be true of the networks door's ledger after every command, whatever came before it."""

from collections.abc import Iterable
from itertools import pairwise

from tenure.integrations.ganeti.instance_records import marks_of
from tenure.integrations.ganeti.machine_model import GROUP, IDENTITY, MAC, NIC, NODE, PLACEMENT
from tenure.integrations.ganeti.query.network_fields import FIELDS
from tenure.integrations.ganeti.query.used_addresses import external_ranges
from tenure.kernel.addressing.addresses import is_v6, parse_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.holdings.holding_model import State
from tenure.kernel.plan.plan_model import KeepBack, Network
from tests.integrations.ganeti.machine.sight import Sight, kept_away


def check_plan(sight: Sight) -> None:
    """Subnets are disjoint, pools are disjoint and inside one subnet, external ranges too; DHCP once per version."""
    for network in sight.networks:
        check_disjoint(subnet.cidr.range for subnet in network.subnets)
        check_disjoint(pool.range for _, pool in network.pools())
        for subnet in network.subnets:
            check_disjoint(kept.range for kept in subnet.reserved)
            check_disjoint(external_ranges(subnet))
            inside = [*(pool.range for pool in subnet.pools), *(kept.range for kept in subnet.reserved)]
            assert all(subnet.cidr.range.covers(piece) for piece in inside), (subnet.cidr, inside)
        served = [is_v6(subnet.cidr.first) for subnet in network.subnets if subnet.dhcp]
        assert len(served) == len(set(served)), f"{network.name}: DHCP twice"
        names = [subnet.name for subnet in network.subnets if subnet.name is not None]
        assert len(names) == len(set(names))


def check_disjoint(ranges: Iterable[AddressRange]) -> None:
    """No two share an address."""
    for one, other in pairwise(sorted(ranges)):
        assert one.last < other.first, f"{one} and {other} overlap"


def check_holders(sight: Sight) -> None:
    """No address of a network has two holders."""
    for network in sight.networks:
        firsts = [holding.row.first for holding in sight.holdings[network.name]]
        assert len(firsts) == len(set(firsts)), network.name


def check_maps(sight: Sight) -> None:
    """A sign is X exactly when the address is kept away or somebody's; free and X are all there is."""
    for network in sight.networks:
        facts = sight.facts(network)
        taken = {holding.row.first for holding in sight.holdings[network.name]}
        free = 0
        for subnet, told in zip(network.subnets, FIELDS["subnets"].read(facts), strict=True):
            for pool, shown in zip(subnet.pools, told["pools"], strict=True):
                free += shown["free_count"]
                if shown["map"] is not None:
                    every = range(pool.range.first, pool.range.last + 1)
                    expected = "".join("X" if p in taken or kept_away(subnet, p) else "." for p in every)
                    assert shown["map"] == expected, (network.name, str(pool.range))
                    assert shown["free_count"] + shown["map"].count("X") == shown["size"] == pool.range.size
        assert FIELDS["free_count"].read(facts) == free
        assert FIELDS["free_count"].read(facts) + FIELDS["reserved_count"].read(facts) == FIELDS["size"].read(facts)


def check_papers(sight: Sight) -> None:
    """Papers and holdings say the same: each slot is held, what is held has its slot, and marks find just that."""
    slots = [
        (nic.network, instance.owner, ip.slot)
        for instance in sight.instances
        for nic in instance.nics
        if nic.network is not None
        for ip in nic.ips
    ]
    held = [(network.uuid, str(h.owner), h.slot) for network, h in sight.of_state(State.HELD, State.DRAINING)]
    assert sorted(slots) == sorted(each for each in held if each[1].startswith("instance/"))
    marks = {mark: document for instance in sight.instances for mark, document in marks_of(instance).items()}
    marks |= {(IDENTITY, paper.document["uuid"]): {} for paper in sight.papers[NODE]}
    kinds = (NIC, MAC, PLACEMENT, IDENTITY)
    assert marks == {(kind, paper.name): paper.document for kind in kinds for paper in sight.papers[kind]}
    assert len(sight.papers[NIC]) == len(sight.papers[MAC]) == sum(len(each.nics) for each in sight.instances)


def check_places(sight: Sight) -> None:
    """Instances are on nodes, nodes in groups; NICs are wired as their network is; reasons name nodes there are."""
    homes = {paper.name: paper.document["group"] for paper in sight.papers[NODE]}
    assert set(homes.values()) <= set(sight.names(GROUP))
    for instance in sight.instances:
        assert homes.get(instance.node) == instance.group
        for nic in instance.nics:
            network = sight.network(nic.network)
            if nic.network is not None:
                wires = None if network is None else network.connection(instance.group)
                assert wires is not None
                assert (nic.mode, nic.link, nic.vlan) == (wires.mode, wires.link, wires.vlan)
    reasons = {kept.reason for network in sight.networks for s in network.subnets for kept in s.reserved}
    assert reasons <= {"", *(f"node {name}" for name in homes)}
    assert {each.group for network in sight.networks for each in network.connections} <= set(sight.names(GROUP))


def check_care(sight: Sight) -> None:
    """Where no command was told to look away, gateways and nodes are safe, and no network lies over a stranger."""
    nodes = [paper.document[word] for paper in sight.papers[NODE] for word in ("primary_ip", "secondary_ip")]
    own = [parse_address(address) for address in nodes if address is not None]
    for subnet in (subnet for network in sight.networks for subnet in network.subnets):
        assert all(kept_away(subnet, p) for p in own if p in subnet.cidr.range), f"a node in {subnet.cidr}"
    for network, holding in sight.rows:
        gateways = [p for subnet in network.subnets for p, why in subnet.kept_back() if why is KeepBack.GATEWAY]
        assert holding.row.first not in gateways, f"{holding} is on a gateway"
    for instance in sight.instances:
        loose = [parse_address(address) for nic in instance.nics if nic.network is None for address in nic.addresses]
        for network in sight.networks:
            if network.connection(instance.group) is not None:
                assert not any(_covers(network, position) for position in loose), (instance.name, network.name)


def _covers(network: Network, position: int) -> bool:
    return any(position in subnet.cidr.range for subnet in network.subnets)


ALWAYS = (check_plan, check_holders, check_maps, check_papers, check_places)
