"""A plan taken back: what it reserved is free again, what it gave up is kept, what changed hands goes back.

Only instances that still wait for the plan are touched, and of theirs only what no VM carries. What came from another
instance goes back to it, unless whoever has it now would be left with nothing: the one that it gave its own to may have
gone on.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tenure.integrations.bosh.model.document_model import DETACHED
from tenure.integrations.bosh.planning.instance_changes import Books
from tenure.integrations.bosh.planning.step_operations import (
    DRAINED_BY,
    HANDED_FROM,
    HANDED_TO,
    MOVED_FROM,
    modified,
    released,
    transferred,
    undrained,
)
from tenure.integrations.bosh.rollback.original_network import LedgerNetworks, brought_home, strays_of
from tenure.integrations.bosh.rollback.previous_state import MADE_AS, as_before, goes_back, goes_with
from tenure.integrations.bosh.state.instance_state import (
    Deployment,
    DeploymentInstance,
    Place,
    is_overtaken,
    owner_of,
    place_of,
)
from tenure.integrations.bosh.state.pending_vms import ENDS, RESUMES, Making, told
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.service.apply.operations import ModifyHolding, Operation


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What taking a plan back does, what becomes free by it, and which instances are left."""

    operations: Sequence[Operation]
    freed: Sequence[Holding]
    left: Sequence[DeploymentInstance]


def take_back(
    instances: Sequence[DeploymentInstance], deployment: Deployment | None, plan: str, ground: LedgerNetworks
) -> TakenBack:
    """Return what takes a plan back, as far as no VM carries what it reserved.

    Where a later plan overtook it, only that is freed which was kept for its VM alone. VMs that were perhaps being made
    before it are so still, unless it took their plan over.
    """
    back, stays, freed = _sorted_out(instances, plan)
    books = Books(instances)
    strays = [each for one in instances if _goes_home(one, deployment, plan) for each in strays_of(one, plan)]
    # Releases come first: an address that is held again needs its slot free, one that goes home needs itself free.
    books.do(released(each.held) for each in strays)
    books.do(released(each) for each in freed)
    books.do(transferred(each, owner_of(each.labels[HANDED_FROM])) for each in back)  # together: two may swap
    books.do(_returned(each) for each in back)
    books.do(modified(each, plan=None, labels=_without(each, HANDED_FROM)) for each in stays)
    books.do(_parked(each, one, plan) for one in instances if _waits_for(one, plan) for each in _kept_for(one, plan))
    gone = {place_of(each) for each in (*back, *freed, *(stray.held for stray in strays))}
    for instance in instances:
        if _waits_for(instance, plan):
            _keep(books, instance, plan, gone)
            _settle(books, instance, deployment, plan, gone=gone,
                    gets=any(each.labels[HANDED_FROM] == instance.uuid for each in back))  # fmt: skip
        elif goes_with(instance, deployment, plan):
            books.remove(instance)
        elif goes_back(deployment, plan):
            # It waits for nothing of the plan, but the deployment's manifest is the old one again.
            after = replace(instance, **as_before(instance, deployment, plan))
            books.write(_still_making(instance, after, plan, [told(each) for each in instance.wanted]))
    books.do(brought_home(strays, ground))
    ended = _ended(books, [one for one in instances if not _waits_for(one, plan)], plan)
    return TakenBack(books.operations, [*freed, *ended], books.instances)


def _keep(books: Books, instance: DeploymentInstance, plan: str, gone: set[Place]) -> None:
    """Let an instance keep what a plan was to take from it: it is held again, and promised to nobody."""
    # An address that is freed, or goes back to another instance, cannot be changed for this instance any more.
    drained = [each for each in _drained(instance, plan) if place_of(each) not in gone]
    books.do(modified(each, state=str(State.HELD), labels=undrained(each)) for each in drained)
    noted = [each for each in instance.wanted if HANDED_TO in each.labels and place_of(each) not in gone]
    books.do(modified(each, labels=undrained(each)) for each in noted)


def _ended(books: Books, instances: Sequence[DeploymentInstance], plan: str) -> list[Holding]:
    """End the VMs of a plan that later ones overtook; return what is free by it."""
    those = [(one, [each for each in one.earlier if each.plan == plan]) for one in instances]
    left = {each.uuid for each in books.instances}
    return [held for one, ended in those if ended and one.uuid in left for held in books.end(one, ended)]


def _goes_home(instance: DeploymentInstance, deployment: Deployment | None, plan: str) -> bool:
    """Tell whether an instance is what it was before a plan, and so is where its addresses are."""
    return _waits_for(instance, plan) or (goes_back(deployment, plan) and instance.plan is None)


def _waits_for(instance: DeploymentInstance, plan: str) -> bool:
    """Tell whether an instance waits for a plan; stopped hard it waits for no VM, but has what was reserved."""
    if instance.plan == plan:
        return True
    if not instance.rests or instance.is_deleted or (instance.former is not None and instance.former["plan"] != plan):
        return False
    reserved = any(each.plan == plan for each in instance.wanted)
    return reserved or bool(_drained(instance, plan)) or bool(strays_of(instance, plan))


def _drained(instance: DeploymentInstance, plan: str) -> list[Holding]:
    given_up = (each for each in instance.parting if each.labels.get(DRAINED_BY) == plan)
    return [each for each in given_up if not is_overtaken(each)]


def _own(instance: DeploymentInstance, plan: str) -> list[Holding]:
    """Return what an instance has when a plan is taken back, without anything that changed hands."""
    return [*_drained(instance, plan), *(each for each in instance.wanted if not _is_reserved(each, plan))]


def _is_reserved(held: Holding, plan: str) -> bool:
    """Tell whether a plan reserved an address, or one that it overtook and is taken back with."""
    if is_overtaken(held):
        return plan in (held.plan, held.labels.get(DRAINED_BY))
    return held.plan == plan and held.carrier is None


def _survivors(instance: DeploymentInstance, plan: str) -> tuple[Making, ...]:
    """Return the VMs that are perhaps being made for an instance still, when a plan is taken back for it."""
    return tuple(each for each in instance.earlier if each.then != ENDS and each.plan != plan)


def _kept_for(instance: DeploymentInstance, plan: str) -> list[Holding]:
    """Return what a plan had of an earlier VM's, which is perhaps being made still."""
    theirs = _survivors(instance, plan)
    reserved = (each for each in instance.holdings if _is_reserved(each, plan))
    return [each for each in reserved if any(making.has(each) for making in theirs)]


def _parked(held: Holding, instance: DeploymentInstance, plan: str) -> Operation:
    """Keep an address for an earlier VM, as before the plan that is taken back."""
    resumed = _resumed(instance, plan)
    first = next(each for each in _survivors(instance, plan) if each.has(held))
    whose = resumed if resumed is not None and resumed.has(held) else first  # it is wanted again, whoever else has it
    state = State.HELD if whose is resumed else State.DRAINING
    return modified(held, state=str(state), plan=whose.plan or plan, labels=undrained(held))


def _sorted_out(
    instances: Sequence[DeploymentInstance], plan: str
) -> tuple[list[Holding], list[Holding], list[Holding]]:
    """Sort what a plan reserved and no VM carries: what goes back, what stays with who has it now, what is freed."""
    waiting = [each for each in instances if _waits_for(each, plan)]
    kept = {place_of(each) for one in waiting for each in _kept_for(one, plan)}
    reserved = [
        each for one in waiting for each in one.holdings if _is_reserved(each, plan) and place_of(each) not in kept
    ]
    # An instance that has an address of its own in a network, or goes, can do without one that changed hands.
    own = {(one.uuid, each.labels.get(MOVED_FROM, each.network)) for one in waiting for each in _own(one, plan)}
    needless = own | {(one.uuid, each.network) for one in waiting if one.is_new for each in one.holdings}
    takers = {each.uuid for each in waiting if not each.leaving}
    given = [each for each in reserved if each.labels.get(HANDED_FROM) in takers]
    # A giver gets at most one address back in each network; reversed, so that the first one stays in the dict.
    first = {(each.labels[HANDED_FROM], each.network): each for each in reversed(given)}
    back = [each for place, each in first.items() if place not in own]  # who has another by now needs it no more
    while True:  # who would be left with nothing keeps it; so whom he had it from may have to keep something, too
        served = needless | {(each.labels[HANDED_FROM], each.network) for each in back}
        left = [each for each in back if (each.owner.id, each.network) in served]
        if len(left) == len(back):
            break
        back = left
    gone = {place_of(each) for each in back}
    # The rest: what changed hands and is needed stays, everything else is freed.
    others = [each for each in reserved if place_of(each) not in gone]
    handed = [each for each in others if HANDED_FROM in each.labels and not is_overtaken(each)]
    stays = [each for each in handed if (each.owner.id, each.network) not in served]
    gone |= {place_of(each) for each in stays}
    return back, stays, [each for each in others if place_of(each) not in gone]


def _settle(
    books: Books,
    instance: DeploymentInstance,
    deployment: Deployment | None,
    plan: str,
    *,
    gone: set[Place],
    gets: bool,
) -> None:
    """Let an instance wait for nothing, or for what it waited before; one that never was, and has nothing, is gone."""
    before, resumed = as_before(instance, deployment, plan), _resumed(instance, plan)
    survivors = _survivors(instance, plan)
    theirs = {place_of(each) for each in _kept_for(instance, plan)}
    keeps = gets or any(place_of(each) not in gone | theirs for each in instance.holdings)
    rest: dict[str, Any] = {"plan": None, "swaps": False, "waits": (), "meant": None}
    if instance.is_new and resumed is None and not keeps and not before.get("errand"):
        if survivors:  # it goes when it is known what became of these
            books.change(instance, **rest, leaving=True, former=None, earlier=survivors)
        else:
            books.remove(instance)
        return
    back = replace(instance, **{**rest, "leaving": False, "earlier": survivors, **before})
    if resumed is not None:
        made_once = {"plan": plan} if back.is_new else back.former  # it is there by no plan that could be taken back
        waits = replace(back, plan=resumed.plan, failed=False, former=made_once)
        left = tuple(each for each in survivors if each is not resumed)
        back = replace(waits, earlier=left) if waits.is_told else back
    own = [told(each) for each in _own(instance, plan)]
    books.write(_still_making(instance, back, plan, own))


def _still_making(
    before: DeploymentInstance, after: DeploymentInstance, plan: str, addresses: Collection[str]
) -> DeploymentInstance:
    """Return an instance as it is when a plan is taken back; a VM that is made with what it was to have is earlier.

    So it is where a VM was to be made for no plan: in place of one that was lost, or since the instance was started.
    """
    making = before.making
    if before.plan is not None or not before.is_told or making.plan == plan:
        return after
    same = all(getattr(before, name) == getattr(after, name) for name in (*MADE_AS, "snapshot"))
    if same and after.is_told and set(making.addresses) == set(addresses):
        return after
    return replace(after, earlier=(*after.earlier, making))


def _resumed(instance: DeploymentInstance, plan: str) -> Making | None:
    """Return the VM that an instance waits for again when a plan is taken back: on all that it is to keep then."""
    if instance.vm is not None or instance.state == DETACHED:
        return None
    has = {told(each) for each in (*_own(instance, plan), *_kept_for(instance, plan))}
    return next((each for each in instance.earlier if each.then == RESUMES and has == set(each.addresses)), None)


def _returned(held: Holding) -> Operation:
    return ModifyHolding(
        network=held.network, address=held.address, owner=owner_of(held.labels[HANDED_FROM]), plan=None,
        state=str(State.HELD), labels=_without(held, HANDED_FROM),
    )  # fmt: skip


def _without(held: Holding, label: str) -> dict[str, str]:
    return {name: text for name, text in held.labels.items() if name != label}
