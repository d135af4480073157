"""``address/length``: every verb that takes an address takes its length, too, if it is that of the unit there."""

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

import tenure

Ledger = tenure.AsyncLedger
Verb = Callable[[Ledger, Any], Awaitable[object]]

ONE, WHOLE = "192.0.2.10", "2001:db8:1::"

RIGHT = [f"{ONE}/32", f"{WHOLE}/64"]
WRONG = [f"{ONE}/24", f"{ONE}/31", f"{WHOLE}/48", f"{WHOLE}/128"]
NONE = [
    f"{ONE}/33",
    f"{ONE}/",
    f"{ONE}/x",
    f"{ONE}/-1",
    f"{ONE}/ 32",
    f"{ONE}/32/32",
    f"{WHOLE}/129",
    "/32",
    f"{ONE}/٣٢",
]


def owner_of(address: object) -> str:
    return "vm/a" if str(address).startswith("192") else "site/a"


async def _apply(ledger: Ledger, kind: Any, address: Any, **more: Any) -> object:
    return await ledger.apply([kind(network="net", address=address, owner=owner_of(address), **more)])


HELD: Mapping[str, Verb] = {
    "allocate": lambda ledger, address: ledger.allocate("net", owner=owner_of(address), address=address),
    "hold": lambda ledger, address: ledger.hold("net", owner=owner_of(address), address=address),
    "release": lambda ledger, address: ledger.release("net", address, owner=owner_of(address)),
    "release under a key": lambda ledger, address: ledger.release("net", address, owner=owner_of(address), key="k"),
    "confirm": lambda ledger, address: ledger.confirm("net", address, owner=owner_of(address)),
    "transfer": lambda ledger, address: ledger.transfer("net", address, owner=owner_of(address), to="vm/b"),
    "modify": lambda ledger, address: ledger.modify_holding(
        "net", address, owner=owner_of(address), description="words"
    ),
    "expect": lambda ledger, address: _apply(ledger, tenure.ExpectHolding, address),
    "several": lambda ledger, address: ledger.apply(
        [
            tenure.ExpectHolding(network="net", address=address, owner=owner_of(address)),
            tenure.Release(network="net", address=address, owner=owner_of(address)),
            tenure.EndCooling(network="net", address=address, owner=owner_of(address)),
        ]
    ),
    "holding": lambda ledger, address: ledger.holding("net", address),
    "why": lambda ledger, address: ledger.why(address),
    "history": lambda ledger, address: ledger.history(address),
    "holdings": lambda ledger, address: ledger.holdings("net", after=address),
}
"""Every verb that takes an address that is held."""

FREE: Mapping[str, Verb] = {
    "allocate": HELD["allocate"],
    "hold": HELD["hold"],
    "preallocate": lambda ledger, address: ledger.preallocate("net", "vm/b", address),
    "release": HELD["release"],
    "cancel": lambda ledger, address: ledger.cancel("net", address, owner=owner_of(address)),
    "why": HELD["why"],
}
"""Every verb that takes one that is free."""


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out single addresses of IPv4 and prefixes of IPv6."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24")
    await ledger.add_subnet("net", "2001:db8::/32", unit=64)


async def hold_all(ledger: Ledger) -> None:
    for address in (ONE, WHOLE):
        await ledger.allocate("net", owner=owner_of(address), address=address)


@pytest.mark.sampled
@pytest.mark.parametrize("address", RIGHT)
@pytest.mark.parametrize("verb", HELD)
async def test_the_length_of_the_unit_is_accepted_of_what_is_held(ledger: Ledger, verb: str, address: str) -> None:
    await hold_all(ledger)

    await HELD[verb](ledger, address)


@pytest.mark.sampled
@pytest.mark.parametrize("address", RIGHT)
@pytest.mark.parametrize("verb", FREE)
async def test_the_length_of_the_unit_is_accepted_of_what_is_free(ledger: Ledger, verb: str, address: str) -> None:
    await FREE[verb](ledger, address)


@pytest.mark.sampled
@pytest.mark.parametrize("address", [*WRONG, *NONE])
@pytest.mark.parametrize("verb", HELD)
async def test_another_length_is_refused_of_what_is_held(ledger: Ledger, verb: str, address: str) -> None:
    await hold_all(ledger)
    before = await ledger.last_change()

    with pytest.raises(tenure.Invalid) as refusal:
        await HELD[verb](ledger, address)

    assert refusal.value.field in ("address", "after")
    assert await ledger.last_change() == before


@pytest.mark.sampled
@pytest.mark.parametrize("address", [*WRONG, *NONE])
@pytest.mark.parametrize("verb", FREE)
async def test_another_length_is_refused_of_what_is_free(ledger: Ledger, verb: str, address: str) -> None:
    before = await ledger.last_change()

    with pytest.raises(tenure.Invalid) as refusal:
        await FREE[verb](ledger, address)

    assert refusal.value.field == "address"
    assert await ledger.last_change() == before


async def test_an_address_inside_a_unit_is_not_the_unit(ledger: Ledger) -> None:
    await hold_all(ledger)

    for verb in ("allocate", "release", "holding", "why", "history"):
        with pytest.raises(tenure.Invalid):
            await HELD[verb](ledger, "2001:db8:1::5/64")


async def test_the_standard_librarys_interface_has_a_length(ledger: Ledger) -> None:
    with pytest.raises(tenure.Invalid):
        await HELD["allocate"](ledger, ipaddress.ip_interface(f"{ONE}/24"))
    with pytest.raises(tenure.Invalid):
        await ledger.modify_subnet("net", "192.0.2.0/24", gateway=ipaddress.ip_interface("192.0.2.1/24"))

    given = await ledger.allocate("net", owner="vm/a", address=ipaddress.ip_interface(f"{ONE}/32"))
    assert given.address == ONE


async def test_the_answer_under_a_key_is_that_of_the_same_words(ledger: Ledger) -> None:
    first = await ledger.allocate("net", owner="vm/a", address=f"{ONE}/32", key="k")

    assert await ledger.allocate("net", owner="vm/a", address=f"{ONE}/32", key="k") == first
    with pytest.raises(tenure.KeyReused):
        await ledger.allocate("net", owner="vm/a", address=f"{ONE}/24", key="k")
