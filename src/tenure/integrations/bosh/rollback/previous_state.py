"""What a deployment itself goes back to when a plan is taken back: its manifest of before, or to nothing at all.

As soon as a part of a plan is done, the deployment is what the plan makes of it, and stays so. Its instances go back
each by itself: those that the plan is not done for are made again as before, on the networks of that time.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tenure.integrations.bosh.cloud_config.configs import load_configs
from tenure.integrations.bosh.model.document_model import Properties
from tenure.integrations.bosh.planning.step_operations import MOVED_FROM
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.running_vms.first_cloud_config import lifted, turned_back
from tenure.integrations.bosh.state.compile_workers import ended, load_compiling
from tenure.integrations.bosh.state.instance_state import INSTANCE, Deployment, DeploymentInstance
from tenure.integrations.bosh.state.managed_records import uses
from tenure.integrations.bosh.state.pending_vms import RESUMES, STAYS
from tenure.kernel.holdings.holding_model import State
from tenure.service.apply.operations import Operation, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

NOTHING: dict[str, None] = {}
"""What there was before a deployment's first plan."""

GONE = "gone"
"""Where it is noted which instances went at once, with their papers."""

MADE_AS = ("az", "disk", "networks")
"""What an instance's VM is made by: this goes back with the instance."""

CALLED = ("group", "index", "errand")
"""What the manifest makes of an instance: this goes back with the deployment."""


def following(before: Deployment | None, after: Deployment, steps: Sequence[Step]) -> Deployment:
    """Return a deployment as a plan makes it, with what it goes back to if the plan is taken back.

    A plan takes over what an earlier one left undone, and is taken back with it. One that has nothing to do is done.
    Who had a VM once and leaves without any is gone at once, and does not come back: so a part of the plan is done.
    """
    revision = 0 if before is None else before.revision
    has_to_do = any(step.after is None or step.after.plan == after.plan for step in steps)
    if not has_to_do or any(step.ends and not step.instance.is_new for step in steps):
        return replace(after, revision=revision)
    if before is None:
        return replace(after, undo=NOTHING)
    now: Properties = {"manifest": before.manifest, "snapshot": before.snapshot, "plan": before.plan}
    undo = now if before.undo is None else before.undo
    return replace(after, revision=revision, undo=_with_gone(undo, before, after, steps))


def _with_gone(undo: Properties, before: Deployment, after: Deployment, steps: Sequence[Step]) -> Properties:
    """Note who is gone with a plan and never had anything, as an errand that never ran: it comes back with the rest."""
    # Before the first plan there was no instance that could come back.
    if undo == NOTHING:
        return undo
    resting = [step.instance for step in steps if step.ends and _has_nothing(step.instance)]
    formers = [(each, _former(each, before, after.plan or "")) for each in resting]
    papers = [_as_it_was(each, was, undo).written() for each, was in formers if not _was_nothing(was)]
    told = [{"name": each.name, "document": each.document} for each in papers if isinstance(each, WritePaper)]
    return {**undo, GONE: [*undo.get(GONE, ()), *told]} if told else undo


def _has_nothing(instance: DeploymentInstance) -> bool:
    return instance.rests and instance.is_new and not instance.leaving and not instance.holdings


def _as_it_was(instance: DeploymentInstance, was: Properties, undo: Properties) -> DeploymentInstance:
    back = {name: was[name] for name in (*MADE_AS, *CALLED)}
    snapshot = None if was["snapshot"] == undo["snapshot"] else was["snapshot"]
    return replace(instance, **back, former=None, snapshot=snapshot)


def _brought_back(undo: Properties, left: Collection[DeploymentInstance]) -> list[Operation]:
    """Write down again who was gone with a plan, unless another has its place by now."""
    taken = {(each.group, each.index) for each in left}
    return [
        WritePaper(kind=INSTANCE, name=each["name"], document=each["document"])
        for each in undo.get(GONE, ())
        if (each["name"].split("/")[1], each["document"]["index"]) not in taken
    ]


def revocable(before: Deployment | None, after: Deployment, plan: str, steps: Sequence[Step]) -> list[Step]:
    """Note on instances what they were before a plan, so that they can be that again if it is taken back."""
    steps = [_as_made(step, before, after) for step in steps]
    return [_made(step, plan) if step.before is None else _noted(step, step.before, before, plan) for step in steps]


def _as_made(step: Step, before: Deployment | None, after: Deployment) -> Step:
    """Let who is left alone be of the cloud configs that it was made with, or is to be."""
    if before is None or step.before is None or step.after is None or not step.after.ignored:
        return step
    made_with = before.as_of(step.before).snapshot
    return replace(step, after=replace(step.after, snapshot=None if made_with == after.snapshot else made_with))


def _made(step: Step, plan: str) -> Step:
    """Note on who comes and waits for no VM which plan made it: before, it was nothing."""
    if step.after is None or not step.after.rests:
        return step
    return replace(step, after=replace(step.after, former={"plan": plan}))


def _noted(step: Step, instance: DeploymentInstance, deployment: Deployment | None, plan: str) -> Step:
    if instance.is_deleted or (instance.ignored and instance.paper_name == step.instance.paper_name):
        return step
    was = _former(instance, deployment, plan)
    if step.after is None:
        return replace(step, goes=None if step.goes is None else _marked(step.goes, instance, was, deployment))
    if _was_nothing(was):
        return replace(step, after=_marked(step.after, instance, was, deployment))
    changes = any(was[name] != getattr(step.after, name) for name in (*MADE_AS, *CALLED)) or _has_moved(step, instance)
    if changes or step.after.plan == plan:
        return replace(step, after=_marked(step.after, instance, was, deployment))
    stay = tuple(replace(each, then=STAYS) for each in step.after.earlier)
    return replace(step, after=replace(step.after, former=_made_once(instance), earlier=stay))


def _marked(
    after: DeploymentInstance, before: DeploymentInstance, was: Properties, deployment: Deployment | None
) -> DeploymentInstance:
    """Note on an instance what it was, and which VMs that are perhaps being made it has from that time."""
    after = replace(after, former=was)
    takes_over = before.is_coming if before.former is None else _still_stands(before, before.former, deployment)
    if takes_over:
        return after
    # The VMs that were earlier ones before this plan stay so; the VM behind them is the one that was waited for.
    known = len(before.earlier)
    marked = (replace(each, then=STAYS if at < known else RESUMES) for at, each in enumerate(after.earlier))
    return replace(after, earlier=tuple(marked))


def _has_moved(step: Step, instance: DeploymentInstance) -> bool:
    """Tell whether an instance has an address under another network's name, by the plan or one that it waits for."""
    moves = any(each.has.network != each.wants.network for each in step.bound.kept)
    return moves or any(MOVED_FROM in each.labels for each in instance.holdings)


def _made_once(instance: DeploymentInstance) -> Properties | None:
    """Return what is noted on who was made by a plan that is done: it tells nothing any more, and is left as it is."""
    return instance.former if instance.former is not None and _was_nothing(instance.former) else None


def _former(instance: DeploymentInstance, deployment: Deployment | None, plan: str) -> Properties:
    """Return what an instance is, or, where an earlier plan is taken back with this one, what it was before both."""
    was = instance.former
    if was is not None and _still_stands(instance, was, deployment):
        return {**was, "plan": plan}
    snapshot = None if deployment is None else deployment.as_of(instance).snapshot
    return {"plan": plan, "snapshot": snapshot, **{name: getattr(instance, name) for name in (*MADE_AS, *CALLED)}}


def _still_stands(instance: DeploymentInstance, was: Properties, deployment: Deployment | None) -> bool:
    """Tell whether what is noted on an instance is of a plan that is not done."""
    pending = deployment is not None and deployment.undo is not None
    if _was_nothing(was):
        return pending and deployment is not None and bool(was["plan"] == deployment.plan)
    return pending or (instance.rests and _is_between(instance)) or bool(was["plan"] == instance.plan)


def _is_between(instance: DeploymentInstance) -> bool:
    """Tell whether an instance has both what it had before a plan and what it is to have: nothing of it was done."""
    return any(
        each.state is State.DRAINING or each.plan is not None or MOVED_FROM in each.labels for each in instance.holdings
    )


def _was_nothing(was: Properties) -> bool:
    return was.keys() == {"plan"}


def goes_with(instance: DeploymentInstance, deployment: Deployment | None, plan: str) -> bool:
    """Tell whether a plan made an instance that needs no VM, and nothing came of either: taken back, both are gone."""
    if deployment is None or deployment.plan != plan or deployment.undo is None or instance.former is None:
        return False
    bare = instance.rests and instance.is_new and not instance.holdings
    return bare and _was_nothing(instance.former) and instance.former["plan"] == plan


def goes_back(deployment: Deployment | None, plan: str) -> bool:
    """Tell whether a deployment, too, is what it was before, if a plan is taken back."""
    return deployment is not None and deployment.plan == plan and deployment.undo not in (None, NOTHING)


def as_before(instance: DeploymentInstance, deployment: Deployment | None, plan: str) -> dict[str, Any]:
    """Return what changes on an instance for which a plan is taken back.

    One that waits for another by now, as an errand that was run meanwhile, stays as the plan made it.
    """
    was = instance.former
    if was is None or was["plan"] != plan or _was_nothing(was):
        return {}
    if instance.plan not in (None, plan):
        made_with = None if deployment is None else deployment.as_of(instance).snapshot
        return {"former": None, "snapshot": made_with}
    whole = goes_back(deployment, plan)
    back = {name: was[name] for name in ((*MADE_AS, *CALLED) if whole else MADE_AS)}
    then = deployment.undo if deployment is not None and whole else None
    now = None if deployment is None else deployment.snapshot
    deployed_with = now if then is None else then["snapshot"]
    return {**back, "former": None, "snapshot": None if was["snapshot"] == deployed_with else was["snapshot"]}


def begun(deployment: Deployment, instance: DeploymentInstance) -> list[Operation]:
    """Return the operation after which a deployment does not go back: the plan is done for one of its instances."""
    if deployment.undo is None or instance.plan != deployment.plan:
        return []
    return [replace(deployment, undo=None).written()]


async def undone(
    ledger: AsyncLedger, name: str, known: Deployment | None, plan: str, left: Collection[DeploymentInstance]
) -> list[Operation]:
    """Return the operations after which a deployment is what it was before a plan, given the instances it then has."""
    compiling = await load_compiling(ledger, name)
    stops = await ended(ledger, name) if compiling is not None and compiling.plan == plan else []
    if known is None or known.plan != plan or known.undo is None:
        return stops
    if goes_back(known, plan):
        # undo has fields of the deployment, and beside them the papers of instances that went.
        was = {name: value for name, value in known.undo.items() if name != GONE}
        before = replace(known, **was, undo=None)
        turns = before.snapshot is None and known.snapshot is not None
        turning = await turned_back(ledger, before, left) if turns else []
        return [*stops, before.written(), *_brought_back(known.undo, left), *turning]
    return stops if left else [*stops, *await gone(ledger, known)]


async def gone(ledger: AsyncLedger, known: Deployment) -> list[Operation]:
    """Return the operations after which there is no such deployment, and nothing is kept for it."""
    # Only a deployment without a cloud config has networks that are kept for it alone.
    configs = None if known.snapshot is not None else await load_configs(ledger)
    kept = [] if configs is None else await lifted(ledger, configs.config, known.name)
    return [*kept, *await uses(ledger, known.name, (), ()), known.removed()]
