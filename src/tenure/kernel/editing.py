"""Edits applied: an old configuration and an edit give a new one.

Each function here changes one thing and checks what can be checked alone. ``judging`` looks at the final state,
so several edits in one ``apply`` may pass through states that would be refused by themselves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch

from tenure.kernel import edits
from tenure.kernel.addresses import format_address, is_v6, parse_address, width
from tenure.kernel.configuration import (
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
    usual_keep_back,
)
from tenure.kernel.edits import Keep
from tenure.kernel.errors import AlreadyExists, Invalid, NotFound, Overlap, StillInUse
from tenure.kernel.fields import (
    read_addresses,
    read_flag,
    read_keep_back,
    read_mac_prefix,
    read_member,
    read_names,
    read_notes,
    read_seconds,
    read_yes_or_no,
    unless_kept,
)
from tenure.kernel.names import Owner, check_name, check_request, check_slot, check_text, shown
from tenure.kernel.ranges import AddressRange, Cidr, merge, parse_cidr, parse_range, subtract


def edited(configuration: Configuration, edit: edits.Edit) -> Configuration:
    """Return the configuration after one edit of one of its networks."""
    network = configuration.network(check_name(edit.network, field="network"))
    changed = _edit(edit, network)
    networks = {name: old for name, old in configuration.networks.items() if name != network.name}
    if changed is not None:
        if changed.name in networks:
            raise AlreadyExists("network", changed.name)
        # Rebuilding in the old order keeps documents and listings stable under a rename.
        networks = {
            (changed.name if name == network.name else name): (changed if name == network.name else old)
            for name, old in configuration.networks.items()
        }
    return replace(configuration, networks=networks)


def new_network(edit: edits.AddNetwork, number: int, uuid: str) -> Network:
    """Build the network that an edit asks for, under a number and a uuid that the store and chance gave."""
    return Network(
        id=number,
        name=check_name(edit.network, field="network"),
        uuid=uuid if edit.uuid is None else check_name(edit.uuid, field="uuid"),
        kind=read_member(NetworkKind, edit.kind, "kind"),
        mac_prefix=read_mac_prefix(edit.mac_prefix),
        tags=read_names(edit.tags, "tags"),
        notes=read_notes(Notes(), edit.labels, edit.description),
    )


@singledispatch
def _edit(edit: edits.Edit, network: Network) -> Network | None:
    raise Invalid(f"{type(edit).__name__} is not an edit", field="edits")


@_edit.register
def _(edit: edits.ModifyNetwork, network: Network) -> Network | None:
    return replace(
        network,
        name=unless_kept(edit.name, network.name, lambda name: check_name(name, field="name")),
        kind=unless_kept(edit.kind, network.kind, lambda kind: read_member(NetworkKind, kind, "kind")),
        mac_prefix=unless_kept(edit.mac_prefix, network.mac_prefix, read_mac_prefix),
        tags=unless_kept(edit.tags, network.tags, lambda tags: read_names(tags, "tags")),
        retired=read_flag(edit.retired, network.retired, "retired"),
        notes=read_notes(network.notes, edit.labels, edit.description),
    )


@_edit.register
def _(edit: edits.RemoveNetwork, network: Network) -> Network | None:
    read_yes_or_no(edit.cascade, "cascade")
    if network.connections:
        groups = [f"group {connection.group}" for connection in network.connections]
        raise StillInUse("network", network.name, groups, hint="disconnect it from them first")
    return None


@_edit.register
def _(edit: edits.AddSubnet, network: Network) -> Network | None:
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
        uuid=_subnet_uuid(edit.uuid, network),
        name=_subnet_name(edit.name, network),
        gateway=_gateway(edit.gateway, cidr),
        dns=read_addresses(edit.dns, "dns"),
        dhcp=read_yes_or_no(edit.dhcp, "dhcp"),
        zones=read_names(edit.zones, "zones"),
        unit=unit,
        keep_back=usual if edit.keep_back is None else read_keep_back(edit.keep_back),
        notes=read_notes(Notes(), edit.labels, edit.description),
    )
    return replace(network, subnets=(*network.subnets, subnet))


@_edit.register
def _(edit: edits.ModifySubnet, network: Network) -> Network | None:
    subnet = network.subnet(check_name(edit.subnet, field="subnet"))
    cidr = unless_kept(edit.cidr, subnet.cidr, _moved_block(subnet))
    gateway = address_text(subnet.gateway) if isinstance(edit.gateway, Keep) else edit.gateway
    return _with_subnet(
        network,
        subnet,
        replace(
            subnet,
            cidr=cidr,
            gateway=_gateway(gateway, cidr),
            name=unless_kept(edit.name, subnet.name, lambda name: _subnet_name(name, network, but=subnet)),
            dns=unless_kept(edit.dns, subnet.dns, lambda dns: read_addresses(dns, "dns")),
            dhcp=read_flag(edit.dhcp, subnet.dhcp, "dhcp"),
            zones=unless_kept(edit.zones, subnet.zones, lambda zones: read_names(zones, "zones")),
            keep_back=unless_kept(edit.keep_back, subnet.keep_back, read_keep_back),
            retired=read_flag(edit.retired, subnet.retired, "retired"),
            pools=tuple(_cut_pools(subnet.pools, cidr)),
            notes=read_notes(subnet.notes, edit.labels, edit.description),
        ),
    )


@_edit.register
def _(edit: edits.RemoveSubnet, network: Network) -> Network | None:
    subnet = network.subnet(check_name(edit.subnet, field="subnet"))
    read_yes_or_no(edit.cascade, "cascade")
    return replace(network, subnets=tuple(other for other in network.subnets if other is not subnet))


@_edit.register
def _(edit: edits.AddPool, network: Network) -> Network | None:
    wanted = parse_range(edit.range)
    subnet = _subnet_around(network, wanted)
    if subnet.unit_at(wanted.first + subnet.unit_size - 1).last > wanted.last:
        raise Invalid(f"range: {wanted} holds no whole /{subnet.unit}, the unit of {subnet.cidr}", field="range")
    name = _pool_name(edit.name)
    namesakes = [] if name is None else [pool for _, pool in network.pools() if pool.name == name]
    policy = read_member(Policy, edit.policy, "policy") if edit.policy is not None else None
    if namesakes and policy not in (None, namesakes[0].policy):
        raise Invalid(f"policy: pool {name!r} picks {namesakes[0].policy}; one name has one policy", field="policy")
    pool = Pool(
        range=wanted,
        name=name,
        policy=namesakes[0].policy if namesakes else policy or Policy.LOWEST,
        cooling_s=read_seconds(edit.cooling_s),
        notes=read_notes(Notes(), edit.labels, edit.description),
    )
    return _with_subnet(network, subnet, replace(subnet, pools=(*subnet.pools, pool)))


@_edit.register
def _(edit: edits.ModifyPool, network: Network) -> Network | None:
    chosen = {id(pool) for pool in _pools_meant(network, edit.pool)}

    def changed(pool: Pool) -> Pool:
        return replace(
            pool,
            name=unless_kept(
                edit.name, pool.name, lambda name: None if name is None else check_name(name, field="name")
            ),
            policy=unless_kept(edit.policy, pool.policy, lambda policy: read_member(Policy, policy, "policy")),
            cooling_s=unless_kept(edit.cooling_s, pool.cooling_s, read_seconds),
            retired=read_flag(edit.retired, pool.retired, "retired"),
            notes=read_notes(pool.notes, edit.labels, edit.description),
        )

    return _with_pools(network, lambda pool: [changed(pool)] if id(pool) in chosen else [pool])


@_edit.register
def _(edit: edits.RemovePool, network: Network) -> Network | None:
    check_name(edit.pool, field="pool")
    if any(pool.name == edit.pool for _, pool in network.pools()):
        return _with_pools(network, lambda pool: [] if pool.name == edit.pool else [pool])
    hole = _as_range(edit.pool)
    if hole is None or not any(pool.range.overlaps(hole) for _, pool in network.pools()):
        raise NotFound("pool", edit.pool)
    return _with_pools(network, lambda pool: [replace(pool, range=rest) for rest in pool.range.minus(hole)])


@_edit.register
def _(edit: edits.Reserve, network: Network) -> Network | None:
    wanted = parse_range(edit.range)
    subnet = _subnet_around(network, wanted)
    reason, request = check_text(edit.reason, field="reason"), check_request(edit.request)
    kept = Reserved(wanted, reason, request, read_notes(Notes(), edit.labels, edit.description))
    return _with_subnet(network, subnet, replace(subnet, reserved=_with_reserved(subnet.reserved, kept)))


@_edit.register
def _(edit: edits.Unreserve, network: Network) -> Network | None:
    hole = parse_range(edit.range)
    subnet = _subnet_around(network, hole)
    start, end = _reserved_near(subnet.reserved, hole.first, hole.last)
    if start == end:
        raise NotFound("reserved range", str(hole), field="range")
    left = [replace(kept, range=rest) for kept in subnet.reserved[start:end] for rest in kept.range.minus(hole)]
    reserved = (*subnet.reserved[:start], *left, *subnet.reserved[end:])
    return _with_subnet(network, subnet, replace(subnet, reserved=reserved))


@_edit.register
def _(edit: edits.Preallocate, network: Network) -> Network | None:
    owner, slot = Owner(edit.owner), check_slot(edit.slot)
    notes = read_notes(Notes(), edit.labels, edit.description)
    wish = PreAllocation(owner, parse_address(edit.address), slot, check_request(edit.request), notes)
    others = tuple(other for other in network.preallocations if (other.owner, other.slot) != (owner, slot))
    return replace(network, preallocations=(*others, wish))


@_edit.register
def _(edit: edits.RemovePreallocation, network: Network) -> Network | None:
    owner, slot = Owner(edit.owner), check_slot(edit.slot)
    others = tuple(other for other in network.preallocations if (other.owner, other.slot) != (owner, slot))
    if len(others) == len(network.preallocations):
        raise NotFound("pre-allocation", owner, field="owner")
    return replace(network, preallocations=others)


@_edit.register
def _(edit: edits.Connect, network: Network) -> Network | None:
    new = Connection(
        check_name(edit.group, field="group"),
        check_name(edit.mode, field="mode"),
        check_text(edit.link, field="link"),
        check_text(edit.vlan, field="vlan"),
    )
    if network.connection(new.group) is None:
        return replace(network, connections=(*network.connections, new))
    return replace(network, connections=tuple(new if each.group == new.group else each for each in network.connections))


@_edit.register
def _(edit: edits.Disconnect, network: Network) -> Network | None:
    group = check_name(edit.group, field="group")
    if network.connection(group) is None:
        raise NotFound("connection", f"of network {network.name} to {group}", field="group")
    return replace(network, connections=tuple(each for each in network.connections if each.group != group))


def _with_subnet(network: Network, old: Subnet, new: Subnet) -> Network:
    return replace(network, subnets=tuple(new if subnet is old else subnet for subnet in network.subnets))


def _with_pools(network: Network, change: Callable[[Pool], Sequence[Pool]]) -> Network:
    subnets = tuple(
        replace(subnet, pools=tuple(new for pool in subnet.pools for new in change(pool))) for subnet in network.subnets
    )
    return replace(network, subnets=subnets)


def _subnet_around(network: Network, wanted: AddressRange) -> Subnet:
    for subnet in network.subnets:
        if subnet.cidr.first <= wanted.first and wanted.last <= subnet.cidr.last:
            return subnet
    raise NotFound("subnet", f"around {wanted} in network {network.name}", hint="add the subnet first", field="range")


def _pools_meant(network: Network, ident: str) -> list[Pool]:
    check_name(ident, field="pool")
    named = [pool for _, pool in network.pools() if pool.name == ident]
    if named:
        return named
    wanted = _as_range(ident)
    exact = [pool for _, pool in network.pools() if pool.range == wanted]
    if not exact:
        raise NotFound("pool", ident)
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
    start, end = _reserved_near(reserved, new.range.first - 1, new.range.last + 1)
    silent = new.word == (new.reason, None, Notes())
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


def _cut_pools(pools: tuple[Pool, ...], cidr: Cidr) -> list[Pool]:
    """Trim pools to a block that shrank."""
    block = cidr.range
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
        left_out = f"the part of {subnet.cidr} that {cidr} leaves out"
        for kept in subnet.reserved:
            if not cidr.range.covers(kept.range):
                raise Overlap(left_out, f"reserved range {kept.range}", field="cidr")
        if not subnet.cidr.range.covers(cidr.range):  # a block that shrinks cuts its pools; one that moves may not
            for pool in subnet.pools:
                if not cidr.range.covers(pool.range):
                    raise Overlap(left_out, f"pool {pool.name or pool.range}", field="cidr")
        return cidr

    return parse


def _gateway(value: object, cidr: Cidr) -> int | None:
    if value is None:
        return None
    gateway = parse_address(value, field="gateway")  # type: ignore[arg-type]  # parse_address refuses other types itself
    link_local = is_v6(gateway) and (gateway >> 118) & 0x3FF == 0x3FA
    if gateway not in cidr.range and not (link_local and is_v6(cidr.first)):
        raise Invalid(f"gateway: {format_address(gateway)} lies outside {cidr}", field="gateway")
    return gateway


def _pool_name(name: str | None) -> str | None:
    return None if name is None else check_name(name, field="name")


def _subnet_name(name: str | None, network: Network, but: Subnet | None = None) -> str | None:
    if name is None:
        return None
    check_name(name, field="name")
    if any(subnet.answers_to(name) for subnet in network.subnets if subnet is not but):
        raise AlreadyExists("subnet", name, field="name")
    return name


def _subnet_uuid(uuid: str | None, network: Network) -> str:
    checked = check_name(uuid, field="uuid")
    if any(subnet.answers_to(checked) for subnet in network.subnets):
        raise AlreadyExists("subnet", checked, field="uuid")
    return checked
