"""The static pools of a network: in which subnet an address may be asked for by name."""

from bisect import bisect_right

from tenure.integrations.bosh.model.document_model import Network, Subnet
from tenure.kernel.addressing.ranges import merge


class StaticPools:
    """Finds the subnet in whose static pool an address is. Cost: O(log n) of n static ranges."""

    def __init__(self, network: Network) -> None:
        pieces = [(piece, subnet) for subnet in network.subnets for piece in merge(subnet.static)]
        self._pieces = sorted(pieces, key=lambda pair: pair[0])
        self._firsts = [piece.first for piece, _ in self._pieces]

    def subnet_of(self, position: int) -> Subnet | None:
        """Return the subnet, if there is one."""
        at = bisect_right(self._firsts, position) - 1
        if at < 0:
            return None
        piece, subnet = self._pieces[at]
        return subnet if position in piece else None
