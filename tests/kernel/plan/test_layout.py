"""Lines: units numbered in the order they are handed out, with everything that is kept away left out."""

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import V4_BASE, format_address, parse_address
from tenure.kernel.errors import AddressOutsideSubnet, AddressReserved, Invalid, NotFound
from tenure.kernel.names import Owner
from tenure.kernel.picking.policies import notes_former
from tenure.kernel.plan import edits
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration, Policy
from tenure.kernel.plan.pool_line import Line
from tests.kernel.plans import net1, planned

A, B = Owner("instance/a"), Owner("instance/b")


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """Draw a line of a few disjoint runs, written in any order."""
    place, runs = V4_BASE, []
    for _ in range(draw(st.integers(1, 5))):
        place += draw(st.integers(0, 10))
        size, count = draw(st.sampled_from([1, 2, 8])), draw(st.integers(1, 6))
        runs.append((place, size, count))
        place += size * count
    return Line(draw(st.permutations(runs)), Policy.LOWEST)


def on_line(plan: Configuration, pool: str | None = None, subnet: str | None = None) -> list[str]:
    line = Layout(plan).line("net1", pool, subnet)
    return [format_address(line.unit(number)[0]) for number in range(line.size)]


def tiny(*steps: edits.Edit) -> Configuration:
    """Plan two blocks of eight; the second is written first."""
    return planned(
        edits.AddNetwork(network="net1"),
        edits.AddSubnet(network="net1", cidr="10.0.0.8/29", gateway="10.0.0.9", name="high", uuid="u1"),
        edits.AddSubnet(network="net1", cidr="10.0.0.0/29", name="low", uuid="u2", keep_back=[]),
        edits.AddPool(network="net1", range="10.0.0.12-10.0.0.15", name="p"),
        edits.AddPool(network="net1", range="10.0.0.8-10.0.0.10"),
        edits.AddPool(network="net1", range="10.0.0.0-10.0.0.1", name="p"),
        *steps,
    )


@given(lines())
def test_unit_and_number_are_each_others_inverse(line: Line) -> None:
    for number in range(line.size):
        first, last = line.unit(number)
        assert line.number(first) == line.number(last) == number


@given(lines())
def test_every_position_between_the_ends_is_on_one_unit_or_on_none(line: Line) -> None:
    units = [line.unit(number) for number in range(line.size)]

    for place in range(line.lowest - 2, line.highest + 3):
        expected = [number for number, (first, last) in enumerate(units) if first <= place <= last]
        assert line.number(place) == (expected[0] if expected else None)


@given(lines(), st.lists(st.tuples(st.integers(-3, 120), st.integers(0, 30)), max_size=6))
def test_taken_numbers_are_those_that_spans_lie_over(line: Line, drawn: list[tuple[int, int]]) -> None:
    spans = sorted((V4_BASE + start, V4_BASE + start + length) for start, length in drawn)
    units = [line.unit(number) for number in range(line.size)]

    taken = list(line.taken(spans))

    over = {n for n, (low, high) in enumerate(units) if any(low <= last and first <= high for first, last in spans)}
    assert {number for first, last in taken for number in range(first, last + 1)} == over
    assert taken == sorted(taken)


def test_the_line_follows_the_written_order_of_subnets_and_pools() -> None:
    assert on_line(tiny()) == ["10.0.0.12", "10.0.0.13", "10.0.0.14", "10.0.0.10", "10.0.0.0", "10.0.0.1"]


def test_a_line_may_be_of_one_name_or_one_subnet_or_both() -> None:
    assert on_line(tiny(), pool="p") == ["10.0.0.12", "10.0.0.13", "10.0.0.14", "10.0.0.0", "10.0.0.1"]
    assert on_line(tiny(), subnet="low") == on_line(tiny(), "p", "10.0.0.0/29") == ["10.0.0.0", "10.0.0.1"]


@pytest.mark.parametrize(("pool", "subnet"), [("q", None), (None, "other"), ("q", "low")])
def test_an_unknown_pool_or_subnet_is_told(pool: str | None, subnet: str | None) -> None:
    with pytest.raises(NotFound) as refusal:
        on_line(tiny(), pool, subnet)

    assert refusal.value.field == ("pool" if pool else "subnet")


def test_a_network_without_pools_says_what_to_do() -> None:
    plan = planned(edits.AddNetwork(network="net1"), edits.AddSubnet(network="net1", cidr="10.0.0.0/24", uuid="u"))

    with pytest.raises(NotFound, match=r"^no pool of network 'net1'; add one with add_pool"):
        on_line(plan)


@pytest.mark.parametrize(
    "edit",
    [
        edits.ModifyNetwork(network="net1", retired=True),
        edits.ModifySubnet(network="net1", subnet="high", retired=True),
        edits.ModifyPool(network="net1", pool="10.0.0.12-10.0.0.15", retired=True),
    ],
)
def test_what_is_retired_is_not_on_the_line(edit: edits.Edit) -> None:
    assert "10.0.0.12" not in on_line(tiny(edit))


def test_reserved_and_preallocated_addresses_are_not_on_the_line() -> None:
    plan = tiny(
        edits.Reserve(network="net1", range="10.0.0.13"), edits.Preallocate(network="net1", owner=A, address="10.0.0.1")
    )

    assert on_line(plan) == ["10.0.0.12", "10.0.0.14", "10.0.0.10", "10.0.0.0"]


def test_gateways_reservations_and_preallocations_bind_the_whole_space_but_network_addresses_do_not() -> None:
    plan = tiny(
        edits.AddNetwork(network="net2"),
        edits.AddSubnet(network="net2", cidr="10.0.0.12/30", gateway="10.0.0.14", name="x", uuid="u3"),
        edits.AddSubnet(network="net2", cidr="10.0.0.0/30", name="y", uuid="u4"),
        edits.Reserve(network="net2", range="10.0.0.13"),
        edits.Preallocate(network="net2", owner=A, address="10.0.0.1"),
    )

    assert on_line(plan) == ["10.0.0.12", "10.0.0.10", "10.0.0.0"]


@given(st.sets(st.integers(0, 255), max_size=12), st.integers(0, 255), st.integers(0, 255))
def test_a_line_of_larger_units_holds_exactly_the_whole_units_that_nothing_touches(
    kept: set[int], one: int, other: int
) -> None:
    first, last = sorted([one, other])
    assume(-(-first // 8) * 8 + 7 <= last)  # a pool holds at least one unit
    base = parse_address("10.0.0.0")
    plan = planned(
        edits.AddNetwork(network="net1"),
        edits.AddSubnet(network="net1", cidr="10.0.0.0/24", unit=29, uuid="u"),
        edits.AddPool(network="net1", range=f"{format_address(base + first)}-{format_address(base + last)}"),
        *(edits.Reserve(network="net1", range=format_address(base + number)) for number in sorted(kept)),
    )

    line = Layout(plan).line("net1")

    whole = [u for u in range(0, 256, 8) if first <= u and u + 7 <= last and kept.isdisjoint(range(u, u + 8))]
    assert [line.unit(number) for number in range(line.size)] == [(base + u, base + u + 7) for u in whole]


def test_a_line_of_thousands_of_pools_between_reserved_addresses_is_laid_at_once() -> None:
    """Each pool looks only at what lies near it: every pool at everything would take minutes."""
    number = 3000
    plan = planned(
        edits.AddNetwork(network="net1"),
        edits.AddSubnet(network="net1", cidr="10.0.0.0/16", keep_back=(), uuid="u"),
        *(edits.Reserve(network="net1", range=f"10.0.{each // 64}.{each % 64 * 4}") for each in range(number)),
        *(edits.AddPool(network="net1", range=f"10.0.{at // 64}.{at % 64 * 4}/30") for at in range(number)),
    )

    begun = time.monotonic()
    line = Layout(plan).line("net1")

    assert line.size == number * 3
    assert time.monotonic() - begun < 5


def test_a_line_of_a_64_is_laid_at_once() -> None:
    plan = planned(
        edits.AddNetwork(network="net1"),
        edits.AddSubnet(network="net1", cidr="2001:db8::/64", gateway="2001:db8::1", uuid="u"),
        edits.AddPool(network="net1", range="2001:db8::/64"),
    )

    line = Layout(plan).line("net1")

    assert line.size == 2**64 - 2
    assert format_address(line.unit(0)[0]) == "2001:db8::2"


def test_a_line_of_pools_with_one_policy_has_that_policy_and_mixed_ones_pick_lowest() -> None:
    one = tiny(edits.ModifyPool(network="net1", pool="p", policy="random"))

    assert Layout(one).line("net1", "p").policy is Policy.RANDOM
    assert Layout(one).line("net1").policy is Policy.LOWEST


@pytest.mark.parametrize(
    ("address", "reach", "kept_as", "why"),
    [
        ("192.0.2.0", "refuse", "network", "network address"),
        ("192.0.2.0", "allow", "network", "network address"),
        ("192.0.2.255", "refuse", "broadcast", "broadcast address"),
        ("192.0.2.1", "refuse", "gateway", "gateway"),
        ("192.0.2.1", "allow", "gateway", "gateway"),
        ("192.0.2.30", "refuse", "reserved", "reserved in network 'net1': printers"),
        ("192.0.2.40", "refuse", "pre-allocated", "pre-allocated to instance/b"),
        ("192.0.2.40", "allow", "pre-allocated", "pre-allocated to instance/b"),
    ],
)
def test_a_wanted_address_that_is_kept_away_is_refused_with_the_reason(
    address: str, reach: str, kept_as: str, why: str
) -> None:
    with pytest.raises(AddressReserved) as refusal:
        _guarded().check_wanted("net1", parse_address(address), A, "", reach)

    assert why in refusal.value.reason
    assert refusal.value.kept_as == kept_as
    assert refusal.value.address == address


@pytest.mark.parametrize(
    ("address", "owner", "reach"),
    [
        ("192.0.2.5", A, "refuse"),
        ("192.0.2.30", A, "allow"),
        ("192.0.2.40", B, "refuse"),
        ("192.0.2.40", A, "force"),
        ("192.0.2.1", A, "force"),
        ("192.0.2.0", A, "force"),
    ],
)
def test_a_wanted_address_is_had_when_nothing_binds_this_owner_at_this_reach(
    address: str, owner: Owner, reach: str
) -> None:
    unit = _guarded().check_wanted("net1", parse_address(address), owner, "", reach)

    assert unit.text == address


def test_a_preallocation_is_for_its_slot_only() -> None:
    layout = _guarded()

    assert layout.preallocated("net1", B, "") == parse_address("192.0.2.40")
    assert layout.preallocated("net1", B, "nic1") is layout.preallocated("net1", A, "") is None
    with pytest.raises(AddressReserved):
        layout.check_wanted("net1", parse_address("192.0.2.40"), B, "nic1")


def test_a_wanted_address_begins_a_unit_inside_a_subnet_that_is_not_retired() -> None:
    layout = Layout(net1(
        edits.AddSubnet(network="net1", cidr="10.8.0.0/16", unit=24, uuid="u3"),
        edits.ModifySubnet(network="net1", subnet="subnet2", retired=True),
    ))  # fmt: skip

    with pytest.raises(Invalid, match="/24"):
        layout.check_wanted("net1", parse_address("10.8.1.1"), A, "")
    with pytest.raises(AddressOutsideSubnet):
        layout.check_wanted("net1", parse_address("172.16.0.1"), A, "")
    with pytest.raises(AddressReserved, match="retired") as refusal:
        layout.check_wanted("net1", parse_address("10.0.0.5"), A, "", "force")
    assert refusal.value.kept_as == "retired"


def test_subnets_pools_and_names_are_found() -> None:
    layout = Layout(net1())

    assert layout.name_of(1) == "net1"
    assert layout.subnet_at("net1", parse_address("10.0.0.255")).name == "subnet2"
    pool = layout.pool_at("net1", parse_address("192.0.2.100"))
    assert pool is not None
    assert pool.name == "pool1"
    assert layout.pool_at("net1", parse_address("192.0.2.101")) is None
    for outside in ("9.255.255.255", "10.0.1.0", "192.0.3.0", "::"):
        with pytest.raises(AddressOutsideSubnet):
            layout.subnet_at("net1", parse_address(outside))


@pytest.mark.parametrize(
    ("address", "cooling_us"),
    [
        ("192.0.2.9", 0),
        ("192.0.2.10", 60_000_000),
        ("192.0.2.20", 60_000_000),
        ("192.0.2.21", 0),
        ("192.0.2.30", 5_000_000),
        ("10.0.0.7", 0),
        ("172.16.0.1", 0),
    ],
)
def test_the_pool_around_an_address_says_how_long_it_cools(address: str, cooling_us: int) -> None:
    layout = Layout(net1(
        edits.RemovePool(network="net1", pool="pool1"),
        edits.AddPool(network="net1", range="192.0.2.30-192.0.2.40", cooling_s=5),
        edits.AddPool(network="net1", range="192.0.2.10-192.0.2.20", cooling_s=60),
        edits.AddPool(network="net1", range="192.0.2.21-192.0.2.29"),
        edits.AddNetwork(network="net2"),
        edits.AddSubnet(network="net2", cidr="10.0.0.0/24", uuid="u3"),
        edits.AddPool(network="net2", range="10.0.0.0-10.0.0.9", cooling_s=9),
    ))  # fmt: skip

    assert layout.pool_cooling_us("net1", parse_address(address)) == cooling_us


class Blank(int):
    """A position that nothing may be compared with."""

    def __lt__(self, other: object) -> bool:
        raise AssertionError("a pool was looked at")

    __le__ = __gt__ = __ge__ = __lt__


def test_a_network_without_cooling_pools_looks_at_no_pool_to_say_so() -> None:
    place = Blank(parse_address("192.0.2.10"))

    assert Layout(net1()).pool_cooling_us("net1", place) == 0
    with pytest.raises(AssertionError):
        Layout(net1(edits.ModifyPool(network="net1", pool="pool1", cooling_s=1))).pool_cooling_us("net1", place)


def test_only_a_network_with_a_sticky_pool_notes_where_owners_were() -> None:
    sticky = net1(edits.AddPool(network="net1", range="10.0.0.8", policy="sticky"))

    assert notes_former(Layout(sticky).policies("net1"))
    assert not notes_former(Layout(net1()).policies("net1"))


def _guarded() -> Layout:
    return Layout(net1(
        edits.Reserve(network="net1", range="192.0.2.30", reason="printers"),
        edits.Preallocate(network="net1", owner=B, address="192.0.2.40"),
    ))  # fmt: skip
