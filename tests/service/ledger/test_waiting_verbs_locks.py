"""Who reads the lines of those who wait takes a lock only where somebody does."""

import pytest

import tenure
from tenure.service.ledger.engine_ledger import server_of
from tests.contract.ledger.plan import small_plan


async def test_a_space_in_which_nobody_waits_is_not_locked_to_read_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await tenure.open_async("memory:") as ledger:
        for number in range(5):
            await small_plan(ledger, network=f"net{number}", space=f"space{number}")
        await ledger.allocate_many("net3", owner="vm/full", count=10)
        await ledger.claim("net3", owner="vm/late", patience_s=60)
        store = server_of(ledger).store
        transact, locked = store.transact, list[object]()

        async def counted(work: object) -> object:
            locked.append(work)
            return await transact(work)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "transact", counted)
        everywhere, here, elsewhere = [await ledger.waiting(name) for name in (None, "net3", "net0")]

    assert [claim.owner for claim in everywhere] == ["vm/late"] == [claim.owner for claim in here]
    assert elsewhere == []
    assert len(locked) == 2
