"""A network of a ledger as an operator reads it: what changes is read, and nothing is read while nothing changes."""

from collections.abc import AsyncIterator

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.ledger import network_mirror
from tenure.integrations.kubernetes.metal3.ledger.network_mirror import NetworkMirror
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import NotFound
from tenure.service.ledger.async_ledger import AsyncLedger


@pytest.fixture
async def ledger() -> AsyncIterator[AsyncLedger]:
    """Give a ledger with two networks of one space that lie over each other, and one of another space."""
    async with await planned() as opened:
        yield opened


async def planned() -> AsyncLedger:
    """Return such a ledger."""
    opened = await tenure.open_async("memory:")
    for name, space, pool in (("n", "site", "10-10.0.0.19"), ("m", "site", "30-10.0.0.39"), ("far", "lab", "10")):
        await opened.add_network(name, space=space)
        await opened.add_subnet(name, "10.0.0.0/24")
        await opened.add_pool(name, f"10.0.0.{pool}")
    return opened


def held(mirror: NetworkMirror) -> dict[str, str]:
    """Return who holds what."""
    return {row.owner: format_address(row.position) for row in mirror.rows.values()}


async def test_what_others_take_and_release_is_read(ledger: AsyncLedger) -> None:
    mirror = NetworkMirror("n")
    assert await mirror.refresh(ledger)
    assert not await mirror.refresh(ledger)
    await ledger.allocate("n", owner="a/1")
    await ledger.allocate("n", owner="a/2")
    await ledger.allocate("m", owner="a/3")
    assert await mirror.refresh(ledger)
    assert held(mirror) == {"a/1": "10.0.0.10", "a/2": "10.0.0.11"}
    assert {(row.owner, row.network) for row in mirror.others.values()} == {("a/3", "m")}
    for owner in ("a/1", "a/3"):
        await ledger.release_owner(owner)
    assert await mirror.refresh(ledger)

    assert held(mirror) == {"a/2": "10.0.0.11"}
    assert not mirror.others


async def test_networks_that_come_to_lie_over_it_are_read(ledger: AsyncLedger) -> None:
    mirror = NetworkMirror("n")
    await mirror.refresh(ledger)
    await ledger.add_network("late", space="site")
    await ledger.add_subnet("late", "10.0.0.0/28")
    await ledger.allocate("late", owner="a/1", address="10.0.0.12")
    assert await mirror.refresh(ledger)

    assert parse_address("10.0.0.12") in mirror.others
    assert mirror.plan is not None
    assert [each.name for each in mirror.plan.neighbours] == ["late", "m"]


@pytest.mark.parametrize("changes", [3, 4, 5, 9])
async def test_a_ledger_that_was_restored_and_went_on_is_read_whole(ledger: AsyncLedger, changes: int) -> None:
    """Its log has as many changes as before, fewer or more, and other ones: what was held may not be held any more."""
    mirror = NetworkMirror("n")
    for number in range(4):
        await ledger.allocate("n", owner=f"lost/{number}")
    await mirror.refresh(ledger)
    async with await planned() as restored:
        for number in range(changes):
            await restored.allocate("n", owner=f"new/{number}")
        if changes == 4:  # as many: the next change tells
            await mirror.refresh(restored)
            await restored.allocate("n", owner="new/4")
        await mirror.refresh(restored)

        assert set(held(mirror)) == {f"new/{number}" for number in range(max(changes, 5 if changes == 4 else 0))}


async def test_another_plan_is_read_and_changes_of_other_networks_are_passed_over(ledger: AsyncLedger) -> None:
    mirror = NetworkMirror("n")
    await mirror.refresh(ledger)
    await ledger.allocate("far", owner="a/3")
    await ledger.reserve("far", "10.0.0.12")
    assert not await mirror.refresh(ledger)
    await ledger.reserve("n", "10.0.0.12")
    assert await mirror.refresh(ledger)

    assert mirror.plan is not None
    assert [str(each.range) for each in mirror.plan.network.subnets[0].reserved] == ["10.0.0.12"]


@pytest.mark.parametrize("limit", ["MOST_CHANGES", "MOST_SINGLE"])
async def test_after_many_changes_everything_is_read(
    ledger: AsyncLedger, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(network_mirror, limit, 3)
    mirror = NetworkMirror("n")
    await mirror.refresh(ledger)
    for number in range(6):
        await ledger.allocate("n", owner=f"a/{number}")
    assert await mirror.refresh(ledger)

    assert len(mirror.rows) == 6
    assert not await mirror.refresh(ledger)


async def test_a_log_that_was_trimmed_is_no_obstacle(ledger: AsyncLedger) -> None:
    mirror = NetworkMirror("n")
    await mirror.refresh(ledger)
    await ledger.allocate("n", owner="a/1")
    await ledger.trim_changes(await ledger.last_change() + 1)
    await ledger.allocate("n", owner="a/2")
    assert await mirror.refresh(ledger)

    assert set(held(mirror)) == {"a/1", "a/2"}


async def test_what_has_cooled_off_is_free_although_the_log_does_not_say_so(ledger: AsyncLedger) -> None:
    mirror = NetworkMirror("n")
    await ledger.allocate("n", owner="a/1")
    await ledger.release("n", "10.0.0.10", owner="a/1", lingers_s=0.05)
    await mirror.refresh(ledger)
    assert parse_address("10.0.0.10") in mirror.rows
    while mirror.rows:
        await mirror.refresh(ledger)

    assert not mirror.rows


async def test_a_network_that_is_not_there_says_so(ledger: AsyncLedger) -> None:
    with pytest.raises(NotFound, match="no network 'x'"):
        await NetworkMirror("x").refresh(ledger)
