"""A pool in a book: notes that cannot be read are replaced after a copy, however soon one repair follows another."""

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenure.integrations.vmpool.modes import book_place
from tenure.integrations.vmpool.modes.book_place import BookPlace
from tenure.integrations.vmpool.vm_pool_settings import PoolMode
from tests.integrations.vmpool.modes.mode_stage import mode_stage
from tests.integrations.vmpool.pool_stage import TWO, PoolStage


@pytest.mark.parametrize("mode", ["per-ip", "shards", "ledger"])
async def test_two_repairs_within_one_second_keep_a_copy_each(
    stage: PoolStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: PoolMode
) -> None:
    begin, count = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), itertools.count()
    monkeypatch.setattr(book_place, "now", lambda: begin + timedelta(microseconds=next(count)))
    async with mode_stage(stage, mode, tmp_path) as opened:
        pool = await opened.pool(*TWO)
        await pool.allocate("a")
        place = await pool.places.current()
        assert isinstance(place, BookPlace)

        copies = set()
        for text in ("{broken", "{broken again"):
            await place.book.write_notes(text, await place.book.read_notes())
            report = await pool.repair(replace_unreadable=True)
            assert report.replaced == ("notes",)
            copies.add(report.copy)

        assert len(copies) == 2
        assert [each.allocation_id for each in await pool.list()] == ["a"]
