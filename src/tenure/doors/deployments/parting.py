"""What instances give up when a VM is replaced or gone: it is free, or becomes the one's who waits for it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tenure.doors.deployments.records import Instance
from tenure.doors.deployments.reserving import HANDED_TO, modified, received, released, rewritten, transferred
from tenure.kernel.marks import mark_of
from tenure.kernel.values import Holding
from tenure.service.operations import ExpectHolding, Operation, ReleaseOwner


class Books:
    """A deployment's instances while a report is taken: what each becomes, and what is done to addresses on the way."""

    def __init__(self, instances: Iterable[Instance]) -> None:
        self._before = {each.uuid: each for each in instances}
        self._now = dict(self._before)
        self._done: list[Operation] = []

    @property
    def operations(self) -> list[Operation]:
        """Return all that is done: first to addresses, then to papers, of which each is written once."""
        changed = [each for uuid, each in self._now.items() if each != self._before[uuid]]
        gone = [each for uuid, each in self._before.items() if uuid not in self._now]
        written = [operation for each in changed for operation in rewritten(self._before[each.uuid], each)]
        return [*self._done, *written, *(each.removed() for each in gone)]

    @property
    def instances(self) -> list[Instance]:
        """Return the instances as they are then."""
        return list(self._now.values())

    def do(self, operations: Iterable[Operation]) -> None:
        """Do something to addresses."""
        self._done.extend(operations)

    def change(self, instance: Instance, **changes: Any) -> Instance:
        """Let an instance be another from now on."""
        self._now[instance.uuid] = replace(self._now[instance.uuid], **changes)
        return self._now[instance.uuid]

    def write(self, instance: Instance) -> None:
        """Let an instance be as it is told from now on."""
        self._now[instance.uuid] = instance

    def let_go(self, those: Iterable[Holding]) -> None:
        """Hand over what somebody waits for, and free the rest."""
        for held in those:
            heir = self._heir(held)
            if heir is None:
                self._done += [as_read(held), released(held)]
            else:
                self._hand_over(held, heir)

    def without_vm(self, instance: Instance, **changes: Any) -> None:
        """Take an instance's VM away: what others wait for becomes theirs, and it keeps the rest."""
        for held in instance.holdings:
            heir = self._heir(held)
            if heir is not None:
                self._hand_over(held, heir)
            elif held.carrier is not None:
                self._done.append(modified(held, carrier=None))
        self.change(instance, vm=None, **changes)

    def forget_vm(self, instance: Instance) -> None:
        """Take an instance's VM away, which may still be somewhere: so nobody gets what it has."""
        self._done += [modified(held, carrier=None) for held in instance.holdings if held.carrier is not None]
        self.change(instance, vm=None)

    def lose(self, instance: Instance, **changes: Any) -> None:
        """Take an instance's VM away; with it goes an instance that was to leave."""
        if not instance.leaving:
            self.without_vm(instance, **changes)
            return
        self.let_go(instance.holdings)
        self._done.append(ReleaseOwner(owner=instance.owner))
        self.remove(instance)

    def remove(self, instance: Instance) -> None:
        """Let an instance be written down no more."""
        del self._now[instance.uuid]

    def _heir(self, held: Holding) -> Instance | None:
        """Find who waits for an address: a promise holds only as long as the other one wants it."""
        heir = self._now.get(held.labels.get(HANDED_TO, ""))
        if heir is None or heir.leaving:
            return None
        waits = any((each["network"], each["address"]) == (held.network, held.address) for each in heir.waits)
        return heir if waits else None

    def _hand_over(self, held: Holding, heir: Instance) -> None:
        self._done += [transferred(held, heir.owner), received(held, heir.owner, heir.plan)]
        self.change(heir, waits=tuple(each for each in heir.waits if each["network"] != held.network))


def as_read(held: Holding) -> Operation:
    """Return the operation that makes sure that nobody was promised an address since it was read."""
    return ExpectHolding(
        network=held.network, address=held.address, owner=held.owner, generation=held.generation,
        mark=mark_of(held.row),
    )  # fmt: skip
