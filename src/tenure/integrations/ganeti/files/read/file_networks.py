"""Networks of a Ganeti file, in either form; which one is seen from the shape of each network."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tenure.integrations.ganeti.files.file_model import REVISED, TODAY, NetworkFile, PoolFile, SubnetFile, made_uuid
from tenure.integrations.ganeti.files.json_parts import Part
from tenure.integrations.ganeti.files.read.bitmaps import read_bits
from tenure.integrations.ganeti.options.network_grammar import check_door_name
from tenure.kernel.addressing.addresses import family_name, format_address, is_v6, parse_address
from tenure.kernel.addressing.ranges import AddressRange, Cidr, merge, parse_cidr, parse_range, sized_range
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name, shown
from tenure.kernel.plan.edit_fields import read_gateway, read_mac_prefix, unusable_gateway

OLD_FIELDS = ("network", "gateway", "network6", "gateway6", "reservations", "ext_reservations")
"""What only today's form has."""


def read_network(part: Part, uuid: str, name: str) -> NetworkFile:
    """Read a network; one without any block is of the revised form."""
    old = [key for key in OLD_FIELDS if part.has(key)]
    if old and part.has("subnets"):
        part.faults.add(part.at("subnets"), f"stands beside {old[0]}: a network has either form, not both")
    subnets = _old_subnets(part, uuid) if old else _subnets(part, uuid)
    return NetworkFile(
        uuid,
        name,
        TODAY if old else REVISED,
        part.read("mac_prefix", _mac_prefix, None),
        part.read("tags", _tags, ()),
        tuple(subnets),
    )


def _mac_prefix(value: object, field: str) -> str | None:
    """Read three octets: with fewer or more, a MAC made from it would not be one."""
    try:
        prefix = read_mac_prefix(value)
    except Invalid as error:
        raise Invalid(error.message.replace("mac_prefix", field, 1), field=field) from None
    if prefix is not None and len(prefix) != len("aa:bb:cc"):
        raise Invalid(f"{field}: {shown(value)} is not of the form aa:bb:cc", field=field)
    return prefix


def _tags(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Invalid(f"{field}: a list is needed, not {shown(value)}", field=field)
    return tuple(dict.fromkeys(check_name(tag, field=field) for tag in value))


def _old_subnets(part: Part, uuid: str) -> list[SubnetFile]:
    """Read today's form: a block with one pool over all of it, and an IPv6 block without pool (U28)."""
    subnets: list[SubnetFile] = []
    cidr = part.needed("network", _block4)
    if cidr is not None:
        marks = part.read("reservations", lambda bits, field: read_bits(bits, cidr.range, field=field), None)
        external = part.read("ext_reservations", lambda bits, field: read_bits(bits, cidr.range, field=field), None)
        pool = PoolFile(cidr.range, None, marks)
        gateway = part.read("gateway", lambda value, field: read_gateway(value, cidr, field), None)
        made = made_uuid(uuid, str(cidr))
        subnets.append(SubnetFile(cidr, made, gateway=gateway, pools=(pool,), external=external))
    six = part.read("network6", _block6, None)
    if six is not None:
        gateway = part.read("gateway6", lambda value, field: read_gateway(value, six, field), None)
        subnets.append(SubnetFile(six, made_uuid(uuid, str(six)), gateway=gateway))
    elif part.has("gateway6") and not part.has("network6"):
        part.faults.add(part.at("gateway6"), "stands without network6")
    return subnets


def _block4(value: object, field: str) -> Cidr:
    return _of_version(parse_cidr(value, field=field), False, field)  # type: ignore[arg-type]


def _block6(value: object, field: str) -> Cidr:
    return _of_version(parse_cidr(value, field=field), True, field)  # type: ignore[arg-type]


def _of_version(cidr: Cidr, v6: bool, field: str) -> Cidr:
    if is_v6(cidr.first) != v6:
        raise Invalid(f"{field}: {cidr} is a block of {family_name(cidr.first)}", field=field)
    return cidr


def check_gateways(part: Part, network: NetworkFile) -> None:
    """Note gateways that no machine can have: the ledger would refuse them in the middle of an import."""
    for index, subnet in enumerate(network.subnets):
        problem = "" if subnet.gateway is None else unusable_gateway(subnet.gateway, subnet.cidr)
        if problem:
            place = part.at("gateway" if network.form == TODAY else f"subnets[{index}].gateway")
            way_out = (
                f"give it another one (`gnt-network modify --gateway ADDRESS {network.name}`) and take the new file"
            )
            part.faults.add(place, f"{problem}, so network {network.name} has no gateway there; {way_out}")


def _subnets(part: Part, uuid: str) -> list[SubnetFile]:
    """Read the revised form, and what its subnets must not do to each other."""
    found = [(each.place, subnet) for each in part.members("subnets") if (subnet := _subnet(each, uuid)) is not None]
    apart(part, [(place, subnet.cidr.range) for place, subnet in found], "the subnets")
    pools = [(f"{place}.pools[{n}]", pool.range) for place, s in found for n, pool in enumerate(s.pools)]
    apart(part, pools, "the pools")
    subnets = [subnet for _, subnet in found]
    _once(part, [subnet.uuid for subnet in subnets], "subnets have the uuid")
    _once(part, [subnet.name for subnet in subnets if subnet.name is not None], "subnets have the name")
    served = [f"IPv{6 if is_v6(subnet.cidr.first) else 4}" for subnet in subnets if subnet.dhcp]
    _once(part, served, "subnets have dhcp for")
    return subnets


def _subnet(part: Part, network: str) -> SubnetFile | None:
    cidr = part.needed("cidr", lambda value, field: parse_cidr(value, field=field))
    if cidr is None:
        return None
    if part.has("external") and part.has("reserved"):
        part.faults.add(part.at("reserved"), "stands beside external, and means the same (U5)")
    word = "external" if part.has("external") else "reserved"
    pools = [pool for each in part.members("pools") if (pool := _pool(each, cidr)) is not None]
    return SubnetFile(
        cidr,
        part.read("uuid", lambda value, field: check_name(value, field=field), made_uuid(network, str(cidr))),
        part.read("name", _name, None),
        part.read("gateway", lambda value, field: read_gateway(value, cidr, field), None),
        part.read("dhcp", _yes_or_no, False),
        tuple(pools),
        part.read(word, lambda value, field: _externals(value, cidr, field), None),
    )


def _name(value: object, field: str) -> str:
    return check_door_name(check_name(value, field=field), field)


def _yes_or_no(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"{field}: true or false is needed, not {shown(value)}", field=field)
    return value


def _pool(part: Part, cidr: Cidr) -> PoolFile | None:
    span = part.needed("range", lambda value, field: _inside(value, cidr.range, str(cidr), field))
    if span is None:
        return None
    return PoolFile(
        span,
        part.read("name", _name, None),
        part.read("reservations", lambda value, field: _reservations(value, span, field), None),
    )


def _reservations(value: object, span: AddressRange, field: str) -> tuple[AddressRange, ...]:
    """Read a pool's marks: a bit string, or the list of ranges that large pools have."""
    if not isinstance(value, list):
        return read_bits(value, span, field=field)
    pieces = [_inside(each, span, f"the pool {span}", f"{field}[{n}]") for n, each in enumerate(value)]
    return tuple(merge(pieces))


def _externals(value: object, cidr: Cidr, field: str) -> tuple[AddressRange, ...]:
    """Read a subnet's external ranges: inside it (U2), and none over another."""
    if not isinstance(value, list):
        raise Invalid(f"{field}: a list of ranges is needed, not {shown(value)}", field=field)
    pieces = [_inside(each, cidr.range, str(cidr), f"{field}[{n}]") for n, each in enumerate(value)]
    for piece, later in pairwise(sorted(pieces)):
        if piece.overlaps(later):
            raise Invalid(f"{field}: {piece} and {later} overlap", field=field)
    return tuple(merge(pieces))


def _inside(value: object, block: AddressRange, name: str, field: str) -> AddressRange:
    span = read_range(value, field)
    if not block.covers(span):
        raise Invalid(f"{field}: {span} lies outside {name}", field=field)
    return span


def read_range(value: object, field: str) -> AddressRange:
    """Read a range: text (``IP``, ``a-b``, a block), or an object of ``start`` and ``size``, ``end`` or both (U32)."""
    if isinstance(value, str):
        return parse_range(value, field=field)
    if not isinstance(value, dict):
        raise Invalid(f"{field}: a range is needed, not {shown(value)}", field=field)
    start, size, end = value.get("start"), value.get("size"), value.get("end")
    if start is None or (size is None and end is None):
        raise Invalid(f"{field}: start and size, or start and end, are needed", field=field)
    if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
        raise Invalid(f"{field}: size is a number of addresses, not {shown(size)}", field=field)
    first = parse_address(start, field=field)
    last = first if end is None else parse_address(end, field=field)
    if is_v6(first) != is_v6(last) or first > last:
        raise Invalid(f"{field}: {shown(end)} does not follow {shown(start)}", field=field)
    sized = AddressRange(first, last) if size is None else sized_range(start, size, field=field)
    if end is not None and sized.last != last:
        reason = f"{size} addresses from {format_address(first)} end at {format_address(sized.last)}"
        raise Invalid(f"{field}: {reason}, not at {format_address(last)}", field=field)
    return sized


def apart(part: Part, pieces: Sequence[tuple[str, AddressRange]], what: str) -> None:
    """Note which of these ranges lie over each other."""
    # Sorted by their first addresses: where any two overlap, two neighbours do.
    for (_, piece), (place, later) in pairwise(sorted(pieces, key=lambda pair: pair[1])):
        if piece.overlaps(later):
            part.faults.add(place, f"{what} {piece} and {later} overlap")


def _once(part: Part, words: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for word in words:
        if word in seen:
            part.faults.add(part.at("subnets"), f"two {what} {word}")
        seen.add(word)
