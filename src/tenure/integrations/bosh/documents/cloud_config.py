"""Cloud configs: what the operator says for all deployments of a site. Several are read as if they were one."""

from collections.abc import Iterator, Mapping, Sequence

from tenure.integrations.bosh.documents.address_lists import read_spans
from tenure.integrations.bosh.documents.azs import Azs, read_azs
from tenure.integrations.bosh.documents.cloud_networks import read_networks
from tenure.integrations.bosh.documents.static_ips import MOST
from tenure.integrations.bosh.documents.subnet_properties import NetworkReading
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Reader, Tree, read_tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, DocumentPlace, Rejected
from tenure.integrations.bosh.model.document_model import DYNAMIC, VIP, CloudConfig, CloudNetwork, Compilation
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.names import shown

KEYS = ("azs", "networks", "compilation", "own_addresses")
OTHER_KEYS = (
    "vm_types",
    "vm_extensions",
    "disk_types",
    "disk_pools",
    "resource_pools",
    "releases",
    "stemcells",
    "update",
    "variables",
    "addons",
    "features",
    "tags",
    "properties",
    "meta",
)
"""Known to BOSH, and nothing to addresses."""

COMPILATION_KEYS = (
    "workers",
    "network",
    "az",
    "orphan_workers",
    "reuse_compilation_vms",
    "vm_type",
    "vm_resources",
    "vm_extensions",
    "cloud_properties",
    "env",
)


def read_cloud_configs(texts: Sequence[tuple[str, str]]) -> tuple[CloudConfig, list[BoshFault]]:
    """Read documents, each a name and a text, into one model, and tell what is worth a warning.

    ``Rejected`` carries everything that is wrong with any of the documents.
    """
    trees = _read_trees(texts)
    faults = DocumentFaults()
    for tree in trees:
        # Not in read_site: a manifest is read there, too, and has other keys at its top.
        Reader(faults).refuse_others(tree, (*KEYS, *OTHER_KEYS))
    found = read_site(trees, faults)
    faults.settle()
    return found


def read_site(trees: Sequence[Tree], faults: DocumentFaults) -> tuple[CloudConfig, list[BoshFault]]:
    """Read AZs, networks and compilation out of trees, and note the faults; with any, the model is good for nothing."""
    reader = Reader(faults)
    azs = read_azs(trees, reader)
    reading = NetworkReading(reader, azs, tuple(_own_addresses(trees, faults)))
    networks = read_networks(trees, reading)
    compilation = _read_compilation(trees, networks, azs, reader)
    known = {name: network for name, network in networks.items() if network is not None}
    return CloudConfig(azs.by_name, known, compilation, reading.own_addresses), reading.warnings


def _own_addresses(trees: Sequence[Tree], faults: DocumentFaults) -> Iterator[AddressRange]:
    """Read the addresses of the machines that Tenure itself runs on: they are kept back in every range."""
    for tree in trees:
        said = tree.value.get("own_addresses")
        if said is not None and said.value is not None:
            yield from (span for span, _ in read_spans(said, faults))


def _read_trees(texts: Sequence[tuple[str, str]]) -> list[Tree]:
    """Read all documents as YAML. With one unreadable the others could not be judged, so they are not."""
    trees: list[Tree] = []
    unreadable: list[BoshFault] = []
    for name, text in texts:
        try:
            trees.append(read_tree(text, name))
        except Rejected as error:
            unreadable.extend(error.faults)
    if unreadable:
        raise Rejected(unreadable)
    return trees


def _read_compilation(
    trees: Sequence[Tree], networks: Mapping[str, CloudNetwork | None], azs: Azs, reader: Reader
) -> Compilation | None:
    found = [each for tree in trees if (each := reader.get(tree, "compilation", dict)) is not None]
    for tree in found[1:]:
        told = "Cloud config 'compilation' key cannot be defined in multiple cloud configs."
        reader.faults.add(BoshErrorKind.GENERIC, told, tree.place)
    if not found:
        return None
    tree = found[0]
    reader.refuse_others(tree, COMPILATION_KEYS)
    reader.get(tree, "reuse_compilation_vms", bool)
    network = reader.get(tree, "network", str, needed=True)
    compilation = Compilation(
        network=network or "",
        workers=_workers(tree, reader),
        az=reader.get(tree, "az", str),
        orphan_workers=bool(reader.get(tree, "orphan_workers", bool)),
    )
    if network is not None:
        _check_network(tree, compilation, networks, azs, reader.faults)
    return compilation


def _workers(tree: Tree, reader: Reader) -> int:
    workers: int | None = reader.get(tree, "workers", int)
    if workers is not None and not 1 <= workers <= MOST:
        place = tree.value["workers"].place
        told = f"Property '{place.path}' must be from 1 to {MOST}, not {shown(workers)}"
        reader.faults.add(BoshErrorKind.GENERIC, told, place)
    return 1 if workers is None else workers


def _check_network(
    tree: Tree, compilation: Compilation, networks: Mapping[str, CloudNetwork | None], azs: Azs, faults: DocumentFaults
) -> None:
    """Make sure that workers can be placed: the network is there, the AZ too, and one reaches the other."""
    where: DocumentPlace = tree.value["network"].place
    if compilation.network not in networks:
        told = f"Compilation config references an unknown network '{compilation.network}'"
        faults.add(BoshErrorKind.COMPILATION_CONFIG_UNKNOWN_NETWORK, told, where)
    network = networks.get(compilation.network)
    if network is not None and network.kind == VIP:
        told = f"Compilation config references vip network '{network.name}', must be a manual or dynamic one"
        faults.add(BoshErrorKind.GENERIC, told, where)
        # This error is reported alone: whether a VIP network reaches the AZ is not judged.
        network = None
    if compilation.az is not None:
        where = tree.value["az"].place
        if azs.lacks(compilation.az):
            told = f"Compilation config references unknown az '{compilation.az}'."
            told += f" Known azs are: [{', '.join(azs.by_name)}]"
            faults.add(BoshErrorKind.COMPILATION_CONFIG_INVALID_AVAILABILITY_ZONE, told, where)
            return
    if network is not None and not _reaches(network, compilation.az):
        faults.add(*_unreached(network, compilation.az), where)


def _reaches(network: CloudNetwork, az: str | None) -> bool:
    return not network.has_azs if az is None else az in network.azs


def _unreached(network: CloudNetwork, az: str | None) -> tuple[BoshErrorKind, str]:
    if network.kind == DYNAMIC and az is not None:
        told = f"Network '{network.name}' has no matching subnet for availability zone '{az}'"
        return BoshErrorKind.NETWORK_SUBNET_INVALID_AVAILABILITY_ZONE, told
    told = f"Compilation config refers to az '{az or ''}' but network '{network.name}' has no matching subnet(s)."
    return BoshErrorKind.JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE, told
