"""The addresses that a group asks for by name: as many as instances, each once, each in a static pool of its AZs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tenure.integrations.bosh.documents.address_lists import read_spans, stray_end
from tenure.integrations.bosh.documents.reading_context import GroupContext
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, Tree
from tenure.integrations.bosh.model.address_text import written
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, DocumentPlace
from tenure.integrations.bosh.model.document_model import MANUAL, CloudNetwork, CloudSubnet
from tenure.integrations.bosh.model.pool_ranges import StaticPools
from tenure.kernel.addressing.addresses import is_v6, width
from tenure.kernel.addressing.ranges import AddressRange

MOST = 1 << 16
"""As many static IPs are read for one network of a group: each is kept by itself."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A span of static IPs on a network that hands out blocks of this prefix, mostly single addresses.

    Each static IP is the base address of a block. The span ends with a base address, or with a whole block.
    """

    span: AddressRange
    prefix: int
    place: DocumentPlace

    @property
    def step(self) -> int:
        """Return how far one is from the next."""
        return 1 << (width(self.span.first) - self.prefix)

    @property
    def count(self) -> int:
        """Count the static IPs."""
        return (self.span.last - self.span.first) // self.step + 1

    @property
    def positions(self) -> range:
        """Return the static IPs in order."""
        return range(self.span.first, self.span.last + 1, self.step)

    @property
    def stray_end(self) -> int | None:
        """Return the end that is not the edge of a block, if there is one."""
        return stray_end(self.span, self.step)

    def runs(self, positions: Iterable[int]) -> Iterator[str]:
        """Write some of the static IPs, neighbours together: a wrong range is one fault, not thousands."""
        run: range | None = None
        for position in positions:
            if run is not None and position == run.stop:
                run = range(run.start, position + self.step, self.step)
                continue
            if run is not None:
                yield self._written(run)
            run = range(position, position + self.step, self.step)
        if run is not None:
            yield self._written(run)

    def _written(self, run: range) -> str:
        return written(run[0], self.prefix) if len(run) == 1 else str(AddressRange(run[0], run[-1]))


def read_static_ips(
    tree: Tree, group: GroupContext, name: str, network: CloudNetwork | None, faults: DocumentFaults
) -> tuple[int, ...] | None:
    """Read a group's static IPs on a network, in the order written; None where they are too many.

    ``network`` is None if it is not known: then only what needs no network is judged.
    """
    before = len(faults.found)
    listed = _read_listed(tree, network, faults)
    total = sum(piece.count for piece in listed)
    # Counted before the addresses are listed: a short text such as 10.0.0.0/8 stands for millions of them.
    if total > MOST:
        told = f"asks for {total} static IPs in network '{name}', at most {MOST} are read"
        faults.add(BoshErrorKind.GENERIC, f"Instance group '{group.name}' {told}", tree.place)
        return None
    _refuse_repeated(listed, group, faults)
    # What is unreadable or there twice is not counted: the number would only tell the same fault again.
    if len(faults.found) == before and group.instances not in (None, total):
        told = f"has {group.instances} instances but was allocated {total} static IPs in network '{name}'"
        kind = BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH
        faults.add(kind, f"Instance group '{group.name}' {told}", tree.place)
    if network is not None and network.kind == MANUAL:
        _refuse_homeless(listed, group, network, faults)
    return tuple(position for piece in listed for position in piece.positions)


def _read_listed(tree: Tree, network: CloudNetwork | None, faults: DocumentFaults) -> list[Listed]:
    listed = []
    for span, place in read_spans(tree, faults):
        piece = Listed(span, _prefix(network, span.first), place)
        if piece.stray_end is None:
            listed.append(piece)
            continue
        assert network is not None, "single addresses have no stray ends"
        told = f"of network '{network.name}' is no base address of prefix '{piece.prefix}'"
        kind = BoshErrorKind.NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS
        faults.add(kind, f"Static IP '{written(piece.stray_end)}' {told}", place)
    return listed


def _prefix(network: CloudNetwork | None, position: int) -> int:
    """Return the prefix of what the network hands out; addresses of another family are in no block of it."""
    for subnet in () if network is None else network.subnets:
        if subnet.range is not None and is_v6(subnet.range.first) == is_v6(position):
            return subnet.prefix
    return width(position)


def _refuse_repeated(listed: Iterable[Listed], group: GroupContext, faults: DocumentFaults) -> None:
    seen: set[int] = set()
    for piece in listed:
        for run in piece.runs(position for position in piece.positions if position in seen):
            told = f"specifies static IP '{run}' more than once"
            faults.add(BoshErrorKind.JOB_INVALID_STATIC_IPS, f"Instance group '{group.name}' {told}", piece.place)
        seen.update(piece.positions)


def _refuse_homeless(
    listed: Iterable[Listed], group: GroupContext, network: CloudNetwork, faults: DocumentFaults
) -> None:
    """Refuse what is in no static pool, and what is in one that none of the group's AZs reaches."""
    pools, ours = StaticPools(network), frozenset(group.azs or ())
    for piece in listed:
        homes = [(position, pools.subnet_of(position)) for position in piece.positions]
        for run in piece.runs(position for position, home in homes if home is None):
            told = f"with network '{network.name}' declares static ip '{run}', which belongs to no subnet"
            kind = BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH
            faults.add(kind, f"Instance group '{group.name}' {told}", piece.place)
        for run in piece.runs(position for position, home in homes if home is not None and _is_far(home, ours)):
            told = f"static ip '{run}' which does not belong to any of the instance group's availability zones."
            kind = BoshErrorKind.JOB_STATIC_IPS_FROM_INVALID_AVAILABILITY_ZONE
            faults.add(kind, f"Instance group '{group.name}' declares {told}", piece.place)


def _is_far(subnet: CloudSubnet, azs: frozenset[str]) -> bool:
    """Tell whether a subnet is in none of the AZs; where one of the two names none, that is told elsewhere."""
    return bool(azs) and subnet.azs is not None and azs.isdisjoint(subnet.azs)
