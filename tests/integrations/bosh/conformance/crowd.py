"""Deploys at once, each by a process of its own."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import tenure
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs.deploy import deploy
from tests.integrations.bosh import processes

SERVED, OTHER = 0, 1
OUTCOMES = {
    3: BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY,
    4: BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE,
}
"""What processes that are refused end with."""


async def _apply(place: str, text: str) -> int:
    async with await tenure.open_async(place) as ledger:
        try:
            await deploy(ledger, "manifest.yml", text)
        except Refused as error:
            return next((code for code, kind in OUTCOMES.items() if kind is error.kind), OTHER)
        return SERVED


def _live(gate: Any, place: str, text: str) -> None:
    gate.wait()  # until all are there
    sys.exit(asyncio.run(_apply(place, text)))


def _in_processes(place: str, manifests: Sequence[str]) -> list[BoshErrorKind | None]:
    gate = processes.gate(len(manifests))
    children = [processes.begin(_live, gate, place, text) for text in manifests]
    codes = [processes.ended(child) for child in children]
    return [None if code == SERVED else OUTCOMES[code] for code in codes]


async def at_once(place: str, *manifests: str) -> list[BoshErrorKind | None]:
    """Apply manifests at once, each in a process; return why each was refused, None for who was served."""
    return await asyncio.to_thread(_in_processes, place, manifests)
