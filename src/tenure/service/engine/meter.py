"""What a server tells whoever counts its work: every batch, with its answers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from tenure.kernel.holdings.holding_model import Row, Verdict
from tenure.ports import Failed
from tenure.service.apply.operations import Operation, Shown

K = TypeVar("K")
I = TypeVar("I")  # noqa: E741 - items
A = TypeVar("A")

Execute = Callable[[K, Sequence[I]], Awaitable[Sequence[A]]]


class Meter(Protocol):
    """Counts. It is called between two awaits: it must be quick, and must not fail."""

    def grants(self, verdicts: Sequence[Verdict | Failed]) -> None:
        """Count a batch of grants."""

    def releases(self, rows: Sequence[Row | Failed | None]) -> None:
        """Count a batch of releases."""

    def lane(self, answers: Sequence[object]) -> None:
        """Count a batch that was served in a lane."""

    def applied(self, operations: Sequence[Operation], answers: Sequence[Shown]) -> None:
        """Count operations that took effect together."""


def metered(execute: Execute[K, I, A], count: Callable[[Sequence[A]], None] | None) -> Execute[K, I, A]:
    """Have the answers of every batch counted, if somebody counts."""
    if count is None:
        return execute

    async def counted(key: K, items: Sequence[I]) -> Sequence[A]:
        answers = await execute(key, items)
        count(answers)
        return answers

    return counted
