"""What a decision about a pool sees, and what it may answer: the seam between the rules and the ConfigMap."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tenure.integrations.vmpool.config_map_swap import NOTES_KEY, STATE_KEY, StoredPool
from tenure.integrations.vmpool.pool_errors import MOVED_BY_REPAIR, PoolStateMisplaced, PoolStateUnreadable
from tenure.integrations.vmpool.state.go_json import NotReadable
from tenure.integrations.vmpool.state.pool_notes import PoolNotes, read_notes, write_notes
from tenure.integrations.vmpool.state.pool_state import PoolState, read_state, write_state
from tenure.integrations.vmpool.state.state_repair import PoolFinding, PoolLine

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DecideAgain(Exception):
    """What was read is not to be decided on: whoever asks looks elsewhere, or again. No failure, and not logged."""


class PoolElsewhere(DecideAgain):
    """The pool was moved, or is being moved: whoever asks here looks where it is."""


@dataclass(frozen=True)
class PoolDocument:
    """State and notes of a pool at one moment."""

    state: PoolState
    notes: PoolNotes
    is_there: bool
    """Whether there is a ConfigMap with a state; if not, the state is that of a pool of which nothing is allocated."""
    stored: StoredPool = field(default_factory=StoredPool, repr=False)
    """The ConfigMap as it was read; empty in other modes."""

    @property
    def size(self) -> int:
        """Return how many bytes all values of the ConfigMap have."""
        return self.stored.size()


@dataclass(frozen=True)
class PoolChange(Generic[T_co]):
    """What was decided: the answer, and what is to be written for it, if anything is."""

    result: T_co
    state: PoolState | None = None
    """The whole new state, without a new version; none: as it is."""
    notes: PoolNotes | None = None
    """The whole new notes; none: as they are."""
    findings: tuple[PoolFinding, ...] = ()
    """What was put right on the way."""
    word: str = "done"
    """How the operation ended, in a word for the metrics: ``new``, ``existing``, ``released``, ``not_found``."""
    report: Callable[[int], None] | None = None
    """Called once, with the number of the attempt, when the change is written or found to need no write; also if
    nobody waits for the answer any more."""


Decide = Callable[[PoolDocument], PoolChange[T]]
"""A pure function of what was read. It is called again, with what is there then, when another writer was faster."""


def read_document(stored: StoredPool, pool: PoolLine) -> PoolDocument:
    """Read what is stored; raise ``PoolStateUnreadable``. Without a ConfigMap, or without the key, all is free."""
    notes = notes_of(stored)
    if STATE_KEY in stored.misplaced:
        misplaced = stored.misplaced_text(STATE_KEY)
        # Read first: a text that cannot be read would not be mended by moving it.
        _read_or_raise(misplaced, f"{STATE_KEY} is in binaryData, and ")
        raise PoolStateMisplaced(STATE_KEY, misplaced)
    text = stored.state_text
    if text is None:
        return PoolDocument(PoolState.fresh(pool.ips), notes, False, stored)
    return PoolDocument(_read_or_raise(text), notes, True, stored)


def _read_or_raise(text: str, about: str = "") -> PoolState:
    try:
        return read_state(text)
    except NotReadable as error:
        raise PoolStateUnreadable(f"{about}{error}") from None


def notes_of(stored: StoredPool) -> PoolNotes:
    """Return the notes; those that cannot be read are empty, and say why."""
    if NOTES_KEY in stored.misplaced:
        return PoolNotes(problem=f"the notes cannot be read: {NOTES_KEY} is in binaryData; {MOVED_BY_REPAIR}")
    return read_notes(stored.notes_text)


def written_values(state: PoolState, notes: PoolNotes) -> dict[str, str]:
    """Return the values of the ConfigMap; notes that could not be read are left as they are."""
    values = {STATE_KEY: write_state(state)}
    if not notes.problem:
        values[NOTES_KEY] = write_notes(notes)
    return values
