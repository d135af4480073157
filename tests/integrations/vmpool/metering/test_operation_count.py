"""One operation has one result, however often it is tried."""

import asyncio

import pytest

from tenure.integrations.vmpool.metering.operation_count import (
    OperationCount,
    count_try,
    one_operation,
    under_way,
)
from tenure.integrations.vmpool.pool_errors import PoolSwapConflict, VMNotReady, VMPoolExhausted


class Counted(list[tuple[str, str, int]]):
    """What was counted."""

    def operation(self, operation: str, result: str, seconds: float, attempts: int) -> None:
        self.append((operation, result, attempts))


def test_tries_inside_an_operation_are_its_parts() -> None:
    counted, count = Counted(), OperationCount("allocate")
    with one_operation(count):
        for result in ("exhausted", "exhausted", "new"):
            count_try(counted, "allocate", result, 0.1, 2)
        count_try(counted, "deallocate", "released", 0.1, 7)  # a step on the way, such as to give something back

    assert counted == []
    assert (count.result, count.attempts, under_way()) == ("new", 2, None)


def test_a_try_that_is_no_part_is_counted_at_once() -> None:
    counted = Counted()
    count_try(counted, "repair", "done", 0.1, 1)

    assert counted == [("repair", "done", 1)]


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (VMPoolExhausted(in_use=1), "exhausted"),
        (PoolSwapConflict("allocate", "slow", attempts=4), "conflict"),
        (VMNotReady("192.0.2.1", "silent"), "error"),
        (asyncio.CancelledError(), "error"),
    ],
)
def test_an_operation_that_raises_ends_with_the_word_of_its_error(error: BaseException, result: str) -> None:
    count = OperationCount("allocate", result="existing")
    with pytest.raises(type(error)), one_operation(count):
        raise error

    assert count.result == result
