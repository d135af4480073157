"""A later file of a cluster followed: all that differs, and all that is new, is written in one ``apply``.

The ledger ends as the file says, or as it was. What was read is of one moment; where something changed since, all is
read and decided again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tenure.integrations.ganeti.cluster import structure
from tenure.integrations.ganeti.files.file_model import NETWORKS, ClusterConfiguration, NetworkFile
from tenure.integrations.ganeti.files.ledger_snapshot import network_file
from tenure.integrations.ganeti.files.load.address_moves import AddressMoves, plan_moves, renamed_owners
from tenure.integrations.ganeti.files.load.address_owners import Grant, grants_of
from tenure.integrations.ganeti.files.load.cluster_target import ClusterTarget, by_uuid
from tenure.integrations.ganeti.files.load.import_cluster import (
    Progress,
    file_paper,
    first_conflict,
    object_papers,
    run_import,
)
from tenure.integrations.ganeti.files.load.import_operations import (
    allocations,
    kept_gateways,
    network_filling,
    network_frame,
)
from tenure.integrations.ganeti.files.load.import_plan import FollowedAddresses, ImportPlan, plan_import
from tenure.integrations.ganeti.files.load.network_changes import follow_network
from tenure.integrations.ganeti.files.unknown_fields_papers import FILE, plain_objects
from tenure.integrations.ganeti.instance_records import marks_of, waiting_for
from tenure.integrations.ganeti.machine_model import (
    GROUP,
    IDENTITY,
    INSTANCE,
    NIC,
    NODE,
    PLACEMENT,
    ClusterMachine,
    Instance,
    Node,
    master_paper,
)
from tenure.integrations.ganeti.network_lookup import Outrun, settled, unchanged
from tenure.integrations.ganeti.options.network_edits import Design
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AddressInUse, Conflict, StoreUnavailable, TenureError
from tenure.kernel.plan.edits import AddNetwork, Disconnect, ModifyPool, RemoveNetwork, Reserve, Unreserve
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import (
    ExpectNoHoldings,
    ExpectNoPapers,
    IgnoreConflicts,
    Operation,
    Release,
    RemovePaper,
    WritePaper,
)
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.service.read.own_addresses import ORPHAN

NOT_WRITTEN = "nothing was written"

Mark = tuple[str, str]
MachineMove = tuple[ClusterMachine, ClusterMachine | None]
"""A node or the master as it was, and as it will be (None: it goes)."""
OwnRange = tuple[AddressRange, str]
"""An address of a node or the master, and the reason for which it is reserved."""


async def follow_import(
    ledger: AsyncLedger, cluster: ClusterConfiguration, *, rehearsed: bool = False, progress: Progress | None = None
) -> ImportPlan:
    """Bring a file in, with all differences from the ledger followed in one step; or only rehearse that.

    Conflict, and nothing is changed, where something stands in the way. Return what was done.
    """

    async def attempt() -> ImportPlan:
        # Before anything is read, and again behind it: a log that did not grow proves that all is of one moment.
        moment = await ledger.last_change()
        lock = await structure(ledger)
        plan = await plan_import(cluster, ledger)
        if not plan.differences or plan.target is None:
            return plan
        work = _Work(plan, plan.target, await plan_moves(ledger, plan.target, plan.settled))
        if await ledger.last_change() != moment:
            raise Outrun(Conflict("the ledger keeps changing while it is read; import when less is done", field="file"))
        if rehearsed and work.conflicts:
            return replace(plan, conflicts=work.conflicts, tried=True)
        try:
            work.check()
            operations = [lock, *work.operations()]
            await (ledger.rehearse(operations) if rehearsed else ledger.apply(operations))
        except StoreUnavailable as error:
            # The try was sent, and only its answer was lost, if the ledger has the file now. If not, it may still come.
            if error.outcome == "unknown" and await _is_there(ledger, cluster):
                return work.done()
            raise
        except TenureError as error:
            if await ledger.last_change() != moment:
                raise Outrun(error) from None
            raise _not_written(error, cluster) from None
        return work.done()

    plan = await settled(attempt)
    if plan.followed is None and not rehearsed:
        await run_import(ledger, plan, progress)
    return plan


async def try_to_follow(ledger: AsyncLedger, cluster: ClusterConfiguration) -> ImportPlan:
    """Rehearse the same; what stands in the way is among the plan's conflicts."""
    try:
        return await follow_import(ledger, cluster, rehearsed=True)
    # A ledger that does not answer is no conflict with the file.
    except StoreUnavailable:
        raise
    except TenureError as error:
        plan = await plan_import(cluster, ledger)
        conflicts = plan.conflicts or [error.message.removeprefix(f"{NOT_WRITTEN}: ")]
        return replace(plan, conflicts=conflicts, tried=True)


async def _is_there(ledger: AsyncLedger, cluster: ClusterConfiguration) -> bool:
    """Return whether a file is known to be brought in wholly; a ledger that does not answer says nothing of it."""
    try:
        return (await plan_import(cluster, ledger)).done
    except TenureError:
        return False


def _not_written(error: TenureError, file: ClusterConfiguration) -> TenureError:
    """Return the same error, so that its code and its field stay, with words that say that nothing was written."""
    if isinstance(error, AddressInUse):
        position = parse_address(error.address)
        gated = [each.name for each in file.networks if any(subnet.gateway == position for subnet in each.subnets)]
        error.message = "".join(f"network {name!r} has the gateway {error.address}: " for name in gated) + error.message
    if not error.message.startswith(NOT_WRITTEN):
        error.message = f"{NOT_WRITTEN}: {error.message}"
    return error


@dataclass(frozen=True)
class _Work:
    """All that is done to follow one file, in an order in which everything finds what it needs."""

    plan: ImportPlan
    target: ClusterTarget
    moves: AddressMoves

    @cached_property
    def conflicts(self) -> list[str]:
        """List what of the ledger's is in the way, and what takes more than one step."""
        gateways = [
            f"network {network.name!r} is new, and a NIC has its gateway {grant.address}, which takes another step; "
            "follow the differences by their commands, then import without --apply"
            for network in self._new_networks()
            for grant in self._grants(network)
            if grant.position in kept_gateways(network)
        ]
        return [*self.plan.conflicts, *self.moves.problems, *gateways]

    def check(self) -> None:
        """Raise if there is a conflict."""
        if self.conflicts:
            raise first_conflict(NOT_WRITTEN, self.conflicts)

    def done(self) -> ImportPlan:
        """Return the plan with what was done."""
        networks = {uuid: network.name for uuid, network in self.target.networks.items()}
        grants = {networks[uuid]: grants for uuid, grants in self.moves.grants.items() if grants}
        grants.update((network.name, self._grants(network)) for network in self._new_networks())
        # A network that was removed and added again under its name: its addresses go to the new one in the same step.
        again = {(network.name, grant.address) for network in self._new_networks() for grant in self._grants(network)}
        passed = sum((each.network, each.address) in again for each in self.moves.releases)
        followed = FollowedAddresses(len(self.moves.transfers) + passed, len(self.moves.releases) - passed)
        return replace(self.plan, grants={name: each for name, each in grants.items() if each}, followed=followed)

    def operations(self) -> list[Operation]:
        """Return the operations: holdings go and change hands before the plan changes, and come after it did."""
        known = self.target.snapshot.networks
        touched = [network for network in known.values() if self._is_touched(network)]
        granted = [
            each
            for uuid, grants in self.moves.grants.items()
            if uuid in known
            for each in allocations(self.target.networks[uuid].name, grants)
        ]
        return [
            *(unchanged(network) for network in touched),
            *self._releases(),
            *self.moves.transfers,
            *(operation for network in touched for operation in self._network(network)),
            *(operation for network in self._new_networks() for operation in self._new_network(network)),
            *granted,
            *self._papers(),
        ]

    def _releases(self) -> Iterator[Operation]:
        """Release addresses: they cool as their pools say, but for those whose network or subnet goes."""
        uuids = {network.name: network.uuid for network in self.target.snapshot.networks.values()}
        staying: list[Release] = []
        lost: dict[str, list[Release]] = {}
        for each in self.moves.releases:
            goes = self.target.loses(uuids[each.network], parse_address(each.address))
            (lost.setdefault(uuids[each.network], []) if goes else staying).append(each)
        yield from staying
        for uuid, releases in lost.items():
            # An address that cools keeps its ground. These pools are removed, or written again with their cooling.
            yield from _uncooled(self.target.snapshot.networks[uuid], releases)
            yield from releases

    def _is_touched(self, network: Network) -> bool:
        """Return whether a network is one of the file's, or may have to follow a group, a node or an instance."""
        return not self.target.stays(NETWORKS, network.uuid) or self._designs[network.uuid].edits != []

    def _network(self, network: Network) -> Iterator[Operation]:
        """Edit a network of the ledger, or remove it."""
        name = network.name
        if self.target.goes(NETWORKS, network.uuid):
            yield from (Disconnect(network=name, group=line.group) for line in network.connections)
            yield RemoveNetwork(network=name)
            return
        design = self._designs[network.uuid]
        if design.edits:
            yield IgnoreConflicts(network=name)
            reserved = [edit for edit in design.edits if isinstance(edit, Reserve) and edit.reason]
            # A node's new address must be nobody's; where the file itself gives it to a NIC, it is not reserved.
            new = dict.fromkeys(edit.range for edit in reserved if edit.range in self._new_own)
            yield from (ExpectNoHoldings(network=name, range=str(each)) for each in new)
            yield from design.edits

    @cached_property
    def _designs(self) -> dict[str, Design]:
        known = self.target.snapshot.networks.values()
        return {each.uuid: self._design(each) for each in known if not self.target.goes(NETWORKS, each.uuid)}

    def _design(self, network: Network) -> Design:
        design = Design(network)
        self._follow_machines(design)
        for edit in waiting_for(network, renamed_owners(self.target)):
            design.edit(edit)
        wanted = self.target.networks.get(network.uuid)
        lines = self.target.lines(network)
        # A network of the ledger's own only follows the names of groups.
        follow_network(design, wanted or network_file(design.network), lines)
        # Only now is it seen which new addresses the file's word opened: it lifts reservations and adds blocks.
        self._reserve(design, [each for each in self._new_addresses(design.network) if not _is_reserved(design, each)])
        return design

    @cached_property
    def _machine_moves(self) -> list[MachineMove]:
        nodes: list[MachineMove] = [(node, self.target.nodes.get(node.uuid)) for node in self.target.ledger.nodes]
        master, ip = self.target.snapshot.master, self.target.file.master_ip
        return [*nodes, (master, master if ip is None else replace(master, ip=ip))]

    @cached_property
    def _new_own(self) -> set[AddressRange]:
        """Return the addresses that a node or the master gets and no machine of the cluster had."""
        moves = self._machine_moves
        before = {address for old, _ in moves for address in old.addresses}
        after = {address for _, new in moves if new is not None for address in new.addresses}
        return {_single(address) for address in after - before}

    def _follow_machines(self, design: Design) -> None:
        """Let the reserved addresses of nodes and of the master follow their names and addresses."""
        name, network = design.network.name, design.network
        moved = {old.reason: new for old, new in self._machine_moves if new is None or _own(old) != _own(new)}
        kept = [each for subnet in network.subnets for each in subnet.reserved if each.reason in moved]
        for each in kept:
            design.edit(Unreserve(network=name, range=each.range))
        for old, new in self._machine_moves:
            if new is None or old.reason not in moved:
                continue
            own = [each.range for each in kept if each.reason == old.reason]
            stay = [_single(each) for each in new.addresses if any(parse_address(each) in piece for piece in own)]
            self._reserve(design, [(each, new.reason) for each in stay])
        self._reserve(design, self._new_addresses(network))

    def _new_addresses(self, network: Network) -> list[OwnRange]:
        """List what nodes and the master get in a network, unless a NIC of the file has it."""
        found = [
            (address, new.reason)
            for old, new in self._machine_moves
            if new is not None
            for address in new.addresses
            if address not in old.addresses and (network.uuid, address) not in self._held
        ]
        return [(_single(address), reason) for address, reason in found if _inside(network, address)]

    def _reserve(self, design: Design, ranges: Iterable[OwnRange]) -> None:
        for piece, reason in ranges:
            design.edit(Reserve(network=design.network.name, range=piece, reason=reason))

    @cached_property
    def _held(self) -> set[tuple[str | None, str]]:
        """Return the addresses that NICs will have, each with its network."""
        nics = [nic for instance in self.moves.instances.values() for nic in instance.nics]
        return {(nic.network, address) for nic in nics for address in nic.addresses}

    def _new_networks(self) -> list[NetworkFile]:
        return [each for each in self.target.file.networks if each.uuid not in self.target.snapshot.networks]

    def _grants(self, network: NetworkFile) -> list[Grant]:
        """List the addresses of a new network that are held: those of NICs, and those that are marked without one."""
        marked = [grant for grant in grants_of(self.plan.settled)[network.uuid] if grant.owner == ORPHAN]
        return [*self.moves.grants.get(network.uuid, ()), *marked]

    def _new_network(self, network: NetworkFile) -> Iterator[Operation]:
        names = {each.name for each in self.target.snapshot.networks.values()}
        for operation in network_frame(network):
            # The name of a network that goes in the same step: its space is there still, and empty by now.
            if isinstance(operation, AddNetwork) and network.name in names:
                operation = replace(operation, space=network.name)  # noqa: PLW2901
            yield operation
        yield from network_filling(network)
        yield from allocations(network.name, self._grants(network))

    def _papers(self) -> Iterator[Operation]:
        """Write groups, nodes, the master, instances with their marks, and what the file says beside."""
        target = self.target
        yield from _written(GROUP, target.ledger.groups, target.groups.values())
        yield from _written(NODE, target.ledger.nodes, target.nodes.values())
        yield from _written(INSTANCE, target.ledger.instances, self.moves.instances.values())
        before, after = by_uuid(target.ledger.nodes), target.nodes
        yield from (RemovePaper(kind=IDENTITY, name=uuid, revision=1) for uuid in before if uuid not in after)
        yield from (WritePaper(kind=IDENTITY, name=uuid, document={}) for uuid in after if uuid not in before)
        ip, master = target.file.master_ip, target.snapshot.master
        if ip not in (None, master.ip):
            yield master_paper(replace(master, ip=ip))
        yield from self._marks()
        yield from object_papers(self.plan, plain_objects(self.plan.settled.cluster))
        yield file_paper(self.plan, self.plan.papers[FILE].revision, done=True)

    def _marks(self) -> Iterator[Operation]:
        """Bring the marks up to date: all that go before any comes, so that two instances may change names or MACs."""
        old, new = _all_marks(self.target.ledger.instances), _all_marks(self.moves.instances.values())
        # All marks of a node that changes place and of a network or connection that goes are removed, also those that
        # come again: one that is left then is of an instance or a NIC that was not read.
        places = [(PLACEMENT, f"{node.name}/") for node in self.target.ledger.nodes if self._is_relocated(node)]
        cleared = [*places, *((NIC, prefix) for prefix in self._going_lines())]
        prefixes = tuple(f"{kind}:{prefix}" for kind, prefix in cleared)
        again = {(kind, name) for kind, name in old if f"{kind}:{name}".startswith(prefixes)}
        gone = [mark for mark in old if mark in again or new.get(mark) != old[mark]]
        made = [mark for mark in new if mark in again or old.get(mark) != new[mark]]
        yield from (RemovePaper(kind=kind, name=name, revision=1) for kind, name in gone)
        yield from (ExpectNoPapers(kind=kind, prefix=prefix) for kind, prefix in cleared)
        yield from (WritePaper(kind=kind, name=name, document=new[kind, name]) for kind, name in made)

    def _going_lines(self) -> Iterator[str]:
        """Yield how the marks of NICs begin whose network goes, or is no longer connected to their group."""
        for network in self.target.snapshot.networks.values():
            if self.target.goes(NETWORKS, network.uuid):
                yield f"{network.uuid}/"
                continue
            left = {line.group for line in self.target.lines(network)}
            yield from (f"{network.uuid}/{line.group}/" for line in network.connections if line.group not in left)

    def _is_relocated(self, node: Node) -> bool:
        new = self.target.nodes.get(node.uuid)
        return new is None or (node.name, node.group) != (new.name, new.group)


def _written(kind: str, before: Iterable[Any], after: Iterable[Any]) -> Iterator[Operation]:
    """Return what writes the papers of objects: over the revision that was read where a paper of that name is there."""
    old, new = {each.name: each for each in before}, {each.name: each for each in after}
    for name, each in old.items():
        if name not in new:
            yield RemovePaper(kind=kind, name=name, revision=each.revision)
    for name, each in new.items():
        known = old.get(name)
        if known is None or known.document() != each.document():
            revision = 0 if known is None else known.revision
            yield WritePaper(kind=kind, name=name, document=each.document(), revision=revision)


def _uncooled(network: Network, releases: Iterable[Release]) -> Iterator[Operation]:
    """Let the pools of a network in which addresses are released cool no longer."""
    positions = [parse_address(each.address) for each in releases]
    for pool in (pool for subnet in network.subnets for pool in subnet.pools if pool.cooling_s):
        if any(position in pool.range for position in positions):
            yield ModifyPool(network=network.name, pool=str(pool.range), cooling_s=0)


def _all_marks(instances: Iterable[Instance]) -> dict[Mark, Mapping[str, Any]]:
    return {mark: document for instance in instances for mark, document in marks_of(instance).items()}


def _own(machine: ClusterMachine) -> tuple[str, Sequence[str]]:
    return machine.reason, machine.addresses


def _single(address: str) -> AddressRange:
    position = parse_address(address)
    return AddressRange(position, position)


def _is_reserved(design: Design, own: OwnRange) -> bool:
    return any(kept.range.covers(own[0]) for subnet in design.network.subnets for kept in subnet.reserved)


def _inside(network: Network, address: str) -> bool:
    return any(parse_address(address) in subnet.cidr.range for subnet in network.subnets)
