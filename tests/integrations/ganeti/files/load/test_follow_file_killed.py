"""Following a file, killed at any call of the store: all of it was done, or nothing; run again, it is done."""

from itertools import count
from pathlib import Path

import pytest

import tenure
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.query.verify_machines import verify_machines
from tests.integrations.ganeti.files.documents import Json, breaches, brought_in, old_document
from tests.integrations.ganeti.files.load.follow_process import lives
from tests.integrations.ganeti.files.load.test_follow_file import grown, later, renamed_and_moved
from tests.integrations.ganeti.files.test_round_trips import contents

BEFORE, AFTER = pytest.param(False, id="before", marks=pytest.mark.proof), pytest.param(True, id="after")
"""A death before a call leaves what a death after the call before it left, so ``make test`` has one of both."""


async def _standing(url: str) -> tuple[Json, object]:
    """Return the cluster as a file, and all that is behind it; nothing in it disagrees."""
    async with await tenure.open_async(url) as ledger:
        assert await breaches(ledger) == []
        assert [each for each in await verify_machines(ledger) if "is not connected to" not in each] == []
        return await export_cluster(ledger, "today"), await contents(ledger)


@pytest.mark.parametrize("after", [BEFORE, AFTER])
async def test_a_file_followed_and_killed_at_each_call_of_the_store_is_followed_wholly_or_not_at_all(
    tmp_path: Path, after: bool
) -> None:
    url, document = f"sqlite:///{tmp_path / 'tenure.db'}", later(old_document())
    renamed_and_moved(document)
    grown(document)
    async with await tenure.open_async(url) as ledger:
        await brought_in(ledger, old_document())
    nothing, seen = await _standing(url), set[bool]()
    for dies_at in count(1):
        lived = lives(url, document, dies_at, after=after)
        now = await _standing(url)
        seen.add(now == nothing)
        assert now == nothing or now[0] == document
        if lived:
            break

    assert now[0] == document
    assert dies_at > 10
    assert True in seen
