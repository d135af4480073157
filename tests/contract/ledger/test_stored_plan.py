"""Spaces, networks and versions: the plan as stores keep it."""

import pytest

from tenure.kernel.addressing.ranges import parse_cidr, parse_range
from tenure.kernel.errors import AlreadyExists
from tenure.kernel.names import Owner
from tenure.kernel.plan.plan_model import (
    Configuration,
    Connection,
    KeepBack,
    Network,
    NetworkKind,
    Notes,
    Policy,
    Pool,
    PreAllocation,
    Reserved,
    Subnet,
)
from tenure.ports import LedgerStore, Transaction
from tests.contract.sites import Site, at

NOTES = Notes({"team": "shop", "ü": "ß"}, "two\nlines – and a “quote”")

FULL = Network(
    id=77,
    name="every field",
    uuid="6f1c9a3e-0000-4000-8000-000000000001",
    kind=NetworkKind.VIP,
    mac_prefix="aa:bb:cc",
    tags=("b", "a"),
    subnets=(
        Subnet(
            cidr=parse_cidr("192.0.2.0/24"),
            uuid="s1",
            name="subnet 1",
            gateway=at("192.0.2.1"),
            dns=("192.0.2.53", "2001:db8::53"),
            dhcp=True,
            zones=("z2", "z1"),
            unit=28,
            keep_back=frozenset(KeepBack),
            pools=(
                Pool(parse_range("192.0.2.64-192.0.2.127"), "p", Policy.STICKY, 3600, True, NOTES),
                Pool(parse_range("192.0.2.16-192.0.2.31")),
            ),
            reserved=(Reserved(parse_range("192.0.2.32-192.0.2.47"), "by hand"), Reserved(parse_range("192.0.2.250"))),
            retired=True,
            notes=NOTES,
        ),
        Subnet(parse_cidr("2001:db8::/32"), "s2", unit=64, gateway=at("fe80::1")),
    ),
    preallocations=(
        PreAllocation(Owner("cluster-1:ipclaim/ns/name"), at("192.0.2.16"), "nic0"),
        PreAllocation(Owner("vm/a"), at("2001:db8::")),
    ),
    retired=True,
    notes=NOTES,
    connections=(Connection("rack1", "bridged", "br0"), Connection("rack ü", "routed", "", "7")),
    serial=9,
    created_us=1_760_000_000_000_001,
    modified_us=1_760_000_000_000_002,
)


async def test_a_network_is_read_back_with_every_field(site: Site[LedgerStore]) -> None:
    bare = Network(78, "bare", "uuid-bare")

    await site.store.transact(lambda tx: tx.put_networks(site.here.space, [FULL, bare]))
    outside = await site.store.configuration(site.here.space)
    inside = await site.store.transact(lambda tx: tx.configurations([site.there.space, site.here.space]))

    assert outside is not None
    assert outside.networks["every field"] == FULL
    assert outside.networks["bare"] == bare
    assert {configuration.name: configuration for configuration in inside}["here"] == outside


async def test_a_fresh_space_has_version_one_and_no_networks(site: Site[LedgerStore]) -> None:
    space = await site.store.transact(lambda tx: tx.add_space("empty"))

    assert await site.store.configuration(space) == Configuration(space, "empty", 1, {})


async def test_a_bump_makes_the_version_one_higher_and_leaves_the_others(site: Site[LedgerStore]) -> None:
    await site.store.transact(lambda tx: tx.bump(site.here.space))

    here = await site.store.configuration(site.here.space)
    there = await site.store.configuration(site.there.space)

    assert here is not None
    assert there is not None
    assert (here.version, there.version) == (site.here.version + 1, site.there.version)


async def test_two_spaces_never_share_a_name(site: Site[LedgerStore]) -> None:
    with pytest.raises(AlreadyExists) as told:
        await site.store.transact(lambda tx: tx.add_space("here"))

    assert (told.value.kind, told.value.name) == ("space", "here")


@pytest.mark.parametrize("where", ["here", "there"])
async def test_two_networks_never_share_a_name_whatever_their_space(site: Site[LedgerStore], where: str) -> None:
    await site.store.transact(lambda tx: tx.put_networks(site.here.space, [FULL]))
    space = await site.store.space_named(where)
    assert space is not None
    namesake = Network(99, FULL.name, "another")

    with pytest.raises(AlreadyExists) as told:
        await site.store.transact(lambda tx: tx.put_networks(space, [namesake]))

    assert (told.value.kind, told.value.name) == ("network", FULL.name)
    assert await site.store.locate([FULL.name]) == {FULL.name: site.here.space}


async def test_a_network_is_renamed_and_keeps_its_number(site: Site[LedgerStore]) -> None:
    number = site.here.networks[0]

    await site.store.transact(lambda tx: tx.put_networks(site.here.space, [Network(number, "renamed", "u")]))

    configuration = await site.store.configuration(site.here.space)
    assert configuration is not None
    assert {name: network.id for name, network in configuration.networks.items()} == {
        "renamed": number,
        f"here-{site.here.networks[1]}": site.here.networks[1],
    }
    assert await site.store.locate([f"here-{number}", "renamed"]) == {"renamed": site.here.space}


async def test_networks_and_spaces_are_found_by_name(site: Site[LedgerStore]) -> None:
    names = [f"here-{site.here.networks[0]}", f"there-{site.there.networks[1]}", "nowhere"]

    located = await site.store.locate(names)

    assert located == {names[0]: site.here.space, names[1]: site.there.space}
    assert await site.store.locate([]) == {}
    assert await site.store.space_named("there") == site.there.space
    assert await site.store.space_named("nowhere") is None
    assert await site.store.configuration(site.there.space + 1000) is None


async def test_spaces_are_listed_in_order_of_name(site: Site[LedgerStore]) -> None:
    async def work(tx: Transaction) -> None:
        for name in ("ä", "B", "zebra", "a b", "a-b", "_"):
            await tx.add_space(name)

    await site.store.transact(work)

    names = [name for _, name in await site.store.spaces()]
    assert names == sorted(["ä", "B", "zebra", "a b", "a-b", "_", "here", "there"])


async def test_a_removed_space_is_gone_and_its_number_is_never_used_again(site: Site[LedgerStore]) -> None:
    async def work(tx: Transaction) -> None:
        await tx.remove_networks(site.there.networks)
        await tx.remove_space(site.there.space)

    await site.store.transact(work)
    space = await site.store.transact(lambda tx: tx.add_space("there"))
    number = await site.store.transact(lambda tx: tx.next_network())

    assert space != site.there.space
    assert number not in site.there.networks
    assert await site.store.configuration(site.there.space) is None


async def test_a_configuration_outlives_its_store(shared_site: Site[LedgerStore]) -> None:
    site = shared_site
    row = await site.held_by("192.0.2.10", "vm/a", request="r", details={"labels": {"a": "b"}})
    await site.store.transact(lambda tx: tx.put_networks(site.here.space, [FULL]))

    again = await site.provider.connect(site.url)
    try:
        configuration = await again.configuration(site.here.space)
        rows = await again.by_owner(["vm/a"])
    finally:
        await again.close()

    assert configuration is not None
    assert configuration.networks[FULL.name] == FULL
    assert list(rows) == [row]
