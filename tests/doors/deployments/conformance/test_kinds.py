"""G, H, I: dynamic and VIP networks, VMs that are swapped, IPv6 and delegated blocks."""

import pytest

from tenure.doors.deployments import finishing
from tenure.doors.deployments.faults import Kind, Refused
from tests.doors.deployments.conformance.town import Town, app, config, lab, manifest

DYNAMIC = {"name": "dyn", "type": "dynamic", "subnets": [{"cloud_properties": {"pg": "a"}}]}
POOL = {"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.20-198.51.100.21"]}]}
SWAP = {"update": {"vm_strategy": "create-swap-delete"}}


async def test_g1_g2_a_dynamic_network_reserves_nothing_and_hands_back_what_the_iaas_gave(town: Town) -> None:
    await town.upload(config(more=[DYNAMIC]))
    await town.deploy(manifest("alpha", app(network="dyn")))
    [made] = await town.instances("alpha")
    first = await finishing.commit(town.ledger, "alpha", made.name, vm="vm-1", hints={"dyn": "10.7.0.9"})
    again = await finishing.commit(town.ledger, "alpha", made.name, vm="vm-2")
    third = await town.deploy(manifest("alpha", app(network="dyn")))

    assert first.holdings == ()
    assert again.made_with is not None
    assert again.made_with["dyn"]["ip"] == "10.7.0.9"
    assert not third.changes


def with_vip(*addresses: str, deployment: str = "alpha", instances: int = 1) -> str:
    """Write a manifest with a VIP: named, or from the pool."""
    vip = {"name": "pub", "static_ips": list(addresses)} if addresses else {"name": "pub"}
    return manifest(deployment, app(instances, networks=[{"name": "lab", "default": ["dns", "gateway"]}, vip]))


async def test_g6_a_vip_of_another_is_refused(town: Town) -> None:
    await town.upload(config(more=[{"name": "pub", "type": "vip"}]))
    await town.run(with_vip("198.51.100.7"))
    with pytest.raises(Refused) as caught:
        await town.run(with_vip("198.51.100.7", deployment="beta"))

    assert caught.value.kind is Kind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert await town.instances("beta") == []


async def test_g8_a_vip_pool_gives_in_the_order_written_until_it_is_empty(town: Town) -> None:
    await town.upload(config(more=[POOL]))
    await town.run(with_vip(instances=2))
    with pytest.raises(Refused) as caught:
        await town.run(with_vip(deployment="beta"))

    assert [held["pub"] for held in (await town.has("alpha")).values()] == ["198.51.100.20", "198.51.100.21"]
    assert "for vip network 'pub': no more available" in caught.value.message


async def test_g10_vips_that_move_into_the_pool_stay(town: Town) -> None:
    await town.upload(config(more=[{"name": "pub", "type": "vip"}]))
    await town.run(with_vip("198.51.100.21"))
    await town.upload(config(more=[POOL]))
    await town.run(with_vip())

    assert (await town.has("alpha"))["app/0"]["pub"] == "198.51.100.21"


async def test_h1_h2_h3_swapped_vms_get_new_addresses_and_orphans_keep_theirs_until_they_are_deleted(
    town: Town,
) -> None:
    text = manifest("alpha", app(2, **SWAP))
    await town.upload(config(lab(static=["172.20.5.13"])))
    await town.run(text)
    before = [each.vm for each in await town.instances("alpha")]
    await town.run(text, recreate=True)
    await town.upload(config(lab(static=["172.20.5.2"])))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(static_ips=["172.20.5.2"])))
    freed = [each.address for vm in before for each in await finishing.clean_up_orphan(town.ledger, vm or "")]
    await town.run(manifest("beta", app(static_ips=["172.20.5.2"])))

    assert set((await town.tails("alpha")).values()) == {".4", ".5"}
    assert caught.value.message.endswith("already reserved by orphaned instance")
    assert sorted(freed) == ["172.20.5.2", "172.20.5.3"]
    assert await town.tails("beta") == {"app/0": ".2"}


async def test_h4_a_group_with_static_ips_is_not_swapped(town: Town) -> None:
    text = manifest("alpha", app(static_ips=["172.20.5.10"], **SWAP))
    await town.upload(config(lab(static=["172.20.5.10"])))
    await town.run(text)
    await town.run(text, recreate=True)

    assert await town.tails("alpha") == {"app/0": ".10"}
    assert len(await town.ledger.holdings("lab")) == 1


async def test_h5_h6_without_a_change_of_addresses_nothing_is_swapped(town: Town) -> None:
    text = manifest("alpha", app(2, **SWAP))
    await town.upload(config())
    await town.run(text)
    again = await town.run(text)
    await town.upload(config(lab(gateway="172.20.5.14")))
    await town.run(text)

    assert not again.changes
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}


async def test_h7_a_pool_too_small_for_duplicates_says_so_and_leaves_nothing(town: Town) -> None:
    text = manifest("alpha", app(2, **SWAP))
    small = {"reserved": ["172.20.5.5-172.20.5.14"]}
    await town.upload(config(lab(**small)))
    await town.run(text)
    with pytest.raises(Refused):
        await town.run(text, recreate=True)
    held = len(await town.ledger.holdings("lab"))
    await town.upload(config())
    await town.run(text, recreate=True)

    assert held == 2
    assert set((await town.tails("alpha")).values()) == {".4", ".5"}


SIX = {"name": "six", "subnets": [{"range": "2001:db8:5::/120", "gateway": "2001:db8:5::1"}]}


async def test_i1_i3_ipv6_and_both_families(town: Town) -> None:
    both = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "six"}]
    await town.upload(config(more=[SIX]))
    await town.run(manifest("alpha", app(2, networks=both)))
    again = await town.run(manifest("alpha", app(2, networks=both)))

    assert [held["six"] for held in (await town.has("alpha")).values()] == ["2001:db8:5::2", "2001:db8:5::3"]
    assert not again.changes


async def test_i4_i5_delegated_blocks_avoid_what_is_restricted(town: Town) -> None:
    wide = {"name": "wide", "subnets": [{"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28}]}
    narrow = {"name": "narrow", "subnets": [{"range": "10.11.0.0/27", "gateway": "10.11.0.1", "prefix": 28}]}
    await town.upload(config(more=[wide, narrow]))
    on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "wide"}]
    await town.run(manifest("alpha", app(13, networks=on)))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(network="narrow")))

    blocks = [held["wide"] for held in (await town.has("alpha")).values()]
    assert sorted(blocks) == sorted(f"10.10.0.{16 * number}/28" for number in range(1, 14))
    assert caught.value.kind is Kind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY


async def test_i11_another_nic_group_changes_no_address(town: Town) -> None:
    def with_group(name: str) -> str:
        return manifest("alpha", app(networks=[{"name": "lab", "nic_group": name}]))

    await town.upload(config())
    await town.run(with_group("nic1"))
    await town.run(with_group("nic2"))
    [instance] = await town.instances("alpha")

    assert await town.tails("alpha") == {"app/0": ".2"}
    assert instance.networks[0]["nic_group"] == "nic2"
