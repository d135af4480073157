"""Arbitrary kernel values for property tests: only well-formed ones, of both families."""

import string

from hypothesis import strategies as st

from tenure.kernel.addressing.addresses import V4_BASE, V6_BASE, format_address, width
from tenure.kernel.addressing.ranges import AddressRange, Cidr
from tenure.kernel.names import Owner
from tenure.kernel.plan.plan_model import (
    Connection,
    KeepBack,
    Network,
    NetworkKind,
    Notes,
    Policy,
    Pool,
    PreAllocation,
    Reserved,
    Subnet,
)

v4_positions = st.integers(V4_BASE, V4_BASE + 2**32 - 1)
v6_positions = st.integers(V6_BASE, V6_BASE + 2**128 - 1)
positions = v4_positions | v6_positions

printable = st.characters(codec="utf-8", exclude_categories=["C", "Z"])
names = st.text(printable, min_size=1, max_size=12)
texts = st.text(printable | st.sampled_from(" \n\t"), max_size=20)
owners = st.builds(
    lambda kind, ident: Owner(f"{kind}/{ident}"), st.text(string.ascii_letters, min_size=1, max_size=5), names
)
notes = st.builds(Notes, st.dictionaries(names, texts, max_size=3), texts)


@st.composite
def ranges(draw: st.DrawFn, within: AddressRange | None = None) -> AddressRange:
    """Draw a range of one family, or inside another range."""
    if within is None:
        family = draw(st.sampled_from([v4_positions, v6_positions]))
        first, last = sorted([draw(family), draw(family)])
    else:
        first, last = sorted(draw(st.lists(st.integers(within.first, within.last), min_size=2, max_size=2)))
    return AddressRange(first, last)


@st.composite
def cidrs(draw: st.DrawFn) -> Cidr:
    """Draw a block of either family."""
    position = draw(positions)
    prefix = draw(st.integers(0, width(position)))
    host_bits = width(position) - prefix
    base = V6_BASE if position >= V6_BASE else V4_BASE
    return Cidr(base + ((position - base) >> host_bits << host_bits), prefix)


@st.composite
def pools(draw: st.DrawFn, within: AddressRange) -> Pool:
    """Draw a pool inside a block."""
    return Pool(
        range=draw(ranges(within)),
        name=draw(st.none() | names),
        policy=draw(st.sampled_from(Policy)),
        cooling_s=draw(st.integers(0, 86400)),
        retired=draw(st.booleans()),
        notes=draw(notes),
    )


@st.composite
def subnets(draw: st.DrawFn) -> Subnet:
    """Draw a subnet with what it may hold; whether it passes judgement is not asked."""
    cidr = draw(cidrs())
    inside = st.integers(cidr.first, cidr.last)
    return Subnet(
        cidr=cidr,
        uuid=str(draw(st.uuids())),
        name=draw(st.none() | names),
        gateway=draw(st.none() | inside),
        dns=tuple(format_address(position) for position in draw(st.lists(positions, max_size=2))),
        dhcp=draw(st.booleans()),
        zones=tuple(draw(st.lists(names, max_size=2))),
        unit=draw(st.integers(cidr.prefix, width(cidr.first))),
        keep_back=draw(st.frozensets(st.sampled_from(KeepBack))),
        pools=tuple(draw(st.lists(pools(cidr.range), max_size=2))),
        reserved=tuple(
            draw(st.lists(st.builds(Reserved, ranges(cidr.range), texts, st.none() | names, notes), max_size=2))
        ),
        retired=draw(st.booleans()),
        notes=draw(notes),
    )


networks = st.builds(
    Network,
    id=st.integers(1, 2**40),
    name=names,
    uuid=st.uuids().map(str),
    kind=st.sampled_from(NetworkKind),
    mac_prefix=st.none() | st.just("aa:bb:cc"),
    tags=st.lists(names, max_size=2).map(tuple),
    subnets=st.lists(subnets(), max_size=3).map(tuple),
    preallocations=st.lists(
        st.builds(PreAllocation, owners, positions, names | st.just(""), st.none() | names, notes), max_size=2
    ).map(tuple),
    retired=st.booleans(),
    notes=notes,
    connections=st.lists(st.builds(Connection, names, names, texts, texts), max_size=2).map(tuple),
    serial=st.integers(1, 2**40),
    created_us=st.integers(0, 2**60),
    modified_us=st.integers(0, 2**60),
)
