"""The stores as a proof's clients see them: the ledger's own verbs, or the desk of a book."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import tenure
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.holdings.holding_model import Change, Row, Ticket
from tenure.service.apply.context import check_holder
from tenure.service.apply.operations import read_claim
from tenure.service.engine import waiting_rooms
from tenure.service.engine.book_engine import BookEngine
from tenure.service.ledger.engine_ledger import server_of
from tenure.stores.etcd.store import EtcdStore
from tests.proof.history import Logged, Tenancy
from tests.proof.plan import Plan

SPACE, VERSION = 1, 1
"""The one space of a book's plan."""

EFFECTS = ("grant", "release", "transfer", "cool", "confirm")

PLACED = ("release", "confirm", "cancel")
"""Verbs that name network and address by position."""

WHO_ASKS = "TENURE_PROOF_TOKEN"
"""The variable in which clients find the token for servers."""

LONGER_S = 5.0

LIFE_S = 1.5
"""How long those who wait in a proof are taken for alive; shorter than a user would want it."""


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

    async def cooling(self) -> list[Tenancy]:
        """Read what was released and is still in the way."""
        ...

    async def settle(self) -> list[str]:
        """Let the time of the dead pass, sweep, and name who is left in line."""
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
    verbs: Sequence[str] = (
        "allocate", "release", "release_owner", "allocate_many", "transfer", "hold", "confirm", "cancel", "sweep",
    )  # fmt: skip

    def __init__(self, ledger: tenure.AsyncLedger) -> None:
        self.ledger = ledger
        self.shorten_lives()

    def shorten_lives(self) -> None:
        """Let those who wait in this process be taken for dead soon."""
        waiting_rooms.LIFE_US, waiting_rooms.BEAT_S = int(LIFE_S * 1_000_000), LIFE_S / 5

    async def perform(self, verb: str, args: Mapping[str, Any], request: str) -> list[Tenancy]:
        """Make one call."""
        words = dict(args)
        call: Callable[..., Awaitable[Any]] = getattr(self.ledger, verb)
        if verb == "sweep":
            await call()
            return []
        if verb in PLACED:
            held = await call(words.pop("network"), words.pop("address"), **words, request=request)
            return [] if held is None else [_shown(held)]
        if verb in ("allocate", "transfer", "hold"):
            return [_shown(await call(**words, request=request))]
        return [_shown(held) for held in await call(**words, request=request)]

    async def final(self) -> list[Tenancy]:
        """Read all holdings."""
        return [_shown(held) for held in await self._rows() if held.state != "cooling"]

    async def cooling(self) -> list[Tenancy]:
        """Read what is cooling."""
        return [_shown(held) for held in await self._rows() if held.state == "cooling"]

    async def _rows(self) -> list[tenure.Holding]:
        return [held for network in await self.ledger.networks() for held in await self.ledger.holdings(network.name)]

    async def settle(self) -> list[str]:
        """Wait until the dead are known to be dead, sweep, and see who is left."""
        await asyncio.sleep(LIFE_S + 0.1)
        await self.ledger.sweep()
        store = server_of(self.ledger).store
        plans = [await store.configuration(space) for space, _ in await store.spaces()]
        left = [f"left in line: {claim}" for claim in await self.ledger.waiting()]
        return left + [f"still marked as queued: {plan.name}" for plan in plans if plan is not None and plan.queued]

    async def log(self) -> list[Logged]:
        """Read the whole log."""
        return [logged(change, change.network_name or "") async for change in self.ledger.changes(after=0)]

    async def verify(self) -> list[str]:
        """Name every breach."""
        return [str(breach) for breach in await self.ledger.verify()]

    async def close(self) -> None:
        """Let go of the store."""
        await self.ledger.close()


class RemoteFace(LedgerFace):
    """A ledger behind servers, through the public interface."""

    def shorten_lives(self) -> None:
        """Leave them as they are: those who wait do so in the servers."""

    async def settle(self) -> list[str]:
        """Wait until those whose server was killed are known to be dead, and see who is left."""
        deadline = asyncio.get_running_loop().time() + waiting_rooms.LIFE_US / 1_000_000 + LONGER_S
        while True:
            await self.ledger.sweep()
            left = [f"left in line: {claim}" for claim in await self.ledger.waiting()]
            if not left or asyncio.get_running_loop().time() > deadline:
                queued = [space.name for space in await self.ledger.spaces() if space.queued]
                return left + [f"still marked as queued: {name}" for name in queued]
            await asyncio.sleep(0.5)


class BookFace:
    """A store of the book tier, through its desk: allocate and release."""

    exact = False
    verbs: Sequence[str] = ("allocate", "release")

    def __init__(self, store: EtcdStore, plan: Plan, name: str) -> None:
        configuration = plan.configuration(SPACE, VERSION)
        self._store = store
        self._desk = BookEngine(store, [configuration], name=name, chance=random.Random(name))
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

    async def cooling(self) -> list[Tenancy]:
        """Read nothing: this plan cools nothing."""
        return []

    async def settle(self) -> list[str]:
        """Wait for nobody: nobody waits."""
        return []

    async def verify(self) -> list[str]:
        """Check what a book has of the invariants: owners are found where their addresses are."""
        held = [row async for page in self._store.held(SPACE) for row in page]
        owned = await self._store.by_owner(sorted({row.owner for row in held}))
        return [str(row) for row in [*held, *owned] if (row in held) != (row in owned)]

    async def close(self) -> None:
        """Let go of the store."""
        await self._desk.close()


async def open_ledger(url: str) -> tenure.AsyncLedger:
    """Open a ledger; servers are told who asks."""
    return await tenure.open_async(url, token=os.environ[WHO_ASKS] if url.startswith("http") else None)


async def open_face(url: str, plan: Plan) -> Face:
    """Open the store that a URL names."""
    if url.startswith("http"):
        return RemoteFace(await open_ledger(url))
    if not url.startswith("etcd"):
        return LedgerFace(await open_ledger(url))
    return BookFace(await EtcdStore.open(url), plan, f"desk-{os.getpid()}")


async def lay_plan(url: str, plan: Plan) -> None:
    """Prepare an empty store for the clients."""
    if url.startswith("etcd"):
        store = await EtcdStore.open(url)
        await store.set_version(SPACE, VERSION)
        await store.close()
        return
    async with await open_ledger(url) as ledger:
        await plan.lay(ledger)


def logged(change: Change, network: str) -> Logged:
    """Read an entry of the log."""
    told = change.details
    if change.verb not in (*EFFECTS, "wait", "leave"):
        return Logged(change.seq, change.verb)
    tenancy = Tenancy(
        network, change.address or "", change.generation or 0, change.owner or "", change.slot or "", change.request
    )
    former = (told["from"], told["from_slot"]) if change.verb == "transfer" else None
    pending = change.verb == "grant" and told.get("state") == "pending"
    because = told.get("because") if change.verb == "release" else None
    times = (change.at_us, told.get("until_us"))
    return Logged(change.seq, change.verb, tenancy, former, because, pending, *times, told.get("ticket"))


def _shown(held: tenure.Holding) -> Tenancy:
    return Tenancy(held.network, held.address, held.generation, str(held.owner), held.slot, held.request)
