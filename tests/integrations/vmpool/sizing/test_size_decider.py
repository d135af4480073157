"""One decider grows and shrinks a pool by its watermarks, and another one goes on where it was killed (VS9)."""

import asyncio
import itertools
import random
from pathlib import Path

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.sizing.size_decider import DeciderSettings, SizeDecider
from tenure.integrations.vmpool.sizing.vm_programs import VMPrograms
from tenure.integrations.vmpool.state.sized_list import SizedList
from tenure.kernel.errors import Invalid
from tests.integrations.vmpool.modes.mode_stage import ModeStage, mode_stage
from tests.integrations.vmpool.pool_stage import PoolStage
from tests.integrations.vmpool.sizing.size_stage import (
    FOUR,
    Machines,
    candidates,
    deciding,
    kill_leader,
    leader,
    policy,
    until,
)


async def sizing(pool: AsyncVMPool) -> SizedList:
    """Return the list of a pool that has one."""
    found = await pool.sizing()
    assert found is not None
    return found


async def settled(pool: AsyncVMPool, size: int) -> bool:
    """Return whether a pool has a size, and nothing is under way."""
    found = await sizing(pool)
    return len(found.ips) == size and not found.making and not found.retiring


async def test_vs9_a_pool_grows_from_a_prefix_and_shrinks_when_vms_are_free(stage: PoolStage) -> None:
    pool = await stage.pool(*FOUR)
    await pool.resize(policy=policy(low=2, high=6, least=3, most=9, prefix="10.9.0.0/28"))
    async with deciding(pool):
        ids = [f"pod-{number}" for number in range(8)]
        given = [(await pool.allocate(id, wait_s=20)).ip for id in ids]
        await until(lambda: settled(pool, 9))

        assert (await sizing(pool)).ips == tuple(f"10.9.0.{number}" for number in range(1, 10))
        assert len(set(given)) == 8
        await until(lambda: _says(pool, "as large as it may be"))
        for id in ids[2:]:
            await pool.deallocate(id)
        await until(lambda: settled(pool, 6))

    assert set(given[:2]) < set((await sizing(pool)).ips), "VMs in use stay"
    assert (await pool.status()).available == 4, "as many are free as lie between the marks"
    assert await pool.verify() == ()


async def _says(pool: AsyncVMPool, problem: str) -> bool:
    return problem in (await sizing(pool)).problem


async def test_vs9_a_program_makes_vms_and_removes_them_after_their_pods(stage: PoolStage, tmp_path: Path) -> None:
    machines = Machines(tmp_path)
    machines.start(*FOUR)
    pool = await stage.pool(*FOUR)
    held = [(await pool.allocate(f"pod-{number}")).ip for number in range(4)]
    await pool.resize(policy=policy(low=1, high=3, most=6))
    async with deciding(pool, machines.programs):
        await until(lambda: settled(pool, 6))
        assert machines.ips == {*FOUR, "10.9.1.1", "10.9.1.2"}
        await pool.resize(remove=held[:1])
        await asyncio.sleep(0.5)
        assert machines.is_there(held[0]), "its pod has it"
        await pool.deallocate("pod-0")
        await until(lambda: not machines.is_there(held[0]))

    assert machines.log.count(f"remove {held[0]}") == 1
    assert held[0] not in (await sizing(pool)).ips


async def test_vs9_a_program_that_fails_is_called_again_for_the_same_request(stage: PoolStage, tmp_path: Path) -> None:
    said = tmp_path / "said"
    program = f'echo {{request}} >> {said}; n=$(wc -l < {said}); [ $n -gt 4 ] || {{ echo "no quota" >&2; exit 3; }}; '
    pool = await stage.pool(*FOUR[:1])
    await pool.allocate("pod")
    await pool.resize(policy=policy(low=1, high=2, most=2))
    programs = VMPrograms(["sh", "-c", program + 'echo "a warning" >&2; echo 10.9.9.9'])
    async with deciding(pool, programs, retry_s=0.5) as decider:
        await until(lambda: _has_failed(pool, "no quota"))
        await until(lambda: settled(pool, 2))

    assert set(said.read_text().split()) == {"byom-ip-pool-state-1"}
    assert (await sizing(pool)).ips == (FOUR[0], "10.9.9.9")
    assert isinstance(decider, SizeDecider)


async def _has_failed(pool: AsyncVMPool, cause: str) -> bool:
    return any(cause in each.cause for each in (await sizing(pool)).making.values())


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        (["sh", "-c", "echo not-an-address"], "did not print the address"),
        (["sh", "-c", f"echo {FOUR[0]}"], "an address of the pool already"),
        (["/no/such/program"], "cannot be started"),
        (["sh", "-c", "sleep 60"], "longer than"),
    ],
    ids=["rubbish", "known", "missing", "slow"],
)
async def test_a_program_that_makes_no_vm_adds_none(stage: PoolStage, program: list[str], cause: str) -> None:
    pool = await stage.pool(*FOUR[:1])
    await pool.resize(policy=policy(low=2, high=3, most=2))
    async with deciding(pool, VMPrograms(program, timeout_s=0.5), retry_s=60):
        await until(lambda: _has_failed(pool, cause))

    assert (await sizing(pool)).ips == FOUR[:1]
    assert (await pool.status()).available == 1


async def test_a_pool_without_a_source_says_so(stage: PoolStage) -> None:
    pool = await stage.pool(*FOUR[:2])
    await pool.resize(policy=policy(low=3, high=5))
    async with deciding(pool):
        await until(lambda: _says(pool, "nothing says from where"))
        before = (await sizing(pool)).generation
        await asyncio.sleep(0.8)
        assert (await sizing(pool)).generation == before, "it is said once"
        await pool.resize(policy=policy(low=3, high=5, prefix="10.9.0.0/30"))
        await until(lambda: _says(pool, "10.9.0.0/30 has no more addresses"))

    assert (await sizing(pool)).ips == FOUR[:2], "a /30 has two hosts"


async def test_what_makes_no_sense_is_refused(stage: PoolStage) -> None:
    pool = await stage.pool(*FOUR)
    with pytest.raises(BadArgument, match="make: a program"):
        VMPrograms("make it")
    with pytest.raises(BadArgument, match="every_s"):
        DeciderSettings(every_s=0)
    ledger = AsyncVMPool(None, stage.settings(pool_mode="ledger", pool_ledger="memory:"))
    with pytest.raises(Invalid, match="kubeconfig"):
        SizeDecider(ledger, DeciderSettings())
    with pytest.raises(Invalid, match="kubeconfig"):
        await ledger.resize(add=["10.0.0.1"])
    assert await pool.sizing() is None


async def load(pool: AsyncVMPool, machines: Machines, stop: asyncio.Event, wrong: list[str], held: set[str]) -> int:
    """Allocate and release until told to stop; a VM has to be there, and nobody else's, for as long as it is held."""
    chance = random.Random(pool.node_name)
    for number in itertools.count():
        if stop.is_set():
            return number
        id = f"{pool.node_name}-{number}"
        try:
            given = await pool.allocate(id, wait_s=60)
        except Exception as error:
            wrong.append(f"{id}: {error!r}")
            continue
        if given.ip in held:
            wrong.append(f"{id}: {given.ip} is another one's as well")
        held.add(given.ip)
        for _ in range(2):
            if not machines.is_there(given.ip):
                wrong.append(f"{id}: there is no VM {given.ip}")
            await asyncio.sleep(chance.uniform(0.05, 0.4))
        held.discard(given.ip)
        if not await pool.deallocate(id):
            wrong.append(f"{id}: {given.ip} was lost")
    return 0


async def test_done_when_4_growth_and_shrink_under_load_by_one_decider_killed_and_replaced(
    stage: PoolStage, tmp_path: Path
) -> None:
    async with mode_stage(stage, "configmap", tmp_path) as opened:
        await check_under_load(opened, tmp_path, kills=1, nodes=5)


@pytest.mark.proof
async def test_done_when_4_in_every_mode_and_killed_again_and_again(every: ModeStage, tmp_path: Path) -> None:
    await check_under_load(every, tmp_path, kills=6, nodes=10)


async def check_under_load(every: ModeStage, tmp_path: Path, *, kills: int, nodes: int) -> None:
    """Let nodes work while the pool grows, kill deciders, let the pool shrink, and look for what must not be."""
    machines, stage = Machines(tmp_path / "machines"), every.stage
    machines.start(*FOUR)
    words = {"pool_ips": FOUR, "namespace": stage.namespace, "operation_timeout_s": 30.0, **every.words}
    pool = await every.pool(*FOUR, operation_timeout_s=30.0)
    await pool.resize(policy=policy(low=2, high=5, least=2, most=nodes + 4))
    stop, wrong, held = asyncio.Event(), list[str](), set[str]()
    workers = [await every.pool(*FOUR, node_name=f"node-{number}", operation_timeout_s=60.0) for number in range(nodes)]
    with candidates(stage.kube, words, machines.folder, kills + 1):
        tasks = [asyncio.create_task(load(each, machines, stop, wrong, held)) for each in workers]
        killed: set[int] = set()
        for _ in range(kills):
            await asyncio.sleep(random.uniform(0.5, 2.0))
            await until(lambda: leader(stage.kube, stage.namespace) not in (0, *killed), 60)
            killed.add(kill_leader(stage.kube, stage.namespace))
        await until(lambda: _is_large(pool, nodes), 60)
        stop.set()
        done = await asyncio.gather(*tasks)
        await until(lambda: _is_small(pool), 60)

    assert wrong == []
    assert min(done) > 0, "every node had VMs of the pool meanwhile"
    assert len(killed) == kills
    final = await sizing(pool)
    assert machines.ips == set(final.ips), "no VM leaks, and none is missing"
    assert (await pool.list(), await pool.verify()) == ([], ())
    made = [line.split()[1] for line in machines.log if line.startswith("make")]
    assert len(set(made)) == final.requests


async def _is_large(pool: AsyncVMPool, size: int) -> bool:
    return len((await sizing(pool)).ips) >= size


async def _is_small(pool: AsyncVMPool) -> bool:
    found = await sizing(pool)
    return len(found.ips) <= 5 and not found.making and not found.retiring
