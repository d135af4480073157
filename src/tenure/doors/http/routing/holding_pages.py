"""Holdings, page by page. A page costs what it shows, not what the ledger holds."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.pages import Paged
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.digits import LONGEST_STORED, read_digits
from tenure.kernel.errors import Invalid, NotFound
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.names import shown
from tenure.kernel.plan.edit_fields import read_member
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wire import encode, field_types, responses

LOOKED_AT_ONCE = 1000
MOST_LOOKED_AT = 20_000
"""Holdings after which a page with filters ends early, and its cursor goes on from there.

It reads ``LOOKED_AT_ONCE`` at a time, so it may look at up to as many more.
"""

MOST_NETWORKS = 200
"""Networks that one page of all holdings looks into; then it ends early, too."""

KindText = Annotated[str, Meta(description="The kind of the owner, such as instance.")]
SoughtText = Annotated[str, Meta(description="Part of an owner, a slot or a description.")]
LabelText = Annotated[str, field_types.told("name, or name=text", "team=shop", pattern="^[^=]")]
LabelTexts = Annotated[
    list[LabelText],
    Meta(description="name, or name=text; said more than once, all must fit."),
]


class HoldingsQuery(Paged, kw_only=True, forbid_unknown_fields=True):
    """Which holdings of a network."""

    state: field_types.StateText | None = None
    kind: KindText | None = None
    label: LabelTexts = msgspec.field(default_factory=list)
    text: SoughtText | None = None


class OwnedHoldings(HoldingsQuery, kw_only=True, forbid_unknown_fields=True):
    """Which holdings of a network; of one owner, if he is named."""

    owner: field_types.Owner | None = None


async def list_owned(ledger: AsyncLedger, network: str, wanted: OwnedHoldings) -> responses.Page[responses.Holding]:
    """Read one page of what an owner holds in a network. Cost: by what he holds everywhere."""
    fits, start = _filter(wanted), -1 if wanted.after is None else parse_address(wanted.after, field="after")
    held = sorted(await ledger.holdings(network, owner=wanted.owner), key=lambda holding: holding.row.first)
    rest = [each for each in held if each.row.first > start and (fits is None or fits(each))]
    items = rest[: wanted.limit]
    return _page(items, items[-1].last_address if len(rest) > len(items) else None)


async def list_page(ledger: AsyncLedger, network: str, wanted: HoldingsQuery) -> responses.Page[responses.Holding]:
    """Read one page; with filters it may be shorter than asked for, and still have a next."""
    page, _ = await _looked_through(ledger, network, wanted, MOST_LOOKED_AT)
    return page


async def _looked_through(
    ledger: AsyncLedger, network: str, wanted: HoldingsQuery, most_looked_at: int
) -> tuple[responses.Page[responses.Holding], int]:
    """Return one page of a network, and at how many holdings it looked."""
    fits = _filter(wanted)
    after = wanted.after
    items: list[Holding] = []
    looked = 0
    while True:
        # The page has no room for the last one read; it shows whether there is a next page.
        most = min(wanted.limit - len(items) + 1, LOOKED_AT_ONCE) if fits is None else LOOKED_AT_ONCE
        page = await ledger.holdings(network, after=after, limit=most)
        looked += len(page)
        for holding in page:
            if len(items) == wanted.limit:
                return _page(items, after), looked
            if fits is None or fits(holding):
                items.append(holding)
            # The last address: a prefix reaches beyond its first one.
            after = holding.last_address
        if len(page) < most:
            return _page(items, None), looked
        if looked >= most_looked_at:
            return _page(items, after), looked


async def list_everywhere(
    ledger: AsyncLedger, wanted: HoldingsQuery, own: frozenset[int] | None
) -> responses.Page[responses.Holding]:
    """Read one page of all networks, or of some.

    The cursor names a network by its number: names change, numbers do not.
    """
    # The cursor's network may be gone by now; then the list goes on with the next number.
    start, address = _cursor(wanted.after)
    every = [network for network in await ledger.networks() if own is None or network.id in own]
    networks = sorted(every, key=lambda network: network.id)
    items: list[responses.Holding] = []
    looked = 0
    for place, network in enumerate(each for each in networks if each.id >= start):
        if len(items) == wanted.limit or place == MOST_NETWORKS or looked >= MOST_LOOKED_AT:
            return responses.Page(items=items, next=f"{network.id}/")
        after = address if network.id == start and address else None
        part = msgspec.structs.replace(wanted, after=after, limit=wanted.limit - len(items))
        try:
            page, here = await _looked_through(ledger, network.name, part, MOST_LOOKED_AT - looked)
        except NotFound:  # removed or renamed in this very moment
            continue
        looked += here
        items.extend(page.items)
        if page.next is not None:
            return responses.Page(items=items, next=f"{network.id}/{page.next}")
    return responses.Page(items=items)


def _cursor(after: str | None) -> tuple[int, str]:
    said, slash, address = (after or "0/").partition("/")
    number = read_digits(said, longest=LONGEST_STORED)
    if not slash or number is None:
        raise Invalid(f"after: {shown(after)} is no cursor of this list", field="after")
    if address:
        parse_address(address, field="after")
    return number, address


def _page(items: list[Holding], after: str | None) -> responses.Page[responses.Holding]:
    return responses.Page(items=[encode.holding(each) for each in items], next=after)


def _filter(wanted: HoldingsQuery) -> Callable[[Holding], bool] | None:
    state = None if wanted.state is None else read_member(State, wanted.state, "state")
    labels = dict(read_label(text) for text in wanted.label)
    text = None if wanted.text is None else wanted.text.casefold()
    if state is None and wanted.kind is None and not labels and text is None:
        return None

    def fits(holding: Holding) -> bool:
        words = (holding.owner, holding.slot, holding.description)
        have = holding.labels
        return (
            state in (None, holding.state)
            and wanted.kind in (None, holding.owner.kind)
            and all(name in have and value in (None, have[name]) for name, value in labels.items())
            and (text is None or any(text in word.casefold() for word in words))
        )

    return fits


def read_label(text: str) -> tuple[str, str | None]:
    """Read what is asked of a label: that it is there, or what it says."""
    name, equals, value = text.partition("=")
    if not name:
        raise Invalid(f"label: {text[:80]!r} is neither a name nor name=text", field="label")
    return name, value if equals else None
