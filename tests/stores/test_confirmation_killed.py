"""A process killed before or after it writes a confirmation: it was made or it was not, and can be made again."""

import signal

import pytest

import tenure
from tenure.ports import LedgerStore
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import verbs
from tests.contract.providers import Provider, ledger_providers
from tests.infrastructure.async_module import start_module

LASTING = [provider for provider in ledger_providers() if provider.abilities.survives_restart]


@pytest.mark.parametrize(("moment", "left"), [("before", "pending"), ("after", "held")])
@pytest.mark.parametrize("provider", LASTING, ids=lambda provider: provider.name)
async def test_a_confirmation_that_was_killed_can_be_made_again(
    provider: Provider[LedgerStore], moment: str, left: str
) -> None:
    async with provider.place() as url, await tenure.open_async(url) as ledger:
        await small_plan(ledger)
        held = await ledger.hold("net", owner="vm/a", lasts_s=60)
        cursor = await ledger.last_change()
        child = await start_module("tests.stores.confirmer", url, moment)
        assert await child.wait() == -signal.SIGKILL
        found = await ledger.holding("net", held.address)

        again = await ledger.confirm("net", held.address, owner="vm/a", generation=held.generation)

        assert (found.state, again.state, again.until) == (left, "held", None)
        assert await verbs(ledger, cursor) == ["confirm"]
        assert await ledger.verify() == []
