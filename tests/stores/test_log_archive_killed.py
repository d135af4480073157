"""A process killed at any step of a move into the archive: nothing is lost, nothing is there twice."""

import signal

import pytest

import tenure
from tenure.kernel.holdings.holding_model import Change
from tenure.ports import LedgerStore
from tenure.service.read.whole_log import whole_log
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import store_of
from tests.contract.providers import Provider, ledger_providers
from tests.infrastructure.async_module import start_module
from tests.scale import PROOF

LASTING = [provider for provider in ledger_providers() if provider.abilities.survives_restart]
PLACE = "192.0.2.10"
STRIDE = 1 if PROOF else 2
"""How many steps further the next process dies."""


async def _killed_at(url: str, step: int) -> bool:
    """Move changes in a process of its own; tell whether it died at the step."""
    process = await start_module("tests.stores.archive_mover", url, str(step))
    told, _ = await process.communicate()
    if told.decode().strip() == "survived":
        return False
    assert process.returncode == -signal.SIGKILL
    return True


async def _read(store: LedgerStore) -> tuple[list[Change], int]:
    """Read every change that is kept, and how many of them are archived."""
    return [change async for page in whole_log(store, 0) for change in page], (await store.size()).archived


@pytest.mark.parametrize("provider", LASTING, ids=lambda provider: provider.name)
async def test_a_move_killed_at_any_step_was_made_or_was_not(provider: Provider[LedgerStore]) -> None:
    step, moves, outcomes = 1, 0, set()
    async with provider.place() as url, await tenure.open_async(url) as ledger:
        await small_plan(ledger)
        while True:
            await ledger.allocate("net", owner=f"vm/{step}", address=PLACE)
            await ledger.release("net", PLACE, owner=f"vm/{step}")
            moves += 1
            last = await ledger.last_change()
            before, archived = await _read(store_of(ledger))
            killed = await _killed_at(url, step)
            after, then = await _read(store_of(ledger))

            assert [change.seq for change in after] == list(range(1, last + 1))
            assert after == before
            assert then in (archived, last)
            assert len(await ledger.history(PLACE)) == moves
            assert await ledger.verify() == []
            outcomes.add(then == last)
            if not killed:
                break
            step += STRIDE

    assert step > 5
    assert outcomes == {False, True}
