"""Holdings of the ledger against rows of ours, with servers at work.

A server asks the ledger first and writes the row next, both while it keeps the subnet's record in common with others;
it tells the ledger last, when its transaction is over. So a holding without a row may be one that is about to have it.
Whoever looks closer takes the record for himself: then no transaction is open in the subnet, and every difference is
one that nobody will settle. Every ending names the generation: what is newer is never meant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.integrations.neutron.database.allocation_rows import HeldAddress
from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.maintenance.compare import LedgerReading, Seen, compare_holdings, expected_rows
from tenure.integrations.neutron.maintenance.drift import Drift
from tenure.integrations.neutron.maintenance.held_spans import HeldSpans
from tenure.integrations.neutron.maintenance.neutron_database import DATABASE_ERRORS, Database, waited
from tenure.integrations.neutron.maintenance.repair_networks import REFUSED, NetworkRepair
from tenure.integrations.neutron.maintenance.repair_rows import lock_record, locked_sides, note_generations
from tenure.integrations.neutron.transaction.ledger_plan import ledger_owner
from tenure.kernel.addressing.addresses import family_span, format_address
from tenure.kernel.addressing.ranges import parse_cidr
from tenure.kernel.errors import NotFound
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.service.apply.operations import (
    Allocate,
    Cancel,
    Confirm,
    EndCooling,
    ModifyHolding,
    Operation,
    Release,
    Shown,
)
from tenure.service.ledger.async_ledger import AsyncLedger

PAGE = 1000


class SubnetBusy(Exception):
    """A transaction is open in the subnet."""


@dataclass(slots=True)
class HoldingRepair:
    """The holdings of one subnet."""

    database: Database
    networks: NetworkRepair
    seen: Seen
    record: SubnetRecord
    others: HeldSpans

    def read(self) -> LedgerReading:
        """Read all holdings."""
        held = self.networks.holdings(self.record.id)
        return self._reading({each.row.first: each for each in held})

    def _reading(self, holdings: Mapping[int, Holding]) -> LedgerReading:
        return LedgerReading(self.networks.realm, holdings, self.others, parse_cidr(self.record.cidr))

    def settle(self, places: Sequence[int], *, dry: bool) -> list[Drift]:
        """Look at places with nobody at work in the subnet, and put right what still differs; return what did."""
        with self.database.writing(keep=not dry) as session:
            self._close(session)
            rows, ports = locked_sides(session, self.seen, places)
            expected = expected_rows(ports, rows)
            # Under the lock of the record, which a server shares from before its question to the ledger to its commit.
            reading = self._read(places)
            drifts = compare_holdings(self.record.id, expected, reading)
            if dry:
                return drifts
            # Without its row, nothing would tell which holding it is: the next round does it.
            able = [each for each in drifts if (_place(each) in expected) == (_place(each) in rows)]
            numbers = _unknown_generations(rows, expected, reading)
            told = self._repair(able, expected, reading, numbers)
            note_generations(session, self.record.id, numbers)
            return told

    def _close(self, session: Any) -> None:
        """Keep everybody from allocating in the subnet until the transaction ends, when those who do are done."""
        try:
            lock_record(session, self.record.id)
        except DATABASE_ERRORS as error:
            # Not InFlight: the record is one for all places, and ``by_halves`` would wait for it again and again.
            if waited(error):
                raise SubnetBusy from error
            raise

    def _read(self, places: Sequence[int]) -> LedgerReading:
        """Read the holdings of some places, in order."""
        name, wanted = self.networks.name(self.record.id), set(places)
        first, last = min(places), max(places)
        # ``after`` leaves out the address that it names; the first address of a family has none before it.
        start = None if first == family_span(first)[0] else format_address(first - 1)

        async def read(ledger: AsyncLedger) -> dict[int, Holding]:
            found: dict[int, Holding] = {}
            after = start
            while page := await ledger.holdings(name, after=after, limit=PAGE):
                found |= {each.row.first: each for each in page if each.row.first in wanted}
                if page[-1].row.first >= last:
                    break
                after = page[-1].address
            return found

        try:
            return self._reading(self.networks.reach.ask(read))
        except NotFound:
            return self._reading({})  # a dry run has not made the network

    def _repair(
        self, drifts: list[Drift], rows: Mapping[int, HeldAddress], reading: LedgerReading, generations: dict[int, int]
    ) -> list[Drift]:
        """Tell the ledger in one transaction; where that is refused, one by one. Its generations are written down."""
        todo = [drift for drift in drifts if drift.repairable]
        groups = [self._operations(rows.get(_place(each)), reading.holdings.get(_place(each))) for each in todo]
        told: list[Drift] = [drift for drift in drifts if not drift.repairable]
        for drift, answer in zip(todo, self._apply(groups), strict=True):
            if isinstance(answer, Exception):
                told.append(Drift(drift.kind, drift.subnet, f"{drift.text}; {answer}", drift.place, repairable=False))
                continue
            told.append(drift)
            holding = answer or reading.holdings.get(_place(drift))
            if _place(drift) in rows and holding is not None:
                generations[_place(drift)] = holding.generation
        return told

    def _apply(self, groups: list[list[Operation]]) -> list[Holding | Exception | None]:
        """Apply groups of operations, together if that can be; return what the last of each group made."""
        operations = [operation for group in groups for operation in group]
        if not operations:
            return [None for _ in groups]
        # Before the question: a question without an answer may have changed holdings as well.
        self.networks.changed(self.record.id)
        try:
            answers = iter(self._ask(operations))
            return [_last([next(answers) for _ in group]) for group in groups]
        except REFUSED:
            return [self._apply_one(group) for group in groups]

    def _apply_one(self, group: list[Operation]) -> Holding | Exception | None:
        try:
            return _last(self._ask(group)) if group else None
        except REFUSED as error:
            return error

    def _ask(self, operations: list[Operation]) -> list[Shown]:
        return self.networks.reach.ask(lambda ledger: ledger.apply(operations))

    def _operations(self, row: HeldAddress | None, holding: Holding | None) -> list[Operation]:
        """Name what leads from a holding to the one that should be."""
        if row is None:
            assert holding is not None
            return [self._ended(holding)]
        address, owner = format_address(row.place), ledger_owner(self.networks.realm, row.owner)
        network = self.networks.name(self.record.id)
        wish = Allocate(network=network, address=address, owner=owner, slot=address, reserved="force")
        if holding is None:
            return [wish]
        if holding.state is State.COOLING or holding.row.owner != owner:
            return [self._ended(holding), wish]
        ticket = self._ticket(holding)
        if holding.state is State.PENDING:
            return [Confirm(**ticket)]
        return [ModifyHolding(**ticket, state="held")] if holding.state is State.DRAINING else []

    def _ended(self, holding: Holding) -> Operation:
        kinds: dict[State, type[Cancel | EndCooling]] = {State.PENDING: Cancel, State.COOLING: EndCooling}
        return kinds.get(holding.state, Release)(**self._ticket(holding))

    def _ticket(self, holding: Holding) -> dict[str, Any]:
        return {
            "network": holding.network,
            "address": holding.address,
            "owner": str(holding.owner),
            "generation": holding.generation,
        }


def _unknown_generations(
    rows: Mapping[int, HeldAddress], expected: Mapping[int, HeldAddress], reading: LedgerReading
) -> dict[int, int]:
    """Find the generations of holdings that are as they should be, and whose rows do not know theirs."""
    unknown = [row for place, row in rows.items() if row.generation == 0 and expected.get(place) == row]
    found = [(row, reading.holdings.get(row.place)) for row in unknown]
    return {
        row.place: holding.generation for row, holding in found if holding is not None and _is_of(holding, row, reading)
    }


def _is_of(holding: Holding, row: HeldAddress, reading: LedgerReading) -> bool:
    return holding.state is State.HELD and holding.row.owner == ledger_owner(reading.realm, row.owner)


def _place(drift: Drift) -> int:
    assert drift.place is not None
    return drift.place


def _last(answers: list[Shown]) -> Holding | None:
    last = answers[-1] if answers else None
    return last if isinstance(last, Holding) else None
