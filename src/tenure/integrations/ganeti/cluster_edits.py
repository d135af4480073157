"""Nodes and groups that change while instances run on them: addresses, group, name; and the master's address.

An instance's paper names its node and its group, and the marks of its NICs name the group. So instances follow in the
same ``apply``, without giving up an address: nobody ever sees one of them between two groups.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.ganeti.cluster import (
    Cluster,
    check_node,
    kept_away,
    node_address_blamed,
    own_address,
    refuse_inside,
    structure,
)
from tenure.integrations.ganeti.instance_records import mark_changes
from tenure.integrations.ganeti.machine_model import (
    GROUP,
    INSTANCE,
    NODE,
    PLACEMENT,
    ClusterMachine,
    Document,
    Group,
    Master,
    Node,
    check_word,
    master_paper,
    read_instance,
)
from tenure.integrations.ganeti.network_lookup import NetworkLookup, Outrun, apply_fresh, settled, unchanged
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import AlreadyExists, Conflict, StillInUse
from tenure.kernel.holdings.holding_model import Paper
from tenure.kernel.plan.edits import KEEP, Connect, Disconnect, Edit, Keep, Reserve, Unreserve
from tenure.kernel.plan.plan_model import Network
from tenure.service.apply.operations import ExpectNoPapers, Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

NodeMove = tuple[Node, Node]
"""A node as it was and as it will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWords:
    """What is to change of a node; what is not named stays."""

    group: str | Keep = KEEP
    primary_ip: str | Keep | None = KEEP
    secondary_ip: str | Keep | None = KEEP

    def own(self, node: Node) -> Node:
        """Return the node with the addresses that these words give it."""
        first, second = self.primary_ip, self.secondary_ip
        return replace(
            node,
            primary_ip=node.primary_ip if isinstance(first, Keep) else own_address(first, "primary_ip"),
            secondary_ip=node.secondary_ip if isinstance(second, Keep) else own_address(second, "secondary_ip"),
        )


class ClusterEdits:
    """What changes the nodes and groups of a ledger in place. Each change costs a reading of all instances' papers."""

    def __init__(self, ledger: AsyncLedger) -> None:
        self._ledger = ledger
        self._cluster = Cluster(ledger)

    async def modify_node(self, name: str, words: NodeWords, *, check: bool = True) -> bool:
        """Change a node's addresses or group; in another group its instances take the links there.

        Return whether anything was changed. Without ``check`` the new addresses are not kept away from instances.
        """
        words.own(Node(name, "", ""))  # addresses are read before anything else is looked at

        async def attempt() -> bool:
            lock = await structure(self._ledger)
            node = await self._cluster.node(name)
            after = words.own(node)
            if isinstance(words.group, str):
                after = replace(after, group=(await self._cluster.group(words.group)).name)
            if after == node:
                return False
            check_node(after, [each for each in await self._cluster.machines() if each.reason != node.reason])
            return await self._send(lock, [(node, after)], check=check)

        with node_address_blamed():
            return await settled(attempt)

    async def assign_nodes(self, group: str, names: Sequence[str], *, check: bool = True) -> bool:
        """Put nodes into a group, all or none; their instances take the links there."""

        async def attempt() -> bool:
            lock = await structure(self._ledger)
            home = await self._cluster.group(group)
            # Each once: the second move of a node would name a revision that the first one has replaced.
            nodes = [await self._cluster.node(name) for name in dict.fromkeys(names)]
            moves = [(node, replace(node, group=home.name)) for node in nodes if node.group != home.name]
            return await self._send(lock, moves, check=check) if moves else False

        return await settled(attempt)

    async def rename_node(self, name: str, new: str) -> bool:
        """Give a node another name; its uuid, addresses and instances stay."""
        check_word(new, field=NODE)

        async def attempt() -> bool:
            lock = await structure(self._ledger)
            node = await self._cluster.node(name)
            if new == node.name:
                return False
            if any(known.name == new for known in await self._cluster.nodes()):
                raise AlreadyExists(NODE, new)
            return await self._send(lock, [(node, replace(node, name=new))])

        return await settled(attempt)

    async def rename_group(self, name: str, new: str) -> bool:
        """Give a group another name; its uuid, nodes, instances and networks stay."""
        check_word(new, field=GROUP)

        async def attempt() -> bool:
            lock = await structure(self._ledger)
            group = await self._cluster.group(name)
            if new == group.name:
                return False
            if any(known.name == new for known in await self._cluster.groups()):
                raise AlreadyExists(GROUP, new)
            nodes = [node for node in await self._cluster.nodes() if node.group == group.name]
            moves = [(node, replace(node, group=new)) for node in nodes]
            return await self._send(lock, moves, renamed=(group, replace(group, name=new)))

        return await settled(attempt)

    async def set_master(self, ip: str | None, *, check: bool = True) -> tuple[bool, Master]:
        """Keep another address, or none, away from instances as the master's; return whether that is a change."""
        wanted = own_address(ip, "master_ip")

        async def attempt() -> tuple[bool, Master]:
            lock = await structure(self._ledger)
            before = await self._cluster.master()
            after = replace(before, ip=wanted)
            if after == before:
                return False, before
            for node in await self._cluster.nodes():
                if wanted in node.addresses:
                    raise Conflict(f"--master-ip: {wanted} is an address of {node.reason}", field="master_ip")
            networks = await NetworkLookup(self._ledger).every()
            edits = _in_networks(networks, lambda network: _address_edits(network, before, after, check=check))
            await apply_fresh(self._ledger, [lock, *edits, master_paper(after)])
            return True, after

        try:
            return await settled(attempt)
        except StillInUse as error:
            problem = f"an instance has it: {', '.join(error.holders)}; pass --no-conflicts-check to go on all the same"
            raise Conflict(f"--master-ip: {problem}", field="master_ip") from None

    async def _send(
        self,
        lock: WritePaper,
        moves: Sequence[NodeMove],
        *,
        renamed: tuple[Group, Group] | None = None,
        check: bool = True,
    ) -> bool:
        """Change nodes, with the group that gets another name, and let their instances follow."""
        networks = await NetworkLookup(self._ledger).every()
        # A group that only gets another name keeps its links, so no NIC is wired again.
        links = None if renamed is not None else {network.uuid: network for network in networks}
        followers = await self._followers(moves, links, check=check)

        def edits(network: Network) -> list[Operation]:
            own = [each for move in moves for each in _address_edits(network, *move, check=check)]
            return [*own, *([] if renamed is None else _reconnected(network, *renamed))]

        papers = [] if renamed is None else _group_papers(*renamed)
        papers += [paper for move in moves for paper in _node_papers(*move)]
        # NICs take their wires from these networks, so they must be as they were read, edited or not.
        wired = {uuid for follower in followers for uuid in follower.networks}
        changes = _in_networks(networks, edits, expected=wired if links is not None else ())
        following = [operation for follower in followers for operation in follower.operations]
        await apply_fresh(self._ledger, [lock, *changes, *papers, *following], marks=PLACEMENT)
        return True

    async def _followers(
        self, moves: Sequence[NodeMove], links: Mapping[str, Network] | None, *, check: bool
    ) -> "list[_Follower]":
        """Decide how the instances of nodes follow them into another group or to another name."""
        relocated = [move for move in moves if _place(move[0]) != _place(move[1])]
        papers = {paper.name: paper for paper in await self._ledger.papers(INSTANCE)} if relocated else {}
        found: list[_Follower] = []
        for before, after in relocated:
            marks = await self._ledger.papers(PLACEMENT, prefix=f"{before.name}/")
            names = [mark.name.partition("/")[2] for mark in marks]
            if any(name not in papers or papers[name].document["node"] != before.name for name in names):
                # Papers and marks are two readings: an instance that changed between them is read again.
                raise Outrun(Conflict("an instance changed while its node was read", field="revision"))
            instances = [papers[name] for name in names]
            if check and links is not None:
                _refuse_covered(instances, links.values(), after.group)
            found.append(_Follower(before, after, instances, links))
        return found


@dataclass(frozen=True, slots=True)
class _Follower:
    """The instances of one node that gets another group or name; ``links`` are None where NICs keep their wires."""

    before: Node
    after: Node
    instances: Sequence[Paper]
    links: Mapping[str, Network] | None

    @property
    def networks(self) -> set[str]:
        """Return the uuids of the networks that their NICs are on."""
        return {nic["network"] for paper in self.instances for nic in paper.document["nics"]} - {None}

    @property
    def operations(self) -> list[Operation]:
        """Return what rewrites their papers and marks, and refuses an instance that came meanwhile."""
        names = [paper.name for paper in self.instances]
        here, there = f"{self.before.name}/", f"{self.after.name}/"
        return [
            # All marks of the node go before any comes: one that is left then is an instance that was not read. A new
            # instance expects the node's paper, so none comes between this look and the commit.
            *(RemovePaper(kind=PLACEMENT, name=here + name, revision=1) for name in names),
            ExpectNoPapers(kind=PLACEMENT, prefix=here),
            *(WritePaper(kind=PLACEMENT, name=there + name, document={}) for name in names),
            *(operation for paper in self.instances for operation in self._rewritten(paper)),
        ]

    def _rewritten(self, paper: Paper) -> list[Operation]:
        own = paper.document
        nics = [self._wired(nic, paper.name) for nic in own["nics"]]
        place = {"node": self.after.name, "group": self.after.group}
        document = {**own, **place, "nics": nics, "serial": own["serial"] + 1}
        # Without their addresses: the marks do not name them, and the documents keep their slots.
        marks = mark_changes(read_instance(paper, {}), read_instance(paper._replace(document=document), {}))
        return [
            WritePaper(kind=INSTANCE, name=paper.name, document=document, revision=paper.revision),
            *(mark for mark in marks if isinstance(mark, WritePaper | RemovePaper) and mark.kind != PLACEMENT),
        ]

    def _wired(self, nic: Document, instance: str) -> Document:
        """Return a NIC as it is wired in the node's new group."""
        network = None if self.links is None else self.links.get(nic["network"])
        if network is None or self.before.group == self.after.group:
            return nic
        wires = network.connection(self.after.group)
        if wires is None:
            where = f"network {network.name!r} is not connected to group {self.after.group!r}"
            hint = f"`tenure network connect {network.name} {self.after.group}` connects it"
            raise Conflict(
                f"{where}, and instance {instance!r} of node {self.before.name} is on it; {hint}", field="group"
            )
        return {**nic, "mode": wires.mode, "link": wires.link, "vlan": wires.vlan}


def _place(node: Node) -> tuple[str, str]:
    return node.name, node.group


def _refuse_covered(instances: Iterable[Paper], networks: Iterable[Network], group: str) -> None:
    """Refuse addresses of NICs without network that a network of the new group covers."""
    loose = [nic for paper in instances for nic in paper.document["nics"] if nic["network"] is None]
    connected = [network for network in networks if network.connection(group)]
    refuse_inside(connected, [ip["address"] for nic in loose for ip in nic["ips"]])


def _in_networks(
    networks: Iterable[Network], edits: Callable[[Network], Sequence[Operation]], expected: Iterable[str] = ()
) -> list[Operation]:
    """Put the operations on networks together; those that are changed, or named by uuid, must be as they were read."""
    found: list[Operation] = []
    wanted = set(expected)
    for network in networks:
        own = edits(network)
        if own or network.uuid in wanted:
            found.extend([unchanged(network), *own])
    return found


def _address_edits(network: Network, before: ClusterMachine, after: ClusterMachine, *, check: bool) -> list[Operation]:
    """Return what keeps the new addresses of a machine away in a network, and lifts the old ones."""
    kept = [each.range for subnet in network.subnets for each in subnet.reserved if each.reason == before.reason]
    if before.reason != after.reason:
        return [edit for piece in kept for edit in _reasoned(network, piece, after.reason)]
    gone = [parse_address(address) for address in before.addresses if address not in after.addresses]
    lifted = [
        # Only this address: the node's addresses that follow each other are one range.
        Unreserve(network=network.name, range=AddressRange(position, position))
        for position in gone
        if any(position in piece for piece in kept)
    ]
    new = _Added([address for address in after.addresses if address not in before.addresses], after.reason)
    return [*lifted, *(kept_away(network, [new]) if check else [])]


@dataclass(frozen=True, slots=True)
class _Added:
    """The addresses that a machine gets."""

    addresses: list[str]
    reason: str


def _reasoned(network: Network, piece: AddressRange, reason: str) -> list[Edit]:
    """Let a reserved range have another reason."""
    name = network.name
    return [Unreserve(network=name, range=piece), Reserve(network=name, range=piece, reason=reason)]


def _reconnected(network: Network, before: Group, after: Group) -> list[Edit]:
    """Let a network reach a group by its new name, as it did by the old one."""
    wires = network.connection(before.name)
    if wires is None:
        return []
    return [
        Disconnect(network=network.name, group=before.name),
        Connect(network=network.name, group=after.name, mode=wires.mode, link=wires.link, vlan=wires.vlan),
    ]


def _group_papers(before: Group, after: Group) -> list[Operation]:
    return [
        RemovePaper(kind=GROUP, name=before.name, revision=before.revision),
        WritePaper(kind=GROUP, name=after.name, document=after.document()),
    ]


def _node_papers(before: Node, after: Node) -> list[Operation]:
    if before.name == after.name:
        return [WritePaper(kind=NODE, name=after.name, document=after.document(), revision=before.revision)]
    return [
        RemovePaper(kind=NODE, name=before.name, revision=before.revision),
        WritePaper(kind=NODE, name=after.name, document=after.document()),
    ]
