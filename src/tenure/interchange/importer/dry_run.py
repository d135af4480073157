"""The dry run: every item of a source held against the plan, the other items, and what the ledger holds.

The ledger's holdings are read once, in pages; what is kept in memory grows with the source, not with the ledger.
"""

import ipaddress
from bisect import bisect_left
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from tenure.interchange.formats.source_items import (
    Fault,
    Item,
    Oddity,
    Progress,
    Remark,
    Source,
    SourceHolding,
    SourcePlace,
    counted,
)
from tenure.interchange.importer.dry_run_report import DryRunReport
from tenure.interchange.importer.plan_draft import PlanDraft, fault_of
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import parse_cidr
from tenure.kernel.errors import AddressReserved, Invalid, TenureError
from tenure.kernel.holdings.holding_model import OWNED, Holding, State
from tenure.kernel.names import Owner, check_labels, check_name, check_slot, check_text, shown
from tenure.kernel.plan.edits import Edit
from tenure.kernel.plan.layout import Layout
from tenure.service.ledger.async_ledger import AsyncLedger

PAGE = 2000


class CheckedHolding(NamedTuple):
    """A holding of the source that may be written: checked, numbered, with its unit and its space."""

    number: int
    place: SourcePlace
    held: SourceHolding
    space: str
    first: int
    last: int
    owner: Owner
    state: State
    reach: str = "refuse"
    blocked: Remark | None = None

    @property
    def claim(self) -> tuple[str, str, str]:
        """Return what may hold at most one address."""
        return (self.held.network, self.owner, self.held.slot)


async def pages(ledger: AsyncLedger, network: str) -> AsyncIterator[list[Holding]]:
    """Read a network's holdings in order of address, a page at a time."""
    after = None
    while page := await ledger.holdings(network, after=after, limit=PAGE):
        yield page
        if len(page) < PAGE:
            return
        after = page[-1].last_address


class Examination:
    """One dry run: what may be written, and the report."""

    def __init__(self, source: Source, *, force: bool) -> None:
        self.report = DryRunReport(source.name)
        self.sought: list[CheckedHolding] = []
        self.plan = PlanDraft([], self.report)
        self._source = source
        self._force = force
        self._layouts: Mapping[str, Layout] = {}

    async def run(self, ledger: AsyncLedger, progress: Progress | None = None) -> None:
        """Examine everything; nothing is written."""
        # The plan first: holdings are judged by the plan as it will be, wherever its edits stand in the source.
        self.plan = PlanDraft(await ledger.spaces(), self.report)
        items = self._source.items
        for item in items:
            if isinstance(item.what, Edit):
                self.plan.take(item.place, item.what)
            elif isinstance(item.what, Remark):
                self.report.add(item.what)
        self._layouts = self.plan.layouts(items[0].place if items else SourcePlace(self._source.name))
        # Then each holding by itself, then all of them against each other, and at last against the ledger.
        total = sum(isinstance(item.what, SourceHolding) for item in items)
        numbered = (pair for pair in enumerate(items) if isinstance(pair[1].what, SourceHolding))
        for number, item in counted(numbered, progress, total):
            self._take(number, item)
        self._find_twins()
        await self._compare(ledger)
        self.report.new["holdings"] = len(self.sought)
        # Faults were found in several passes; the report has them in the order of the source.
        self.report.faults.sort(key=lambda remark: (remark.place.order, remark.field))
        self.report.oddities.sort(key=lambda remark: (remark.place.order, remark.field))

    def _take(self, number: int, item: Item) -> None:
        place, held = item.place, item.what
        assert isinstance(held, SourceHolding)
        faults = len(self.report.faults)
        draft = self.plan.drafts.get(held.network) if isinstance(held.network, str) else None
        if draft is None and not (isinstance(held.network, str) and held.network in self.plan.spoilt):
            self._fault(place, "network", "not_found", f"no network {shown(held.network)} in the ledger or the source")
        # Every field is read, so that one run names all errors of a line; the plan is asked only if there are none.
        owner, slot = self._checked(place, held)
        span = self._span(place, held)
        state = self._state(place, held)
        if draft is None or owner is None or slot is None or span is None or state is None:
            return
        unit = self._unit(place, held, span, owner, slot, draft.space) if faults == len(self.report.faults) else None
        if unit is not None:
            self.sought.append(CheckedHolding(number, place, held, draft.space, *unit[0], owner, state, *unit[1]))

    def _fault(self, place: SourcePlace, field: str, code: str, reason: str) -> None:
        self.report.add(Fault(place, field, code, reason))

    def _checked(self, place: SourcePlace, held: SourceHolding) -> tuple[Owner | None, str | None]:
        """Check everything that is checked alone, each field by itself."""
        owner = slot = None
        try:
            owner = Owner(held.owner)
        except Invalid as error:
            self.report.add(fault_of(place, error))
        try:
            slot = check_slot(held.slot)
        except Invalid as error:
            self.report.add(fault_of(place, error))
        try:
            _check_notes(held)
        except Invalid as error:
            self.report.add(fault_of(place, error))
        return owner, slot

    def _span(self, place: SourcePlace, held: SourceHolding) -> tuple[int, int | None] | None:
        """Read an address, or a prefix: its position, and its length where one is written."""
        try:
            if isinstance(held.address, str) and "/" in held.address:
                return _prefix(held.address)
            return parse_address(held.address), None
        except Invalid as error:
            self.report.add(fault_of(place, error))
            return None

    def _state(self, place: SourcePlace, held: SourceHolding) -> State | None:
        try:
            state = State(held.state)
        except ValueError:
            reason = f"{shown(held.state)} is none of {', '.join(State)}"
            self._fault(place, "state", "invalid", reason)
            return None
        if state is State.COOLING or (state is State.PENDING and held.until is not None):
            reason = f"a {state} holding ends by itself and is not brought in; left out"
            self.report.add(Oddity(place, "state", "left_out", reason))
            return None
        return state

    def _unit(
        self, place: SourcePlace, held: SourceHolding, span: tuple[int, int | None], owner: Owner, slot: str, space: str
    ) -> tuple[tuple[int, int], tuple[str, Remark | None]] | None:
        """Find what would be held by the rules of the plan, how far it must reach for that, and what to tell if so."""
        layout, (position, length) = self._layouts[space], span
        kept_away: tuple[str, Remark | None] = ("refuse", None)
        try:
            subnet = layout.subnet_at(held.network, position)
            unit = subnet.unit_at(position)
            layout.check_wanted(held.network, position, owner, slot)
        except AddressReserved as error:
            # check_wanted comes last, so subnet and unit are known here.
            kept_away = ("force", self._kept_away(place, held, owner, layout, error))
        except TenureError as error:
            if held.network not in self.plan.spoilt:  # what follows from another fault is not told
                self.report.add(fault_of(place, error))
            return None
        if length not in (None, subnet.unit):
            reason = f"{subnet.cidr} hands out /{subnet.unit}, not /{length}"
            if subnet.unit_size == 1:
                reason = (
                    f"write {format_address(position)} without the length: {subnet.cidr} hands out single addresses"
                )
            self._fault(place, "address", "invalid", reason)
            return None
        return (unit.first, unit.last), kept_away

    def _kept_away(
        self, place: SourcePlace, held: SourceHolding, owner: Owner, layout: Layout, error: AddressReserved
    ) -> Remark:
        """Tell that an address is kept away; nobody hears of it where the ledger has the holding already."""
        try:
            layout.check_wanted(held.network, parse_address(error.address), owner, held.slot, "force")
        except AddressReserved as retired:
            return Fault(place, "address", retired.code, retired.reason)
        if self._force or held.reserved == "force":
            return Oddity(place, "address", error.code, f"{error.address} is {error.reason}; imported by force")
        reason = f"{error.address} is {error.reason}; import with force to hold it all the same"
        return Fault(place, "address", error.code, reason)

    def _find_twins(self) -> None:
        """Tell addresses, and owners' slots, that come twice in the source; drop the later ones."""
        self.sought.sort(key=lambda one: (one.space, one.first, one.number))
        kept: list[CheckedHolding] = []
        claims: dict[tuple[str, str, str], CheckedHolding] = {}
        for one in self.sought:
            # Kept holdings are disjoint and in order, so only the last of them can reach the next holding.
            before = kept[-1] if kept and kept[-1].space == one.space and kept[-1].last >= one.first else None
            if before is not None:
                # The number is the first field: the later line gets the error, whichever address is lower.
                earlier, later = sorted((one, before))
                reason = f"{later.held.address} is also at {earlier.place}, for {earlier.owner}"
                self._fault(later.place, "address", "duplicate_address", reason)
                continue
            kept.append(one)
            if one.state in OWNED:
                other = claims.setdefault(one.claim, one)
                if other is not one:
                    self._slot_twins(one, other)
        self.sought = kept

    def _slot_twins(self, one: CheckedHolding, other: CheckedHolding) -> None:
        earlier, later = sorted((one, other))
        slot = f", slot {later.held.slot!r}," if later.held.slot else ""
        reason = f"{later.owner}{slot} is also at {earlier.place}, with {earlier.held.address}; give one another slot"
        self._fault(later.place, "owner", "duplicate_owner", reason)

    async def _compare(self, ledger: AsyncLedger) -> None:
        """Hold the source against what the ledger holds, in one reading."""
        comparison = _Comparison(self.sought, self.plan.gateways, self.report)
        spaces = {one.space for one in self.sought} | {space for space, _ in self.plan.gateways}
        for space in await ledger.spaces():
            if space.name in spaces:
                for network in space.networks:
                    async for page in pages(ledger, network):
                        for holding in page:
                            comparison.meet(holding, space.name)
        self.sought = comparison.unwritten()
        # Only now: a reserved address that its owner holds in the ledger already is no error.
        for one in self.sought:
            if one.blocked is not None:
                self.report.add(one.blocked)


class _Comparison:
    """What is sought, found by address and by claim."""

    def __init__(
        self, sought: Sequence[CheckedHolding], gateways: Mapping[tuple[str, str], SourcePlace], report: DryRunReport
    ) -> None:
        self._sought = sought
        self._keys = [(one.space, one.first) for one in sought]
        self._claims = {one.claim: index for index, one in enumerate(sought) if one.state in OWNED}
        self._draining = {one.claim: index for index, one in enumerate(sought) if one.state not in OWNED}
        self._elsewhere: list[tuple[int, str]] = []
        self._gateways = {(space, parse_address(text)): place for (space, text), place in gateways.items()}
        self._report = report
        self._there: set[int] = set()

    def unwritten(self) -> list[CheckedHolding]:
        """Return what the ledger does not have yet, and tell whose slot is taken by something else."""
        # Judged at the end: the reading may meet the claim at its own address later on.
        for index, reason in self._elsewhere:
            if index not in self._there:
                self._report.add(Fault(self._sought[index].place, "owner", "owner_holds_another", reason))
        return [one for index, one in enumerate(self._sought) if index not in self._there]

    def meet(self, holding: Holding, space: str) -> None:
        """Hold one holding of the ledger against everything that is sought."""
        row = holding.row
        place = bisect_left(self._keys, (space, row.first))
        # What is sought is disjoint by now, so of all that begin below only the nearest can reach the holding.
        if place > 0 and self._keys[place - 1][0] == space and self._sought[place - 1].last >= row.first:
            self._judge(place - 1, holding)
        while place < len(self._keys) and self._keys[place][0] == space and self._keys[place][1] <= row.last:
            self._judge(place, holding)
            place += 1
        if row.state in OWNED:
            self._note_elsewhere((holding.network, row.owner, row.slot), holding)
        if self._gateways and (gateway := self._gateways.get((space, row.first))):
            reason = f"{holding.address} is held by {row.owner} in the ledger"
            self._report.add(Fault(gateway, "gateway", "address_in_use", reason))

    def _note_elsewhere(self, claim: tuple[str, str, str], holding: Holding) -> None:
        """Note that a claim's slot is taken; a draining one cannot come in behind the one that took its slot."""
        for index in (self._claims.get(claim), self._draining.get(claim)):
            if index is not None and self._sought[index].first != holding.row.first:
                what = f"{holding.owner} holds {holding.address} there in the ledger"
                self._elsewhere.append((index, f"{what}; release it first, or give another slot"))

    def _judge(self, index: int, holding: Holding) -> None:
        one = self._sought[index]
        same = (*one.claim, one.first) == (holding.network, holding.row.owner, holding.slot, holding.row.first)
        if not same or holding.state is State.COOLING:
            how = "cooling off after" if holding.state is State.COOLING else "held by"
            slot = f" (slot {holding.slot!r})" if holding.slot else ""
            reason = f"{format_address(holding.row.first)} is {how} {holding.owner}{slot} in network {holding.network}"
            self._report.add(Fault(one.place, "address", "address_in_use", reason))
            return
        self._there.add(index)
        self._report.already["holdings"] += 1
        if differs := _differs(one, holding):
            reason = f"there already, with other {', '.join(differs)}; the ledger's stay"
            self._report.add(Oddity(one.place, differs[0], "differs", reason))


def _differs(one: CheckedHolding, holding: Holding) -> list[str]:
    pairs = {
        "state": (one.state, holding.state),
        "labels": (one.held.labels or {}, holding.labels),
        "description": (one.held.description, holding.description),
        "carrier": (one.held.carrier, holding.carrier),
        "plan": (one.held.plan, holding.plan),
    }
    return [name for name, (ours, theirs) in pairs.items() if ours != theirs]


def _prefix(text: str) -> tuple[int, int]:
    """Read a prefix; an address in the middle of one is told to be written without the length."""
    try:
        cidr = parse_cidr(text, field="address")
    except Invalid:
        try:
            alone = ipaddress.ip_interface(text).ip
        except ValueError:
            alone = None
        if alone is None:
            raise
        problem = f"address: {text[:80]!r} is an address in a block; write {alone} without the length"
        raise Invalid(problem, field="address") from None
    return cidr.first, cidr.prefix


def _check_notes(held: SourceHolding) -> None:
    if held.labels is not None:
        check_labels(held.labels)
    if held.description != "":
        check_text(held.description, field="description")
    if held.carrier is not None:
        check_name(held.carrier, field="carrier")
    if held.plan is not None:
        check_name(held.plan, field="plan")
