"""Metadata and network data of a machine, as documents: whole, or not at all."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts, PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import NeededAddress, NeededAddresses
from tenure.integrations.kubernetes.metal3_data.template.read_links import MAC
from tenure.integrations.kubernetes.metal3_data.template.read_template import PROVIDER_ID
from tenure.integrations.kubernetes.metal3_data.template.template_fields import HIGHEST, TemplateRefused
from tenure.integrations.kubernetes.metal3_data.template.template_model import (
    AnnotationText,
    BootInterface,
    DataTemplate,
    DnsServices,
    FixedText,
    FromPool,
    HostInterface,
    LabelText,
    Link,
    MachineIndex,
    MachineRoute,
    MacSource,
    MetaDataItem,
    NamespaceName,
    NetworkEntry,
    ObjectName,
    ObjectSort,
    PoolPart,
    PoolSource,
)
from tenure.kernel.addressing.addresses import is_v6, parse_address
from tenure.kernel.names import shown

Document = dict[str, Any]
MOST_CARDS = 8
"""So many cards a message names: a host may have many, and a message has an end."""


@dataclass(frozen=True, slots=True)
class RenderedData:
    """What a machine gets; a part that its template does not have is nothing."""

    meta_data: dict[str, str] | None
    network_data: Document | None


@dataclass(frozen=True, slots=True)
class RenderRules:
    """In what renderers differ."""

    dns_in_meta_data: bool = True
    """Whether ``dnsServersFromIPPool`` is rendered (R2); CAPM3 accepts it and renders nothing."""


def render_data(
    template: DataTemplate,
    facts: MachineFacts,
    addresses: Mapping[NeededAddress, PoolAddress],
    rules: RenderRules | None = None,
) -> RenderedData:
    """Render a template for a machine that has its addresses; raise ``TemplateRefused`` if a fact is missing."""
    rules = rules or RenderRules()
    machine = _Machine(facts, NeededAddresses(template, facts), addresses)
    meta_data = None
    if template.meta_data is not None:
        items = [item for item in template.meta_data if rules.dns_in_meta_data or not _is_dns(item)]
        meta_data = {item.key: machine.value(item) for item in items} | {PROVIDER_ID: facts.provider_id}
    network_data = None
    if (network := template.network_data) is not None:
        network_data = {
            "links": [machine.link(each) for each in network.links],
            "networks": [machine.network(each) for each in network.networks],
            "services": machine.services(network.services),
        }
    return RenderedData(meta_data, network_data)


def _is_dns(item: MetaDataItem) -> bool:
    return isinstance(item.value, FromPool) and item.value.part is PoolPart.DNS_SERVERS


@dataclass(frozen=True, slots=True)
class _Machine:
    facts: MachineFacts
    needed: NeededAddresses
    addresses: Mapping[NeededAddress, PoolAddress]

    def value(self, item: MetaDataItem) -> str:
        """Return the value of a key of the metadata."""
        match item.value:
            case FixedText(text):
                return text
            case ObjectName(object):
                return self.facts.objects[object].name
            case NamespaceName():
                return self.facts.namespace
            case MachineIndex():
                return _index_text(item.value, self.facts.index, item.path)
            case LabelText(object, label):
                return self.facts.objects[object].labels.get(label, "")
            case AnnotationText(object, annotation):
                return self.facts.objects[object].annotations.get(annotation, "")
            case FromPool(pool, part):
                return _part_text(self._address(pool), part)
            case HostInterface() | BootInterface():
                return self._mac(item.value, item.path)

    def link(self, link: Link) -> Document:
        """Return a link with its MAC address."""
        if link.mac is None:
            return dict(link.fields)
        path = f"{link.path}.macAddress"
        mac = self._mac(link.mac, path)
        if not MAC.fullmatch(mac):
            _refuse(path, f"must come to a MAC address, not {shown(mac)}")
        return {**link.fields, link.mac_field: mac}

    def network(self, network: NetworkEntry) -> Document:
        """Return a network with its routes, and its address if it has a fixed one."""
        written: Document = {"type": str(network.kind), "id": network.id, "link": network.link}
        if network.pool is not None:
            given = self._address(network.pool, network.path)
            written |= {"ip_address": given.address, "netmask": _netmask(given, network)}
        written["routes"] = [self._route(route, network) for route in network.routes]
        return written

    def services(self, services: DnsServices, network: str = "") -> list[Document]:
        """Return DNS servers: those of the template first, then those of the pool (R5)."""
        servers = list(services.servers)
        if services.pool is not None:
            servers += self._address(services.pool, network).dns_servers
        return [{"type": "dns", "address": server} for server in servers]

    def _route(self, route: MachineRoute, network: NetworkEntry) -> Document:
        gateway = route.gateway
        if gateway is not None and not isinstance(gateway, str):
            gateway = self._address(gateway, network.path).gateway
            if gateway and is_v6(parse_address(gateway)) != network.kind.is_v6:
                _refuse(f"{route.path}.gateway", f"{gateway} of the pool is of another family than the network")
        return {
            "network": route.network,
            "netmask": _mask_text(route.prefix, network.kind.is_v6),
            "gateway": gateway or "",
            "services": self.services(route.services, network.path),
        }

    def _address(self, source: PoolSource, network: str = "") -> PoolAddress:
        needed = self.needed.of_pool(source, network)
        if needed not in self.addresses:
            _refuse(source.path, f"there is no address from {needed.pool.kind:.80} {shown(needed.pool.name)}")
        return self.addresses[needed]

    def _mac(self, source: MacSource, path: str) -> str:
        if self.facts.host_unknown and isinstance(source, BootInterface | HostInterface):
            _refuse(path, self.facts.host_unknown)
        match source:
            case FixedText(text):
                return text
            case AnnotationText(object, annotation):
                return self.facts.objects[object].annotations.get(annotation, "")
            case BootInterface():
                return self.facts.boot_mac or _refuse(path, f"{_host_of(self.facts)} has no bootMACAddress")
            case HostInterface(interface):
                if self.facts.interfaces is None:
                    _refuse(path, f"{_host_of(self.facts)} has no status.hardware.nics: it was not inspected yet")
                mac = self.facts.interfaces.get(interface)
                return mac or _refuse(path, _no_card(self.facts, interface))


def _refuse(path: str, reason: str) -> NoReturn:
    raise TemplateRefused([(path, reason)])


def _host_of(facts: MachineFacts) -> str:
    return f"BareMetalHost {facts.objects[ObjectSort.HOST].name!r:.80}"


def _no_card(facts: MachineFacts, interface: str) -> str:
    known = ", ".join([f"{name:.20}" for name in facts.interfaces or ()][:MOST_CARDS])
    return f"{_host_of(facts)} has no network card {shown(interface)}; it has {known or 'none'}"


def _index_text(item: MachineIndex, index: int, path: str) -> str:
    number = item.offset + index * item.step
    if abs(number) > HIGHEST:
        _refuse(path, f"machine {index} would have a number beyond {HIGHEST}")
    return f"{item.prefix}{number}{item.suffix}"


def _part_text(address: PoolAddress, part: PoolPart) -> str:
    match part:
        case PoolPart.ADDRESS:
            return address.address
        case PoolPart.PREFIX:
            return str(address.prefix)
        case PoolPart.GATEWAY:
            return address.gateway
        case PoolPart.DNS_SERVERS:
            # Metadata has texts only.
            return ",".join(address.dns_servers)


def _netmask(given: PoolAddress, network: NetworkEntry) -> str:
    family = is_v6(parse_address(given.address))
    if family != network.kind.is_v6:
        _refuse(network.path, f"{given.address} of the pool is of another family than the network")
    if not 0 <= given.prefix <= (128 if family else 32):
        _refuse(network.path, f"{given.address} has the prefix {given.prefix}, which its family does not have")
    return _mask_text(given.prefix, family)


def _mask_text(prefix: int, v6: bool) -> str:
    network = ipaddress.IPv6Network((0, prefix)) if v6 else ipaddress.IPv4Network((0, prefix))
    return str(network.netmask)
