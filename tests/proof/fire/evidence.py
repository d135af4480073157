"""Everything that is known of a round when it is over, and what a breach of a rule looks like."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.proof.fire.attempts import Attempt
from tests.proof.fire.effects import Effect, Mark
from tests.proof.plan import Plan

Event = tuple[int, str, str | None, int | None, str | None]
"""A change as the stream of events told it: number, verb, address, generation, owner."""


class Excuse(NamedTuple):
    """Why attempts may have taken long: something done to one server, or (None) to all of them."""

    server: int | None
    begin: int
    end: int


@dataclass
class Evidence:
    """A round: what was asked and heard, the whole log, and what was seen from outside meanwhile."""

    plan: Plan
    attempts: Sequence[Attempt]
    log: Sequence[Effect]
    marks: Sequence[Mark] = ()
    events: Sequence[Event] | None = None
    """What the stream of events told, in order; None if nobody listened."""
    verified: Sequence[str] = ()
    """Breaches that ``verify`` found, and who was left in line."""
    excuses: Sequence[Excuse] = ()
    by_id: dict[str, Attempt] = field(init=False)

    def __post_init__(self) -> None:
        self.by_id = {attempt.id: attempt for attempt in self.attempts}


class Breach(NamedTuple):
    """A rule that was broken, and the shortest history that shows it."""

    rule: str
    text: str
    story: Sequence[Attempt | Effect] = ()

    def __str__(self) -> str:
        lines = sorted({_moment(each): str(each) for each in self.story}.items())
        return "\n".join([f"{self.rule}: {self.text}", *(f"    {line}" for _, line in lines)])


def _moment(each: Attempt | Effect) -> tuple[int, str]:
    return (each.called, each.id) if isinstance(each, Attempt) else (each.at, f"{each.seq:09}")
