"""What ``apply`` does to the plan: edits one after the other, then the final state judged and written."""

from collections.abc import Sequence
from dataclasses import replace

from tenure.kernel.addresses import format_address
from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.deadlines import is_over
from tenure.kernel.editing import edited, new_network
from tenure.kernel.edits import AddNetwork, Edit, RemoveNetwork, RemoveSubnet
from tenure.kernel.errors import AddressInUse, AlreadyExists, StillInUse
from tenure.kernel.judging import judge, lost_ground, new_gateways
from tenure.kernel.names import check_name
from tenure.kernel.ranges import AddressRange
from tenure.kernel.values import Entry, NetworkId, Row, SpaceId, State
from tenure.service.ground import Ground
from tenure.service.lane import Restart

EVICT_PAGE = 1000


async def add_network(ground: Ground, edit: AddNetwork) -> Network:
    """Add a network, and its space if there is none of that name."""
    name = check_name(edit.network, field="network")
    if any(name in configuration.networks for configuration in ground.now.values()):
        raise AlreadyExists("network", name)
    space_name = name if edit.space is None else check_name(edit.space, field="space")
    space = next((space for space, known in ground.now.items() if known.name == space_name), None)
    if space is not None and edit.space is None:
        hint = f"pass space={space_name!r} to share it"
        raise AlreadyExists("space", space_name, hint=hint, field="network")
    if space is None:
        try:
            space = await ground.tx.add_space(space_name)
        except AlreadyExists:  # made by somebody else since we looked
            raise Restart from None
        ground.now[space] = Configuration(space, space_name, 1)
    now_us = await ground.now_us()
    fresh = new_network(edit, await ground.tx.next_network(), edit.uuid or "")
    network = replace(fresh, created_us=now_us, modified_us=now_us)
    configuration = ground.now[space]
    ground.now[space] = replace(configuration, networks={**configuration.networks, name: network})
    ground.entries.append(Entry(edit.verb, space, network.id, details=edit.told()))
    return network


async def edit_plan(ground: Ground, edit: Edit) -> Network | None:
    """Make one edit; what it takes the ground from under is ended where that was asked for."""
    space = ground.space_of(check_name(edit.network, field="network"))
    network = ground.now[space].network(edit.network)
    new = _named_alike(ground.now[space], edited(ground.now[space], edit))
    if isinstance(edit, RemoveNetwork | RemoveSubnet) and edit.cascade:
        gone = network.subnets if isinstance(edit, RemoveNetwork) else [network.subnet(edit.subnet)]
        for subnet in gone:
            await _evict(ground, space, network.id, subnet.cidr.range)
    ground.now[space] = await _stamped(ground, new, network.id)
    ground.entries.append(Entry(edit.verb, space, network.id, details=edit.told()))
    return next((other for other in ground.now[space].networks.values() if other.id == network.id), None)


def _named_alike(before: Configuration, after: Configuration) -> Configuration:
    """Let a space that has one network, and its name, go on having its name."""
    own = list(before.networks) == [before.name] and len(after.networks) == 1
    return replace(after, name=next(iter(after.networks))) if own else after


async def _stamped(ground: Ground, plan: Configuration, number: NetworkId) -> Configuration:
    """Count the change of a network, one for all edits of an ``apply``, and note when it was made."""
    now_us = await ground.now_us()
    old = ground.before.get(plan.space)
    serial = 1 + next((known.serial for known in old.networks.values() if known.id == number), 0) if old else 1
    networks = {
        name: replace(network, serial=serial, modified_us=now_us) if network.id == number else network
        for name, network in plan.networks.items()
    }
    return replace(plan, networks=networks)


async def _evict(ground: Ground, space: SpaceId, network: NetworkId, where: AddressRange) -> None:
    """End a network's holdings in a range."""
    while rows := await ground.tx.rows_within(space, where.first, where.last, network=network, limit=EVICT_PAGE):
        await ground.remove(rows, None)


async def settle(ground: Ground) -> None:
    """Judge the final state of every edited space, and write it."""
    for space in ground.edited_spaces:
        old, new = ground.before.get(space), ground.now[space]
        judge(new, old)
        if old is not None:
            await _check_lost_ground(ground, old, new)
        await _check_gateways(ground, old or Configuration(space, new.name), new)
        await _write(ground, old, new)


async def _check_lost_ground(ground: Ground, old: Configuration, new: Configuration) -> None:
    """Refuse to leave holdings without a subnet."""
    for lost in lost_ground(old, new):
        await _sweep(ground, old.space)
        where, number = lost.range, lost.network.id
        rows = await standing(ground, old.space, where, number)
        if rows:
            raise StillInUse("network", lost.network.name, told_holders(rows), addresses=told_addresses(rows))


async def _sweep(ground: Ground, space: SpaceId) -> None:
    """Remove what is overdue in a space: an edit leaves no row without its ground."""
    await ground.now_us()  # read before, so that nothing is over by that time which was not removed
    while await ground.tx.is_due(space):
        await ground.sweep(await ground.tx.overdue(space))


def told_holders(rows: Sequence[Row]) -> list[str]:
    """Write who holds what, and in which state if it is not simply held."""
    states = {State.HELD: ""}
    return [f"{row.owner} ({format_address(row.first)}{states.get(row.state, f', {row.state}')})" for row in rows]


def told_addresses(rows: Sequence[Row]) -> list[str]:
    """Write what is held."""
    return [format_address(row.first) for row in rows]


async def standing(
    ground: Ground,
    space: SpaceId,
    where: AddressRange,
    network: NetworkId | None = None,
    state: State | None = None,
) -> Sequence[Row]:
    """Find holdings in a range, of the state that is asked for, up to a page that has some.

    Those whose time is over are nobody's any more and do not count; they are left where they are.
    """
    first = where.first
    while True:
        page = await ground.tx.rows_within(space, first, where.last, network=network, limit=EVICT_PAGE)
        now_us = await ground.now_us() if any(row.until_us is not None for row in page) else 0
        rows = [row for row in page if state in (None, row.state) and not is_over(row, now_us)]
        if rows or len(page) < EVICT_PAGE:
            return rows
        first = page[-1].last + 1


async def _check_gateways(ground: Ground, old: Configuration, new: Configuration) -> None:
    for gateway in new_gateways(old, new):
        await _sweep(ground, new.space)
        rows = await standing(ground, new.space, AddressRange(gateway, gateway))
        if rows:
            raise AddressInUse(format_address(gateway), rows[0].owner)


async def _write(ground: Ground, old: Configuration | None, new: Configuration) -> None:
    before = {} if old is None else {network.id: network for network in old.networks.values()}
    after = {network.id: network for network in new.networks.values()}
    gone = [number for number in before if number not in after]
    if gone:
        await ground.tx.remove_networks(gone)
    changed = [network for number, network in after.items() if before.get(number) is not network]
    await ground.tx.put_networks(new.space, changed)
    if after:
        if old is not None and old.name != new.name:
            await ground.tx.rename_space(new.space, new.name)
        await ground.tx.bump(new.space)
    else:
        await ground.tx.remove_space(new.space)
