"""A controller on the runtime stays right through what happens to API servers, replicas, credentials and versions."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease
from tests.infrastructure.kube import KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.runtime.toy_controller import CONFIG_MAP, TIMES, ToyController, ToyWrite
from tests.integrations.kubernetes.runtime.toy_rounds import (
    FAULTS,
    handled_twice,
    play_round,
    replicas,
    seed,
    settled,
    state,
    toy_rounds,
    toy_stage,
    user,
    written,
)


@pytest.fixture(scope="module")
def fragile() -> Iterator[KubeServer]:
    """Give an API server that may be killed."""
    with private_kube() as server:
        install(server)
        yield server


async def test_seeds_are_echoed_corrected_and_removed(fragile: KubeServer) -> None:
    with fresh_namespace(fragile) as namespace, replicas(fragile, namespace, "one"):
        async with user(fragile) as client:
            seeds = [await seed(client, namespace, f"s{number}", "first") for number in range(20)]
            await settled(client, namespace)
            await client.patch(CONFIG_MAP, seeds[0], [{"op": "replace", "path": "/data/text", "value": "second"}])
            await client.delete(CONFIG_MAP, seeds[1])
            echo = await client.get(CONFIG_MAP.path(namespace, "s2-echo"))
            await client.delete(CONFIG_MAP, echo)
            await settled(client, namespace)
            assert (await state(client, namespace))[1]["s0"] == "second"


async def test_a_leader_that_is_frozen_with_a_write_in_hand_does_no_harm_when_it_wakes(fragile: KubeServer) -> None:
    """The fence: it has checked its lease and sends the write long after; that names a version that is old by then."""
    async with toy_stage(fragile, 1) as stage, user(fragile) as client:
        await stage.fill()
        first = await stage.until_led()
        seeds = [await seed(client, stage.namespace, f"s{number}", "first") for number in range(10)]
        await settled(client, stage.namespace)
        await asyncio.to_thread((stage.folder / f"freeze-{first}").touch)
        for each in seeds[:5]:
            await client.patch(CONFIG_MAP, each, [{"op": "replace", "path": "/data/text", "value": "second"}])
        for each in seeds[5:]:
            await client.delete(CONFIG_MAP, each)
        await settled(client, stage.namespace)  # by the other replica
        assert await stage.until_led() != first
        stage.living[first].send_signal(signal.SIGCONT)
        async with asyncio.timeout(20):
            while not stage.refused.get(first):
                await stage.snapshot(first)
        await settled(client, stage.namespace)
        assert set((await state(client, stage.namespace))[1].values()) == {"second"}
        for name in stage.living:
            await stage.snapshot(name)

    assert written(stage)["doubled"] == 0


@pytest.mark.proof
async def test_what_a_frozen_leader_creates_late_is_removed_by_its_follower(fragile: KubeServer) -> None:
    """A create names no version, so it lands if its follower has deleted the object meanwhile."""
    async with toy_stage(fragile, 1) as stage, user(fragile) as client:
        await stage.fill()
        first = await stage.until_led()
        await asyncio.to_thread((stage.folder / f"freeze-{first}").touch)
        made = await seed(client, stage.namespace, "late", "first")
        await settled(client, stage.namespace)  # by the other replica
        await client.delete(CONFIG_MAP, made)
        await settled(client, stage.namespace)
        stage.living[first].send_signal(signal.SIGCONT)
        async with asyncio.timeout(20):
            while not stage.writes.get(first):
                await stage.snapshot(first)
        await settled(client, stage.namespace)
        assert (await state(client, stage.namespace)) == ({}, {})


async def test_a_write_of_a_former_leader_is_refused_by_what_it_names(fragile: KubeServer) -> None:
    """The fence: even a leader that does not check its lease cannot undo what its follower wrote."""
    with fresh_namespace(fragile) as namespace:
        async with user(fragile) as client:
            lease = LeaderLease(client, "tenure-system", f"toy-{namespace}", "old", TIMES)
            old = ToyController(client, lease, namespace, "old")
            await seed(client, namespace, "a", "first")
            task = asyncio.create_task(old.informer.run())
            await old.informer.synced.wait()
            await old._write("a", None, {"text": "first"})
            stale = old.informer.cache.get((namespace, "a-echo"))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert stale is not None
            newer = await client.get(CONFIG_MAP.path(namespace, "a-echo"))
            await client.patch(CONFIG_MAP, newer, [{"op": "replace", "path": "/data/text", "value": "newer"}])

            for wanted in ({"text": "older"}, None):
                with pytest.raises(ApiError, match=r"409|422"):
                    await old._write("a", stale, wanted)
            assert (await state(client, namespace))[1] == {"a": "newer"}


IN_PROOF = {"forget-versions", "freeze-replica", "kill-api-server", "kill-etcd", "kill-replica"}
"""Other faults have these in them, or more than these; a version that is forgotten is tried with the informer."""


@pytest.mark.parametrize(
    "fault", [pytest.param(name, marks=[pytest.mark.proof] if name in IN_PROOF else []) for name in sorted(FAULTS)]
)
async def test_a_fault_under_load_leaves_everything_in_agreement(fragile: KubeServer, fault: str) -> None:
    """Seeds and echoes agree, every cache equals a fresh list, and no former leader writes after its follower."""
    async with toy_stage(fragile, 1) as stage:
        played = await play_round(stage, fault)
        found = written(stage)

    assert played["lost"] == 0
    assert found["writes"] > 0
    assert found["doubled"] == 0


@pytest.mark.proof
async def test_rounds_of_faults_one_after_the_other() -> None:
    played = await toy_rounds(int(os.environ.get("TENURE_SEED", "1")), 3)

    assert (played["lost"], played["doubled"]) == (0, 0)


def test_a_judge_sees_a_former_leader_that_writes_after_its_follower() -> None:
    first, follower, late = ToyWrite(1.0, "a", 1), ToyWrite(2.0, "a", 2), ToyWrite(1.0, "a", 3)

    deletion, creation = ToyWrite(1.0, "a", 2.5), ToyWrite(1.0, "a", 3, names_version=False)

    stories = ([first, follower], [late, follower, first], [follower, deletion], [follower, creation])
    assert [handled_twice(writes) for writes in stories] == [[], ["a"], ["a"], []]
