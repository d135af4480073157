"""Time inside a transaction that the caller has open: pending, cooling, keys and the line, kept or rolled back."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure

pytestmark = pytest.mark.every_store

ADDRESS = "192.0.2.10"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(file: Path) -> Iterator[tenure.Ledger]:
    """Give a ledger with a pool of two addresses that cool."""
    with tenure.open(f"sqlite:///{file}") as opened:
        opened.add_network("net")
        opened.add_subnet("net", "192.0.2.0/24")
        opened.add_pool("net", "192.0.2.10-192.0.2.11", cooling_s=60)
        yield opened
        assert opened.verify() == []


@pytest.fixture
def mine(file: Path, ledger: tenure.Ledger) -> Iterator[sqlite3.Connection]:
    """Give a connection of the caller's own."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_release_inside_cools_if_it_is_kept(ledger: tenure.Ledger, mine: sqlite3.Connection, end: str) -> None:
    given = ledger.allocate("net", owner="vm/a")
    mine.execute("BEGIN")
    assert ledger.inside(mine).release("net", ADDRESS, owner="vm/a") == given
    assert ledger.inside(mine).release("net", ADDRESS, owner="vm/a") is None
    mine.execute(end)

    assert ledger.holding("net", ADDRESS).state == ("cooling" if end == "COMMIT" else "held")
    assert ledger.allocate("net", owner="vm/b").address == "192.0.2.11"


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_confirm_inside_holds_if_it_is_kept(ledger: tenure.Ledger, mine: sqlite3.Connection, end: str) -> None:
    ledger.hold("net", owner="vm/a", lasts_s=60)
    mine.execute("BEGIN")
    ledger.inside(mine).apply([tenure.Confirm(network="net", address=ADDRESS, owner="vm/a")])
    mine.execute(end)

    assert ledger.holding("net", ADDRESS).state == ("held" if end == "COMMIT" else "pending")


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_key_used_inside_stands_if_it_is_kept(ledger: tenure.Ledger, mine: sqlite3.Connection, end: str) -> None:
    mine.execute("BEGIN")
    first = ledger.inside(mine).allocate("net", owner="vm/a", key="k-1")
    assert ledger.inside(mine).allocate("net", owner="vm/a", key="k-1") == first
    with pytest.raises(tenure.KeyReused):
        ledger.inside(mine).allocate("net", owner="vm/b", key="k-1")
    mine.execute(end)
    ledger.release_owner("vm/a")

    again = ledger.allocate("net", owner="vm/a", key="k-1")
    assert (again == first) == (end == "COMMIT")


def test_nobody_jumps_the_line_from_inside(ledger: tenure.Ledger, mine: sqlite3.Connection) -> None:
    ledger.modify_pool("net", "192.0.2.10-192.0.2.11", cooling_s=0)
    ledger.allocate_many("net", owner="vm/full", count=2)
    ledger.claim("net", owner="vm/old")
    ledger.release("net", ADDRESS, owner="vm/full")
    mine.execute("BEGIN")
    with pytest.raises(tenure.PoolExhausted):
        ledger.inside(mine).allocate("net", owner="vm/young")
    mine.execute("COMMIT")

    assert ledger.claim("net", owner="vm/old").state == "granted"


def test_a_claim_that_waits_is_served_from_inside_if_it_is_kept(
    ledger: tenure.Ledger, mine: sqlite3.Connection
) -> None:
    ledger.modify_pool("net", "192.0.2.10-192.0.2.11", cooling_s=0)
    ledger.allocate_many("net", owner="vm/full", count=2)
    ledger.claim("net", owner="vm/old")
    ledger.release("net", ADDRESS, owner="vm/full")
    for end in ("ROLLBACK", "COMMIT"):
        mine.execute("BEGIN")
        assert ledger.inside(mine).allocate("net", owner="vm/old").address == ADDRESS
        mine.execute(end)
        assert [claim.owner for claim in ledger.waiting()] == (["vm/old"] if end == "ROLLBACK" else [])
