"""A plan's steps as operations of the ledger: one ``apply`` for all, so that a plan is made whole or not at all.

The order is the promise: first what is not needed any more is set to *draining* (it stays held, and only its slot is
free), then what is kept is put right, then everything that is wanted is reserved in the order of the steps, and only
then is freed what no VM carries and no VM ever did. Nothing is freed before all that is wanted is reserved.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.bosh.model.address_diff import Has, Kept, Wants
from tenure.integrations.bosh.planning.steps import Step
from tenure.integrations.bosh.state.instance_state import ORPHANED, DeploymentInstance, Place, is_overtaken, place_of
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.names import Owner
from tenure.service.apply.operations import Allocate, ModifyHolding, Operation, Release, Transfer

DRAINED_BY = "drained_by"
"""The label that tells which plan set a holding to draining: aborting the plan takes that back."""

HANDED_TO, HANDED_FROM = "handed_to", "handed_from"
"""Labels of what changes hands: the instance that waits for it, and then, until its VM is up, the one that had it."""

MOVED_FROM = "moved_from"
"""The label of what is kept under another network's name: until its VM is up, the network that it was of."""

OF_A_PLAN = (HANDED_FROM, MOVED_FROM)
"""Labels that tell where an address is from only until a VM carries it."""


@dataclass(frozen=True, slots=True)
class Work:
    """All that a plan does in the ledger: what comes before the reservations, those with their steps, what follows.

    ``handed`` is what changes hands before anything is reserved.
    """

    first: Sequence[Operation]
    takes: Sequence[tuple[Step, Allocate]]
    last: Sequence[Operation]
    handed: Sequence[Operation] = ()

    @property
    def operations(self) -> list[Operation]:
        """Return all of it, in order."""
        return [*self.up_to(len(self.takes)), *self.last]

    def up_to(self, count: int) -> list[Operation]:
        """Return what is done up to a number of reservations."""
        return [*self.first, *self.handed, *(take for _, take in self.takes[:count])]


def work_for(steps: Sequence[Step], plan: str, vips: Mapping[tuple[str, str], int]) -> Work:
    """Return what a plan does in the ledger. ``vips``: addresses chosen from VIP pools, by uuid and network."""
    # The earlier promises come last in the union: the plan takes none of them from an ignored instance.
    heirs = {promise.place: step.instance.uuid for step in steps for promise in step.gets} | _promised_before(steps)
    drains = [operation for step in steps for operation in _drains(step, plan, heirs)]
    keeps = [operation for step in steps for operation in _keeps(step, plan)]
    takes = [
        (step, _take(step.instance, wish, plan, vips))
        for step in steps
        for wish in step.bound.new
        if step.takes(wish.network)
    ]
    frees = [operation for step in steps for operation in _frees(step, heirs)]
    return Work([*drains, *keeps], takes, [*frees, *papers_for(steps, plan)], _handed(steps, plan))


def _promised_before(steps: Sequence[Step]) -> dict[Place, str]:
    """Return what those wait for that the plan leaves alone: it is promised to them still."""
    waiting = [step.after for step in steps if step.after is not None and step.after.ignored]
    return {(wait["network"], parse_address(wait["address"])): each.uuid for each in waiting for wait in each.waits}


def holdings_of(instance: DeploymentInstance | None, those: Iterable[Has]) -> list[Holding]:
    """Return the holdings of an instance that are meant."""
    places = {(each.network, each.position) for each in those}
    found = () if instance is None else instance.holdings
    return [each for each in found if place_of(each) in places]


def given_up_by(step: Step) -> list[Holding]:
    """Return what an instance gives up; one that is left alone gave it up by an earlier plan."""
    if step.before is not None and step.after is not None and step.after.ignored:
        return list(step.before.parting)
    return holdings_of(step.before, step.bound.obsolete)


def _drains(step: Step, plan: str, heirs: Mapping[Place, str]) -> list[Operation]:
    """Set to draining what the instance is not to keep; what leaves altogether stays as it is.

    What an earlier plan set so, or reserved for who leaves, is this one's now. Who waits for an address is noted on it.
    """
    if step.after is not None and step.after.ignored:
        return _promises(step, heirs)
    operations: list[Operation] = []
    for held in holdings_of(step.before, step.bound.obsolete):
        state, labels = held.state, {name: text for name, text in held.labels.items() if name != HANDED_TO}
        if step.after is not None:
            state, labels = State.DRAINING, {**labels, DRAINED_BY: plan}
        if place_of(held) in heirs:
            labels[HANDED_TO] = heirs[place_of(held)]
        meant_for = held.plan
        if _leaves_later(step):
            labels |= {DRAINED_BY: plan} if DRAINED_BY in labels else {}
            meant_for = held.plan if held.plan is None or is_overtaken(held) else plan
        if (state, labels, meant_for) != (held.state, held.labels, held.plan):
            operations.append(modified(held, state=str(state), labels=labels, plan=meant_for))
    return operations


def _promises(step: Step, heirs: Mapping[Place, str]) -> list[Operation]:
    """Note who waits for what an instance gave up that is left alone; else nothing is done to it."""
    waited_for = [(each, heirs[place_of(each)]) for each in given_up_by(step) if place_of(each) in heirs]
    news = [(each, heir) for each, heir in waited_for if each.labels.get(HANDED_TO) != heir]
    return [modified(each, labels={**each.labels, HANDED_TO: heir}) for each, heir in news]


def _leaves_later(step: Step) -> bool:
    """Tell whether an instance leaves by the plan, and only when it is known what became of its VM."""
    return step.after is None and not step.ends and not step.instance.is_deleted


def _keeps(step: Step, plan: str) -> list[Operation]:
    """Put right what is kept: held again if it was draining, and under the name that its network has now.

    What an earlier plan reserved and no VM carries yet is this one's now: whoever aborts it takes that back as well.
    """
    operations: list[Operation] = []
    for kept in step.bound.kept:
        [held] = holdings_of(step.before, [kept.has])
        meant_for = plan if held.plan is not None and _is_of(step.instance, plan) else held.plan
        if held.network != kept.wants.network:
            operations += _moved(step.instance, held, kept, meant_for)
        elif held.state is State.DRAINING:
            operations.append(modified(held, state=str(State.HELD), labels=undrained(held), plan=meant_for))
        elif held.plan != meant_for:
            operations.append(modified(held, plan=meant_for))
    # Two networks may have changed names with each other: each lets go before another takes, or holds again.
    return sorted(operations, key=lambda each: (not isinstance(each, Release), isinstance(each, Allocate)))


def _is_of(instance: DeploymentInstance, plan: str) -> bool:
    """Tell whether an instance waits for a plan, or for none, as one that was stopped hard does."""
    return instance.plan == plan or (instance.rests and not instance.ignored)


def _moved(instance: DeploymentInstance, held: Holding, kept: Kept, plan: str | None) -> list[Operation]:
    """Let an address stay with its instance in another network: nobody can get it in between."""
    # An address that moves twice before a VM is up remembers the first network: abort takes it back there.
    home = held.labels.get(MOVED_FROM, held.network)
    return [
        released(held),
        Allocate(
            # allow: a range that was reserved by hand meanwhile does not take the address away.
            network=kept.wants.network, owner=instance.owner, address=held.address, reserved="allow",
            carrier=held.carrier, plan=plan, request=held.request,
            labels={} if home == kept.wants.network else {MOVED_FROM: home},
        ),
    ]  # fmt: skip


def _take(instance: DeploymentInstance, wish: Wants, plan: str, vips: Mapping[tuple[str, str], int]) -> Allocate:
    """Reserve for a plan. As request its name stays with the address when the plan is done: so it can be explained."""
    position = wish.address if wish.address is not None else vips.get((instance.uuid, wish.network))
    place = {"zone": instance.az} if position is None else {"address": format_address(position)}
    return Allocate(network=wish.network, owner=instance.owner, plan=plan, request=plan, **place)


def _handed(steps: Sequence[Step], plan: str) -> list[Operation]:
    """Hand over what no VM carries; note on what orphaned VMs have who waits for it."""
    pairs = [(step.instance, promise.held, promise.now) for step in steps for promise in step.gets]
    now = [(instance, held) for instance, held, at_once in pairs if at_once]
    noted = [
        modified(held, labels={**held.labels, HANDED_TO: instance.uuid})
        for instance, held, _ in pairs
        if held.owner.kind == ORPHANED
    ]
    return [
        *noted,
        # All transfers stand together: apply does neighbours at once, so that two instances may swap.
        *(transferred(held, instance.owner) for instance, held in now),
        *(received(held, instance.owner, plan) for instance, held in now),
    ]


def transferred(held: Holding, to: Owner) -> Operation:
    """Return the operation that hands an address over; nobody else can get it in between."""
    return Transfer(network=held.network, address=held.address, owner=held.owner, generation=held.generation, to=to)


def received(held: Holding, by: Owner, plan: str | None) -> Operation:
    """Return the operation that makes an address its new owner's own: it is held for a plan, and no VM has it yet."""
    kept = {name: text for name, text in undrained(held).items() if name not in OF_A_PLAN}
    labels = kept if held.owner.kind == ORPHANED else {**kept, HANDED_FROM: held.owner.id}
    return ModifyHolding(
        network=held.network, address=held.address, owner=by, state=str(State.HELD), carrier=None, plan=plan,
        labels=labels,
    )  # fmt: skip


def undrained(held: Holding) -> dict[str, str]:
    """Return the labels of a holding without those of a plan that gave it up."""
    return {name: text for name, text in held.labels.items() if name not in (DRAINED_BY, HANDED_TO)}


def is_free(step: Step, held: Holding) -> bool:
    """Tell whether what a plan gives up can be another instance's at once: no VM has it, and none is made on it."""
    if step.after is None:
        return held.carrier is None and step.ends
    return held.carrier is None and not (step.before is not None and step.before.is_under_way(held))


def _frees(step: Step, heirs: Mapping[Place, str]) -> list[Operation]:
    """Free what the instance is not to keep and no VM carries; an instance that leaves without a VM is gone now."""
    return [
        released(each)
        for each in holdings_of(step.before, step.bound.obsolete)
        if is_free(step, each) and not _stays(step, each) and place_of(each) not in heirs
    ]


def _stays(step: Step, held: Holding) -> bool:
    """Tell whether what no VM carries is kept until a VM is up, all the same.

    What was an instance's own before the plan is its own again if the plan is taken back: so nobody else gets it.
    """
    return step.after is not None and step.after.vm is None and held.plan is None


def papers_for(steps: Sequence[Step], plan: str) -> list[Operation]:
    """Write down every instance that changed; one that leaves and can have no VM is written down no more."""
    operations: list[Operation] = []
    for step in steps:
        if step.after is not None:
            operations += rewritten(step.before, step.after)
        elif step.ends:
            operations.append(step.instance.removed())
        elif step.goes is not None and not step.instance.is_deleted:
            operations.append(replace(step.goes, plan=plan).written())  # also who leaves by an earlier plan already
    return operations


def rewritten(before: DeploymentInstance | None, after: DeploymentInstance) -> list[Operation]:
    """Write an instance down, if it changed; one whose group has another name gets another paper."""
    if before is not None and before.paper_name != after.paper_name:
        # A paper of the new name is not there yet, so it has no revision to be written over.
        return [before.removed(), replace(after, revision=0).written()]
    return [] if after == before else [after.written()]


def released(held: Holding) -> Operation:
    """Return the operation that frees an address."""
    return Release(network=held.network, address=held.address, owner=held.owner, generation=held.generation)


def modified(held: Holding, **changes: object) -> Operation:
    """Return the operation that changes what is written on a holding."""
    return ModifyHolding(
        network=held.network, address=held.address, owner=held.owner, generation=held.generation,
        **changes,  # type: ignore[arg-type]
    )  # fmt: skip
