"""One round over a deployment: every subnet looked at, drift told and, where that is wanted, repaired."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tenure.doors.neutron.options import LEDGER
from tenure.doors.neutron.reach import Reach
from tenure.doors.neutron.subnets import SubnetRecord
from tenure.doors.neutron.tending import agreeing
from tenure.doors.neutron.tending.bulks import BULK_S
from tenure.doors.neutron.tending.comparing import (
    Seen,
    compare_coming,
    compare_holdings,
    compare_rows,
    compare_subnet,
    expected_rows,
)
from tenure.doors.neutron.tending.database import Database, InFlight, by_halves, chunks
from tenure.doors.neutron.tending.drifts import Drift, Outcome, Report
from tenure.doors.neutron.tending.holdings import Holdings, SubnetBusy
from tenure.doors.neutron.tending.networks import REFUSED, Networks
from tenure.doors.neutron.tending.rows import all_ids, record_ids, repair_rows, repair_subnet, see
from tenure.doors.neutron.tending.settings import Settings
from tenure.doors.neutron.tending.truth import count_allocations

Progress = Callable[[int, int | None], None]

ROWS_AT_ONCE, HOLDINGS_AT_ONCE = 1000, 250
LEDGER_PATIENCE_S = 30.0
"""For how long the ledger is waited for: a record of Neutron's is locked meanwhile, and servers wait for that."""


def verify(settings: Settings, progress: Progress, *, grace_s: int = BULK_S) -> Report:
    """Tell what is not as Neutron has it; change nothing."""
    with _opened(settings, progress, dry=True, grace_s=grace_s) as tending:
        agreeing.check(tending.database, tending.networks, settings)
        return tending.run()


def reconcile(settings: Settings, progress: Progress, *, dry: bool = False, grace_s: int = BULK_S) -> Report:
    """Repair what is not as Neutron has it."""
    with _opened(settings, progress, dry=dry, grace_s=grace_s) as tending:
        agreeing.check(tending.database, tending.networks, settings)
        return tending.run()


def move_in(settings: Settings, progress: Progress, *, take_over: bool = False, dry: bool = False) -> Report:
    """Bring in what another driver, or the other mode, kept; then agree on it, unless something is in the way.

    It looks first: while there is what cannot be repaired, nothing is written. No server is at work: a row that has no
    port will get none, and a subnet may go to another space.
    """
    with _opened(settings, _silent, dry=True, moving=True) as looking:
        agreeing.begin(looking.database, looking.networks, settings, take_over=take_over, dry=True)
        report = looking.run()
    if dry or report.left:
        return report
    with _opened(settings, progress, dry=False, moving=True) as tending:
        agreement = agreeing.begin(tending.database, tending.networks, settings, take_over=take_over, dry=False)
        report = tending.run()
        if report.clean and not report.in_flight and _agrees(tending, report):
            agreeing.finish(tending.database, agreement)
            report.agreed = True
        return report


def _agrees(tending: "Round", report: Report) -> bool:
    """Look once more, after everything was repaired; what is found is told."""
    again = replace(tending, dry=True, progress=_silent, report=Report(report.mode)).run()
    report.found += again.found
    return not again.found


def _silent(done: int, total: int | None) -> None:
    """Tell nobody."""


@contextmanager
def _opened(
    settings: Settings, progress: Progress, *, dry: bool, moving: bool = False, grace_s: int = 0
) -> "Iterator[Round]":
    database = Database(settings.database)
    reach = Reach(settings.ledger or "", LEDGER_PATIENCE_S) if settings.mode == LEDGER else None
    networks = None if reach is None else Networks(reach, settings.realm, moving)
    try:
        yield Round(settings, database, networks, dry, grace_s, progress, Report(settings.mode))
    finally:
        database.close()
        if reach is not None:
            reach.close()


@dataclass(slots=True)
class Round:
    """One round."""

    settings: Settings
    database: Database
    networks: Networks | None
    dry: bool
    grace_s: int
    progress: Progress
    report: Report
    _done: int = field(default=0)
    _total: int = field(default=0)

    def run(self) -> Report:
        """Look at everything."""
        with self.database.reading() as session:
            self._total = count_allocations(session) * (1 if self.networks is None else 2)
        if self.networks is not None:
            self.networks.read()
        for subnet in all_ids(self.database):
            self._subnet(subnet)
        if self.networks is not None:
            self._extra_networks(self.networks)
        return self.report

    def _subnet(self, subnet: str) -> None:
        seen = self._with_record(self._see(subnet))
        if seen.truth is None or seen.record is None:
            return  # it went, or is in flight
        self.report.subnets += 1
        self.report.addresses += len(seen.ports)
        seen = self._with_rows(seen)
        self.report.note(compare_coming(seen), Outcome.IN_FLIGHT)
        if self.networks is not None and seen.record is not None:
            self._with_ledger(self.networks, seen, seen.record)

    def _see(self, subnet: str) -> Seen:
        return see(self.database, subnet, self.grace_s)

    def _with_record(self, seen: Seen) -> Seen:
        """Compare the record, and return what is seen when it is as it should be."""
        space = None if seen.truth is None else self.settings.spaces.at(seen.truth.site)
        suspects = compare_subnet(seen, space)
        if not suspects:
            return seen
        if self.dry:
            self.report.note(suspects, Outcome.FOUND)
            record = None if seen.truth is None else _like(seen.record, seen.truth.record(space))
            return replace(seen, record=record, planned=True)
        try:
            self.report.note(repair_subnet(self.database, seen.id, self.settings.spaces), Outcome.REPAIRED)
        except InFlight:
            self.report.note(suspects, Outcome.IN_FLIGHT)
        return self._see(seen.id)

    def _with_rows(self, seen: Seen) -> Seen:
        """Compare the rows, and return what is seen when they are as they should be."""
        suspects = {each.place or 0: each for each in compare_rows(seen.id, seen.carriers(), seen.rows)}
        if self.dry or not suspects:
            self.report.note(suspects.values(), Outcome.FOUND)
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
            self.report.note([suspects[place] for place in places if place in suspects], Outcome.IN_FLIGHT)
        else:
            self.report.note(settled, Outcome.FOUND if self.dry else Outcome.REPAIRED)

    def _with_ledger(self, networks: Networks, seen: Seen, record: SubnetRecord) -> None:
        """Compare the network of a subnet, and all that is held in it."""
        suspects = networks.compare(record)
        if suspects and seen.planned:
            self.report.note(suspects, Outcome.FOUND)
        elif suspects and not self._network(networks, record, suspects):
            self._advance(len(seen.ports))
            return
        holdings = Holdings(self.database, networks, seen, record, networks.others(record))
        rows = expected_rows(seen.carriers(), seen.rows)
        found = {each.place or 0: each for each in compare_holdings(seen.id, rows, holdings.read())}
        if seen.planned:
            self.report.note(found.values(), Outcome.FOUND)
            self._advance(len(seen.ports))
            return
        busy = False
        # A row that does not know its generation is no drift, and told to nobody; it is written down in passing.
        unknown = set() if self.dry else {place for place, row in rows.items() if row.generation == 0}
        places = sorted(unknown | found.keys())
        for chunk in chunks(places, HOLDINGS_AT_ONCE):
            busy = busy or not self._holdings(holdings, found, chunk)
            if busy:
                self._note(found, chunk, None)
            self._advance(len(chunk))
        self._advance(len(seen.ports) - len(places))

    def _network(self, networks: Networks, record: SubnetRecord, suspects: list[Drift]) -> bool:
        """Settle the network of a subnet; tell whether one is there to hold addresses in, or would be."""
        try:
            settled = networks.repair(self.database, record.id, dry=self.dry)
            self.report.note(settled, Outcome.FOUND if self.dry else Outcome.REPAIRED)
            return all(each.repairable for each in settled)
        except InFlight:
            self.report.note(suspects, Outcome.IN_FLIGHT)
        except REFUSED as error:
            told = [Drift(each.kind, each.subnet, f"{each.text}; {error}", repairable=False) for each in suspects]
            self.report.note(told, Outcome.LEFT)
        return False

    def _holdings(self, holdings: Holdings, suspects: dict[int, Drift], chunk: Sequence[int]) -> bool:
        """Settle holdings; False: a transaction is open in the subnet."""
        try:
            for places, settled in by_halves(chunk, lambda some: holdings.settle(some, dry=self.dry)):
                self._note(suspects, places, settled)
        except SubnetBusy:
            return False
        return True

    def _extra_networks(self, networks: Networks) -> None:
        networks.read()
        with self.database.reading() as session:
            known = record_ids(session)
        for subnet in sorted(networks.subnet_ids() - known):
            try:
                drifts = networks.remove(self.database, subnet, dry=self.dry)
                self.report.note(drifts, Outcome.FOUND if self.dry else Outcome.REPAIRED)
            except InFlight:
                drift = Drift("network-extra", subnet, f"network {networks.name(subnet)!r} stands for no subnet yet")
                self.report.note([drift], Outcome.IN_FLIGHT)

    def _advance(self, count: int) -> None:
        self._done += max(0, count)
        self.progress(min(self._done, self._total), self._total or None)


def _like(before: SubnetRecord | None, wanted: SubnetRecord) -> SubnetRecord:
    """Return the record that will be; where only the space changes, the ledger's plan follows it already."""
    return wanted if before is None else before.changed(**{name: getattr(wanted, name) for name in CHANGED})


CHANGED = ("cidr", "gateway_ip", "pools", "space")
