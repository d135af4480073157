"""Barriers: what keeps a unit away is found, and nothing else is."""

from hypothesis import example, given
from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.names import Owner
from tenure.kernel.plan import edits
from tenure.kernel.plan.blocked_ranges import Barriers
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import KeepBack
from tests.kernel.plans import net1, planned

BASE = parse_address("10.0.0.0")
spans = st.tuples(st.integers(0, 255), st.integers(0, 40)).map(lambda drawn: (drawn[0], min(drawn[0] + drawn[1], 255)))


def written(span: tuple[int, int]) -> str:
    return f"{format_address(BASE + span[0])}-{format_address(BASE + span[1])}"


@given(st.lists(spans, max_size=8), st.lists(spans, max_size=8), st.lists(st.integers(0, 15), unique=True), spans)
@example([(10, 12)], [(0, 40)], [], (30, 35))
def test_the_barriers_over_a_unit_are_those_that_share_an_address_with_it(
    mine: list[tuple[int, int]], others: list[tuple[int, int]], waiting: list[int], asked: tuple[int, int]
) -> None:
    plan = planned(
        edits.AddNetwork(network="a"),
        edits.AddSubnet(network="a", cidr="10.0.0.0/24", gateway="10.0.0.77", unit=28, uuid="u1"),
        edits.AddNetwork(network="b"),
        edits.AddSubnet(network="b", cidr="10.0.0.0/23", uuid="u2"),
        *(edits.Reserve(network="a", range=written(span), reason=str(n)) for n, span in enumerate(mine)),
        *(edits.Reserve(network="b", range=written(span), reason=str(n)) for n, span in enumerate(others)),
        *(edits.Preallocate(network="a", owner=f"vm/{n}", address=format_address(BASE + 16 * n)) for n in waiting),
    )
    barriers, unit = Barriers(plan), AddressRange(BASE + asked[0], BASE + asked[1])

    found = list(barriers.over(unit))

    assert found == [barrier for barrier in barriers if barrier.range.overlaps(unit)][::-1]


def test_a_barrier_says_what_it_is_and_of_which_network() -> None:
    layout = Layout(net1(
        edits.Reserve(network="net1", range="192.0.2.30", reason="printers", request="T-1", labels={"a": "b"}),
        edits.Preallocate(network="net1", owner="vm/b", address="192.0.2.40", slot="nic0"),
    ))  # fmt: skip

    def over(address: str) -> tuple[object, ...]:
        place = parse_address(address)
        barrier = layout.barrier_over("net1", AddressRange(place, place), Owner("vm/a"), "", "refuse")
        return () if barrier is None else (barrier.kept_back, barrier.reserved, barrier.preallocation)

    [kept], [waiting] = (
        layout.configuration.network("net1").subnet("subnet1").reserved,
        layout.configuration.network("net1").preallocations,
    )
    assert over("192.0.2.0") == (KeepBack.NETWORK, None, None)
    assert over("192.0.2.1") == (KeepBack.GATEWAY, None, None)
    assert over("192.0.2.30") == (None, kept, None)
    assert over("192.0.2.40") == (None, None, waiting)
    assert over("192.0.2.41") == ()


def test_a_unit_is_kept_back_by_its_own_subnet_only() -> None:
    layout = Layout(net1(edits.AddSubnet(network="net1", cidr="10.0.1.0/24", uuid="u3")))
    places = [parse_address(address) for address in ("10.0.0.255", "10.0.1.0", "10.0.1.1")]

    found = [layout.barrier_over("net1", AddressRange(place, place), None, "", "refuse") for place in places]

    assert [None if each is None else (each.kept_as, each.text) for each in found] == [
        ("broadcast", "kept back as the broadcast address of 10.0.0.0/24"),
        ("network", "kept back as the network address of 10.0.1.0/24"),
        None,
    ]
