"""What hooks and scripts are told of an instance and its NICs, as variables.

The names and values of today's Ganeti are always there. The names of the revised design come beside them wherever the
design goes beyond today: ``IP:1`` for the second address, ``NETWORK_SUBNET:1`` for the network's second subnet. Each
of these has a twin with an underscore, ``IP_1``, because shells cannot read a name with a colon.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tenure.integrations.ganeti.machine_model import Instance, Nic
from tenure.kernel.addressing.addresses import format_address, is_v6, parse_address
from tenure.kernel.plan.plan_model import Network, Subnet

Variables = dict[str, str]

BRIDGED_MODES = ("bridged", "openvswitch")
"""The modes in which a NIC's link is a bridge."""


def nic_variables(nic: Nic, network: Network | None) -> Variables:
    """Tell all about one NIC, by the names that NIC scripts get: without prefix."""
    variables = _as_today(nic)
    if network is not None:
        variables |= _network_as_today(network, _subnets_of(nic, network))
    # Where today's Ganeti could say it all, hooks get today's variables and no others.
    if len(nic.ips) > 1 or (network is not None and _beyond_today(network)):
        variables |= _in_both_spellings(_numbered(nic, network))
        if network is not None and network.subnets:
            own = _subnets_of(nic, network)
            variables["NETWORK_DHCP"] = _truth((own[0] if own else network.subnets[0]).dhcp)
    return variables


def network_variables(network: Network) -> Variables:
    """Name what hooks of networks are told of one; as in Ganeti, what a network does not have is left out."""
    variables = {name: value for name, value in _network_as_today(network, ()).items() if value}
    if _beyond_today(network):
        variables |= _in_both_spellings(_numbered_subnets(network.subnets))
        variables["NETWORK_DHCP"] = _truth(network.subnets[0].dhcp)
    return variables


def instance_variables(instance: Instance, networks: Mapping[str, Network]) -> Variables:
    """Tell all about an instance; ``networks`` are found by uuid."""
    variables = {
        "INSTANCE_NAME": instance.name,
        "INSTANCE_PRIMARY": instance.node,
        "INSTANCE_NIC_COUNT": str(len(instance.nics)),
    }
    for number, nic in enumerate(instance.nics):
        network = None if nic.network is None else networks.get(nic.network)
        variables |= _prefixed(f"INSTANCE_NIC{number}_", nic_variables(nic, network))
    return variables


def hook_variables(told: Mapping[str, str], after: Mapping[str, str] | None = None) -> Variables:
    """Name variables as hooks get them: what the operation is about and, in the post phase, how that is now."""
    return _prefixed("GANETI_", told) | _prefixed("GANETI_POST_", after or {})


def job_variables(before: Mapping[str, str] | None, after: Mapping[str, str] | None, *, post: bool) -> Variables:
    """Name the variables of an operation on an instance, given as it was (None: new) and as it will be (None: gone).

    Hooks get it as it will be, or as it was if it goes; in a change also as it was, under ``GANETI_OLD_``.
    """
    variables = hook_variables(after or before or {}, after if post else None)
    if before is not None and after is not None:
        variables |= _prefixed("GANETI_OLD_", before)
    return variables


def moving_variables(before: Mapping[str, str], after: Mapping[str, str], *, post: bool) -> Variables:
    """Name the variables of an instance that gets another name or node.

    As in Ganeti, hooks get it as it was; Tenure adds how it will be, under ``GANETI_NEW_``.
    """
    return hook_variables(before, after if post else None) | _prefixed("GANETI_NEW_", after)


def first_subnet(network: Network, *, six: bool) -> Subnet | None:
    """Find what today's Ganeti would call the network's IPv4 or IPv6 block: the first of the family."""
    return next((subnet for subnet in network.subnets if is_v6(subnet.cidr.first) == six), None)


def _prefixed(prefix: str, variables: Mapping[str, str]) -> Variables:
    return {prefix + name: value for name, value in variables.items()}


def _as_today(nic: Nic) -> Variables:
    first = nic.ips[0].address if nic.ips else None
    variables = {
        "IP": first or "",
        "MAC": nic.mac,
        "MODE": nic.mode,
        "LINK": nic.link,
        "VLAN": nic.vlan,
        "UUID": nic.uuid,
    }
    if nic.name:
        variables["NAME"] = nic.name
    if nic.mode in BRIDGED_MODES:
        variables["BRIDGE"] = nic.link
    return variables


def _network_as_today(network: Network, own: Sequence[Subnet]) -> Variables:
    """Describe a network by one block a family: the first of a NIC's own blocks, else the network's first.

    Scripts that know one block configure the address with this gateway, so the two have to belong together.
    """
    variables = {"NETWORK_NAME": network.name, "NETWORK_UUID": network.uuid, "NETWORK_TAGS": " ".join(network.tags)}
    if network.mac_prefix:
        variables["NETWORK_MAC_PREFIX"] = network.mac_prefix
    for suffix, six in (("", False), ("6", True)):
        of_family = (subnet for subnet in own if is_v6(subnet.cidr.first) == six)
        subnet = next(of_family, None) or first_subnet(network, six=six)
        if subnet is not None:
            variables[f"NETWORK_SUBNET{suffix}"] = str(subnet.cidr)
        if subnet is not None and subnet.gateway is not None:
            variables[f"NETWORK_GATEWAY{suffix}"] = format_address(subnet.gateway)
    return variables


def _subnets_of(nic: Nic, network: Network) -> list[Subnet]:
    """List the subnets that a NIC's addresses lie in, in the order of the addresses."""
    places = [_place(parse_address(address), network.subnets) for address in nic.addresses]
    return [network.subnets[place] for place in places if place is not None]


def _beyond_today(network: Network) -> bool:
    """Return whether today's Ganeti could not express a network: it has one subnet a family at most, and no dhcp."""
    families = [is_v6(subnet.cidr.first) for subnet in network.subnets]
    return len(families) > len(set(families)) or any(subnet.dhcp for subnet in network.subnets)


def _numbered(nic: Nic, network: Network | None) -> Iterator[tuple[str, int, str]]:
    """Yield name, number and value of what the revised design adds."""
    subnets = () if network is None else network.subnets
    for number, ip in enumerate(nic.ips):
        yield "IP", number, ip.address or ""
    yield from _numbered_subnets(subnets)
    for number, ip in enumerate(nic.ips):
        place = None if ip.address is None else _place(parse_address(ip.address), subnets)
        if place is not None:
            yield "IP_SUBNET", number, str(place)


def _numbered_subnets(subnets: Iterable[Subnet]) -> Iterator[tuple[str, int, str]]:
    for number, subnet in enumerate(subnets):
        yield "NETWORK_SUBNET", number, str(subnet.cidr)
        if subnet.gateway is not None:
            yield "NETWORK_GATEWAY", number, format_address(subnet.gateway)
        yield "NETWORK_DHCP", number, _truth(subnet.dhcp)


def _in_both_spellings(numbered: Iterable[tuple[str, int, str]]) -> Variables:
    variables: Variables = {}
    for name, number, value in numbered:
        # IP_SUBNET is our own word, so it needs no spelling that the design asks for and shells cannot read.
        if name != "IP_SUBNET":
            variables[f"{name}:{number}"] = value
        variables[f"{name}_{number}"] = value
    return variables


def _place(position: int, subnets: Iterable[Subnet]) -> int | None:
    """Find the number of the subnet around a position."""
    return next((number for number, subnet in enumerate(subnets) if position in subnet.cidr.range), None)


def _truth(value: bool) -> str:
    return "true" if value else "false"
