"""What ``apply`` does to the plan: edits one after the other, then the final state judged and written."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange, parse_range
from tenure.kernel.errors import AddressInUse, AlreadyExists, StillInUse
from tenure.kernel.holdings.deadlines import is_over
from tenure.kernel.holdings.holding_model import Entry, NetworkId, Row, SpaceId, State
from tenure.kernel.names import check_name
from tenure.kernel.plan.apply_edit import edit_draft, new_network, with_network
from tenure.kernel.plan.edits import AddNetwork, Edit, RemoveNetwork, RemoveSubnet, Unreserve
from tenure.kernel.plan.invariants import judge, lost_ground, new_gateways
from tenure.kernel.plan.network_draft import NetworkDraft
from tenure.kernel.plan.plan_model import Configuration, Network, Subnet
from tenure.kernel.plan.side_effects import (
    kept_back_text,
    lost_pool_ground,
    newly_kept_back,
    side_effects,
    unreserved_already,
)
from tenure.service.allocator.lane import Restart
from tenure.service.allocator.overdue_pages import PAGE, MuchDue
from tenure.service.apply.cluster_rules import keep_apart
from tenure.service.apply.context import Ground

EVICT_PAGE = 1000


class Edited(NamedTuple):
    """The network that an edit was about. What it has become is known when all operations are done."""

    network: NetworkId


async def add_networks(ground: Ground, edits: Sequence[AddNetwork]) -> list[Edited]:
    """Add networks, and their spaces where there are none of that name. O(networks of the spaces they are added to)."""
    now_us = await ground.now_us()
    added: dict[SpaceId, dict[str, Network]] = {}
    homes: dict[str, SpaceId] = {}
    answers: list[Edited] = []
    for edit in edits:
        name = check_name(edit.network, field="network")
        if name in ground.homes or name in homes:
            raise AlreadyExists("network", name)
        space = homes[name] = await _space_for(ground, edit)
        fresh = new_network(edit, await ground.tx.next_network(), edit.uuid or "")
        added.setdefault(space, {})[name] = replace(fresh, created_us=now_us, modified_us=now_us)
        ground.entries.append(Entry(edit.verb, space, fresh.id, details=edit.told()))
        answers.append(Edited(fresh.id))
    for space, networks in added.items():
        ground.keep(replace(ground.now[space], networks={**ground.now[space].networks, **networks}))
    return answers


async def _space_for(ground: Ground, edit: AddNetwork) -> SpaceId:
    """Return the space that a network is added to; it is made if there is none of that name."""
    name = edit.network if edit.space is None else check_name(edit.space, field="space")
    space = ground.spaces.get(name)
    if space is not None and edit.space is None:
        raise AlreadyExists("space", name, hint=f"pass space={name!r} to share it", field="network")
    if space is None:
        try:
            space = await ground.tx.add_space(name)
        except AlreadyExists:  # made by somebody else since we looked
            raise Restart from None
        ground.keep(Configuration(space, name, 1))
    return space


async def edit_plan(ground: Ground, edits: Sequence[Edit]) -> list[Edited]:
    """Make edits that stand next to each other, in their order; what they take the ground from is ended if asked for.

    Cost: O(log subnets) for most edits, and O(networks + subnets) for each time that another network is turned to.
    """
    answers: list[Edited] = []
    for name, group in groupby(edits, key=lambda edit: check_name(edit.network, field="network")):
        answers.extend(await _edit_network(ground, name, list(group)))
    return answers


async def _edit_network(ground: Ground, name: str, edits: Sequence[Edit]) -> list[Edited]:
    """Make edits of one network, up to one that gives it another name or takes it away; then the rest, by itself."""
    space = ground.space_of(name)
    network = ground.now[space].network(name)
    draft, there = NetworkDraft(network), True
    done = 0
    while done < len(edits) and there and draft.network.name == name:
        edit = edits[done]
        # Found before the edit: afterwards the draft no longer has the subnet.
        gone = _to_evict(draft, network, edit)
        if gone:  # whoever is evicted leaves the plan as it was before this edit
            await _keep_draft(ground, space, name, draft if done else None)
            for subnet in gone:
                await _evict(ground, space, network.id, subnet.cidr.range)
        if isinstance(edit, Unreserve):
            hole = parse_range(edit.range)
            reserved = (kept.range for kept in draft.reserving(hole)[1].reserved)
            ground.warnings.setdefault(network.id, []).extend(unreserved_already(hole, reserved))
        there = edit_draft(draft, edit)
        ground.entries.append(Entry(edit.verb, space, network.id, details=edit.told()))
        done += 1
    if there:
        await _keep_draft(ground, space, name, draft)
    else:
        ground.keep(_named_alike(ground.now[space], with_network(ground.now[space], name, None)))
    answers = [Edited(network.id)] * done
    return answers if done == len(edits) else [*answers, *await _edit_network(ground, name, edits[done:])]


def _to_evict(draft: NetworkDraft, network: Network, edit: Edit) -> Sequence[Subnet]:
    """Return the subnets whose holdings an edit ends."""
    # ``is not True``: the edit itself refuses whatever is not a boolean.
    if not isinstance(edit, RemoveNetwork | RemoveSubnet) or edit.cascade is not True:
        return ()
    if isinstance(edit, RemoveSubnet):
        return (draft.find(check_name(edit.subnet, field="subnet"))[1],)
    # The edit refuses a network that is still connected.
    return () if draft.network.connections else draft.finished().subnets


async def _keep_draft(ground: Ground, space: SpaceId, name: str, draft: NetworkDraft | None) -> None:
    """Let the plan have what a draft has become."""
    if draft is None:
        return
    network = await _stamped(ground, space, draft.finished())
    ground.keep(_named_alike(ground.now[space], with_network(ground.now[space], name, network)))


def _named_alike(before: Configuration, after: Configuration) -> Configuration:
    """Let a space that has one network, and its name, go on having its name."""
    own = len(before.networks) == 1 == len(after.networks) and list(before.networks) == [before.name]
    return replace(after, name=next(iter(after.networks))) if own else after


async def _stamped(ground: Ground, space: SpaceId, network: Network) -> Network:
    """Count the change of a network, one for all edits of an ``apply``, and note when it was made."""
    return replace(network, serial=1 + ground.serial_before(space, network.id), modified_us=await ground.now_us())


async def _evict(ground: Ground, space: SpaceId, network: NetworkId, where: AddressRange) -> None:
    """End a network's holdings in a range."""
    while rows := await ground.tx.rows_within(space, where.first, where.last, network=network, limit=EVICT_PAGE):
        await ground.remove(rows, None)


async def settle(ground: Ground) -> None:
    """Judge the final state of every edited space, and write it."""
    for space in ground.edited_spaces:
        await keep_apart(ground, space)
        old, new = ground.before.get(space), ground.now[space]
        judge(new, old)
        if old is not None:
            await _check_lost_ground(ground, old, new)
        # A new space had no gateways before.
        await _check_gateways(ground, old or Configuration(space, new.name), new)
        await _note_side_effects(ground, old, new)
        await _write(ground, old, new)


async def _note_side_effects(ground: Ground, old: Configuration | None, new: Configuration) -> None:
    """Note what the edits did to networks beside what they say, for their answers."""
    before = {} if old is None else {network.id: network for network in old.networks.values()}
    for network in new.networks.values():
        known = before.get(network.id)
        if known is None or known is network:
            continue
        told = [*ground.warnings.get(network.id, ()), *side_effects(known, network)]
        for piece in lost_pool_ground(known, network):
            held = len(await standing(ground, new.space, piece, network.id))
            if held:
                count = f"{held} or more" if held >= EVICT_PAGE else held
                stay = "is held and stays held" if held == 1 else "are held and stay held"
                told.append(f"of {piece}, which lies in no pool any more, {count} {stay}")
        for subnet, position, why in newly_kept_back(known, network):
            rows = await standing(ground, new.space, AddressRange(position, position), network.id)
            text = kept_back_text(subnet, position, why, [row.owner for row in rows])
            told.extend([] if text is None else [text])
        ground.warnings[network.id] = told


async def _check_lost_ground(ground: Ground, old: Configuration, new: Configuration) -> None:
    """Refuse to leave holdings without a subnet."""
    for lost in lost_ground(old, new):
        # Only where ground is lost: most edits need no look at the deadlines.
        await _sweep(ground, old.space)
        where, number = lost.range, lost.network.id
        rows = await standing(ground, old.space, where, number)
        if rows:
            subnet = lost.subnet.name or str(lost.subnet.cidr)
            kind, name = ("network", lost.network.name) if lost.whole else ("subnet", subnet)
            raise StillInUse(kind, name, told_holders(rows), addresses=told_addresses(rows))


async def _sweep(ground: Ground, space: SpaceId) -> None:
    """Remove what is overdue in a space: an edit leaves no row without its ground."""
    await ground.now_us()  # read before, so that nothing is over by that time which was not removed
    while await ground.tx.is_due(space):
        rows = await ground.tx.overdue(space, limit=PAGE)
        if ground.bounded and len(rows) == PAGE:
            raise MuchDue(space)
        await ground.sweep(rows)


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
    # Removals come first: another network of this ``apply`` may take the name.
    if gone:
        await ground.tx.remove_networks(gone)
    # By identity: an edit makes a new value, so an untouched network is the same object as before.
    changed = [network for number, network in after.items() if before.get(number) is not network]
    await ground.tx.put_networks(new.space, changed)
    if after:
        if old is not None and old.name != new.name:
            await ground.tx.rename_space(new.space, new.name)
        await ground.tx.bump(new.space)
    else:
        await ground.tx.remove_space(new.space)
