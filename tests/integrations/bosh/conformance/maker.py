"""Somebody who makes VMs, slowly, and forgets none that he was told to make: what they come up on must be theirs."""

import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tenure.integrations.bosh.cloud_config.configs import load_networks
from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.model.document_model import DETACHED
from tenure.integrations.bosh.planning.explain_instance import A_VM, waits_for
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, load_deployment
from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.integrations.bosh.verbs import cloud_check, errands, report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tenure.kernel.errors import Conflict, NotFound
from tests.integrations.bosh.conformance.town import Document, Town, app, config, manifest

NAME = "alpha"
SUBNETS: dict[str, Document] = {
    name: {
        "range": f"10.0.{number}.0/28",
        "gateway": f"10.0.{number}.1",
        "static": [f"10.0.{number}.8-10.0.{number}.10"],
    }
    for number, name in enumerate("abc")
}
STATIC = ("10.0.0.8", "10.0.0.9", "10.0.0.10")
GROUPS = ("one", "two")
GATEWAYS = (".1", ".14")
FORGOTTEN = ""
"""The settings of a VM that was forgotten, and may be there: whoever tells of one in its place tells of it, too."""


def three(a: Document, b: Document, c: Document) -> str:
    """Write the networks ``a``, ``b`` and ``c``."""
    more = [{"name": name, "type": "manual", "subnets": [subnet]} for name, subnet in (("b", b), ("c", c))]
    return config(a, name="a", more=more)


@dataclass(frozen=True)
class Job:
    """A VM in the making: for whom, for which plan (None where there is none), and on which addresses."""

    uuid: str
    plan: str | None
    addresses: frozenset[str]
    settings: str

    def is_as(self, other: "Job") -> bool:
        """Tell whether it is another by another name: who has no plan tells of all that have none, and the same."""
        if (self.uuid, self.addresses) != (other.uuid, other.addresses):
            return False
        return other.settings in (self.settings, FORGOTTEN) or self.plan is other.plan is None


@dataclass
class Maker:
    """The VMs that are there, by instance, with their addresses; those that were swapped; and those in the making."""

    town: Town
    chance: random.Random
    vms: dict[str, frozenset[str]] = field(default_factory=dict)
    orphans: dict[str, frozenset[str]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    async def act(self) -> None:
        """Let anything happen that may happen; what is refused in words changes nothing."""
        known = await self.town.instances(NAME)
        acts: list[tuple[float, Callable[[], Awaitable[None]]]] = [
            (3, self.deploy), (1, self.upload), (2, self.abort), (0.3, self.delete), (1, self.recreate),
            (0.5, self.run_errand), (0.4, self.end_errand), (0.5, self.clean_up),
        ]  # fmt: skip
        if known:
            one = self.chance.choice(known)
            busy = {job.uuid for job in self.jobs}
            made = self.chance.choice([each for each in known if each.uuid in busy] or known)
            acts += [
                (5, lambda: self.commit(made)), (1.5, lambda: self.fail(made)), (1, lambda: self.lose(one)),
                (0.7, lambda: self.stop(one)), (0.7, lambda: self.start(one)), (0.5, lambda: self.check_cloud(one)),
                (0.2, lambda: self.forget(one)), (0.5, lambda: self.ignore(one)), (0.7, lambda: self.commit_again(one)),
            ]  # fmt: skip
        weights, chosen = [weight for weight, _ in acts], [act for _, act in acts]
        [act] = self.chance.choices(chosen, weights)
        with contextlib.suppress(Refused, Conflict, NotFound):
            await act()
        await self.begin()
        await self.check()

    def tell(self, text: str) -> None:
        """Note what was done: a failure shows the way to it."""
        self.story.append(text)

    async def begin(self) -> None:
        """Begin to make every VM that somebody waits for; one with the same settings is the same."""
        deployment = await load_deployment(self.town.ledger, NAME)
        for each in await self.town.instances(NAME):
            if deployment is None or waits_for(each) != A_VM or each.failed:
                continue
            try:
                settings = str(settings_of(each, await load_networks(self.town.ledger, deployment.as_of(each))))
            except Refused:  # it is on a network where it has nothing: the next deploy gives it an address
                continue
            addresses = frozenset(held.address for held in each.wanted)
            job = Job(each.uuid, each.making.plan, addresses, settings)
            self.jobs = [one for one in self.jobs if not job.is_as(one)] + [job]

    async def check(self) -> None:
        """Make sure that what VMs have, or may come up on, is their instances' own."""
        held = {each.address: each.owner.id for name in SUBNETS for each in await self.town.ledger.holdings(name)}
        there = [(who, ip) for who, addresses in (self.vms | self.orphans).items() for ip in addresses]
        made = [(job.uuid, ip) for job in self.jobs for ip in job.addresses]
        others = [(uuid, ip, held.get(ip)) for uuid, ip in (*there, *made) if held.get(ip) != uuid]
        assert not others, (others, self.jobs, self.story)

    def end(self, uuid: str, *, plan: str | None = None, every: bool = False) -> None:
        """Make VMs no more: of a plan, or every one of an instance."""
        self.jobs = [job for job in self.jobs if job.uuid != uuid or not (every or job.plan == plan)]

    async def upload(self) -> None:
        """Change the cloud config: other gateways, or addresses that are picked no more."""
        subnets = []
        for number, subnet in enumerate(SUBNETS.values()):
            reserved = [f"10.0.{number}.{self.chance.randint(2, 5)}"] if self.chance.random() < 0.4 else []
            gateway = f"10.0.{number}{self.chance.choice(GATEWAYS)}"
            subnets.append({**subnet, "gateway": gateway, "reserved": reserved})
        self.tell(f"upload {[(each['gateway'], each['reserved']) for each in subnets]}")
        await self.town.upload(three(*subnets))

    async def deploy(self) -> None:
        """Deploy some instances, on some networks."""
        chosen = sorted(self.chance.sample(sorted(SUBNETS), self.chance.choice([1, 1, 2])))
        on = [{"name": chosen[0], "default": ["dns", "gateway"]}, *({"name": name} for name in chosen[1:])]
        lifecycle = {"lifecycle": "errand"} if self.chance.random() < 0.2 else {}
        count, again = self.chance.choice([0, 1, 1, 2]), self.chance.random() < 0.2
        hand_over = self.chance.random() < 0.3
        swapped = {"vm_strategy": "create-swap-delete"} if self.chance.random() < 0.25 else {}
        self.tell(f"deploy {count} on {chosen} {lifecycle} {swapped} recreate={again} hand_over={hand_over}")
        text = manifest(NAME, app(count, networks=on, update=swapped, **lifecycle), *self.others())
        deployed = await self.town.deploy(text, recreate=again, hand_over=hand_over)
        self.tell(f"  = {deployed.plan}")
        if deployed.plan not in self.plans:
            self.plans.append(deployed.plan)

    def others(self) -> list[Document]:
        """Write groups that ask for addresses by name, each for another: they may have to wait for each other."""
        named = self.chance.sample(STATIC, len(GROUPS))
        chosen = [(name, ip) for name, ip in zip(GROUPS, named, strict=True) if self.chance.random() < 0.5]
        self.tell(f"  and {chosen}")
        return [app(name=name, network="a", static_ips=[ip]) for name, ip in chosen]

    async def abort(self) -> None:
        """Take a deploy back: nothing is made for it any more, or for those that it took over."""
        if not self.plans:
            return
        plan = self.plans[-1] if self.chance.random() < 0.7 else self.chance.choice(self.plans)
        self.tell(f"abort {plan}")
        taken_over = self.plans if plan == self.plans[-1] else [plan]
        known = await self.town.instances(NAME)
        waiting = {each.uuid for each in known if each.plan == plan or each.rests}
        await report_vm.abort(self.town.ledger, NAME, plan)
        self.jobs = [
            job for job in self.jobs if job.plan != plan and not (job.uuid in waiting and job.plan in taken_over)
        ]
        self.plans.remove(plan)

    async def clean_up(self) -> None:
        """Delete the VMs that were swapped."""
        for vm in list(self.orphans):
            self.tell(f"clean up {vm}")
            await report_vm.clean_up_orphan(self.town.ledger, vm)
            del self.orphans[vm]

    async def delete(self) -> None:
        """Delete the deployment."""
        self.tell("delete")
        await report_vm.delete(self.town.ledger, NAME)
        self.plans.clear()

    async def recreate(self) -> None:
        """Let all VMs be made anew."""
        self.tell("recreate")
        self.tell(f"  = {(await recreate(self.town.ledger, NAME)).plan}")

    async def run_errand(self) -> None:
        """Run the group, if it is an errand."""
        self.tell("run-errand")
        await errands.run(self.town.ledger, NAME, "app")

    async def end_errand(self) -> None:
        """Delete all VMs of the errand, and make no more."""
        self.tell("end errand")
        own = [each.uuid for each in await self.town.instances(NAME) if each.errand]
        await errands.end(self.town.ledger, NAME, "app")
        for uuid in own:
            self.vms.pop(uuid, None)
            self.end(uuid, every=True)

    async def commit(self, one: DeploymentInstance) -> None:
        """Report a VM that is up: whatever else was made for its instance is made no more."""
        mine = [job for job in self.jobs if job.uuid == one.uuid and job.settings != FORGOTTEN]
        if not mine:
            return
        job = mine[-1] if self.chance.random() < 0.7 else self.chance.choice(mine)
        plan = job.plan if one.earlier or self.chance.random() < 0.7 else None
        self.tell(f"commit {one.name} {job.addresses} plan={plan}")
        vm = f"vm-{next(self.town.numbers)}"
        made = await report_vm.commit(self.town.ledger, NAME, one.name, vm=vm, plan=plan)
        self.tell("  ok")
        carried = frozenset(held.address for held in made.holdings if held.carrier == vm)
        assert carried == job.addresses, (carried, job, self.story)
        if one.swaps and one.vm is not None:
            self.orphans[one.vm] = self.vms[one.uuid]
        self.vms[one.uuid] = carried
        self.end(one.uuid, every=True)

    async def commit_again(self, one: DeploymentInstance) -> None:
        """Report once more the VM that is there: it is no news, and nothing is freed by it."""
        if one.vm is not None:
            self.tell(f"commit again {one.name} {one.vm}")
            await report_vm.commit(self.town.ledger, NAME, one.name, vm=one.vm)

    async def ignore(self, one: DeploymentInstance) -> None:
        """Leave an instance alone, or take it in again."""
        self.tell(f"ignore {one.name} {not one.ignored}")
        await report_vm.ignore(self.town.ledger, NAME, one.name, ignored=not one.ignored)

    async def fail(self, one: DeploymentInstance) -> None:
        """Report that a VM could not be made."""
        mine = [job for job in self.jobs if job.uuid == one.uuid and job.settings != FORGOTTEN]
        if not mine:
            return
        job = self.chance.choice(mine)
        self.tell(f"fail {one.name} {job.addresses} plan={job.plan}")
        await report_vm.fail(self.town.ledger, NAME, one.name, plan=job.plan)
        self.tell("  ok")
        assert job.plan is not None or len(mine) == 1, (job, mine, self.story)
        self.end(one.uuid, plan=job.plan)

    async def lose(self, one: DeploymentInstance) -> None:
        """Report a VM that is gone."""
        self.tell(f"lose {one.name} {one.vm}")
        await report_vm.lose(self.town.ledger, NAME, one.name, vm=one.vm)
        self.gone(one)

    def gone(self, one: DeploymentInstance) -> None:
        """Let a VM be gone; of one that leaves without any, nothing is made any more."""
        self.vms.pop(one.uuid, None)
        if one.leaving and one.vm is None:
            self.end(one.uuid, every=True)

    async def stop(self, one: DeploymentInstance) -> None:
        """Stop an instance hard."""
        self.tell(f"stop {one.name} {one.vm}")
        await report_vm.stop(self.town.ledger, NAME, one.name, hard=True, vm=one.vm)
        self.gone(one)

    async def start(self, one: DeploymentInstance) -> None:
        """Start an instance again."""
        if one.state == DETACHED:
            self.tell(f"start {one.name}")
            await report_vm.start(self.town.ledger, NAME, one.name)

    async def check_cloud(self, one: DeploymentInstance) -> None:
        """Let a VM be made in place of one that is lost."""
        if one.vm is not None:
            self.tell(f"cck {one.name} {one.vm}")
            await cloud_check.recreate(self.town.ledger, NAME, one.name, vm=one.vm)
            self.vms.pop(one.uuid, None)

    async def forget(self, one: DeploymentInstance) -> None:
        """Forget a VM that may still be there."""
        if one.vm is not None:
            self.tell(f"forget {one.name} {one.vm}")
            await cloud_check.delete_reference(self.town.ledger, NAME, one.name, vm=one.vm)
            self.jobs.append(Job(one.uuid, None, self.vms.pop(one.uuid, frozenset()), FORGOTTEN))

    async def go_home(self) -> None:
        """Delete everything: whatever became of VMs, it is told."""
        self.tell("go home")
        await self.clean_up()
        for each in await self.town.instances(NAME):
            if each.ignored:
                await report_vm.ignore(self.town.ledger, NAME, each.name, ignored=False)
        with contextlib.suppress(NotFound):
            await report_vm.delete(self.town.ledger, NAME)
        for _ in range(2):  # the VM that is there, then those that were perhaps being made
            for each in await self.town.instances(NAME):
                await report_vm.lose(self.town.ledger, NAME, each.name)
        with contextlib.suppress(NotFound):
            await report_vm.delete(self.town.ledger, NAME)


async def live(town: Town, seed: int, acts: int) -> None:
    """Let a maker do so much in a town, and go home: nothing is left then."""
    await town.upload(three(*SUBNETS.values()))
    maker = Maker(town, random.Random(seed))
    for _ in range(acts):
        await maker.act()
    await maker.go_home()
    assert await town.instances(NAME) == [], maker.story
    assert await load_deployment(town.ledger, NAME) is None, maker.story
    assert [each for name in SUBNETS for each in await town.ledger.holdings(name)] == [], maker.story
