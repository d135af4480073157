"""The ledger from one process: how long it is waited for, and what is owed to it."""

import time

import tenure
from tenure.integrations.neutron.transaction.ledger_client import Reach
from tenure.kernel.errors import StoreUnavailable
from tests.infrastructure.postgres import schema_in_thread

PATIENCE_S = 60


def test_a_ledger_that_opens_slower_than_a_request_waits_is_opened_all_the_same() -> None:
    with schema_in_thread() as url:
        reach = Reach(url, 0.02)
        deadline = time.monotonic() + PATIENCE_S
        answer = None

        while answer is None and time.monotonic() < deadline:
            try:
                answer = reach.ask(lambda ledger: ledger.last_change())
            except StoreUnavailable:
                time.sleep(0.02)

        reach.close()
        assert answer == 0


def test_what_is_owed_is_done_in_order_when_the_ledger_is_back() -> None:
    with schema_in_thread() as url:
        reach = Reach(url, 5.0)
        tries: list[str] = []

        async def away_at_first(ledger: tenure.AsyncLedger) -> None:
            tries.append("first")
            if len(tries) < 3:
                raise StoreUnavailable("away", outcome="none")

        async def second(ledger: tenure.AsyncLedger) -> None:
            tries.append("second")

        reach.owe("the first", away_at_first)
        reach.owe("the second", second)
        deadline = time.monotonic() + PATIENCE_S
        while reach.owed and time.monotonic() < deadline:
            time.sleep(0.05)

        reach.close()
        assert tries == ["first", "first", "first", "second"]
