"""Instances of other groups that become a group's own (``migrated_from``)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import CloudConfig, InstanceGroup, MigratedFrom
from tenure.integrations.bosh.placement.placement_model import Present, by_index, unused_indexes


def adopt(
    group: InstanceGroup,
    config: CloudConfig,
    present_by_group: Mapping[str, Sequence[Present]],
    taken: Collection[int] = frozenset(),
) -> Sequence[Present]:
    """Return all instances that a group has now: its own, then those of the groups that it migrates from.

    An instance without an AZ gets the one that the manifest tells for its group; a group may migrate from itself for
    that alone. Indexes change only where two instances have the same: an own one keeps its, then whoever is listed
    first, and the others get the lowest that nobody has. ``taken`` are indexes of own ones that are about to go.
    """
    adopted = {instance.uuid: instance for instance in sorted(present_by_group.get(group.name, ()), key=by_index)}
    for source in group.migrated_from:
        _check_az_is_known(group, config, source)
        for instance in sorted(present_by_group.get(source.name, ()), key=by_index):
            # By uuid: a group that migrates from itself has these instances already.
            adopted[instance.uuid] = _in_az(group, source, instance)
    return _renumbered(adopted.values(), taken)


def _check_az_is_known(group: InstanceGroup, config: CloudConfig, source: MigratedFrom) -> None:
    if source.az is not None and (source.az not in (group.azs or ()) or source.az not in config.azs):
        told = f"is not in the list of availability zones of instance group '{group.name}'"
        raise _refusal(group, source, f"availability zone '{source.az}' {told}")


def _in_az(group: InstanceGroup, source: MigratedFrom, instance: Present) -> Present:
    if instance.az is None and source.az is None and group.azs:
        raise _refusal(group, source, f"availability zone of '{source.name}' is not specified")
    if instance.az is not None and source.az not in (None, instance.az):
        told = f"'{source.name}' belongs to availability zone '{instance.az}' and manifest specifies '{source.az}'"
        raise _refusal(group, source, told)
    return replace(instance, az=instance.az or source.az)


def _renumbered(instances: Iterable[Present], taken: Collection[int]) -> list[Present]:
    """Give new indexes to those who come too late for theirs."""
    # None is no instance, so an instance whose index is taken gets another one.
    first: dict[int, Present | None] = dict.fromkeys(taken)
    for instance in instances:
        first.setdefault(instance.index, instance)
    unused = unused_indexes(first)
    return [each if first[each.index] is each else replace(each, index=next(unused)) for each in instances]


def _refusal(group: InstanceGroup, source: MigratedFrom, why: str) -> Refused:
    told = f"Failed to migrate instance group '{source.name}' to '{group.name}', {why}"
    return Refused(BoshErrorKind.DEPLOYMENT_INVALID_MIGRATED_FROM_JOB, told)
