"""Wrong input, and a ledger to try it on: every public call with good arguments, and things to put in their place."""

import inspect
import ipaddress
import math
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import tenure
from tenure.service.ledger.engine_ledger import server_of
from tenure.stores.memory.store import MemoryStore
from tests.profiles import EXAMPLES
from tests.scale import PROOF

Arguments = dict[str, Any]

GOOD: dict[str, Arguments] = {
    "asked_by": {"actor": "token/ops", "request_id": "r-1"},
    "add_network": {"name": "new", "space": "s", "tags": ["t"], "labels": {"a": "b"}, "mac_prefix": "aa:bb:cc"},
    "modify_network": {"network": "net1", "description": "new"},
    "retire_network": {"network": "net1"},
    "remove_network": {"network": "idle", "cascade": False},
    "add_subnet": {"network": "net1", "cidr": "198.51.100.0/24", "gateway": "198.51.100.1", "dns": ["192.0.2.2"]},
    "modify_subnet": {"network": "net1", "subnet": "subnet1", "zones": ["z"], "keep_back": ["network"]},
    "retire_subnet": {"network": "net1", "subnet": "subnet1"},
    "remove_subnet": {"network": "net1", "subnet": "idle", "cascade": False},
    "add_pool": {"network": "net1", "range": "192.0.2.120-192.0.2.130", "name": "new", "policy": "random"},
    "modify_pool": {"network": "net1", "pool": "pool1", "policy": "hashed"},
    "retire_pool": {"network": "net1", "pool": "pool1"},
    "remove_pool": {"network": "net1", "pool": "pool1"},
    "reserve": {"network": "net1", "range": "192.0.2.200-192.0.2.210", "reason": "why", "labels": {"a": "b"}},
    "unreserve": {"network": "net1", "range": "192.0.2.20-192.0.2.30"},
    "preallocate": {"network": "net1", "owner": "instance/p", "address": "192.0.2.60", "slot": ""},
    "remove_preallocation": {"network": "net1", "owner": "instance/waiting", "slot": ""},
    "allocate": {"network": "net1", "owner": "instance/new", "slot": "", "labels": {"a": "b"}},
    "allocate_many": {"network": "net1", "owners": ["instance/new"], "labels": {"a": "b"}},
    "hold": {"network": "net1", "owner": "instance/new", "lasts_s": 60, "key": "k-1"},
    "confirm": {"network": "net1", "address": "192.0.2.11", "owner": "instance/p"},
    "cancel": {"network": "net1", "address": "192.0.2.11", "owner": "instance/p"},
    "claim": {"network": "net1", "owner": "instance/new", "pool": "single", "patience_s": 60},
    "withdraw": {"network": "net1", "owner": "instance/new", "slot": ""},
    "waiting": {"network": "net1"},
    "sweep": {},
    "release": {"network": "net1", "address": "192.0.2.10", "owner": "instance/a"},
    "release_owner": {"owner": "instance/a"},
    "transfer": {"network": "net1", "address": "192.0.2.10", "owner": "instance/a", "to": "instance/z"},
    "modify_holding": {"network": "net1", "address": "192.0.2.10", "owner": "instance/a", "carrier": "vm-7"},
    "apply": {"operations": [tenure.Reserve(network="net1", range="192.0.2.200")]},
    "rehearse": {"operations": [tenure.Reserve(network="net1", range="192.0.2.200")]},
    "holdings_of": {"owners": ["instance/web-0"]},
    "spaces": {},
    "networks": {},
    "network": {"name": "net1"},
    "holding": {"network": "net1", "address": "192.0.2.10"},
    "holdings": {"network": "net1"},
    "paper": {"kind": "instance", "name": "web-0"},
    "papers": {"kind": "instance", "prefix": "web", "after": "web-", "limit": 3},
    "changes": {"after": 0, "limit": 3},
    "tail": {"after": 0},
    "last_change": {},
    "why": {"address": "192.0.2.10"},
    "history": {"address": "192.0.2.10"},
    "search": {"text": "instance", "labels": {"a": None}, "kind": "holding", "limit": 3},
    "verify": {},
    "trim_changes": {"before": 1},
    "archive_changes": {"keep_days": 1},
}

OPERATIONS: dict[type, Arguments] = {
    tenure.AddNetwork: {"network": "new"},
    tenure.ModifyNetwork: {"network": "net1"},
    tenure.RemoveNetwork: {"network": "idle"},
    tenure.AddSubnet: {"network": "net1", "cidr": "198.51.100.0/24"},
    tenure.ModifySubnet: {"network": "net1", "subnet": "subnet1"},
    tenure.RemoveSubnet: {"network": "net1", "subnet": "idle"},
    tenure.AddPool: {"network": "net1", "range": "192.0.2.120"},
    tenure.ModifyPool: {"network": "net1", "pool": "pool1"},
    tenure.RemovePool: {"network": "net1", "pool": "pool1"},
    tenure.Reserve: {"network": "net1", "range": "192.0.2.200"},
    tenure.Unreserve: {"network": "net1", "range": "192.0.2.20"},
    tenure.Preallocate: {"network": "net1", "owner": "instance/p", "address": "192.0.2.60"},
    tenure.RemovePreallocation: {"network": "net1", "owner": "instance/waiting"},
    tenure.Allocate: {"network": "net1", "owner": "instance/new"},
    tenure.AllocateRun: {"network": "net1", "owners": ["instance/new", "instance/newer"], "slots": ["", "nic1"]},
    tenure.Confirm: {"network": "net1", "address": "192.0.2.11", "owner": "instance/p"},
    tenure.Cancel: {"network": "net1", "address": "192.0.2.11", "owner": "instance/p"},
    tenure.ModifyHolding: {"network": "net1", "address": "192.0.2.10", "owner": "instance/a", "state": "draining"},
    tenure.ReleaseOwner: {"owner": "instance/a"},
    tenure.Release: {"network": "net1", "address": "192.0.2.10", "owner": "instance/a"},
    tenure.Transfer: {"network": "net1", "address": "192.0.2.10", "owner": "instance/a", "to": "instance/z"},
    tenure.EndCooling: {"network": "net1", "address": "192.0.2.90", "owner": "instance/cold"},
    tenure.Connect: {"network": "net1", "group": "rack2", "mode": "routed", "link": "eth1", "vlan": "7"},
    tenure.Disconnect: {"network": "net1", "group": "rack1"},
    tenure.Expect: {"network": "idle", "serial": 1},
    tenure.ExpectHolding: {"network": "net1", "address": "192.0.2.10", "owner": "instance/a"},
    tenure.ExpectNoHoldings: {"network": "net1", "range": "192.0.2.10-192.0.2.99", "state": "draining"},
    tenure.ExpectNoPapers: {"kind": "instance", "prefix": "db-"},
    tenure.IgnoreConflicts: {"network": "net1"},
    tenure.ExpectPaper: {"kind": "instance", "name": "web-0", "revision": 1},
    tenure.WritePaper: {"kind": "instance", "name": "web-0", "document": {"nics": [1]}, "revision": 1},
    tenure.RemovePaper: {"kind": "instance", "name": "web-0", "revision": 1},
}


class Thing:
    """Something that no call has ever heard of; its text is the same in every process."""

    def __repr__(self) -> str:
        return "Thing()"


NUMBERS = [0, 1, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**5000, 1.5, -0.0, math.nan, math.inf, 1j, True, False]
TEXTS = [
    *("", " ", "\0", "a\0b", "a\nb", "\r", "\x1b[31m", "\x7f", "\ud800", "instance/\udfff", "\u202eabc", "\ufeff"),
    *("x" * 100_000, "9" * 5_000, "net1 ", "NET1", "nothing", "pool1", "subnet1", "instance/a", "instance/b", "none"),
    *("192.0.2.0/24", "192.0.2.0/33", "192.0.2.1/24", "192.0.2.300", "192.0.2.1", "192.0.2.10", "192.0.2.25", "0/0"),
    *("192.0.2.9-192.0.2.1", "192.0.2.1-2001:db8::1", "192.0.2.200+100", "2001:db8::1", "2001:db8::/64", "fe80::1%e"),
    *("-", "+", "/", ":", "%", "'; DROP TABLE holding; --", "{}", "lowest", "force", "１９２.0.2.1", "10.99.0.1"),
]
OTHERS: list[object] = [
    *(
        None,
        b"",
        b"net1",
        b"\xff",
        bytearray(b"x"),
        [],
        (),
        {},
        set(),
        [None],
        [1],
        ["\ud800"],
        ["x" * 100_000],
        [[[[]]]],
    ),
    *({"a": None}, {1: "x", "a": "y"}, {"a": "\0"}, {"\ud800": "x"}, {"a": {"b": "c"}}, {"x" * 300: ""}, [[[]]]),
    *(Thing(), int, len, tenure.KEEP, tenure.State.HELD, ipaddress.ip_address("192.0.2.25"), frozenset({"a"})),
    *(ipaddress.ip_address("fe80::1%e"), ValueError("x"), ...),
]
JUNK: list[object] = [*NUMBERS, *TEXTS, *OTHERS]
NEVER: list[object] = [1.5, 1j, Thing(), int, ValueError("x"), b"\xff", {1: "x", "a": "y"}]
"""What no parameter of any call can mean."""

BRIEF: list[object] = [
    *(0, -1, 2**64, 10**5000, True, "", "\0", "\ud800", "x" * 100_000, "192.0.2.10", "nothing", None, []),
    *NEVER,
]
"""A short choice of junk, for places where a call is dear."""


def choice(turn: int, url: str) -> list[object]:
    """Choose the short junk and a share of the rest, of a dearer store a share of the short; a soak takes all."""
    if EXAMPLES:
        return [*BRIEF, *JUNK]
    every = 10 if PROOF else 20
    return [*BRIEF, *JUNK[turn % every :: every]] if url == "memory:" else BRIEF[turn % 3 :: 3]


def verbs() -> list[str]:
    """Name every public verb of the ledger but ``close`` and ``inside``, which has tests of its own."""
    found = (name for name, _ in inspect.getmembers(tenure.Ledger, callable) if not name.startswith("_"))
    return sorted(name for name in found if name not in ("close", "inside"))


def parameters(verb: str) -> list[str]:
    """Name the parameters of a verb."""
    return [name for name in inspect.signature(getattr(tenure.Ledger, verb)).parameters if name != "self"]


def field_names(kind: type) -> list[str]:
    """Name the fields of an operation."""
    return [entry.name for entry in fields(kind)]


def seed(ledger: tenure.Ledger) -> None:
    """Fill a ledger with a little of everything."""
    ledger.add_network("net1")
    ledger.add_subnet("net1", "192.0.2.0/24", gateway="192.0.2.1", name="subnet1")
    ledger.add_subnet("net1", "2001:db8::/64")
    ledger.add_subnet("net1", "203.0.113.0/24")
    ledger.add_subnet("net1", "198.18.0.0/24", name="idle")
    ledger.add_pool("net1", "192.0.2.10-192.0.2.100", name="pool1")
    ledger.add_pool("net1", "203.0.113.8/29", name="sticky", policy="sticky")
    ledger.reserve("net1", "192.0.2.20-192.0.2.30", reason="printers")
    ledger.preallocate("net1", "instance/waiting", "192.0.2.50")
    ledger.add_network("idle", space="site")
    ledger.add_pool("net1", "203.0.113.100", name="single", cooling_s=3600)
    ledger.allocate("net1", owner="instance/a", labels={"team": "shop"}, request="r1")
    ledger.hold("net1", owner="instance/p", lasts_s=3600, key="seeded")
    ledger.allocate("net1", owner="instance/single", pool="single")
    ledger.release_owner("instance/single")
    ledger.allocate("net1", owner="instance/b", address="203.0.113.9")
    ledger.allocate("net1", owner="instance/gone", pool="sticky")
    ledger.release_owner("instance/gone")
    ledger.allocate("net1", owner="instance/cold", address="192.0.2.90")
    ledger.release("net1", "192.0.2.90", owner="instance/cold", lingers_s=3600)
    papers: list[tuple[str, str, Arguments]] = [
        ("instance", "web-0", {"nics": []}),
        ("instance", "web-1", {}),
        ("group", "rack1", {"nodes": ["n1"]}),
    ]
    ledger.apply([tenure.WritePaper(kind=kind, name=name, document=document) for kind, name, document in papers])
    ledger.apply([tenure.Connect(network="net1", group="rack1", link="br0")])


class Seeded:
    """A filled ledger and what it looks like; filled anew after a call that changed it."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._open()

    def _open(self) -> None:
        self.url = self._url()
        if self.url.startswith("sqlite:///"):
            self._copy(Path(self.url.removeprefix("sqlite:///")))
        self.ledger = tenure.open(self.url)
        if self.url == "memory:":
            seed(self.ledger)
        self.pristine = self.dump()
        self.touched = False

    @staticmethod
    def _copy(path: Path) -> None:
        """Copy a filled file: filling one takes a dozen durable commits."""
        filled = path.with_name("filled.db")
        if not filled.exists():
            with tenure.open(f"sqlite:///{filled}") as ledger:
                seed(ledger)
        shutil.copyfile(filled, path)

    def refresh(self) -> None:
        """Begin again if anything changed."""
        if self.touched and self.changed():
            self.ledger.close()
            self._open()
        self.touched = True

    def changed(self) -> bool:
        """Tell whether anything differs from the beginning."""
        try:
            changed = self.dump() != self.pristine
        except ValueError:  # a number got in that cannot even be written down
            changed = True
        self.touched = changed
        return changed

    def dump(self) -> str:
        """Write everything that is stored, as text."""
        if self.url.startswith("sqlite:///"):
            return dump_sqlite(Path(self.url.removeprefix("sqlite:///")))
        store = server_of(self.ledger._ledger).store
        assert isinstance(store, MemoryStore)
        books = [(space, book.configuration, sorted(book.rows.items())) for space, book in store.books.items()]
        indexes = (sorted(store.claims), sorted((owner, sorted(rows)) for owner, rows in store.owners.items()))
        formers, waiting = sorted(store.formers.items()), sorted(store.waiting.items())
        papers = sorted(store.papers_by_name.items())
        kept = (store.replies, papers, formers, waiting, store.log, store.seq, store.oldest)
        return "\n".join(map(repr, (books, indexes, *kept)))

    def call(self, verb: str, arguments: Arguments) -> object:
        """Make a call; an iterator is walked, of one without end only the first item."""
        answer = getattr(self.ledger, verb)(**arguments)
        if isinstance(answer, Iterator):
            with closing(answer):  # type: ignore[type-var]
                return list(islice(answer, 1 if verb == "tail" else 10_000))
        return answer


def dump_sqlite(path: Path) -> str:
    """Write every table of a file as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(connection.iterdump())


@contextmanager
def seeded(url: Callable[[], str]) -> Iterator[Seeded]:
    """Open a filled ledger and close it in the end."""
    opened = Seeded(url)
    try:
        yield opened
    finally:
        opened.ledger.close()
