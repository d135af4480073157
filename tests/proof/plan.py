"""The address plan of a proof, in plain words: what clients collide on, and in which order *lowest* must go.

The order is worked out here from the written text alone, so that the checker does not lean on the code it checks.
"""

import ipaddress
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import tenure
from tenure.kernel.addressing.ranges import parse_cidr, parse_range
from tenure.kernel.plan.plan_model import Configuration, Network, Policy, Pool, Subnet


class PlannedPool(NamedTuple):
    """One range of a pool. The pools of a subnet stand together, in the order they are written."""

    network: str
    subnet: str
    range: str
    name: str
    policy: str
    cooling: str = "0"


class Plan:
    """Networks of one space, as a list of pools."""

    def __init__(self, pools: Sequence[Sequence[str]]) -> None:
        self.pools = [PlannedPool(*pool) for pool in pools]

    @property
    def networks(self) -> list[str]:
        """Name the networks, in written order."""
        return list(dict.fromkeys(pool.network for pool in self.pools))

    def pools_of(self, network: str, name: str | None) -> list[PlannedPool]:
        """Find the ranges that a claim may be served from."""
        return [pool for pool in self.pools if pool.network == network and name in (None, pool.name)]

    @cached_property
    def _orders(self) -> dict[tuple[str, str | None], list[str]]:
        keys = {(pool.network, name) for pool in self.pools for name in (None, pool.name)}
        return {key: [address for pool in self.pools_of(*key) for address in addresses(pool.range)] for key in keys}

    def order(self, network: str, name: str | None) -> list[str]:
        """List the addresses a claim may be served from, in the order *lowest* hands them out."""
        return self._orders[network, name]

    def policy(self, network: str, name: str | None) -> str:
        """Tell how an address is picked where the caller does not say."""
        policies = {pool.policy for pool in self.pools_of(network, name)}
        return policies.pop() if len(policies) == 1 else "lowest"

    def takes_time(self, network: str, name: str | None) -> bool:
        """Tell whether addresses cool there; that is also where others wait and hold things for a time."""
        return any(pool.cooling != "0" for pool in self.pools_of(network, name))

    def remembers(self, network: str) -> bool:
        """Tell whether former addresses are noted in the network."""
        return any(pool.policy == "sticky" for pool in self.pools_of(network, None))

    async def lay(self, ledger: tenure.AsyncLedger) -> None:
        """Write the plan into a ledger."""
        for network in self.networks:
            await ledger.add_network(network, space="site")
            subnets: set[str] = set()
            for pool in self.pools_of(network, None):
                if pool.subnet not in subnets:
                    subnets.add(pool.subnet)
                    await ledger.add_subnet(network, pool.subnet)
                cooling_s = int(pool.cooling)
                await ledger.add_pool(network, pool.range, name=pool.name, policy=pool.policy, cooling_s=cooling_s)

    def configuration(self, space: int, version: int) -> Configuration:
        """Give the plan to the desk of a book."""
        networks = {name: self._network(number, name) for number, name in enumerate(self.networks, 1)}
        return Configuration(space, "site", version, networks)

    def _network(self, number: int, name: str) -> Network:
        blocks = dict.fromkeys(pool.subnet for pool in self.pools_of(name, None))
        subnets = tuple(
            Subnet(parse_cidr(block), f"uuid-{name}-{block}", pools=tuple(self._pools(name, block))) for block in blocks
        )
        return Network(number, name, f"uuid-{name}", subnets=subnets)

    def _pools(self, network: str, block: str) -> Iterator[Pool]:
        for pool in self.pools_of(network, None):
            if pool.subnet == block:
                yield Pool(parse_range(pool.range), pool.name, Policy(pool.policy))


def addresses(text: str) -> list[str]:
    """List the addresses of ``first-last``."""
    first, last = (ipaddress.ip_address(end) for end in text.split("-"))
    return [str(type(first)(number)) for number in range(int(first), int(last) + 1)]


def crowded_plan() -> Plan:
    """Give a plan on which a few clients collide all the time: small pools, and a network that lies over another."""
    return Plan(
        [
            ("blue", "10.0.2.0/24", "10.0.2.40-10.0.2.51", "low", "lowest"),
            ("blue", "10.0.2.0/24", "10.0.2.10-10.0.2.15", "low", "lowest"),
            ("blue", "10.0.2.0/24", "10.0.2.100-10.0.2.115", "any", "random"),
            ("blue", "10.0.1.0/24", "10.0.1.10-10.0.1.21", "hash", "hashed"),
            ("blue", "10.0.1.0/24", "10.0.1.40-10.0.1.51", "stick", "sticky"),
            ("red", "10.0.2.0/23", "10.0.2.110-10.0.2.119", "over", "lowest"),
        ]
    )


def timely_plan() -> Plan:
    """Give the crowded plan with one more pool, in which addresses cool, are held for a time and are waited for."""
    cool = ("blue", "10.0.1.0/24", "10.0.1.60-10.0.1.65", "cool", "lowest", "1")
    return Plan([*crowded_plan().pools, cool])


def wide_plan(policy: str) -> Plan:
    """Give one network of about a /22, written out of numeric order over two subnets."""
    return Plan(
        [
            ("blue", "10.0.6.0/23", "10.0.7.0-10.0.7.254", "upper", policy),
            ("blue", "10.0.6.0/23", "10.0.6.1-10.0.6.255", "lower", policy),
            ("blue", "10.0.4.0/23", "10.0.5.128-10.0.5.254", "upper", policy),
            ("blue", "10.0.4.0/23", "10.0.4.1-10.0.5.127", "lower", policy),
        ]
    )
