"""Hand-overs in any order: whatever is planned, reported and taken back, a VM's address is its instance's alone.

So is the address of a VM that is being made, until somebody tells what became of it.
"""

import contextlib
import random
from dataclasses import dataclass, field

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.integrations.bosh.verbs import report_vm
from tenure.kernel.errors import Conflict, NotFound
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest

STATIC = [f"172.20.5.{tail}" for tail in (10, 11, 12, 13)]
GROUPS = ("a", "b", "c", "d")
STEPS = 40


@dataclass
class Cloud:
    """The VMs that are really there, with the addresses that they have; and those in the making, by plan (``jobs``)."""

    town: Town
    chance: random.Random
    vms: dict[str, str] = field(default_factory=dict)
    jobs: dict[tuple[str, str], str] = field(default_factory=dict)
    plan: str = ""

    def wanted(self) -> list[Document]:
        """Write some of the groups, each with an address of its own or any that is free."""
        addresses = self.chance.sample(STATIC, len(STATIC))
        chosen = self.chance.sample(GROUPS, self.chance.randint(1, len(GROUPS)))
        named = zip(sorted(chosen), addresses, strict=False)
        return [app(name=name, static_ips=[ip]) if self.chance.random() < 0.7 else app(name=name) for name, ip in named]

    async def deploy(self, groups: list[Document]) -> None:
        """Deploy, unless the pool has no room; nothing else may be in the way."""
        try:
            self.plan = (await self.town.deploy(manifest("alpha", *groups), hand_over=True)).plan
        except Refused as error:
            if error.kind is not BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY:
                raise

    def begin(self, instance: DeploymentInstance) -> None:
        """Begin to make a VM on what is wanted now."""
        [held] = instance.wanted
        self.jobs[instance.uuid, instance.plan or ""] = held.address

    async def commit(self, instance: DeploymentInstance, plan: str | None = None) -> None:
        """Report a VM that is made, perhaps for an earlier plan: with it all others in the making are given up."""
        vm, plan = f"vm-{next(self.town.numbers)}", plan or instance.plan
        made = await report_vm.commit(self.town.ledger, "alpha", instance.name, vm=vm, plan=plan)
        assert made.made_with is not None
        self.vms[made.uuid] = made.made_with["lab"]["ip"]
        assert self.jobs.get((made.uuid, plan or ""), self.vms[made.uuid]) == self.vms[made.uuid]
        self.give_up(made)

    async def fail(self, instance: DeploymentInstance, plan: str) -> None:
        """Report that a VM could not be made; of some earlier plans nobody wants to know."""
        self.jobs.pop((instance.uuid, plan), None)
        with contextlib.suppress(Conflict, NotFound):
            await report_vm.fail(self.town.ledger, "alpha", instance.name, plan=plan)

    def give_up(self, instance: DeploymentInstance) -> None:
        self.jobs = {job: ip for job, ip in self.jobs.items() if job[0] != instance.uuid}

    async def end(self, job: tuple[str, str], instances: list[DeploymentInstance]) -> None:
        """Bring a VM to its end that is being made: it is up, or could not be made, or is not wanted any more."""
        uuid, plan = job
        instance = next(each for each in instances if each.uuid == uuid)
        if self.chance.random() < 0.3:
            await self.fail(instance, plan)
            return
        try:
            await self.commit(instance, plan)
        except (Conflict, Refused):
            await self.fail(instance, plan)

    async def lose(self, instance: DeploymentInstance) -> None:
        """Report that the VM that an instance has is gone; without one, that what was being made is."""
        if self.vms.pop(instance.uuid, None) is None or not instance.leaving:
            self.give_up(instance)
        await report_vm.lose(self.town.ledger, "alpha", instance.name)

    async def act(self) -> None:
        """Let anything happen that may happen."""
        instances = await self.town.instances("alpha")
        ready = [each for each in instances if each.plan and not each.leaving and not each.waits]
        busy = {uuid for uuid, _ in self.jobs}
        known = [each for each in instances if each.uuid not in busy or (each.leaving and each.vm)]
        up = [each for each in known if each.vm or each.leaving]
        chosen = self.chance.random()
        if chosen < 0.2 and ready:
            await self.commit(self.chance.choice(ready))
        elif chosen < 0.35 and (untried := [each for each in ready if not each.failed]):
            self.begin(self.chance.choice(untried))
        elif chosen < 0.5 and self.jobs:
            await self.end(self.chance.choice(sorted(self.jobs)), instances)
        elif chosen < 0.7 and up:
            await self.lose(self.chance.choice(up))
        elif chosen < 0.8 and self.plan:
            self.jobs.clear()  # whoever takes a plan back has stopped what was going on
            await report_vm.abort(self.town.ledger, "alpha", self.plan)
        else:
            await self.deploy(self.wanted())

    async def check(self) -> None:
        """Make sure that every VM's address is held by its own instance, also where it is only being made."""
        held = {each.address: each.owner.id for each in await self.town.ledger.holdings("lab")}
        assert {uuid: held.get(ip) for uuid, ip in self.vms.items()} == {uuid: uuid for uuid in self.vms}
        assert {job: held.get(ip) for job, ip in self.jobs.items()} == {job: job[0] for job in self.jobs}

    async def settle(self, groups: list[Document]) -> None:
        """Deploy, delete all VMs that are to be replaced or being made, and make what is missing."""
        await self.deploy(groups)
        for each in await self.town.instances("alpha"):
            for plan in [made.plan for made in each.earlier if made.plan is not None]:
                await self.fail(each, plan)
        for each in await self.town.instances("alpha"):
            if each.leaving or each.plan:
                await self.lose(each)
        for each in await self.town.instances("alpha"):
            if each.leaving:
                await self.lose(each)
        for each in await self.town.instances("alpha"):
            if each.plan:
                await self.commit(each)


@pytest.mark.parametrize("seed", range(6))
async def test_a_live_vm_always_has_its_address_alone(town: Town, seed: int) -> None:
    await town.upload(config(lab(static=STATIC, reserved=["172.20.5.6-172.20.5.9"])))
    cloud = Cloud(town, random.Random(seed))
    for _ in range(STEPS):
        await cloud.act()
        await cloud.check()
    last = [app(name=name, static_ips=[ip]) for name, ip in zip(GROUPS, STATIC, strict=True)]
    await cloud.settle(last)
    await cloud.check()

    by_group = {name.partition("/")[0]: tail for name, tail in (await town.tails("alpha")).items()}
    assert by_group == {"a": ".10", "b": ".11", "c": ".12", "d": ".13"}
    assert len(await town.ledger.holdings("lab")) == 4
    assert [dict(each.labels) for each in await town.ledger.holdings("lab")] == [{}] * 4
