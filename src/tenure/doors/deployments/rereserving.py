"""What running VMs carry, reserved for their instances before anything new is: VMs are asked, and what they say holds.

So it is in the in-memory mode at every deploy, and once when a deployment that was in it is deployed with a cloud
config.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.doors.deployments.binding import subnet_of
from tenure.doors.deployments.faults import Kind, Refused
from tenure.doors.deployments.ground import DOOR
from tenure.doors.deployments.listening import Hearing, listen
from tenure.doors.deployments.model import DYNAMIC, MANUAL, VIP, CloudConfig, Properties
from tenure.doors.deployments.records import Instance, Place, addresses_in, place_of
from tenure.doors.deployments.refusing import holder
from tenure.doors.deployments.reports import Carries, VmState
from tenure.doors.deployments.reserving import DRAINED_BY
from tenure.kernel import configuration as ledgers
from tenure.kernel.addresses import format_address, parse_address, width
from tenure.kernel.edits import AddNetwork, AddSubnet, ModifySubnet
from tenure.kernel.errors import AddressInUse, TenureError
from tenure.kernel.ranges import Cidr, parse_cidr
from tenure.kernel.values import Holding, State
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import Allocate, ModifyHolding, Operation, Shown


@dataclass(frozen=True, slots=True)
class Found:
    """An address that an instance's VM carries, and the network of the ledger that has it.

    ``remnant``: no subnet of today has it. It gets a block of its own that nobody picks from: BOSH's dummy subnet.
    ``perhaps``: no VM carries it yet, but one (of ``plan``, if there is one) may come up on it. ``parting``: it is not
    wanted any more.
    """

    instance: Instance
    network: str
    block: Cidr
    remnant: bool = False
    request: str | None = None
    plan: str | None = None
    perhaps: bool = False
    parting: bool = False


def heard(
    papers: Sequence[Instance], config: CloudConfig, hearing: Hearing, *, keep_silent: bool
) -> tuple[list[Instance], list[Found], frozenset[str]]:
    """Return instances as their VMs say they are, what those carry or may come up on, and whose VM does not answer.

    A VM that does not answer is lost and carries nothing; or (``keep_silent``) it carries what it was made with.
    """
    who = listen(papers, hearing, everybody=True)
    instances: list[Instance] = []
    founds: list[Found] = []
    for each in papers:
        said = who.answers.get(each.uuid)
        if said is None and keep_silent and each.uuid in who.lost:
            said = VmState(each.vm, _made_with(each.made_with or {}))
        if said is None:
            instances.append(replace(each, vm=None, lost_vm=each.vm or each.lost_vm, meant=_still_meant(each)))
            continue
        instances.append(with_hints(_as_told(each, said), said, config))
        meant = _meant(instances[-1])
        carried = find(instances[-1], said, config)
        founds += [replace(found, parting=bool(meant) and found.block not in meant.values()) for found in carried]
    silent = who.lost if keep_silent else frozenset[str]()
    return instances, [*founds, *_perhaps(instances, founds, config)], silent


def _made_with(settings: Properties) -> dict[str, Carries]:
    """Return what a VM carries that does not answer: what it was made with."""
    return {name: Carries(_block(ip), settings[name]["type"]) for name, ip in addresses_in(settings).items()}


def _block(text: str) -> Cidr:
    if "/" in text:
        return parse_cidr(text)
    position = parse_address(text)
    return Cidr(position, width(position))


def _meant(instance: Instance) -> dict[str, Cidr]:
    """Return what the VM that an instance waits for is perhaps being made on, by network."""
    return {name: _block(ip) for name, ip in addresses_in(instance.meant or {}).items()}


def _still_meant(paper: Instance) -> Properties | None:
    """Return the settings of the VM that is perhaps being made; without one, nothing is meant any more."""
    return paper.meant if paper.plan is not None and paper.is_told else None


def _as_told(instance: Instance, said: VmState) -> Instance:
    """Return an instance with the VM that speaks for it: if another than was known, the one that it waited for."""
    if said.vm == instance.vm:
        return replace(instance, lost_vm=None, meant=_still_meant(instance))
    made = replace(instance, vm=said.vm, lost_vm=None, made_with=instance.meant, meant=None)
    return replace(made, plan=None, failed=False, earlier=())


def _perhaps(instances: Sequence[Instance], founds: Sequence[Found], config: CloudConfig) -> list[Found]:
    """Return what VMs may come up on that nobody told of, as far as no VM carries it.

    Where a subnet that has it hands out units of another length, it cannot be kept.
    """
    earlier = [
        Found(instance, "", _block(text), plan=making.plan, request=making.plan, perhaps=True, parting=True)
        for instance in instances
        for making in instance.earlier
        for text in making.addresses
    ]
    awaited = [
        Found(instance, name, block, plan=instance.plan, request=instance.plan, perhaps=True)
        for instance in instances
        for name, block in _meant(instance).items()
    ]
    taken: dict[int, set[int]] = {}
    for found in founds:
        taken.setdefault(found.block.prefix, set()).add(found.block.first)
    perhaps: list[Found] = []
    for found in (*awaited, *earlier):
        at = _homed(found, config)
        if at is not None and not _is_taken(found.block, taken):
            taken.setdefault(found.block.prefix, set()).add(found.block.first)
            perhaps.append(at)
    return perhaps


def _homed(found: Found, config: CloudConfig) -> Found | None:
    """Return an address that a VM may come up on with the network that has it, or with none a block of its own."""
    names = (found.network, *config.networks)
    home = next((name for name in names if _is_home(name, found, config)), None)
    vips = (name for name, network in config.networks.items() if network.kind == VIP and not found.network)
    if home is None and any(subnet_of(each, found.block.first, None) for each in config.networks.values()):
        return None
    home = home or next(vips, None)
    if home is not None:
        return replace(found, network=home)
    own = found.network or next((said["name"] for said in found.instance.networks), None)
    return None if own is None else replace(found, network=own, remnant=True)


def _is_taken(block: Cidr, taken: Mapping[int, Collection[int]]) -> bool:
    """Tell whether a block lies in one that is taken, or has one in it; ``taken`` is by length."""
    for prefix, firsts in taken.items():
        if prefix > block.prefix and any(block.first <= each <= block.last for each in firsts):
            return True
        shift = max(width(block.first) - prefix, 0)
        if prefix <= block.prefix and block.first >> shift << shift in firsts:
            return True
    return False


def _is_home(name: str, found: Found, config: CloudConfig) -> bool:
    """Tell whether a network can have what a VM may come up on."""
    network = config.networks.get(name)
    if network is None or network.kind == DYNAMIC:
        return False
    if network.kind == VIP:
        return name == found.network
    subnet = subnet_of(network, found.block.first, None)
    return subnet is not None and subnet.prefix == found.block.prefix


def with_hints(instance: Instance, said: VmState, config: CloudConfig) -> Instance:
    """Return an instance with the addresses that its VM got from the IaaS."""
    told = {
        name: format_address(carries.block.first)
        for name, carries in said.networks.items()
        if _kind(instance, name, carries, config) == DYNAMIC and _is_dynamic(name, config)
    }
    return replace(instance, hints={**instance.hints, **told}) if told else instance


def _is_dynamic(name: str, config: CloudConfig) -> bool:
    return name in config.networks and config.networks[name].kind == DYNAMIC


def find(instance: Instance, said: VmState, config: CloudConfig) -> list[Found]:
    """Return what a VM carries, each in the network that has it: the one it names, or else any that covers it."""
    found: dict[str, Found] = {}
    for name, carries in said.networks.items():
        if _kind(instance, name, carries, config) == DYNAMIC:
            continue  # the IaaS picked it: there is nothing to reserve
        others = [each for each in config.networks if each not in found and each not in said.networks]
        home = next((each for each in (name, *others) if _covers(each, carries, config, named=each == name)), None)
        found[home or name] = Found(instance, home or name, carries.block, remnant=home is None)
    return list(found.values())


def _kind(instance: Instance, name: str, carries: Carries, config: CloudConfig) -> str:
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
            Kind.NETWORK_RESERVATION_INVALID_PREFIX,
            f"Subnet Prefix {prefix} and ip reservation prefix {block.prefix} do not match",
        )
    return prefix == block.prefix


def operations_for(
    founds: Iterable[Found], present: Mapping[str, ledgers.Network | None], space: str
) -> Iterator[Operation]:
    """Give the operations that reserve what VMs carry, one ``Allocate`` each, in a ledger that has these networks.

    None stands for a network that has no other subnets than the config says. A VM has its address, whatever the
    networks say by now: also one that is reserved, or in no subnet.
    """
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


def _labels(found: Found) -> dict[str, str]:
    """Return the label of what drains: the plan that gave it up, as far as that is known."""
    plan = found.plan or found.instance.plan
    return {DRAINED_BY: plan} if found.parting and plan is not None else {}


def _parted(found: Found, take: Allocate) -> list[Operation]:
    """Return what sets an address to draining that is not wanted any more.

    It has a slot of its own: in a network an instance has one address that it is to keep.
    """
    if not found.parting:
        return []
    return [ModifyHolding(network=take.network, address=str(take.address), owner=take.owner, state=str(State.DRAINING))]


def _remnant_around(found: Found, network: ledgers.Network | None) -> Cidr | None:
    subnets = () if network is None else network.subnets
    return next((each.cidr for each in subnets if each.cidr.range.covers(found.block.range)), None)


def _in_remnant(take: Allocate, cidr: str) -> list[Operation]:
    """Take an address out of a block that is retired again at once: nobody else is to get anything there."""
    opened, closed = (ModifySubnet(network=take.network, subnet=cidr, retired=retired) for retired in (False, True))
    return [opened, take, closed]


def with_holdings(instances: Sequence[Instance], answers: Iterable[Shown]) -> list[Instance]:
    """Return instances with what a ledger answered to those operations, of each address what was answered last."""
    held: dict[str, dict[Place, Holding]] = {}
    for answer in answers:
        if isinstance(answer, Holding):
            held.setdefault(answer.owner, {})[place_of(answer)] = answer
    return [replace(each, holdings=(*each.holdings, *held.get(each.owner, {}).values())) for each in instances]


async def refused(ledger: AsyncLedger, error: AddressInUse, founds: Sequence[Found]) -> TenureError:
    """Return what BOSH says where a VM carries what somebody else has."""
    who = [found for found in founds if format_address(found.block.first) == error.address]
    if not who:
        return error
    last = next((found for found in reversed(who) if found.instance.owner != error.holder), who[-1])
    first = next((found.instance for found in founds if found.instance.owner == error.holder), None)
    known = None if first is None else f"instance '{first.name}' from deployment '{first.deployment}'"
    return Refused(
        Kind.NETWORK_RESERVATION_ALREADY_IN_USE,
        f"Failed to reserve IP '{last.block}' for instance '{last.instance.long_name}': already reserved by "
        f"{known or await holder(ledger, error.holder)}",
    )
