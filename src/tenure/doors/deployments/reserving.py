"""A plan's steps as operations of the ledger: one ``apply`` for all, so that a plan is made whole or not at all.

The order is the promise: first what is not needed any more is set to *draining* (it stays held, and only its slot is
free), then what is kept is put right, then everything that is wanted is reserved in the order of the steps, and only
then is freed what no VM carries. Nothing is freed before all that is wanted is reserved.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.doors.deployments.binding import Has, Kept, Wants
from tenure.doors.deployments.drafting import Step
from tenure.doors.deployments.records import Instance
from tenure.kernel.addresses import format_address
from tenure.kernel.values import Holding, State
from tenure.service.operations import Allocate, ModifyHolding, Operation, Release

DRAINED_BY = "drained_by"
"""The label that tells which plan set a holding to draining: aborting the plan takes that back."""


@dataclass(frozen=True, slots=True)
class Work:
    """All that a plan does in the ledger: what comes before the reservations, those with their steps, what follows."""

    first: Sequence[Operation]
    takes: Sequence[tuple[Step, Allocate]]
    last: Sequence[Operation]

    @property
    def operations(self) -> list[Operation]:
        """Return all of it, in order."""
        return [*self.first, *(take for _, take in self.takes), *self.last]


def work_for(steps: Sequence[Step], plan: str, vips: Mapping[tuple[str, str], int]) -> Work:
    """Return what a plan does in the ledger. ``vips``: addresses chosen from VIP pools, by uuid and network."""
    drains = [operation for step in steps for operation in _drains(step, plan)]
    keeps = [operation for step in steps for operation in _keeps(step)]
    takes = [(step, _take(step.instance, wish, plan, vips)) for step in steps for wish in step.bound.new]
    frees = [operation for step in steps for operation in _frees(step)]
    return Work([*drains, *keeps], takes, [*frees, *_papers(steps, plan)])


def _holdings(instance: Instance | None, those: Iterable[Has]) -> list[Holding]:
    places = {(each.network, each.position) for each in those}
    found = () if instance is None else instance.holdings
    return [each for each in found if (each.network, each.row.first) in places]


def _drains(step: Step, plan: str) -> list[Operation]:
    """Set to draining what a VM carries and the instance is not to keep; what leaves altogether stays as it is."""
    if step.after is None:
        return []
    return [
        _modify(each, state=str(State.DRAINING), labels={**each.labels, DRAINED_BY: plan})
        for each in _holdings(step.before, step.bound.obsolete)
        if each.state is State.HELD
    ]


def _keeps(step: Step) -> list[Operation]:
    """Put right what is kept: held again if it was draining, and under the name that its network has now."""
    operations: list[Operation] = []
    for kept in step.bound.kept:
        [held] = _holdings(step.before, [kept.has])
        if held.network != kept.wants.network:
            operations += _moved(step.instance, held, kept)
        elif held.state is State.DRAINING:
            labels = {name: text for name, text in held.labels.items() if name != DRAINED_BY}
            operations.append(_modify(held, state=str(State.HELD), labels=labels))
    return operations


def _moved(instance: Instance, held: Holding, kept: Kept) -> list[Operation]:
    """Let an address stay with its instance in another network: nobody can get it in between."""
    return [
        Release(network=held.network, address=held.address, owner=held.owner, generation=held.generation),
        Allocate(
            network=kept.wants.network, owner=instance.owner, address=held.address, reserved="allow",
            carrier=held.carrier, plan=held.plan,
        ),
    ]  # fmt: skip


def _take(instance: Instance, wish: Wants, plan: str, vips: Mapping[tuple[str, str], int]) -> Allocate:
    position = wish.address if wish.address is not None else vips.get((instance.uuid, wish.network))
    if position is not None:
        return Allocate(network=wish.network, owner=instance.owner, address=format_address(position), plan=plan)
    return Allocate(network=wish.network, owner=instance.owner, zone=instance.az, plan=plan)


def _frees(step: Step) -> list[Operation]:
    """Free what the instance is not to keep and no VM carries; an instance that leaves without a VM is gone now."""
    gone = _holdings(step.before, step.bound.obsolete)
    return [
        Release(network=each.network, address=each.address, owner=each.owner, generation=None)
        for each in gone
        if each.carrier is None and (step.after is not None or step.instance.vm is None)
    ]


def _papers(steps: Sequence[Step], plan: str) -> list[Operation]:
    """Write down every instance that changed; one that leaves and has no VM is written down no more."""
    operations: list[Operation] = []
    for step in steps:
        if step.after is not None:
            operations += _rewritten(step.before, step.after)
        elif step.instance.vm is None:
            operations.append(step.instance.removed())
        elif not step.instance.leaving:
            operations.append(replace(step.instance, leaving=True, plan=plan).written())
    return operations


def _rewritten(before: Instance | None, after: Instance) -> list[Operation]:
    """Write an instance down, if it changed; one whose group has another name gets another paper."""
    if before is not None and before.paper_name != after.paper_name:
        return [before.removed(), replace(after, revision=0).written()]
    return [] if after == before else [after.written()]


def _modify(held: Holding, **changes: object) -> Operation:
    return ModifyHolding(
        network=held.network, address=held.address, owner=held.owner, generation=held.generation,
        **changes,  # type: ignore[arg-type]
    )  # fmt: skip
