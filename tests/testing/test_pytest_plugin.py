"""The fixtures that our users' tests get: a real ledger in memory, and faults that behave as real ones do."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import tenure
from tenure.testing import Faults, open_faulty_async


@pytest.fixture
def shop(tenure_ledger: tenure.Ledger) -> tenure.Ledger:
    """Lay out a network with three addresses, which cool for a minute."""
    tenure_ledger.add_network("shop")
    tenure_ledger.add_subnet("shop", "192.0.2.0/24")
    tenure_ledger.add_pool("shop", "192.0.2.10-192.0.2.12", cooling_s=60)
    return tenure_ledger


def test_the_ledger_is_a_real_one(shop: tenure.Ledger) -> None:
    held = shop.allocate("shop", owner="vm/a")

    assert (held.address, held.state) == ("192.0.2.10", "held")
    assert shop.verify() == []


def test_a_store_that_is_away_changes_nothing_and_is_told(shop: tenure.Ledger, tenure_faults: Faults) -> None:
    tenure_faults.lose_store()

    with pytest.raises(tenure.StoreUnavailable) as told:
        shop.allocate("shop", owner="vm/a")

    assert told.value.outcome == "none"
    assert shop.holdings("shop") == []
    assert tenure_faults.met == 1


def test_one_lost_answer_is_asked_for_again_and_nobody_notices(shop: tenure.Ledger, tenure_faults: Faults) -> None:
    tenure_faults.lose_answer()

    held = shop.allocate("shop", owner="vm/a")

    assert [each.address for each in shop.holdings("shop")] == [held.address]
    assert tenure_faults.met == 1


def test_answers_that_stay_lost_are_told_and_repeating_tells_the_outcome(
    shop: tenure.Ledger, tenure_faults: Faults
) -> None:
    tenure_faults.lose_answer(times=4)

    with pytest.raises(tenure.StoreUnavailable) as told:
        shop.allocate("shop", owner="vm/a")
    tenure_faults.bring_back()

    assert told.value.outcome == "unknown"
    assert shop.allocate("shop", owner="vm/a").generation == shop.holding("shop", "192.0.2.10").generation


def test_a_store_that_was_taken_down_stays_down_until_it_is_brought_back(
    shop: tenure.Ledger, tenure_faults: Faults
) -> None:
    tenure_faults.take_down()

    for _ in range(2):
        with pytest.raises(tenure.StoreUnavailable):
            shop.holding("shop", "192.0.2.10")
    tenure_faults.bring_back()

    assert shop.allocate("shop", owner="vm/a").address == "192.0.2.10"


def test_time_passes_as_the_test_says(shop: tenure.Ledger, tenure_faults: Faults) -> None:
    shop.hold("shop", owner="vm/a", lasts_s=30)
    held = shop.allocate("shop", owner="vm/b")
    shop.release("shop", held.address, owner="vm/b")

    tenure_faults.advance(31)
    first = [each.owner for each in shop.sweep()]
    tenure_faults.advance(30)
    second = [each.owner for each in shop.sweep()]

    assert (first, second) == (["vm/a"], ["vm/b"])
    assert shop.holdings("shop") == []


async def test_a_slow_store_is_slow_and_right() -> None:
    faults = Faults()
    async with await open_faulty_async(faults) as ledger:
        await ledger.add_network("shop")
        await ledger.add_subnet("shop", "192.0.2.0/24")
        await ledger.add_pool("shop", "192.0.2.0/24")
        faults.slow_down(0.01)
        held = await asyncio.gather(*(ledger.allocate("shop", owner=f"vm/{n}") for n in range(20)))

        assert len({each.address for each in held}) == 20


@pytest.mark.parametrize("times", [0, -1, "2", True, 1001])
def test_a_fault_is_ordered_a_number_of_times(times: int) -> None:
    with pytest.raises(tenure.Invalid) as told:
        Faults().lose_store(times)

    assert told.value.field == "times"


def test_pytest_finds_the_fixtures_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(
        "def test_theirs(tenure_ledger, tenure_faults):\n"
        "    tenure_ledger.add_network('net1')\n"
        "    assert tenure_faults.met == 0\n"
    )

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout
