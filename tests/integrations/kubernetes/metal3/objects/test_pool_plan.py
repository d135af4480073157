"""What the plan of a network leaves of a pool that is bound to it."""

from collections.abc import AsyncIterator

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.objects.pool_plan import NetworkPlan, neighbours_of, within_plan
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec, read_pool_spec
from tenure.kernel.addressing.addresses import parse_address
from tenure.service.ledger.async_ledger import AsyncLedger

BOUND = {"ledger": {"network": "n", "realm": "east", "secretName": "s"}}


@pytest.fixture
async def ledger() -> AsyncIterator[AsyncLedger]:
    """Give a ledger with a network of two subnets."""
    async with await tenure.open_async("memory:") as opened:
        await opened.add_network("n", space="site")
        await opened.add_subnet("n", "10.0.0.0/24", gateway="10.0.0.1", dns=["10.0.0.53"])
        await opened.add_subnet("n", "10.0.1.0/24")
        yield opened


async def given(ledger: AsyncLedger, *entries: dict[str, str], **spec: object) -> PoolSpec:
    """Return a pool within the plan."""
    read = read_pool_spec({"namePrefix": "p", "pools": list(entries), "tenure": BOUND, **spec})
    assert not read.faults
    network = await ledger.network("n")
    [space] = [each for each in await ledger.spaces() if "n" in each.networks]
    return within_plan(read.spec, NetworkPlan(network, neighbours_of(network, space.networks.values())))


def picks(spec: PoolSpec) -> list[str]:
    """Return what is handed out, in its order."""
    return [str(each) for of_entry in spec.runs() for each in of_entry]


async def test_a_pool_without_entries_has_the_networks_pools_in_the_order_of_their_ranks(ledger: AsyncLedger) -> None:
    await ledger.add_pool("n", "10.0.0.10-10.0.0.19", rank=1)
    await ledger.add_pool("n", "10.0.1.10-10.0.1.12")
    spec = await given(ledger)

    assert picks(spec) == ["10.0.1.10-10.0.1.12", "10.0.0.10-10.0.0.19"]
    options = spec.options_at(parse_address("10.0.0.10"))
    assert (options.prefix, options.gateway, options.dns_servers) == (24, "10.0.0.1", ("10.0.0.53",))
    assert spec.options_at(parse_address("10.0.1.10")).gateway == ""


async def test_what_the_plan_keeps_back_is_not_picked(ledger: AsyncLedger) -> None:
    await ledger.add_pool("n", "10.0.0.0/28")
    await ledger.add_pool("n", "10.0.1.10-10.0.1.12", name="old")
    await ledger.reserve("n", "10.0.0.4-10.0.0.5")
    await ledger.preallocate("n", "instance/x", "10.0.0.9")
    await ledger.retire_pool("n", "old")

    assert picks(await given(ledger)) == ["10.0.0.2-10.0.0.3", "10.0.0.6-10.0.0.8", "10.0.0.10-10.0.0.15"]
    await ledger.retire_network("n")
    assert picks(await given(ledger)) == []


async def test_own_entries_end_where_the_subnets_do_and_say_what_the_subnet_does_not(ledger: AsyncLedger) -> None:
    spec = await given(
        ledger, {"start": "10.0.0.250", "end": "10.0.2.5"}, {"start": "172.16.0.1", "end": "172.16.0.9"},
        gateway="10.0.0.254",
    )  # fmt: skip

    assert picks(spec) == ["10.0.0.250-10.0.0.253", "10.0.1.1-10.0.1.254"]
    assert spec.options_at(parse_address("10.0.0.250")).gateway == "10.0.0.254"


async def test_subnets_of_prefixes_have_nothing_for_claims(ledger: AsyncLedger) -> None:
    await ledger.add_subnet("n", "2001:db8::/48", unit=64)
    await ledger.add_pool("n", "2001:db8::/49")

    assert picks(await given(ledger)) == []


async def test_what_neighbours_keep_away_from_the_whole_space_is_not_picked(ledger: AsyncLedger) -> None:
    """Gateways, reserved ranges and pre-allocations of networks that lie over this one (I3); not their last address."""
    await ledger.add_pool("n", "10.0.0.2-10.0.0.9")
    await ledger.add_network("over", space="site")
    await ledger.add_subnet("over", "10.0.0.0/29", gateway="10.0.0.3")
    await ledger.reserve("over", "10.0.0.5")
    await ledger.preallocate("over", "instance/x", "10.0.0.6")
    await ledger.add_network("beside", space="site")
    await ledger.add_subnet("beside", "10.0.7.0/24", gateway="10.0.7.1")
    await ledger.add_network("elsewhere")
    await ledger.add_subnet("elsewhere", "10.0.0.0/29", gateway="10.0.0.4")

    assert picks(await given(ledger)) == ["10.0.0.2", "10.0.0.4", "10.0.0.7-10.0.0.9"]
