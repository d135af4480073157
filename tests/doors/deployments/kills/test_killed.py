"""A deploy that is killed at any call of the store, and repeated, ends as if it had never been killed."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from tests.doors.deployments.kills.story import ending, live
from tests.infrastructure.postgres import schema_in_thread

LANES = 4
"""Parts that the calls are dealt out to, so that they can be tried side by side."""


class Places:
    """Fresh ledgers of one kind."""

    def __init__(self, kind: str, folder: Path, stack: ExitStack) -> None:
        self._kind = kind
        self._folder = folder
        self._stack = stack
        self._numbers = count()

    def fresh(self) -> tuple[str, Path]:
        """Give the URL of an empty ledger, and the file in which the story's progress is noted."""
        number = next(self._numbers)
        progress = self._folder / f"progress-{number}"
        progress.write_bytes(b"")
        if self._kind == "sqlite":
            return f"sqlite:///{self._folder / f'{number}.db'}", progress
        return self._stack.enter_context(schema_in_thread()), progress


@pytest.fixture(params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Give fresh ledgers of every kind that deployments can share."""
    with ExitStack() as stack:
        yield Places(request.param, tmp_path, stack)


@pytest.mark.parametrize("lane", range(LANES))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_call_and_repeated_it_ends_as_if_never_killed(places: Places, lane: int, after: bool) -> None:
    url, progress = places.fresh()
    assert live(url, progress)
    expected = asyncio.run(ending(url))
    assert expected["breaches"] == []

    killed = 0
    for call in count(1 + lane, LANES):
        url, progress = places.fresh()
        if live(url, progress, dies_at=call, after=after):
            break
        assert live(url, progress)
        assert asyncio.run(ending(url)) == expected, f"killed at call {call}"
        killed += 1

    assert killed > 5
