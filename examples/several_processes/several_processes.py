"""Several processes on one SQLite file: the store decides, so nobody has to be in charge."""

import multiprocessing
import tempfile
from pathlib import Path

import tenure

PROCESSES = 3
EACH = 20


def fill(url: str, worker: int) -> list[str]:
    """Take addresses in a process of its own."""
    with tenure.open(url) as ledger:
        return [ledger.allocate("net1", owner=f"vm/{worker}-{number}").address for number in range(EACH)]


def main() -> None:
    """Fill a pool from all sides, to the last address."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'tenure.db'}"
        with tenure.open(url) as ledger:
            ledger.add_network("net1")
            ledger.add_subnet("net1", "192.0.2.0/24")
            ledger.add_pool("net1", f"192.0.2.1-192.0.2.{PROCESSES * EACH}")
        with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
            taken = pool.starmap(fill, [(url, worker) for worker in range(PROCESSES)])
        with tenure.open(url) as ledger:
            addresses = [address for share in taken for address in share]
            assert len(set(addresses)) == PROCESSES * EACH
            assert ledger.verify() == []
    print(f"{PROCESSES} processes took {len(addresses)} addresses; each once")


if __name__ == "__main__":
    main()
