"""Whatever several processes do to the same deployments at once: nothing is lost, doubled or left behind."""

import asyncio
import contextlib
import os
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

import tenure
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.kernel.errors import Conflict, NotFound
from tests.integrations.bosh import processes
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

pytestmark = pytest.mark.every_store

PROCESSES, ACTS = 4, 40
POOL = {"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.1-198.51.100.9"]}]}
CONFIGS = [
    config(lab(**changes), more=[POOL])
    for changes in ({}, {"reserved": ["172.20.5.2-172.20.5.4"]}, {"gateway": "172.20.5.14"})
]


@dataclass(frozen=True)
class Job:
    """A VM in the making: for which plan, and with which addresses."""

    deployment: str
    instance: str
    plan: str
    addresses: frozenset[str]


@dataclass
class Hand:
    """Somebody who does anything that may be done; what is refused in words is no fault.

    VMs take their time: what is wanted may be another when one is up. Then nobody may take it for what is wanted.
    """

    door: Deployments
    chance: random.Random
    plan: tuple[str, str] | None = None
    jobs: list[Job] = field(default_factory=list)

    async def act(self) -> None:
        """Do one thing."""
        name, drawn = self.chance.choice(["alpha", "beta"]), self.chance.random()
        with contextlib.suppress(Refused, Conflict, NotFound):
            if drawn < 0.35:
                await self.apply(name)
            elif drawn < 0.42:
                await self.door.upload_config(self.chance.choice(CONFIGS))
            elif drawn < 0.48:
                await self.door.delete(name)
            elif drawn < 0.55 and self.plan is not None:
                await self.door.abort(*self.plan)
            elif drawn < 0.7 and self.jobs:
                await self.end(self.jobs.pop(self.chance.randrange(len(self.jobs))))
            else:
                await self.report(name)

    async def apply(self, name: str) -> None:
        """Deploy some instances, with and without VIPs."""
        on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub"}]
        groups = app(self.chance.randint(0, 4)), app(self.chance.randint(0, 2), name="vip", networks=on)
        recreate, hand_over = self.chance.random() < 0.2, self.chance.random() < 0.3
        deployed = await self.door.apply(manifest(name, *groups), recreate=recreate, hand_over=hand_over)
        self.plan = name, deployed.plan

    async def report(self, name: str) -> None:
        """Report something of an instance; perhaps of a plan that is over."""
        instances = await self.door.instances(name)
        if not instances:
            return
        each, drawn = self.chance.choice(instances), self.chance.random()
        vm = f"vm-{os.getpid()}-{self.chance.random()}"
        if each.leaving or drawn < 0.15:
            await self.door.lose(name, each.name)
        elif drawn < 0.35 and each.plan is not None and not each.waits:
            self.jobs.append(Job(name, each.name, each.plan, frozenset(held.address for held in each.wanted)))
        elif drawn < 0.7:
            await self.door.commit(name, each.name, vm=vm, plan=each.plan if drawn < 0.6 else None)
        elif drawn < 0.8:
            await self.door.fail(name, each.name)
        elif drawn < 0.9:
            await self.door.stop(name, each.name, hard=True)
        else:
            await self.door.start(name, each.name)

    async def end(self, job: Job) -> None:
        """Report a VM that was long in the making: it is up with what it was begun with, or it failed."""
        if self.chance.random() < 0.3:
            await self.door.fail(job.deployment, job.instance, plan=job.plan)
            return
        vm = f"vm-{os.getpid()}-{self.chance.random()}"
        made = await self.door.commit(job.deployment, job.instance, vm=vm, plan=job.plan)
        if made.vm == vm:  # else somebody replaced it already
            assert {said["ip"] for said in (made.made_with or {}).values()} == job.addresses


async def work(place: str, seed: int) -> None:
    """Do many things, one after the other."""
    async with await tenure.open_async(place) as ledger:
        hand = Hand(Deployments(ledger), random.Random(seed))
        for _ in range(ACTS):
            await hand.act()


def live(place: str, seed: int) -> None:
    """Do it all in a process of its own."""
    asyncio.run(work(place, seed))


def in_processes(place: str) -> list[int]:
    """Let several work at once."""
    children = [processes.begin(live, place, seed) for seed in range(PROCESSES)]
    return [processes.ended(child) for child in children]


def check(instances: list[DeploymentInstance]) -> None:
    """Find every instance with an index of its own, and every VM with all that it needs."""
    assert max(Counter((each.group, each.index) for each in instances).values(), default=1) == 1
    for each in instances:
        if each.vm is not None and each.plan is None and not each.leaving:
            assert {held.network for held in each.wanted} == {said["name"] for said in each.networks}
            assert {held.carrier for held in each.wanted} == {each.vm}
            assert each.parting == ()


async def test_nothing_is_lost_doubled_or_left_behind(town: Town, place: str) -> None:
    door = Deployments(town.ledger)
    await town.upload(CONFIGS[0])

    assert await asyncio.to_thread(in_processes, place) == [0] * PROCESSES

    for name in ("alpha", "beta"):
        check(await town.instances(name))
    owners = {each.owner for name in ("alpha", "beta") for each in await town.instances(name)}
    assert {held.owner for network in ("lab", "pub") for held in await town.ledger.holdings(network)} <= owners
    for _ in ("the VM it has", "the one that was being made"):
        for deployment, _ in await door.every():
            for each in await door.delete(deployment.name):
                await door.lose(deployment.name, each.name)
    assert [await town.ledger.holdings(network) for network in ("lab", "pub")] == [[], []]
    assert await town.ledger.papers("deployments.instance") == []
