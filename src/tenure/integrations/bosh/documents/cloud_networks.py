"""Networks of a cloud config: manual, dynamic and VIP, and what must hold between the subnets of one."""

import re
from collections.abc import Sequence

from tenure.integrations.bosh.documents.address_lists import read_spans
from tenure.integrations.bosh.documents.manual_subnets import read_manual_subnet
from tenure.integrations.bosh.documents.subnet_properties import (
    NetworkReading,
    read_cloud_properties,
    read_name_servers,
    read_subnet_azs,
)
from tenure.integrations.bosh.documents.yaml_tree import Tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, DocumentPlace
from tenure.integrations.bosh.model.document_model import DYNAMIC, MANUAL, VIP, CloudNetwork, CloudSubnet
from tenure.kernel.addressing.addresses import V4_BASE, format_address, is_v6, width

MANUAL_KEYS = ("name", "type", "subnets", "managed")
DYNAMIC_KEYS = ("name", "type", "subnets", "dns", "cloud_properties")
DYNAMIC_SUBNET_KEYS = ("az", "azs", "dns", "cloud_properties", "prefix")
VIP_KEYS = ("name", "type", "subnets", "cloud_properties")
VIP_SUBNET_KEYS = ("az", "azs", "static")
NEVER_ON_DYNAMIC = ("az", "azs", "managed", "prefix")
PLAIN_PREFIX = 32

Placed = list[tuple[CloudSubnet, DocumentPlace]]


def read_networks(trees: Sequence[Tree], reading: NetworkReading) -> dict[str, CloudNetwork | None]:
    """Read the networks of all documents, in the order written; None stands for one of which only the name is known."""
    found: dict[str, CloudNetwork | None] = {}
    taken: set[str] = set()
    for member in [each for tree in trees for each in reading.reader.each(tree, "networks")]:
        network, name = _read_network(member, reading), _name(member)
        if name is not None:
            _take_name(member, name, taken, reading)
            found.setdefault(name, network)
    # Judged by what is written, not by what was read: an unreadable network has an error of its own.
    if not any("networks" in tree and tree.value["networks"].value not in (None, []) for tree in trees):
        reading.faults.add(
            BoshErrorKind.DEPLOYMENT_NO_NETWORKS, "No networks specified", trees[0].place if trees else None
        )
    return found


def canonical(name: str) -> str:
    """Return what is left of a name in DNS; two networks must differ in it."""
    return re.sub("[^a-z0-9-]", "", name.lower().replace("_", "-"))


def _take_name(tree: Tree, name: str, taken: set[str], reading: NetworkReading) -> None:
    place = tree.value["name"].place
    if not canonical(name).strip("-"):
        reading.faults.add(
            BoshErrorKind.GENERIC, f"Invalid network name '{name}', must have a letter or a digit", place
        )
    elif reading.reader.refuse_name(tree.value["name"]):
        return
    elif canonical(name) in taken:
        told = f"Invalid network name '{name}', canonical name already taken"
        reading.faults.add(BoshErrorKind.DEPLOYMENT_CANONICAL_NETWORK_NAME_TAKEN, told, place)
    taken.add(canonical(name))


def _name(tree: Tree) -> str | None:
    name = tree.value["name"].value if "name" in tree else None
    return name if isinstance(name, str) else None


def _read_network(tree: Tree, reading: NetworkReading) -> CloudNetwork | None:
    reader = reading.reader
    name = reader.get(tree, "name", str, needed=True) or tree.place.path
    kind = reader.get(tree, "type", str)
    # The reader has reported a type that is no text; only an absent or null type means manual.
    if kind is None and "type" in tree and tree.value["type"].value is not None:
        return None
    read = {MANUAL: _read_manual, DYNAMIC: _read_dynamic, VIP: _read_vip}.get(MANUAL if kind is None else kind)
    if read is None:
        place = tree.value["type"].place
        reading.faults.add(BoshErrorKind.DEPLOYMENT_INVALID_NETWORK_TYPE, f"Invalid network type '{kind}'", place)
        return None
    return read(tree, name, reading)


def _read_manual(tree: Tree, name: str, reading: NetworkReading) -> CloudNetwork:
    reading.reader.refuse_others(tree, MANUAL_KEYS)
    managed = bool(reading.reader.get(tree, "managed", bool))
    members = reading.reader.each(tree, "subnets", needed=True)
    subnets = [(read_manual_subnet(each, name, reading, managed=managed), each.place) for each in members]
    _refuse_overlaps(name, subnets, reading)
    _refuse_differing_prefixes(name, subnets, reading)
    _refuse_mixed_azs(name, subnets, reading)
    if managed:
        _refuse_same_names(subnets, reading)
    return CloudNetwork(name, MANUAL, tuple(subnet for subnet, _ in subnets), managed)


def _read_dynamic(tree: Tree, name: str, reading: NetworkReading) -> CloudNetwork:
    # These keys count as known here, because the loop below reports them in BOSH's own words.
    reading.reader.refuse_others(tree, (*DYNAMIC_KEYS, *NEVER_ON_DYNAMIC))
    for key in NEVER_ON_DYNAMIC:
        _refuse_key(tree, key, f"Network '{name}' must not specify '{key}'.", reading)
    if "subnets" not in tree:
        return CloudNetwork(name, DYNAMIC, (_flat_subnet(tree, name, reading),))
    for key in ("dns", "cloud_properties"):
        told = f"Network '{name}' must not specify '{key}' when also specifying 'subnets'."
        _refuse_key(tree, key, f"{told} Instead, '{key}' should be specified on subnet entries.", reading)
    members = reading.reader.each(tree, "subnets", needed=True)
    subnets = [(_dynamic_subnet(each, name, reading), each.place) for each in members]
    _refuse_mixed_azs(name, subnets, reading)
    return CloudNetwork(name, DYNAMIC, tuple(subnet for subnet, _ in subnets))


def _dynamic_subnet(tree: Tree, name: str, reading: NetworkReading) -> CloudSubnet:
    reading.reader.refuse_others(tree, DYNAMIC_SUBNET_KEYS)
    if reading.reader.get(tree, "prefix", int) not in (None, PLAIN_PREFIX):
        _refuse_key(tree, "prefix", "Prefix property is not supported for dynamic networks.", reading)
    return _flat_subnet(tree, name, reading, azs=read_subnet_azs(tree, name, reading))


def _flat_subnet(tree: Tree, name: str, reading: NetworkReading, azs: tuple[str, ...] | None = None) -> CloudSubnet:
    servers = read_name_servers(tree, name, reading)
    dns = tuple(format_address(server) for server, _ in servers)
    return CloudSubnet(azs=azs, dns=dns, cloud_properties=read_cloud_properties(tree, reading))


def _read_vip(tree: Tree, name: str, reading: NetworkReading) -> CloudNetwork:
    reading.reader.refuse_others(tree, VIP_KEYS)
    members = reading.reader.each(tree, "subnets")
    subnets = [(_vip_subnet(each, name, reading), each.place) for each in members]
    _refuse_differing_prefixes(name, subnets, reading)
    _refuse_mixed_azs(name, subnets, reading)
    properties = read_cloud_properties(tree, reading)
    return CloudNetwork(name, VIP, tuple(subnet for subnet, _ in subnets), cloud_properties=properties)


def _vip_subnet(tree: Tree, name: str, reading: NetworkReading) -> CloudSubnet:
    reading.reader.refuse_others(tree, VIP_SUBNET_KEYS)
    given = "static" in tree and tree.value["static"].value is not None
    spans = [span for span, _ in read_spans(tree.value["static"], reading.faults)] if given else []
    prefix = width(spans[0].first if spans else V4_BASE)
    return CloudSubnet(azs=read_subnet_azs(tree, name, reading), static=tuple(spans), prefix=prefix)


def _refuse_key(tree: Tree, key: str, told: str, reading: NetworkReading) -> None:
    if key in tree:
        reading.faults.add(BoshErrorKind.NETWORK_INVALID_PROPERTY, told, tree.value[key].place)


def _refuse_overlaps(name: str, subnets: Placed, reading: NetworkReading) -> None:
    """Tell each subnet that lies over one that is written before it."""
    lying = sorted((subnet.range.range, number) for number, (subnet, _) in enumerate(subnets) if subnet.range)
    # Of blocks that share addresses one lies in the other, so it is enough to remember the last that lay in none.
    outer, outer_number = lying[0] if lying else (None, 0)
    for inner, number in lying[1:]:
        if outer is not None and outer.overlaps(inner):
            place = subnets[max(number, outer_number)][1]
            told = f"Network '{name}' has overlapping subnets"
            reading.faults.add(BoshErrorKind.NETWORK_OVERLAPPING_SUBNETS, told, place)
        else:
            outer, outer_number = inner, number


def _refuse_differing_prefixes(name: str, subnets: Placed, reading: NetworkReading) -> None:
    """Hold what each subnet hands out against the first: one length and one family in a network."""
    handed_out = [(kind, place) for subnet, place in subnets for kind in sorted(_handed_out(subnet))]
    for kind, place in handed_out[1:]:
        if kind != handed_out[0][0]:
            told = f"Network '{name}' has subnets that define different prefixes"
            reading.faults.add(BoshErrorKind.NETWORK_PREFIX_SIZES_DIFFER, told, place)
            return


def _handed_out(subnet: CloudSubnet) -> set[tuple[bool, int]]:
    """Return the families that a subnet gives addresses of, each with the length."""
    ranges = subnet.static if subnet.range is None else (subnet.range,)
    return {(is_v6(each.first), subnet.prefix) for each in ranges}


def _refuse_mixed_azs(name: str, subnets: Placed, reading: NetworkReading) -> None:
    """Refuse that some subnets name AZs and some do not: nobody could say for whom the others are."""
    without = [place for subnet, place in subnets if subnet.azs is None]
    if without and len(without) < len(subnets):
        told = f"Subnets on network '{name}' must all either specify availability zone or not"
        reading.faults.add(BoshErrorKind.JOB_INVALID_AVAILABILITY_ZONE, told, without[0])


def _refuse_same_names(subnets: Placed, reading: NetworkReading) -> None:
    """Refuse two subnets of one name where the cloud's own subnets are found again by it."""
    seen: set[str] = set()
    for subnet, place in subnets:
        if subnet.name in seen:
            reading.faults.add(BoshErrorKind.GENERIC, "subnet names within a managed network must be unique", place)
        if subnet.name is not None:
            seen.add(subnet.name)
