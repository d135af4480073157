"""The clock of one server is moved an hour forward and back under load: no invariant breaks (I10)."""

from pathlib import Path

import pytest

from tests.proof.moved_clocks import clock_round
from tests.proof.test_fill import a_place
from tests.scale import in_proof

SECONDS = 4.0
HAPPENED = {"grant", "confirm", "cool", "wait", "cooled off"}


@pytest.mark.parametrize("store", ["sqlite", in_proof("postgres")])
async def test_a_clock_that_is_moved_breaks_no_invariant(store: str, tmp_path: Path) -> None:
    async with a_place(store, tmp_path) as url:
        reckoning = await clock_round(url, tmp_path, 1, seconds=SECONDS)

    assert reckoning.breaches == []
    assert reckoning.findings == []
    log = reckoning.history.log or ()
    done = {entry.verb for entry in log} | {entry.because for entry in log}
    assert done >= HAPPENED
    assert done & {"deadline", "cancelled"}
    # The moved clock was in use where it is the store's, and nowhere else.
    assert (reckoning.off_by_an_hour == []) == (store == "postgres")
