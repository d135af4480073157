"""Managed networks as the ledger keeps them: which of their subnets the cloud has, and which deployments use them.

What the cloud chose (a range, a gateway) is in no cloud config: configs are completed by it whenever they are read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tenure.integrations.bosh.model.document_model import CloudConfig, CloudNetwork, CloudSubnet
from tenure.integrations.bosh.model.pool_ranges import restricted_ranges
from tenure.kernel.addressing.addresses import V4_BASE, parse_address, width
from tenure.kernel.addressing.ranges import AddressRange, merge, parse_cidr, parse_range
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.service.apply.operations import ExpectPaper, Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

MANAGED = "deployments.network"
READY, CREATING, DELETING = "ready", "creating", "deleting"


@dataclass(frozen=True, slots=True)
class CreatedSubnet:
    """A subnet that is there in the cloud, by the cloud's own name of it (``cid``).

    ``range``, ``gateway`` and ``reserved`` are what the cloud chose where the cloud config left that to it;
    ``cloud_properties`` come to those of the cloud config.
    """

    cid: str
    range: str | None = None
    gateway: str | None = None
    reserved: tuple[str, ...] = ()
    cloud_properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Managed:
    """A managed network: its subnets by name, and who uses it. Used by nobody it is an orphan, and may be deleted.

    ``state`` says whether somebody is at work on it, and ``by`` who that is.
    """

    name: str
    state: str = READY
    by: str = ""
    subnets: Mapping[str, CreatedSubnet] = field(default_factory=dict)
    deployments: tuple[str, ...] = ()
    revision: int = 0

    @property
    def orphaned(self) -> bool:
        """Tell whether nobody uses it."""
        return not self.deployments

    def written(self) -> Operation:
        """Return the operation that writes it down, over the revision that was read."""
        subnets = {name: {**_told(each), "reserved": list(each.reserved)} for name, each in self.subnets.items()}
        said = {"state": self.state, "by": self.by, "subnets": subnets, "deployments": list(self.deployments)}
        return WritePaper(kind=MANAGED, name=self.name, document=said, revision=self.revision)

    def removed(self) -> Operation:
        """Return the operation that takes it out of the books."""
        return RemovePaper(kind=MANAGED, name=self.name, revision=self.revision)

    def expected(self) -> Operation:
        """Return what rests on it: it is as it was read."""
        return ExpectPaper(kind=MANAGED, name=self.name, revision=self.revision)


def _told(subnet: CreatedSubnet) -> dict[str, Any]:
    return {
        "cid": subnet.cid,
        "range": subnet.range,
        "gateway": subnet.gateway,
        "cloud_properties": dict(subnet.cloud_properties),
    }


def _read(paper: Paper) -> Managed:
    said = paper.document
    subnets = {
        name: CreatedSubnet(**{**each, "reserved": tuple(each["reserved"])}) for name, each in said["subnets"].items()
    }
    return Managed(paper.name, said["state"], said["by"], subnets, tuple(said["deployments"]), paper.revision)


async def load_managed(ledger: AsyncLedger) -> dict[str, Managed]:
    """Read all managed networks that are there, or under way, by name."""
    return {paper.name: _read(paper) for paper in await ledger.papers(MANAGED)}


async def find_managed(ledger: AsyncLedger, name: str) -> Managed | None:
    """Read a managed network, if it is there or under way."""
    try:
        return _read(await ledger.paper(MANAGED, name))
    except NotFound:
        return None


async def uses(ledger: AsyncLedger, deployment: str, names: Collection[str], left: Collection[str]) -> list[Operation]:
    """Return the operations after which a deployment uses these managed networks, and no others.

    Of those that it names no more it goes on to use those where it has something ``left``. While somebody is at work on
    one of them, that cannot be said.
    """
    operations: list[Operation] = []
    for managed in (await load_managed(ledger)).values():
        was = deployment in managed.deployments
        now = managed.name in names or (was and managed.name in left)
        if managed.state != READY and (was or now):
            raise Conflict(f"managed network {managed.name!r} is {managed.state} by another; try again")
        if was != now:
            others = {each for each in managed.deployments if each != deployment}
            whole = tuple(sorted(others | ({deployment} if now else set())))
            operations.append(replace(managed, deployments=whole).written())
        elif now:
            # Nothing changes here, but the deploy needs the network: it must not be deleted meanwhile.
            operations.append(managed.expected())
    return operations


async def complete(ledger: AsyncLedger, config: CloudConfig) -> CloudConfig:
    """Read what the cloud chose for a config's managed networks, and return the config with it."""
    # Most sites manage no network, and are spared the look at the ledger.
    if not any(network.managed for network in config.networks.values()):
        return config
    return completed(config, (await load_managed(ledger)).values())


def completed(config: CloudConfig, there: Iterable[Managed]) -> CloudConfig:
    """Return a cloud config with what the cloud chose."""
    known = {each.name: each.subnets for each in there}
    networks = {
        name: _completed(network, known[name], config.own_addresses) if network.managed and name in known else network
        for name, network in config.networks.items()
    }
    return replace(config, networks=networks)


def _completed(
    network: CloudNetwork, created: Mapping[str, CreatedSubnet], own: Sequence[AddressRange]
) -> CloudNetwork:
    subnets = [
        each if each.name not in created else as_created(each, created[each.name or ""], own)
        for each in network.subnets
    ]
    return replace(network, subnets=tuple(subnets))


def as_created(subnet: CloudSubnet, created: CreatedSubnet, own: Sequence[AddressRange] = ()) -> CloudSubnet:
    """Return a subnet with what the cloud chose for it."""
    subnet = replace(subnet, cloud_properties={**subnet.cloud_properties, **created.cloud_properties})
    if subnet.range is not None or created.range is None:
        return subnet
    cidr = parse_cidr(created.range)
    gateway = None if created.gateway is None else parse_address(created.gateway)
    reserved = merge(parse_range(each) for each in created.reserved)
    servers = [place for place in map(parse_address, subnet.dns) if place in cidr.range]
    # subnet_pools restricts the same in a range that is written; where the cloud chooses, the reader knew no range.
    kept = [cidr.first, cidr.last, *servers, *([] if gateway is None else [gateway])]
    restricted = restricted_ranges(cidr.range, reserved, own, kept)
    whole = subnet.prefix == width(V4_BASE)  # as it is where nothing is said, whatever family the cloud chose
    return replace(
        subnet, range=cidr, gateway=gateway, reserved=tuple(reserved), restricted=tuple(restricted),
        prefix=width(cidr.first) if whole else subnet.prefix,
    )  # fmt: skip
