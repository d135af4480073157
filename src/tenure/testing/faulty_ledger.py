"""Ledgers in memory whose faults a test decides."""

import random

from tenure.service.engine.engine import Engine
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.ledger.blocking.ledger_sync import Ledger
from tenure.service.ledger.blocking.loop_thread import LoopThread
from tenure.service.ledger.engine_ledger import ledger_on
from tenure.testing.fault_injection import Faults, FaultyStore


async def open_faulty_async(faults: Faults, *, seed: int = 0) -> AsyncLedger:
    """Open a ledger in memory for asyncio; the same seed picks the same random addresses."""
    chance = random.Random(seed)
    return ledger_on(Engine(FaultyStore(faults), name="testing", chance=chance))


def open_faulty(faults: Faults, *, seed: int = 0) -> Ledger:
    """Open a ledger in memory; the same seed picks the same random addresses."""
    portal = LoopThread()
    return Ledger(portal.run(open_faulty_async(faults, seed=seed)), portal)
