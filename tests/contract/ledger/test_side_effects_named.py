"""Edits say what they did beside what was asked: the library has it in ``warnings``, and so has every door."""

import pytest

import tenure

Ledger = tenure.AsyncLedger


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out a subnet with a pool of two ranges and a reserved range."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="a")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.20", name="p1")
    await ledger.add_pool("net", "192.0.2.100-192.0.2.120", name="p1")
    await ledger.reserve("net", "192.0.2.40-192.0.2.49", reason="switches")


@pytest.mark.parametrize(
    ("lifted", "rest"),
    [
        ("192.0.2.40-192.0.2.49", []),
        ("192.0.2.45", []),
        ("192.0.2.45-192.0.2.51", ["192.0.2.50-192.0.2.51 was not reserved"]),
        ("192.0.2.39-192.0.2.50", ["192.0.2.39 was not reserved", "192.0.2.50 was not reserved"]),
    ],
)
async def test_a_reservation_that_is_lifted_names_what_was_not_reserved(
    ledger: Ledger, lifted: str, rest: list[str]
) -> None:
    network = await ledger.unreserve("net", lifted)

    assert list(network.warnings) == rest


async def test_of_many_parts_that_were_not_reserved_a_few_are_named(ledger: Ledger) -> None:
    await ledger.apply([tenure.Reserve(network="net", range=f"192.0.2.{last}") for last in range(128, 256, 2)])

    network = await ledger.unreserve("net", "192.0.2.128/25")

    assert network.warnings[0] == "192.0.2.129 was not reserved"
    assert network.warnings[-1] == "and 54 more parts of 192.0.2.128-192.0.2.255 were not reserved"
    assert len(network.warnings) == 11


async def test_what_is_not_reserved_at_all_is_still_refused(ledger: Ledger) -> None:
    with pytest.raises(tenure.NotFound, match="reserved range"):
        await ledger.unreserve("net", "192.0.2.60")


async def test_a_shrink_says_which_range_of_a_pool_is_gone_and_not_the_pool(ledger: Ledger) -> None:
    network = await ledger.modify_subnet("net", "a", cidr="192.0.2.0/26")

    gone = "range 192.0.2.100-192.0.2.120 of pool p1 (21 addresses) is gone: 192.0.2.0/26 does not cover it"
    assert list(network.warnings) == [gone]
    assert [str(pool.range) for _, pool in network.pools()] == ["192.0.2.10-192.0.2.20"]


async def test_a_shrink_says_which_range_of_a_pool_it_cut(ledger: Ledger) -> None:
    await ledger.modify_subnet("net", "a", cidr="192.0.2.0/25")
    await ledger.add_pool("net", "192.0.2.60-192.0.2.70", name="p1")
    network = await ledger.modify_subnet("net", "a", cidr="192.0.2.0/26")

    cut = "range 192.0.2.60-192.0.2.70 of pool p1 was cut from 11 to 4 addresses: it lies in 192.0.2.0/26 only in part"
    assert cut in network.warnings


async def test_a_shrink_names_the_address_of_a_pool_that_becomes_the_broadcast_address(ledger: Ledger) -> None:
    await ledger.unreserve("net", "192.0.2.40-192.0.2.49")
    await ledger.remove_pool("net", "p1")
    await ledger.add_pool("net", "192.0.2.1-192.0.2.15", name="low")
    await ledger.allocate("net", owner="vm/a", address="192.0.2.15")
    network = await ledger.modify_subnet("net", "a", cidr="192.0.2.0/28")

    kept_back = "192.0.2.15 of pool low is the broadcast address of 192.0.2.0/28 now and is not picked"
    assert list(network.warnings) == [f"{kept_back}; vm/a holds it and keeps it"]


async def test_an_address_that_is_in_no_pool_and_not_held_is_kept_back_without_a_word(ledger: Ledger) -> None:
    network = await ledger.modify_subnet("net", "a", cidr="192.0.2.0/25")

    assert network.warnings == ()
