"""The networks of a group: known ones, each once, that reach its AZs, with the addresses and defaults it asks for."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tenure.integrations.bosh.documents.reading_context import GroupContext, ReadingContext
from tenure.integrations.bosh.documents.static_ips import read_static_ips
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Reader, Tree
from tenure.integrations.bosh.model.address_text import written
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, DocumentPlace
from tenure.integrations.bosh.model.document_model import (
    ADDRESSABLE,
    DNS,
    DYNAMIC,
    GATEWAY,
    VIP,
    CloudNetwork,
    GroupNetwork,
)

KEYS = ("name", "static_ips", "default", "nic_group")

REQUIRED = (DNS, GATEWAY)
VALID = (*REQUIRED, ADDRESSABLE)

Claims = Mapping[str, frozenset[str]]
"""By network, in the order of the group, what it is the default for."""


class Listing(NamedTuple):
    """A network as a group lists it. ``network`` is None if there is none of that name."""

    wish: GroupNetwork
    network: CloudNetwork | None
    tree: Tree

    @property
    def is_vip(self) -> bool:
        """Tell whether it is known to be a VIP network."""
        return self.network is not None and self.network.kind == VIP


def read_group_networks(
    tree: Tree, group: GroupContext, known: ReadingContext, reader: Reader
) -> tuple[GroupNetwork, ...]:
    """Read the networks of a group."""
    said = tree.value.get("networks")
    if said is None or said.value is None or said.value == []:
        told = f"Instance group '{group.name}' must specify at least one network"
        reader.faults.add(BoshErrorKind.JOB_MISSING_NETWORK, told, tree.place if said is None else said.place)
        return ()
    read = [_read_listing(entry, group, known, reader) for entry in reader.each(tree, "networks")]
    listings = [listing for listing in read if listing is not None]
    _refuse_repeated(listings, group, reader)
    if not isinstance(said.value, list) or len(listings) < len(said.value):
        return ()  # whose defaults are missing cannot be told before all networks can be read
    return _with_defaults(listings, group, said, reader)


def _read_listing(entry: Tree, group: GroupContext, known: ReadingContext, reader: Reader) -> Listing | None:
    reader.refuse_others(entry, KEYS)
    name = reader.get(entry, "name", str, needed=True)
    # Read before the name is judged, so that the errors of all keys are reported at once.
    defaults, nic_group = _read_defaults(entry, group, reader), _read_nic_group(entry, reader)
    if name is None:
        return None
    network = known.network(name)
    if network is not None:
        _judge_azs(network, entry, group, reader)
    elif known.lacks_network(name):
        told = f"Instance group '{group.name}' references an unknown network '{name}'"
        reader.faults.add(BoshErrorKind.JOB_UNKNOWN_NETWORK, told, entry.value["name"].place)
    static_ips = _read_wished(entry, group, name, network, reader)
    return Listing(GroupNetwork(name, static_ips, defaults, nic_group), network, entry)


def _read_nic_group(entry: Tree, reader: Reader) -> str | None:
    """Read the name of a NIC group: as text, also where it is a number, so that no two names become one."""
    said = entry.value.get("nic_group")
    # type() and not isinstance(): true is an int, too. A text that is tagged !!int may be too long for str().
    if said is not None and type(said.value) is int and abs(said.value) <= sys.maxsize:
        return str(said.value)
    found: str | None = reader.get(entry, "nic_group", str)
    return found


def _judge_azs(network: CloudNetwork, entry: Tree, group: GroupContext, reader: Reader) -> None:
    """Refuse a network that does not reach all AZs of the group. VIPs are not bound to AZs."""
    if network.kind == VIP:
        return
    if group.azs is None and network.has_azs:
        told = f"Instance group '{group.name}' subnets declare availability zones and the instance group does not"
        reader.faults.add(BoshErrorKind.JOB_INVALID_AVAILABILITY_ZONE, told, entry.place)
    elif not network.azs.issuperset(group.azs or ()):
        told = f"must specify availability zone that matches availability zones of network '{network.name}'"
        kind = BoshErrorKind.JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE
        reader.faults.add(kind, f"Instance group '{group.name}' {told}", entry.place)


def _read_wished(
    entry: Tree, group: GroupContext, name: str, network: CloudNetwork | None, reader: Reader
) -> tuple[int, ...] | None:
    """Read static IPs where the network's type allows them, and ask for them where it needs them."""
    said = entry.value.get("static_ips")
    if said is not None and said.value is None:
        said = None
    if network is not None and network.kind == VIP:
        return _read_vips(said, entry, group, network, reader)
    if said is None:
        return None
    if network is not None and network.kind == DYNAMIC:
        told = f"Instance group '{group.name}' using dynamic network '{name}' cannot specify static IP(s)"
        reader.faults.add(BoshErrorKind.JOB_STATIC_IP_NOT_SUPPORTED_ON_DYNAMIC_NETWORK, told, said.place)
        return None
    return read_static_ips(said, group, name, network, reader.faults)


def _read_vips(
    said: Tree | None, entry: Tree, group: GroupContext, network: CloudNetwork, reader: Reader
) -> tuple[int, ...] | None:
    """Read VIPs: they come from the manifest or from a pool of the cloud config, never from both."""
    if said is None:
        if not network.subnets and group.instances != 0:
            told = f"Instance group '{group.name}' must specify static IPs in vip network '{network.name}'"
            whole = f"{told}, since the network has no pool of its own"
            reader.faults.add(BoshErrorKind.NETWORK_RESERVATION_IP_MISSING, whole, entry.place)
        return None
    if network.subnets and said.value != []:
        told = "IPs cannot be specified in both the instance group and the cloud config"
        reader.faults.add(BoshErrorKind.NETWORK_RESERVATION_VIP_MISCONFIGURED, told, said.place)
        return None
    return read_static_ips(said, group, network.name, network, reader.faults)


def _refuse_repeated(listings: Sequence[Listing], group: GroupContext, reader: Reader) -> None:
    """Refuse a second reservation on one network; the first instance stands for all."""
    first: dict[str, GroupNetwork] = {}
    for wish, _, tree in listings:
        if wish.name in first:
            told = f"Failed to add {_reservation(wish)} for instance '{group.name}/0' on network '{wish.name}'"
            whole = f"{told}, instance already has {_reservation(first[wish.name])} on the same network"
            reader.faults.add(BoshErrorKind.NETWORK_RESERVATION_ALREADY_EXISTS, whole, tree.place)
        first.setdefault(wish.name, wish)


def _reservation(wish: GroupNetwork) -> str:
    if not wish.static_ips:
        return "dynamic reservation"
    return f"static reservation with IP '{written(wish.static_ips[0])}'"


def _with_defaults(
    listings: Sequence[Listing], group: GroupContext, said: Tree, reader: Reader
) -> tuple[GroupNetwork, ...]:
    """Judge the defaults; a network that is the only one is the default for all that is required."""
    claims: dict[str, frozenset[str]] = {}
    for wish, _, _ in listings:
        # A network that is listed twice is reported already: its defaults count together.
        claims[wish.name] = claims.get(wish.name, frozenset()) | wish.defaults
    if len(claims) == 1:
        claims = {name: claimed | frozenset(REQUIRED) for name, claimed in claims.items()}
    for listing in listings:
        if listing.is_vip and claims[listing.wish.name]:
            told = "Can't provide any defaults since this is a VIP network"
            place = listing.tree.value.get("default", listing.tree).place
            reader.faults.add(BoshErrorKind.NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED, told, place)
            claims[listing.wish.name] = frozenset()  # told; others are judged as if it had claimed none
    _judge_defaults(claims, group, said.place, reader.faults)
    return tuple(replace(wish, defaults=claims[wish.name]) for wish, _, _ in listings)


def _read_defaults(entry: Tree, group: GroupContext, reader: Reader) -> frozenset[str]:
    """Read what a network of a group is the default for."""
    found = set()
    for said in reader.each(entry, "default", str):
        if said.value in VALID:
            found.add(said.value)
            continue
        told = f"specified an invalid default network property '{said.value}', valid properties are: "
        # BOSH's message leaves out addressable, although that is valid; scripts compare the text.
        whole = f"Instance group '{group.name}' {told}{', '.join(REQUIRED)}"
        reader.faults.add(BoshErrorKind.JOB_NETWORK_INVALID_DEFAULT, whole, said.place)
    return frozenset(found)


def _judge_defaults(claims: Claims, group: GroupContext, place: DocumentPlace, faults: DocumentFaults) -> None:
    """Refuse defaults that two networks claim, and among several networks those that none does."""
    _refuse_several({prop: _claimants(claims, prop) for prop in VALID}, group, place, faults)
    missing = [prop for prop in REQUIRED if not _claimants(claims, prop)]
    if missing and len(claims) > 1:
        told = f"must specify which network is default for {', '.join(missing)}"
        whole = f"Instance group '{group.name}' {told}, since it has more than one network configured"
        faults.add(BoshErrorKind.JOB_NETWORK_MISSING_DEFAULT, whole, place)


def _claimants(claims: Claims, prop: str) -> list[str]:
    return [name for name, props in claims.items() if prop in props]


def _refuse_several(
    claimed: Mapping[str, Sequence[str]], group: GroupContext, place: DocumentPlace, faults: DocumentFaults
) -> None:
    several = {prop: ", ".join(f"'{name}'" for name in names) for prop, names in claimed.items() if len(names) > 1}
    if several:
        told = " ".join(f"'{prop}' has default networks: {names}." for prop, names in several.items())
        whole = f"Instance group '{group.name}' specified more than one network to contain default. {told}"
        faults.add(BoshErrorKind.JOB_NETWORK_MULTIPLE_DEFAULTS, whole, place)
