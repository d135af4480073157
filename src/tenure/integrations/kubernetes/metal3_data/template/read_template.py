"""Templates as people write them: of v1beta1 and v1beta2, and as the design of 2020 printed them (KS9)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.metal3_data.template.read_links import read_links
from tenure.integrations.kubernetes.metal3_data.template.template_fields import (
    HIGHEST,
    ReadingNotes,
    TemplateFields,
    TemplateRefused,
    check_address,
)
from tenure.integrations.kubernetes.metal3_data.template.template_model import (
    POOL_GROUP,
    POOL_KIND,
    AddressingKind,
    AnnotatedPool,
    AnnotationText,
    BootInterface,
    DataTemplate,
    DnsServices,
    FixedText,
    FromPool,
    HostInterface,
    LabelText,
    MachineIndex,
    MachineRoute,
    MetaDataItem,
    MetaDataValue,
    NamespaceName,
    NetworkDataTemplate,
    NetworkEntry,
    ObjectName,
    ObjectSort,
    PoolPart,
    PoolReference,
    PoolSource,
)
from tenure.kernel.names import shown

GROUP, KIND = "infrastructure.cluster.x-k8s.io", "Metal3DataTemplate"
VERSIONS = ("v1beta1", "v1beta2")
ADDRESSES = "ipam.tenure.dev/addresses"
"""The annotation of a template that says how many addresses its machines have."""
PER_POOL, PER_NETWORK = "one-per-pool", "one-per-network"
PROVIDER_ID = "providerid"
"""The key of the metadata that every machine has, whatever its template says."""

NETWORK_LISTS = {
    "ipv4": AddressingKind.IPV4, "ipv6": AddressingKind.IPV6, "ipv4DHCP": AddressingKind.IPV4_DHCP,
    "ipv6DHCP": AddressingKind.IPV6_DHCP, "ipv6SLAAC": AddressingKind.IPV6_SLAAC,
}  # fmt: skip
STATIC = (AddressingKind.IPV4, AddressingKind.IPV6)


class TemplateReading(NamedTuple):
    """A template that was read, and which old spellings it has."""

    template: DataTemplate
    translated: tuple[str, ...]


def read_template(written: Mapping[str, Any]) -> TemplateReading:
    """Read a template; raise ``TemplateRefused`` with all that is wrong, each with the path of its field."""
    notes = ReadingNotes()
    fields = TemplateFields(written, "", notes)
    _check_type(fields, notes)
    metadata = fields.map("metadata") or TemplateFields({}, "metadata", notes)
    spec = fields.map("spec") or TemplateFields({}, "spec", notes)
    # Taken, so that ``finish`` does not refuse it: a template that kubectl has printed has one.
    fields.take("status")
    fields.finish()
    spec.take("templateReference")  # a field of former versions, which nobody reads
    template = DataTemplate(
        name=metadata.text("name"),
        namespace=metadata.text("namespace", needed=False),
        cluster_name=spec.text("clusterName", needed=False),
        meta_data=_read_meta_data(spec.map("metaData"), notes),
        network_data=_read_network_data(spec.map("networkData")),
        address_per_network=_is_per_network(metadata, notes),
    )
    spec.finish()
    notes.check()
    return TemplateReading(template, tuple(notes.translated))


def check_cluster(template: DataTemplate, cluster: str) -> None:
    """Refuse a template of another cluster than the machine's: what belongs to two clusters moves with neither."""
    other = template.cluster_name
    if cluster and other and cluster != other:
        reason = f"the template is of cluster {other!r:.80}, the machine of {cluster!r:.80}"
        raise TemplateRefused([("spec.clusterName", reason)])


def _check_type(fields: TemplateFields, notes: ReadingNotes) -> None:
    group, _, version = fields.text("apiVersion").partition("/")
    kind = fields.text("kind")
    if notes.faults:
        return
    if (group, kind) != (GROUP, KIND):
        notes.refuse("kind", f"must be a {KIND} of {GROUP}, not {kind:.80} of {group:.80}")
    elif version.startswith("v1alpha"):
        notes.translated.append(f"apiVersion {group}/{version} is read as {VERSIONS[0]}")
    elif version not in VERSIONS:
        notes.refuse("apiVersion", f"must be {GROUP}/{' or '.join(VERSIONS)}, not {group}/{version:.80}")


def _is_per_network(metadata: TemplateFields, notes: ReadingNotes) -> bool:
    annotations = metadata.take("annotations")
    value = annotations.get(ADDRESSES, PER_POOL) if isinstance(annotations, Mapping) else PER_POOL
    if value not in (PER_POOL, PER_NETWORK):
        notes.refuse(f"metadata.annotations.{ADDRESSES}", f"must be {PER_POOL} or {PER_NETWORK}, not {value!r:.80}")
    return value == PER_NETWORK


def _pool_item(part: PoolPart) -> Callable[[TemplateFields], MetaDataValue]:
    def read(item: TemplateFields) -> MetaDataValue:
        name = item.text("name", "Name")
        group = item.text("apiGroup", needed=False) or POOL_GROUP
        kind = item.text("kind", needed=False) or POOL_KIND
        return FromPool(PoolReference(name, group, kind, item.place("name")), part)

    return read


def _index_item(item: TemplateFields) -> MetaDataValue:
    return MachineIndex(
        item.number("offset", lowest=-HIGHEST),
        # A step of nothing would give every machine one number; the API's default is meant.
        item.number("step", 1, lowest=-HIGHEST) or 1,
        item.text("prefix", needed=False),
        item.text("suffix", needed=False),
    )


def _interface_item(item: TemplateFields) -> MetaDataValue:
    name, boots = item.text("interface", needed=False), item.take("fromBootMAC")
    if boots is not None and not isinstance(boots, bool):
        item.notes.refuse(item.place("fromBootMAC"), f"must be true or false, not {shown(boots)}")
    elif boots and name:
        item.notes.refuse(item.place("interface"), "must be empty where fromBootMAC is true")
    elif not boots and not name:
        item.notes.refuse(item.place("interface"), "is missing")
    return BootInterface() if boots else HostInterface(name)


def _object(item: TemplateFields) -> ObjectSort:
    # After a fault the value is never used; any will do.
    return ObjectSort(item.choice("object", list(ObjectSort)) or ObjectSort.MACHINE)


META_DATA_LISTS: dict[tuple[str, ...], Callable[[TemplateFields], MetaDataValue]] = {
    ("strings",): lambda item: FixedText(item.text("value", needed=False)),
    ("objectNames",): lambda item: ObjectName(_object(item)),
    ("indexes",): _index_item,
    ("namespaces",): lambda item: NamespaceName(),
    ("ipAddressesFromIPPool", "ipAddressesFromPool"): _pool_item(PoolPart.ADDRESS),
    ("prefixesFromIPPool", "prefixesFromPool"): _pool_item(PoolPart.PREFIX),
    ("gatewaysFromIPPool", "gatewaysFromPool"): _pool_item(PoolPart.GATEWAY),
    ("dnsServersFromIPPool", "dnsServersFromPool"): _pool_item(PoolPart.DNS_SERVERS),
    ("fromHostInterfaces",): _interface_item,
    ("fromLabels",): lambda item: LabelText(_object(item), item.text("label")),
    ("fromAnnotations",): lambda item: AnnotationText(_object(item), item.text("annotation")),
}
"""The lists of metadata by their names in v1beta1 and v1beta2, and how an item of each is read."""


def _read_meta_data(meta_data: TemplateFields | None, notes: ReadingNotes) -> tuple[MetaDataItem, ...] | None:
    if meta_data is None:
        return None
    items = [
        MetaDataItem(item.text("key", "Key"), read(item), item.path)
        for names, read in META_DATA_LISTS.items()
        for name in names
        for item in meta_data.maps(name)
    ]
    meta_data.finish()
    first = {PROVIDER_ID: "what every machine has"}
    for item in items:
        if item.key in first:
            notes.refuse(f"{item.path}.key", f"{item.key!r:.80} is there twice: {first[item.key]} has it, too")
        elif item.key:
            first[item.key] = item.path
    return tuple(items)


def _read_network_data(network_data: TemplateFields | None) -> NetworkDataTemplate | None:
    if network_data is None:
        return None
    networks = network_data.map("networks")
    found = NetworkDataTemplate(
        links=tuple(read_links(network_data.map("links"))),
        networks=tuple(_read_networks(networks)) if networks is not None else (),
        services=_read_services(network_data, v6=None),
    )
    if networks is not None:
        networks.finish()
    network_data.finish()
    return found


def _read_networks(networks: TemplateFields) -> Iterator[NetworkEntry]:
    for name, kind in NETWORK_LISTS.items():
        for entry in networks.maps(name):
            yield NetworkEntry(
                kind=kind,
                id=entry.text("id"),
                link=entry.text("link"),
                pool=_address_source(entry) if kind in STATIC else None,
                routes=tuple(_read_route(route, kind.is_v6) for route in entry.maps("routes")),
                path=entry.path,
            )


def _address_source(entry: TemplateFields) -> PoolSource | None:
    """Return where a static network's address comes from (R3): an annotation, else a reference, else a name."""
    name = entry.text("ipAddressFromIPPool", "ipAddressfromIPPool", needed=False)
    source = _referenced_pool(entry) or (PoolReference(name, path=entry.place("ipAddressFromIPPool")) if name else None)
    if source is None:
        entry.notes.refuse(entry.path, "one of ipAddressFromIPPool, fromPoolRef and fromPoolAnnotation is missing")
    return source


def _referenced_pool(fields: TemplateFields) -> PoolSource | None:
    """Return the pool of an annotation, which comes before a reference; both are read, so that neither is wrong."""
    reference, annotation = fields.map("fromPoolRef"), fields.map("fromPoolAnnotation")
    found: PoolSource | None = None
    if reference is not None:
        group = reference.text("apiGroup", needed=False) or POOL_GROUP
        kind = reference.text("kind", needed=False) or POOL_KIND
        found = PoolReference(reference.text("name"), group, kind, reference.path)
        reference.finish()
    if annotation is not None:
        found = AnnotatedPool(_object(annotation), annotation.text("annotation"), annotation.path)
        annotation.finish()
    return found


def _read_route(route: TemplateFields, v6: bool) -> MachineRoute:
    network = route.address("network", v6)
    if not network and not route.has("network"):
        route.notes.refuse(route.place("network"), "is missing")
    return MachineRoute(
        network=network,
        prefix=route.number("prefix", highest=128 if v6 else 32),
        gateway=_read_gateway(route.map("gateway"), v6),
        services=_read_services(route, v6),
        path=route.path,
    )


def _read_gateway(gateway: TemplateFields | None, v6: bool) -> str | PoolSource | None:
    """Return a gateway (R4): a text, else what an annotation, a reference or a name says of its pool."""
    if gateway is None:
        return None
    written, name = gateway.address("string", v6), gateway.text("fromIPPool", needed=False)
    pool = _referenced_pool(gateway) or (PoolReference(name, path=gateway.place("fromIPPool")) if name else None)
    gateway.finish()
    return written or pool


def _read_services(fields: TemplateFields, v6: bool | None) -> DnsServices:
    written = fields.take("services")
    if isinstance(written, list):
        return _read_old_services(fields, v6)
    services = fields.map("services")
    if services is None:
        return DnsServices()
    notes = fields.notes
    servers = tuple(check_address(server, path, v6, notes) for path, server in services.list("dns"))
    pool = services.text("dnsFromIPPool", needed=False)
    found = DnsServices(servers, PoolReference(pool, path=services.place("dnsFromIPPool")) if pool else None)
    services.finish()
    return found


def _read_old_services(fields: TemplateFields, v6: bool | None) -> DnsServices:
    """Read services as the design printed them: a list of types and addresses."""
    servers = []
    for service in fields.maps("services"):
        service.choice("type", ["dns"])
        address = service.address("address", v6)
        if not address and not service.has("address"):
            service.notes.refuse(service.place("address"), "is missing")
        servers.append(address)
    fields.notes.translated.append(f"{fields.place('services')} is read as a map with dns")
    return DnsServices(tuple(servers))
