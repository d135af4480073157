"""Who held an address, from when until when, and how it ended: read from the log's entries about that address.

A tenure lasts as long as an owner has the address: pending, held and draining are parts of it; cooling comes after it.
"""

import enum
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

from tenure.kernel.addressing.addresses import format_address, unit_text
from tenure.kernel.holdings.actor import asker_of, asker_text
from tenure.kernel.holdings.deadlines import COOLED_OFF, DEADLINE
from tenure.kernel.holdings.holding_model import Change, NetworkId, Row, SpaceId, State, moment
from tenure.kernel.holdings.log_entries import BEGAN_BY
from tenure.kernel.names import Owner


class Ending(enum.StrEnum):
    """How a tenure ended, if it did."""

    STILL_HELD = "still held"
    RELEASED = "released"
    TRANSFERRED = "transferred"
    COOLING = "cooling"
    CANCELLED = "cancelled"
    DEADLINE = "deadline passed"


BECAUSE = {DEADLINE: Ending.DEADLINE, "cancelled": Ending.CANCELLED}
"""How the log tells that nobody released what was released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenure:
    """One owner's time with an address (or with the prefix around it)."""

    space: SpaceId
    network_id: NetworkId
    network: str | None = None
    first: int
    last: int
    owner: Owner
    slot: str
    generation: int | None
    since: datetime | None
    until: datetime | None = None
    ending: Ending = Ending.STILL_HELD
    state: State | None = None
    request: str | None = None
    actor: str | None = None
    """On whose word it began, and below by which request of a door, where they are known."""
    request_id: str | None = None
    ended_by: str | None = None
    ended_actor: str | None = None
    ended_request_id: str | None = None
    to: Owner | None = None
    to_slot: str = ""
    confirmed: datetime | None = None
    deadline: datetime | None = None
    """Of a pending one that lasts: until when. Of one that is over: until when the address cooled."""

    @property
    def address(self) -> str:
        """Write the address (of a prefix: its first)."""
        return format_address(self.first)

    @property
    def last_address(self) -> str:
        """Write the last address of what was held."""
        return format_address(self.last)

    def __str__(self) -> str:
        where = self.network or f"network no. {self.network_id}, which is gone"
        began = "an unknown time" if self.since is None else time_text(self.since)
        begun_by = self.begun_text and f" ({self.begun_text})"
        who = f"{self.owner}{self.slot and f' ({self.slot})'}"
        return f"{unit_text(self.first, self.last)} {who} in {where}: from {began}{begun_by} {self._end_text()}"

    @property
    def begun_text(self) -> str:
        """Write on whose word, and by which request, it began; empty where neither is known."""
        return asker_text(self.actor, self.request, self.request_id)

    @property
    def ended_text(self) -> str:
        """Write on whose word, and by which request, it ended; empty where neither is known."""
        return asker_text(self.ended_actor, self.ended_by, self.ended_request_id)

    def _end_text(self) -> str:
        by = self.ended_text and f" ({self.ended_text})"
        if self.ending is Ending.STILL_HELD:
            return f"on, {self.state}" + (f" until {time_text(self.deadline)}" if self.deadline else "")
        ended = "until an unknown time" if self.until is None else f"until {time_text(self.until)}"
        if self.ending is Ending.TRANSFERRED:
            return f"{ended}, transferred to {self.to}{self.to_slot and f' ({self.to_slot})'}{by}"
        if self.ending is Ending.COOLING:
            return f"{ended}, cooling" + (f" until {time_text(self.deadline)}" if self.deadline else "") + by
        return f"{ended}, {self.ending}{by}"


@dataclass(frozen=True, slots=True)
class History:
    """The tenures of an address that are known, in the order they ended; who holds it now comes last.

    ``trimmed``: the log no longer reaches back to the beginning. Then every tenure that lasted at ``complete_since``
    or began later is here (None: only those of now), and of earlier ones none.
    """

    address: str
    tenures: tuple[Tenure, ...]
    trimmed: bool = False
    complete_since: datetime | None = None

    def __iter__(self) -> Iterator[Tenure]:
        return iter(self.tenures)

    def __len__(self) -> int:
        return len(self.tenures)

    def __str__(self) -> str:
        lines = [str(tenure) for tenure in self.tenures] or [f"{self.address}: no holder is known"]
        if self.trimmed:
            since = "now" if self.complete_since is None else time_text(self.complete_since)
            lines.append(f"the log was trimmed: complete since {since}")
        return "\n".join(lines)


def tenures_of(changes: Iterable[Change], rows: Iterable[Row]) -> list[Tenure]:
    """Read tenures from the log's entries about one address, and from the holdings that are there.

    Entries come in order. Rows were read before them: one that has ended since is told by its entry.
    """
    past = _Past()
    for change in changes:
        past.read(change)
    return _met([*past.ended, *(tenure for row in rows for tenure in past.present(row))])


def _met(tenures: Sequence[Tenure]) -> list[Tenure]:
    """Let a tenure that was handed over end when the next one begins: the log is written a moment later."""
    met: list[Tenure] = []
    begins: dict[SpaceId, datetime | None] = {}
    # Backwards, so that the beginning of the next tenure is known.
    for tenure in reversed(tenures):
        next_begins = begins.get(tenure.space)
        handed_over = tenure.ending is Ending.TRANSFERRED and next_begins is not None
        met.append(replace(tenure, until=next_begins) if handed_over else tenure)
        begins[tenure.space] = tenure.since
    return met[::-1]


def run_out(tenures: Iterable[Tenure], over: Set[int]) -> list[Tenure]:
    """Let tenures end whose time is over, by their generations, though no entry of the log says so yet."""
    return [_run_out(tenure) if tenure.generation in over else tenure for tenure in tenures]


def _run_out(tenure: Tenure) -> Tenure:
    if tenure.ending is Ending.STILL_HELD:
        return replace(tenure, ending=Ending.DEADLINE, until=tenure.deadline)
    return replace(tenure, ending=Ending.RELEASED) if tenure.ending is Ending.COOLING else tenure


def held_at(tenures: Iterable[Tenure], time: datetime) -> list[Tenure]:
    """Keep the tenures that lasted at a time.

    One whose beginning is unknown counts from where the one before it in its space ended.
    """
    found: list[Tenure] = []
    ends: dict[SpaceId, datetime | None] = {}
    for tenure in tenures:
        began = tenure.since or ends.get(tenure.space)
        over = tenure.ending is not Ending.STILL_HELD and (tenure.until is None or tenure.until <= time)
        if not over and (began is None or began <= time):
            found.append(tenure)
        ends[tenure.space] = tenure.until
    return found


def time_text(time: datetime) -> str:
    """Write a time for people."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


class _Past:
    """Tenures as the log tells them. In a space nobody lies over anybody (I1), so they follow one another."""

    def __init__(self) -> None:
        self.ended: list[Tenure] = []
        self._begun: dict[SpaceId | None, Change] = {}
        self._confirmed: dict[SpaceId | None, Change] = {}
        self._cooling: dict[int | None, int] = {}

    def read(self, change: Change) -> None:
        """Take in one entry."""
        because = change.details.get("because", "")
        if change.verb == "confirm":
            self._confirmed[change.space] = change
        elif change.verb == "transfer":
            self.ended.append(self._handed_over(change))
            self._begun[change.space] = change
        elif change.verb == "cool" and change.generation in self._cooling:
            # A cooling that is shortened is written down again: the tenure has ended before.
            place = self._cooling[change.generation]
            self.ended[place] = replace(self.ended[place], deadline=_optional_moment(change.details.get("until_us")))
        elif change.verb == "cool":
            # The place is noted, because the end of the cooling is a later entry and completes this tenure.
            self._cooling[change.generation] = len(self.ended)
            cooling = _optional_moment(change.details.get("until_us"))
            self.ended.append(replace(self._over(change, Ending.COOLING), deadline=cooling))
        elif change.verb == "release" and because != COOLED_OFF:
            self.ended.append(self._over(change, BECAUSE.get(because, Ending.RELEASED)))
        # Where a trim dropped the ``cool`` entry, there is no tenure to complete.
        elif change.verb == "release" and change.generation in self._cooling:
            place = self._cooling.pop(change.generation)
            self.ended[place] = replace(self.ended[place], ending=Ending.RELEASED, deadline=change.at)

    def _over(self, change: Change, ending: Ending) -> Tenure:
        assert change.space is not None
        assert change.network is not None
        assert change.first is not None
        assert change.last is not None
        begun, confirmed = self._begun.pop(change.space, None), self._confirmed.pop(change.space, None)
        began_by = change.details.get(BEGAN_BY)
        # An entry of before ``BEGAN_BY`` was written says nothing; of what a transfer began, the transfer's entry does.
        actor, request_id = _asker(begun) if began_by is None else began_by
        ended_actor, ended_request_id = _asker(change)
        return Tenure(
            space=change.space,
            network_id=change.network,
            first=change.first,
            last=change.last,
            owner=Owner.trusted(change.owner or ""),
            slot=change.slot or "",
            generation=change.generation,
            since=_optional_moment(change.details.get("since_us")),
            until=change.at,
            ending=ending,
            request=change.details.get("request", begun and begun.request),
            actor=actor,
            request_id=request_id,
            ended_by=change.request,
            ended_actor=ended_actor,
            ended_request_id=ended_request_id,
            confirmed=confirmed and confirmed.at,
        )

    def _handed_over(self, change: Change) -> Tenure:
        """Tell of the owner who gave the address away; the entry itself speaks of the one who got it."""
        # Read first: ``_over`` takes it away.
        begun = self._begun.get(change.space)
        return replace(
            self._over(change, Ending.TRANSFERRED),
            owner=Owner.trusted(change.details["from"]),
            slot=change.details["from_slot"],
            generation=begun and begun.generation,
            to=Owner.trusted(change.owner or ""),
            to_slot=change.slot or "",
        )

    def present(self, row: Row) -> Iterator[Tenure]:
        """Yield the tenure of a row, unless the log tells of it."""
        # Not by generation: a tenure that ended by a transfer may not know its own.
        key = (row.space, row.owner, row.slot, moment(row.since_us))
        if any(key == (tenure.space, tenure.owner, tenure.slot, tenure.since) for tenure in self.ended):
            return
        confirmed, (actor, request_id) = self._confirmed.get(row.space), _asker(row)
        yield Tenure(
            space=row.space,
            network_id=row.network,
            first=row.first,
            last=row.last,
            owner=Owner.trusted(row.owner),
            slot=row.slot,
            generation=row.generation,
            since=moment(row.since_us),
            ending=Ending.COOLING if row.state is State.COOLING else Ending.STILL_HELD,
            state=row.state,
            request=row.request,
            actor=actor,
            request_id=request_id,
            confirmed=confirmed and confirmed.at,
            deadline=_optional_moment(row.until_us),
        )


def _asker(told: Change | Row | None) -> tuple[str | None, str | None]:
    """Return who asked for a change or a holding, and by which request of a door, as far as that is known."""
    return (None if told is None else asker_of(told.details)) or (None, None)


def _optional_moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else moment(microseconds)
