"""Network settings: what an instance's VM is made with. A VM whose settings would be others now is made anew."""

from collections.abc import Mapping, Sequence
from typing import Any

from tenure.integrations.bosh.model.address_diff import subnet_of
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import (
    DNS,
    DYNAMIC,
    GATEWAY,
    MANUAL,
    VIP,
    CloudConfig,
    CloudNetwork,
    CloudSubnet,
    Properties,
)
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.kernel.addressing.addresses import format_address, is_v6, width
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.holdings.holding_model import Holding

IP = "ip"
WAITING = "waiting"
"""What stands in settings in place of an address that another is to hand over first."""


def settings_of(
    instance: DeploymentInstance, config: CloudConfig, held: Sequence[Holding] | None = None
) -> dict[str, Any]:
    """Return the settings of each network that an instance is on, by name, in the order of its group."""
    addresses = by_network(instance, config, instance.wanted if held is None else held)
    return {
        said["name"]: _settings(instance, config.networks[said["name"]], said, addresses.get(said["name"]))
        for said in instance.networks
        if said["name"] in config.networks
    }


def by_network(instance: DeploymentInstance, config: CloudConfig, held: Sequence[Holding]) -> dict[str, Holding]:
    """Return what is held by the names that an instance's networks have in this config; the ledger's may be newer."""
    found = {each.network: each for each in held}
    names = [said["name"] for said in instance.networks if said["name"] in config.networks]
    renamed = [each for each in held if each.network not in names]
    for name in names:
        fitting = (each for each in renamed if subnet_of(config.networks[name], each.row.first, instance.az))
        if name not in found and (other := next(fitting, None)) is not None:
            found[name] = other
            renamed.remove(other)
    return found


def _settings(
    instance: DeploymentInstance, network: CloudNetwork, said: Properties, held: Holding | None
) -> dict[str, Any]:
    more = {} if said["nic_group"] is None else {"nic_group": said["nic_group"]}
    defaults = {"default": said["defaults"]} if said["defaults"] else {}
    if network.kind == DYNAMIC:
        return {**_dynamic(instance, network), **defaults, **more}
    if held is None:
        for wait in instance.waits:
            if wait["network"] == network.name:
                return {"type": network.kind, WAITING: {IP: wait["address"], "of": wait["of"]}, **defaults, **more}
        raise Refused(BoshErrorKind.NETWORK_RESERVATION_IP_MISSING, "Can't generate network settings without an IP")
    if network.kind == VIP:
        return {"type": VIP, IP: held.address, "cloud_properties": dict(network.cloud_properties), **more}
    subnet = subnet_of(network, held.row.first, instance.az)
    if subnet is None:
        raise Refused(
            BoshErrorKind.NETWORK_RESERVATION_INVALID_IP, f"Provided IP '{held.address}' does not belong to any subnet"
        )
    return {**_manual(subnet, held), **defaults, **more}


def _dynamic(instance: DeploymentInstance, network: CloudNetwork) -> dict[str, Any]:
    subnet = next((each for each in network.subnets if each.serves(instance.az)), None)
    if subnet is None:
        raise Refused(
            BoshErrorKind.NETWORK_SUBNET_INVALID_AVAILABILITY_ZONE,
            f"Network '{network.name}' has no matching subnet for availability zone '{instance.az}'",
        )
    hint = instance.hints.get(network.name)
    told = {} if hint is None else {IP: hint}
    return {"type": DYNAMIC, **told, "dns": list(subnet.dns), "cloud_properties": dict(subnet.cloud_properties)}


def _manual(subnet: CloudSubnet, held: Holding) -> dict[str, Any]:
    assert subnet.range is not None
    single = held.unit == width(held.row.first)
    told: dict[str, Any] = {"type": MANUAL, IP: held.address if single else f"{held.address}/{held.unit}"}
    told["netmask"] = netmask(subnet.range)
    told["prefix"] = str(held.unit)
    told["cloud_properties"] = dict(subnet.cloud_properties)
    if subnet.gateway is not None:
        told[GATEWAY] = format_address(subnet.gateway)
    if subnet.dns:
        told[DNS] = list(subnet.dns)
    return told


def netmask(cidr: Cidr) -> str:
    """Write the mask of a subnet: IPv4 in dots, IPv6 as the address it is in BOSH."""
    bits = width(cidr.first)
    mask = ((1 << cidr.prefix) - 1) << (bits - cidr.prefix)
    if is_v6(cidr.first):
        return ":".join(f"{mask >> shift & 0xFFFF:04x}" for shift in range(112, -1, -16))
    return ".".join(str(mask >> shift & 0xFF) for shift in (24, 16, 8, 0))


def without_hints(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return settings without what the IaaS picked: another address from it is no reason for another VM."""
    return {
        name: {key: value for key, value in said.items() if said["type"] != DYNAMIC or key != IP}
        for name, said in settings.items()
    }
