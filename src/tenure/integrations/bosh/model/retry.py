"""Trying anew: every decision of this door rests on readings, and somebody else may be quicker than what follows them.

``until_done`` lets an attempt read and decide; ``with turn:`` does it. What is refused there because something has
changed ends the attempt, and after a moment the next one reads anew; what the last one is refused is told.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TypeVar

from tenure.kernel.errors import Conflict, NotFound, TenureError

TRIES = 20
LONGEST_PAUSE_S = 0.05

Done = TypeVar("Done")
Tells = Callable[[TenureError], bool]


class Again(Exception):
    """An attempt came to nothing, and another may do better; it never leaves ``until_done``."""

    def __init__(self, because: Exception) -> None:
        super().__init__(str(because))
        self.because = because


class Turn:
    """One try."""

    def __init__(self, tells: Tells, *, last: bool) -> None:
        self._tells = tells
        self.last = last

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # NotFound counts, too: what the attempt has read may be removed before it writes.
        if isinstance(error, Conflict | NotFound) and not self.last and not self._tells(error):
            raise Again(error) from error


async def until_done(attempt: Callable[[Turn], Awaitable[Done]], *, unless: Tells = lambda error: False) -> Done:
    """Try until it is done; ``unless`` says which refusals tell the truth, however often one tries.

    Pauses grow longer, and are uneven so that those who meet do not meet again.
    """
    tried = 0
    # The loop ends, because the last turn raises no Again.
    while True:
        tried += 1
        try:
            return await attempt(Turn(unless, last=tried == TRIES))
        except Again:
            await asyncio.sleep(random.uniform(0, min(0.002 * 2**tried, LONGEST_PAUSE_S)))
