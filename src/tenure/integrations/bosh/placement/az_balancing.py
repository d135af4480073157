"""Places instances without static addresses: evenly over the AZs, moving as few as possible."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from tenure.integrations.bosh.model.document_model import InstanceGroup
from tenure.integrations.bosh.placement.placement_model import Placed, Present, by_index


def balance(group: InstanceGroup, present: Sequence[Present], new: Iterator[int]) -> tuple[list[Placed], list[Present]]:
    """Place a group's instances; return them and those that go. Cost: linear in instances times AZs.

    Ignored ones keep their AZ, and so do those with disks, low index first. The rest go one by one to the AZ that has
    the fewest; of equal ones to one that has an instance waiting for a place, then by name. Who is in an AZ that is no
    longer wanted goes. ``new`` are the indexes of new ones.
    """
    azs = sorted(set(group.azs)) if group.azs else [None]
    pinned, loose = _pinned(group, azs, sorted(present, key=by_index))
    placed = [Placed(instance, instance.index, instance.az) for instance in pinned]
    filled = Counter(instance.az for instance in pinned)
    waiting = {az: deque(instance for instance in loose if instance.az == az) for az in azs}
    for _ in range(group.instances - len(pinned)):
        az = min(azs, key=lambda az: (filled[az], not waiting[az], az))
        instance = waiting[az].popleft() if waiting[az] else None
        placed.append(Placed(instance, next(new) if instance is None else instance.index, az))
        filled[az] += 1
    return placed, _without(present, placed)


def _pinned(
    group: InstanceGroup, azs: Iterable[str | None], ordered: Sequence[Present]
) -> tuple[list[Present], list[Present]]:
    """Tell who stays where it is in any case, and who may have to go; both low index first."""
    wanted = frozenset(azs)
    ignored = [instance for instance in ordered if instance.ignored]
    disks = [each for each in ordered if each.has_disk and not each.ignored and each.az in wanted]
    # Only disks are ever cut off: check_ignored refuses a group with fewer places than ignored instances.
    pinned = [*ignored, *disks][: group.instances]
    stays = {instance.uuid for instance in pinned}
    return pinned, [instance for instance in ordered if instance.uuid not in stays]


def _without(present: Iterable[Present], placed: Iterable[Placed]) -> list[Present]:
    stays = {each.present.uuid for each in placed if each.present is not None}
    return [instance for instance in present if instance.uuid not in stays]
