"""``verify`` names what is held on an address that a machine itself has, by the library as over HTTP."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import tenure

Ledger = tenure.AsyncLedger

NODE = {"group": "default", "uuid": "u-9", "primary_ip": "192.0.2.9", "secondary_ip": "2001:db8::9"}


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> AsyncIterator[None]:
    """Lay out a network around a gateway, a node and the master; end what a test holds there."""
    cluster = tenure.WritePaper(kind="cluster", name="cluster", document={})
    node = tenure.WritePaper(kind="node", name="node9", document=NODE)
    master = tenure.WritePaper(kind="master", name="master", document={"ip": "192.0.2.8"})
    await ledger.apply([cluster, node, master])
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", gateway="192.0.2.1")
    await ledger.add_subnet("net", "2001:db8::/64", gateway="fe80::1")
    yield
    for held in await ledger.holdings("net"):
        await ledger.release("net", held.address, owner=held.owner)


async def held(ledger: Ledger, address: str, owner: str) -> list[str]:
    """Let an owner have an address by force; return what ``verify`` finds."""
    await ledger.allocate("net", owner=owner, address=address, reserved="force")
    return [str(breach) for breach in await ledger.verify()]


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("192.0.2.1", "the gateway of 192.0.2.0/24"),
        ("192.0.2.9", "an address of node node9"),
        ("2001:db8::9", "an address of node node9"),
        ("192.0.2.8", "the address of the master"),
    ],
)
async def test_a_holding_on_the_address_of_a_machine_is_named(ledger: Ledger, address: str, what: str) -> None:
    assert await held(ledger, address, "instance/web") == [
        f"machines: network net: {address} is {what}, and instance/web holds it"
    ]


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("192.0.2.1", "router/r1"),
        ("192.0.2.1", "gateway/g1"),
        ("192.0.2.1", "neutron:port/7"),
        ("192.0.2.1", "ganeti/orphan"),
        ("192.0.2.9", "node/node9"),
        ("192.0.2.8", "master/m"),
        ("192.0.2.7", "instance/web"),
    ],
)
async def test_the_machine_itself_may_hold_its_address(ledger: Ledger, address: str, owner: str) -> None:
    assert await held(ledger, address, owner) == []


async def test_another_machine_is_not_the_machine_itself(ledger: Ledger) -> None:
    assert len(await held(ledger, "192.0.2.9", "node/node1")) == 1


async def test_a_prefix_around_the_address_is_named_too(ledger: Ledger) -> None:
    await ledger.add_subnet("net", "10.0.0.0/16", unit=24, gateway="10.0.0.1")

    assert await held(ledger, "10.0.0.0", "tenant/a") == [
        "machines: network net: 10.0.0.1 is the gateway of 10.0.0.0/16, and tenant/a holds it"
    ]


async def test_what_is_pending_past_its_deadline_is_held_by_nobody(ledger: Ledger) -> None:
    await ledger.hold("net", owner="instance/web", address="192.0.2.1", reserved="force", lasts_s=0.001)
    await asyncio.sleep(0.01)

    assert await ledger.verify() == []


async def test_a_gateway_that_its_subnet_does_not_keep_back_may_be_any_owner(ledger: Ledger) -> None:
    await ledger.add_subnet("net", "10.0.0.0/24", gateway="10.0.0.1", keep_back=["network", "broadcast"])

    assert await held(ledger, "10.0.0.1", "instance/router") == []
