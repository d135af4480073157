"""Networks found by name or uuid, and what to do when they changed between reading and writing.

A command reads, decides, and writes in one ``apply`` that first makes sure that what it read still stands. When it
does not, somebody else was quicker: the command reads and decides afresh.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from tenure.kernel.errors import AlreadyExists, Conflict, NotFound, StillInUse, TenureError
from tenure.kernel.holdings.holding_model import SpaceId
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import Expect, Operation, Shown
from tenure.service.ledger.async_ledger import AsyncLedger

T = TypeVar("T")

ATTEMPTS = 64
"""How often a command may find that somebody else was quicker before it gives up; each time somebody got on."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Outrun(Exception):
    """What was read no longer stands; ``cause`` is how the ledger said so."""

    def __init__(self, cause: TenureError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NetworkLookup:
    """The networks of one attempt at one command, read when they are asked for and only once."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._ledger = ledger
        self._by_name: dict[str, Network] = {}
        self._by_uuid: dict[str, Network] = {}
        self._whole = False

    async def find(self, ident: str) -> Network:
        """Find a network by name or uuid. One reading by name; by uuid all are read, unless it is known by now."""
        if ident in self._by_name:
            return self._by_name[ident]
        try:
            return self._keep(await self._ledger.network(ident))
        except NotFound:
            if _UUID.fullmatch(ident) is None:
                raise
        return await self.of_uuid(ident)

    async def of_uuid(self, uuid: str) -> Network:
        """Find a network by uuid."""
        if uuid not in self._by_uuid:
            await self.every()
        if uuid not in self._by_uuid:
            raise NotFound("network", uuid)
        return self._by_uuid[uuid]

    async def of_uuids(self, uuids: Iterable[str]) -> dict[str, Network]:
        """Find several networks by uuid."""
        return {uuid: await self.of_uuid(uuid) for uuid in dict.fromkeys(uuids)}

    async def every(self) -> list[Network]:
        """Read all networks, in order of name."""
        if not self._whole:
            for network in await self._ledger.networks():
                # A network that was read before stays: one attempt decides on one version of it.
                self._by_name.setdefault(network.name, network)
                self._by_uuid.setdefault(network.uuid, network)
            self._whole = True
        return [self._by_name[name] for name in sorted(self._by_name)]

    async def spaces(self) -> dict[str, SpaceId]:
        """Return the space that each network is in, by uuid."""
        spaces = await self._ledger.spaces()
        return {network.uuid: space.space for space in spaces for network in space.networks.values()}

    def _keep(self, network: Network) -> Network:
        self._by_name[network.name] = self._by_uuid[network.uuid] = network
        return network


def unchanged(network: Network) -> Expect:
    """Return the operation that makes sure that a network is the very one that was read, as it was read."""
    return Expect(network=network.name, serial=network.serial, uuid=network.uuid)


async def settled(attempt: Callable[[], Awaitable[T]]) -> T:
    """Do something that reads, decides and writes, afresh as long as somebody else is quicker."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Outrun:
            continue
    # The last attempt stands apart: its refusal is what the user gets to see.
    try:
        return await attempt()
    except Outrun as outrun:
        raise outrun.cause from None


async def apply_fresh(
    ledger: AsyncLedger, operations: Sequence[Operation], *, rehearsed: bool = False, marks: str | None = None
) -> list[Shown]:
    """Apply operations, or only rehearse them; ``Outrun`` if what they were decided upon no longer stands.

    ``marks``: the kind of papers of which all that were read are removed, and none may then be left.
    """
    try:
        return await (ledger.rehearse(operations) if rehearsed else ledger.apply(operations))
    except AlreadyExists as error:
        # Two commands wrote the cluster's first paper at once: AlreadyExists means what another revision means later.
        if error.kind == "cluster":
            raise Outrun(error) from None
        raise
    except StillInUse as error:
        if error.kind == marks:  # it came meanwhile
            raise Outrun(error) from None
        raise
    except Conflict as error:
        if error.field in ("serial", "revision"):
            raise Outrun(error) from None
        raise
    except NotFound as error:
        if error.kind in ("network", marks):  # it was there a moment ago
            raise Outrun(error) from None
        raise
