"""Which pools a pick passed over, by policy, rank and family."""

from dataclasses import replace

import pytest

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.addressing.ranges import parse_cidr, parse_range
from tenure.kernel.picking.passed_over import may_return, passed_over
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import DEFAULT_POLICY, Configuration, Network, Policy, Pool, Subnet

KEY = ("net", None, None, None, None)


def network(*, retired: bool = False, policy: Policy = DEFAULT_POLICY) -> Network:
    """Lay out two IPv4 pools of rank 0, an IPv6 pool of rank 0 and an IPv4 pool of rank 1."""
    four = (
        Pool(parse_range("192.0.2.10-192.0.2.19"), "a", policy=policy),
        Pool(parse_range("192.0.2.20-192.0.2.29"), "b", retired=retired),
        Pool(parse_range("192.0.2.30-192.0.2.39"), "late", policy=policy, rank=1),
    )
    six = (Pool(parse_range("2001:db8::10-2001:db8::19"), "six", policy=policy),)
    subnets = (
        Subnet(parse_cidr("192.0.2.0/24"), "u4", pools=four),
        Subnet(parse_cidr("2001:db8::/64"), "u6", unit=128, pools=six),
    )
    return Network(1, "net", "uuid", subnets=subnets)


@pytest.mark.parametrize(
    ("address", "policy", "names"),
    [
        ("192.0.2.10", None, []),
        ("192.0.2.20", None, []),  # of the same rank and family: nobody wants to know
        ("2001:db8::10", None, ["a", "b"]),
        ("2001:db8::10", Policy.RANDOM, []),
        ("2001:db8::10", Policy.HASHED, []),
        ("192.0.2.30", None, ["a", "b", "six"]),
        ("192.0.2.30", Policy.RANDOM, ["a", "b", "six"]),
        ("192.0.2.30", Policy.STICKY, ["a", "b", "six"]),  # unless it came back there
        ("2001:db8::10", Policy.STICKY, []),
        ("192.0.2.99", None, []),  # in no pool
    ],
)
def test_earlier_ranks_and_for_lowest_the_other_family_were_full(
    address: str, policy: Policy | None, names: list[str]
) -> None:
    full = passed_over(network(), KEY, policy, parse_address(address))

    assert [pool.name for _, pool in full] == names


def test_a_retired_pool_was_not_full_but_closed() -> None:
    full = passed_over(network(retired=True), KEY, None, parse_address("2001:db8::10"))

    assert [pool.name for _, pool in full] == ["a"]


def test_a_retired_pool_counts_for_the_policy_as_it_does_for_the_allocator() -> None:
    mixed = network(retired=True, policy=Policy.RANDOM)

    full = passed_over(mixed, KEY, None, parse_address("2001:db8::10"))

    # The retired pool picks lowest, the others at random: together they pick the default, which is lowest.
    assert Layout(Configuration(1, "net", networks={"net": mixed})).line("net").policy is Policy.LOWEST
    assert [pool.name for _, pool in full] == ["a"]


def test_nothing_was_full_where_the_whole_network_is_retired() -> None:
    closed = replace(network(), retired=True)

    assert passed_over(closed, KEY, None, parse_address("192.0.2.30")) == []


def test_only_sticky_pools_or_a_sticky_claim_may_come_back_to_a_former_address() -> None:
    sticky = replace(network(policy=Policy.STICKY), subnets=network(policy=Policy.STICKY).subnets[1:])

    assert may_return(network(), KEY, Policy.STICKY)
    assert may_return(sticky, KEY, None)
    assert not may_return(sticky, KEY, Policy.HASHED)
    assert not may_return(network(), KEY, None)
