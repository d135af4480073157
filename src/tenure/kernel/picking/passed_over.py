"""Which pools must have been full when an address was picked: read from the plan and the policy, without counting."""

from collections.abc import Mapping, Sequence

from tenure.kernel.addressing.addresses import family_name, format_address
from tenure.kernel.picking.policies import POLICIES
from tenure.kernel.plan.layout import LineKey, open_pools
from tenure.kernel.plan.plan_model import Network, Policy, Pool, Subnet

Passed = Sequence[tuple[Subnet, Pool]]
"""Pools that were passed over, each with its subnet."""


def passed_over(network: Network, key: LineKey, policy: Policy | None, position: int) -> Passed:
    """Return the pools of an earlier rank, or of the other family, that a fresh pick of this address found full.

    No policy picks from a rank while an earlier rank has room. Inside a rank only an ascending policy passes pools
    over. A return to the owner's former address is no fresh pick: see ``may_return``.
    """
    pools, usual = open_pools(network, *key[1:])
    rules = POLICIES[policy or usual]
    place = next((place for place, (_, pool) in enumerate(pools) if position in pool.range), None)
    # The plan may be older than the pick, and lack the pool that served.
    if place is None:
        return []
    subnet, own = pools[place]
    return [
        (other, pool)
        for other, pool in pools[:place]
        if pool.rank < own.rank or (rules.ascending and other.family is not subnet.family)
    ]


def may_return(network: Network, key: LineKey, policy: Policy | None) -> bool:
    """Return whether an address may be the owner's former one, which comes first whatever is free elsewhere."""
    return POLICIES[policy or open_pools(network, *key[1:]).policy].prefers_former


def describe_passed_over(network: Network, full: Mapping[int, Passed], lack: str = "full") -> list[str]:
    """Write for people which addresses were picked from later pools because these pools were full."""
    by_pools: dict[str, list[int]] = {}
    for position, pools in full.items():
        # A pool of several ranges is named once.
        named = dict.fromkeys(f"{pool.name or pool.range} ({family_name(pool.range.first)})" for _, pool in pools)
        if named:
            were = f"pool {next(iter(named))}" if len(named) == 1 else f"pools {', '.join(named)}"
            verb = "was" if len(named) == 1 else "were"
            by_pools.setdefault(f"{were} of network {network.name} {verb} {lack}", []).append(position)
    return [f"{reason}, so {_describe_picks(picks)} from a later pool" for reason, picks in by_pools.items()]


def _describe_picks(positions: Sequence[int]) -> str:
    first = f"the {family_name(positions[0])} address {format_address(positions[0])}"
    return f"{first} was picked" if len(positions) == 1 else f"{first} and {len(positions) - 1} more were picked"
