"""A ledger of any size out of nothing, and its way from SQLite to PostgreSQL and back.

``python -m tests.interchange.million`` prints counts, seconds, the peak of memory (of this process, by the stages of
the copies) and whether the content at the end is the same as at the beginning.
"""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tenure.interchange.content_digest import digest_of
from tenure.interchange.copy_ledger import CopyReport, copy
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.addressing.ranges import parse_cidr, parse_range
from tenure.kernel.holdings.holding_model import Change, Paper, Reply, Row, State
from tenure.kernel.holdings.log_entries import grant_details
from tenure.kernel.plan.plan_model import Network, Notes, Policy, Pool, Reserved, Subnet
from tenure.kernel.snapshot import Counters, Former, Kind, PlacedNetwork, Section, Space
from tenure.wiring import open_store
from tests.infrastructure.postgres import private_postgres

MILLION = 1_000_000
PAGE = 2000
BEGUN_US = 1_760_000_000_000_000
SIX_EVERY = 5
"""One holding in so many is an IPv6 prefix in a space of its own."""

V4, V6 = parse_address("10.0.1.0"), parse_address("2001:db8::")


async def made_contents(holdings: int) -> AsyncGenerator[Section, None]:
    """Make up a ledger: rows of every state, labels, former addresses, kept replies, papers, the log."""
    sixes = holdings // SIX_EVERY
    formers = holdings // 100
    cooling = sum(1 for number in range(holdings) if _state(number) is State.COOLING)
    changes = 2 * formers + holdings + cooling
    counters = Counters(changes, 0, formers + holdings + 7, 12, 9, holdings, changes)
    yield Section(Kind.COUNTERS, [counters])
    yield Section(Kind.SPACES, [Space(3, "site", 4), Space(8, "prefixes – §", 2)])
    yield Section(Kind.NETWORKS, [PlacedNetwork(3, _v4_network()), PlacedNetwork(8, _v6_network())])
    streams: list[tuple[Kind, Iterator[Any]]] = [
        (Kind.HOLDINGS, (_row(number, formers) for number in range(holdings - sixes))),
        (Kind.HOLDINGS, (_row(number, formers, six=True) for number in range(holdings - sixes, holdings))),
        (Kind.FORMERS, (Former(5, f"vm/gone-{number:09}", "nic0", V4 + number) for number in range(formers))),
        (Kind.REPLIES, (_reply(number) for number in range(formers))),
        (Kind.PAPERS, (_paper(number) for number in range(formers))),
        (Kind.CHANGES, _changes(holdings, formers)),
    ]
    for kind, items in streams:
        while page := list(islice(items, PAGE)):
            yield Section(kind, page)


def _v4_network() -> Network:
    pool = Pool(parse_range("10.0.0.16-10.255.255.250"), "wide", Policy.RANDOM, 60, notes=Notes({"a": "ü"}, "dé"))
    reserved = (Reserved(parse_range("10.0.0.16-10.0.0.20"), "by hand"),)
    cidr, gateway = parse_cidr("10.0.0.0/8"), parse_address("10.0.0.1")
    block = Subnet(cidr, "s-1", "block", gateway, ("9.9.9.9",), pools=(pool,), reserved=reserved)
    return Network(5, "wide", "u-5", tags=("x", "y"), subnets=(block,), notes=Notes({"team": "shop"}, "a /8"))


def _v6_network() -> Network:
    pool = Pool(parse_range("2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"))
    block = Subnet(parse_cidr("2001:db8::/32"), "s-2", unit=64, pools=(pool,))
    return Network(11, "prefixes", "u-11", subnets=(block,))


def _state(number: int) -> State:
    if number % 50 == 0:
        return State.PENDING
    if number % 97 == 0:
        return State.DRAINING
    return State.COOLING if number % 101 == 0 else State.HELD


def _row(number: int, formers: int, *, six: bool = False) -> Row:
    state = _state(number)
    first = V6 + (number << 64) if six else V4 + number
    last = first + (1 << 64) - 1 if six else first
    details = {"labels": {"team": f"t-{number % 7}", "ö": "ß"}, "description": "…"} if number % 10 == 0 else {}
    until_us = BEGUN_US + number if state in (State.PENDING, State.COOLING) else None
    place = (8, 11) if six else (3, 5)
    return Row(
        *place, first, last, f"instance/{number * 7919 % 1_000_003:07}-{number}", "nic0/ip1" if number % 3 else "",
        state, formers + number + 1, BEGUN_US + number, until_us, f"req-{number}" if number % 4 == 0 else None, details,
    )  # fmt: skip


def _reply(number: int) -> Reply:
    body = number.to_bytes(16, "big")
    if number % 2:
        return Reply(f"key-{number:09}", body, BEGUN_US + number, answer=json.dumps({"n": number}))
    return Reply(f"key-{number:09}", body, BEGUN_US + number, 3, 5, V4 + number, V4 + number, number + 1, None)


def _paper(number: int) -> Paper:
    document = {"nics": [{"ip": None, "mac": f"aa:{number:06x}"}], "ü": {"deep": [1, 2.5, True]}} if number % 2 else {}
    return Paper("instance", f"vm-{number:09}", number + 1, document)


def _changes(holdings: int, formers: int) -> Iterator[Change]:
    seq = 0
    for number in range(formers):
        where = (3, 5, V4 + number, V4 + number, f"vm/gone-{number:09}", "nic0", number + 1, None)
        yield Change(seq + 1, BEGUN_US + seq, "grant", *where)
        yield Change(seq + 2, BEGUN_US + seq, "release", *where, {"since_us": BEGUN_US + seq})
        seq += 2
    cooling: list[Row] = []
    for number in range(holdings):
        row = _row(number, formers, six=number >= holdings - holdings // SIX_EVERY)
        seq += 1
        if row.state is State.COOLING:
            cooling.append(row)
            row = row._replace(state=State.HELD, until_us=None)
        told = grant_details(State.HELD if row.state is State.DRAINING else row.state, row.until_us, row.details)
        yield _change(seq, row, "grant", told)
    for number, row in enumerate(cooling, seq + 1):
        yield _change(number, row, "cool", {"since_us": row.since_us, "until_us": row.until_us})


def _change(seq: int, row: Row, verb: str, told: Mapping[str, Any]) -> Change:
    where = (row.space, row.network, row.first, row.last, row.owner, row.slot, row.generation, row.request)
    return Change(seq, BEGUN_US + seq, verb, *where, told)


async def make_ledger(url: str, holdings: int) -> str:
    """Fill an empty store with a ledger made up; return its digest."""
    store = await open_store(url)
    try:
        await store.fill(made_contents(holdings))
        return (await digest_of(store.contents(), lambda section: None)).whole
    finally:
        await store.close()


class Watch:
    """Times the stages of a copy, and looks at the peak of memory where each begins."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_mb: dict[str, int] = {}
        self._stage, self._since = "", time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take note of progress."""
        now = time.monotonic()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
            self.peak_mb[self._stage] = peak_mb()
        self._stage, self._since = stage, now


def peak_mb() -> int:
    """Return the most memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


async def _copied(source: str, target: str) -> tuple[CopyReport, dict[str, Any]]:
    watch, begun = Watch(), time.monotonic()
    report = await copy(source, target, progress=watch)
    stages = {stage: round(seconds, 1) for stage, seconds in watch.seconds.items()}
    total = round(time.monotonic() - begun, 1)
    return report, {"seconds": total, "stages": stages, "peak_mb": watch.peak_mb}


async def there_and_back(server: str, folder: Path, holdings: int) -> dict[str, Any]:
    """Copy a made-up ledger from SQLite to PostgreSQL and back; return the figures."""
    first, last = f"sqlite:///{folder / 'first.db'}", f"sqlite:///{folder / 'last.db'}"
    begun = time.monotonic()
    made = await make_ledger(first, holdings)
    figures: dict[str, Any] = {"holdings": holdings, "made_s": round(time.monotonic() - begun, 1)}
    there, figures["sqlite_to_postgres"] = await _copied(first, server)
    back, figures["postgres_to_sqlite"] = await _copied(server, last)
    figures |= {
        "counts": dict(back.counts),
        "seq": back.seq,
        "file_mb": (folder / "last.db").stat().st_size >> 20,
        "peak_mb": peak_mb(),
        "breaches": len(there.breaches) + len(back.breaches),
        "identical": made == there.digest == back.digest,
    }
    return figures


def run(holdings: int = MILLION) -> dict[str, Any]:
    """Do it on a PostgreSQL of its own; ``failures`` is what a soak counts."""
    with private_postgres() as server, tempfile.TemporaryDirectory(prefix="tenure-million-") as folder:
        figures = asyncio.run(there_and_back(server.url, Path(folder), holdings))
    return figures | {"failures": int(not figures["identical"] or bool(figures["breaches"]))}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.interchange.million", description=__doc__)
    parser.add_argument("--holdings", type=int, default=MILLION)
    figures = run(parser.parse_args().holdings)
    print(json.dumps(figures, indent=2))
    return figures["failures"]  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
