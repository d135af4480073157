"""What single options must have done to a network, address by address."""

from collections.abc import Iterable

from tenure.integrations.ganeti.networks import NetworkOptions
from tenure.integrations.ganeti.options.deprecated import OldOptions
from tenure.integrations.ganeti.options.network_grammar import read_ranges
from tenure.kernel.addressing.ranges import AddressRange
from tenure.kernel.plan.plan_model import Network

LARGEST = 4096
"""Networks with larger blocks are not written out here."""


def check_effects(before: Network, after: Network, options: NetworkOptions) -> None:
    """Compare the addresses before and after a command that said one thing."""
    said = [*options.subnets, *options.pools, options.add_reserved, options.remove_reserved]
    given = [text for text in said if text]
    whole = [subnet.cidr.range for network in (before, after) for subnet in network.subnets]
    if len(given) != 1 or options.old != OldOptions() or any(piece.size > LARGEST for piece in whole):
        return
    [text] = given
    if options.pools and text.startswith("remove:"):
        assert pooled(after) == pooled(before) - spread(read_ranges(text.removeprefix("remove:"))), text
    elif options.pools and text.startswith("add:") and "subnet=" not in text:
        new = text.removeprefix("add:").partition(",")[0]
        assert pooled(after) == pooled(before) | spread(read_ranges(new)), text
    elif options.add_reserved:
        assert reserved(after) == reserved(before) | spread(read_ranges(text)), text
    elif options.remove_reserved:
        stays = {subnet.gateway for subnet in before.subnets} | reserved(after, "node ")
        assert reserved(after) - stays == reserved(before) - spread(read_ranges(text)) - stays, text


def pooled(network: Network) -> set[int]:
    """List the addresses of all pools."""
    return spread(pool.range for _, pool in network.pools())


def reserved(network: Network, why: str = "") -> set[int]:
    """List the addresses that are reserved; for a reason that begins so."""
    every = (kept for subnet in network.subnets for kept in subnet.reserved)
    return spread(kept.range for kept in every if kept.reason.startswith(why))


def spread(ranges: Iterable[AddressRange]) -> set[int]:
    """Write ranges out."""
    return {position for piece in ranges for position in range(piece.first, piece.last + 1)}
