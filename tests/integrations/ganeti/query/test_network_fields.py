"""The fields of networks: values for every network, however large."""

import itertools
import json
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.integrations.ganeti.query.info_text import info_lines
from tenure.integrations.ganeti.query.network_fields import FIELDS, NetworkFacts
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.holdings.holding_model import State
from tenure.kernel.plan import edits
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Configuration, Connection, Network
from tests.integrations.ganeti.plans import holding, instance, nic, of_cases, of_today
from tests.kernel.plans import planned


def network_with(*steps: edits.Edit) -> Network:
    """Plan a network without anything, then what is asked for."""
    return planned(edits.AddNetwork(network="net0"), *steps).network("net0")


def huge(cidr: str) -> Network:
    """Plan one pool over a whole block, with a gateway and a reserved range."""
    first = cidr.partition("/")[0]
    return network_with(
        edits.AddSubnet(network="net0", cidr=cidr, uuid="s1"),
        edits.AddPool(network="net0", range=cidr),
        edits.Reserve(network="net0", range=f"{first}/{int(cidr.partition('/')[2]) + 8}"),
    )


def read(facts: NetworkFacts, *names: str) -> list[Any]:
    """Read fields."""
    return [FIELDS[name].read(facts) for name in names]


def test_n01_a_network_without_l3_has_every_field_and_no_address() -> None:
    facts = NetworkFacts(network_with())

    assert read(facts, "network", "gateway", "network6", "gateway6") == [None] * 4
    assert read(facts, "subnets", "map", "free_count", "reserved_count", "size") == [[], "", 0, 0, 0]
    assert read(facts, "external_reservations", "external_reservations_list") == ["", []]
    assert read(facts, "group_list", "group_cnt", "inst_list", "inst_cnt") == [[], 0, [], 0]


def test_q01_subnets_are_told_in_their_order() -> None:
    [subnets] = read(NetworkFacts(of_cases()), "subnets")

    words = ("cidr", "gateway", "dhcp", "name", "uuid")
    assert [[subnet[word] for word in words] for subnet in subnets] == [
        ["192.0.2.0/24", "192.0.2.1", False, "subnet1", "s1"],
        ["10.0.0.0/24", None, False, "subnet2", "s2"],
        ["2001:db8::/64", "2001:db8::1", False, "six", "s3"],
    ]
    assert [subnet["external"] for subnet in subnets] == [
        ["192.0.2.0-192.0.2.1", "192.0.2.255"],
        ["10.0.0.0", "10.0.0.255"],
        ["2001:db8::-2001:db8::1"],
    ]


def test_q02_pools_are_told_with_their_ends_and_maps() -> None:
    [subnets] = read(NetworkFacts(of_cases()), "subnets")

    assert subnets[1]["pools"] == [
        {"start": "10.0.0.8", "end": "10.0.0.15", "name": "pool3", "size": 8, "free_count": 8, "map": "........"},
        {"start": "10.0.0.40", "end": "10.0.0.45", "name": "pool3", "size": 6, "free_count": 6, "map": "......"},
    ]
    assert subnets[2]["pools"] == []


def test_q04_u26_the_map_is_that_of_the_first_pool_and_the_counts_are_of_all() -> None:
    network = of_cases()
    facts = NetworkFacts(network, [holding(network, "192.0.2.12"), holding(network, "10.0.0.41")])

    [map_, free, used, size] = read(facts, "map", "free_count", "reserved_count", "size")

    assert map_ == ".." + "X" + "." * 88
    assert (free, used, size) == (103, 2, 91 + 8 + 6)


def test_q05_the_fields_of_old_are_of_the_first_subnet_of_each_family() -> None:
    names = ("network", "gateway", "network6", "gateway6")

    assert read(NetworkFacts(of_cases()), *names) == ["192.0.2.0/24", "192.0.2.1", "2001:db8::/64", "2001:db8::1"]


def test_q05_a_gateway_of_a_later_subnet_does_not_stand_in_for_the_first() -> None:
    network = network_with(
        edits.AddSubnet(network="net0", cidr="10.0.0.0/24", uuid="s1"),
        edits.AddSubnet(network="net0", cidr="10.0.1.0/24", gateway="10.0.1.1", uuid="s2"),
    )

    assert read(NetworkFacts(network), "network", "gateway", "network6") == ["10.0.0.0/24", None, None]


def test_n06_a_network_of_ipv6_alone_has_no_block_of_ipv4() -> None:
    network = network_with(
        edits.AddSubnet(network="net0", cidr="2001:db8:1::/64", gateway="2001:db8:1::1", uuid="s1"),
    )

    assert read(NetworkFacts(network), "network", "network6", "gateway6") == [None, "2001:db8:1::/64", "2001:db8:1::1"]


def test_q07_a_network_made_in_the_old_way_has_the_map_of_old() -> None:
    facts = NetworkFacts(of_today())

    assert read(facts, "map", "free_count", "reserved_count") == ["XX.............X", 13, 3]


def test_q20_external_reservations_are_compact_and_singly_on_request() -> None:
    network = of_cases(
        edits.Reserve(network="net1", range="192.0.2.2-192.0.2.4"),
        edits.Reserve(network="net1", range="192.0.2.9", reason="node node1"),
        edits.RemoveSubnet(network="net1", subnet="six"),
    )

    [text, singly] = read(NetworkFacts(network), "external_reservations", "external_reservations_list")

    assert text == "192.0.2.0-192.0.2.4, 192.0.2.9, 192.0.2.255, 10.0.0.0, 10.0.0.255"
    assert singly == [f"192.0.2.{number}" for number in (0, 1, 2, 3, 4, 9, 255)] + ["10.0.0.0", "10.0.0.255"]


def test_q20_the_list_of_single_addresses_is_withheld_where_it_would_be_endless() -> None:
    network = huge("10.0.0.0/8")

    [text, singly] = read(NetworkFacts(network), "external_reservations", "external_reservations_list")

    assert text == "10.0.0.0-10.0.255.255, 10.255.255.255"
    assert singly is None


@pytest.mark.parametrize("state", State)
def test_an_address_in_any_state_is_marked_once(state: State) -> None:
    network = of_cases(edits.Reserve(network="net1", range="192.0.2.13-192.0.2.14"))
    held = [holding(network, "192.0.2.10", state=state), holding(network, "192.0.2.13", state=state)]

    assert read(NetworkFacts(network, held), "map", "reserved_count") == ["X..XX" + "." * 86, 3]


def test_an_address_outside_pools_is_in_no_map_and_in_no_count() -> None:
    network = of_cases()

    facts = NetworkFacts(network, [holding(network, "192.0.2.200"), holding(network, "192.0.2.9")])

    assert read(facts, "map", "reserved_count") == ["." * 91, 0]


def test_an_address_that_waits_for_its_owner_is_not_free() -> None:
    network = of_cases(edits.Preallocate(network="net1", owner="instance/db", address="192.0.2.11"))

    assert read(NetworkFacts(network), "map", "free_count") == [".X" + "." * 89, 104]


def test_pending_holdings_list_nobody() -> None:
    network, other = of_cases(), replace(of_today("net2"), uuid="other")
    users = [
        instance("b", nic(network)),
        instance("a", nic(None), nic(network, "192.0.2.10")),
        instance("c", nic(other)),
    ]
    held = [holding(network, "192.0.2.11", "instance/new", State.PENDING)]

    assert read(NetworkFacts(network, held, users), "inst_list", "inst_cnt") == [["a", "b"], 2]


def test_groups_are_told_with_mode_link_and_vlan() -> None:
    wired = (Connection("default", "bridged", "br100"), Connection("far", "openvswitch", "ovs0", ".7"))
    facts = NetworkFacts(replace(of_cases(), connections=wired))

    assert read(facts, "group_list", "group_cnt") == [
        [("default", "bridged", "br100", ""), ("far", "openvswitch", "ovs0", ".7")],
        2,
    ]
    field = FIELDS["group_list"]
    assert field.write(field.read(facts)) == "default (bridged, br100), far (openvswitch, ovs0, .7)"


def test_times_are_seconds_and_shown_as_times() -> None:
    network = replace(of_cases(), created_us=1_700_000_000_250_000, modified_us=1_700_000_060_000_000, serial=4)
    facts = NetworkFacts(network)

    assert read(facts, "ctime", "mtime", "serial_no") == [1_700_000_000.25, 1_700_000_060.0, 4]
    assert FIELDS["mtime"].write(1_700_000_060.0) == "2023-11-14 22:14:20 UTC"


@pytest.mark.parametrize(("cidr", "bits"), [("10.0.0.0/8", 24), ("2001:db8::/64", 64)])
def test_p25_u27_a_huge_pool_has_exact_counts_at_once_and_no_map(cidr: str, bits: int) -> None:
    network = huge(cidr)
    high = format_address(parse_address(cidr.partition("/")[0]) + (1 << bits) - 9)
    facts = NetworkFacts(network, [holding(network, high)])

    began = time.perf_counter()
    [subnets, map_, free, used] = read(facts, "subnets", "map", "free_count", "reserved_count")
    lines = info_lines(facts)

    assert time.perf_counter() - began < 0.5
    expected = (1 << (bits - 8)) + 1 + (bits == 24)  # the reserved range, the held address, IPv4's broadcast address
    assert (used, free, map_) == (expected, (1 << bits) - expected, None)
    assert subnets[0]["pools"][0]["map"] is None
    assert any(f"too large for a map: {used} used, {free} free" in line for line in lines)


@pytest.mark.parametrize(("size", "drawn"), [(65_536, True), (65_537, False)])
def test_u27_a_map_is_drawn_up_to_65536_addresses(size: int, drawn: bool) -> None:
    network = network_with(
        edits.AddSubnet(network="net0", cidr="10.0.0.0/8", uuid="s1"),
        edits.AddPool(network="net0", range=f"10.1.0.0+{size}"),
    )

    assert read(NetworkFacts(network), "map") == ["." * size if drawn else None]


def test_a_full_pool_of_65536_is_told_quickly() -> None:
    network = network_with(
        edits.AddSubnet(network="net0", cidr="10.0.0.0/8", uuid="s1"),
        edits.AddPool(network="net0", range="10.1.0.0/16"),
    )
    first = parse_address("10.1.0.0")
    held = [holding(network, format_address(first + number)) for number in range(0, 65_536, 2)]

    began = time.perf_counter()
    [map_, free] = read(NetworkFacts(network, held), "map", "free_count")

    assert time.perf_counter() - began < 2
    assert (map_, free) == ("X." * 32_768, 32_768)


@st.composite
def plans(draw: st.DrawFn) -> Configuration:
    """Draw a network of two small subnets, with reserved ranges and pools anywhere, of single addresses or of pairs."""
    steps: list[edits.Edit] = [edits.AddNetwork(network="net0")]
    for base in ("10.0.0", "10.0.1"):
        unit = draw(st.sampled_from([32, 31]))
        gateway = draw(st.sampled_from([None, f"{base}.1", f"{base}.9"]))
        steps.append(edits.AddSubnet(network="net0", cidr=f"{base}.0/27", gateway=gateway, unit=unit, uuid=base))
        cuts = sorted(draw(st.sets(st.integers(0, 32), min_size=2, max_size=6)))
        pieces = [(first, last - 1) for first, last in itertools.pairwise(cuts) if last - first >= 4]
        steps += [edits.AddPool(network="net0", range=f"{base}.{first}-{base}.{last}") for first, last in pieces]
        for start in draw(st.lists(st.integers(0, 29), max_size=3)):
            steps.append(edits.Reserve(network="net0", range=f"{base}.{start}-{base}.{start + 2}"))
    return planned(*steps)


@given(plans(), st.sets(st.integers(0, 40)))
def test_maps_counts_and_what_is_picked_agree(plan: Configuration, taken: set[int]) -> None:
    network = plan.network("net0")
    units = _units(plan)
    held = [holding(network, f"{a}-{b}") for number, (a, b) in enumerate(units) if number in taken]

    [subnets, free, used, size] = read(NetworkFacts(network, held), "subnets", "free_count", "reserved_count", "size")

    pools = [pool for subnet in subnets for pool in subnet["pools"]]
    assert all(len(pool["map"]) == pool["size"] for pool in pools)
    assert all(pool["map"].count(".") == pool["free_count"] for pool in pools)
    assert (sum(pool["free_count"] for pool in pools), free + used) == (free, size)
    shown_free = [
        format_address(parse_address(pool["start"]) + place)
        for pool in pools
        for place, sign in enumerate(pool["map"])
        if sign == "."
    ]
    assert shown_free == [
        format_address(position)
        for number, (a, b) in enumerate(units)
        if number not in taken
        for position in range(parse_address(a), parse_address(b) + 1)
    ]


def _units(plan: Configuration) -> list[tuple[str, str]]:
    """List what the ledger would hand out, in its order."""
    if not list(plan.network("net0").pools()):
        return []
    line = Layout(plan).line("net0")
    ends = (line.unit(number) for number in range(line.size))
    return [(format_address(first), format_address(last)) for first, last in ends]


@pytest.mark.sampled
@pytest.mark.parametrize("name", FIELDS)
def test_every_field_can_be_written_as_json_and_as_a_cell(name: str) -> None:
    network = of_cases()
    facts = NetworkFacts(network, [holding(network, "192.0.2.10")], [instance("web", nic(network, "192.0.2.10"))])

    value = FIELDS[name].read(facts)

    document = json.dumps(value)
    assert json.dumps(json.loads(document)) == document
    assert "\n" not in FIELDS[name].write(value)
