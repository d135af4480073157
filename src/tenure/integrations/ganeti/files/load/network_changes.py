"""How a network of the ledger differs from the same one in a file, and the edits that bring it there.

Two things are the ledger's own, and no file has a say in them: addresses that are kept away because a node or the
master has them, and addresses that are pre-allocated. They are neither compared nor lifted.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tenure.integrations.ganeti.files.file_model import NetworkFile, SubnetFile, made_uuid
from tenure.integrations.ganeti.files.ledger_snapshot import network_file
from tenure.integrations.ganeti.files.load.import_operations import kept_back
from tenure.integrations.ganeti.files.read.bitmaps import single, within
from tenure.integrations.ganeti.options.network_edits import Design
from tenure.kernel.addressing.addresses import is_v6
from tenure.kernel.addressing.ranges import AddressRange, merge, subtract
from tenure.kernel.errors import Conflict
from tenure.kernel.plan.edits import (
    KEEP,
    AddPool,
    AddSubnet,
    Connect,
    Disconnect,
    Edit,
    ModifyNetwork,
    ModifyPool,
    ModifySubnet,
    RemovePool,
    RemoveSubnet,
    Reserve,
    Unreserve,
)
from tenure.kernel.plan.plan_model import Connection, KeepBack, Network, Notes, Pool, Reserved, Subnet, address_text
from tenure.service.apply.cluster_rules import OWN_REASONS


def aligned(wanted: NetworkFile, network: Network) -> NetworkFile:
    """Return a network of a file in which subnets without a uuid of their own have that of the ledger's subnet.

    It is the one of the same block, else of the same name, else the only one of the same IP version that is left.
    """
    given = {subnet.uuid for subnet in wanted.subnets}
    free = [subnet for subnet in network.subnets if subnet.uuid not in given]
    nameless = [each for each in wanted.subnets if _is_made(each, wanted) and not _has(network, each.uuid)]
    uuids: dict[str, str] = {}
    for same in (_same_block, _same_name, _same_version):
        for each in [each for each in nameless if each.uuid not in uuids]:
            found = [subnet for subnet in free if same(each, subnet)]
            rivals = [other for other in nameless if other.uuid not in uuids and any(same(other, s) for s in found)]
            # Only where neither subnet has another choice.
            if len(found) == len(rivals) == 1:
                uuids[each.uuid] = found[0].uuid
                free.remove(found[0])
    return wanted.with_subnets(tuple(replace(s, uuid=uuids.get(s.uuid, s.uuid)) for s in wanted.subnets))


def _is_made(subnet: SubnetFile, network: NetworkFile) -> bool:
    return subnet.uuid == made_uuid(network.uuid, str(subnet.cidr))


def _has(network: Network, uuid: str) -> bool:
    return any(subnet.uuid == uuid for subnet in network.subnets)


def _same_block(wanted: SubnetFile, subnet: Subnet) -> bool:
    return wanted.cidr == subnet.cidr


def _same_name(wanted: SubnetFile, subnet: Subnet) -> bool:
    return wanted.name is not None and wanted.name == subnet.name


def _same_version(wanted: SubnetFile, subnet: Subnet) -> bool:
    return is_v6(wanted.cidr.first) == is_v6(subnet.cidr.first)


def own_ground(network: Network) -> list[AddressRange]:
    """List what the ledger keeps away on its own word."""
    waiting = (single(wish.position) for wish in network.preallocations)
    kept = (each.range for subnet in network.subnets for each in subnet.reserved if is_own(each))
    return merge([*waiting, *kept])


def is_own(kept: Reserved) -> bool:
    """Return whether a range is reserved because a node or the master has it."""
    return kept.reason.startswith(OWN_REASONS)


def differing(network: Network, wanted: NetworkFile) -> list[str]:
    """Name what of a network is otherwise in a settled file, but for its name and its connections."""
    own, now = own_ground(network), network_file(network)
    theirs, ours = _by_uuid(wanted.subnets), _by_uuid(now.subnets)
    # A subnet that comes or goes is a difference already, with all that lies in it.
    both = [uuid for uuid in theirs if uuid in ours]
    pairs = {
        "tags": (wanted.tags, now.tags),
        "MAC prefix": (wanted.mac_prefix, now.mac_prefix),
        "subnets": ([_shape(each) for each in wanted.subnets], [_shape(each) for each in now.subnets]),
        "pools": ([_pools(theirs[uuid]) for uuid in both], [_pools(ours[uuid]) for uuid in both]),
        "reserved addresses": (
            [_external(theirs[uuid], own) for uuid in both],
            [_external(ours[uuid], own) for uuid in both],
        ),
    }
    return [what for what, (theirs_said, ours_said) in pairs.items() if theirs_said != ours_said]


def open_gateways(network: Network, wanted: NetworkFile) -> list[int]:
    """List the gateways that are new in a file and that it does not mark: the ledger lets any owner hold these."""
    known = {subnet.gateway for subnet in network.subnets}
    return [
        subnet.gateway
        for subnet in wanted.subnets
        if subnet.gateway is not None
        and subnet.gateway not in known
        and subnet.cidr.range.covers(single(subnet.gateway))
        and KeepBack.GATEWAY not in kept_back(subnet)
    ]


def _by_uuid(subnets: Iterable[SubnetFile]) -> dict[str, SubnetFile]:
    return {subnet.uuid: subnet for subnet in subnets}


def _shape(subnet: SubnetFile) -> tuple[object, ...]:
    return subnet.uuid, subnet.cidr, subnet.name, subnet.gateway, subnet.dhcp


def _pools(subnet: SubnetFile) -> list[tuple[AddressRange, str | None]]:
    return [(pool.range, pool.name) for pool in subnet.pools]


def _external(subnet: SubnetFile, own: Sequence[AddressRange]) -> list[AddressRange]:
    return merge(piece for kept in subnet.external or () for piece in subtract(kept, own))


def follow_network(design: Design, wanted: NetworkFile, lines: Sequence[Connection]) -> None:
    """Edit a network until it is as in the file, with these connections; its new name comes last.

    What the file has no words for stays: labels, DNS servers, policies of pools. Conflict if that cannot be done.
    """
    before, name = design.network, design.network.name
    words = {"tags": (before.tags, wanted.tags), "mac_prefix": (before.mac_prefix, wanted.mac_prefix)}
    if said := {word: new for word, (old, new) in words.items() if old != new}:
        design.edit(ModifyNetwork(network=name, **said))  # type: ignore[arg-type]  # each word has its own type
    if {"subnets", "pools", "reserved addresses"} & set(differing(before, wanted)):
        _follow_subnets(design, wanted)
    for edit in _rewired(name, before.connections, lines):
        design.edit(edit)
    # Last, because all other edits name the network as it is called until then.
    if wanted.name != name:
        design.edit(ModifyNetwork(network=name, name=wanted.name))
    if left := differing(design.network, wanted):
        raise Conflict(f"network {name!r}: its {', '.join(left)} cannot be made as they are in the file", field="file")


def _rewired(name: str, before: Iterable[Connection], lines: Iterable[Connection]) -> Iterator[Edit]:
    wanted, known = {line.group: line for line in lines}, {line.group: line for line in before}
    yield from (Disconnect(network=name, group=group) for group in known if group not in wanted)
    for line in wanted.values():
        if known.get(line.group) != line:
            yield Connect(network=name, group=line.group, mode=line.mode, link=line.link, vlan=line.vlan)


def _follow_subnets(design: Design, wanted: NetworkFile) -> None:
    before, name = design.network, design.network.name
    staying = set(_in_place(before, wanted))
    for subnet in before.subnets:
        if subnet.uuid not in staying:
            design.edit(RemoveSubnet(network=name, subnet=subnet.uuid))
    known, own = {subnet.uuid: subnet for subnet in before.subnets}, own_ground(before)
    pools = [pool for subnet in before.subnets for pool in subnet.pools]
    changes = [
        _SubnetChange(name, known.get(each.uuid), each, own, each.uuid in staying, pools) for each in wanted.subnets
    ]
    # All ground is given up before any is taken: pools and reserved ranges may go from one subnet to another.
    for step in (_SubnetChange.cleared, _SubnetChange.shaped, _SubnetChange.filled):
        for change in changes:
            for edit in step(change):
                design.edit(edit)


def _in_place(network: Network, wanted: NetworkFile) -> list[str]:
    """List the subnets that can stay where they are: addresses are picked in the order in which subnets are written."""
    order = {subnet.uuid: place for place, subnet in enumerate(network.subnets)}
    found: list[str] = []
    for subnet in wanted.subnets:
        if subnet.uuid not in order or (found and order[found[-1]] > order[subnet.uuid]):
            break
        found.append(subnet.uuid)
    return found


@dataclass(frozen=True, slots=True)
class _SubnetChange:
    """A subnet as it is (None: new) and as it will be. One that is not ``in_place`` is written again.

    ``pools`` are those of the whole network as it is.
    """

    network: str
    before: Subnet | None
    wanted: SubnetFile
    own: Sequence[AddressRange]
    in_place: bool
    pools: Sequence[Pool]

    def cleared(self) -> Iterator[Edit]:
        """Give up ranges of a subnet that stays: reserved ones, pools from the first that differs on."""
        if self.before is None or not self.in_place:
            return
        kept = merge([*self._kept(), *self.own])
        for reserved in self.before.reserved:
            holes = [self.wanted.cidr.range] if is_own(reserved) else kept
            yield from (Unreserve(network=self.network, range=piece) for piece in subtract(reserved.range, holes))
        same = self._same_pools()
        yield from (RemovePool(network=self.network, pool=str(pool.range)) for pool in self.before.pools[same:])

    def shaped(self) -> Iterator[Edit]:
        """Give a subnet its block, gateway, name, DHCP and automatic marks."""
        before, wanted, marks = self.before, self.wanted, sorted(self._marks())
        gateway = address_text(wanted.gateway)
        if before is not None and self.in_place:
            if (_shape(wanted), set(marks)) != (_shape(_as_file(before)), set(before.keep_back)):
                yield ModifySubnet(
                    network=self.network, subnet=before.uuid, dhcp=wanted.dhcp, keep_back=marks,
                    cidr=KEEP if wanted.cidr == before.cidr else str(wanted.cidr),
                    gateway=KEEP if wanted.gateway == before.gateway else gateway,
                    name=KEEP if wanted.name == before.name else wanted.name,
                )  # fmt: skip
            return
        said = {} if before is None else {
            "dns": before.dns, "zones": before.zones, "labels": before.notes.labels,
            "description": before.notes.description,
        }  # fmt: skip
        yield AddSubnet(
            network=self.network, cidr=str(wanted.cidr), gateway=gateway, name=wanted.name, dhcp=wanted.dhcp,
            keep_back=marks, uuid=wanted.uuid, **said,  # type: ignore[arg-type]  # each word has its own type
        )  # fmt: skip
        if before is not None and before.retired:
            yield ModifySubnet(network=self.network, subnet=wanted.uuid, retired=True)

    def filled(self) -> Iterator[Edit]:
        """Add the pools and the reserved ranges that are missing."""
        for pool in self.wanted.pools[self._same_pools() :]:
            yield from self._added(pool.range, pool.name)
        kept, there = self._kept(), list[AddressRange]()
        for reserved in self.before.reserved if self.before is not None else ():
            if self.in_place:
                there.append(reserved.range)
                continue
            for piece in (
                within([reserved.range], self.wanted.cidr.range) if is_own(reserved) else _meet(kept, reserved)
            ):
                there.append(piece)
                yield Reserve(
                    network=self.network, range=piece, reason=reserved.reason, request=reserved.request,
                    labels=reserved.notes.labels, description=reserved.notes.description,
                )  # fmt: skip
        for piece in kept:
            yield from (Reserve(network=self.network, range=rest) for rest in subtract(piece, merge(there)))

    def _added(self, span: AddressRange, name: str | None) -> Iterator[Edit]:
        """Add a pool with the words of the ledger's pool of the same range, else of the same name.

        One without a name, as all of today's form, has those of a pool without a name that had addresses of it.
        A range that is new in a subnet has policy, cooling and rank of its pool in another subnet, as if it were added
        by hand.
        """
        pools = self.before.pools if self.before is not None else ()
        known = [pool for pool in pools if pool.range == span] or _named(pools, name)
        if name is None and not known:
            known = [pool for pool in pools if pool.name is None and within([pool.range], span)]
        # Of the network as it was: by now the pool's other ranges may be cleared, and are written behind this one.
        rules = next(iter([*known, *_named(self.pools, name)]), None)
        notes = known[0].notes if known else Notes()
        yield AddPool(
            network=self.network, range=span, name=name, labels=notes.labels, description=notes.description,
            policy=None if rules is None else rules.policy, cooling_s=None if rules is None else rules.cooling_s,
            rank=None if rules is None else rules.rank,
        )  # fmt: skip
        if known and known[0].retired:
            yield ModifyPool(network=self.network, pool=str(span), retired=True)

    def _same_pools(self) -> int:
        """Count the pools at the beginning that stay as they are; all behind them are written again."""
        if self.before is None or not self.in_place:
            return 0
        pairs = zip(self.before.pools, self.wanted.pools, strict=False)
        differ = (place for place, (old, new) in enumerate(pairs) if (old.range, old.name) != (new.range, new.name))
        return next(differ, min(len(self.before.pools), len(self.wanted.pools)))

    def _marks(self) -> set[KeepBack]:
        """Return the automatic marks that the subnet will have."""
        external = self.wanted.external or ()
        last = {KeepBack.LAST} if self.before is not None and KeepBack.LAST in self.before.keep_back else set()
        return kept_back(self.wanted) | {why for why in last if any(self.wanted.cidr.last in each for each in external)}

    def _kept(self) -> list[AddressRange]:
        """List what is to be reserved beside the automatic marks and what the ledger keeps away on its own word."""
        subnet = replace(_blank(self.wanted), keep_back=frozenset(self._marks()))
        holes = merge([*self.own, *(single(position) for position, _ in subnet.kept_back())])
        return merge(piece for kept in self.wanted.external or () for piece in subtract(kept, holes))


def _blank(wanted: SubnetFile) -> Subnet:
    return Subnet(wanted.cidr, wanted.uuid, gateway=wanted.gateway)


def _named(pools: Iterable[Pool], name: str | None) -> list[Pool]:
    return [pool for pool in pools if name is not None and pool.name == name]


def _as_file(subnet: Subnet) -> SubnetFile:
    return SubnetFile(subnet.cidr, subnet.uuid, subnet.name, subnet.gateway, subnet.dhcp)


def _meet(kept: Sequence[AddressRange], reserved: Reserved) -> tuple[AddressRange, ...]:
    return within(kept, reserved.range)
