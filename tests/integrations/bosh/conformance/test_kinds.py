"""G, H, I: dynamic and VIP networks, VMs that are swapped, IPv6 and delegated blocks."""

from typing import Any

import pytest

from tenure.integrations.bosh.cloud_config.site_survey import load_orphans
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

DYNAMIC = {"name": "dyn", "type": "dynamic", "subnets": [{"cloud_properties": {"pg": "a"}}]}
POOL = {"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.20-198.51.100.21"]}]}
SWAP: dict[str, Any] = {"update": {"vm_strategy": "create-swap-delete"}}


async def test_g1_g2_a_dynamic_network_reserves_nothing_and_hands_back_what_the_iaas_gave(town: Town) -> None:
    await town.upload(config(more=[DYNAMIC]))
    deployed = await town.deploy(manifest("alpha", app(network="dyn")))
    [made] = await town.instances("alpha")
    settings = settings_of(made, deployed.config)
    first = await report_vm.commit(town.ledger, "alpha", made.name, vm="vm-1", hints={"dyn": "10.7.0.9"})
    await report_vm.lose(town.ledger, "alpha", made.name)
    again = await report_vm.commit(town.ledger, "alpha", made.name, vm="vm-2")
    third = await town.deploy(manifest("alpha", app(network="dyn")))

    assert (settings["dyn"]["type"], "ip" in settings["dyn"]) == ("dynamic", False)
    assert first.holdings == ()
    assert [each async for each in town.ledger.changes() if each.verb == "allocate"] == []
    assert again.made_with is not None
    assert again.made_with["dyn"]["ip"] == "10.7.0.9"
    assert not third.changes


@pytest.mark.parametrize("how", ["deploy", "recreate"])
async def test_g2_a_recreate_hands_back_what_the_iaas_gave(town: Town, how: str) -> None:
    text = manifest("alpha", app(network="dyn"))
    await town.upload(config(more=[DYNAMIC]))
    await town.deploy(text)
    [made] = await town.instances("alpha")
    await report_vm.commit(town.ledger, "alpha", made.name, vm="vm-1", hints={"dyn": "10.7.0.9"})
    again = await (town.deploy(text, recreate=True) if how == "deploy" else recreate(town.ledger, "alpha"))
    [waiting] = await town.instances("alpha")

    assert (waiting.plan, waiting.vm) == (again.plan, "vm-1")
    assert settings_of(waiting, again.config)["dyn"]["ip"] == "10.7.0.9"


def with_vip(*addresses: str, deployment: str = "alpha", instances: int = 1) -> str:
    """Write a manifest with a VIP: named, or from the pool."""
    vip = {"name": "pub", "static_ips": list(addresses)} if addresses else {"name": "pub"}
    return manifest(deployment, app(instances, networks=[{"name": "lab", "default": ["dns", "gateway"]}, vip]))


async def test_g6_a_vip_of_another_is_refused(town: Town) -> None:
    await town.upload(config(more=[{"name": "pub", "type": "vip"}]))
    await town.run(with_vip("198.51.100.7"))
    with pytest.raises(Refused) as caught:
        await town.run(with_vip("198.51.100.7", deployment="beta"))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert await town.instances("beta") == []


@pytest.mark.parametrize("pool", [[], [{"static": ["198.51.100.7"]}]], ids=["named", "from-a-pool"])
async def test_a_vip_network_hands_its_cloud_properties_on(town: Town, pool: list[Any]) -> None:
    await town.upload(config(more=[{"name": "pub", "type": "vip", "subnets": pool, "cloud_properties": {"eip": 1}}]))
    await town.run(with_vip() if pool else with_vip("198.51.100.7"))
    [instance] = await town.instances("alpha")

    assert instance.made_with is not None
    assert instance.made_with["pub"] == {"type": "vip", "ip": "198.51.100.7", "cloud_properties": {"eip": 1}}


async def test_g8_a_vip_pool_gives_in_the_order_written_until_it_is_empty(town: Town) -> None:
    await town.upload(config(more=[POOL]))
    await town.run(with_vip(instances=2))
    with pytest.raises(Refused) as caught:
        await town.run(with_vip(deployment="beta"))

    assert [held["pub"] for held in (await town.has("alpha")).values()] == ["198.51.100.20", "198.51.100.21"]
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert "for vip network 'pub': no more available" in caught.value.message
    assert await town.instances("beta") == []


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
    freed = [each.address for vm in before for each in await report_vm.clean_up_orphan(town.ledger, vm or "")]
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


async def test_h4_a_group_with_a_vip_is_not_swapped(town: Town) -> None:
    networks = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub"}]
    text = manifest("alpha", app(networks=networks, **SWAP))
    await town.upload(config(more=[POOL]))
    await town.run(text)
    before = await town.has("alpha")
    await town.run(text, recreate=True)

    assert await town.has("alpha") == before
    assert len(await town.ledger.holdings("lab")) == 1


async def test_h1_a_recreate_that_is_repeated_reserves_nothing_more(town: Town) -> None:
    text = manifest("alpha", app(2, **SWAP))
    await town.upload(config())
    await town.run(text)
    await town.deploy(text, recreate=True)
    again = await town.run(text, recreate=True)

    assert again.granted == {}
    assert set((await town.tails("alpha")).values()) == {".4", ".5"}


async def test_h5_a_recreate_that_is_called_off_moves_nobody(town: Town) -> None:
    text = manifest("alpha", app(2, **SWAP))
    await town.upload(config())
    await town.run(text)
    recreated = await town.deploy(text, recreate=True)
    called_off = await town.run(text)
    await report_vm.abort(town.ledger, "alpha", recreated.plan)

    assert [step.calls_off for step in called_off.steps] == [True, True]
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    assert len(await town.ledger.holdings("lab")) == 2


async def test_h5_h6_without_a_change_of_addresses_nothing_is_swapped(town: Town) -> None:
    text = manifest("alpha", app(2, **SWAP))
    await town.upload(config())
    await town.run(text)
    again = await town.run(text)
    await town.upload(config(lab(gateway="172.20.5.14")))
    moved = await town.run(text)

    assert (again.changes, moved.changes, moved.granted) == (False, True, {})
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    assert await load_orphans(town.ledger) == []


async def test_h7_a_pool_too_small_for_duplicates_says_so_and_leaves_nothing(town: Town) -> None:
    text = manifest("alpha", app(2, **SWAP))
    small = {"reserved": ["172.20.5.5-172.20.5.14"]}
    await town.upload(config(lab(**small)))
    await town.run(text)
    with pytest.raises(Refused) as caught:
        await town.run(text, recreate=True)
    held = len(await town.ledger.holdings("lab"))
    await town.upload(config())
    await town.run(text, recreate=True)

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert held == 2
    assert set((await town.tails("alpha")).values()) == {".4", ".5"}


async def test_h9_what_a_deploy_reserved_that_went_no_further_is_free_for_the_next(town: Town) -> None:
    """H9. What fails after reserving (templates, in BOSH) is the caller's: it takes its plan back."""
    await town.upload(config(lab(reserved=["172.20.5.6-172.20.5.14"])))
    await town.run(manifest("alpha", app(2, **SWAP)))
    broken = await town.deploy(manifest("alpha", app(2, **SWAP)), recreate=True)
    full = len(await town.ledger.holdings("lab"))
    await report_vm.abort(town.ledger, "alpha", broken.plan)
    await town.run(manifest("alpha", app(4, **SWAP)))

    assert full == 4
    assert list((await town.tails("alpha")).values()) == [".2", ".3", ".4", ".5"]


SIX: dict[str, Any] = {"name": "six", "subnets": [{"range": "2001:db8:5::/120", "gateway": "2001:db8:5::1"}]}


async def test_i1_i3_ipv6_and_both_families(town: Town) -> None:
    both = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "six"}]
    await town.upload(config(more=[SIX]))
    await town.run(manifest("alpha", app(2, networks=both)))
    again = await town.run(manifest("alpha", app(2, networks=both)))

    assert [held["six"] for held in (await town.has("alpha")).values()] == ["2001:db8:5::2", "2001:db8:5::3"]
    assert not again.changes


async def test_i2_a_reserved_block_of_ipv6_is_skipped(town: Town) -> None:
    [subnet] = SIX["subnets"]
    await town.upload(config(more=[{"name": "six", "subnets": [{**subnet, "reserved": ["2001:db8:5::/124"]}]}]))
    await town.run(manifest("alpha", app(network="six")))

    assert await town.has("alpha") == {"app/0": {"six": "2001:db8:5::10"}}


async def test_i4_i5_delegated_blocks_avoid_what_is_restricted(town: Town) -> None:
    wide = {"name": "wide", "subnets": [{"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28}]}
    narrow = {"name": "narrow", "subnets": [{"range": "10.11.0.0/27", "gateway": "10.11.0.1", "prefix": 28}]}
    await town.upload(config(more=[wide, narrow]))
    await town.run(manifest("alpha", app(14, network="wide")))
    with pytest.raises(Refused) as full:
        await town.run(manifest("beta", app(network="wide")))
    with pytest.raises(Refused) as none:
        await town.run(manifest("beta", app(network="narrow")))

    blocks = [held["wide"] for held in (await town.has("alpha")).values()]
    assert blocks == [f"10.10.0.{16 * number}/28" for number in range(1, 15)]
    assert [full.value.kind, none.value.kind] == [BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY] * 2


async def test_i6_blocks_and_addresses_of_networks_over_each_other_keep_clear(town: Town) -> None:
    pairs = {"name": "pairs", "subnets": [lab(prefix=31)]}
    await town.upload(config(more=[pairs]))
    await town.run(manifest("alpha", app()))
    await town.run(manifest("beta", app(network="pairs")))
    await town.run(manifest("gamma", app(2)))

    assert await town.tails("alpha") == {"app/0": ".2"}
    assert await town.has("beta") == {"app/0": {"pairs": "172.20.5.4/31"}}
    assert await town.tails("gamma") == {"app/0": ".3", "app/1": ".6"}


async def test_i11_i13_another_nic_group_changes_no_address(town: Town) -> None:
    def with_group(name: str) -> str:
        return manifest("alpha", app(networks=[{"name": "lab", "nic_group": name}]))

    await town.upload(config())
    await town.run(with_group("nic1"))
    await town.run(with_group("nic2"))
    [instance] = await town.instances("alpha")

    assert await town.tails("alpha") == {"app/0": ".2"}
    assert instance.networks[0]["nic_group"] == "nic2"
    assert instance.made_with is not None
    assert instance.made_with["lab"]["nic_group"] == "nic2"
