"""Cloud configs: checked whole when they are uploaded, kept as papers, laid into the ledger in the same ``apply``."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tenure.doors.deployments.documents.cloud import read_cloud_configs
from tenure.doors.deployments.faults import Fault
from tenure.doors.deployments.ground import (
    SPACE,
    Block,
    blocks_in,
    blocks_of,
    is_ours,
    lay,
    remnants,
    removal,
    renamed,
    uncovered,
)
from tenure.doors.deployments.keeping import kept_by_hand, lost_by_hand
from tenure.doors.deployments.legacy import MODE, Legacy, kept_back, load_legacy, load_mode, own_networks, turned
from tenure.doors.deployments.managed_records import complete
from tenure.doors.deployments.model import DYNAMIC, MANUAL, CloudConfig
from tenure.doors.deployments.records import CONFIG, SNAPSHOT, Deployment
from tenure.kernel.configuration import Network
from tenure.kernel.edits import Edit, ModifyNetwork
from tenure.kernel.errors import AlreadyExists, Conflict, NotFound
from tenure.kernel.values import Paper
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import Expect, Operation, WritePaper

TRIES = 8


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

    def kept(self) -> WritePaper:
        """Return the operation that keeps them as they are now."""
        return WritePaper(kind=SNAPSHOT, name=self.snapshot, document={"configs": [list(each) for each in self.texts]})


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What came of an upload: warnings, and which networks changed."""

    warnings: Sequence[Fault]
    changed: Sequence[str]


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
    for tries_left in reversed(range(TRIES)):
        papers = {paper.name: paper for paper in await ledger.papers(CONFIG)}
        before = papers.get(name)
        texts = {each.name: each.document["text"] for each in papers.values()} | {name: text}
        config, warnings = read_cloud_configs(sorted(texts.items()))
        write = WritePaper(kind=CONFIG, name=name, document={"text": text}, revision=before.revision if before else 0)
        mode = [] if papers else [turned(await load_mode(ledger))]
        legacies = await load_legacy(ledger)
        edits, expects, lost = await _edits(ledger, await complete(ledger, config), space, legacies)
        expects += [each.expected() for each in legacies]
        try:
            await (ledger.rehearse if dry else ledger.apply)([*expects, *edits, *mode, write])
        except (Conflict, NotFound) as error:
            if not tries_left or (isinstance(error, AlreadyExists) and error.kind != MODE):
                raise
            continue  # somebody uploaded, deployed or edited in this moment
        return Uploaded([*warnings, *lost], sorted({edit.network for edit in edits}))
    raise AssertionError("unreachable")


async def laid_out(ledger: AsyncLedger, config: CloudConfig, space: str) -> list[Operation]:
    """Return the operations after which the ledger has the networks of a config, with what they rest on."""
    legacies = await load_legacy(ledger)
    edits, expects, _ = await _edits(ledger, config, space, legacies)
    return [*expects, *(each.expected() for each in legacies), *edits]


async def _edits(
    ledger: AsyncLedger, config: CloudConfig, space: str, legacies: Sequence[Legacy]
) -> tuple[list[Edit], list[Operation], list[Fault]]:
    """Return what must change in the ledger so that it has the config's networks, what that rests on, what is lost."""
    present = {each.name: each for each in await ledger.networks() if is_ours(each)}
    names = renamed(config, present)
    edits: list[Edit] = [ModifyNetwork(network=old, name=new) for old, new in names.items()]
    now = {names.get(name, name): network for name, network in present.items()}
    lost: list[Fault] = []
    for name, network in config.networks.items():
        if network.kind == DYNAMIC:
            continue
        found = now.get(name)
        wanted = kept_by_hand(blocks_of(network), found)
        if network.kind == MANUAL:
            wanted = kept_back(wanted, legacies, config)
        left = [] if found is None else await _remnants(ledger, found, wanted)
        edits += lay(name, network.kind, [*wanted, *left], found, space)
        lost += lost_by_hand(name, found, [*wanted, *left])
    for name, gone in now.items():
        if name not in config.networks or config.networks[name].kind == DYNAMIC:
            left = await _remnants(ledger, gone, [])
            edits += lay(gone.name, MANUAL, left, gone, space) if left else [removal(gone)]
            lost += lost_by_hand(name, gone, left)
    touched = {edit.network for edit in edits}
    expects: list[Operation] = [
        Expect(network=each.name, serial=each.serial, uuid=each.uuid)
        for each in present.values()
        if each.name in touched or names.get(each.name) in touched
    ]
    return edits, expects, lost


async def _remnants(ledger: AsyncLedger, network: Network, wanted: Sequence[Block]) -> list[Block]:
    """Return what of a network is in no config any more, and where somebody holds an address."""
    present = blocks_in(network)
    pieces = uncovered(wanted, present)
    if not pieces:
        return []
    held = [each.row.first for each in await ledger.holdings(network.name)]
    left = remnants(wanted, present, [each for each in held if any(each in piece for piece in pieces)])
    return kept_by_hand(left, network)
