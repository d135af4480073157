"""Groups of nodes and nodes, and the checks that keep their addresses and a network's apart.

Every change of the cluster's structure writes the cluster's one paper over the revision it read. So of two changes
that could have missed each other (a node with an address, a block around it), the second is decided afresh.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

from tenure.integrations.ganeti.machine_model import (
    CLUSTER,
    GROUP,
    IDENTITY,
    INSTANCE,
    MASTER,
    NIC,
    NODE,
    PLACEMENT,
    ClusterMachine,
    Group,
    Master,
    Node,
    check_word,
    read_group,
    read_master,
    read_node,
)
from tenure.integrations.ganeti.network_lookup import NetworkLookup, apply_fresh, settled, unchanged
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AddressCovered, AlreadyExists, Conflict, NotFound, StillInUse
from tenure.kernel.plan.edits import Reserve, Unreserve
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.cluster_rules import NO_NETWORK, covered, instance_of_mark, loose_addresses
from tenure.service.apply.operations import ExpectNoHoldings, ExpectNoPapers, Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger


async def structure(ledger: AsyncLedger) -> WritePaper:
    """Return the operation that makes a change of the cluster's structure one after the other."""
    try:
        revision = (await ledger.paper(CLUSTER, CLUSTER)).revision
    except NotFound:
        # A cluster that was never changed has no paper yet; of two first writers the second gets AlreadyExists.
        revision = 0
    return WritePaper(kind=CLUSTER, name=CLUSTER, document={}, revision=revision)


class Cluster:
    """The groups and nodes of a ledger."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._ledger = ledger

    async def groups(self) -> list[Group]:
        """List the groups, in order of name."""
        return [read_group(paper) for paper in await self._ledger.papers(GROUP)]

    async def group(self, name: str) -> Group:
        """Find a group by name or uuid."""
        for group in await self.groups():
            if name in (group.name, group.uuid):
                return group
        raise NotFound(GROUP, name, hint="`tenure group add` makes one")

    async def add_group(self, name: str) -> Group:
        """Add a group of nodes."""
        group = Group(check_word(name, field=GROUP), str(uuid4()), 1)
        # Without the lock: a new group has no node and no network, so no check of another command can miss it.
        await self._ledger.apply([WritePaper(kind=GROUP, name=group.name, document=group.document())])
        return group

    async def remove_group(self, name: str) -> Group:
        """Remove a group that has no node and that no network is connected to."""

        async def attempt() -> Group:
            # Read before everything that the decision rests on: a change that comes later changes the revision.
            lock = await structure(self._ledger)
            group = await self.group(name)
            nodes = [node.name for node in await self.nodes() if node.group == group.name]
            connected = [each.name for each in await NetworkLookup(self._ledger).every() if each.connection(group.name)]
            if nodes or connected:
                users = [*(f"node {node}" for node in nodes), *(f"network {network}" for network in connected)]
                raise StillInUse(GROUP, group.name, users, hint="remove its nodes and disconnect its networks first")
            await apply_fresh(self._ledger, [lock, RemovePaper(kind=GROUP, name=group.name, revision=group.revision)])
            return group

        return await settled(attempt)

    async def nodes(self) -> list[Node]:
        """List the nodes, in order of name."""
        return [read_node(paper) for paper in await self._ledger.papers(NODE)]

    async def node(self, name: str) -> Node:
        """Find a node by name."""
        return read_node(await self._ledger.paper(NODE, check_word(name, field=NODE)))

    async def master(self) -> Master:
        """Return the master's address."""
        return read_master(await self._ledger.papers(MASTER))

    async def machines(self) -> list[ClusterMachine]:
        """List the machines whose own addresses are kept away from instances: the nodes and the master."""
        return [*await self.nodes(), await self.master()]

    async def add_node(
        self,
        name: str,
        *,
        group: str | None = None,
        primary_ip: str | None = None,
        secondary_ip: str | None = None,
        check: bool = True,
    ) -> Node:
        """Add a node to a group; its addresses are kept away from instances in every network that covers them."""
        check_word(name, field=NODE)
        own = [own_address(ip, field) for field, ip in (("primary_ip", primary_ip), ("secondary_ip", secondary_ip))]

        async def attempt() -> Node:
            lock = await structure(self._ledger)
            home = await self._home(group)
            node = Node(name, home.name, str(uuid4()), own[0], own[1], 1)
            check_node(node, await self.machines())
            edits = await self._keep_away(node) if check else []
            await apply_fresh(self._ledger, [lock, *edits, *node_papers(node)])
            return node

        with node_address_blamed():
            return await settled(attempt)

    async def _home(self, group: str | None) -> Group:
        if group is not None:
            return await self.group(group)
        groups = await self.groups()
        if len(groups) != 1:
            hint = "name one with --group" if groups else "`tenure group add default` makes one"
            problem = "there are several groups" if groups else "there is no group for the node"
            raise NotFound(GROUP, "", problem=problem, hint=hint)
        return groups[0]

    async def _keep_away(self, node: Node) -> list[Operation]:
        found: list[Operation] = []
        for network in await NetworkLookup(self._ledger).every():
            kept = kept_away(network, [node])
            found.extend([*([unchanged(network)] if kept else []), *kept])
        return found

    async def remove_node(self, name: str) -> Node:
        """Remove a node that carries no instance; its addresses are no longer kept away."""

        async def attempt() -> Node:
            lock = await structure(self._ledger)
            node = await self.node(name)
            freed: list[Operation] = []
            for network in await NetworkLookup(self._ledger).every():
                kept = [each for subnet in network.subnets for each in subnet.reserved]
                # By the reason: an admin's range over the same address stays reserved when the node goes.
                own = [each.range for each in kept if each.reason == node.reason]
                edits = [Unreserve(network=network.name, range=piece) for piece in own]
                freed.extend([*([unchanged(network)] if own else []), *edits])
            gone = [
                RemovePaper(kind=NODE, name=name, revision=node.revision),
                # A new instance expects this mark, so none slips in behind ``nobody``. Marks always have revision 1.
                RemovePaper(kind=IDENTITY, name=node.uuid, revision=1),
            ]
            nobody = ExpectNoPapers(kind=PLACEMENT, prefix=f"{name}/")
            await apply_fresh(self._ledger, [lock, *freed, *gone, nobody])
            return node

        try:
            return await settled(attempt)
        except StillInUse as error:
            carried = [holder.partition("/")[2] for holder in error.holders]
            raise StillInUse(NODE, name, carried, hint="remove its instances first") from None

    async def strangers(self, groups: Iterable[str]) -> list[tuple[str, str]]:
        """List the addresses of NICs without network in these groups, each with its instance."""
        names: dict[str, None] = {}
        for group in groups:
            marks = await self._ledger.papers(NIC, prefix=f"{NO_NETWORK}/{group}/")
            names.update(dict.fromkeys(instance_of_mark(mark.name) for mark in marks))
        found: list[tuple[str, str]] = []
        for name in names:
            try:
                paper = await self._ledger.paper(INSTANCE, name)
            except NotFound:  # it went meanwhile, and its addresses with it
                continue
            found.extend((address, name) for address in loose_addresses(paper))
        return found


def node_papers(node: Node) -> list[WritePaper]:
    """Return the operations that write a new node: its paper and its mark."""
    return [
        WritePaper(kind=NODE, name=node.name, document=node.document()),
        WritePaper(kind=IDENTITY, name=node.uuid, document={}),
    ]


def check_node(node: Node, others: Sequence[ClusterMachine]) -> None:
    """Refuse a node's name that another node has, and an address that another node or the master has."""
    for known in others:
        if known.reason == node.reason:
            raise AlreadyExists(NODE, node.name)
        for address in node.addresses:
            if address in known.addresses:
                field = "primary_ip" if address == node.primary_ip else "secondary_ip"
                option = f"--{field.replace('_', '-')}"
                raise Conflict(f"{option}: {address} is an address of {known.reason}", field=field)


@contextmanager
def node_address_blamed() -> Iterator[None]:
    """Let the error name the node's options if an instance holds an address that a node is to get."""
    try:
        yield
    except StillInUse as error:
        hint = "; pass --no-conflicts-check to go on all the same"
        problem = f"an instance has an address of the node: {', '.join(error.holders)}{hint}"
        raise Conflict(f"--primary-ip or --secondary-ip: {problem}", field="primary_ip") from None


def kept_away(network: Network, machines: Sequence[ClusterMachine]) -> list[Operation]:
    """Return the operations that reserve in a network what machines have there; refused where an instance holds it."""
    kept = reserve_nodes(network, machines, [subnet.cidr.range for subnet in network.subnets])
    # Instances are added without the cluster's lock: the ledger itself has to look for the address.
    return [*(ExpectNoHoldings(network=network.name, range=str(edit.range)) for edit in kept), *kept]


def reserve_nodes(network: Network, nodes: Sequence[ClusterMachine], where: Sequence[AddressRange]) -> list[Reserve]:
    """Return the edits that keep addresses of nodes and of the master away, as far as they lie in these ranges."""
    return [
        Reserve(network=network.name, range=AddressRange(position, position), reason=node.reason)
        for node in nodes
        for position in map(parse_address, node.addresses)
        if any(position in piece for piece in where)
    ]


def refuse_strangers(network: str, strangers: Iterable[tuple[str, str]], where: Sequence[AddressRange]) -> None:
    """Refuse to lay a network over addresses that NICs without network have."""
    for address, instance in strangers:
        if any(parse_address(address) in piece for piece in where):
            raise covered(address, instance, network)


def refuse_inside(networks: Iterable[Network], addresses: Sequence[str]) -> None:
    """Refuse addresses of NICs without network that a network connected to their group covers."""
    for network in networks:
        for address in addresses:
            if any(parse_address(address) in subnet.cidr.range for subnet in network.subnets):
                problem = f"{address} lies in network {network.name}, which is connected to the instance's group"
                hint = f"say network={network.name}, leave the address out, or pass --no-conflicts-check"
                raise AddressCovered(address, f"{problem}; {hint}")


def own_address(text: str | None, field: str) -> str | None:
    """Read an address of a machine of the cluster, if there is one."""
    return None if text is None else format_address(parse_address(text, field=field))
