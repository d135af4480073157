"""Cloud configs: checked whole when they are uploaded, kept as papers, laid into the ledger in the same ``apply``."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tenure.integrations.bosh.cloud_config.ledger_networks import (
    SPACE,
    Block,
    blocks_in,
    blocks_of,
    is_ours,
    lay,
    removal,
    renamed,
)
from tenure.integrations.bosh.cloud_config.legacy_deployments import (
    MODE,
    Legacy,
    kept_back,
    load_legacy,
    load_mode,
    own_networks,
    turned,
)
from tenure.integrations.bosh.cloud_config.manual_settings import kept_by_hand, lost_by_hand
from tenure.integrations.bosh.cloud_config.remnants import Left, is_within, leave, uncovered
from tenure.integrations.bosh.documents.cloud_config import read_cloud_configs
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, Refused
from tenure.integrations.bosh.model.document_model import DYNAMIC, MANUAL, CloudConfig, CloudNetwork, CloudSubnet
from tenure.integrations.bosh.model.retry import Turn, until_done
from tenure.integrations.bosh.state.instance_state import CONFIG, SNAPSHOT, Deployment
from tenure.integrations.bosh.state.managed_records import complete
from tenure.kernel.addressing.ranges import AddressRange, Cidr, merge
from tenure.kernel.errors import AlreadyExists, NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.kernel.names import check_name
from tenure.kernel.plan.edits import Edit, ModifyNetwork
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import Expect, ExpectPaper, Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

PAPERS = (MODE, CONFIG)
"""The kinds of papers that an upload writes."""

EMPTY = "networks: [{name: none, type: dynamic}]"
"""A cloud config without any addresses; one without any network is none."""


def expected(paper: Paper) -> Operation:
    """Return the operation that makes sure that a paper is still as it was read."""
    return ExpectPaper(kind=paper.kind, name=paper.name, revision=paper.revision)


@dataclass(frozen=True, slots=True)
class Configs:
    """The cloud configs of a site as they were read: each with its revision, and all of them put together.

    ``written`` is what they say themselves, ``config`` the same with what the cloud chose for managed networks.
    """

    papers: Sequence[Paper]
    config: CloudConfig
    written: CloudConfig

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Return their names and texts."""
        return [(paper.name, paper.document["text"]) for paper in self.papers]

    @property
    def snapshot(self) -> str:
        """Name them as they are now: deployments remember what they were deployed with."""
        return hashlib.sha256(json.dumps(self.texts).encode()).hexdigest()[:32]

    def expected(self) -> list[Operation]:
        """Return the operations that make sure that they are still as they were read."""
        return [expected(paper) for paper in self.papers]

    def kept(self) -> WritePaper:
        """Return the operation that keeps them as they are now."""
        return WritePaper(kind=SNAPSHOT, name=self.snapshot, document={"configs": [list(each) for each in self.texts]})


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What came of an upload: warnings, and which networks changed."""

    warnings: Sequence[BoshFault]
    changed: Sequence[str]


# All callers share what is cached: the mappings in it must not be changed.
@lru_cache(8)
def _read(texts: tuple[tuple[str, str], ...]) -> CloudConfig:
    """Read cloud configs that were found right before; those in force are read again and again, and parsing is slow."""
    return read_cloud_configs(texts)[0]


async def load_configs(ledger: AsyncLedger) -> Configs | None:
    """Read the cloud configs that are in force; None if none was ever uploaded."""
    papers = await ledger.papers(CONFIG)
    if not papers:
        return None
    config = _read(tuple((paper.name, paper.document["text"]) for paper in papers))
    return Configs(papers, await complete(ledger, config), config)


async def load_snapshot(ledger: AsyncLedger, name: str) -> CloudConfig:
    """Read the cloud configs that a deployment was deployed with."""
    paper = await ledger.paper(SNAPSHOT, name)
    config = _read(tuple((each[0], each[1]) for each in paper.document["configs"]))
    return await complete(ledger, config)


async def load_networks(ledger: AsyncLedger, deployment: Deployment) -> CloudConfig:
    """Read the networks that a deployment was deployed with: of its cloud configs, or of its own manifest."""
    if deployment.snapshot is None:
        return own_networks(deployment)
    return await load_snapshot(ledger, deployment.snapshot)


async def upload(ledger: AsyncLedger, name: str, text: str, *, space: str = SPACE, dry: bool = False) -> Uploaded:
    """Put a cloud config in force: all of its faults are told at once, and nothing is changed then."""
    return await _put(ledger, name, text, space=space, dry=dry)


async def remove_config(ledger: AsyncLedger, name: str, *, space: str = SPACE, dry: bool = False) -> Uploaded:
    """Take a cloud config out of force; its networks go, but for what is held in them.

    The last one stays: a site that had a cloud config cannot go on without any.
    """
    return await _put(ledger, check_name(name, field="config"), None, space=space, dry=dry)


def texts_with(papers: Iterable[Paper], name: str, text: str | None) -> dict[str, str]:
    """Return the texts of all cloud configs, by name, once one of them is this, or (None) is no more."""
    others = {paper.name: paper.document["text"] for paper in papers if paper.name != name}
    return others if text is None else others | {name: text}


def _check_removable(name: str, papers: Iterable[Paper]) -> None:
    names = {paper.name for paper in papers}
    if name not in names:
        raise NotFound("cloud config", name, field="config")
    if len(names) == 1:
        told = f"Cloud config '{name}' is the last one, and a site cannot go on without any"
        raise Refused(BoshErrorKind.GENERIC, f"{told}. To empty it, upload one that has no addresses: {EMPTY}")


async def _put(ledger: AsyncLedger, name: str, text: str | None, *, space: str, dry: bool) -> Uploaded:
    """Put a cloud config in force, or (None) take it out, and lay the networks of all that are left."""

    async def attempt(turn: Turn) -> Uploaded:
        mode = await load_mode(ledger)  # before all else that is read: see ``turned``
        papers = {paper.name: paper for paper in await ledger.papers(CONFIG)}
        if text is None:
            _check_removable(name, papers.values())
        texts = texts_with(papers.values(), name, text)
        # In order of name, as they are read when they are in force.
        config, warnings = read_cloud_configs(sorted(texts.items()))
        before = papers.pop(name, None)
        write = _written(name, text, before.revision if before else 0)
        ground = await lay_out(ledger, await complete(ledger, config), space)
        rests = [turned(mode), *map(expected, papers.values())]
        with turn:
            await (ledger.rehearse if dry else ledger.apply)([*rests, write, *ground.operations])
            return Uploaded([*warnings, *ground.warnings], ground.changed)

    # AlreadyExists of a paper means that another upload was faster; of a network, that its name is taken for good.
    return await until_done(attempt, unless=lambda error: isinstance(error, AlreadyExists) and error.kind not in PAPERS)


def _written(name: str, text: str | None, revision: int) -> Operation:
    if text is None:
        return RemovePaper(kind=CONFIG, name=name, revision=revision)
    return WritePaper(kind=CONFIG, name=name, document={"text": text}, revision=revision)


@dataclass(frozen=True, slots=True)
class ConfigOperations:
    """The operations after which the ledger has the networks of a config, and what is worth a word about them."""

    operations: Sequence[Operation]
    changed: Sequence[str]
    warnings: Sequence[BoshFault]


async def lay_out(ledger: AsyncLedger, config: CloudConfig, space: str) -> ConfigOperations:
    """Lay the networks of a config over those that the ledger has now.

    Whoever does the operations writes the paper of ``legacy_deployments.turned`` with them, in the revision that it had
    before the config was read: else the networks could be newer than the config, and one that came meanwhile would go
    again.
    """
    legacies = await load_legacy(ledger)
    edits, expects, lost = await _edits(ledger, config, space, legacies)
    # The expectations stand before the edits: apply compares a serial as it is at that point.
    rests = [*expects, *(each.expected() for each in legacies)]
    return ConfigOperations([*rests, *edits], sorted({edit.network for edit in edits}), lost)


async def _edits(
    ledger: AsyncLedger, config: CloudConfig, space: str, legacies: Sequence[Legacy]
) -> tuple[list[Edit], list[Operation], list[BoshFault]]:
    """Return what must change in the ledger so that it has the config's networks, what that rests on, what is lost."""
    present = {each.name: each for each in await ledger.networks() if is_ours(each)}
    names = renamed(config, present)
    edits: list[Edit] = [ModifyNetwork(network=old, name=new) for old, new in names.items()]
    now = {names.get(name, name): network for name, network in present.items()}
    told: list[BoshFault] = []
    # Networks of the config are laid over what the ledger has under their name.
    for name, network in config.networks.items():
        if network.kind == DYNAMIC:
            continue
        found = now.get(name)
        left = await _left(ledger, found, blocks_of(network))
        wanted = kept_by_hand(left.wanted, found)
        if network.kind == MANUAL:
            wanted = kept_back(wanted, legacies, config)
        edits += lay(name, network.kind, [*wanted, *left.remnants], found, space)
        told += [*_in_the_way(network, left.strays), *lost_by_hand(name, found, [*wanted, *left.remnants])]
    # Networks that no config has any more go, but for remnants around what is held in them.
    for name, gone in now.items():
        if name not in config.networks or config.networks[name].kind == DYNAMIC:
            left = await _left(ledger, gone, [])
            edits += lay(gone.name, MANUAL, left.remnants, gone, space) if left.remnants else [removal(gone)]
            told += lost_by_hand(name, gone, left.remnants)
    touched = {edit.network for edit in edits}
    expects: list[Operation] = [
        Expect(network=each.name, serial=each.serial, uuid=each.uuid)
        for each in present.values()
        if each.name in touched or names.get(each.name) in touched
    ]
    return edits, expects, told


async def _left(ledger: AsyncLedger, network: Network | None, wanted: Sequence[Block]) -> Left:
    """Return what is left of a network as the ledger has it, beside what is wanted."""
    present = [] if network is None else blocks_in(network)
    pieces = uncovered(wanted, present)
    # Where everything is covered, the holdings of the network need not be read.
    if network is None or not pieces:
        return Left(wanted)
    held = [Cidr(each.row.first, each.unit) for each in await ledger.holdings(network.name)]
    left = leave(wanted, present, [each for each in held if is_within(each.first, pieces)])
    return replace(left, remnants=kept_by_hand(left.remnants, network))


def _in_the_way(network: CloudNetwork, strays: Sequence[Cidr]) -> list[BoshFault]:
    """Warn of what a network's subnets must give way to; refuse it where the config itself has other plans for it."""
    named = merge(each for subnet in network.subnets for each in _named(subnet))
    told = f"of network '{network.name}' is held in units that do not fit into a subnet"
    for each in strays:
        if any(each.range.overlaps(other) for other in named):
            raise Refused(
                BoshErrorKind.GENERIC,
                f"Range '{each}' {told}, and its gateway or a static IP lies there: release it first",
            )
    return [
        BoshFault(
            BoshErrorKind.GENERIC,
            f"Range '{each}' {told}: it is given to nobody until the first upload after its release",
        )
        for each in strays
    ]


def _named(subnet: CloudSubnet) -> list[AddressRange]:
    """Return what a subnet names: its gateway, and what may be asked for by address."""
    return [*subnet.static, *([] if subnet.gateway is None else [AddressRange(subnet.gateway, subnet.gateway)])]
