"""What a deployment itself goes back to when a plan is taken back: its manifest of before, or to nothing at all.

As soon as a part of a plan is done, the deployment is what the plan makes of it, and stays so. Its instances go back
each by itself: those that the plan is not done for are made again as before, on the networks of that time.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tenure.doors.deployments.configuring import load_configs
from tenure.doors.deployments.drafting import Step
from tenure.doors.deployments.managed_records import uses
from tenure.doors.deployments.model import Properties
from tenure.doors.deployments.records import Deployment, Instance
from tenure.doors.deployments.turning import lifted
from tenure.doors.deployments.workers import ended, load_compiling
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import Operation

NOTHING: dict[str, None] = {}
"""What there was before a deployment's first plan."""

MADE_AS = ("az", "disk", "networks")
"""What an instance's VM is made by: this goes back with the instance."""

CALLED = ("group", "index", "errand")
"""What the manifest makes of an instance: this goes back with the deployment."""


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


def revocable(before: Deployment | None, plan: str, steps: Sequence[Step]) -> list[Step]:
    """Note on instances what they were before a plan, so that they can be that again if it is taken back."""
    return [step if step.before is None else _noted(step, step.before, before, plan) for step in steps]


def _noted(step: Step, instance: Instance, deployment: Deployment | None, plan: str) -> Step:
    if instance.is_deleted:
        return step
    was = _former(instance, deployment, plan)
    if step.after is None:
        return replace(step, before=replace(instance, former=was))
    changes = any(was[name] != getattr(step.after, name) for name in (*MADE_AS, *CALLED))
    return replace(step, after=replace(step.after, former=was if changes or step.after.plan == plan else None))


def _former(instance: Instance, deployment: Deployment | None, plan: str) -> Properties:
    """Return what an instance is, or, where an earlier plan is taken back with this one, what it was before both."""
    was, undo = instance.former, None if deployment is None else deployment.undo
    if was is not None and (undo is not None or instance.rests or was["plan"] == instance.plan):
        return {**was, "plan": plan}
    snapshot = None if deployment is None else deployment.as_of(instance).snapshot
    return {"plan": plan, "snapshot": snapshot, **{name: getattr(instance, name) for name in (*MADE_AS, *CALLED)}}


def goes_back(deployment: Deployment | None, plan: str) -> bool:
    """Tell whether a deployment, too, is what it was before, if a plan is taken back."""
    return deployment is not None and deployment.plan == plan and deployment.undo not in (None, NOTHING)


def as_before(instance: Instance, deployment: Deployment | None, plan: str) -> dict[str, Any]:
    """Return what changes on an instance for which a plan is taken back."""
    was = instance.former
    if was is None or was["plan"] != plan:
        return {}
    whole = goes_back(deployment, plan)
    back = {name: was[name] for name in ((*MADE_AS, *CALLED) if whole else MADE_AS)}
    then = deployment.undo if deployment is not None and whole else None
    now = None if deployment is None else deployment.snapshot
    deployed_with = now if then is None else then["snapshot"]
    return {**back, "former": None, "snapshot": None if was["snapshot"] == deployed_with else was["snapshot"]}


def begun(deployment: Deployment, instance: Instance) -> list[Operation]:
    """Return the operation after which a deployment does not go back: the plan is done for one of its instances."""
    if deployment.undo is None or instance.plan != deployment.plan:
        return []
    return [replace(deployment, undo=None).written()]


async def undone(
    ledger: AsyncLedger, name: str, known: Deployment | None, plan: str, left: Collection[Instance]
) -> list[Operation]:
    """Return the operations after which a deployment is what it was before a plan, given the instances it then has."""
    compiling = await load_compiling(ledger, name)
    stops = await ended(ledger, name) if compiling is not None and compiling.plan == plan else []
    if known is None or known.plan != plan or known.undo is None:
        return stops
    if goes_back(known, plan):
        return [*stops, replace(known, **known.undo, undo=None).written()]
    return stops if left else [*stops, *await gone(ledger, known)]


async def gone(ledger: AsyncLedger, known: Deployment) -> list[Operation]:
    """Return the operations after which there is no such deployment, and nothing is kept for it."""
    configs = None if known.snapshot is not None else await load_configs(ledger)
    kept = [] if configs is None else await lifted(ledger, configs.config, known.name)
    return [*kept, *await uses(ledger, known.name, (), ()), known.removed()]
