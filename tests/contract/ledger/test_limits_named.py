"""Errors of limits name them: where nothing is free, and which of them no pool keeps together."""

import pytest

import tenure

Ledger = tenure.AsyncLedger


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out one IPv4 and one IPv6 subnet, each with a pool of one address, in two zones."""
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="FOUR", zones=["z1"])
    await ledger.add_subnet("net", "2001:db8::/64", name="SIX", zones=["z2"])
    await ledger.add_pool("net", "192.0.2.10", name="v4")
    await ledger.add_pool("net", "2001:db8::10", name="v6")


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "no free address in network 'net'"),
        ({"pool": "v4"}, "no free address in pool 'v4' of network 'net'"),
        ({"subnet": "FOUR"}, "no free address in subnet 'FOUR' of network 'net'"),
        ({"zone": "z1"}, "no free address in zone 'z1' of network 'net'"),
        (
            {"pool": "v4", "subnet": "FOUR", "zone": "z1", "family": "ipv4"},
            "no free IPv4 address in pool 'v4', subnet 'FOUR', zone 'z1' of network 'net'",
        ),
    ],
)
async def test_a_full_place_is_named_with_all_that_was_asked_for(
    ledger: Ledger, limits: dict[str, str], words: str
) -> None:
    await ledger.allocate_many("net", owners=["vm/a", "vm/b"])

    with pytest.raises(tenure.PoolExhausted) as one:
        await ledger.allocate("net", owner="vm/c", **limits)  # type: ignore[arg-type]
    with pytest.raises(tenure.PoolExhausted) as several:
        await ledger.allocate_many("net", owners=["vm/c", "vm/d"], **limits)  # type: ignore[arg-type]

    assert one.value.message.startswith(f"{words}; ")
    assert several.value.wanted == 2
    for error in (one.value, several.value):
        said = {"pool": error.pool, "subnet": error.subnet, "zone": error.zone, "family": error.family}
        assert {name: value for name, value in said.items() if value is not None} == limits


@pytest.mark.parametrize(
    ("limits", "problem", "field"),
    [
        ({"family": "ipv4", "subnet": "SIX"}, "subnet 'SIX' of network 'net' is IPv6, not IPv4", "family"),
        ({"family": "ipv6", "pool": "v4"}, "pool 'v4' of network 'net' is IPv4, not IPv6", "family"),
        ({"pool": "v4", "subnet": "SIX"}, "pool 'v4' of network 'net' has no range in subnet 'SIX'", "subnet"),
        ({"zone": "z1", "subnet": "SIX"}, "subnet 'SIX' of network 'net' has no pool in zone 'z1'", "zone"),
        ({"zone": "z3"}, "network 'net' has no pool in zone 'z3'", "zone"),
        ({"zone": "z1", "family": "ipv6"}, "zone 'z1' of network 'net' has no IPv6 pool", "family"),
    ],
)
async def test_limits_that_no_pool_keeps_together_are_named(
    ledger: Ledger, limits: dict[str, str], problem: str, field: str
) -> None:
    with pytest.raises(tenure.NotFound) as refused:
        await ledger.allocate("net", owner="vm/a", **limits)  # type: ignore[arg-type]

    assert refused.value.message.startswith(f"{problem}; ")
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("limits", "kind", "name", "hint"),
    [
        ({"family": "ipv4", "subnet": "SIX"}, "IPv4 pool", "", "leave out the subnet or the family"),
        ({"family": "ipv6", "pool": "v4"}, "pool", "v4", "leave out the pool or the family"),
        ({"pool": "v4", "subnet": "SIX"}, "pool", "v4", "leave out the pool or the subnet"),
        ({"zone": "z1", "subnet": "SIX"}, "pool", "", "leave out the subnet or the zone"),
        ({"zone": "z3"}, "pool", "", "add one with add_pool, or name the address you want"),
    ],
)
async def test_limits_at_odds_name_the_pool_that_was_asked_for_and_what_helps(
    ledger: Ledger, limits: dict[str, str], kind: str, name: str, hint: str
) -> None:
    with pytest.raises(tenure.NotFound) as refused:
        await ledger.allocate("net", owner="vm/a", **limits)  # type: ignore[arg-type]

    assert (refused.value.kind, refused.value.name) == (kind, name)
    assert refused.value.message.endswith(f"; {hint}")


BLOCKED = "all of it is reserved, pre-allocated, kept back or retired; add a pool, or lift a reserved range"


async def test_a_pool_that_is_wholly_reserved_is_not_said_to_be_full(ledger: Ledger) -> None:
    await ledger.reserve("net", "192.0.2.0/24")

    with pytest.raises(tenure.PoolExhausted) as one:
        await ledger.allocate("net", owner="vm/a", pool="v4")
    with pytest.raises(tenure.PoolExhausted) as several:
        await ledger.allocate_many("net", owners=["vm/a", "vm/b"], pool="v4")
    with pytest.raises(tenure.PoolExhausted) as row:
        await ledger.allocate_many("net", owners=["vm/a", "vm/b"], pool="v4", contiguous=True)
    with pytest.raises(tenure.PoolExhausted) as waited:
        await ledger.allocate("net", owner="vm/a", pool="v4", wait_s=0.05)

    for refused in (one, several, row, waited):
        assert refused.value.message.endswith(f"; {BLOCKED}")
        assert refused.value.case == "nothing_open"


async def test_a_pool_of_which_a_part_is_reserved_may_be_waited_for(ledger: Ledger) -> None:
    taken = await ledger.allocate("net", owner="vm/a", pool="v4")
    await ledger.reserve("net", "192.0.2.0/24", reason="all but what is held")
    await ledger.unreserve("net", taken.address)

    with pytest.raises(tenure.PoolExhausted) as refused:
        await ledger.allocate("net", owner="vm/b", pool="v4")

    assert refused.value.message.endswith("; add a pool, release addresses, or wait")
    assert refused.value.case is None


async def test_a_family_that_the_network_has_not_is_named(ledger: Ledger) -> None:
    await ledger.remove_pool("net", "v6")

    with pytest.raises(tenure.NotFound, match="no IPv6 pool of network 'net'"):
        await ledger.allocate("net", owner="vm/a", family="ipv6")


async def test_a_subnet_without_zone_does_not_make_a_zone_one_of_its_family(ledger: Ledger) -> None:
    await ledger.modify_subnet("net", "FOUR", zones=[])

    with pytest.raises(tenure.NotFound, match="zone 'nope' of network 'net' has no IPv6 pool"):
        await ledger.allocate("net", owner="vm/a", zone="nope", family="ipv6")
    # A subnet that names no zone serves every zone.
    assert (await ledger.allocate("net", owner="vm/a", zone="nope")).address == "192.0.2.10"


async def test_a_zone_that_no_subnet_serves_is_not_waited_for(ledger: Ledger) -> None:
    await ledger.allocate_many("net", owners=["vm/a", "vm/b"])

    with pytest.raises(tenure.NotFound, match="has no pool in zone 'typo'"):
        await ledger.allocate("net", owner="vm/c", zone="typo", wait_s=60)
