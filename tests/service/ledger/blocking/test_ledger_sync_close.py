"""Closing a ledger leaves nobody waiting."""

import threading
import time
from pathlib import Path

import pytest

import tenure


@pytest.fixture(params=["memory:", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> tenure.Ledger:
    url = request.param if request.param == "memory:" else f"sqlite:///{tmp_path}/closing.db"
    opened = tenure.open(url)
    opened.add_network("net")
    opened.add_subnet("net", "10.0.0.0/16")
    opened.add_pool("net", "10.0.0.0/16")
    return opened


def test_whoever_waits_when_a_ledger_is_closed_is_told(ledger: tenure.Ledger) -> None:
    ends: list[str] = []

    def work(name: int) -> None:
        try:
            for number in range(100_000):
                ledger.allocate("net", owner=f"pod/{name}-{number}")
        except tenure.TenureError as error:
            ends.append(error.code)

    def follow() -> None:
        try:
            for _ in ledger.tail():
                pass
        except tenure.TenureError as error:
            ends.append(error.code)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)] + [threading.Thread(target=follow)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    ledger.close()
    for thread in threads:
        thread.join(timeout=30)

    assert not any(thread.is_alive() for thread in threads)
    assert len(ends) == len(threads)
