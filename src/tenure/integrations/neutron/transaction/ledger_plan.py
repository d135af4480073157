"""A subnet of Neutron's as a network of a ledger: one block, its pools, its gateway kept for whoever names it."""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, parse_cidr
from tenure.kernel.errors import Conflict, NotFound, StillInUse
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.plan.edits import (
    AddNetwork,
    AddPool,
    AddSubnet,
    Edit,
    ModifyNetwork,
    ModifySubnet,
    RemoveNetwork,
    RemovePool,
    RemoveSubnet,
)
from tenure.kernel.plan.plan_model import Network, Policy, Subnet
from tenure.service.apply.operations import Cancel, Expect, ExpectNoHoldings, Operation, Release
from tenure.service.ledger.async_ledger import AsyncLedger

LOG = logging.getLogger(__name__)

T = TypeVar("T")

PAGE = 1000
"""Holdings that are ended in one ``apply``."""

TRIES = 5
"""Times that a plan which somebody else changes meanwhile is looked at anew."""

_NUMBER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

MARK = "neutron-plan"
"""The label that says which plan of Neutron's a network follows."""


def network_name(realm: str, subnet: str) -> str:
    """Name the network that stands for a subnet, by the subnet's number."""
    return f"{realm}-{subnet}"


def ledger_owner(realm: str, owner: str) -> str:
    """Name an owner as the ledger knows it."""
    return f"{realm}:{owner}"


def subnet_of(realm: str, network: str) -> str | None:
    """Return the number of the subnet that a network stands for, if it is one of this realm's."""
    number = network.removeprefix(f"{realm}-")
    return number if number != network and _NUMBER.fullmatch(number) else None


def is_ours(realm: str, holding: Holding) -> bool:
    """Tell whether an owner of this deployment holds it."""
    return holding.row.owner.startswith(ledger_owner(realm, ""))


def guests(realm: str, holdings: Iterable[Holding]) -> list[Holding]:
    """Return what others than this deployment hold. What cools down belongs to nobody any more."""
    return [each for each in holdings if each.state is not State.COOLING and not is_ours(realm, each)]


async def follow(ledger: AsyncLedger, name: str, subnet: SubnetRecord) -> None:
    """Make the ledger's plan that of a subnet, whatever it was; whoever does the same at once does no harm."""
    await _until_still(lambda: _follow(ledger, name, subnet))


async def _until_still(work: Callable[[], Awaitable[T]]) -> T:
    """Do work that rests on a reading; it is read again where somebody changed it meanwhile, a few times."""
    for _ in range(TRIES - 1):
        try:
            return await work()
        except Conflict:
            continue
        except NotFound as error:
            if error.kind == "network":
                raise
    return await work()


async def _follow(ledger: AsyncLedger, name: str, subnet: SubnetRecord) -> None:
    try:
        network = await ledger.network(name)
    except NotFound:
        await ledger.apply(_added(name, subnet))
        return
    if agrees(network, subnet):
        return
    edits = _changed(network, subnet)
    try:
        await ledger.apply(edits)
    except StillInUse:
        # Addresses of a block that went away are still held: the block stays, without pools, until they are gone.
        await ledger.apply([edit for edit in edits if not isinstance(edit, RemoveSubnet)])


async def become(ledger: AsyncLedger, realm: str, number: str, subnet: SubnetRecord | None) -> None:
    """Make the ledger's plan that of a subnet, or nothing where there is none."""
    name = network_name(realm, number)
    if subnet is not None:
        await follow(ledger, name, subnet)
        return
    try:
        if await remove(ledger, realm, name):
            LOG.warning("somebody else holds addresses in network %s, whose subnet is gone: it is retired", name)
            await _until_still(lambda: _retire(ledger, realm, name))
    except NotFound as error:
        if error.kind != "network":
            raise


async def remove(ledger: AsyncLedger, realm: str, name: str) -> list[Holding]:
    """Remove a network and what this deployment holds in it, unless it has guests; return what they hold.

    NotFound if there is no such network. Cost: O(holdings of the network).
    """
    return await _until_still(lambda: _remove(ledger, realm, name))


async def _remove(ledger: AsyncLedger, realm: str, name: str) -> list[Holding]:
    network, holdings = await ledger.network(name), await ledger.holdings(name)
    found = guests(realm, holdings)
    if found:
        return found
    endings = [_ended(each) for each in holdings if each.state is not State.COOLING]
    while len(endings) > PAGE:
        await ledger.apply(endings[:PAGE])
        del endings[:PAGE]
    # Expected in the same ``apply``: the cascade, which is there for what cools down, would end what a guest got since.
    nobody = [
        ExpectNoHoldings(network=name, range=str(block.cidr.range), state=state)
        for block in network.subnets
        for state in State
        if state is not State.COOLING
    ]
    same = Expect(network=name, serial=network.serial, uuid=network.uuid)
    await ledger.apply([same, *endings, *nobody, RemoveNetwork(network=name, cascade=True)])
    return []


async def _retire(ledger: AsyncLedger, realm: str, name: str) -> None:
    """Let a network hand out nothing any more, and end what this deployment holds in it."""
    holdings = await ledger.holdings(name)
    endings = [_ended(each) for each in holdings if is_ours(realm, each) and each.state is not State.COOLING]
    await ledger.apply([*endings, ModifyNetwork(network=name, retired=True)])


def _ended(holding: Holding) -> Operation:
    kind = Cancel if holding.state is State.PENDING else Release
    owner, generation = str(holding.owner), holding.generation
    return kind(network=holding.network, address=holding.address, owner=owner, generation=generation)


def agrees(network: Network, subnet: SubnetRecord) -> bool:
    """Tell whether a network is what a subnet wants of it."""
    wanted, found = parse_cidr(subnet.cidr), _block(network, subnet)
    if found is None or found.cidr != wanted or found.gateway != _gateway(subnet):
        return False
    pools = [pool.range for _, pool in network.pools()]
    return network.notes.labels.get(MARK) == subnet.mark and sorted(pools) == sorted(subnet.pools)


def _added(name: str, subnet: SubnetRecord) -> list[Operation]:
    description = f"subnet {subnet.id} of Neutron"
    network = AddNetwork(network=name, space=subnet.space, labels={MARK: subnet.mark}, description=description)
    return [network, _new_block(name, subnet), *_pools(name, subnet)]


def _changed(network: Network, subnet: SubnetRecord) -> list[Operation]:
    """Name the edits that lead from a network to what a subnet wants: the old pools go, the new ones come."""
    name, wanted = network.name, parse_cidr(subnet.cidr)
    edits: list[Edit] = [ModifyNetwork(network=name, labels={**network.notes.labels, MARK: subnet.mark})]
    # The old pools go first: the ledger refuses to move a block away from under a pool.
    edits += [RemovePool(network=name, pool=_range_text(pool.range)) for _, pool in network.pools()]
    found = _block(network, subnet)
    gateway = _gateway_text(subnet)
    if found is not None:
        edits.append(ModifySubnet(network=name, subnet=found.uuid, cidr=str(wanted), gateway=gateway))
    else:
        edits.append(_new_block(name, subnet))
    edits += _pools(name, subnet)
    others = [block for block in network.subnets if block is not found]
    edits += [RemoveSubnet(network=name, subnet=block.uuid) for block in others]
    return [Expect(network=name, serial=network.serial, uuid=network.uuid), *edits]


def _block(network: Network, subnet: SubnetRecord) -> Subnet | None:
    """Find the block that becomes the subnet's: the one that lies over it, if there is one."""
    wanted = parse_cidr(subnet.cidr).range
    return next((block for block in network.subnets if block.cidr.range.overlaps(wanted)), None)


def _new_block(name: str, subnet: SubnetRecord) -> AddSubnet:
    gateway = _gateway_text(subnet)
    # The gateway alone: Neutron itself leaves out the first and the last address, in its pools and in its checks.
    return AddSubnet(network=name, cidr=str(parse_cidr(subnet.cidr)), gateway=gateway, keep_back=["gateway"])


def _pools(name: str, subnet: SubnetRecord) -> list[Edit]:
    return [AddPool(network=name, range=_range_text(pool), policy=Policy.RANDOM) for pool in subnet.pools]


def _range_text(piece: AddressRange) -> str:
    return f"{format_address(piece.first)}-{format_address(piece.last)}"


def _gateway(subnet: SubnetRecord) -> int | None:
    """Return the gateway, where the ledger can keep it: Neutron allows one outside of the block."""
    gateway = None if subnet.gateway_ip is None else parse_address(subnet.gateway_ip)
    return gateway if gateway is not None and gateway in parse_cidr(subnet.cidr).range else None


def _gateway_text(subnet: SubnetRecord) -> str | None:
    gateway = _gateway(subnet)
    return None if gateway is None else format_address(gateway)
