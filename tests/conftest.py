"""What every suite has: a profile of Hypothesis, the run's folder, the line that tells the stores, open ledgers."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

import tenure
from tenure.ports import LedgerStore
from tenure.service.read.verify import MACHINES
from tests.contract.providers import Provider, book_providers, ledger_providers
from tests.infrastructure import chromium, kube, mariadb
from tests.infrastructure.forked_workers import ForkedWorkers
from tests.infrastructure.postgres import PostgresServer, private_postgres, run_folder
from tests.profiles import load_profile
from tests.scale import PROOF, by_store, left_for_proof

load_profile()
os.environ["EVENTLET_NO_GREENDNS"] = "yes"  # Neutron loads eventlet, which else puts its own copy of dnspython in place

FINISH = pytest.StashKey[ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the number of workers."""
    # pytest leaves small letters to itself, unless it is asked so.
    parser.getgroup("workers")._addoption("-n", dest="workers", type=int, default=0, help="run in so many processes")


def pytest_configure(config: pytest.Config) -> None:
    """Make the run's folder, which all its processes find. Let interrupts reach what tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts background jobs so, and all their children inherit it: servers would not hear Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    stack = config.stash[FINISH] = ExitStack()
    stack.enter_context(run_folder())
    if config.option.workers:
        config.pluginmanager.register(ForkedWorkers(config.option.workers))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what the run started."""
    if FINISH in config.stash:
        config.stash[FINISH].close()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Tell which stores are under test, and which databases under Neutron."""
    tiers = ", ".join(f"{provider.name} ({provider.tier})" for provider in book_providers())
    scope = "every store, mode and piece (proof)" if PROOF else "every promise once (make proof runs the rest)"
    return [f"scope: {scope}", f"stores under test: {tiers}", mariadb.headline(), chromium.headline(), kube.headline()]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave for ``make proof`` what only it runs; let one worker run what shares a fixture of its module or package."""
    if not PROOF:
        later = left_for_proof(items)
        items[:] = [item for item in items if item not in later]
        config.hook.pytest_deselected(items=list(later))
    for item in items:
        if item.get_closest_marker("one_worker") is None and (place := _shared_place(item)):
            item.add_marker(pytest.mark.one_worker(place))


def _shared_place(item: pytest.Item) -> str:
    """Return the module or package whose fixtures a test shares with others: every worker would make them again."""
    if not isinstance(item, pytest.Function):
        return ""
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    scopes = {definitions[-1].scope for definitions in fixtures}
    if "package" in scopes:
        return str(item.path.parent)
    return str(item.path) if "module" in scopes else ""


@pytest.fixture(params=by_store(ledger_providers()))
def ledger_provider(request: pytest.FixtureRequest) -> Provider[LedgerStore]:
    """Run the test on every store of the ledger tier."""
    provider: Provider[LedgerStore] = request.param
    return provider


@pytest.fixture
async def place(ledger_provider: Provider[LedgerStore]) -> AsyncIterator[str]:
    """Give the URL of a fresh, empty ledger."""
    async with ledger_provider.place() as url:
        yield url


@pytest.fixture
async def ledger(place: str, request: pytest.FixtureRequest) -> AsyncIterator[tenure.AsyncLedger]:
    """Give a fresh ledger, and find it without breaches at the end, but for those that the test is marked for."""
    wanted = set() if request.node.get_closest_marker("on_machines_addresses") is None else {MACHINES}
    async with await tenure.open_async(place) as opened:
        yield opened
        breaches = await opened.verify()
        assert [breach for breach in breaches if breach.invariant not in wanted] == []
        # A mark that is no longer needed would hide the next wrong finding.
        assert wanted <= {breach.invariant for breach in breaches}


@pytest.fixture
def fragile_postgres() -> Iterator[PostgresServer]:
    """Give a PostgreSQL of the test's own, which it may kill and start again."""
    with private_postgres() as server:
        yield server
