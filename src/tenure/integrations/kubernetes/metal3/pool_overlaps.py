"""Pools that have addresses in common: each may give an address that the other has given, and neither would notice.

That is wanted where the pools are of different networks, such as two VLANs with the same private addresses. So it is
reported and never refused. Which pools are of one network is for ``network_of`` to say, and which of these may collide
all the same for ``may_collide``.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice

from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.kernel.addressing.ranges import AddressRange

MOST_NAMED = 5
"""How many other pools a message names; the others are counted."""


OF_NAMESPACE = "namespace "
"""What the networks of pools that name none are called by, with the namespace; of all namespaces, without one."""


def network_of(pool: PoolId, spec: PoolSpec) -> str:
    """Return the network of a pool: the one that it names, in whichever namespace; else that of its namespace.

    ==================  ==================  ======================  ===========================
    one pool names      the other names     namespaces              an overlap is
    ==================  ==================  ======================  ===========================
    a network           the same network    any                     reported
    a network           another, or none    any                     wanted: they do not meet
    none                none                the same                reported
    none                none                different               not known, and not reported
    none                none                one is of the cluster   reported: its claims are in all
    ==================  ==================  ======================  ===========================
    """
    return f"network {spec.network}" if spec.network else f"{OF_NAMESPACE}{pool.namespace}"


def _met(network: str, known: Collection[str]) -> list[str]:
    """Return those of the known networks whose pools may collide with the pools of a network. O(1), or O(n) of these.

    The pools of the whole cluster, where they name no network, meet those of every namespace.
    """
    if network == OF_NAMESPACE:
        return [each for each in known if each.startswith(OF_NAMESPACE)]
    met = (network, OF_NAMESPACE) if network.startswith(OF_NAMESPACE) else (network,)
    return [each for each in met if each in known]


def may_collide(one: PoolSpec, other: PoolSpec) -> bool:
    """Return whether two pools of one network may give one address twice, if both have it.

    Two that are bound to the same network of a ledger do not: the ledger gives each address to one of them.
    """
    if one.ledger is None or other.ledger is None:
        return True
    return (one.ledger.network, one.ledger.secret, one.ledger.server) != (
        other.ledger.network, other.ledger.secret, other.ledger.server
    )  # fmt: skip


class PoolOverlaps:
    """Finds which pools of a network have addresses in common.

    The addresses of a network are cut at every first and behind every last address of a range, so that each piece has
    the same pools all over. Cost: O(log n) of the pieces for each range of a pool, and O(1) for each piece in it; O(n)
    when the ranges of a pool change.
    """

    def __init__(self) -> None:
        self._specs: dict[PoolId, PoolSpec] = {}
        self._cuts: dict[str, list[int]] = {}
        """Where pieces begin, in order, by network."""
        self._pools: dict[str, list[set[PoolId]]] = {}
        """The pools of each piece."""
        self._found: dict[str, dict[PoolId, dict[PoolId, AddressRange]]] = {}
        """What ``others`` found, by network, for as long as no pool there changes."""

    def lay(self, pool: PoolId, spec: PoolSpec | None) -> None:
        """Note the ranges of a pool in place of those that it had; nothing: it is gone."""
        former = self._specs.get(pool)
        if former == spec:
            return
        if former is not None:
            network = network_of(pool, former)
            self._forget_found(network)
            del self._specs[pool]
            for piece in self._pieces(network, former):
                piece.discard(pool)
            self._join(network)
        spans = list(spec.spans()) if spec is not None else []
        if spec is not None and spans:
            network = network_of(pool, spec)
            self._forget_found(network)
            self._specs[pool] = spec
            for span in spans:
                self._cut(network, span)
            for piece in self._pieces(network, spec):
                piece.add(pool)

    def _forget_found(self, network: str) -> None:
        """Forget what was found where a change of a network's pools may show."""
        for each in _met(network, self._found):
            del self._found[each]

    def others(self, pool: PoolId) -> dict[PoolId, AddressRange]:
        """Return the pools that a pool may collide with, each with the first range that both have."""
        spec = self._specs.get(pool)
        if spec is None:
            return {}
        known = self._found.setdefault(network_of(pool, spec), {})
        if pool not in known:
            known[pool] = self.others_of(pool, spec)
        return known[pool]

    def others_of(self, pool: PoolId, spec: PoolSpec) -> dict[PoolId, AddressRange]:
        """Return the pools that a pool would collide with if it were as the ``spec`` says."""
        found: dict[PoolId, AddressRange] = {}
        met = _met(network_of(pool, spec), self._cuts)
        for common, pools in chain.from_iterable(self._common(each, spec) for each in met):
            for other in pools - {pool}:
                known = found.get(other)
                if known is not None and known.last + 1 == common.first:
                    found[other] = AddressRange(known.first, common.last)  # a third pool begins or ends between them
                elif known is None and may_collide(spec, self._specs[other]):
                    found[other] = common
        return dict(sorted(found.items()))

    def _common(self, network: str, spec: PoolSpec) -> Iterator[tuple[AddressRange, set[PoolId]]]:
        """Yield the pieces that the ranges of a pool touch, as far as they lie in it, each with its pools."""
        cuts, pools = self._cuts[network], self._pools[network]
        for span in spec.spans():
            at = max(bisect_right(cuts, span.first) - 1, 0)
            while at < len(cuts) and cuts[at] <= span.last:
                ends = cuts[at + 1] - 1 if at + 1 < len(cuts) else span.last
                if pools[at] and ends >= span.first:
                    yield AddressRange(max(cuts[at], span.first), min(ends, span.last)), pools[at]
                at += 1

    def _pieces(self, network: str, spec: PoolSpec) -> Iterator[set[PoolId]]:
        """Yield the pieces that a pool is made of; its ranges were cut out before."""
        cuts, pools = self._cuts[network], self._pools[network]
        for span in spec.spans():
            yield from pools[bisect_left(cuts, span.first) : bisect_left(cuts, span.last + 1)]

    def _cut(self, network: str, span: AddressRange) -> None:
        """Let pieces begin where a range does, and behind it."""
        cuts, pools = self._cuts.setdefault(network, []), self._pools.setdefault(network, [])
        for position in (span.first, span.last + 1):
            at = bisect_left(cuts, position)
            if at == len(cuts) or cuts[at] != position:
                cuts.insert(at, position)
                pools.insert(at, set(pools[at - 1]) if at else set())

    def _join(self, network: str) -> None:
        """Forget cuts between pieces of the same pools, which would else be more and more."""
        cuts, pools = self._cuts.pop(network), self._pools.pop(network)
        kept = [at for at in range(len(cuts)) if pools[at] != (pools[at - 1] if at else set())]
        if kept:
            self._cuts[network], self._pools[network] = [cuts[at] for at in kept], [pools[at] for at in kept]


def overlap_text(pool: PoolId, others: Mapping[PoolId, AddressRange]) -> str:
    """Return what a pool has in common with others, for people; empty if there is nothing."""
    named = [f"{common} with {_name(pool, other)}" for other, common in islice(others.items(), MOST_NAMED)]
    if more := len(others) - len(named):
        named.append(f"addresses with {more} more")
    return f"it shares {', '.join(named)}: each may give an address that the other has given" if named else ""


def _name(pool: PoolId, other: PoolId) -> str:
    """Name another pool: with its namespace, if that is another one."""
    return other.title if other.namespace == pool.namespace else str(other)
