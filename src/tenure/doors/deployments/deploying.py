"""Plan and apply: from a manifest to reservations. One reading of the books, one ``apply``; again if need be."""

import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from tenure.doors.deployments.configuring import Configs, load_configs
from tenure.doors.deployments.documents.manifest import read_manifest
from tenure.doors.deployments.drafting import Order, Step, draft
from tenure.doors.deployments.drawing import dynamic_ranges
from tenure.doors.deployments.faults import Kind, Refused
from tenure.doors.deployments.model import MANUAL, VIP, CloudConfig
from tenure.doors.deployments.records import SNAPSHOT, Deployment, load_deployment, load_instances
from tenure.doors.deployments.refusing import explained
from tenure.doors.deployments.reserving import Work, work_for
from tenure.kernel.errors import AddressInUse, AddressReserved, Conflict, NotFound, PoolExhausted
from tenure.kernel.values import Holding
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import ExpectPaper, Operation, Shown

TRIES = 12

Act = Callable[[Sequence[Operation]], Awaitable[list[Shown]]]


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a plan does, or did: its steps, and the addresses that were reserved for them (by uuid and network)."""

    plan: str
    deployment: str
    config: CloudConfig
    steps: Sequence[Step]
    granted: Mapping[tuple[str, str], Holding]

    @property
    def changes(self) -> bool:
        """Tell whether there is anything to do."""
        return any(step.after is None or step.after.plan == self.plan for step in self.steps)


async def deploy(
    ledger: AsyncLedger, document: str, text: str, *, recreate: bool = False, dry: bool = False
) -> Deployed:
    """Reserve all that a manifest wants, or (``dry``) tell what would be reserved and change nothing.

    Cost: a look for every instance, a reservation for each that is new. Repeated, it changes nothing more.
    """
    order = Order(secrets.token_hex(8), recreate=recreate)
    act = ledger.rehearse if dry else ledger.apply
    for tries_left in reversed(range(TRIES)):
        configs = await load_configs(ledger)
        if configs is None:
            raise Refused(Kind.DEPLOYMENT_NO_NETWORKS, "No networks specified")
        try:
            return await _attempt(ledger, configs, document, text, order, act)
        except (AddressInUse, AddressReserved, PoolExhausted):
            raise
        except (Conflict, NotFound):
            if not tries_left:
                raise  # else: somebody deployed, uploaded or edited in this moment
    raise AssertionError("unreachable")


async def _attempt(ledger: AsyncLedger, configs: Configs, document: str, text: str, order: Order, act: Act) -> Deployed:
    manifest = read_manifest(document, text, configs.config)
    before = await load_deployment(ledger, manifest.name)
    instances = await load_instances(ledger, manifest.name)
    steps = draft(manifest, configs.config, instances, order, lambda: str(uuid.uuid4()))
    vips = await _vips(ledger, configs.config, steps)
    _check_pools(configs.config, steps)
    work = work_for(steps, order.plan, vips)
    ground = await _ground(ledger, configs, Deployment(manifest.name, text, configs.snapshot, order.plan), before)
    try:
        answers = await act([*ground, *work.operations])
    except (AddressInUse, AddressReserved, PoolExhausted) as error:
        raise await explained(ledger, error, work, configs.config) from error
    return Deployed(order.plan, manifest.name, configs.config, steps, _granted(work, answers[len(ground) :]))


async def _ground(
    ledger: AsyncLedger, configs: Configs, after: Deployment, before: Deployment | None
) -> list[Operation]:
    """Return what a deploy rests on: the configs as they were read, and that nobody else deploys the same."""
    rests: list[Operation] = [
        ExpectPaper(kind=paper.kind, name=paper.name, revision=paper.revision) for paper in configs.papers
    ]
    written = Deployment(after.name, after.manifest, after.snapshot, after.plan, before.revision if before else 0)
    try:
        known = await ledger.paper(SNAPSHOT, configs.snapshot)
    except NotFound:
        return [*rests, configs.kept(), written.written()]
    return [*rests, ExpectPaper(kind=SNAPSHOT, name=known.name, revision=known.revision), written.written()]


def _granted(work: Work, answers: Sequence[Shown]) -> dict[tuple[str, str], Holding]:
    found = answers[len(work.first) : len(work.first) + len(work.takes)]
    return {
        (step.instance.uuid, answer.network): answer
        for (step, _), answer in zip(work.takes, found, strict=True)
        if isinstance(answer, Holding)
    }


def _check_pools(config: CloudConfig, steps: Sequence[Step]) -> None:
    """Refuse what no subnet of its AZ could ever serve: the ledger has no pool to ask there."""
    for step in steps:
        for wish in step.bound.new:
            network = config.networks[wish.network]
            if wish.address is not None or network.kind != MANUAL:
                continue
            if not any(dynamic_ranges(subnet) for subnet in network.subnets if subnet.serves(step.instance.az)):
                raise Refused(
                    Kind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY,
                    f"Failed to reserve IP for '{step.instance.long_name}' for manual network '{network.name}': "
                    "no more available",
                )


async def _vips(ledger: AsyncLedger, config: CloudConfig, steps: Sequence[Step]) -> dict[tuple[str, str], int]:
    """Choose addresses from VIP pools: the first in the order written that nobody has, in a subnet of the AZ."""
    chosen: dict[tuple[str, str], int] = {}
    for name in {wish.network for step in steps for wish in step.bound.new if wish.address is None}:
        network = config.networks[name]
        if network.kind != VIP:
            continue
        taken = {each.row.first for each in await ledger.holdings(name)}
        for step in steps:
            if not any(wish.network == name for wish in step.bound.new):
                continue
            ranges = (each for subnet in network.subnets if subnet.serves(step.instance.az) for each in subnet.static)
            free = (place for each in ranges for place in range(each.first, each.last + 1) if place not in taken)
            found = next(free, None)
            if found is None:
                raise Refused(
                    Kind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY,
                    f"Failed to reserve IP for '{step.instance.long_name}' for vip network '{name}': no more available",
                )
            taken.add(found)
            chosen[step.instance.uuid, name] = found
    return chosen
