"""Measuring plans: a first deploy of many instances, tried and taken back, on an empty or a nearly full network.

Each turn opens the ledger afresh, as every ``tenure deployment plan`` does: nothing is known of it from before.
"""

import statistics
import time
from collections.abc import Sequence

import psutil

import tenure
from bench.cases import Case, Pair
from bench.crew import Sample
from bench.filling import fill
from bench.measuring import Measured, Progress
from bench.places import Places
from tenure.integrations.bosh.cloud_config.configs import upload
from tenure.integrations.bosh.verbs.deploy import deploy

NETWORK = "net0"
TURNS = 5


async def measure(places: Places, case: Case) -> Sample:
    """Plan so many instances, several times, each time in a ledger that was just opened; nothing of it stays."""
    assert case.count is not None
    gateway = case.pool.replace(".0/16", ".1")
    config = f"networks: [{{name: {NETWORK}, subnets: [{{range: {case.pool}, gateway: {gateway}}}]}}]"
    group = f"{{name: app, instances: {case.count}, networks: [{{name: {NETWORK}}}]}}"
    taken: list[float] = []
    async with places.fresh(case.store) as url:
        async with await tenure.open_async(url) as ledger:
            await upload(ledger, "default", config)
        if case.held:
            await fill(case.store, url, case.plan, case.held)
        cpu, began = time.process_time(), time.perf_counter()
        for _ in range(TURNS):
            start = time.perf_counter()
            async with await tenure.open_async(url) as ledger:
                planned = await deploy(ledger, "bench", f"name: bench\ninstance_groups: [{group}]", dry=True)
            taken.append((time.perf_counter() - start) * 1000)
            assert len(planned.granted) == case.count
        cpu, spent = time.process_time() - cpu, time.perf_counter() - began
    count = case.count * TURNS
    return Sample(
        count=count,
        rate=count / spent,
        seconds=spent,
        client_us=cpu / count * 1e6,
        store_us=0.0,
        p50_ms=statistics.median(taken),
        p99_ms=max(taken),
        peak_mb=psutil.Process().memory_info().rss / 2**20,
    )


async def measure_deployments(places: Places, pairs: Sequence[Pair], rounds: int, progress: Progress) -> list[Measured]:
    """Measure all pairs in rounds, subject and base next to each other."""
    measured = [Measured(pair) for pair in pairs]
    for number in range(1, rounds + 1):
        for each in measured:
            progress.step(f"round {number}/{rounds}  {each.pair.name}")
            assert each.pair.base is not None
            each.base.append(await measure(places, each.pair.base))
            each.subject.append(await measure(places, each.pair.subject))
    return measured
