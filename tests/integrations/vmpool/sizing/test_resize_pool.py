"""The list of a pool is one object that every process follows; an older list never undoes a change (VS9)."""

import asyncio
import json
from pathlib import Path

import pytest

from tenure.integrations.vmpool.address_list.sized_list_object import LIST_KEY
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.modes.book_place import BookPlace
from tenure.integrations.vmpool.modes.move_pool import move_pool
from tenure.integrations.vmpool.pool_errors import PoolStateUnreadable, PoolUnavailable, VMPoolExhausted
from tenure.integrations.vmpool.pool_manifests import pool_documents
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.kernel.errors import Conflict, Invalid
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import create
from tests.integrations.vmpool.modes.mode_stage import ModeStage, mode_stage
from tests.integrations.vmpool.pool_stage import SIX, PoolStage
from tests.integrations.vmpool.seed_managers import SeedManagers
from tests.integrations.vmpool.sizing.size_stage import QUICK, deciding, policy, until
from tests.integrations.vmpool.test_pool_manifests import Account

THREE, NEW = SIX[:3], ("192.168.3.20", "192.168.3.21")
SIZE = "byom-ip-pool-state-size"


async def all_free(pool: AsyncVMPool) -> set[str]:
    """Return all VMs that can be had, and give them back."""
    found: dict[str, str] = {}
    while True:
        id = f"probe-{len(found)}"
        try:
            found[id] = (await pool.allocate(id)).ip
        except VMPoolExhausted:
            break
    for id in found:
        assert await pool.deallocate(id)
    assert len(set(found.values())) == len(found)
    return set(found.values())


async def test_vs9_processes_that_were_there_before_follow_a_list_that_is_changed(every: ModeStage) -> None:
    pool, other = await every.pool(*THREE), await every.pool(*THREE, node_name="node-2")
    assert await all_free(other) == set(THREE)

    sized = await pool.resize(add=NEW, remove=THREE[:1])

    assert sized.ips == (*THREE[1:], *NEW)
    async with deciding(pool):
        await until(lambda: _is_gone(pool))
    assert await all_free(other) == {*THREE[1:], *NEW}
    assert (await other.status()).pool_size == 4
    assert await other.verify() == ()
    again = await pool.resize(add=NEW)
    assert again.ips == sized.ips


async def _is_gone(pool: AsyncVMPool) -> bool:
    sized = await pool.sizing()
    assert sized is not None
    return not sized.retiring


@pytest.mark.parametrize("every", ["per-ip", "shards", "ledger"], indirect=True)
@pytest.mark.parametrize("failing", ["read_notes", "take"])
async def test_a_release_that_was_done_is_answered_so_whatever_fails_after_it(
    every: ModeStage, failing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The address has left the list, and is to be held back: the caller's VM is free all the same.

    In mode configmap one swap does all of it.
    """
    pool = await every.pool(*THREE)
    left = (await pool.allocate("a")).ip
    await pool.resize(add=NEW, remove=[left])
    place = await pool.places.current()
    assert isinstance(place, BookPlace)

    async def fail(*_: object) -> None:
        raise PoolUnavailable("the server has gone", outcome="none")

    monkeypatch.setattr(type(place.book), failing, fail)
    assert await pool.deallocate("a")
    monkeypatch.undo()

    assert await pool.get("a") is None
    assert "not all of its notes were written: the server has gone" in caplog.text


async def test_vs9_a_node_with_an_older_list_never_undoes_a_change(every: ModeStage) -> None:
    """It is started later, with the list of before, and does all that changes a state."""
    pool = await every.pool(*THREE)
    await pool.allocate("kept")
    await pool.resize(add=NEW, remove=THREE)
    async with deciding(pool):
        await until(lambda: _only_kept_retires(pool))

    late = await every.pool(*THREE, node_name="late")
    assert (await late.allocate("new")).ip in NEW
    await late.repair(outside_pool="keep")
    await late.recover(node_name="late", mode="release")
    assert await late.deallocate("kept")
    async with deciding(await every.pool(*THREE)):
        await until(lambda: _is_gone(pool))

    assert await all_free(await every.pool(*THREE, node_name="later")) == set(NEW)
    assert await late.list() == []
    assert await pool.verify() == ()


async def _only_kept_retires(pool: AsyncVMPool) -> bool:
    sized = await pool.sizing()
    assert sized is not None
    return len(sized.retiring) == 1


async def test_vs9_a_vm_that_leaves_stays_its_pods_and_is_not_given_again(every: ModeStage) -> None:
    pool = await every.pool(*THREE)
    held = {id: (await pool.allocate(id)).ip for id in ("a", "b", "c")}

    await pool.resize(add=NEW, remove=[held["a"]])

    assert (await pool.get("a")) is not None
    assert (await pool.allocate("a")).ip == held["a"]
    assert (await pool.status()).draining == (held["a"],)
    assert await pool.deallocate_ip(held["a"])
    async with deciding(pool):
        await until(lambda: _is_gone(pool))
    assert await all_free(pool) == set(NEW)
    assert await pool.find_ip(held["a"]) is None
    assert await pool.deallocate_ip(held["a"]) is False, "what is held back is released by nobody"
    assert (await pool.resize(add=[held["a"]])).ips[-1] == held["a"]
    async with deciding(pool):
        await until(lambda: _has(pool, 3))
    assert held["a"] in await all_free(pool)


async def _has(pool: AsyncVMPool, available: int) -> bool:
    return (await pool.status()).available == available


async def test_vs9_what_is_removed_is_not_given_out_any_more_and_no_decider_is_needed(every: ModeStage) -> None:
    pool, other = await every.pool(*THREE), await every.pool(*THREE, node_name="node-2")
    assert await all_free(other) == set(THREE)

    await pool.resize(remove=THREE[:1])

    assert await all_free(other) == set(THREE[1:])
    assert await pool.verify() == ()
    await pool.resize(add=THREE[:1])
    assert await all_free(other) == set(THREE)


async def test_vs9_what_is_removed_while_a_pod_has_it_is_not_given_out_after_that(every: ModeStage) -> None:
    """Also where it is released by a process that knows an older list."""
    pool, other = await every.pool(*THREE), await every.pool(*THREE, node_name="node-2")
    held = [(await other.allocate(id)).ip for id in ("a", "b")]

    await pool.resize(remove=held)

    assert (await other.get("a")) is not None
    assert await other.deallocate("a")
    assert await all_free(other) == {*THREE} - {*held}
    assert [each.allocation_id for each in (await other.recover(mode="release")).released] == ["b"]
    assert await all_free(other) == {*THREE} - {*held}
    assert await pool.verify() == ()
    await pool.resize(add=held)
    assert await all_free(other) == set(THREE)


async def test_vs9_a_node_without_a_cluster_gives_out_nothing_that_was_removed(
    stage: PoolStage, tmp_path: Path
) -> None:
    async with mode_stage(stage, "ledger", tmp_path) as opened:
        pool, alone = await opened.pool(*THREE), AsyncVMPool(None, stage.settings(*THREE, **opened.words))
        held = (await alone.allocate("a")).ip

        await pool.resize(remove=[held])

        assert await alone.deallocate("a")
        assert await all_free(alone) == {*THREE} - {held}
        await pool.resize(add=[held])
        assert await all_free(alone) == set(THREE)
        await alone.close()


async def test_vs9_a_go_manager_with_the_old_list_does_not_give_out_what_has_left(stage: PoolStage) -> None:
    managers = SeedManagers(stage.kube.kubeconfig(), stage.namespace, THREE)
    pool = await stage.pool(*THREE)
    await pool.allocate("ours")
    await pool.resize(add=NEW, remove=THREE)
    async with deciding(pool):
        await until(lambda: _only_kept_retires(pool))

    await asyncio.to_thread(managers.start)
    [done] = await asyncio.to_thread(managers.allocate, "go")

    assert "no available IPs" in done.error or done.ip in NEW
    assert {each.ip for each in await pool.list()} - set(NEW) <= set(THREE)
    assert [each.allocation_id for each in await pool.list() if each.ip in THREE] == ["ours"]
    assert await all_free(await stage.pool(*THREE)) == set(NEW) - {done.ip}


async def test_vs9_a_go_manager_does_not_give_out_what_was_released_after_it_had_left(stage: PoolStage) -> None:
    managers = SeedManagers(stage.kube.kubeconfig(), stage.namespace, THREE)
    pool = await stage.pool(*THREE)
    for id in ("a", "b", "c"):
        await pool.allocate(id)
    await pool.resize(add=NEW, remove=THREE)
    assert await pool.deallocate("a")
    assert (await pool.recover(mode="release")).released

    await asyncio.to_thread(managers.start)
    [done] = await asyncio.to_thread(managers.allocate, "go")

    assert "no available IPs" in done.error
    assert await pool.list() == []
    assert await all_free(await stage.pool(*THREE)) == set(NEW)


@pytest.fixture
async def sized(stage: PoolStage, tmp_path: Path) -> ModeStage:
    """Give a pool with a list of its own, of three."""
    async with mode_stage(stage, "configmap", tmp_path) as opened:
        pool = await opened.pool(*THREE)
        await pool.resize(add=NEW[:1], remove=THREE[:1])
        return opened


async def test_what_cannot_be_done_is_refused_and_changes_nothing(sized: ModeStage) -> None:
    pool = await sized.pool(*THREE)
    before = await pool.sizing()
    for words, said in (
        ({"remove": ["10.0.0.1"]}, "10.0.0.1 is not in the pool"),
        ({"remove": [*THREE, *NEW]}, "not in the pool|cannot be empty"),
        ({"remove": [*THREE[1:], NEW[0]]}, "pool IPs cannot be empty"),
        ({"add": ["nonsense"]}, "add: invalid IP"),
        ({"add": [NEW[1]], "remove": [NEW[1]]}, "added and removed at once"),
        ({"policy": policy(), "stops": True}, "begin and end"),
        ({}, "nothing is to be changed"),
    ):
        with pytest.raises(Invalid, match=said):
            await pool.resize(**words)

    assert await pool.sizing() == before


async def test_a_list_that_was_deleted_or_is_rubbish_is_said_and_nothing_is_given_by_the_old_one(
    sized: ModeStage,
) -> None:
    knows = await sized.pool(*THREE)
    await knows.status()
    sized.stage.put_object({"data": {LIST_KEY: "{rubbish"}}, SIZE)

    with pytest.raises(PoolStateUnreadable, match="the list of addresses"):
        await (await sized.pool(*THREE)).allocate("a")
    assert (await knows.allocate("b")).ip in (*THREE[1:], NEW[0]), "who knows the list goes on"

    sized.stage.kube.ask("DELETE", f"/api/v1/namespaces/{sized.stage.namespace}/configmaps/{SIZE}")
    fresh = await sized.pool(*THREE)
    with pytest.raises(Conflict, match="resize --add"):
        await fresh.allocate("a")
    made = await fresh.resize(add=NEW[1:])
    assert made.ips == (*THREE, NEW[1]), "it begins again with the list of the settings"
    assert (await fresh.allocate("a")).ip in made.ips
    assert (await knows.status()).list_generation == made.generation


async def test_a_pool_that_is_being_moved_keeps_its_list(stage: PoolStage, tmp_path: Path) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as opened:
        pool = await opened.pool(*THREE)
        pool.places.lease = QUICK
        await pool.allocate("a")
        notes = json.loads(stage.object()["data"]["tenure-notes"])
        notes["placement"] = {"mode": "configmap", "movesTo": "per-ip", "epoch": 0}
        stage.put_object({"data": {**stage.object()["data"], "tenure-notes": json.dumps(notes)}})

        with pytest.raises(Conflict, match="being moved to 'per-ip'"):
            await pool.resize(add=NEW)

        await move_pool(pool.places, "per-ip")
        assert set((await pool.resize(add=NEW)).ips) == {*THREE, *NEW}
        assert await all_free(await opened.pool(*THREE)) == {*THREE, *NEW} - {(await pool.list())[0].ip}


async def test_a_sized_pool_goes_through_all_modes_with_its_list(stage: PoolStage, tmp_path: Path) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as opened:
        pool = await opened.pool(*THREE)
        kept = await pool.allocate("kept")
        gone = next(ip for ip in THREE if ip != kept.ip)
        await pool.resize(add=NEW, remove=[gone])
        async with deciding(pool):
            await until(lambda: _is_gone(pool))
        for to in ("per-ip", "shards", "ledger", "configmap"):
            assert (await pool.move(to)).allocations == 1
            late = await opened.pool(*THREE, node_name="late")
            assert await all_free(late) == {*THREE, *NEW} - {gone, kept.ip}, to
            assert [each.allocation_id for each in await late.list()] == ["kept"]


async def test_kp7_the_shipped_roles_are_enough_to_resize_and_to_follow(
    kube: KubeServer, namespace: str, tmp_path: Path
) -> None:
    for document in pool_documents(("rbac", "sizing"), namespace=namespace):
        create(kube, document)
    kubeconfig = str(Account(kube, namespace).kubeconfig(tmp_path))
    settings = VMPoolSettings(pool_ips=THREE, namespace=namespace, node_name="node-1", operation_timeout_s=20)

    async with AsyncVMPool.connect(settings, kubeconfig=kubeconfig) as pool:
        await pool.resize(add=NEW, remove=THREE[:1])
        async with deciding(pool):
            await until(lambda: _is_gone(pool))
        follower = pool.places.follower
        assert follower is not None
        watched = follower.lists.watch()
        assert (await anext(watched)).ips == (*THREE[1:], *NEW)
        await watched.aclose()  # type: ignore[attr-defined]


async def test_notes_that_are_replaced_still_say_which_list_counts(sized: ModeStage) -> None:
    before = sized.stage.object()["data"]
    sized.stage.put_object({"data": {**before, "tenure-notes": "{rubbish"}})
    late = await sized.pool(*THREE)

    assert (await late.repair()).findings
    assert {*await all_free(late)} == {*THREE[1:], NEW[0]}, "without notes, each call reads the list"
    assert (await (await sized.pool(*THREE)).repair(replace_unreadable=True)).replaced == ("notes",)
    assert sized.stage.notes()["listGeneration"] == 1
    assert await all_free(await sized.pool(*THREE)) == {*THREE[1:], NEW[0]}


async def test_vs9_a_node_that_does_not_reach_the_list_drops_nothing_by_its_own(
    stage: PoolStage, tmp_path: Path
) -> None:
    """A node of a pool in a ledger needs no cluster, and then knows its own list only."""
    async with mode_stage(stage, "ledger", tmp_path) as opened:
        pool = await opened.pool(*THREE)
        await pool.resize(add=NEW, remove=THREE)
        async with deciding(pool):
            await until(lambda: _is_gone(pool))
        given = await pool.allocate("new")
        alone = AsyncVMPool(None, stage.settings(*THREE, **opened.words, outside_pool="drop"))

        await alone.repair()

        assert await alone.get("new") == given
        assert (await alone.allocate("more")).ip in NEW
        with pytest.raises(VMPoolExhausted):
            await alone.allocate("one-too-many")
        await alone.close()
