"""What running VMs carry, reserved for their instances before anything new is: VMs are asked, and what they say holds.

So it is in the in-memory mode at every deploy, and once when a deployment that was in it is deployed with a cloud
config.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tenure.integrations.bosh.cloud_config.ledger_networks import DOOR
from tenure.integrations.bosh.model.address_diff import subnet_of
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.model.document_model import DYNAMIC, MANUAL, VIP, CloudConfig
from tenure.integrations.bosh.planning.step_operations import DRAINED_BY
from tenure.integrations.bosh.planning.translate_errors import holder
from tenure.integrations.bosh.running_vms.match_vm_state import Hearing, listen
from tenure.integrations.bosh.running_vms.possible_addresses import (
    PossibleAddress,
    made_with,
    meant_for,
    perhaps,
    still_meant,
)
from tenure.integrations.bosh.running_vms.vm_state import Carries, VmState
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, Place, place_of
from tenure.kernel.addressing.addresses import format_address, width
from tenure.kernel.addressing.ranges import Cidr
from tenure.kernel.errors import AddressInUse, TenureError
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.kernel.plan import plan_model as ledgers
from tenure.kernel.plan.edits import AddNetwork, AddSubnet, ModifySubnet
from tenure.service.apply.operations import Allocate, ModifyHolding, Operation, Shown
from tenure.service.ledger.async_ledger import AsyncLedger


def heard(
    papers: Sequence[DeploymentInstance], config: CloudConfig, hearing: Hearing, *, keep_silent: bool
) -> tuple[list[DeploymentInstance], list[PossibleAddress], frozenset[str]]:
    """Return instances as their VMs say they are, what those carry or may come up on, and whose VM does not answer.

    A VM that does not answer is lost and carries nothing; or (``keep_silent``) it carries what it was made with.
    """
    who = listen(papers, hearing, everybody=True)
    instances: list[DeploymentInstance] = []
    founds: list[PossibleAddress] = []
    for each in papers:
        said = who.answers.get(each.uuid)
        if said is None and keep_silent and each.uuid in who.lost:
            said = VmState(each.vm, made_with(each.made_with or {}))
        if said is None:
            instances.append(replace(each, vm=None, lost_vm=each.vm or each.lost_vm, meant=still_meant(each)))
            continue
        instances.append(with_hints(_as_told(each, said), said, config))
        meant = meant_for(instances[-1])
        carried = find(instances[-1], said, config)
        founds += [replace(found, parting=bool(meant) and found.block not in meant.values()) for found in carried]
    silent = who.lost if keep_silent else frozenset[str]()
    return instances, [*founds, *perhaps(instances, founds, config)], silent


def _as_told(instance: DeploymentInstance, said: VmState) -> DeploymentInstance:
    """Return an instance with the VM that speaks for it: if another than was known, the one that it waited for."""
    if said.vm == instance.vm:
        return replace(instance, lost_vm=None, meant=still_meant(instance))
    made = replace(instance, vm=said.vm, lost_vm=None, made_with=instance.meant, meant=None)
    return replace(made, plan=None, failed=False, earlier=())


def with_hints(instance: DeploymentInstance, said: VmState, config: CloudConfig) -> DeploymentInstance:
    """Return an instance with the addresses that its VM got from the IaaS."""
    told = {
        name: format_address(carries.block.first)
        for name, carries in said.networks.items()
        if _kind(instance, name, carries, config) == DYNAMIC and _is_dynamic(name, config)
    }
    return replace(instance, hints={**instance.hints, **told}) if told else instance


def _is_dynamic(name: str, config: CloudConfig) -> bool:
    return name in config.networks and config.networks[name].kind == DYNAMIC


def find(instance: DeploymentInstance, said: VmState, config: CloudConfig) -> list[PossibleAddress]:
    """Return what a VM carries, each in the network that has it: the one it names, or else any that covers it."""
    found: dict[str, PossibleAddress] = {}
    for name, carries in said.networks.items():
        if _kind(instance, name, carries, config) == DYNAMIC:
            continue  # the IaaS picked it: there is nothing to reserve
        # An instance has one address in a network, so networks that the VM names itself are no second choice.
        others = [each for each in config.networks if each not in found and each not in said.networks]
        home = next((each for each in (name, *others) if _covers(each, carries, config, named=each == name)), None)
        found[home or name] = PossibleAddress(instance, home or name, carries.block, remnant=home is None)
    return list(found.values())


def _kind(instance: DeploymentInstance, name: str, carries: Carries, config: CloudConfig) -> str:
    """Tell the kind of the network that a VM was made on: as it says, as it was made, or as the network is now."""
    if carries.kind is not None:
        return carries.kind
    made_with = (instance.made_with or {}).get(name)
    if made_with is not None:
        return str(made_with["type"])
    return config.networks[name].kind if name in config.networks else MANUAL


def _covers(name: str, carries: Carries, config: CloudConfig, *, named: bool) -> bool:
    """Tell whether a network can have what a VM carries; the one it names must have it as large as it is."""
    network, block = config.networks.get(name), carries.block
    if network is None or network.kind == DYNAMIC or (network.kind == VIP and not named):
        return False
    subnet = subnet_of(network, block.first, None)
    if network.kind == MANUAL and subnet is None:
        return False
    prefix = width(block.first) if subnet is None else subnet.prefix
    if named and prefix != block.prefix:
        raise Refused(
            BoshErrorKind.NETWORK_RESERVATION_INVALID_PREFIX,
            f"Subnet Prefix {prefix} and ip reservation prefix {block.prefix} do not match",
        )
    return prefix == block.prefix


def operations_for(
    founds: Iterable[PossibleAddress], present: Mapping[str, ledgers.Network | None], space: str
) -> Iterator[Operation]:
    """Give the operations that reserve what VMs carry, one ``Allocate`` each, in a ledger that has these networks.

    None stands for a network that has no other subnets than the config says. A VM has its address, whatever the
    networks say by now: also one that is reserved, or in no subnet.
    """
    # A network or a block that several addresses need is added once.
    made: set[tuple[str, Cidr | None]] = set()
    for found in founds:
        take = Allocate(
            network=found.network, owner=found.instance.owner, address=format_address(found.block.first),
            slot=format_address(found.block.first) if found.parting else "", reserved="force", labels=_labels(found),
            carrier=None if found.perhaps else found.instance.vm, plan=found.plan, request=found.request,
        )  # fmt: skip
        if not found.remnant:
            yield from [take, *_parted(found, take)]
            continue
        if found.network not in present and (found.network, None) not in made:
            made.add((found.network, None))
            yield AddNetwork(network=found.network, space=space, kind=MANUAL, labels=DOOR)
        cidr = _remnant_around(found, present.get(found.network))
        if cidr is None and (found.network, found.block) not in made:
            made.add((found.network, found.block))
            yield AddSubnet(network=found.network, cidr=str(found.block), unit=found.block.prefix, keep_back=())
        yield from [*_in_remnant(take, str(cidr or found.block)), *_parted(found, take)]


def _labels(found: PossibleAddress) -> dict[str, str]:
    """Return the label of what drains: the plan that gave it up, as far as that is known."""
    plan = found.plan or found.instance.plan
    return {DRAINED_BY: plan} if found.parting and plan is not None else {}


def _parted(found: PossibleAddress, take: Allocate) -> list[Operation]:
    """Return what sets an address to draining that is not wanted any more.

    It has a slot of its own: in a network an instance has one address that it is to keep.
    """
    if not found.parting:
        return []
    return [ModifyHolding(network=take.network, address=str(take.address), owner=take.owner, state=str(State.DRAINING))]


def _remnant_around(found: PossibleAddress, network: ledgers.Network | None) -> Cidr | None:
    subnets = () if network is None else network.subnets
    return next((each.cidr for each in subnets if each.cidr.range.covers(found.block.range)), None)


def _in_remnant(take: Allocate, cidr: str) -> list[Operation]:
    """Take an address out of a block that is retired again at once: nobody else is to get anything there."""
    opened, closed = (ModifySubnet(network=take.network, subnet=cidr, retired=retired) for retired in (False, True))
    return [opened, take, closed]


def with_holdings(instances: Sequence[DeploymentInstance], answers: Iterable[Shown]) -> list[DeploymentInstance]:
    """Return instances with what a ledger answered to those operations, of each address what was answered last."""
    held: dict[str, dict[Place, Holding]] = {}
    for answer in answers:
        if isinstance(answer, Holding):
            held.setdefault(answer.owner, {})[place_of(answer)] = answer
    return [replace(each, holdings=(*each.holdings, *held.get(each.owner, {}).values())) for each in instances]


async def refused(ledger: AsyncLedger, error: AddressInUse, founds: Sequence[PossibleAddress]) -> TenureError:
    """Return what BOSH says where a VM carries what somebody else has."""
    who = [found for found in founds if format_address(found.block.first) == error.address]
    if not who:
        return error
    last = next((found for found in reversed(who) if found.instance.owner != error.holder), who[-1])
    first = next((found.instance for found in founds if found.instance.owner == error.holder), None)
    known = None if first is None else f"instance '{first.name}' from deployment '{first.deployment}'"
    return Refused(
        BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE,
        f"Failed to reserve IP '{last.block}' for instance '{last.instance.long_name}': already reserved by "
        f"{known or await holder(ledger, error.holder)}",
    )
