"""A network while it is edited: its subnets by name and by place, so that an edit need not look at all of them.

Between edits the plan may be unlawful (``invariants`` looks at the end only): two subnets may lie over each other, or
go by one name. Then the draft looks for the first one in written order, as it would without an index.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.errors import NotFound, outside_subnets
from tenure.kernel.names import Owner
from tenure.kernel.plan.plan_model import Network, Pool, PreAllocation, Subnet

Waiting = dict[tuple[Owner, str], PreAllocation]


class NetworkDraft:
    """A copy of a network that can be changed. Cost of an edit: O(log subnets) once the indexes it needs are made."""

    def __init__(self, network: Network) -> None:
        self._network = network
        # Numbered: the number of a subnet stays the same while others come and go, and the written order stays, too.
        self._subnets = dict(enumerate(network.subnets))
        self._next = len(network.subnets)
        self._names: _Names | None = None
        self._places: _Places | None = None
        self._first_named: dict[str, tuple[int, Pool]] | None = None
        self._waiting: Waiting | None = None

    @property
    def network(self) -> Network:
        """Return the network as far as it has its own fields; its subnets and pre-allocations may be older."""
        return self._network

    def finished(self) -> Network:
        """Return the network as it is now. O(subnets)."""
        waiting = self._network.preallocations if self._waiting is None else tuple(self._waiting.values())
        return replace(self._network, subnets=tuple(self._subnets.values()), preallocations=waiting)

    def change(self, **fields: Any) -> None:
        """Change fields of the network itself."""
        self._network = replace(self._network, **fields)

    def find(self, ident: str) -> tuple[int, Subnet]:
        """Return the subnet that goes by a name, a block or a uuid, and its number here; NotFound if none does."""
        key = self._answering(ident)
        if key is None:
            raise NotFound("subnet", ident, network=self._network.name)
        return key, self._subnets[key]

    def is_taken(self, ident: str, but: int | None = None) -> bool:
        """Tell whether a subnet answers to a name already; ``but`` is the number of one that may."""
        return self._answering(ident, but) is not None

    def _answering(self, ident: str, but: int | None = None) -> int | None:
        if self._names is None:
            self._names = _Names(self._subnets)
        if self._names.clash:
            found = (key for key, subnet in self._subnets.items() if key != but and subnet.answers_to(ident))
            return next(found, None)
        key = self._names.keys.get(ident)
        return None if key == but else key

    def around(self, wanted: AddressRange) -> tuple[int, Subnet]:
        """Return the subnet that a range lies in, and its number here; raise NotFound if there is none."""
        if self._places is None:
            self._places = _Places(self._subnets)
        key = self._places.around(wanted, self._subnets)
        if key is None:
            raise outside_subnets(wanted, self._network.name)
        return key, self._subnets[key]

    def reserving(self, wanted: AddressRange) -> tuple[int, Subnet]:
        """Return the subnet that a range may be reserved in: the one around it, or one that no longer reaches so far.

        Between edits, a block that shrank or moved still has the reserved ranges that a later edit lifts. A range that
        sticks out of a subnet whose reserved ranges do not, is refused.
        """
        try:
            return self.around(wanted)
        except NotFound:
            reserved = [(key, subnet) for key, subnet in self._subnets.items() if _keeps_outside(subnet, wanted)]
            if len(reserved) != 1:
                raise
            return reserved[0]

    def add(self, subnet: Subnet) -> None:
        """Add a subnet behind all others."""
        key, self._next = self._next, self._next + 1
        self._subnets[key] = subnet
        self._index(key, subnet)
        self._first_named = None if subnet.pools else self._first_named

    def put(self, key: int, new: Subnet) -> None:
        """Put a changed subnet in the place of the one with this number."""
        old = self._subnets[key]
        # Most edits leave name and place alone; then both indexes stay as they are.
        moved = (old.name, old.uuid, old.cidr) != (new.name, new.uuid, new.cidr)
        if moved:
            self._unindex(key, old)
        self._subnets[key] = new
        if moved:
            self._index(key, new)
        if old.pools != new.pools:
            self._first_named = None

    def remove(self, key: int) -> None:
        """Remove the subnet with this number."""
        self._unindex(key, self._subnets[key])
        gone = self._subnets.pop(key)
        self._first_named = None if gone.pools else self._first_named

    def _index(self, key: int, subnet: Subnet) -> None:
        if self._names is not None:
            self._names.add(key, subnet)
        if self._places is not None:
            self._places.add(key, subnet)

    def _unindex(self, key: int, subnet: Subnet) -> None:
        if self._names is not None:
            self._names.remove(key, subnet)
        if self._places is not None:
            self._places.remove(subnet)

    def pools(self) -> Iterator[Pool]:
        """Yield the pools in written order: subnets first, then pools."""
        return (pool for subnet in self._subnets.values() for pool in subnet.pools)

    def first_named(self, name: str) -> Pool | None:
        """Return the first range of a pool, in written order; None if no pool goes by the name."""
        if self._first_named is None:
            self._first_named = {}
            for key, subnet in self._subnets.items():
                for pool in subnet.pools:
                    if pool.name is not None:
                        self._first_named.setdefault(pool.name, (key, pool))
        found = self._first_named.get(name)
        return None if found is None else found[1]

    def add_pool(self, key: int, pool: Pool) -> None:
        """Add a pool to the subnet with this number, behind its others."""
        subnet = self._subnets[key]
        self._subnets[key] = replace(subnet, pools=(*subnet.pools, pool))
        # It is the first of its name where all others of the name are in later subnets.
        if self._first_named is not None and pool.name is not None:
            known = self._first_named.get(pool.name)
            if known is None or key < known[0]:
                self._first_named[pool.name] = (key, pool)

    def change_pools(self, change: Callable[[Pool], Sequence[Pool]]) -> None:
        """Put what ``change`` makes of each pool in its place. O(pools)."""
        for key, subnet in self._subnets.items():
            pools = tuple(new for pool in subnet.pools for new in change(pool))
            if pools != subnet.pools:
                self._subnets[key] = replace(subnet, pools=pools)
        self._first_named = None

    def waiting(self) -> Waiting:
        """Return the pre-allocations by owner and slot, to be changed in place."""
        if self._waiting is None:
            self._waiting = {(each.owner, each.slot): each for each in self._network.preallocations}
        return self._waiting


class _Names:
    """Subnets by what they go by. ``clash``: two went by one name at some time, and nobody can tell them apart here."""

    def __init__(self, subnets: dict[int, Subnet]) -> None:
        self.keys: dict[str, int] = {}
        self.clash = False
        for key, subnet in subnets.items():
            self.add(key, subnet)

    def add(self, key: int, subnet: Subnet) -> None:
        for ident in _idents(subnet):
            # Stays true: after a removal the index cannot say which of the two subnets is left.
            self.clash = self.clash or self.keys.setdefault(ident, key) != key

    def remove(self, key: int, subnet: Subnet) -> None:
        for ident in _idents(subnet):
            # After a clash the name may belong to another subnet.
            if self.keys.get(ident) == key:
                del self.keys[ident]


def _idents(subnet: Subnet) -> set[str]:
    named = set() if subnet.name is None else {subnet.name}
    return {subnet.uuid, str(subnet.cidr), *named}


class _Places:
    """Subnets by where they lie. ``clash``: two lay over each other at some time; then the written order counts."""

    def __init__(self, subnets: dict[int, Subnet]) -> None:
        found = sorted((subnet.cidr.first, subnet.cidr.last, key) for key, subnet in subnets.items())
        self._firsts = [first for first, _, _ in found]
        self._found = found
        self._clash = any(found[place][1] >= found[place + 1][0] for place in range(len(found) - 1))

    def around(self, wanted: AddressRange, subnets: dict[int, Subnet]) -> int | None:
        if self._clash:
            fits = (key for key, subnet in subnets.items() if subnet.cidr.range.covers(wanted))
            return next(fits, None)
        place = bisect_right(self._firsts, wanted.first) - 1
        if place < 0 or self._found[place][1] < wanted.last:
            return None
        return self._found[place][2]

    def add(self, key: int, subnet: Subnet) -> None:
        first, last = subnet.cidr.first, subnet.cidr.last
        place = bisect_left(self._firsts, first)
        # The neighbours are enough: without a clash so far, the blocks are disjoint and in order.
        before, behind = self._found[place - 1 : place] if place else [], self._found[place : place + 1]
        self._clash = self._clash or any(each[1] >= first for each in before) or any(each[0] <= last for each in behind)
        self._firsts.insert(place, first)
        self._found.insert(place, (first, last, key))

    def remove(self, subnet: Subnet) -> None:
        # After a clash nothing reads the lists any more.
        if not self._clash:
            place = bisect_left(self._firsts, subnet.cidr.first)
            del self._firsts[place], self._found[place]


def _keeps_outside(subnet: Subnet, wanted: AddressRange) -> bool:
    """Say whether a subnet has a reserved range at a place that it does not reach (any more)."""
    return any(kept.range.overlaps(wanted) and not subnet.cidr.range.covers(kept.range) for kept in subnet.reserved)
