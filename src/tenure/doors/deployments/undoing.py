"""What a deployment itself goes back to when a plan is taken back: its manifest of before, or to nothing at all.

As soon as a part of a plan is done, the deployment is what the plan makes of it, and stays so.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from tenure.doors.deployments.configuring import load_configs
from tenure.doors.deployments.drafting import Step
from tenure.doors.deployments.managed_records import uses
from tenure.doors.deployments.records import Deployment, Instance, load_deployment
from tenure.doors.deployments.turning import lifted
from tenure.doors.deployments.workers import ended, load_compiling
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import Operation

NOTHING: dict[str, None] = {}
"""What there was before a deployment's first plan."""


def following(before: Deployment | None, after: Deployment, steps: Sequence[Step]) -> Deployment:
    """Return a deployment as a plan makes it, with what it goes back to if the plan is taken back.

    A plan takes over what an earlier one left undone, and is taken back with it. One that has nothing to do is done.
    """
    revision = 0 if before is None else before.revision
    if not any(step.after is None or step.after.plan == after.plan for step in steps):
        return replace(after, revision=revision)
    if before is None:
        return replace(after, undo=NOTHING)
    now = {"manifest": before.manifest, "snapshot": before.snapshot, "plan": before.plan}
    return replace(after, revision=revision, undo=now if before.undo is None else before.undo)


def begun(deployment: Deployment, instance: Instance) -> list[Operation]:
    """Return the operation after which a deployment does not go back: the plan is done for one of its instances."""
    if deployment.undo is None or instance.plan != deployment.plan:
        return []
    return [replace(deployment, undo=None).written()]


async def undone(ledger: AsyncLedger, deployment: str, plan: str, left: Collection[Instance]) -> list[Operation]:
    """Return the operations after which a deployment is what it was before a plan, given the instances it then has."""
    compiling = await load_compiling(ledger, deployment)
    stops = await ended(ledger, deployment) if compiling is not None and compiling.plan == plan else []
    known = await load_deployment(ledger, deployment)
    if known is None or known.plan != plan or known.undo is None:
        return stops
    if known.undo != NOTHING:
        return [*stops, replace(known, **known.undo, undo=None).written()]
    return stops if left else [*stops, *await gone(ledger, known)]


async def gone(ledger: AsyncLedger, known: Deployment) -> list[Operation]:
    """Return the operations after which there is no such deployment, and nothing is kept for it."""
    configs = None if known.snapshot is not None else await load_configs(ledger)
    kept = [] if configs is None else await lifted(ledger, configs.config, known.name)
    return [*kept, *await uses(ledger, known.name, (), ()), known.removed()]
