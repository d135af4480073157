"""One process at a time moves a pool, or changes the list of its addresses: a Lease beside the pool says which."""

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar

from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease, LeaseTimes
from tenure.integrations.vmpool.config_map_swap import named_error
from tenure.integrations.vmpool.modes.pool_places import PoolPlaces
from tenure.integrations.vmpool.pool_errors import PoolUnavailable
from tenure.integrations.vmpool.vm_pool_settings import object_beside

T = TypeVar("T")

REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
"""Answers that another try does not change."""
LOOKS_EVERY_S = 0.1


def process_identity() -> str:
    """Return a name that no other process has."""
    return f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"


async def while_alone(places: PoolPlaces, work: Callable[[], Awaitable[T]]) -> T:
    """Do a piece of work that no other process does at the same time; the second one waits, or follows a dead one.

    Work whose Lease was lost on the way is begun again. Raise ``PoolForbidden`` if the role allows no Lease, and
    ``PoolUnavailable`` if the API server gives no answer for as long as an operation may take. Cost: four small
    requests.
    """
    # What checks the Lease is one for the process: of two at once, each would be refused by the other's.
    async with places.turn:
        return await _while_alone(places, work)


async def _while_alone(places: PoolPlaces, work: Callable[[], Awaitable[T]]) -> T:
    settings, client = places.settings, places.client
    assert client is not None, "there is no Lease without a cluster"
    name = object_beside(settings.config_map_name, "move")
    times = places.lease or LeaseTimes()
    lease = LeaderLease(client, settings.namespace, name, process_identity(), times)
    places.check = lease.check
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    async def lead() -> None:
        # A Lease that is lost after the work has ended, and taken again, must not begin it again.
        if not done.done():
            done.set_result(await work())
        await asyncio.Event().wait()  # until it is cancelled: the lease is given up then

    holder = asyncio.create_task(lease.run(lead))
    # Between two tries no answer is expected.
    silence_s = settings.operation_timeout_s + times.every_s
    denial = asyncio.create_task(_denied(lease, f"failed to take the lease {settings.namespace}/{name}", silence_s))
    try:
        ends: set[asyncio.Future[Any]] = {holder, denial, done}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            await (holder if holder.done() else denial)
        return done.result()
    finally:
        places.check = lambda: None
        for task in (holder, denial):
            task.cancel()
        # Awaited, so that the Lease is given up before the caller goes on.
        await asyncio.gather(holder, denial, return_exceptions=True)


async def _denied(lease: LeaderLease, outer: str, silence_s: float) -> NoReturn:
    """Raise why there is no Lease: what the server refuses, at once; that it gives no answer, after a time.

    That another process has the Lease is no such reason: its work may take long. The time is counted in pauses, since a
    process that was suspended has not asked meanwhile.
    """
    silent_s, answers = 0.0, lease.answers
    while silent_s < silence_s:
        await asyncio.sleep(LOOKS_EVERY_S)
        if lease.refusal is not None and lease.refusal.status in REFUSALS:
            raise named_error(lease.refusal, outer)
        silent_s = silent_s + LOOKS_EVERY_S if lease.answers == answers else 0.0
        answers = lease.answers
    raise PoolUnavailable(f"{outer}: {lease.refusal or 'the API server does not answer'}", outcome="unknown")
