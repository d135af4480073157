"""Holdings that are written by hand say byte for byte what the usual way says."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings.holding_model import Row, State
from tenure.kernel.names import Owner
from tenure.kernel.plan.layout import Layout
from tenure.service.allocator.claim import Granted
from tenure.service.ledger.engine_ledger import server_of
from tenure.service.read.presenter import holding_of
from tenure.wire import encode
from tenure.wire.encode import granted_json

SUBNETS = ("10.0.0.0/24", "2001:db8::/64")
SPANS = (("10.0.0.7", 0), ("10.0.0.16", 15), ("2001:db8::7", 0), ("2001:db8::100", 255))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""More than any name may be: whoever writes by hand must not rely on what others refuse."""

DETAILS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional={
    "by": st.tuples(TEXTS, st.none() | TEXTS).map(list),
    "labels": st.dictionaries(TEXTS, TEXTS, max_size=2),
    "description": TEXTS,
    "carrier": TEXTS,
    "plan": TEXTS,
})  # fmt: skip


@pytest.fixture(scope="module", params=["net1", 'na"me\\ä'], ids=["plain", "quoted"])
def layout(request: pytest.FixtureRequest) -> Layout:
    """Lay out a network of both families, one of them with a gateway."""

    async def make() -> Layout:
        async with await tenure.open_async("memory:") as ledger:
            await ledger.add_network(request.param)
            await ledger.add_subnet(request.param, SUBNETS[0], gateway="10.0.0.1")
            await ledger.add_subnet(request.param, SUBNETS[1])
            return await server_of(ledger).layout(request.param)

    return asyncio.run(make())


@given(
    span=st.sampled_from(SPANS),
    names=st.tuples(TEXTS, TEXTS, st.none() | TEXTS),
    state=st.sampled_from(State),
    generation=st.integers(0, 2**62),
    times=st.tuples(st.integers(0, 2**52), st.none() | st.integers(0, 2**52)),
    details=DETAILS,
)
def test_every_holding_is_written_as_the_usual_way_writes_it(
    layout: Layout,
    span: tuple[str, int],
    names: tuple[str, str, str | None],
    state: State,
    generation: int,
    times: tuple[int, int | None],
    details: dict[str, Any],
) -> None:
    first = parse_address(span[0])
    owner, slot, request = names
    [network] = layout.configuration.networks.values()
    row = Row(
        7, network.id, first, first + span[1], Owner.trusted(owner), slot, state, generation, *times, request, details
    )

    assert granted_json(Granted(row, layout)) == msgspec.json.encode(encode.holding(holding_of(row, layout)))
