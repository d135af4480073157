"""A deployment's plan, before anything is asked of the ledger: who stays, who comes, who goes, and who needs what.

Pure: documents and what instances have go in, steps come out. Linear in instances.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tenure.integrations.bosh.model.address_diff import Bound, Has, Wants, bind
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import (
    CREATE_SWAP_DELETE,
    DETACHED,
    DYNAMIC,
    ERRAND,
    VIP,
    CloudConfig,
    InstanceGroup,
    Manifest,
    Properties,
)
from tenure.integrations.bosh.placement import Placed, Placement, Present, adopt, place
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, Place, place_of
from tenure.integrations.bosh.state.pending_vms import Making
from tenure.integrations.bosh.state.vm_settings import settings_of, without_hints
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings.holding_model import Holding


@dataclass(frozen=True, slots=True)
class Promise:
    """An address that another holds and does not need any more. ``now``: no VM has or gets it, so nobody waits."""

    held: Holding
    of: str
    now: bool

    @property
    def place(self) -> Place:
        """Return where it is."""
        return place_of(self.held)


@dataclass(frozen=True, slots=True)
class Step:
    """What a plan does for one instance: ``before`` is None for a new one, ``after`` for one that leaves.

    ``swaps``: it gets a new VM on new addresses beside the old one (create-swap-delete). ``gets``: which of its new
    addresses others hand over to it. ``goes``: how one that leaves is until its VMs are gone.
    """

    before: DeploymentInstance | None
    after: DeploymentInstance | None
    bound: Bound
    swaps: bool = False
    gets: tuple[Promise, ...] = ()
    goes: DeploymentInstance | None = None

    @property
    def ends(self) -> bool:
        """Tell whether an instance is gone with the plan: it leaves, has no VM, and none is perhaps being made."""
        return self.after is None and self.instance.vm is None and not self.instance.is_awaited

    @property
    def moves(self) -> bool:
        """Tell whether an instance gets an address, or gives one up that it was to keep until now."""
        had = () if self.before is None else self.before.wanted
        places = {place_of(each) for each in had}
        return bool(self.bound.new) or any((each.network, each.position) in places for each in self.bound.obsolete)

    @property
    def calls_off(self) -> bool:
        """Tell whether a VM is perhaps being made, and none is wanted any more: as after a recreate."""
        if self.before is None or self.after is None or self.after.ignored:
            return False
        return self.before.plan is not None and self.before.is_told and self.after.plan is None

    @property
    def instance(self) -> DeploymentInstance:
        """Return the instance: as it will be, or as it was if it leaves."""
        found = self.after or self.before
        assert found is not None
        return found

    def takes(self, network: str) -> bool:
        """Tell whether what it wants in a network is to be reserved: nobody hands it over."""
        return all(promise.held.network != network for promise in self.gets)


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for: whether all VMs are to be made anew, and under which name the plan goes.

    ``errands``: groups that are run now. Others of their kind rest, unless they wait for a VM from before: nothing is
    reserved for them, and they wait for none.
    ``fixed``: instances (uuids) whose VMs are to be replaced because they do not answer; never beside the old one.
    ``hand_over``: what an instance gives up may be promised to another. ``passed_over``: what was chosen from VIP pools
    when this was tried before, and could not be had. ``begun``: by uuid, the settings of VMs that are perhaps
    being made for earlier plans; the plan's own where nothing is said.
    """

    plan: str
    recreate: bool = False
    errands: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    hand_over: bool = False
    passed_over: frozenset[int] = frozenset()
    begun: Mapping[str, Properties] = field(default_factory=dict)

    def rests(self, group: InstanceGroup, instance: DeploymentInstance) -> bool:
        """Tell whether an instance is of an errand that is not run, now or still: then it waits for its VM."""
        return group.lifecycle == ERRAND and group.name not in self.errands and instance.rests


def draft(
    manifest: Manifest,
    config: CloudConfig,
    instances: Sequence[DeploymentInstance],
    order: Order,
    new_uuid: Callable[[], str],
) -> list[Step]:
    """Return the steps of a plan: groups as the manifest lists them, in a group by AZ and index; then who leaves."""
    known = {each.uuid: each for each in instances}
    by_group: dict[str, list[DeploymentInstance]] = {}
    for instance in instances:
        by_group.setdefault(instance.group, []).append(instance)
    steps: list[Step] = []
    seen: set[str] = set()
    for group in manifest.groups:
        taken = {each.index for each in by_group.get(group.name, ()) if each.leaving}
        present = adopt(group, config, _present(group, by_group), taken)
        seen |= {each.uuid for each in present}
        placement = place(group, config, present, taken)
        steps += _steps(manifest.name, group, config, placement, known, order, new_uuid)
    left = [each for each in instances if each.uuid not in seen]
    return [*(step for step in steps if step.after), *(step for step in steps if not step.after), *map(_leaves, left)]


def _present(group: InstanceGroup, by_group: Mapping[str, Sequence[DeploymentInstance]]) -> dict[str, list[Present]]:
    """Return the instances of a group, and of those that it takes over, without those that are to go already."""
    names = {group.name, *(source.name for source in group.migrated_from)}
    return {name: [_shown(each) for each in by_group.get(name, ()) if not each.leaving] for name in names}


def _shown(instance: DeploymentInstance) -> Present:
    """Show an instance to whoever places them; one that is left alone with what it is to have, and not what it had."""
    addresses: dict[str, list[int]] = {}
    has = replace(instance, holdings=instance.wanted).has if instance.ignored else instance.has
    for each in sorted(has, key=lambda each: not each.carried):  # of several the VM's own comes first
        addresses.setdefault(each.network, []).append(each.position)
    for wait in instance.waits if instance.ignored else ():
        addresses.setdefault(wait["network"], []).append(parse_address(wait["address"]))
    return Present(
        uuid=instance.uuid, index=instance.index, az=instance.az, ignored=instance.ignored, has_disk=instance.disk,
        has_vm=instance.vm is not None, addresses={name: tuple(found) for name, found in addresses.items()},
    )  # fmt: skip


def _steps(
    deployment: str,
    group: InstanceGroup,
    config: CloudConfig,
    placement: Placement,
    known: Mapping[str, DeploymentInstance],
    order: Order,
    new_uuid: Callable[[], str],
) -> list[Step]:
    said = _networks_of(group)
    steps: list[Step] = []
    for placed in placement.placed:
        before = None if placed.present is None else known[placed.present.uuid]
        uuid = new_uuid() if before is None else before.uuid
        base = DeploymentInstance(deployment, group.name, uuid, placed.index) if before is None else before
        # An ignored instance changes its name all the same: its old group may be gone from the manifest.
        called = replace(base, group=group.name, index=placed.index)
        if before is not None and before.ignored:
            steps.append(_left_alone(group, config, placed, before, called))
            continue
        # snapshot and meant are dropped: the plan makes the instance with the cloud configs in force.
        after = replace(
            called, az=placed.az, disk=group.persistent_disk, networks=said, errand=group.lifecycle == ERRAND,
            snapshot=None, meant=None,
        )  # fmt: skip
        steps.append(_waiting(group, config, _step(group, config, placed, before, after, order), order))
    return [*steps, *(_leaves(known[each.uuid]) for each in placement.obsolete)]


def _waiting(group: InstanceGroup, config: CloudConfig, step: Step, order: Order) -> Step:
    """Return a step with what its instance waits for, and the VMs that it does not wait for any more."""
    before, after = step.before, step.instance
    recreate = order.recreate or after.uuid in order.fixed
    needs = not order.rests(group, after) and _needs_vm(step, config, recreate=recreate)
    earlier = () if before is None else _earlier(before, step, config, order, needs=needs)
    plan = order.plan if needs else None
    return replace(step, after=replace(after, plan=plan, failed=False, swaps=step.swaps, earlier=earlier, waits=()))


def _left_alone(
    group: InstanceGroup, config: CloudConfig, placed: Placed, before: DeploymentInstance, after: DeploymentInstance
) -> Step:
    """Leave an ignored instance as it is, also with what it waits for; refuse to change its networks.

    What it is about to give up, or to get from others, is no change of this plan.
    """
    promised = {wait["network"]: wait["address"] for wait in before.waits}
    wants = [wish for wish in _wants(group, config, placed) if not _is_promised(wish, promised)]
    has = replace(before, holdings=before.wanted).has
    if group.lifecycle == ERRAND and before.rests:
        wants = _of_those(wants, has)
    bound = bind(config, placed.az, has, wants)
    if bound.new or bound.obsolete:
        raise Refused(
            BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION,
            f"In instance group '{before.group}', an attempt was made to modify the networks of an ignored instance "
            f"'{before.name}'. Modifying ignored instances is not allowed.",
        )
    return Step(before, after, bound)


def _is_promised(wish: Wants, promised: Mapping[str, str]) -> bool:
    address = promised.get(wish.network)
    return address is not None and wish.address in (None, parse_address(address))


def _wants(group: InstanceGroup, config: CloudConfig, placed: Placed) -> list[Wants]:
    return [
        Wants(each.name, placed.static.get(each.name), each.nic_group)
        for each in group.networks
        if config.networks[each.name].kind != DYNAMIC
    ]


def _of_those(wants: Sequence[Wants], has: Sequence[Has]) -> list[Wants]:
    """Return the wishes of one that rests: what it has stays its own, and it gets nothing more."""
    return [wish for wish in wants if any(each.network == wish.network for each in has)]


def _step(
    group: InstanceGroup,
    config: CloudConfig,
    placed: Placed,
    before: DeploymentInstance | None,
    after: DeploymentInstance,
    order: Order,
) -> Step:
    has = () if before is None else before.has
    wants = _wants(group, config, placed)
    if order.rests(group, after):
        wants = _of_those(wants, has)
    bound = bind(config, placed.az, has, wants)
    if after.uuid not in order.fixed and swaps(group, config, bound, recreate=order.recreate, vm=after.vm):
        return Step(before, after, _beside(config, placed.az, has, wants), swaps=True)
    return Step(before, after, bound)


def _beside(config: CloudConfig, az: str | None, has: Sequence[Has], wants: Sequence[Wants]) -> Bound:
    """Bind for a VM beside the old one: what that carries is not for it, what an earlier plan reserved for it is."""
    fresh = bind(config, az, [each for each in has if not each.carried], wants)
    return Bound(fresh.kept, fresh.new, (*fresh.obsolete, *(each for each in has if each.carried)))


def _needs_vm(step: Step, config: CloudConfig, *, recreate: bool) -> bool:
    """Tell whether an instance's VM must be made, or made anew, before the plan is done with it.

    One that was stopped hard has none, and gets none before it is started.
    """
    after = step.instance
    if after.state == DETACHED:
        return False
    # Only what the VM carries counts: an address that no VM carries yet can go without a new VM.
    parts = any(each.carried for each in step.bound.obsolete)
    if step.before is None or after.vm is None or recreate or step.bound.new or parts:
        return True
    return after.made_with is None or _settings(step, config) != without_hints(after.made_with)


def _settings(step: Step, config: CloudConfig) -> Properties:
    """Return the settings of an instance that gets no new address."""
    names = {(kept.has.network, kept.has.position): kept.wants.network for kept in step.bound.kept}
    places = ((each, place_of(each)) for each in step.instance.holdings)
    held = [replace(each, network=names[place]) for each, place in places if place in names]
    return without_hints(settings_of(step.instance, config, held))


def _earlier(
    before: DeploymentInstance, step: Step, config: CloudConfig, order: Order, *, needs: bool
) -> tuple[Making, ...]:
    """Return the VMs that are perhaps being made with other settings than are wanted now.

    One that would have what is wanted now is this plan's from now on, and is told of by its name.
    """
    taken_over = needs and before.is_told and not _differs(before, step, config, order)
    return before.earlier if taken_over else before.makings


def _differs(before: DeploymentInstance, step: Step, config: CloudConfig, order: Order) -> bool:
    """Tell whether the VM that an instance waits for would not have what is wanted now."""
    given_up = {(each.network, each.position) for each in step.bound.obsolete}
    if step.bound.new or any(place_of(each) in given_up for each in before.wanted):
        return True
    begun = order.begun.get(before.uuid)
    # Where no settings are given, its VM is made with the deployment's cloud configs or, if it has them, older ones.
    if begun is None:
        return before.snapshot is not None
    return without_hints(begun) != _settings(step, config)


def swaps(group: InstanceGroup, config: CloudConfig, bound: Bound, *, recreate: bool, vm: str | None) -> bool:
    """Tell whether an instance gets all its addresses anew: a VM beside the old one cannot have the same."""
    if group.vm_strategy != CREATE_SWAP_DELETE or vm is None:
        return False
    # There is no second address to give: the old VM has the static IP or the VIP until it is deleted.
    if any(each.static_ips is not None or config.networks[each.name].kind == VIP for each in group.networks):
        return False
    return recreate or bool(bound.new) or any(each.carried for each in bound.obsolete)


def _leaves(instance: DeploymentInstance) -> Step:
    if instance.ignored:
        raise Refused(
            BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_DELETION,
            f"You are trying to delete instance group '{instance.group}', which contains ignored instance(s). "
            "Deleting ignored instances is not allowed.",
        )
    return Step(instance, None, Bound((), (), tuple(instance.has)), goes=leaving(instance))


def leaving(instance: DeploymentInstance) -> DeploymentInstance:
    """Return an instance that leaves: all VMs that are perhaps being made for it are earlier ones."""
    return replace(instance, leaving=True, earlier=instance.makings, meant=None)


def _networks_of(group: InstanceGroup) -> list[Properties]:
    return [
        {"name": each.name, "nic_group": each.nic_group, "defaults": sorted(each.defaults)} for each in group.networks
    ]
