"""What instances give up when a VM is replaced or gone: it is free, or becomes the one's who waits for it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tenure.integrations.bosh.planning.step_operations import (
    HANDED_TO,
    modified,
    received,
    released,
    rewritten,
    transferred,
)
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.integrations.bosh.state.pending_vms import Making, told
from tenure.integrations.bosh.state.vm_index import Vm, exchanged
from tenure.kernel.holdings.fingerprint import mark_of
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.service.apply.operations import ExpectHolding, Operation, ReleaseOwner


class Books:
    """A deployment's instances while a report is taken: what each becomes, and what is done to addresses on the way.

    ``vms`` are those that may come and go by it.
    """

    def __init__(self, instances: Iterable[DeploymentInstance], vms: Mapping[str, Vm] | None = None) -> None:
        self._before = {each.uuid: each for each in instances}
        self._now = dict(self._before)
        self._vms = vms or {}
        self._done: list[Operation] = []

    @property
    def operations(self) -> list[Operation]:
        """Return all that is done: first to addresses, then to papers, of which each is written once."""
        changed = [each for uuid, each in self._now.items() if each != self._before[uuid]]
        gone = [each for uuid, each in self._before.items() if uuid not in self._now]
        written = [operation for each in changed for operation in rewritten(self._before[each.uuid], each)]
        # The papers of VMs in the same apply: of two reports of one VM in one moment, one is refused.
        return [*self._done, *written, *(each.removed() for each in gone), *self._exchanged()]

    def _exchanged(self) -> list[Operation]:
        before, now = ({each.vm for each in some.values()} for some in (self._before, self._now))
        deployments = {each.deployment for each in self._before.values()}
        return [operation for each in deployments for operation in exchanged(self._vms, each, before, now)]

    @property
    def instances(self) -> list[DeploymentInstance]:
        """Return the instances as they are then."""
        return list(self._now.values())

    def do(self, operations: Iterable[Operation]) -> None:
        """Do something to addresses."""
        self._done.extend(operations)

    def change(self, instance: DeploymentInstance, **changes: Any) -> DeploymentInstance:
        """Let an instance be another from now on."""
        # On the instance as it is by now: the caller may have it as it was before.
        self._now[instance.uuid] = replace(self._now[instance.uuid], **changes)
        return self._now[instance.uuid]

    def write(self, instance: DeploymentInstance) -> None:
        """Let an instance be as it is told from now on."""
        self._now[instance.uuid] = instance

    def let_go(self, those: Iterable[Holding]) -> None:
        """Hand over what somebody waits for, and free the rest."""
        for held in those:
            heir = self._heir(held)
            if heir is None:
                # A release compares only the generation, which a promise leaves as it is; as_read notices the promise.
                self._done += [as_read(held), released(held)]
            else:
                self._hand_over(held, heir)

    def end(self, instance: DeploymentInstance, those: Sequence[Making], **changes: Any) -> Sequence[Holding]:
        """Let VMs be made no more, and let go what was reserved for them alone; return that.

        What was the instance's own before becomes another's who waits for it, or is kept. Who leaves, and has no VM,
        goes with all it has once none is perhaps being made any more.
        """
        instance = self._now[instance.uuid]
        left = replace(instance, earlier=tuple(each for each in instance.earlier if each not in those), **changes)
        if left.leaving and left.vm is None and not left.earlier:
            self.lose(instance)
            return instance.holdings
        reserved = (each for each in instance.holdings if each.plan is not None and each.carrier is None)
        theirs = (each for each in reserved if any(making.has(each) for making in those))
        needless = [each for each in theirs if _is_needless(left, each)]
        self.let_go(needless)
        own = (each for each in left.parting if each.plan is None and each.carrier is None)
        # With a VM, these wait for the report of the next one; without, only a VM in the making can need them.
        if left.vm is None:
            self.let_go(each for each in own if self._heir(each) is not None and not left.is_under_way(each))
        self.change(instance, earlier=left.earlier, **changes)
        return needless

    def without_vm(self, instance: DeploymentInstance, **changes: Any) -> None:
        """Take an instance's VM away: what others wait for becomes theirs, and it keeps the rest.

        What an earlier one may come up on nobody gets.
        """
        for held in instance.holdings:
            heir = None if any(each.has(held) for each in instance.earlier) else self._heir(held)
            if heir is not None:
                self._hand_over(held, heir)
            elif held.carrier is not None:
                self._done.append(modified(held, carrier=None))
        self.change(instance, **_without_vm(instance), **changes)

    def take_vm(self, instance: DeploymentInstance, *, is_gone: bool) -> None:
        """Take an instance's VM away and leave it all that it has: another one may still come up on that.

        If it is not sure that the VM is gone, what it had is kept as for one that is being made: what is told of one
        in its place is told of it, unless that one is of a plan.
        """
        carried = [held for held in instance.holdings if held.carrier is not None]
        self._done += [modified(held, carrier=None) for held in carried]
        after = self.change(instance, **_without_vm(instance))
        is_known = after.rests and after.is_told
        perhaps = tuple(told(held) for held in carried if not (is_known and after.making.has(held)))
        if perhaps and not is_gone:
            self.change(instance, earlier=(*instance.earlier, Making(None, perhaps)))

    def lose(self, instance: DeploymentInstance, **changes: Any) -> None:
        """Take an instance's VM away; with it goes an instance that was to leave."""
        if not instance.leaving:
            self.without_vm(instance, **changes)
            return
        self.let_go(instance.holdings)
        # This frees also what the owner got by another door after its holdings were read.
        self._done.append(ReleaseOwner(owner=instance.owner))
        self.remove(instance)

    def remove(self, instance: DeploymentInstance) -> None:
        """Let an instance be written down no more."""
        del self._now[instance.uuid]

    def _heir(self, held: Holding) -> DeploymentInstance | None:
        """Find who waits for an address: a promise holds only as long as the other one wants it."""
        heir = self._now.get(held.labels.get(HANDED_TO, ""))
        if heir is None or heir.leaving:
            return None
        waits = any((each["network"], each["address"]) == (held.network, held.address) for each in heir.waits)
        return heir if waits else None

    def _hand_over(self, held: Holding, heir: DeploymentInstance) -> None:
        self._done += [transferred(held, heir.owner), received(held, heir.owner, heir.plan)]
        self.change(heir, waits=tuple(each for each in heir.waits if each["network"] != held.network))


def _is_needless(instance: DeploymentInstance, held: Holding) -> bool:
    """Tell whether what was reserved for an instance is not wanted any more, and no VM is perhaps being made on it."""
    return (instance.leaving or held.state is State.DRAINING) and not instance.is_under_way(held)


def _without_vm(instance: DeploymentInstance) -> dict[str, Any]:
    return {"vm": None, "lost_vm": instance.vm or instance.lost_vm}


def as_read(held: Holding) -> Operation:
    """Return the operation that makes sure that nobody was promised an address since it was read."""
    return ExpectHolding(
        network=held.network, address=held.address, owner=held.owner, generation=held.generation,
        mark=mark_of(held.row),
    )  # fmt: skip
