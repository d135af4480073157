"""What may be picked automatically: the range without restricted and static, in whole blocks of the prefix."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.integrations.bosh.model.document_model import CloudSubnet
from tenure.integrations.bosh.model.pool_ranges import dynamic_ranges
from tenure.kernel.addressing.ranges import AddressRange, Cidr, parse_cidr, parse_range
from tests.integrations.bosh.documents.configs import WORKED, accepted, on_lab, subnet, told, warned


def test_the_base_subnet_gives_all_but_its_ends_and_its_gateway() -> None:
    assert told(dynamic_ranges(subnet())) == ["172.20.5.2-172.20.5.14"]


def test_b2_reserved_addresses_are_not_given() -> None:
    described = on_lab(reserved=["172.20.5.2", "172.20.5.4"])

    assert told(dynamic_ranges(subnet(described))) == ["172.20.5.3", "172.20.5.5-172.20.5.14"]


def test_b3_static_addresses_are_not_given() -> None:
    described = on_lab(reserved=["172.20.5.3"], static=["172.20.5.2", "172.20.5.4"])

    assert told(dynamic_ranges(subnet(described))) == ["172.20.5.5-172.20.5.14"]


def test_b5_a_reserved_block_over_the_network_id_and_the_gateway_is_left_out_once() -> None:
    described = {"range": "192.168.7.0/24", "gateway": "192.168.7.1", "reserved": "192.168.7.0/28"}

    assert told(dynamic_ranges(subnet(described))) == ["192.168.7.16-192.168.7.254"]


def test_b17_a_block_of_two_gives_nothing_unless_it_says_point_to_point() -> None:
    closed, _ = warned({"range": "172.20.5.0/31"})

    assert dynamic_ranges(closed) == []
    assert told(dynamic_ranges(subnet({"range": "172.20.5.0/31", "point_to_point": True}))) == ["172.20.5.0-172.20.5.1"]


def test_i1_i2_the_last_address_of_an_ipv6_range_is_not_given() -> None:
    described = {"range": "2001:db8:5::/120", "gateway": "2001:db8:5::1"}

    assert told(dynamic_ranges(subnet(described))) == ["2001:db8:5::2-2001:db8:5::fe"]
    reserved = subnet({**described, "reserved": "2001:db8:5::/124"})
    assert told(dynamic_ranges(reserved)) == ["2001:db8:5::10-2001:db8:5::fe"]


def test_i4_blocks_that_touch_what_is_restricted_are_not_given() -> None:
    [free] = dynamic_ranges(subnet({"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28}))

    assert str(free) == "10.10.0.16-10.10.0.239"
    assert free.size == 14 * 16


def test_i5_when_every_block_touches_something_nothing_is_given() -> None:
    assert dynamic_ranges(subnet({"range": "10.10.0.0/27", "gateway": "10.10.0.1", "prefix": 28})) == []


def test_a_static_base_address_takes_its_whole_block() -> None:
    described = {"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 26, "static": ["10.10.0.64"]}

    assert told(dynamic_ranges(subnet(described))) == ["10.10.0.128-10.10.0.191"]


def test_the_worked_example_has_fourteen_blocks_for_pods() -> None:
    networks = accepted(WORKED).networks
    drawn = {name: [told(dynamic_ranges(each)) for each in network.subnets] for name, network in networks.items()}

    assert drawn["apps"] == [
        ["10.44.16.8-10.44.16.9", "10.44.16.14-10.44.16.62"],
        ["10.44.17.8-10.44.17.9", "10.44.17.14-10.44.17.62"],
    ]
    assert drawn["build"] == [["10.44.24.2-10.44.24.14"]]
    assert drawn["pods6"] == [["2001:db8:44:101::-2001:db8:44:10e:ffff:ffff:ffff:ffff"]]
    assert drawn["edge"] == [[], []]
    assert drawn["pubpool"] == [[]]


def test_the_largest_ranges_are_never_counted_through() -> None:
    reserved = tuple(parse_range(f"2001:db8:{number:x}::/64") for number in range(1, 2000))

    drawn = dynamic_ranges(CloudSubnet(range=parse_cidr("2001::/16"), restricted=reserved, prefix=128))

    assert len(drawn) == 2000


BLOCK = parse_cidr("192.0.2.0/24")


@st.composite
def subnets(draw: st.DrawFn) -> CloudSubnet:
    """Draw a subnet of 16 to 256 addresses with holes, some over each other or outside, and a prefix."""
    cidr = Cidr(BLOCK.first, draw(st.integers(24, 28)))
    firsts = draw(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 12)), max_size=8))
    holes = [AddressRange(BLOCK.first + first, BLOCK.first + first + more) for first, more in firsts]
    cut = draw(st.integers(0, len(holes)))
    return CloudSubnet(
        range=cidr, restricted=tuple(holes[:cut]), static=tuple(holes[cut:]), prefix=draw(st.integers(cidr.prefix, 32))
    )


@given(subnets())
def test_exactly_the_aligned_blocks_that_touch_nothing_are_given(drawn: CloudSubnet) -> None:
    assert drawn.range is not None
    size = 1 << (32 - drawn.prefix)
    taken = {position for hole in (*drawn.restricted, *drawn.static) for position in range(hole.first, hole.last + 1)}
    wanted = [
        position
        for base in range(drawn.range.first, drawn.range.last + 1, size)
        if taken.isdisjoint(range(base, base + size))
        for position in range(base, base + size)
    ]

    given_out = [position for piece in dynamic_ranges(drawn) for position in range(piece.first, piece.last + 1)]

    assert given_out == wanted
