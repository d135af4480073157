"""Trying anew while somebody else is quicker: until it is done, or until it is clear that it will not be."""

from collections.abc import Callable

import pytest

from tenure.integrations.bosh.model.retry import TRIES, Again, Turn, until_done
from tenure.kernel.errors import AlreadyExists, Conflict, Invalid, NotFound, TenureError


async def refused(error: Callable[[int], TenureError], tried: list[int]) -> None:
    """Be refused in every turn; a name that is taken will stay so."""

    async def attempt(turn: Turn) -> None:
        tried.append(len(tried) + 1)
        with turn:
            raise error(tried[-1])

    await until_done(attempt, unless=lambda each: isinstance(each, AlreadyExists))


@pytest.mark.parametrize("error", [Conflict("changed"), NotFound("paper", "gone")])
async def test_what_has_changed_is_read_anew_until_it_is_done(error: TenureError) -> None:
    tried = 0

    async def attempt(turn: Turn) -> str:
        nonlocal tried
        tried += 1
        with turn:
            if tried < 4:
                raise error
            return "done"

    assert await until_done(attempt) == "done"
    assert tried == 4


async def test_the_last_refusal_is_told() -> None:
    tried: list[int] = []

    with pytest.raises(Conflict, match=f"^turn {TRIES}$"):
        await refused(lambda number: Conflict(f"turn {number}"), tried)

    assert tried == [*range(1, TRIES + 1)]


@pytest.mark.parametrize("error", [Invalid("wrong", field="x"), AlreadyExists("network", "n")])
async def test_what_is_true_however_often_one_tries_is_told_at_once(error: TenureError) -> None:
    tried: list[int] = []

    with pytest.raises(type(error)):
        await refused(lambda _: error, tried)

    assert tried == [1]


async def test_what_is_refused_before_anything_is_done_is_told_at_once() -> None:
    tried: list[int] = []

    async def attempt(turn: Turn) -> None:
        tried.append(1)
        raise Conflict("decided")

    with pytest.raises(Conflict, match=r"^decided$"):
        await until_done(attempt)

    assert tried == [1]


async def test_an_attempt_that_came_to_nothing_says_why() -> None:
    changed = Conflict("changed")
    with pytest.raises(Again) as caught, Turn(lambda _: False, last=False):
        raise changed

    assert caught.value.because is changed
