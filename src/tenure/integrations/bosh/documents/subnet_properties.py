"""What subnets of every kind have: AZs, name servers, cloud properties."""

from dataclasses import dataclass, field

from tenure.integrations.bosh.documents.address_lists import parse_address_or_block
from tenure.integrations.bosh.documents.azs import Azs
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Reader, Tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, DocumentPlace
from tenure.integrations.bosh.model.document_model import Properties
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import Invalid


@dataclass(slots=True)
class NetworkReading:
    """What is at hand while networks are read, and what came up that is worth a word but no fault."""

    reader: Reader
    azs: Azs
    own_addresses: tuple[AddressRange, ...] = ()
    warnings: list[BoshFault] = field(default_factory=list)

    @property
    def faults(self) -> DocumentFaults:
        """Return what was found wrong so far."""
        return self.reader.faults


def read_subnet_azs(tree: Tree, network: str, reading: NetworkReading) -> tuple[str, ...] | None:
    """Read ``az`` or ``azs``: None where neither is there, empty where something is there and wrong."""
    given = [key for key in ("az", "azs") if key in tree and tree.value[key].value is not None]
    if not given:
        return None
    if len(given) == 2:
        told = f"Network '{network}' contains both 'az' and 'azs'. Choose one."
        reading.faults.add(BoshErrorKind.NETWORK_INVALID_PROPERTY, told, tree.value["azs"].place)
        return ()
    return tuple(dict.fromkeys(_known_azs(tree, given[0], network, reading)))


def _known_azs(tree: Tree, key: str, network: str, reading: NetworkReading) -> list[str]:
    if key == "az":
        members = [tree.value["az"]] if reading.reader.get(tree, "az", str) is not None else []
    else:
        members = list(reading.reader.each(tree, "azs", str))
        if tree.value["azs"].value == []:
            told = f"Network '{network}' refers to an empty 'azs' array"
            reading.faults.add(BoshErrorKind.NETWORK_INVALID_PROPERTY, told, tree.value["azs"].place)
    for member in members:
        if reading.azs.lacks(member.value):
            told = f"Network '{network}' refers to an unknown availability zone '{member.value}'"
            reading.faults.add(BoshErrorKind.NETWORK_SUBNET_UNKNOWN_AVAILABILITY_ZONE, told, member.place)
    return [member.value for member in members]


def read_name_servers(tree: Tree, network: str, reading: NetworkReading) -> list[tuple[int, DocumentPlace]]:
    """Read ``dns``, in the order written."""
    found = []
    for member in reading.reader.each(tree, "dns", str):
        try:
            server = parse_address_or_block(member.value.strip())
        except Invalid as error:
            reading.faults.add(BoshErrorKind.GENERIC, error.message, member.place)
            continue
        if server.size > 1:
            told = f"Invalid DNS for network '{network}': must be a single IP"
            reading.faults.add(BoshErrorKind.NETWORK_INVALID_DNS, told, member.place)
        found.append((server.first, member.place))
    return found


def read_cloud_properties(tree: Tree, reading: NetworkReading) -> Properties:
    """Read ``cloud_properties``, which are the cloud's own affair."""
    return reading.reader.properties(tree, "cloud_properties")
