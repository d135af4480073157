"""Allocations in a ledger: holdings of a network that is named after the pool, by a store's URL or a server's.

The ledger picks the VM itself, by the hash of the owner, in one request. People see the pool on the server's page and
with ``tenure``, like any other network.
"""

import asyncio
import contextlib
import hashlib
import ipaddress
import secrets
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tenure.integrations.vmpool.config_map_swap import SwapLost
from tenure.integrations.vmpool.modes.allocation_book import GENERATION, StoredNotes, TakenVM
from tenure.integrations.vmpool.modes.ledger_placement import LedgerPlacement, read_ledger_placement
from tenure.integrations.vmpool.pool_document import PoolElsewhere
from tenure.integrations.vmpool.state.go_json import NotReadable, read_json, whole_seconds, write_line
from tenure.integrations.vmpool.state.ip_list import canonical_ip
from tenure.integrations.vmpool.state.pool_state import VMAllocation, entry_document, read_entry
from tenure.integrations.vmpool.state.state_repair import PoolLine
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import (
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    AlreadyExists,
    Conflict,
    Invalid,
    NotFound,
    NotOwner,
    PoolExhausted,
    TenureError,
)
from tenure.kernel.holdings.holding_model import Holding, Paper
from tenure.kernel.plan.edits import AddNetwork, AddPool, AddSubnet, ModifyNetwork, Reserve, Unreserve
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import (
    Allocate,
    ExpectHolding,
    ExpectNoHoldings,
    ModifyHolding,
    Operation,
    Transfer,
    WritePaper,
)
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wiring import open_async

KIND = "vm-pool"
"""Of owners and of the paper with the notes."""
ENTRY = "entry"
"""The label with what the ledger has no field for."""
REQUEST = "request"
"""The label with what tells the request that made an allocation from all others."""
LIST, HAS_LEFT = "list", "it has left the list of the VM pool"
"""The label with the generation of the list that an address has left, and why it is kept back."""
LONGEST_OWNER = 400
PAGE = 1000
PREPARED_IN = 5
"""How often the network is looked at again, where others add it at the same time."""
BLOCKS = {4: 24, 6: 64}
"""VMs of one network that lie in one such block are in one subnet."""


@dataclass
class LedgerAllocations:
    """The allocations of one pool in one ledger; it is opened by the first call."""

    url: str
    pool: str
    line: PoolLine
    """The addresses; a list that has changed is taken into the plan with the next call."""
    token: str | None = None
    policy: str | None = None
    """How the ledger picks; none: as the plan says, by the hash of the owner."""
    epoch: int = 0
    """How often the pool was moved before it came here."""
    _ledger: AsyncLedger | None = field(default=None, repr=False)
    _prepared: int = field(default=-1, repr=False)
    """The generation of the list that is in the plan."""
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def network(self) -> str:
        """Return the name of the network: a place is never used again, so each has its own."""
        return network_of(self.pool, self.epoch)

    async def whereabouts(self) -> LedgerPlacement:
        """Return what the ledger says of the pool; nothing is created. Cost: one request."""
        return await read_ledger_placement(await self._connected(), self.pool)

    async def identity(self) -> str:
        """Return the uuid of the network; empty if the ledger has none of its name. Cost: one request."""
        try:
            return (await (await self._connected()).network(self.network)).uuid
        except NotFound:
            return ""

    async def begin(self) -> str:
        """Add the network if it is not there, and return its uuid. Cost: a few requests."""
        await self._opened()
        return await self.identity()

    async def take(self, entry: VMAllocation, offers: AsyncGenerator[Sequence[str], None]) -> TakenVM | None:
        """Give an id a VM. Cost: one request; one for each VM that is offered where they have an order."""
        ledger, request = await self._opened(), secrets.token_hex(8)
        if not entry.ip:
            return await self._picked(ledger, entry, request)
        tries = 0
        # A generator that is left where it is costs the loop a task of its own to end it.
        async with contextlib.aclosing(offers):
            async for ips in offers:
                for ip in ips:
                    tries += 1
                    wish = _wish(replace(entry, ip=ip), request)
                    try:
                        held = await self._granted(ledger, ip, wish)
                    except (AddressInUse, AddressReserved):
                        continue
                    return _taken(held, request, tries)
        return None

    async def _granted(self, ledger: AsyncLedger, ip: str, wish: dict[str, Any]) -> Holding:
        """Give an id an address, also one of an allocation that came from elsewhere, and is outside the list."""
        # allow: the address may be kept back because it has left the list.
        try:
            return await ledger.allocate(self.network, address=ip, reserved="allow", **wish)
        except AddressOutsideSubnet:
            await self._surround(ledger, [ip])
        return await ledger.allocate(self.network, address=ip, reserved="allow", **wish)

    async def _surround(self, ledger: AsyncLedger, ips: Iterable[str]) -> None:
        """Add the subnets that addresses need to be held; nothing is picked in them."""
        known = {str(subnet.cidr) for subnet in (await ledger.network(self.network)).subnets}
        needed = dict.fromkeys(_block(parse_address(ip, field="pool_ips")) for ip in ips)
        with contextlib.suppress(Conflict):  # another process may have added the same; if not, the address says so
            await ledger.apply([_subnet(self.network, block) for block in needed if block not in known])

    async def _picked(self, ledger: AsyncLedger, entry: VMAllocation, request: str) -> TakenVM | None:
        try:
            held = await ledger.allocate(self.network, policy=self.policy, **_wish(entry, request))
            return _taken(held, request, 1)
        except PoolExhausted:
            return None

    async def drop(self, entry: VMAllocation) -> bool:
        """End an allocation. Cost: one request."""
        generation = int(entry.unknown.get(GENERATION, -1))
        ledger, owner = await self._opened(), owner_of(entry.allocation_id)
        try:
            ended = await ledger.release(self.network, entry.ip, owner=owner, generation=generation)
        except NotOwner:
            return False
        return ended is not None and (ended.owner, ended.generation) == (owner, generation)

    async def exchange(self, entry: VMAllocation, new: VMAllocation) -> bool:
        """Give a VM to another id in one transaction, also where the network is sealed. Cost: one request."""
        ledger, generation = await self._opened(), int(entry.unknown.get(GENERATION, -1))
        owner, wish = owner_of(entry.allocation_id), _wish(new, secrets.token_hex(8))
        network, ip, to = self.network, entry.ip, wish["owner"]
        change: list[Operation] = [
            ExpectHolding(network=network, address=ip, owner=owner, generation=generation),
            Transfer(network=network, address=ip, owner=owner, generation=generation, to=to),
            ModifyHolding(network=network, address=ip, owner=to, labels=wish["labels"]),
        ]
        try:
            await ledger.apply(change)
        except (Conflict, NotFound):
            return False
        return True

    async def seal(self) -> bool:
        """Retire the network: nothing is picked there any more, and holdings can only end. Cost: three requests."""
        ledger = await self._opened()
        while not (await ledger.network(self.network)).retired:
            said = await self.whereabouts()
            retire: list[Operation] = [ModifyNetwork(network=self.network, retired=True)]
            # A newer epoch is of the place to which the pool goes in this very ledger, and its note stays.
            if said.epoch <= self.epoch:
                retire.append(said.written(self.pool, self.epoch, "left"))
            # Refused where another process was faster: then the next turn looks again.
            with contextlib.suppress(Conflict):
                await ledger.apply(retire)
        return True

    async def check_room(self, entries: Sequence[VMAllocation]) -> None:
        """Do nothing: a ledger hands holdings over as they are."""

    async def prepare(self, is_from_here: bool, entries: Sequence[VMAllocation]) -> None:
        """Add the network to which a pool comes, and say so; raise ``Conflict`` if one of this name is in use already.

        ``is_from_here``: it comes from another network of this ledger. Cost: a few requests.
        """
        # Before anything is written: no ledger has an address with a zone, and a move that cannot end stops every call.
        for ip in (*self.line.ips, *(entry.ip for entry in entries)):
            parse_address(ip, field="pool_ips")
        await self._announce(is_from_here)
        try:
            await self._rehearse(entries)
        except TenureError:
            # Nodes without a cluster would wait for a pool that does not come.
            await self.stays_away(self.epoch)
            raise

    async def _rehearse(self, entries: Sequence[VMAllocation]) -> None:
        """Raise if the ledger would refuse one of these allocations."""
        ledger = await self._opened()
        await self._surround(ledger, [entry.ip for entry in entries])
        for start in range(0, len(entries), PAGE):
            wishes = [
                Allocate(network=self.network, address=entry.ip, reserved="allow", **_wish(entry, "-"))
                for entry in entries[start : start + PAGE]
            ]
            await ledger.rehearse(wishes)

    async def _announce(self, is_from_here: bool) -> None:
        """Say that the pool is coming, and keep processes from a network of its name that nobody uses yet."""
        ledger = await self._connected()
        for _ in range(PREPARED_IN):
            said = await self.whereabouts()
            if (said.epoch, said.state) == (self.epoch, "coming"):
                break
            is_other = said.state == "here" and not is_from_here
            if is_other and said.epoch >= self.epoch:
                raise self._used_by_another()
            closing = await self._closed(network_of(self.pool, said.epoch)) if is_other else []
            with contextlib.suppress(Conflict):
                await ledger.apply([*closing, said.written(self.pool, self.epoch, "coming")])
                break
        else:
            raise self._used_by_another()

    async def _closed(self, network: str) -> list[Operation]:
        """Return what keeps processes from a network that nobody uses yet; it is refused if somebody does."""
        try:
            found = await (await self._connected()).network(network)
        except NotFound:
            return []
        unused = [ExpectNoHoldings(network=network, range=str(subnet.cidr)) for subnet in found.subnets]
        return [*unused, ModifyNetwork(network=network, retired=True)]

    def _used_by_another(self) -> Conflict:
        return Conflict(
            f"pool_ledger: the ledger has a pool {self.pool!r} in use, which is not this one; name another ledger "
            "(VM_POOL_LEDGER), or release what is held there",
            field="pool_ledger",
        )

    async def arrive(self) -> None:
        """Say that the pool is here, for processes that see nothing but the ledger. Cost: two requests."""
        while (said := await self.whereabouts()).epoch <= self.epoch and said.state != "here":
            with contextlib.suppress(Conflict):
                await (await self._connected()).apply([said.written(self.pool, self.epoch, "here")])

    async def stays_away(self, epoch: int) -> None:
        """Say that a pool does not come that was said to be coming, up to an epoch: its move was taken back."""
        while (said := await self.whereabouts()).epoch <= epoch and said.state == "coming":
            with contextlib.suppress(Conflict):
                await (await self._connected()).apply([said.written(self.pool, said.epoch, "left")])

    async def of_id(self, allocation_id: str) -> VMAllocation | None:
        """Return what an id has. Cost: one request."""
        held = await (await self._opened()).holdings(self.network, owner=owner_of(allocation_id))
        return _entry(held[0]) if held else None

    async def of_ip(self, ip: str) -> VMAllocation | None:
        """Return which id has a VM. Cost: one request."""
        try:
            return _entry(await (await self._opened()).holding(self.network, ip))
        except NotFound:
            return None

    async def entries(self) -> list[VMAllocation]:
        """Return all allocations. Cost: a request for a thousand."""
        ledger = await self._opened()
        found: list[VMAllocation] = []
        page = await ledger.holdings(self.network, limit=PAGE)
        while page:
            found += map(_entry, page)
            page = await ledger.holdings(self.network, after=page[-1].address, limit=PAGE)
        return found

    async def held_ips(self) -> frozenset[str]:
        """Return the VMs that are held. Cost: as ``entries``."""
        return frozenset(entry.ip for entry in await self.entries())

    def nearest(self, allocation_id: str, ips: list[str]) -> list[str]:
        """Return all: they cost the same."""
        return ips

    async def read_notes(self) -> StoredNotes:
        """Return the notes. Cost: one request."""
        try:
            paper = await (await self._opened()).paper(KIND, self.network)
        except NotFound:
            return StoredNotes(None)
        return StoredNotes(str(paper.document["notes"]), paper)

    async def write_notes(self, text: str, seen: StoredNotes) -> None:
        """Write the notes. Cost: one request."""
        paper: Paper | None = seen.seen
        revision = 0 if paper is None else paper.revision
        written = WritePaper(kind=KIND, name=self.network, document={"notes": text}, revision=revision)
        try:
            await (await self._opened()).apply([written])
        except (Conflict, AlreadyExists) as error:
            raise SwapLost(str(error)) from error

    async def keep_copy(self, name: str, text: str) -> str:
        """Keep a text in a paper of its own. Cost: one request."""
        paper = f"{self.network}-{name}"
        await (await self._opened()).apply([WritePaper(kind=KIND, name=paper, document={"notes": text}, revision=0)])
        return f"the paper {KIND} {paper}"

    async def heal(self) -> int:
        """Return that there is nothing to do: a ledger's transactions leave nothing behind."""
        return 0

    async def close(self) -> None:
        """Close the ledger."""
        if self._ledger is not None:
            await self._ledger.close()

    async def _connected(self) -> AsyncLedger:
        if self._ledger is None:
            async with self._opening:
                # Looked at again: another caller may have opened the ledger while this call waited for its turn.
                if self._ledger is None:
                    self._ledger = await open_async(self.url, token=self.token)
        return self._ledger

    async def _opened(self) -> AsyncLedger:
        ledger = await self._connected()
        if self._prepared < self.line.generation:
            async with self._opening:
                if self._prepared < self.line.generation:
                    await self._prepare(ledger)
        return ledger

    async def _begun(self) -> list[Operation]:
        """Return what makes a network; one of a pool that was moved since is not (``PoolElsewhere``)."""
        said = await self.whereabouts()
        if said.epoch != self.epoch or said.state == "left":
            raise PoolElsewhere
        new = AddNetwork(network=self.network, tags=(KIND,), description="a pool of VMs")
        # In one transaction with the word that it is here, so that no mover can say something else meanwhile.
        return [new] if said.paper is not None else [new, said.written(self.pool, self.epoch, "here")]

    async def _prepare(self, ledger: AsyncLedger) -> None:
        """Add the network, unless it is there, and what it lacks; keep back what has left the pool's own list."""
        problem: Exception | None = None
        edits: list[Operation]
        # Read before the first request: the list may change meanwhile, and is taken in again then.
        generation, ips = self.line.generation, self.line.ips
        for _ in range(PREPARED_IN):
            try:
                network = await ledger.network(self.network)
            except NotFound:
                edits = await self._begun()
                known: list[tuple[int, int]] = []
                blocks: set[str] = set()
            else:
                edits = []
                known = [(pool.range.first, pool.range.last) for subnet in network.subnets for pool in subnet.pools]
                blocks = {str(subnet.cidr) for subnet in network.subnets}
                # A list of the settings is one node's own, and does not say what has left the pool (VS9).
                if generation:
                    edits += _withheld(network, ips, generation)
            edits += _edits(self.network, ips, known, blocks)
            try:
                if edits:
                    await ledger.apply(edits)
            except (Conflict, NotFound) as error:
                # Another process may have added the same; if it was something else, the next look has the same error.
                problem = error
                continue
            self._prepared = generation
            return
        raise Invalid(f"pool_ledger: the network {self.network!r} cannot have the addresses of the pool: {problem}")


def network_of(pool: str, epoch: int) -> str:
    """Return the name of the network of a pool that was so often moved before."""
    return pool if not epoch else f"{pool}.e{epoch}"


def owner_of(allocation_id: str) -> str:
    """Return the owner of an id's holding; an id that cannot be one is named by its hash."""
    is_plain = allocation_id.isprintable() and 0 < len(allocation_id) <= LONGEST_OWNER
    if is_plain:
        return f"{KIND}/{allocation_id}"
    return f"{KIND}-hash/{hashlib.sha256(allocation_id.encode()).hexdigest()}"


def _wish(entry: VMAllocation, request: str) -> dict[str, Any]:
    unknown = {name: value for name, value in entry.unknown.items() if name != GENERATION}
    text = write_line(entry_document(replace(entry, unknown=unknown)), is_ascii=True)
    labels = {ENTRY: text, REQUEST: request, "node": entry.node_name or "-"}
    if entry.pod_name:
        labels["pod"] = f"{entry.pod_namespace}/{entry.pod_name}"
    return {"owner": owner_of(entry.allocation_id), "labels": labels}


def _taken(held: Holding, request: str, tries: int) -> TakenVM:
    """Return what is held; it is new if this request made it: within a second, others have the same words."""
    return TakenVM(_entry(held), held.labels.get(REQUEST) == request, tries)


def _entry(held: Holding) -> VMAllocation:
    # The spelling is the pool's: Go's.
    address, text = canonical_ip(held.address) or held.address, held.labels.get(ENTRY, "{}")
    since = whole_seconds(held.since)
    try:
        said = read_json(text)
        found = read_entry(str(said.get("allocationID")), said)
    except (NotReadable, AttributeError):
        # Somebody gave the VM out by hand, in the ledger itself.
        found = VMAllocation(str(held.owner), address, "", "", "", since)
    unknown = {**found.unknown, GENERATION: held.generation}
    # An allocation that was made elsewhere, and moved here, is as old as it was.
    return replace(found, ip=address, allocated_at=found.allocated_at or since, unknown=unknown)


def _edits(network: str, ips: Iterable[str], known: Sequence[tuple[int, int]], blocks: set[str]) -> list[Operation]:
    """Return what a network lacks: subnets around addresses, and a pool for each run of them."""
    places = sorted({parse_address(ip, field="pool_ips") for ip in ips})
    missing = [place for place in places if not any(first <= place <= last for first, last in known)]
    new = [block for block in dict.fromkeys(map(_block, missing)) if block not in blocks]
    found: list[Operation] = [_subnet(network, block) for block in new]
    for first, last in _runs(missing):
        range = f"{format_address(first)}-{format_address(last)}"
        found.append(AddPool(network=network, range=range, name=KIND, policy="hashed"))
    return found


def _subnet(network: str, block: str) -> Operation:
    return AddSubnet(network=network, cidr=block, keep_back=())


def _withheld(network: Network, ips: Iterable[str], generation: int) -> list[Operation]:
    """Return what keeps addresses that have left a list from being picked, and lets those be picked that came back.

    A node without a cluster does not know the list, and gives out what the ledger picks. What a newer list has kept
    back stays so.
    """
    listed = {parse_address(ip, field="pool_ips") for ip in ips}
    pools = [pool for subnet in network.subnets for pool in subnet.pools if pool.name == KIND]
    known = {place for pool in pools for place in range(pool.range.first, pool.range.last + 1)}
    kept = {
        place: int(each.notes.labels.get(LIST, 0))
        for subnet in network.subnets for each in subnet.reserved if each.reason == HAS_LEFT
        for place in range(each.range.first, each.range.last + 1)
    }  # fmt: skip
    labels = {LIST: str(generation)}
    left = [
        Reserve(network=network.name, range=format_address(place), reason=HAS_LEFT, labels=labels)
        for place in sorted(known - listed - kept.keys())
    ]
    back = [
        Unreserve(network=network.name, range=format_address(place))
        for place in sorted(listed & kept.keys()) if kept[place] < generation
    ]  # fmt: skip
    return [*left, *back]


def _block(place: int) -> str:
    address = ipaddress.ip_address(format_address(place))
    return str(ipaddress.ip_network(f"{address}/{BLOCKS[address.version]}", strict=False))


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return runs of places that follow each other and lie in one block."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] + 1 == place and _block(place) == _block(runs[-1][0]):
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs
