"""Processes that do steps of the story, and die at a chosen call of the store: before it, or after it."""

import asyncio
from collections.abc import Sequence

import tenure
from tenure.integrations.bosh.deployments_api import Deployments
from tests.infrastructure.mortal_stores import DIED, make_mortal
from tests.integrations.bosh import processes
from tests.integrations.bosh.kills.story import STEPS


def live(url: str, steps: Sequence[str], *, dies_at: int | None = None, after: bool = False) -> bool:
    """Let a process do steps of the story; in the last one it is killed at a call of the store. Tell if it lived."""
    status = processes.ended(processes.begin(_life, url, steps, dies_at, after))
    assert status in (0, DIED), f"{steps[-1]}: {status}"
    return status == 0


def _life(url: str, steps: Sequence[str], dies_at: int | None, after: bool) -> None:
    asyncio.run(_do(url, steps, dies_at, after=after))


async def _do(url: str, steps: Sequence[str], dies_at: int | None, *, after: bool) -> None:
    async with await tenure.open_async(url) as ledger:
        door = Deployments(ledger)
        for step in steps[:-1]:
            await STEPS[step](door)
        if dies_at is not None:
            make_mortal(dies_at, after=after)
        await STEPS[steps[-1]](door)
