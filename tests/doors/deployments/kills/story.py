"""A deployment's life in steps, and a process that dies in the middle of it: at a chosen call of the store."""

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import tenure
from tenure.doors.deployments import finishing
from tenure.stores.postgres.store import PostgresStore
from tenure.stores.sqlite.store import SqliteStore
from tests.doors.deployments.conformance.town import Town, app, config, lab, manifest

DIED = 9
QUIET = ("close", "inside", "open", "held", "contents", "fill")
"""What is no question to the store, or answers bit by bit."""

STATIC = {"static": ["172.20.5.10-172.20.5.12"]}
FIRST = manifest("alpha", app(3), app(1, name="web", static_ips=["172.20.5.10"]))
SECOND = manifest("alpha", app(2), app(1, name="web", static_ips=["172.20.5.11"]), app(1, name="new"))


async def _stop_hard(town: Town) -> None:
    await finishing.stop(town.ledger, "alpha", "app/1", hard=True)


async def _start(town: Town) -> None:
    await finishing.start(town.ledger, "alpha", "app/1")
    await finishing.commit(town.ledger, "alpha", "app/1", vm="vm-again")


async def _fail(town: Town) -> None:
    await town.deploy(manifest("beta", app(1)))
    await finishing.fail(town.ledger, "beta", "app/0")


async def _delete(town: Town) -> None:
    for each in await town.instances("beta"):
        if each.vm is not None:
            await finishing.lose(town.ledger, "beta", each.name)
    if await town.instances("beta"):
        await finishing.delete(town.ledger, "beta")


STEPS: list[Callable[[Town], Awaitable[Any]]] = [
    lambda town: town.upload(config(lab(**STATIC))),
    lambda town: town.run(FIRST),
    lambda town: town.upload(config(lab(**STATIC, reserved=["172.20.5.2"]))),
    lambda town: town.run(SECOND),
    _stop_hard,
    _fail,
    _start,
    _delete,
]


async def tell(url: str, progress: Path) -> None:
    """Do the steps that are not done yet, noting each; whoever is killed in one does it again, whole."""
    async with await tenure.open_async(url) as ledger:
        town = Town(ledger)
        for number, step in enumerate(STEPS):
            if number >= len(progress.read_bytes()):
                await step(town)
                progress.write_bytes(b"." * (number + 1))


async def ending(url: str) -> dict[str, object]:
    """Return how everything stands: who holds what, what is left of VMs and plans, and whether the ledger is sound."""
    async with await tenure.open_async(url) as ledger:
        town = Town(ledger)
        instances = await town.instances("alpha")
        return {
            "alpha": await town.has("alpha"),
            "parting": await town.parting("alpha"),
            "beta": await town.has("beta"),
            "held": sorted(each.address for each in await ledger.holdings("lab")),
            "vms": [each.vm is not None for each in instances],
            "plans": [each.plan for each in instances],
            "carried": all(held.carrier == each.vm for each in instances for held in each.holdings),
            "breaches": await ledger.verify(),
        }


def live(url: str, progress: Path, *, dies_at: int | None = None, after: bool = False) -> bool:
    """Let a process tell the story; it is killed at a call of the store, before or after. Tell whether it lived."""
    child = os.fork()
    if not child:
        try:
            if dies_at is not None:
                _make_mortal(dies_at, after=after)
            asyncio.run(tell(url, progress))
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, DIED), status
    return status == 0


def _make_mortal(dies_at: int, *, after: bool) -> None:
    """Count the calls of every store of this process, and die at one of them as if by ``kill -9``."""
    calls = 0

    def mortal(method: Callable[..., Any]) -> Callable[..., Any]:
        async def called(*words: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            fatal = calls == dies_at
            if fatal and not after:
                os._exit(DIED)
            answer = await method(*words, **more)
            if fatal:
                os._exit(DIED)
            return answer

        return called

    for store in (SqliteStore, PostgresStore):
        for name, method in inspect.getmembers(store, inspect.iscoroutinefunction):
            if not name.startswith("_") and name not in QUIET:
                setattr(store, name, mortal(method))
