"""The log as the rules read it: effects by the request id that asked for them, and when each was committed."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tenure.kernel.holdings.actor import asker_of
from tenure.kernel.holdings.holding_model import Change

FAR = 1 << 62
CHANGING = frozenset({"grant", "release", "cool", "confirm", "transfer"})
BY_THE_CLOCK = frozenset({"deadline", "cooled off"})
GIVEN_BACK = "given back"


class Effect(NamedTuple):
    """One entry of the log. ``because``: why a holding ended that nobody released."""

    seq: int
    at: int
    verb: str
    network: str = ""
    address: str = ""
    owner: str = ""
    generation: int = 0
    by: str | None = None
    because: str | None = None
    until: int | None = None
    pending: bool = False
    former: str | None = None
    ticket: int | None = None

    @property
    def asked_for(self) -> bool:
        """Tell whether it changes a holding, and not because its time was over."""
        return self.verb in CHANGING and self.because not in BY_THE_CLOCK

    def __str__(self) -> str:
        told = [f"{self.at} entry {self.seq}: {self.verb} {self.network} {self.address}#{self.generation} {self.owner}"]
        told += [f"by {self.by}"] if self.by else ["by nobody"]
        told += [self.because] if self.because else []
        told += [f"until {self.until}"] if self.until else []
        return " ".join(told)


def effect_of(change: Change) -> Effect:
    """Read an entry of the log."""
    told, by = change.details, asker_of(change.details)
    because = told.get("because") if change.verb == "release" else None
    return Effect(
        change.seq, change.at_us, change.verb, change.network_name or "", change.address or "", change.owner or "",
        change.generation or 0, change.request_id or (None if by is None else by.request_id), because,
        told.get("until_us") if change.verb in ("grant", "cool") else None,
        change.verb == "grant" and told.get("state") == "pending",
        told.get("from") if change.verb == "transfer" else None, told.get("ticket"),
    )  # fmt: skip


@dataclass
class Tenancy:
    """A holding from its beginning to its end, as the log has it."""

    begun: Effect
    pending: bool = False
    until: int | None = None
    cooling: bool = False
    ended: Effect | None = None
    """What took it from its owner: a release, the beginning of its cooling, a transfer."""

    @property
    def owner(self) -> str:
        """Return who holds it."""
        return self.begun.owner

    def due(self, at: int) -> bool:
        """Tell whether its time was over at a moment: then it is in nobody's way."""
        return self.until is not None and (self.cooling or self.pending) and self.until <= at


class Mark(NamedTuple):
    """A look at the log from outside: between two moments its newest number was this."""

    before: int
    after: int
    seq: int


@dataclass
class CommitTimes:
    """When each entry was committed: not before, and not after. Times in the log are read before the commit."""

    lower: list[int] = field(default_factory=lambda: [0])
    upper: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, log: Sequence[Effect], marks: Iterable[Mark], seen: Iterable[tuple[int, int]]) -> "CommitTimes":
        """Work them out from the log, looks from outside, and (number, moment) of answers that tell of an entry."""
        last = max((effect.seq for effect in log), default=0)
        lower, upper = [0] * (last + 2), [FAR] * (last + 2)
        for effect in log:
            lower[effect.seq] = effect.at
        for mark in marks:
            known = min(mark.seq, last)
            lower[known + 1] = max(lower[known + 1], mark.before)
            upper[known] = min(upper[known], mark.after)
        for seq, moment in seen:
            if seq <= last:
                upper[seq] = min(upper[seq], moment)
        for seq in range(1, last + 2):
            lower[seq] = max(lower[seq], lower[seq - 1])
        for seq in range(last, -1, -1):
            upper[seq] = min(upper[seq], upper[seq + 1])
        return cls(lower[: last + 1], upper[: last + 1])

    def between(self, begin: int, end: int) -> range:
        """Return the numbers that may have been the log's newest at some moment between two."""
        first = max(bisect_right(self.upper, begin) - 1, 0)
        return range(first, max(bisect_left(self.lower, end + 1), first + 1))


def by_request(log: Iterable[Effect]) -> dict[str, list[Effect]]:
    """Sort what was asked for by its request id."""
    found: dict[str, list[Effect]] = defaultdict(list)
    for effect in log:
        if effect.asked_for and effect.by is not None:
            found[effect.by].append(effect)
    return found


def seen_in(event: dict[str, Any]) -> tuple[int, str, str | None, int | None, str | None]:
    """Return what sets an event of the stream apart."""
    return event["seq"], event["verb"], event["address"], event["generation"], event["owner"]
