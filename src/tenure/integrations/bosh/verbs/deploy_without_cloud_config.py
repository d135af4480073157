"""The in-memory mode: a site without any cloud config. A deployment brings its own networks, and shares them with none.

A deploy builds its world from scratch, as a ledger in memory: the manifest's networks, and in them what running VMs say
that they carry. There it is drafted and reserved as everywhere. The ledger itself keeps the deployment and its
instances, but no address: VMs know those, and an instance remembers only what its next VM is meant to be made with.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tenure.integrations.bosh.cloud_config.ledger_networks import SPACE, blocks_of, lay
from tenure.integrations.bosh.cloud_config.legacy_deployments import load_mode, unturned
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.address_diff import subnet_of
from tenure.integrations.bosh.model.document_model import (
    DELETE_CREATE,
    DETACHED,
    DYNAMIC,
    CloudConfig,
    CloudNetwork,
    Manifest,
)
from tenure.integrations.bosh.model.pool_ranges import dynamic_ranges
from tenure.integrations.bosh.planning.step_operations import Work, papers_for
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.planning.translate_errors import explained
from tenure.integrations.bosh.planning.unchanged_plan import noted, unless_same
from tenure.integrations.bosh.rollback.previous_state import following, revocable
from tenure.integrations.bosh.running_vms.match_vm_state import Hearing
from tenure.integrations.bosh.running_vms.possible_addresses import PossibleAddress
from tenure.integrations.bosh.running_vms.reserve_running import heard, operations_for, refused, with_holdings
from tenure.integrations.bosh.state.instance_state import (
    REALM,
    Deployment,
    DeploymentInstance,
    load_deployment,
    load_instances,
)
from tenure.integrations.bosh.state.vm_holder import retold
from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.kernel.addressing.addresses import format_address, parse_address, width
from tenure.kernel.addressing.ranges import AddressRange, Cidr
from tenure.kernel.errors import AddressInUse, AddressReserved, PoolExhausted
from tenure.kernel.holdings.holding_model import Holding
from tenure.service.apply.operations import Allocate, Operation, Release, Shown
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wiring import open_async

MOST_RECENT = 1024
"""So many addresses that a deployment gave up are remembered."""


@dataclass(frozen=True, slots=True)
class World:
    """A deployment in the in-memory mode, with a ledger of its own: it is built for one deploy, and then forgotten.

    ``papers`` are the instances as they are written down, ``instances`` the same with what their VMs carry.
    """

    ledger: AsyncLedger
    manifest: Manifest
    config: CloudConfig
    known: Deployment | None
    papers: Sequence[DeploymentInstance]
    instances: Sequence[DeploymentInstance]
    recent: list[Holding]
    """What the deployment gave up and nobody has now, the earliest first; kept back until nothing else is left."""


@asynccontextmanager
async def alone(ledger: AsyncLedger, document: str, text: str, hearing: Hearing) -> AsyncIterator[World]:
    """Build the world of a manifest that brings its own networks, from what VMs say."""
    manifest = _replacing(read_manifest(document, text, None))
    config = manifest.own
    assert config is not None
    known = await load_deployment(ledger, manifest.name)
    papers = await load_instances(ledger, manifest.name)
    instances, founds, _ = heard(papers, config, hearing, keep_silent=False)
    laid = {name: None for name, network in config.networks.items() if network.kind != DYNAMIC}
    async with await open_async("memory:") as own:
        try:
            answers = await own.apply([*_ground(config, instances), *operations_for(founds, laid, SPACE)])
        except AddressInUse as error:
            raise await refused(own, error, founds) from error
        recent = await _kept_back(own, config, () if known is None else known.recent, founds)
        yield World(own, manifest, config, known, papers, with_holdings(instances, answers), recent)


def _replacing(manifest: Manifest) -> Manifest:
    """Let every VM be deleted before the next is made: nobody would know what a VM beside it still has."""
    return replace(manifest, groups=tuple(replace(group, vm_strategy=DELETE_CREATE) for group in manifest.groups))


def _ground(config: CloudConfig, instances: Iterable[DeploymentInstance]) -> list[Operation]:
    """Return the operations that lay a manifest's networks, and write instances down so that refusals can name them."""
    laid: list[Operation] = [replace(each, revision=0).written() for each in instances]
    for name, network in config.networks.items():
        if network.kind != DYNAMIC:
            laid += lay(name, network.kind, blocks_of(network), None, SPACE)
    return laid


async def _kept_back(
    own: AsyncLedger, config: CloudConfig, recent: Sequence[str], founds: Sequence[PossibleAddress]
) -> list[Holding]:
    """Keep back what was given up lately and could be picked again."""
    taken = [found.block.range for found in founds]
    takes: list[Operation] = []
    for address in recent:
        home = _picked_from(config, parse_address(address))
        if home is not None and not any(home[1].overlaps(each) for each in taken):
            taken.append(home[1])
            takes.append(Allocate(network=home[0], owner=f"{REALM}:recent/{address}", address=address))
    return [answer for answer in await own.apply(takes) if isinstance(answer, Holding)]


def _picked_from(config: CloudConfig, position: int) -> tuple[str, AddressRange] | None:
    """Find the network that an address can be picked from, and all that goes with it."""
    for network in config.networks.values():
        subnet = subnet_of(network, position, None)
        if subnet is None or position % (1 << (width(position) - subnet.prefix)):
            continue
        unit = Cidr(position, subnet.prefix).range
        if any(each.covers(unit) for each in dynamic_ranges(subnet)):
            return network.name, unit
    return None


async def reserve(world: World, work: Work) -> list[Shown]:
    """Do a plan's work in its world, as far as addresses go; what was given up lately is given last."""
    # Recent addresses are kept back from picking, not from a group that lists them.
    await _let_go(world, [each for each in world.recent if _is_named(each, work, world.config)])
    try:
        return await world.ledger.apply(work.up_to(len(work.takes)))
    except PoolExhausted as error:
        if not world.recent:
            raise await explained(world.ledger, error, work, world.config) from error
    except (AddressInUse, AddressReserved) as error:
        raise await explained(world.ledger, error, work, world.config) from error
    # The refused apply changed nothing. Now one by one: a reservation may need a kept-back address set free first.
    first = await world.ledger.apply(work.first)
    return [*first, *[await _given(world, step, take) for step, take in work.takes]]


def _is_named(held: Holding, work: Work, config: CloudConfig) -> bool:
    """Tell whether somebody asks for an address, or for what it lies in, by name."""
    kept = AddressRange(held.row.first, held.row.last)
    for _, take in work.takes:
        if take.address is not None:
            position = parse_address(take.address)
            subnet = subnet_of(config.networks[take.network], position, None)
            prefix = width(position) if subnet is None else subnet.prefix
            if kept.overlaps(Cidr(position, prefix).range):
                return True
    return False


async def _given(world: World, step: Step, take: Allocate) -> Shown:
    """Give one address; where nothing else is left, the one that was given up first."""
    # Each round lets an address go that was kept back, so the loop ends.
    while True:
        try:
            [answer] = await world.ledger.apply([take])
            return answer
        except PoolExhausted as error:
            network = world.config.networks[take.network]
            left = next((each for each in world.recent if _serves(network, step.instance.az, each)), None)
            if left is None:
                raise await explained(world.ledger, error, Work([], [(step, take)], []), world.config) from error
            await _let_go(world, [left])


def _serves(network: CloudNetwork, az: str | None, held: Holding) -> bool:
    subnets = (subnet for subnet in network.subnets if subnet.serves(az))
    return any(held.row.first in each for subnet in subnets for each in dynamic_ranges(subnet))


async def _let_go(world: World, those: Sequence[Holding]) -> None:
    for each in those:
        world.recent.remove(each)
    await world.ledger.apply([Release(network=each.network, address=each.address, owner=each.owner) for each in those])


async def told(world: World, steps: Sequence[Step]) -> list[Step]:
    """Return steps whose instances remember the settings that the VMs they wait for are meant to be made with."""
    held: dict[str, list[Holding]] = {}
    for each in await world.ledger.holdings_of([step.instance.owner for step in steps]):
        held.setdefault(each.owner, []).append(each)
    return [replace(step, after=_meant(world, step.after, held.get(step.instance.owner, []))) for step in steps]


def _meant(world: World, after: DeploymentInstance | None, holdings: Sequence[Holding]) -> DeploymentInstance | None:
    if after is None or (after.plan is None and after.state != DETACHED):
        return after  # who is stopped hard is started on what this deploy reserved: others may have what it had
    wanted = replace(after, holdings=tuple(holdings)).wanted
    return replace(after, meant=settings_of(after, world.config, wanted))


async def written(
    ledger: AsyncLedger, world: World, text: str, plan: str, steps: Sequence[Step]
) -> tuple[Deployment, list[Operation]]:
    """Return what the ledger keeps of a deploy: that there is still no cloud config, the deployment, its instances."""
    after = Deployment(world.manifest.name, text, None, plan, recent=_recent(world, steps))
    after = unless_same(world.known, following(world.known, after, steps), steps)
    steps = revocable(world.known, after, plan, steps)
    papers = {each.uuid: each for each in world.papers}
    bare = [_bare(step, papers.get(step.instance.uuid)) for step in steps]
    mode = unturned(await load_mode(ledger), first=world.known is None)
    vms = await retold(ledger, world.papers, world.instances)
    return after, [mode, noted(world.known, after), *papers_for(bare, plan), *vms]


def _bare(step: Step, paper: DeploymentInstance | None) -> Step:
    """Return a step without what only its world knows: so an instance is written down if its paper is another."""
    if step.after is None:
        return replace(step, before=replace(step.instance, holdings=()))
    meant = paper.meant if paper is not None and paper.ignored else step.after.meant  # who is left alone means the same
    return replace(step, before=paper, after=replace(step.after, holdings=(), meant=meant))


def _recent(world: World, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return what the deployment gave up by this deploy or before, the latest last, and did not give again."""
    now = dict.fromkeys(format_address(each.position) for step in steps for each in step.bound.obsolete)
    return (*(each.address for each in world.recent if each.address not in now), *now)[-MOST_RECENT:]
