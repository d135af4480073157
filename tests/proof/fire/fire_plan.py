"""The address plan under fire: small pools, a space for each kind of collision, and places for what is aimed."""

import tenure
from tests.proof.plan import Plan

HOT, COOL, LINE, TWICE, BATCH, CHILL, ALONE = "hot", "cool", "line", "twice", "batch", "chill", "alone"
"""Networks, each a space of its own: while claims wait in one, the others keep their short ways."""


def fire_plan() -> Plan:
    """Give the plan."""
    return Plan(
        [
            (HOT, "10.1.0.0/24", "10.1.0.40-10.1.0.47", "low", "lowest"),
            (HOT, "10.1.0.0/24", "10.1.0.10-10.1.0.13", "low", "lowest"),
            (HOT, "10.1.0.0/24", "10.1.0.100-10.1.0.111", "any", "random"),
            (HOT, "10.1.0.0/24", "10.1.0.200-10.1.0.209", "hash", "hashed"),
            (COOL, "10.2.0.0/24", "10.2.0.10-10.2.0.21", "cool", "lowest", "2"),
            (LINE, "10.3.0.0/24", "10.3.0.10-10.3.0.14", "line", "lowest"),
            (TWICE, "10.4.0.0/24", "10.4.0.10-10.4.0.13", "twice", "random"),
            (BATCH, "10.5.0.0/24", "10.5.0.10-10.5.0.25", "batch", "random"),
            (CHILL, "10.6.0.0/24", "10.6.0.10-10.6.0.15", "chill", "lowest", "1"),
            (ALONE, "10.7.0.0/24", "10.7.0.10-10.7.0.10", "alone", "lowest"),
        ]
    )


async def lay_fire_plan(store: str) -> None:
    """Write the plan into an empty store."""
    plan = fire_plan()
    async with await tenure.open_async(store) as ledger:
        for network in plan.networks:
            await ledger.add_network(network)
            pools = plan.pools_of(network, None)
            await ledger.add_subnet(network, pools[0].subnet)
            for pool in pools:
                cooling_s = int(pool.cooling)
                await ledger.add_pool(network, pool.range, name=pool.name, policy=pool.policy, cooling_s=cooling_s)
