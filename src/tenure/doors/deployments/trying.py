"""Trying anew: every decision of this door rests on readings, and somebody else may be quicker than what follows them.

``async for turn in turns():`` reads and decides; ``with turn:`` does it. What is refused there because something has
changed ends the turn, and after a moment the next one reads anew; what the last turn is refused is told.
"""

import asyncio
import random
from collections.abc import Callable
from types import TracebackType

from tenure.kernel.errors import Conflict, NotFound, TenureError

TRIES = 20
LONGEST_PAUSE_S = 0.05

Tells = Callable[[TenureError], bool]


class Turn:
    """One try."""

    def __init__(self, tells: Tells, *, last: bool) -> None:
        self._tells = tells
        self.last = last
        self.lost: TenureError | None = None
        """Why it came to nothing, if it did."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Conflict | NotFound):
            return False
        self.lost = error
        return not (self.last or self._tells(error))


class Turns:
    """Tries, with a pause between two that is longer each time, and uneven so that those who meet do not meet again."""

    def __init__(self, tells: Tells) -> None:
        self._tells = tells
        self._begun = 0

    def __aiter__(self) -> "Turns":
        return self

    async def __anext__(self) -> Turn:
        if self._begun:
            await asyncio.sleep(random.uniform(0, min(0.002 * 2**self._begun, LONGEST_PAUSE_S)))
        self._begun += 1
        if self._begun > TRIES:
            raise StopAsyncIteration
        return Turn(self._tells, last=self._begun == TRIES)


def turns(*, unless: Tells = lambda error: False) -> Turns:
    """Try until it is done; ``unless`` says which refusals tell the truth, however often one tries."""
    return Turns(unless)
