"""A plan taken back: what it reserved is free again, what it gave up is kept, what changed hands goes back.

Only instances that still wait for the plan are touched, and of theirs only what no VM carries. What came from another
instance goes back to it, unless whoever has it now would be left with nothing: the one that it gave its own to may have
gone on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.doors.deployments.homing import Ground, brought_home, strays_of
from tenure.doors.deployments.model import DETACHED
from tenure.doors.deployments.parting import Books
from tenure.doors.deployments.records import Deployment, Instance, Place, is_overtaken, owner_of, place_of
from tenure.doors.deployments.reserving import (
    DRAINED_BY,
    HANDED_FROM,
    HANDED_TO,
    MOVED_FROM,
    modified,
    released,
    transferred,
    undrained,
)
from tenure.doors.deployments.undoing import as_before, goes_back, goes_with
from tenure.kernel.values import Holding, State
from tenure.service.operations import ModifyHolding, Operation


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What taking a plan back does, what becomes free by it, and which instances are left."""

    operations: Sequence[Operation]
    freed: Sequence[Holding]
    left: Sequence[Instance]


def take_back(instances: Sequence[Instance], deployment: Deployment | None, plan: str, ground: Ground) -> TakenBack:
    """Return what takes a plan back, as far as no VM carries what it reserved.

    Where a later plan overtook it, only that is freed which was kept for a VM that it might be making.
    """
    back, stays, freed = _sorted_out(instances, plan)
    gone = {place_of(each) for each in (*back, *freed)}
    books = Books(instances)
    strays = [each for one in instances if _goes_home(one, deployment, plan) for each in strays_of(one, plan)]
    books.do(released(each.held) for each in strays)
    gone |= {place_of(each.held) for each in strays}
    books.do(released(each) for each in freed)
    books.do(transferred(each, owner_of(each.labels[HANDED_FROM])) for each in back)  # together: two may swap
    books.do(_returned(each) for each in back)
    books.do(modified(each, plan=None, labels=_without(each, HANDED_FROM)) for each in stays)
    for instance in instances:
        if _waits_for(instance, plan) and instance.is_deleted:
            _let_leave(books, instance)
        elif _waits_for(instance, plan):
            drained = [each for each in _drained(instance, plan) if place_of(each) not in gone]
            books.do(modified(each, state=str(State.HELD), labels=undrained(each)) for each in drained)
            noted = [each for each in instance.wanted if HANDED_TO in each.labels and place_of(each) not in gone]
            books.do(modified(each, labels=undrained(each)) for each in noted)
            _settle(books, instance, deployment, plan, gone=gone,
                    gets=any(each.labels[HANDED_FROM] == instance.uuid for each in back))  # fmt: skip
        elif goes_with(instance, deployment, plan):
            books.remove(instance)
        elif goes_back(deployment, plan):
            books.change(instance, **as_before(instance, deployment, plan))
    books.do(brought_home(strays, ground))
    overtaken: list[Holding] = []
    for instance in instances:
        if not _waits_for(instance, plan) and (those := _overtaken(instance, plan)):
            overtaken += books.give_up(instance, those)
    deleted = [one for one in instances if _waits_for(one, plan) and one.is_deleted and one.vm is None]
    gone_with = [each for one in deleted for each in one.holdings]
    return TakenBack(books.operations, [*freed, *overtaken, *gone_with], books.instances)


def _let_leave(books: Books, instance: Instance) -> None:
    """Let go who leaves with its deployment: no VM is being made for it any more, so it goes with the one it has."""
    if instance.vm is None:
        books.lose(instance)
    else:
        books.change(instance, plan=None, overtakes=False)


def _goes_home(instance: Instance, deployment: Deployment | None, plan: str) -> bool:
    """Tell whether an instance is what it was before a plan, and so is where its addresses are."""
    return _waits_for(instance, plan) or (goes_back(deployment, plan) and instance.plan is None)


def _overtaken(instance: Instance, plan: str) -> list[Holding]:
    return [each for each in instance.overtaken if each.plan == plan]


def _waits_for(instance: Instance, plan: str) -> bool:
    """Tell whether an instance waits for a plan; stopped hard it waits for no VM, but has what was reserved."""
    if instance.plan == plan:
        return True
    if not instance.rests and instance.state != DETACHED:
        return False
    reserved = any(plan in (each.plan, each.labels.get(DRAINED_BY)) for each in instance.holdings)
    return reserved or bool(strays_of(instance, plan))


def _drained(instance: Instance, plan: str) -> list[Holding]:
    given_up = (each for each in instance.parting if each.labels.get(DRAINED_BY) == plan)
    return [each for each in given_up if not is_overtaken(each)]


def _own(instance: Instance, plan: str) -> list[Holding]:
    """Return what an instance has when a plan is taken back, without anything that changed hands."""
    return [*_drained(instance, plan), *(each for each in instance.wanted if not _is_reserved(each, plan))]


def _is_reserved(held: Holding, plan: str) -> bool:
    """Tell whether a plan reserved an address, or one that it overtook and is taken back with."""
    if is_overtaken(held):
        return plan in (held.plan, held.labels.get(DRAINED_BY))
    return held.plan == plan and held.carrier is None


def _sorted_out(instances: Sequence[Instance], plan: str) -> tuple[list[Holding], list[Holding], list[Holding]]:
    """Sort what a plan reserved and no VM carries: what goes back, what stays with who has it now, what is freed."""
    waiting = [each for each in instances if _waits_for(each, plan) and not each.is_deleted]
    reserved = [each for one in waiting for each in one.holdings if _is_reserved(each, plan)]
    own = {(one.uuid, each.labels.get(MOVED_FROM, each.network)) for one in waiting for each in _own(one, plan)}
    needless = own | {(one.uuid, each.network) for one in waiting if one.is_new for each in one.holdings}
    takers = {each.uuid for each in waiting if not each.leaving}
    given = [each for each in reserved if each.labels.get(HANDED_FROM) in takers]
    first = {(each.labels[HANDED_FROM], each.network): each for each in reversed(given)}
    back = [each for place, each in first.items() if place not in own]  # who has another by now needs it no more
    while True:  # who would be left with nothing keeps it; so whom he had it from may have to keep something, too
        served = needless | {(each.labels[HANDED_FROM], each.network) for each in back}
        left = [each for each in back if (each.owner.id, each.network) in served]
        if len(left) == len(back):
            break
        back = left
    gone = {place_of(each) for each in back}
    others = [each for each in reserved if place_of(each) not in gone]
    handed = [each for each in others if HANDED_FROM in each.labels and not is_overtaken(each)]
    stays = [each for each in handed if (each.owner.id, each.network) not in served]
    gone |= {place_of(each) for each in stays}
    return back, stays, [each for each in others if place_of(each) not in gone]


def _settle(
    books: Books, instance: Instance, deployment: Deployment | None, plan: str, *, gone: set[Place], gets: bool
) -> None:
    """Let an instance wait for nothing, as before; one that never was and has nothing is not written down any more."""
    keeps = any(place_of(each) not in gone for each in instance.holdings)
    if instance.is_new and not keeps and not gets:
        books.remove(instance)
    else:
        before = as_before(instance, deployment, plan)
        books.change(instance, plan=None, swaps=False, overtakes=False, leaving=False, waits=(), meant=None, **before)


def _returned(held: Holding) -> Operation:
    return ModifyHolding(
        network=held.network, address=held.address, owner=owner_of(held.labels[HANDED_FROM]), plan=None,
        state=str(State.HELD), labels=_without(held, HANDED_FROM),
    )  # fmt: skip


def _without(held: Holding, label: str) -> dict[str, str]:
    return {name: text for name, text in held.labels.items() if name != label}
