"""A plan drafted: what the ledger has, and what a source would add to it, checked edit by edit.

The ledger's own rules decide (``kernel.plan.apply_edit``), each on as little of the plan as it needs, so that a plan
of ten thousand subnets is drafted in time that grows with its size and not with its square.
"""

import uuid
from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange, merge, parse_cidr, parse_range, subtract
from tenure.kernel.errors import AddressOutsideSubnet, AlreadyExists, Invalid, Overlap, outside_subnets
from tenure.kernel.plan.apply_edit import as_of_pool, edited
from tenure.kernel.plan.edits import AddPool, AddSubnet, Connect, Preallocate, Reserve
from tenure.kernel.plan.plan_model import Configuration, Network, Pool, PreAllocation, Subnet

E = TypeVar("E", AddPool, AddSubnet, Connect, Reserve, Preallocate)


class DisjointRanges:
    """Disjoint ranges in order, found by position in O(log n)."""

    def __init__(self, spans: Iterable[tuple[int, int]] = ()) -> None:
        self._spans = sorted(spans)

    def over(self, first: int, last: int) -> tuple[int, int] | None:
        """Find one that shares an address with a range."""
        # 1 << 140 is above every position, so a range that begins at `last` is found as well.
        place = bisect_right(self._spans, (last, 1 << 140)) - 1
        found = self._spans[place] if place >= 0 else None
        return found if found is not None and found[1] >= first else None

    def add(self, first: int, last: int) -> None:
        """Add one that lies over none of them."""
        insort(self._spans, (first, last))


@dataclass(frozen=True, slots=True)
class Differs:
    """Something is there already, but not quite as the source says."""

    field: str
    reason: str


class ImportedNetwork:
    """One network as it would be."""

    def __init__(self, network: Network, space: str) -> None:
        self.space = space
        self._shell = replace(network, subnets=(), preallocations=())
        self._subnets = {subnet.cidr.first: subnet for subnet in network.subnets}
        self._blocks = DisjointRanges((subnet.cidr.first, subnet.cidr.last) for subnet in network.subnets)
        self._pools = DisjointRanges((pool.range.first, pool.range.last) for _, pool in network.pools())
        self._named: dict[str, Pool] = {}
        for _, pool in network.pools():
            if pool.name is not None:
                self._named.setdefault(pool.name, pool)
        self._idents = {ident for subnet in network.subnets for ident in (subnet.name, subnet.uuid) if ident}
        self._from_source: set[tuple[str, int]] = set()
        self._waiting = {(wish.owner, wish.slot): wish for wish in network.preallocations}

    def network(self) -> Network:
        """Put the network together."""
        return replace(self._shell, subnets=tuple(self._subnets.values()), preallocations=tuple(self._waiting.values()))

    def retired(self, subnet: str | None = None, pool: str | None = None) -> bool:
        """Tell whether the network, a subnet or a pool is retired already."""
        if subnet is not None:
            found = self._subnets.get(parse_cidr(subnet).first)
            return found is not None and found.retired
        if pool is not None:
            wanted = parse_range(pool)
            return any(each.retired for each in self._around(wanted).pools if each.range == wanted)
        return self._shell.retired

    def add_subnet(self, edit: AddSubnet) -> list[Differs] | None:
        """Add a subnet; where the block is there already, tell how it differs instead."""
        # A subnet is checked with a uuid, which the ledger gives a new subnet only when it writes it.
        edit = replace(edit, uuid=edit.uuid or str(uuid.uuid4()))
        # Without the network's other subnets, which would make n subnets cost n²; overlaps are looked up below.
        subnet = self._edited((), edit).subnets[0]
        old = self._subnets.get(subnet.cidr.first)
        if old is not None and old.cidr == subnet.cidr:
            self._check_twice("subnet", "cidr", subnet.cidr.range)
            return _subnet_differs(old, subnet)
        if over := self._blocks.over(subnet.cidr.first, subnet.cidr.last):
            raise Overlap(f"subnet {subnet.cidr}", f"subnet {self._subnets[over[0]].cidr}", field="cidr")
        for ident in (subnet.name, subnet.uuid):
            if ident in self._idents:
                raise AlreadyExists("subnet", ident, field="name" if ident == subnet.name else "uuid")
        self._idents.update(ident for ident in (subnet.name, subnet.uuid) if ident)
        self._blocks.add(subnet.cidr.first, subnet.cidr.last)
        self._subnets[subnet.cidr.first] = subnet
        self._from_source.add(("subnet", subnet.cidr.first))
        return None

    def add_pool(self, edit: AddPool) -> list[Differs] | None:
        """Add a pool; where the range is one already, tell how it differs instead."""
        wanted = parse_range(edit.range)
        around = self._around(wanted)
        old = next((pool for pool in around.pools if pool.range == wanted), None)
        like = old or (self._named.get(edit.name) if isinstance(edit.name, str) else None)
        whole = edit if like is None else as_of_pool(edit, like)
        # Without the subnet's other pools, which would make n pools cost n²; overlaps are looked up below.
        [pool] = self._edited((replace(around, pools=()),), whole).subnets[0].pools
        if old is not None:
            self._check_twice("pool", "range", wanted)
            if all(getattr(old, name) == getattr(pool, name) for name in ("name", "policy", "cooling_s", "rank")):
                return []
            return [Differs("range", "the ledger's pool differs in name, policy, cooling time or rank")]
        if over := self._pools.over(wanted.first, wanted.last):
            raise Overlap(f"pool {wanted}", f"pool {AddressRange(*over)}", field="range")
        first = pool if pool.name is None else self._named.setdefault(pool.name, pool)
        if first.policy != pool.policy:
            problem = f"policy: pool {pool.name!r} picks {first.policy}; one name has one policy"
            raise Invalid(problem, field="policy")
        self._pools.add(wanted.first, wanted.last)
        self._subnets[around.cidr.first] = replace(around, pools=(*around.pools, pool))
        self._from_source.add(("pool", wanted.first))
        return None

    def reserve(self, edit: Reserve) -> list[Differs] | None:
        """Reserve a range, unless all of it is reserved already."""
        wanted = parse_range(edit.range)
        around = self._around(wanted)
        if not list(subtract(wanted, merge(kept.range for kept in around.reserved))):
            return []
        self._subnets[around.cidr.first] = self._edited((around,), edit).subnets[0]
        return None

    def preallocate(self, edit: Preallocate) -> list[Differs] | PreAllocation:
        """Let an address wait for an owner; tell if it does already."""
        wish = self._edited((), edit).preallocations[0]
        old = self._waiting.get((wish.owner, wish.slot))
        if old is not None and old.position == wish.position:
            return []
        if old is not None:
            held = f"{format_address(old.position)} waits for it"
            raise AlreadyExists("pre-allocation", wish.owner, hint=held, field="owner")
        self.unit_at(wish.position)
        self._waiting[wish.owner, wish.slot] = wish
        return wish

    def connect(self, edit: Connect) -> list[Differs] | None:
        """Let the network reach a group; where it does already, tell how that differs instead."""
        after = self._edited((), edit)
        old, new = self._shell.connection(edit.group), after.connection(edit.group)
        if old is None:
            self._shell = after
            return None
        return [] if old == new else [Differs("group", f"the ledger's connection to {edit.group} stays")]

    def unit_at(self, position: int) -> AddressRange:
        """Return the unit that begins at a position."""
        over = self._blocks.over(position, position)
        if over is None:
            raise AddressOutsideSubnet(format_address(position), self._shell.name)
        subnet = self._subnets[over[0]]
        unit = subnet.unit_at(position)
        if unit.first != position:
            problem = f"does not begin a /{subnet.unit}, the unit of {subnet.cidr}"
            raise Invalid(f"address: {format_address(position)} {problem}", field="address")
        return unit

    def _check_twice(self, kind: str, field: str, span: AddressRange) -> None:
        if (kind, span.first) in self._from_source:
            raise AlreadyExists(kind, str(span), hint="it comes twice in the source", field=field)

    def _around(self, wanted: AddressRange) -> Subnet:
        over = self._blocks.over(wanted.first, wanted.last)
        subnet = None if over is None else self._subnets[over[0]]
        if subnet is None or not subnet.cidr.range.covers(wanted):
            raise outside_subnets(wanted, self._shell.name)
        return subnet

    def _edited(self, subnets: tuple[Subnet, ...], edit: E) -> Network:
        """Let the ledger's own rules work on as little of the network as the edit needs."""
        alone = replace(self._shell, subnets=subnets)
        after = edited(Configuration(0, self.space, 0, {alone.name: alone}), edit)
        return after.network(alone.name)


def _subnet_differs(old: Subnet, new: Subnet) -> list[Differs]:
    if old.unit != new.unit:
        raise Invalid(f"unit: {old.cidr} hands out /{old.unit} in the ledger, not /{new.unit}", field="unit")
    differs: list[Differs] = []
    if old.gateway != new.gateway:
        shown = "none" if old.gateway is None else format_address(old.gateway)
        differs.append(Differs("gateway", f"the ledger's gateway of {old.cidr} stays: {shown}"))
    if new.name is not None and old.name != new.name:
        differs.append(Differs("name", f"the ledger's name of {old.cidr} stays: {old.name}"))
    return differs
