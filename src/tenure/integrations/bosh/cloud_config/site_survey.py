"""All deployments of a site at once: which there are, whom a cloud config would move, which VMs are orphans."""

from dataclasses import dataclass

from tenure.integrations.bosh.cloud_config.configs import load_snapshot, texts_with
from tenure.integrations.bosh.cloud_config.moved_instances import Moved, moved_by
from tenure.integrations.bosh.documents.cloud_config import read_cloud_configs
from tenure.integrations.bosh.state.instance_state import (
    CONFIG,
    ORPHAN,
    Deployment,
    DeploymentInstance,
    load_deployments,
    load_instances,
    orphan_of,
)
from tenure.integrations.bosh.state.managed_records import complete
from tenure.kernel.holdings.holding_model import Holding
from tenure.service.ledger.async_ledger import AsyncLedger


@dataclass(frozen=True, slots=True)
class Orphan:
    """A VM that was replaced and is still there, with the addresses that it keeps until it is deleted."""

    vm: str
    deployment: str
    instance: str
    holdings: tuple[Holding, ...]


async def survey(ledger: AsyncLedger) -> list[tuple[Deployment, list[DeploymentInstance]]]:
    """Read all deployments with their instances, in order of name. Costs two looks for each deployment."""
    return [(each, await load_instances(ledger, each.name)) for each in await load_deployments(ledger)]


async def moved_by_upload(ledger: AsyncLedger, name: str, text: str | None) -> list[Moved]:
    """Tell whose addresses would no longer fit if this were the cloud config of that name; None: if there were none.

    Nothing is changed.
    """
    texts = texts_with(await ledger.papers(CONFIG), name, text)
    written, _ = read_cloud_configs(sorted(texts.items()))
    config = await complete(ledger, written)
    moved: list[Moved] = []
    for deployment, instances in await survey(ledger):
        # An instance for which a plan was taken back has older cloud configs than its deployment.
        by_snapshot: dict[str, list[DeploymentInstance]] = {}
        for each in instances if deployment.snapshot is not None else ():
            by_snapshot.setdefault(deployment.as_of(each).snapshot or "", []).append(each)
        for snapshot, own in by_snapshot.items():
            moved += moved_by(config, await load_snapshot(ledger, snapshot), own)
    return moved


async def load_orphans(ledger: AsyncLedger) -> list[Orphan]:
    """Read the orphaned VMs, in order of name, with what they hold."""
    papers = await ledger.papers(ORPHAN)
    held: dict[str, list[Holding]] = {orphan_of(paper.name): [] for paper in papers}
    for holding in await ledger.holdings_of(list(held)):
        held[holding.owner].append(holding)
    return [
        Orphan(paper.name, paper.document["deployment"], paper.document["instance"], tuple(held[orphan_of(paper.name)]))
        for paper in papers
    ]
