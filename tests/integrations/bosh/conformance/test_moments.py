"""B14, G8: what happens in the moment between looking and taking."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

import tenure
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.state.instance_state import owner_of
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.holding_model import Paper
from tenure.stores.postgres.transaction import PostgresTransaction
from tenure.stores.sqlite.transaction import SqliteTransaction
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

Happens = Callable[[], Awaitable[Any]]
Transaction = SqliteTransaction | PostgresTransaction


def between(town: Town, monkeypatch: pytest.MonkeyPatch, happens: Happens) -> None:
    """Let something happen once, when a plan is made and about to be carried out."""
    apply, left = town.ledger.apply, [happens]

    async def late(*words: Any, **more: Any) -> Any:
        while left:
            await left.pop()()
        return await apply(*words, **more)

    monkeypatch.setattr(town.ledger, "apply", late)


async def test_b14_who_finds_his_address_taken_in_that_moment_gets_the_next(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.upload(config())
    async with await tenure.open_async(place) as other:
        between(town, monkeypatch, lambda: Town(other, town.numbers).run(manifest("alpha", app())))
        await town.run(manifest("beta", app()))

    assert (await town.tails("alpha"), await town.tails("beta")) == ({"app/0": ".2"}, {"app/0": ".3"})


@pytest.mark.parametrize("written", [0, 1], ids=["some rows", "some papers, too"])
async def test_b14_any_other_error_is_raised_and_changes_nothing(
    town: Town, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """The store itself breaks off: what it had written by then was all of the addresses, and some papers."""
    seen: list[int] = []

    def full(of: Any) -> Any:
        add_papers = of.add_papers

        async def late(tx: Transaction, papers: Sequence[Paper]) -> None:
            found = len(await tx.rows_of([owner_of(each.name.rpartition("/")[2]) for each in papers]))
            if found:
                await add_papers(tx, papers[:written])
                seen.append(found)
                raise OSError("the disk is full")
            await add_papers(tx, papers)

        return late

    await town.upload(config())
    before = await town.ledger.last_change()
    for each in (SqliteTransaction, PostgresTransaction):
        monkeypatch.setattr(each, "add_papers", full(each))
    with pytest.raises((OSError, StoreUnavailable), match="the disk is full"):
        await town.run(manifest("alpha", app(3)))

    assert seen == [3]
    assert await town.ledger.last_change() == before
    assert (await town.ledger.holdings("lab"), await town.instances("alpha")) == ([], [])
    monkeypatch.undo()
    await town.run(manifest("alpha", app(3)))
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3", "app/2": ".4"}


POOL = {"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.20-198.51.100.22"]}]}
ON_BOTH = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub"}]


async def test_g8_who_finds_his_vip_taken_in_that_moment_gets_the_next(
    town: Town, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.upload(config(more=[POOL]))
    async with await tenure.open_async(place) as other:
        between(town, monkeypatch, lambda: Town(other, town.numbers).run(manifest("alpha", app(networks=ON_BOTH))))
        await town.run(manifest("beta", app(networks=ON_BOTH)))

    assert [(await town.has(name))["app/0"]["pub"] for name in ("alpha", "beta")] == ["198.51.100.20", "198.51.100.21"]


async def test_g8_a_vip_that_is_kept_back_or_held_in_another_network_is_passed_over(town: Town) -> None:
    over = lab(range="198.51.100.0/24", gateway="198.51.100.1", static=["198.51.100.21"])
    await town.upload(config(more=[POOL, {"name": "over", "subnets": [over]}]))
    await town.ledger.reserve("pub", "198.51.100.20")
    await town.run(manifest("alpha", app(network="over", static_ips=["198.51.100.21"])))
    await town.run(manifest("beta", app(networks=ON_BOTH)))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("gamma", app(networks=ON_BOTH)))

    assert (await town.has("beta"))["app/0"]["pub"] == "198.51.100.22"
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
