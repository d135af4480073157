"""Deployments without a cloud config, at a site where others have one: what lies in their networks is kept for them.

Only their VMs know which addresses they use. So as long as such a deployment is there, nobody is given anything out of
its networks, but for what its manifest reserved for others and what the cloud config lists as static. Its first deploy
with a cloud config makes it one like all others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.cloud_config.ledger_networks import Block, blocks_in, blocks_of
from tenure.integrations.bosh.cloud_config.remnants import shared
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.document_model import MANUAL, CloudConfig
from tenure.integrations.bosh.state.instance_state import DEPLOYMENT, Deployment, load_deployments
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.kernel.plan import plan_model as ledgers
from tenure.kernel.plan.edits import Edit, Unreserve
from tenure.service.apply.operations import ExpectPaper, Operation, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

MODE, SITE = "deployments.mode", "site"


@dataclass(frozen=True, slots=True)
class Legacy:
    """A deployment without a cloud config, and all that its networks may use."""

    name: str
    revision: int
    ranges: tuple[AddressRange, ...]

    def expected(self) -> Operation:
        """Return what rests on it: it is still the one that was read."""
        return ExpectPaper(kind=DEPLOYMENT, name=self.name, revision=self.revision)


def own_networks(deployment: Deployment) -> CloudConfig:
    """Read the networks that a deployment without a cloud config brought along."""
    own = read_manifest(deployment.name, deployment.manifest, None).own
    assert own is not None
    return own


async def load_legacy(ledger: AsyncLedger, *, but: str | None = None) -> list[Legacy]:
    """Read the deployments that have no cloud config, in order of name; ``but`` one. Costs a look at all of them."""
    found = [each for each in await load_deployments(ledger) if each.snapshot is None and each.name != but]
    return [legacy_of(each) for each in found]


def legacy_of(deployment: Deployment) -> Legacy:
    """Return a deployment without a cloud config with all that its networks may use."""
    return Legacy(deployment.name, deployment.revision, tuple(_usable(own_networks(deployment))))


def _usable(config: CloudConfig) -> list[AddressRange]:
    """Return what networks may use: all but what they reserve. Their gateways are kept, too."""
    manual = (network for network in config.networks.values() if network.kind == MANUAL)
    subnets = [subnet for network in manual for subnet in network.subnets]
    return merge(piece for each in subnets if each.range for piece in subtract(each.range.range, merge(each.reserved)))


def kept_back(blocks: Iterable[Block], legacies: Sequence[Legacy], config: CloudConfig) -> list[Block]:
    """Return blocks of the cloud config with what in them is kept for deployments without one.

    An address is kept for the first of them that may use it, so that every range has one reason.
    """
    static = merge(each for network in config.networks.values() for subnet in network.subnets for each in subnet.static)
    return [replace(block, legacy=tuple(_shares(block, legacies, static))) for block in blocks]


def _shares(block: Block, legacies: Sequence[Legacy], static: Sequence[AddressRange]) -> list[tuple[AddressRange, str]]:
    taken = merge([*block.restricted, *(each.range for each in block.by_hand), *static])
    found: list[tuple[AddressRange, str]] = []
    for legacy in legacies:
        common = (shared(block.cidr.range, each) for each in legacy.ranges)
        pieces = [piece for each in common if each is not None for piece in subtract(each, taken)]
        found += [(piece, legacy.name) for piece in pieces]
        taken = merge([*taken, *pieces])
    return sorted(found)


def relaid(networks: Mapping[str, ledgers.Network], legacies: Sequence[Legacy], config: CloudConfig) -> list[Edit]:
    """Return the edits after which networks of the ledger keep back for these deployments, and for no others."""
    edits: list[Edit] = []
    for name, network in networks.items():
        if name not in config.networks or config.networks[name].kind != MANUAL:
            continue
        # The ledger does not know what a config restricts, so its blocks get that from the config.
        restricted = tuple(each for block in blocks_of(config.networks[name]) for each in block.restricted)
        # Nothing is picked from a remnant, so nothing need be kept back there.
        present = [block for block in blocks_in(network) if not block.retired]
        blocks = [replace(block, restricted=restricted) for block in present]
        for had, has in zip(blocks, kept_back(blocks, legacies, config), strict=True):
            if had != has:
                edits += [Unreserve(network=name, range=each) for each, _ in had.legacy]
                edits += has.legacy_reserves(name)
    return edits


async def load_mode(ledger: AsyncLedger) -> Paper | None:
    """Read the paper that says whether there are cloud configs; None if there was never anything."""
    try:
        return await ledger.paper(MODE, SITE)
    except NotFound:
        return None


def turned(mode: Paper | None) -> Operation:
    """Return the operation by which a cloud config ends the in-memory mode, or says again that it is over.

    All who lay networks into the ledger write this paper, over what it was before they read anything: so two of them in
    the same moment notice each other, and so do they and whoever deploys a deployment for the first time.
    """
    return _mode(mode, shared=True)


def unturned(mode: Paper | None, *, first: bool) -> Operation:
    """Return the operation by which a deploy makes sure that there is no cloud config; ``first``: of its deployment."""
    if mode is not None and mode.document["shared"]:
        raise Conflict("a cloud config was uploaded in this moment; try again")
    return _mode(mode, shared=False) if first or mode is None else _expected(mode)


def _mode(mode: Paper | None, *, shared: bool) -> Operation:
    return WritePaper(kind=MODE, name=SITE, document={"shared": shared}, revision=mode.revision if mode else 0)


def _expected(mode: Paper) -> Operation:
    return ExpectPaper(kind=MODE, name=SITE, revision=mode.revision)
