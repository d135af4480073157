"""The blocking driver: run a coroutine that awaits nothing which waits.

The allocator and the ledger's transactions are coroutines that await only the store they are given. Where the store
answers at once (memory, SQLite on its own thread, a caller's open transaction) the coroutine never suspends, and a
plain call can run it to its end.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_inline(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in this very call."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    # Closing runs the coroutine's own ``finally`` blocks before the error leaves.
    work.close()
    raise RuntimeError("a coroutine that must not wait did wait")
