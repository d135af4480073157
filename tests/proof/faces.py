"""The stores as a proof's clients see them: the ledger's own verbs, or the desk of a book."""

import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import tenure
from tenure.kernel.addresses import format_address, parse_address
from tenure.kernel.values import Change, Row, Ticket
from tenure.service.ground import check_holder
from tenure.service.book_desk import BookDesk
from tenure.service.claims import read_claim
from tenure.stores.etcd.store import EtcdStore
from tests.proof.history import Logged, Tenancy
from tests.proof.plan import Plan

SPACE, VERSION = 1, 1
"""The one space of a book's plan."""

EFFECTS = ("grant", "release", "transfer")


class Face(Protocol):
    """What clients and checks ask of a store."""

    exact: bool
    verbs: Sequence[str]

    async def perform(self, verb: str, args: Mapping[str, Any], request: str) -> list[Tenancy]:
        """Make one call."""
        ...

    async def final(self) -> list[Tenancy]:
        """Read all holdings."""
        ...

    async def log(self) -> list[Logged]:
        """Read the whole log."""
        ...

    async def verify(self) -> list[str]:
        """Name every breach of an invariant."""
        ...

    async def close(self) -> None:
        """Let go of the store."""
        ...


class LedgerFace:
    """A store of the ledger tier, through the public interface."""

    exact = True
    verbs: Sequence[str] = ("allocate", "release", "release_owner", "allocate_many", "transfer")

    def __init__(self, ledger: tenure.AsyncLedger) -> None:
        self.ledger = ledger

    async def perform(self, verb: str, args: Mapping[str, Any], request: str) -> list[Tenancy]:
        """Make one call."""
        words = dict(args)
        if verb == "release":
            place = (words.pop("network"), words.pop("address"))
            held = await self.ledger.release(*place, **words, request=request)
            return [] if held is None else [_shown(held)]
        call: Callable[..., Awaitable[Any]] = getattr(self.ledger, verb)
        if verb in ("allocate", "transfer"):
            return [_shown(await call(**words, request=request))]
        return [_shown(held) for held in await call(**words, request=request)]

    async def final(self) -> list[Tenancy]:
        """Read all holdings."""
        return [_shown(held) for net in await self.ledger.networks() for held in await self.ledger.holdings(net.name)]

    async def log(self) -> list[Logged]:
        """Read the whole log."""
        return [logged(change, change.network_name or "") async for change in self.ledger.changes(after=0)]

    async def verify(self) -> list[str]:
        """Name every breach."""
        return [str(breach) for breach in await self.ledger.verify()]

    async def close(self) -> None:
        """Let go of the store."""
        await self.ledger.close()


class BookFace:
    """A store of the book tier, through its desk: allocate and release."""

    exact = False
    verbs: Sequence[str] = ("allocate", "release")

    def __init__(self, store: EtcdStore, plan: Plan, name: str) -> None:
        configuration = plan.configuration(SPACE, VERSION)
        self._store = store
        self._desk = BookDesk(store, [configuration], name=name, chance=random.Random(name))
        self._numbers = {name: network.id for name, network in configuration.networks.items()}
        self._names = {number: name for name, number in self._numbers.items()}

    async def perform(self, verb: str, args: Mapping[str, Any], request: str) -> list[Tenancy]:
        """Make one call."""
        words = dict(args)
        if verb == "allocate":
            return [self._shown((await self._desk.allocate(read_claim(**words, request=request))).row)]
        number, position, owner = self._numbers[args["network"]], parse_address(args["address"]), args["owner"]
        generation = args.get("generation")
        row = await self._desk.release(SPACE, Ticket(number, position, owner, generation, request))
        if row is None:
            return []
        check_holder(row, number, tenure.Owner(owner), generation, args["network"])
        return [self._shown(row)]

    def _shown(self, row: Row) -> Tenancy:
        address = format_address(row.first)
        return Tenancy(self._names[row.network], address, row.generation, row.owner, row.slot, row.request)

    async def final(self) -> list[Tenancy]:
        """Read all holdings."""
        return [self._shown(row) async for page in self._store.held(SPACE) for row in page]

    async def log(self) -> list[Logged]:
        """Read the whole log."""
        found: list[Logged] = []
        while page := await self._store.watch(found[-1].seq if found else 0):
            found.extend(logged(change, self._names[change.network or 0]) for change in page)
        return found

    async def verify(self) -> list[str]:
        """Check what a book has of the invariants: owners are found where their addresses are."""
        held = [row async for page in self._store.held(SPACE) for row in page]
        owned = await self._store.by_owner(sorted({row.owner for row in held}))
        return [str(row) for row in [*held, *owned] if (row in held) != (row in owned)]

    async def close(self) -> None:
        """Let go of the store."""
        await self._desk.close()


async def open_face(url: str, plan: Plan) -> Face:
    """Open the store that a URL names."""
    if not url.startswith("etcd"):
        return LedgerFace(await tenure.open_async(url))
    return BookFace(await EtcdStore.open(url), plan, f"desk-{os.getpid()}")


async def lay_plan(url: str, plan: Plan) -> None:
    """Prepare an empty store for the clients."""
    if url.startswith("etcd"):
        store = await EtcdStore.open(url)
        await store.set_version(SPACE, VERSION)
        await store.close()
        return
    async with await tenure.open_async(url) as ledger:
        await plan.lay(ledger)


def logged(change: Change, network: str) -> Logged:
    """Read an entry of the log."""
    if change.verb not in EFFECTS:
        return Logged(change.seq, change.verb)
    tenancy = Tenancy(
        network, change.address or "", change.generation or 0, change.owner or "", change.slot or "", change.request
    )
    former = (change.details["from"], change.details["from_slot"]) if change.verb == "transfer" else None
    return Logged(change.seq, change.verb, tenancy, former)


def _shown(held: tenure.Holding) -> Tenancy:
    return Tenancy(held.network, held.address, held.generation, str(held.owner), held.slot, held.request)
