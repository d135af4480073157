"""A clock that is set back: a claim behind which nobody stands keeps its place for its own time, and not until then."""

import pytest

import tenure
from tenure.testing.fault_injection import Faults
from tenure.testing.faulty_ledger import open_faulty_async


async def test_a_dead_claim_blocks_no_longer_than_its_patience_when_the_clock_is_set_back() -> None:
    faults = Faults()
    async with await open_faulty_async(faults) as ledger:
        await ledger.add_network("net")
        await ledger.add_subnet("net", "192.0.2.0/24")
        await ledger.add_pool("net", "192.0.2.10")
        await ledger.allocate("net", owner="vm/full")
        await ledger.claim("net", owner="vm/dead", patience_s=5.0)
        faults.advance(-3600)
        await ledger.release("net", "192.0.2.10", owner="vm/full")
        with pytest.raises(tenure.PoolExhausted):
            await ledger.allocate("net", owner="vm/b")
        faults.advance(5.5)

        assert (await ledger.allocate("net", owner="vm/b")).address == "192.0.2.10"
