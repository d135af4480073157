"""Edits applied: an old configuration and an edit give a new one.

Each function here changes one thing and checks what can be checked alone. ``invariants`` looks at the final state,
so several edits in one ``apply`` may pass through states that would be refused by themselves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch

from tenure.kernel.addressing.addresses import format_address, is_v6, parse_unit, width
from tenure.kernel.addressing.ranges import AddressRange, Cidr, merge, parse_cidr, parse_range, subtract
from tenure.kernel.errors import AddressOutsideSubnet, AlreadyExists, Invalid, NotFound, StillInUse
from tenure.kernel.names import Owner, check_name, check_request, check_slot, check_text, shown
from tenure.kernel.plan import edits
from tenure.kernel.plan.edit_fields import (
    changed_notes,
    new_notes,
    read_addresses,
    read_flag,
    read_gateway,
    read_keep_back,
    read_mac_prefix,
    read_member,
    read_names,
    read_rank,
    read_seconds,
    read_yes_or_no,
    unless_kept,
    unusable_gateway,
)
from tenure.kernel.plan.edits import Keep
from tenure.kernel.plan.network_draft import NetworkDraft
from tenure.kernel.plan.plan_model import (
    Configuration,
    Connection,
    Network,
    NetworkKind,
    Notes,
    Policy,
    Pool,
    PreAllocation,
    Reserved,
    Subnet,
    address_text,
    check_unit_length,
    usual_keep_back,
)


def edited(configuration: Configuration, edit: edits.Edit) -> Configuration:
    """Return the configuration after one edit of one of its networks. O(networks + subnets of the edited one)."""
    network = configuration.network(check_name(edit.network, field="network"))
    draft = NetworkDraft(network)
    return with_network(configuration, network.name, draft.finished() if edit_draft(draft, edit) else None)


def with_network(configuration: Configuration, name: str, changed: Network | None) -> Configuration:
    """Return the configuration with another network in the place of one, or (None) without it; O(networks)."""
    if changed is None:
        networks = {other: old for other, old in configuration.networks.items() if other != name}
    elif changed.name == name:
        networks = {**configuration.networks, name: changed}
    else:
        if changed.name in configuration.networks:
            raise AlreadyExists("network", changed.name)
        # Rebuilding in the old order keeps documents and listings stable under a rename.
        networks = {
            (changed.name if other == name else other): (changed if other == name else old)
            for other, old in configuration.networks.items()
        }
    return replace(configuration, networks=networks)


def edit_draft(draft: NetworkDraft, edit: edits.Edit) -> bool:
    """Make one edit of a network that is a draft; return whether the network is still there."""
    return _edit(edit, draft)


def new_network(edit: edits.AddNetwork, number: int, uuid: str) -> Network:
    """Build the network that an edit asks for, under a number and a uuid that the store and chance gave."""
    return Network(
        id=number,
        name=check_name(edit.network, field="network"),
        uuid=uuid if edit.uuid is None else check_name(edit.uuid, field="uuid"),
        kind=read_member(NetworkKind, edit.kind, "kind"),
        mac_prefix=read_mac_prefix(edit.mac_prefix),
        tags=read_names(edit.tags, "tags"),
        notes=new_notes(edit.labels, edit.description),
    )


@singledispatch
def _edit(edit: edits.Edit, draft: NetworkDraft) -> bool:
    raise Invalid(f"{type(edit).__name__} is not an edit", field="edits")


@_edit.register
def _(edit: edits.ModifyNetwork, draft: NetworkDraft) -> bool:
    network = draft.network
    draft.change(
        name=unless_kept(edit.name, network.name, lambda name: check_name(name, field="name")),
        kind=unless_kept(edit.kind, network.kind, lambda kind: read_member(NetworkKind, kind, "kind")),
        mac_prefix=unless_kept(edit.mac_prefix, network.mac_prefix, read_mac_prefix),
        tags=unless_kept(edit.tags, network.tags, lambda tags: read_names(tags, "tags")),
        retired=read_flag(edit.retired, network.retired, "retired"),
        notes=changed_notes(network.notes, edit),
    )
    return True


@_edit.register
def _(edit: edits.RemoveNetwork, draft: NetworkDraft) -> bool:
    # Only checked here: ``plan_effects`` ends the holdings.
    read_yes_or_no(edit.cascade, "cascade")
    network = draft.network
    if network.connections:
        groups = [f"group {connection.group}" for connection in network.connections]
        raise StillInUse("network", network.name, groups, hint="disconnect it from them first")
    return False


@_edit.register
def _(edit: edits.AddSubnet, draft: NetworkDraft) -> bool:
    cidr = parse_cidr(edit.cidr)
    unit = width(cidr.first) if edit.unit is None else edit.unit
    if not isinstance(unit, int) or isinstance(unit, bool) or not cidr.prefix <= unit <= width(cidr.first):
        raise Invalid(
            f"unit: a prefix length from {cidr.prefix} to {width(cidr.first)} is needed, not {shown(unit)}",
            field="unit",
        )
    usual = usual_keep_back(cidr, unit)
    subnet = Subnet(
        cidr=cidr,
        uuid=_subnet_uuid(edit.uuid, draft),
        name=_subnet_name(edit.name, draft),
        gateway=_new_gateway(edit.gateway, cidr),
        dns=read_addresses(edit.dns, "dns"),
        dhcp=read_yes_or_no(edit.dhcp, "dhcp"),
        zones=read_names(edit.zones, "zones"),
        unit=unit,
        keep_back=usual if edit.keep_back is None else read_keep_back(edit.keep_back),
        notes=new_notes(edit.labels, edit.description),
    )
    draft.add(subnet)
    return True


@_edit.register
def _(edit: edits.ModifySubnet, draft: NetworkDraft) -> bool:
    key, subnet = draft.find(check_name(edit.subnet, field="subnet"))
    cidr = unless_kept(edit.cidr, subnet.cidr, _moved_block(subnet))
    # A gateway that is kept is read again, because it must lie in the new block, too.
    gateway = address_text(subnet.gateway) if isinstance(edit.gateway, Keep) else edit.gateway
    # Judged as a new gateway only where it or its block changes: the present gateway must not stop other edits.
    moved = cidr != subnet.cidr or not isinstance(edit.gateway, Keep)
    draft.put(
        key,
        replace(
            subnet,
            cidr=cidr,
            gateway=(_new_gateway if moved else _gateway)(gateway, cidr),
            name=unless_kept(edit.name, subnet.name, lambda name: _subnet_name(name, draft, but=key)),
            dns=unless_kept(edit.dns, subnet.dns, lambda dns: read_addresses(dns, "dns")),
            dhcp=read_flag(edit.dhcp, subnet.dhcp, "dhcp"),
            zones=unless_kept(edit.zones, subnet.zones, lambda zones: read_names(zones, "zones")),
            keep_back=unless_kept(edit.keep_back, subnet.keep_back, read_keep_back),
            retired=read_flag(edit.retired, subnet.retired, "retired"),
            pools=tuple(_cut_pools(subnet, cidr)),
            notes=changed_notes(subnet.notes, edit),
        ),
    )
    return True


@_edit.register
def _(edit: edits.RemoveSubnet, draft: NetworkDraft) -> bool:
    key, _ = draft.find(check_name(edit.subnet, field="subnet"))
    read_yes_or_no(edit.cascade, "cascade")
    draft.remove(key)
    return True


@_edit.register
def _(edit: edits.AddPool, draft: NetworkDraft) -> bool:
    wanted = parse_range(edit.range)
    key, subnet = draft.around(wanted)
    # The first unit that begins in the range must end in the range.
    if subnet.unit_at(wanted.first + subnet.unit_size - 1).last > wanted.last:
        raise Invalid(f"range: {wanted} holds no whole /{subnet.unit}, the unit of {subnet.cidr}", field="range")
    name = _pool_name(edit.name)
    known = None if name is None else draft.first_named(name)
    whole = as_of_pool(edit, known or Pool(wanted))
    pool = Pool(
        range=wanted,
        name=name,
        policy=read_member(Policy, whole.policy, "policy"),
        cooling_s=read_seconds(whole.cooling_s),
        rank=read_rank(whole.rank),
        notes=new_notes(edit.labels, edit.description),
    )
    if known is not None and pool.policy is not known.policy:
        raise Invalid(f"policy: pool {name!r} picks {known.policy}; one name has one policy", field="policy")
    draft.add_pool(key, pool)
    return True


def as_of_pool(edit: edits.AddPool, pool: Pool) -> edits.AddPool:
    """Let an edit that adds a range say what the pool is, where it says nothing."""
    fields = {name: getattr(pool, name) for name in ("policy", "cooling_s", "rank") if getattr(edit, name) is None}
    return replace(edit, **fields)


@_edit.register
def _(edit: edits.ModifyPool, draft: NetworkDraft) -> bool:
    # By identity: a pool carries a dictionary of labels and has no hash.
    chosen = {id(pool) for pool in _pools_meant(draft, edit.pool)}

    def changed(pool: Pool) -> Pool:
        return replace(
            pool,
            name=unless_kept(
                edit.name, pool.name, lambda name: None if name is None else check_name(name, field="name")
            ),
            policy=unless_kept(edit.policy, pool.policy, lambda policy: read_member(Policy, policy, "policy")),
            cooling_s=unless_kept(edit.cooling_s, pool.cooling_s, read_seconds),
            rank=unless_kept(edit.rank, pool.rank, read_rank),
            retired=read_flag(edit.retired, pool.retired, "retired"),
            notes=changed_notes(pool.notes, edit),
        )

    draft.change_pools(lambda pool: [changed(pool)] if id(pool) in chosen else [pool])
    return True


@_edit.register
def _(edit: edits.RemovePool, draft: NetworkDraft) -> bool:
    check_name(edit.pool, field="pool")
    # Names come first: a name may look like a range.
    if any(pool.name == edit.pool for pool in draft.pools()):
        draft.change_pools(lambda pool: [] if pool.name == edit.pool else [pool])
        return True
    hole = _as_range(edit.pool)
    if hole is None or not any(pool.range.overlaps(hole) for pool in draft.pools()):
        raise NotFound("pool", edit.pool, network=draft.network.name)
    draft.change_pools(lambda pool: [replace(pool, range=rest) for rest in pool.range.minus(hole)])
    return True


@_edit.register
def _(edit: edits.Reserve, draft: NetworkDraft) -> bool:
    wanted = parse_range(edit.range)
    key, subnet = draft.around(wanted)
    reason, request = check_text(edit.reason, field="reason"), check_request(edit.request)
    kept = Reserved(wanted, reason, request, new_notes(edit.labels, edit.description))
    draft.put(key, replace(subnet, reserved=_with_reserved(subnet.reserved, kept)))
    return True


@_edit.register
def _(edit: edits.Unreserve, draft: NetworkDraft) -> bool:
    hole = parse_range(edit.range)
    key, subnet = draft.reserving(hole)
    start, end = _reserved_near(subnet.reserved, hole.first, hole.last)
    if start == end:
        raise NotFound("reserved range", str(hole), network=draft.network.name, field="range")
    left = [replace(kept, range=rest) for kept in subnet.reserved[start:end] for rest in kept.range.minus(hole)]
    reserved = (*subnet.reserved[:start], *left, *subnet.reserved[end:])
    draft.put(key, replace(subnet, reserved=reserved))
    return True


@_edit.register
def _(edit: edits.Preallocate, draft: NetworkDraft) -> bool:
    owner, slot = Owner(edit.owner), check_slot(edit.slot)
    notes = new_notes(edit.labels, edit.description)
    place, length = parse_unit(edit.address)
    if length is not None:
        check_unit_length(_subnet_around(draft, place, edit.network), place, length)
    wish = PreAllocation(owner, place, slot, check_request(edit.request), notes)
    draft.waiting().pop((owner, slot), None)  # it stands behind all others, as one that is new
    draft.waiting()[owner, slot] = wish
    return True


def _subnet_around(draft: NetworkDraft, place: int, network: str) -> Subnet:
    try:
        return draft.around(AddressRange(place, place))[1]
    except NotFound:
        raise AddressOutsideSubnet(format_address(place), network) from None


@_edit.register
def _(edit: edits.RemovePreallocation, draft: NetworkDraft) -> bool:
    owner, slot = Owner(edit.owner), check_slot(edit.slot)
    if draft.waiting().pop((owner, slot), None) is None:
        raise NotFound("pre-allocation", owner, network=draft.network.name, field="owner")
    return True


@_edit.register
def _(edit: edits.Connect, draft: NetworkDraft) -> bool:
    new = Connection(
        check_name(edit.group, field="group"),
        check_name(edit.mode, field="mode"),
        check_text(edit.link, field="link"),
        check_text(edit.vlan, field="vlan"),
    )
    before = draft.network.connections
    known = any(each.group == new.group for each in before)
    same = tuple(new if each.group == new.group else each for each in before)
    draft.change(connections=same if known else (*before, new))
    return True


@_edit.register
def _(edit: edits.Disconnect, draft: NetworkDraft) -> bool:
    group = check_name(edit.group, field="group")
    network = draft.network
    if network.connection(group) is None:
        problem = f"network {network.name!r} is not connected to {group!r}"
        raise NotFound("connection", group, network=network.name, problem=problem, field="group")
    draft.change(connections=tuple(each for each in network.connections if each.group != group))
    return True


def _pools_meant(draft: NetworkDraft, ident: str) -> list[Pool]:
    check_name(ident, field="pool")
    named = [pool for pool in draft.pools() if pool.name == ident]
    if named:
        return named
    wanted = _as_range(ident)
    exact = [pool for pool in draft.pools() if pool.range == wanted]
    if not exact:
        raise NotFound("pool", ident, network=draft.network.name)
    return exact


def _as_range(ident: str) -> AddressRange | None:
    try:
        return parse_range(ident, field="pool")
    except Invalid:
        return None


def _with_reserved(reserved: tuple[Reserved, ...], new: Reserved) -> tuple[Reserved, ...]:
    """Add a range. What another reason has stays with it; of one reason the newer word counts, if anything is said.

    Ranges of which the same is said become one where they touch.
    """
    # One position more on both sides: ranges that only touch may become one.
    start, end = _reserved_near(reserved, new.range.first - 1, new.range.last + 1)
    silent = new.word == (new.reason, None, Notes())
    # The same words: both become one range. The same reason, but other words: the old range gives way. Another reason:
    # the old range stays.
    same = [kept for kept in reserved[start:end] if kept.word == new.word]
    rest = [kept for kept in reserved[start:end] if kept.word != new.word]
    staying = [kept for kept in rest if silent or kept.reason != new.reason]
    giving_way = [kept for kept in rest if not silent and kept.reason == new.reason]
    cut = [replace(kept, range=piece) for kept in giving_way for piece in kept.range.minus(new.range)]
    pieces = merge([*subtract(new.range, [kept.range for kept in staying]), *(kept.range for kept in same)])
    laid = [*staying, *cut, *(replace(new, range=piece) for piece in pieces)]
    return (*reserved[:start], *sorted(laid, key=lambda kept: kept.range), *reserved[end:])


def _reserved_near(reserved: tuple[Reserved, ...], first: int, last: int) -> tuple[int, int]:
    """Return which of a subnet's reserved ranges lie over these positions: they are in order and disjoint."""
    start = bisect_left(reserved, first, key=lambda kept: kept.range.last)
    return start, bisect_right(reserved, last, lo=start, key=lambda kept: kept.range.first)


def _cut_pools(subnet: Subnet, cidr: Cidr) -> Sequence[Pool]:
    """Trim the pools of a block that shrinks. A block that moves cuts none: later edits may put its pools right."""
    block, pools = cidr.range, subnet.pools
    if not subnet.cidr.range.covers(block):
        return pools
    return [
        replace(pool, range=AddressRange(max(pool.range.first, block.first), min(pool.range.last, block.last)))
        for pool in pools
        if pool.range.overlaps(block)
    ]


def _moved_block(subnet: Subnet) -> Callable[[object], Cidr]:
    def parse(value: object) -> Cidr:
        cidr = parse_cidr(value)  # type: ignore[arg-type]  # parse_cidr refuses other types itself
        if is_v6(cidr.first) != is_v6(subnet.cidr.first):
            raise Invalid(f"cidr: {cidr} is of another family than {subnet.cidr}", field="cidr")
        if cidr.prefix > subnet.unit:
            raise Invalid(f"cidr: {cidr} is smaller than the /{subnet.unit} that the subnet hands out", field="cidr")
        return cidr

    return parse


def _gateway(value: object, cidr: Cidr) -> int | None:
    return None if value is None else read_gateway(value, cidr)


def _new_gateway(value: object, cidr: Cidr) -> int | None:
    """Read a gateway; one that no machine can have is refused."""
    gateway = _gateway(value, cidr)
    if gateway is not None and (problem := unusable_gateway(gateway, cidr)):
        raise Invalid(f"gateway: {problem}", field="gateway")
    return gateway


def _pool_name(name: str | None) -> str | None:
    return None if name is None else check_name(name, field="name")


def _subnet_name(name: str | None, draft: NetworkDraft, but: int | None = None) -> str | None:
    if name is None:
        return None
    check_name(name, field="name")
    if draft.is_taken(name, but):
        raise AlreadyExists("subnet", name, field="name")
    return name


def _subnet_uuid(uuid: str | None, draft: NetworkDraft) -> str:
    checked = check_name(uuid, field="uuid")
    if draft.is_taken(checked):
        raise AlreadyExists("subnet", checked, field="uuid")
    return checked
