"""One round over a deployment: every subnet looked at, drift told and, where that is wanted, repaired."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.integrations.neutron.maintenance import ledger_ownership
from tenure.integrations.neutron.maintenance.compare import (
    Seen,
    compare_coming,
    compare_holdings,
    compare_outside,
    compare_rows,
    compare_subnet,
    expected_rows,
)
from tenure.integrations.neutron.maintenance.drift import Drift, DriftOutcome, DriftReport
from tenure.integrations.neutron.maintenance.neutron_database import Database, InFlight, by_halves, chunks
from tenure.integrations.neutron.maintenance.neutron_settings import NeutronSettings
from tenure.integrations.neutron.maintenance.neutron_tables import count_allocations
from tenure.integrations.neutron.maintenance.ports_in_flight import BULK_S
from tenure.integrations.neutron.maintenance.repair_holdings import HoldingRepair, SubnetBusy
from tenure.integrations.neutron.maintenance.repair_networks import REFUSED, NetworkRepair
from tenure.integrations.neutron.maintenance.repair_rows import (
    all_ids,
    drop_unreadable,
    repair_rows,
    repair_subnet,
    see,
)
from tenure.integrations.neutron.options import LEDGER
from tenure.integrations.neutron.transaction.ledger_client import Reach

Progress = Callable[[int, int | None], None]

# Holdings come in smaller pieces: servers wait for the subnet's record while the ledger works on a piece.
ROWS_AT_ONCE, HOLDINGS_AT_ONCE = 1000, 250
LEDGER_PATIENCE_S = 30.0
"""For how long the ledger is waited for: a record of Neutron's is locked meanwhile, and servers wait for that."""


def verify(settings: NeutronSettings, progress: Progress, *, grace_s: int = BULK_S) -> DriftReport:
    """Tell what is not as Neutron has it; change nothing."""
    with _opened(settings, progress, dry=True, grace_s=grace_s) as tending:
        ledger_ownership.check(tending.database, tending.networks, settings)
        return tending.run()


def reconcile(
    settings: NeutronSettings, progress: Progress, *, dry: bool = False, grace_s: int = BULK_S
) -> DriftReport:
    """Repair what is not as Neutron has it."""
    with _opened(settings, progress, dry=dry, grace_s=grace_s) as tending:
        ledger_ownership.check(tending.database, tending.networks, settings)
        return tending.run()


def move_in(
    settings: NeutronSettings,
    progress: Progress,
    *,
    take_over: bool = False,
    remove_held: bool = False,
    leave_conflicts: bool = False,
    dry: bool = False,
) -> DriftReport:
    """Bring in what another driver, or the other mode, kept; then agree on it, unless something is in the way.

    It looks first: while there is what cannot be repaired, nothing is written, unless conflicts are to be left. No
    server is at work: a row that has no port will get none, and a subnet may go to another space. A ledger that knew
    another deployment loses the networks of it that hold addresses only if that is said.
    """
    with _opened(settings, _silent, dry=True, moving=True, may_make=not dry) as looking:
        ledger_ownership.begin(looking.database, looking.networks, settings, take_over=take_over, dry=True)
        spares = ledger_ownership.is_anothers(looking.database, looking.networks, settings) and not remove_held
        if spares and looking.networks is not None:
            ledger_ownership.check_taking_over(looking.database, looking.networks)
        looking.spares_held = spares
        # First a look at everything with nothing written, then the same round in earnest.
        report = looking.run()
    if dry or not _may_agree(report, leave_conflicts):
        return report
    with _opened(settings, progress, dry=False, moving=True, may_make=True) as tending:
        tending.spares_held = spares
        agreement = ledger_ownership.begin(tending.database, tending.networks, settings, take_over=take_over, dry=False)
        report = tending.run()
        # The changes of an open transaction have not been compared: the import is to be run again.
        if not report.in_flight and _may_agree(report, leave_conflicts):
            look = partial(_agrees, tending, report, leave_conflicts)
            report.agreed = ledger_ownership.finish(tending.database, agreement, look)
        return report


def _may_agree(report: DriftReport, leave_conflicts: bool) -> bool:
    return not report.left or (leave_conflicts and report.leavable)


def _agrees(tending: "Round", report: DriftReport, leave_conflicts: bool) -> bool:
    """Look once more, after everything was repaired; what is found and not told yet is told."""
    # A server may have changed something behind the round; now the agreement is locked, and its requests wait.
    again = replace(tending, dry=True, progress=_silent, report=DriftReport(report.mode)).run()
    told = {(drift.kind, drift.subnet, drift.place) for drift in report.left}
    report.found += [each for each in again.found if (each[0].kind, each[0].subnet, each[0].place) not in told]
    return len(again.found) == len(again.left) and _may_agree(again, leave_conflicts)


def _silent(done: int, total: int | None) -> None:
    """Tell nobody."""


@contextmanager
def _opened(
    settings: NeutronSettings,
    progress: Progress,
    *,
    dry: bool,
    moving: bool = False,
    may_make: bool = False,
    grace_s: int = 0,
) -> "Iterator[Round]":
    database = Database(settings.database)
    reach = None
    if settings.mode == LEDGER:
        reach = Reach(settings.ledger or "", LEDGER_PATIENCE_S, may_make=may_make, reading=dry)
    networks = None if reach is None else NetworkRepair(reach, settings.realm, moving)
    try:
        yield Round(settings, database, networks, dry, grace_s, progress, DriftReport(settings.mode, folds=not moving))
    finally:
        database.close()
        if reach is not None:
            reach.close()


@dataclass(slots=True)
class Round:
    """One round."""

    settings: NeutronSettings
    database: Database
    networks: NetworkRepair | None
    dry: bool
    grace_s: int
    progress: Progress
    report: DriftReport
    spares_held: bool = False
    _done: int = field(default=0)
    _total: int = field(default=0)

    def run(self) -> DriftReport:
        """Look at everything."""
        with self.database.reading() as session:
            self._total = count_allocations(session) * (1 if self.networks is None else 2)
        if self.networks is not None:
            # Once a round: a network that seems to differ is read again, under a lock, before it is repaired.
            self.networks.read()
            if self.dry:
                self._note_spaces(self.networks)
        for subnet in all_ids(self.database):
            self._subnet(subnet)
        if self.networks is not None:
            self._extra_networks(self.networks)
        return self.report

    def _subnet(self, subnet: str) -> None:
        seen = self._with_record(self._see(subnet))
        self._with_readable_rows(seen)
        if seen.record is None or (seen.truth is None and seen.blind is None):
            return  # it went, or is in flight
        self.report.subnets += 1
        self.report.addresses += len(seen.ports)
        self.report.note(compare_outside(seen), DriftOutcome.LEFT)
        # The rows before the holdings: in the ledger, what the rows say is compared and repaired.
        seen = self._with_rows(seen)
        self.report.note(compare_coming(seen), DriftOutcome.IN_FLIGHT)
        if self.networks is not None and seen.record is not None:
            self._with_ledger(self.networks, seen, seen.record)

    def _see(self, subnet: str) -> Seen:
        return see(self.database, subnet, self.grace_s)

    def _with_record(self, seen: Seen) -> Seen:
        """Compare the record, and return what is seen when it is as it should be."""
        space = None if seen.truth is None else self.settings.spaces.at(seen.truth.site)
        suspects = compare_subnet(seen, space)
        if not suspects or seen.blind is not None:
            self.report.note(
                suspects, DriftOutcome.LEFT
            )  # Neutron's own row cannot be read: the rest of it is compared
            return seen
        if self.dry:
            self.report.note(suspects, DriftOutcome.FOUND)
            record = None if seen.truth is None else _like(seen.record, seen.truth.record(space))
            return replace(seen, record=record, planned=True)
        try:
            self.report.note(repair_subnet(self.database, seen, self.settings.spaces), DriftOutcome.REPAIRED)
        except InFlight:
            self.report.note(suspects, DriftOutcome.IN_FLIGHT)
        return self._see(seen.id)

    def _with_readable_rows(self, seen: Seen) -> None:
        """Tell which rows cannot be read, and put away those that are ours; they are missing then."""
        outcome = DriftOutcome.FOUND
        if not self.dry and any(each.repairable for each in seen.unreadable):
            try:
                drop_unreadable(self.database, seen.id)
                outcome = DriftOutcome.REPAIRED
            except InFlight:
                outcome = DriftOutcome.IN_FLIGHT
        self.report.note(seen.unreadable, outcome)

    def _with_rows(self, seen: Seen) -> Seen:
        """Compare the rows, and return what is seen when they are as they should be."""
        suspects = {each.place or 0: each for each in compare_rows(seen.id, seen.carriers(), seen.rows)}
        if self.dry or not suspects:
            self.report.note(suspects.values(), DriftOutcome.FOUND)
            self._advance(len(seen.ports))
            return seen
        kinds = {place: each.kind for place, each in suspects.items()}
        for chunk in chunks(sorted(suspects), ROWS_AT_ONCE):
            work = by_halves(chunk, lambda places: repair_rows(self.database, seen, kinds, places))
            for places, repaired in work:
                self._note(suspects, places, repaired)
            self._advance(len(chunk))
        self._advance(len(seen.ports) - len(suspects))
        return self._see(seen.id)

    def _note(self, suspects: dict[int, Drift], places: Sequence[int], settled: list[Drift] | None) -> None:
        """Note what became of suspects; None: a transaction is open behind them."""
        if settled is None:
            self.report.note([suspects[place] for place in places if place in suspects], DriftOutcome.IN_FLIGHT)
        else:
            self.report.note(settled, DriftOutcome.FOUND if self.dry else DriftOutcome.REPAIRED)

    def _with_ledger(self, networks: NetworkRepair, seen: Seen, record: SubnetRecord) -> None:
        """Compare the network of a subnet, and all that is held in it."""
        suspects = networks.compare(record)
        if suspects and seen.planned:
            self.report.note(suspects, DriftOutcome.FOUND)
        elif suspects and not self._network(networks, record, suspects):
            self._advance(len(seen.ports))
            return
        holdings = HoldingRepair(self.database, networks, seen, record, networks.others(record))
        rows = expected_rows(seen.carriers(), seen.rows)
        found = {each.place or 0: each for each in compare_holdings(seen.id, rows, holdings.read())}
        if seen.planned:
            self.report.note(found.values(), DriftOutcome.FOUND)
            self._advance(len(seen.ports))
            return
        busy = False
        # A row that does not know its generation is no drift, and told to nobody; it is written down in passing.
        unknown = set() if self.dry else {place for place, row in rows.items() if row.generation == 0}
        places = sorted(unknown | found.keys())
        for chunk in chunks(places, HOLDINGS_AT_ONCE):
            # A busy subnet is left at the first wait: each further piece would wait for the same lock.
            busy = busy or not self._holdings(holdings, found, chunk)
            if busy:
                self._note(found, chunk, None)
            self._advance(len(chunk))
        self._advance(len(seen.ports) - len(places))

    def _network(self, networks: NetworkRepair, record: SubnetRecord, suspects: list[Drift]) -> bool:
        """Settle the network of a subnet; tell whether one is there to hold addresses in, or would be."""
        try:
            settled = networks.repair(self.database, record.id, dry=self.dry)
            self.report.note(settled, DriftOutcome.FOUND if self.dry else DriftOutcome.REPAIRED)
            return all(each.repairable for each in settled)
        except InFlight:
            self.report.note(suspects, DriftOutcome.IN_FLIGHT)
        except REFUSED as error:
            told = [Drift(each.kind, each.subnet, f"{each.text}; {error}", repairable=False) for each in suspects]
            self.report.note(told, DriftOutcome.LEFT)
        return False

    def _holdings(self, holdings: HoldingRepair, suspects: dict[int, Drift], chunk: Sequence[int]) -> bool:
        """Settle holdings; False: a transaction is open in the subnet."""
        try:
            for places, settled in by_halves(chunk, lambda some: holdings.settle(some, dry=self.dry)):
                self._note(suspects, places, settled)
        except SubnetBusy:
            return False
        return True

    def _extra_networks(self, networks: NetworkRepair) -> None:
        # Read anew: servers have made and removed subnets since the round began.
        networks.read()
        for subnet in sorted(networks.subnet_ids() - set(all_ids(self.database))):
            if networks.moving and self._spared(networks, subnet):
                continue
            try:
                drifts = networks.remove(self.database, subnet, dry=self.dry)
                self.report.note(drifts, DriftOutcome.FOUND if self.dry else DriftOutcome.REPAIRED)
            except InFlight:
                # The record is written and not committed: the subnet is just being made.
                drift = Drift("network-extra", subnet, f"network {networks.name(subnet)!r} stands for no subnet yet")
                self.report.note([drift], DriftOutcome.IN_FLIGHT)
            except REFUSED as error:
                text = f"network {networks.name(subnet)!r} stands for no subnet; {error}"
                self.report.note([Drift("network-extra", subnet, text, repairable=False)], DriftOutcome.LEFT)

    def _spared(self, networks: NetworkRepair, subnet: str) -> bool:
        """Count what goes with a network of which no subnet is here; tell whether it is to stay for that."""
        held = len(networks.holdings(subnet))
        if not held:
            return False
        self.report.removal = (self.report.removal[0] + 1, self.report.removal[1] + held)
        if self.spares_held:
            text = f"network {networks.name(subnet)!r} stands for no subnet of this database and holds {held} addresses"
            drift = Drift("network-held", subnet, f"{text}; --remove-held removes it", repairable=False)
            self.report.note([drift], DriftOutcome.LEFT)
        return self.spares_held

    def _note_spaces(self, networks: NetworkRepair) -> None:
        """Tell of spaces that nobody has made: it may be that they are new, or that their names are mistyped."""
        text = "space {!r} of [tenure] space_of_… is not in the ledger yet"
        self.report.notes += map(text.format, sorted(self.settings.spaces.names() - networks.spaces()))

    def _advance(self, count: int) -> None:
        self._done += max(0, count)
        self.progress(min(self._done, self._total), self._total or None)


def _like(before: SubnetRecord | None, wanted: SubnetRecord) -> SubnetRecord:
    """Return the record that will be; where only the space changes, the ledger's plan follows it already."""
    return wanted if before is None else before.changed(**{name: getattr(wanted, name) for name in CHANGED})


CHANGED = ("cidr", "gateway_ip", "pools", "space")
