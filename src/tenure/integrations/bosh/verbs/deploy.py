"""Plan and apply: from a manifest to reservations. One reading of the books, one ``apply``; again if need be."""

import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.cloud_config.configs import Configs, expected, load_configs
from tenure.integrations.bosh.cloud_config.ledger_networks import SPACE
from tenure.integrations.bosh.cloud_config.managed_networks import Cloud, managed_networks, prepare
from tenure.integrations.bosh.cloud_config.site_survey import load_orphans
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import MANUAL, CloudConfig, Manifest
from tenure.integrations.bosh.model.pool_ranges import has_pool
from tenure.integrations.bosh.model.retry import Again, Turn, until_done
from tenure.integrations.bosh.planning.hand_over import Offers, offers_of, promised, promised_instead
from tenure.integrations.bosh.planning.pending_vm_settings import remembered_begun, settings_begun
from tenure.integrations.bosh.planning.step_operations import Work, work_for
from tenure.integrations.bosh.planning.steps import Order, Step, draft
from tenure.integrations.bosh.planning.translate_errors import explained, first_without_room, no_room
from tenure.integrations.bosh.planning.unchanged_plan import noted, unless_same
from tenure.integrations.bosh.planning.vip_choice import Chosen, Overtaken, choose_vips, was_picked
from tenure.integrations.bosh.rollback.previous_state import following, revocable
from tenure.integrations.bosh.running_vms.first_cloud_config import Arrival, arrive
from tenure.integrations.bosh.running_vms.match_vm_state import Hearing
from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.integrations.bosh.state.compile_workers import Compiling, load_compiling
from tenure.integrations.bosh.state.instance_state import (
    ORPHANED,
    SNAPSHOT,
    Deployment,
    load_deployment,
    load_instances,
)
from tenure.integrations.bosh.state.managed_records import uses
from tenure.integrations.bosh.state.vm_holder import retold
from tenure.integrations.bosh.verbs.deploy_without_cloud_config import alone, reserve, told, written
from tenure.kernel.errors import AddressInUse, AddressReserved, NotFound, PoolExhausted
from tenure.kernel.holdings.holding_model import Holding
from tenure.service.apply.operations import Operation, Shown
from tenure.service.ledger.async_ledger import AsyncLedger

Act = Callable[[Sequence[Operation]], Awaitable[list[Shown]]]


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a plan does, or did: its steps, and the addresses that were reserved for them (by uuid and network)."""

    plan: str
    deployment: str
    config: CloudConfig
    steps: Sequence[Step]
    granted: Mapping[tuple[str, str], Holding]
    ends: Compiling | None = None
    """The compile that the plan ends: one that broke off, or that somebody still waits for."""
    holds: bool = True
    """False without a cloud config: what was found for who has no VM is not held for it."""

    @property
    def changes(self) -> bool:
        """Tell whether there is anything to do: also that VMs are called off, or who is stopped moves."""
        if self.holds and any(step.moves for step in self.steps):
            return True
        return any(step.after is None or step.after.plan == self.plan or step.calls_off for step in self.steps)


async def deploy(
    ledger: AsyncLedger,
    document: str,
    text: str,
    *,
    recreate: bool = False,
    hand_over: bool = False,
    dry: bool = False,
    vm_state: Mapping[str, VmState] | None = None,
    fix: bool = False,
    space: str = SPACE,
    cloud: Cloud | None = None,
) -> Deployed:
    """Reserve all that a manifest wants, or (``dry``) tell what would be reserved and change nothing.

    With ``hand_over`` an instance may wait for what another one gives up: see the module ``hand_over``. ``vm_state`` is
    what running VMs say. Without a cloud config (see ``deploy_without_cloud_config``), and at the first deploy with
    one, they must be asked; a VM that did not answer is a refusal, or with ``fix`` made anew. ``cloud`` makes managed
    networks that are missing.
    Cost: a look for every instance, a reservation for each that is new. Where nothing is to do nothing is written, and
    the plan that is known is told again.
    """
    order = Order(secrets.token_hex(8), recreate=recreate, hand_over=hand_over)
    hearing = Hearing(vm_state, fix, space)
    act = ledger.rehearse if dry else ledger.apply

    async def attempt(turn: Turn) -> Deployed:
        nonlocal order
        # In every attempt: the next one may read another cloud config, with other managed networks.
        if cloud is not None and not dry:
            await prepare(ledger, cloud, document, text, space=space)
        configs = await load_configs(ledger)
        try:
            with turn:
                if configs is None:
                    return await _attempt_alone(ledger, document, text, order, act, hearing)
                return await _attempt(ledger, configs, document, text, order, act, hearing)
        except Overtaken as late:
            if turn.last:
                raise await explained(ledger, late.error, late.work, late.config) from late
            order = replace(order, passed_over=order.passed_over | {late.position})
            raise Again(late) from late

    return await until_done(attempt, unless=lambda error: isinstance(error, AddressInUse | AddressReserved))


async def _attempt_alone(
    ledger: AsyncLedger, document: str, text: str, order: Order, act: Act, hearing: Hearing
) -> Deployed:
    """Deploy without any cloud config, in a world that only this deployment has."""
    if order.hand_over:
        raise Refused(BoshErrorKind.GENERIC, "Addresses are handed over only where there is a cloud config")
    async with alone(ledger, document, text, hearing) as world:
        order = replace(order, begun=remembered_begun(world.papers))
        steps = draft(world.manifest, world.config, world.instances, order, lambda: str(uuid.uuid4()))
        vips = await choose_vips(world.ledger, world.config, steps, Offers(world.config))
        check_pools(world.config, steps)
        work = replace(work_for(steps, order.plan, vips), last=())  # papers are not its world's
        answers = await reserve(world, work)
        steps = await told(world, steps)
        after, papers = await written(ledger, world, text, order.plan, steps)
        await act(papers)
        plan, granted = after.plan or order.plan, granted_by(work, answers)
        return Deployed(plan, world.manifest.name, world.config, steps, granted, holds=False)


async def _attempt(
    ledger: AsyncLedger, configs: Configs, document: str, text: str, order: Order, act: Act, hearing: Hearing
) -> Deployed:
    # What there is: the documents, the papers, and what VMs report.
    manifest = read_manifest(document, text, configs.config)
    before = await load_deployment(ledger, manifest.name)
    arrival = await arrive(ledger, configs.config, before, await load_instances(ledger, manifest.name), hearing)
    begun = await settings_begun(ledger, before, arrival.papers, configs)
    order = replace(order, fixed=arrival.silent, begun=begun)
    # What is wanted: a step for each instance, and the addresses that are chosen or promised here.
    steps = draft(manifest, configs.config, arrival.instances, order, lambda: str(uuid.uuid4()))
    offers = await _offers(ledger, manifest.name, configs.config, steps) if order.hand_over else Offers(configs.config)
    vips = await choose_vips(ledger, configs.config, steps, offers, passed_over=order.passed_over)
    steps = promised(steps, offers, vips)
    check_pools(configs.config, steps)
    # What the deployment becomes, and what abort goes back to.
    after = following(before, Deployment(manifest.name, text, configs.snapshot, order.plan), steps)
    after = unless_same(before, after, steps)
    plan = after.plan or order.plan  # where nothing changes, nothing is this plan's
    steps = revocable(before, after, plan, steps)
    # What the decisions above rest on: the apply compares it again.
    rests = [*await _ground(ledger, configs), noted(before, after), *await _around(ledger, configs, manifest, arrival)]
    compiling = await load_compiling(ledger, manifest.name)
    serving = _Serving(ledger, act, configs.config, arrival, offers, vips, rests, compiling)
    return await serving.serve(manifest.name, plan, steps)


@dataclass(frozen=True, slots=True)
class _Serving:
    """All that a plan's reservations are made with: what they rest on, and the compile that ends with them."""

    ledger: AsyncLedger
    act: Act
    config: CloudConfig
    arrival: Arrival
    offers: Offers
    vips: Chosen
    rests: Sequence[Operation]
    ends: Compiling | None

    async def serve(self, deployment: str, plan: str, steps: Sequence[Step]) -> Deployed:
        """Reserve what steps want. For whom there is no room, what others give up is promised instead, if it fits."""
        # These come last in the apply: machines of a broken-off compile may still run on what it frees.
        left = [] if self.ends is None else self.ends.broken_off()
        # Each round promises at least one address more, so the loop ends.
        while True:
            work = self.arrival.settled(work_for(self.arrival.compared(steps), plan, self.vips))
            try:
                answers = await self.act([*self.rests, *work.operations, *left])
            except PoolExhausted as error:
                first = await first_without_room(self.ledger, work) if self.offers.left else None
                others = None if first is None else promised_instead(steps, self.offers, work.takes, first)
                if others is None:
                    raise await explained(self.ledger, error, work, self.config) from error
                steps = others
            except (AddressInUse, AddressReserved) as error:
                if was_picked(error, self.vips):
                    raise Overtaken(error, work, self.config) from error
                raise await explained(self.ledger, error, work, self.config) from error
            else:
                # The expectations before the work, and the end of a compile behind it, answer as well.
                granted = granted_by(work, answers[len(self.rests) : len(answers) - len(left)])
                return Deployed(plan, deployment, self.config, steps, granted, self.ends)


async def _around(ledger: AsyncLedger, configs: Configs, manifest: Manifest, arrival: Arrival) -> list[Operation]:
    """Return what a deploy writes down beside its instances: which managed networks it uses, which VMs speak for it."""
    held = {has.network for each in arrival.instances for has in each.has}
    used = await uses(ledger, manifest.name, managed_networks(manifest, configs.config), held)
    return [*used, *await retold(ledger, arrival.papers, arrival.instances)]


async def _offers(ledger: AsyncLedger, deployment: str, config: CloudConfig, steps: Sequence[Step]) -> Offers:
    orphans = [each for each in await load_orphans(ledger) if each.deployment == deployment]
    return offers_of(steps, orphans, config)


async def _ground(ledger: AsyncLedger, configs: Configs) -> list[Operation]:
    """Return what a deploy rests on: the configs as they were read, which are kept."""
    try:
        # A snapshot is named by what it says, so it is written once and only expected after that.
        known = await ledger.paper(SNAPSHOT, configs.snapshot)
    except NotFound:
        return [*configs.expected(), configs.kept()]
    return [*configs.expected(), expected(known)]


def granted_by(work: Work, answers: Sequence[Shown]) -> dict[tuple[str, str], Holding]:
    """Return what was reserved, or handed over at once, by uuid and network."""
    found = answers[len(work.first) : len(answers) - len(work.last)]
    # The notes on what orphaned VMs have are among the answers, and are no grants.
    held = [answer for answer in found if isinstance(answer, Holding) and answer.owner.kind != ORPHANED]
    return {(each.owner.id, each.network): each for each in held}


def check_pools(config: CloudConfig, steps: Sequence[Step]) -> None:
    """Refuse what no subnet of its AZ could ever serve: the ledger has no pool to ask there."""
    for step in steps:
        for wish in step.bound.new:
            network = config.networks[wish.network]
            if wish.address is not None or network.kind != MANUAL:
                continue
            if not has_pool(network, step.instance.az):
                raise no_room(step.instance.long_name, network, step.instance.az)
