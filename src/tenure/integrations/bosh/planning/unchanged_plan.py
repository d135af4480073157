"""A deploy that is repeated: where nothing changed nothing is written, and the known plan stays the last one."""

from collections.abc import Sequence
from dataclasses import replace

from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.state.instance_state import DEPLOYMENT, Deployment
from tenure.service.apply.operations import ExpectPaper, Operation


def unless_same(before: Deployment | None, after: Deployment, steps: Sequence[Step]) -> Deployment:
    """Return a deployment as a plan makes it; as it is, plan and all, if the plan has nothing to do for it."""
    if before is None or before.plan is None:
        return after
    waits = {step.instance.plan for step in steps}
    if any(step.after is None for step in steps) or waits & {before.plan, after.plan}:
        return after
    return before if replace(after, plan=before.plan) == before else after


def noted(before: Deployment | None, after: Deployment) -> Operation:
    """Return the operation that writes a deployment down, or makes sure of it if it is as it was."""
    if before is None or after != before:
        return after.written()
    return ExpectPaper(kind=DEPLOYMENT, name=before.name, revision=before.revision)
