"""The ledger's refusals in the words of BOSH: which instance wanted what, and who has it."""

from tenure.integrations.bosh.model.address_text import written_in
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import CloudConfig, CloudNetwork
from tenure.integrations.bosh.planning.step_operations import Work
from tenure.integrations.bosh.state.compile_workers import COMPILER, group_of
from tenure.integrations.bosh.state.instance_state import INSTANCE, ORPHANED, REALM, DeploymentInstance
from tenure.kernel.errors import AddressInUse, AddressReserved, Conflict, PoolExhausted, TenureError
from tenure.kernel.names import Owner
from tenure.service.ledger.async_ledger import AsyncLedger

Refusal = AddressInUse | AddressReserved | PoolExhausted


async def explained(ledger: AsyncLedger, error: Refusal, work: Work, config: CloudConfig) -> TenureError:
    """Return what BOSH says where the ledger says no.

    A conflict where there is room by now, or where no reservation of the plan is meant: somebody else did something in
    this moment, and all is to be tried again.
    """
    if isinstance(error, PoolExhausted):
        found = await first_without_room(ledger, work)
        if found is None:
            return Conflict("addresses became free in this moment; try again")
        step, take = work.takes[found]
        return no_room(step.instance.long_name, config.networks[take.network], step.instance.az)
    asking = [pair for pair in work.takes if pair[1].address == error.address]
    if not asking:
        return Conflict(error.message)
    has = error.holder if isinstance(error, AddressInUse) else None
    # Two steps may ask for one address: the step that has got it is not the one that is refused.
    step, take = next((pair for pair in asking if pair[1].owner != has), asking[0])
    told = f"Failed to reserve IP '{written_in(config.networks[take.network], error.address)}'"
    if isinstance(error, AddressReserved):
        told = f"{told} for network '{take.network}'"
        return Refused(BoshErrorKind.NETWORK_RESERVATION_IP_RESERVED, f"{told}: IP belongs to reserved range")
    told = f"{told} for instance '{step.instance.long_name}'"
    planned = next((each for each, take in asking if take.owner == error.holder), None)
    known = None if planned is None else _named(planned.instance)
    by = known or await holder(ledger, error.holder)
    return Refused(BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE, f"{told}: already reserved by {by}")


def _named(instance: DeploymentInstance) -> str:
    """Name who has an address by the same plan: it is written down nowhere yet."""
    return f"instance '{instance.name}' from deployment '{instance.deployment}'"


async def first_without_room(ledger: AsyncLedger, work: Work) -> int | None:
    """Find whom the last address was missing for: by halves, since a plan is tried without changing anything."""
    low, high = 0, len(work.takes)
    while low < high:
        middle = (low + high) // 2
        if await _has_room(ledger, work, middle + 1):
            low = middle + 1
        else:
            high = middle
    return low if low < len(work.takes) else None


async def _has_room(ledger: AsyncLedger, work: Work, count: int) -> bool:
    try:
        await ledger.rehearse(work.up_to(count))
    except PoolExhausted:
        return False
    except (AddressInUse, AddressReserved) as error:  # it was none a moment ago
        raise Conflict(error.message) from error
    return True


def no_room(name: str, network: CloudNetwork, az: str | None) -> Refused:
    """Refuse a reservation because all that could be picked for it is taken, or is not known before the cloud made it.

    So a plan on a managed network that is still to be made is not told that the network is full.
    """
    told = f"Failed to reserve IP for '{name}' for {network.kind} network '{network.name}'"
    if network.managed and any(subnet.range is None and subnet.serves(az) for subnet in network.subnets):
        return Refused(
            BoshErrorKind.GENERIC, f"{told}: its range is not known yet, the cloud chooses it when the network is made"
        )
    return Refused(BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY, f"{told}: no more available")


async def holder(ledger: AsyncLedger, who: str) -> str:
    """Say who has an address: an instance with its deployment, an orphaned one, or whoever came by another door."""
    owner = Owner.trusted(who)
    if owner.realm != REALM:
        return f"'{who}'"
    if owner.kind == ORPHANED:
        return "orphaned instance"
    if owner.kind == COMPILER:
        deployment, _, number = owner.id.rpartition("-")
        return f"instance '{group_of(deployment)}/{number}' from deployment '{deployment}'"
    # A paper is named by its deployment first, so a uuid is found only by reading all; this is for a message.
    for paper in await ledger.papers(INSTANCE):
        deployment, group, uuid = paper.name.split("/")
        if uuid == owner.id:
            return f"instance '{group}/{uuid}' from deployment '{deployment}'"
    return f"'{who}'"
