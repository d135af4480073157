"""One process at a time moves a pool, or changes the list of its addresses: a Lease beside the pool says which."""

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease
from tenure.integrations.vmpool.modes.pool_places import PoolPlaces
from tenure.integrations.vmpool.vm_pool_settings import object_beside

T = TypeVar("T")


def process_identity() -> str:
    """Return a name that no other process has."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


async def while_alone(places: PoolPlaces, work: Callable[[], Awaitable[T]]) -> T:
    """Do a piece of work that no other process does at the same time; the second one waits, or follows a dead one.

    Work whose Lease was lost on the way is begun again. Cost: four small requests.
    """
    # What checks the Lease is one for the process: of two at once, each would be refused by the other's.
    async with places.turn:
        return await _while_alone(places, work)


async def _while_alone(places: PoolPlaces, work: Callable[[], Awaitable[T]]) -> T:
    settings, client = places.settings, places.client
    assert client is not None, "there is no Lease without a cluster"
    name = object_beside(settings.config_map_name, "move")
    lease = LeaderLease(client, settings.namespace, name, process_identity(), places.lease)
    places.check = lease.check
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    async def lead() -> None:
        if not done.done():
            done.set_result(await work())
        await asyncio.Event().wait()  # until it is cancelled: the lease is given up then

    holder = asyncio.create_task(lease.run(lead))
    try:
        ends: set[asyncio.Future[Any]] = {holder, done}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            await holder
        return done.result()
    finally:
        places.check = lambda: None
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)
