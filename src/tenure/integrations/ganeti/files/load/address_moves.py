"""What becomes of addresses when a later file is followed: an address that stays with its instance is never given up.

An address that a NIC of another instance had, or that was marked without a NIC, is handed over, so that nobody else can
have it in between. One that no NIC has any more is released, unless the file still marks it as used. A mark without a
NIC goes only with its network or subnet.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from tenure.integrations.ganeti.files.file_model import INSTANCES, NETWORKS
from tenure.integrations.ganeti.files.ledger_snapshot import holdings_in
from tenure.integrations.ganeti.files.load.address_owners import Grant
from tenure.integrations.ganeti.files.load.cluster_target import ClusterTarget, by_uuid
from tenure.integrations.ganeti.files.load.import_operations import REQUEST
from tenure.integrations.ganeti.files.read.file_instances import MARKED
from tenure.integrations.ganeti.files.read.merge_marks import MergedConfiguration
from tenure.integrations.ganeti.instance_records import held_already, transfers
from tenure.integrations.ganeti.machine_model import Instance, Nic, NicIp
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings.holding_model import Holding, State
from tenure.service.apply.operations import Release, Transfer
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.read.own_addresses import ORPHAN

Place = tuple[str, str]
"""A network (its uuid) and an address of it."""

Held = Mapping[Place, Holding]


@dataclass(slots=True)
class AddressMoves:
    """What is done to addresses, and the instances with the slots that their addresses will have.

    ``grants`` are by the uuid of the network. While there are ``problems`` none of it can be done.
    """

    instances: dict[str, Instance] = field(default_factory=dict)
    releases: list[Release] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    grants: dict[str, list[Grant]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


async def plan_moves(ledger: AsyncLedger, target: ClusterTarget, settled: MergedConfiguration) -> AddressMoves:
    """Decide what becomes of addresses. Costs all holdings of the networks that their instances are on, or will be."""
    planner = _Planner(target, settled, await _held(ledger, target), await _of_renamed(ledger, target))
    return planner.moves()


async def _held(ledger: AsyncLedger, target: ClusterTarget) -> dict[Place, Holding]:
    known = [each for each in target.ledger.instances if not target.stays(INSTANCES, each.uuid)]
    wanted = {nic.network for each in (*target.file.instances, *known) for nic in each.nics}
    return {
        (network.uuid, holding.address): holding
        for network in target.snapshot.networks.values()
        if network.uuid in wanted or not target.stays(NETWORKS, network.uuid)
        async for holding in holdings_in(ledger, network.name)
    }


async def _of_renamed(ledger: AsyncLedger, target: ClusterTarget) -> list[Holding]:
    found: list[Holding] = []
    for owner in {name for pair in renamed_owners(target).items() for name in pair}:
        found.extend(await ledger.holdings(owner=owner))
    return found


def renamed_owners(target: ClusterTarget) -> dict[str, str]:
    """Return the owners that get another name, with it."""
    wanted = by_uuid(target.file.instances)
    pairs = ((old, wanted.get(old.uuid)) for old in target.ledger.instances)
    return {old.owner: new.owner for old, new in pairs if new is not None and new.name != old.name}


@dataclass(frozen=True)
class _Planner:
    target: ClusterTarget
    settled: MergedConfiguration
    held: Held
    of_renamed: Sequence[Holding]

    def moves(self) -> AddressMoves:
        """Decide for each address that a NIC has or will have, then for what renamed instances hold beside."""
        moves = AddressMoves()
        before = by_uuid(self.target.ledger.instances)
        for uuid, wanted in self.target.instances.items():
            own = self.target.stays(INSTANCES, uuid)
            moves.instances[uuid] = wanted if own else self._slotted(wanted, before.get(uuid))
        had = {
            place: instance.owner
            for uuid, instance in before.items()
            if not self.target.stays(INSTANCES, uuid)
            for place, _ in _places(instance)
        }
        will = {
            place: (instance, slot)
            for uuid, instance in moves.instances.items()
            if not self.target.stays(INSTANCES, uuid)
            for place, slot in _places(instance)
        }
        for place, (instance, slot) in will.items():
            self._arrive(moves, place, instance, slot, had)
        for place, owner in had.items():
            if place not in will and (holding := self.held.get(place)) is not None:
                self._leave(moves, place, owner, holding)
        self._beside_nics(moves, had, will)
        self._marks_without_ground(moves, will)
        return moves

    @cached_property
    def _slots_of(self) -> dict[str, set[tuple[str, str]]]:
        """Return the slots in which an owner holds something, by owner, each with its network."""
        found: dict[str, set[tuple[str, str]]] = {}
        for (network, _), each in self.held.items():
            found.setdefault(each.owner, set()).add((network, each.slot))
        return found

    def _slotted(self, wanted: Instance, before: Instance | None) -> Instance:
        """Let addresses that stay keep their slots, and others have slots that are free."""
        slots = {} if before is None else dict(_places(before))
        used = {(network, slot) for (network, _), slot in slots.items()}
        owner = wanted.owner if before is None else before.owner
        # The instance may hold addresses beside its NICs, whose slots are not free either.
        used |= self._slots_of.get(owner, set())
        nics: list[Nic] = []
        for nic in wanted.nics:
            ips: list[NicIp] = []
            for ip in nic.ips:
                slot = "" if nic.network is None else slots.get((nic.network, ip.address or ""))
                if slot is None:
                    slot = next(free for free in _slots(nic) if (nic.network, free) not in used)
                    used.add((nic.network or "", slot))
                ips.append(replace(ip, slot=slot))
            nics.append(replace(nic, ips=tuple(ips)))
        made = replace(wanted, nics=tuple(nics))
        return made if before is None else _counted(made, before)

    def _arrive(
        self, moves: AddressMoves, place: Place, instance: Instance, slot: str, had: Mapping[Place, str]
    ) -> None:
        """Let a NIC have an address: it has it, gets it from its holder, or takes it."""
        network, address = place
        holding = self.held.get(place)
        if holding is None or holding.state is State.COOLING:
            grant = Grant(parse_address(address), instance.owner, slot)
            moves.grants.setdefault(network, []).append(grant)
        elif (holding.owner, holding.slot) == (instance.owner, slot) and holding.state is not State.PENDING:
            return
        elif holding.state is State.PENDING or not self._may_hand_over(holding, instance, had.get(place)):
            state = "" if holding.state is State.HELD else f" ({holding.state})"
            whose = f"address {address} of instance {instance.name!r} in network {holding.network!r}"
            moves.problems.append(f"{whose} is held by {holding.owner}{state}")
        else:
            moves.transfers.append(_handed(holding, instance.owner, slot))

    def _may_hand_over(self, holding: Holding, instance: Instance, had: str | None) -> bool:
        """Return whether an address is a NIC's of a file, marked without one, or the instance's own beside its NICs."""
        return holding.owner in (had, self.target.owners.get(instance.uuid), ORPHAN)

    def _marks_without_ground(self, moves: AddressMoves, will: Collection[Place]) -> None:
        """Release addresses that were marked without a NIC where their network or subnet goes."""
        for place, holding in self.held.items():
            if holding.owner != ORPHAN or place in will:
                continue
            if self.target.loses(place[0], holding.row.first):
                moves.releases.append(_released(holding))

    def _leave(self, moves: AddressMoves, place: Place, owner: str, holding: Holding) -> None:
        """Release an address that no NIC of the file has, or keep it if the file marks it as used all the same."""
        network, address = place
        if holding.owner != owner or holding.state in (State.PENDING, State.COOLING):
            return
        if any(parse_address(address) in piece for piece in self.settled.orphans.get(network, ())):
            moves.transfers.append(_handed(holding, ORPHAN, address))
            return
        moves.releases.append(_released(holding))

    def _beside_nics(
        self, moves: AddressMoves, had: Mapping[Place, str], will: Mapping[Place, tuple[Instance, str]]
    ) -> None:
        """Hand over what renamed instances hold beside their NICs, unless their new names hold something."""
        uuids = {network.name: network.uuid for network in self.target.snapshot.networks.values()}
        places = {(uuids[each.network], each.address): each for each in self.of_renamed}
        beside = [each for place, each in places.items() if place not in had and place not in will]
        owners = renamed_owners(self.target)
        moves.problems.extend(held_already(beside, owners))
        moves.transfers.extend(transfers(beside, owners))


def _counted(made: Instance, before: Instance) -> Instance:
    """Count a change of an instance; one that stays as it is stays the very one."""
    same = replace(made, serial=before.serial, revision=before.revision)
    return before if same == before else replace(made, serial=max(made.serial, before.serial + 1))


def _places(instance: Instance) -> Iterator[tuple[Place, str]]:
    """Yield the addresses in networks that an instance has, with their slots."""
    for nic in instance.nics:
        if nic.network is not None:
            yield from (((nic.network, ip.address), ip.slot) for ip in nic.ips if ip.address is not None)


def _slots(nic: Nic) -> Iterator[str]:
    return (f"{nic.uuid[:MARKED]}/{number}" for number in count())


def _released(holding: Holding) -> Release:
    return Release(
        network=holding.network, address=holding.address, owner=holding.owner, generation=holding.generation,
        request=REQUEST,
    )  # fmt: skip


def _handed(holding: Holding, owner: str, slot: str) -> Transfer:
    return Transfer(
        network=holding.network, address=holding.address, owner=holding.owner, generation=holding.generation,
        to=owner, to_slot=slot, request=REQUEST,
    )  # fmt: skip
