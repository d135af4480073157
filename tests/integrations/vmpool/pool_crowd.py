"""Many processes on one pool, some of which are killed in the middle of a write; every step is written down.

Each process has a client of its own, as a node has. It writes a line before it asks and a line when it has its answer,
into one file whose lines are in the order in which they were written: so whoever is said to have a VM has it.
"""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.infrastructure.forks import FORKS
from tests.integrations.vmpool.pool_stage import Send, TroubledClient

ASKS, HAS, GIVES, GAVE, FAILED = "asks", "has", "gives", "gave", "failed"
ANSWERED_S = 240.0
"""How long an operation may take on a busy machine: nobody is to fail because of it."""
FIFTY_PROCESSES = (pytest.mark.proof, pytest.mark.one_worker("fifty processes"))
"""Marks of a test with so many: beside another of its like it takes the memory and the time of both."""
SLOW_REQUEST_S = 0.05
"""A process is killed within so long of the moment at which it sends a write: before, while or after it is done."""


@dataclass(frozen=True)
class Cast:
    """Who does how much: so many processes, each with so many allocations, some of them killed."""

    processes: int
    allocations: int
    killed: int
    seed: int = 7
    words: tuple[tuple[str, Any], ...] = ()
    """Further settings of the pool, such as its mode."""

    @property
    def pool(self) -> tuple[str, ...]:
        """Return addresses for all of them at a time, and none to spare."""
        count = self.processes * self.allocations
        return tuple(f"10.1.{number >> 8}.{number & 255}" for number in range(count))


@dataclass
class Chronicle:
    """What all processes wrote down, in the order in which they did."""

    has: dict[str, str] = field(default_factory=dict)
    """The VMs of ids that got them, and did not begin to give them back."""
    unknown: set[str] = field(default_factory=set)
    """Ids whose last step has no answer: their process was killed."""
    gave: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    """VMs that two ids had at the same time."""
    allocations: int = 0

    def read(self, text: str) -> "Chronicle":
        """Read all lines."""
        for line in text.splitlines():
            step, id, *rest = line.split(" ", 2)
            if step in (ASKS, GIVES):
                self.has.pop(id, None)
                self.unknown.add(id)
                continue
            self.unknown.discard(id)
            if step == HAS:
                self.allocations += 1
                if rest[0] in self.has.values():
                    self.doubled.append(line)
                self.has[id] = rest[0]
            elif step == GAVE:
                self.gave.add(id)
            else:
                self.failures.append(line)
        return self


def play(cast: Cast, kubeconfig: str, namespace: str, log: Path) -> Chronicle:
    """Let all processes work at the same time, and return what they wrote down."""
    log.touch()
    gate = FORKS.Barrier(cast.processes)
    children = [
        FORKS.Process(target=live, args=(cast, number, gate, kubeconfig, namespace, log))
        for number in range(cast.processes)
    ]
    for child in children:
        child.start()
    codes = []
    for child in children:
        child.join()
        codes.append(child.exitcode)
        child.close()
    assert codes == [-signal.SIGKILL] * cast.killed + [0] * (cast.processes - cast.killed), codes
    return Chronicle().read(log.read_text("utf-8"))


def live(cast: Cast, number: int, gate: Any, kubeconfig: str, namespace: str, log: Path) -> None:
    """Be a process of the cast: the first ones are those that are killed."""
    gate.wait()
    asyncio.run(_live(cast, number, kubeconfig, namespace, log))


async def _live(cast: Cast, number: int, kubeconfig: str, namespace: str, log: Path) -> None:
    chance = random.Random(f"{cast.seed}-{number}")
    written = os.open(log, os.O_WRONLY | os.O_APPEND)
    settings = VMPoolSettings(
        pool_ips=cast.pool, namespace=namespace, node_name=f"node-{number}", operation_timeout_s=ANSWERED_S,
        **dict(cast.words),
    )  # fmt: skip
    is_clustered = settings.pool_mode != "ledger"
    doomed_at, after_s = chance.randrange(1, cast.allocations), chance.uniform(0, SLOW_REQUEST_S)
    async with TroubledClient(from_kubeconfig(kubeconfig)) as client:
        if number < cast.killed:
            client.trouble = _killing(doomed_at, after_s)
        pool = AsyncVMPool(client if is_clustered else None, settings)
        ids = [f"node-{number}-{each}" for each in range(cast.allocations)]
        for each, id in enumerate(ids):
            if number < cast.killed and not is_clustered and each == doomed_at:
                asyncio.get_running_loop().call_later(after_s, os.kill, os.getpid(), signal.SIGKILL)
            await _step(written, ASKS, id, HAS, pool.allocate(id))
            if each % 2:
                await _step(written, GIVES, ids[each - 1], GAVE, pool.deallocate(ids[each - 1]))
        if number < cast.killed and not is_clustered:
            await asyncio.sleep(SLOW_REQUEST_S * 2)
        await pool.close()


async def _step(log: int, before: str, id: str, after: str, work: Awaitable[Any]) -> None:
    os.write(log, f"{before} {id}\n".encode())
    try:
        found = await work
    except Exception as error:
        os.write(log, f"{FAILED} {id} {error!r}\n".encode())
        return
    os.write(log, f"{after} {id} {getattr(found, 'ip', found)}\n".encode())


def _killing(at: int, after_s: float) -> Any:
    """Return the trouble of a process that is killed around its write of a number."""
    writes = 0

    async def trouble(word: str, send: Send) -> Any:
        nonlocal writes
        writes += word != "get"
        if writes == at:
            asyncio.get_running_loop().call_later(after_s, os.kill, os.getpid(), signal.SIGKILL)
            writes += 1
        return await send()

    return trouble


def differences(told: Chronicle, stored: dict[str, str], pool: Sequence[str], available: Sequence[str]) -> list[str]:
    """Return what the state says otherwise than the processes do: nothing, if none was lost and none doubled."""
    found = [f"failed: {each}" for each in told.failures] + [f"doubled: {each}" for each in told.doubled]
    found += [f"lost: {id} had {ip}, stored is {stored.get(id)}" for id, ip in told.has.items() if stored.get(id) != ip]
    found += [f"kept: {id} gave its VM back, stored is {stored[id]}" for id in told.gave & stored.keys()]
    strangers = stored.keys() - told.has.keys() - told.unknown
    found += [f"strange: {id} has {stored[id]}" for id in strangers]
    if sorted([*stored.values(), *available]) != sorted(pool):
        found.append("the addresses that are held and free are not the addresses of the pool, each once")
    return found
