"""Places the instances of a group: by static addresses if it asks for any, evenly over its AZs if not."""

from collections.abc import Collection, Sequence

from tenure.integrations.bosh.model.document_model import CloudConfig, InstanceGroup
from tenure.integrations.bosh.placement.az_balancing import balance
from tenure.integrations.bosh.placement.ignored_instances import check_ignored
from tenure.integrations.bosh.placement.listed_vips import give_vips
from tenure.integrations.bosh.placement.placement_model import Placement, Present, by_place, unused_indexes
from tenure.integrations.bosh.placement.static.place_static import place_static
from tenure.integrations.bosh.placement.static.static_lists import list_static


def place(
    group: InstanceGroup, config: CloudConfig, present: Sequence[Present], taken: Collection[int] = frozenset()
) -> Placement:
    """Tell which instances a group is to have, where, and with which static addresses; or refuse.

    The group is one that was read: it asks for as many static addresses as it has instances, all in pools of its AZs.

    A new instance gets the lowest index that nobody in the group has: those that go have theirs until they are gone.
    ``taken`` are indexes of instances that were to go before, and are still there.
    """
    check_ignored(group, config, present)
    networks = list_static(group, config)
    new = unused_indexes([*(each.index for each in present), *taken])
    placed, obsolete = place_static(group, networks, present, new) if networks else balance(group, present, new)
    placed = give_vips(group, config, sorted(placed, key=by_place))
    return Placement(tuple(placed), tuple(sorted(obsolete, key=by_place)))
