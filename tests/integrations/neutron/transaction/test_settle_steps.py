"""What is owed to a ledger that was away: what is done already is no error, and what is put off is told plainly."""

import asyncio
import logging
import socket
import time
import warnings
from uuid import uuid4

import pytest

import tenure
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import StoreUnavailable
from tests.infrastructure.postgres import schema_in_thread

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Neutron imports is deprecated in places
    from tenure.integrations.neutron.database.allocation_rows import HeldAddress
    from tenure.integrations.neutron.database.subnet_records import SubnetRecord
    from tenure.integrations.neutron.transaction.ledger_client import Reach
    from tenure.integrations.neutron.transaction.recorded_steps import LetGo, Step, SubnetAddress, Took
    from tenure.integrations.neutron.transaction.settle_steps import LedgerEnds

PATIENCE_S = 60
ADDRESS = parse_address("10.0.0.7")


def subnet() -> SubnetRecord:
    """Give the record of a subnet that the ledger has no network for any more."""
    number = str(uuid4())
    return SubnetRecord(number, number, None, "10.0.0.0/24", None, (), None, "m")


def settle(reach: Reach) -> None:
    """Wait until nothing is owed."""
    deadline = time.monotonic() + PATIENCE_S
    while reach.owed and time.monotonic() < deadline:
        time.sleep(0.05)


def test_what_was_held_in_a_network_that_is_gone_needs_no_release(caplog: pytest.LogCaptureFixture) -> None:
    place, held = SubnetAddress(subnet(), ADDRESS), HeldAddress(ADDRESS, "port/gone", 3)
    released: list[Step] = [LetGo(place, held)]
    with schema_in_thread() as url:
        reach = Reach(url, 5.0)

        LedgerEnds(reach, "neutron").commit(released, None)
        LedgerEnds(reach, "neutron").undo([Took(place, held)], None)

        settle(reach)
        reach.close()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_what_cannot_be_confirmed_because_its_network_is_gone_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[Step] = [Took(SubnetAddress(subnet(), ADDRESS), HeldAddress(ADDRESS, "port/there", 3))]
    with schema_in_thread() as url:
        reach = Reach(url, 5.0)

        LedgerEnds(reach, "neutron").commit(taken, None)

        reach.close()
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.levelname == "ERROR"
    assert "what Neutron committed: the ledger cannot be told: no network 'neutron-" in record.getMessage()


def test_what_is_put_off_is_told_once_with_why_and_how_much_is_owed(caplog: pytest.LogCaptureFixture) -> None:
    away = True

    async def work(ledger: tenure.AsyncLedger) -> None:
        if away:
            raise StoreUnavailable("the ledger is away", outcome="none")

    with schema_in_thread() as url:
        reach = Reach(url, 5.0)

        reach.owe("the first", work)
        reach.owe("the second", work)

        away = False
        settle(reach)
        reach.close()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "the first: the ledger is told later: the ledger is away; things owed to it now: 1",
        "the second: the ledger is told later: other things are owed to it before; things owed to it now: 2",
    ]


def test_a_ledger_that_does_not_even_open_is_named_and_nothing_was_changed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        reach = Reach(f"postgresql://u@127.0.0.1:{mute.getsockname()[1]}/n", 0.3, may_make=False)

        with pytest.raises(StoreUnavailable, match=r"the ledger postgresql://127.0.0.1:\d+/n did not answer") as error:
            reach.ask(lambda ledger: ledger.last_change())

        reach.close()
    assert error.value.message.endswith("within 0.3 s (nothing was changed)")


@pytest.mark.parametrize(("reading", "outcome"), [(True, "none"), (False, "unknown")])
def test_who_only_reads_is_not_told_to_learn_an_outcome(reading: bool, outcome: str) -> None:
    async def hang(ledger: tenure.AsyncLedger) -> None:
        await asyncio.sleep(PATIENCE_S)

    with schema_in_thread() as url:
        tenure.open(url).close()  # makes the tables, which may take longer than an answer
        reach = Reach(url, 1.5, reading=reading)
        reach.ask(lambda ledger: ledger.last_change())

        with pytest.raises(StoreUnavailable) as error:
            reach.ask(hang)

        reach.close()
    assert error.value.outcome == outcome
