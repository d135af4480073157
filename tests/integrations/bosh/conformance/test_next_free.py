"""B: which address is the next."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest


async def given(town: Town, instances: int, **subnet: Any) -> set[str]:
    """Deploy so many instances on ``lab``, and return what they got."""
    await town.upload(config(lab(**subnet)))
    await town.run(manifest("alpha", app(instances)))
    return set((await town.tails("alpha")).values())


async def test_b1_the_lowest_are_given_first(town: Town) -> None:
    assert await given(town, 3) == {".2", ".3", ".4"}


async def test_b2_reserved_ones_are_skipped(town: Town) -> None:
    assert await given(town, 2, reserved=["172.20.5.2", "172.20.5.4"]) == {".3", ".5"}


async def test_b3_static_ones_are_skipped(town: Town) -> None:
    assert await given(town, 2, reserved=["172.20.5.3"], static=["172.20.5.2", "172.20.5.4"]) == {".5", ".6"}


async def test_b4_what_was_freed_below_is_given_again(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.run(manifest("beta", app()))
    await town.run(manifest("gamma", app()))
    await town.run(manifest("beta"))
    await town.run(manifest("delta", app()))

    assert await town.tails("delta") == {"app/0": ".3"}


async def test_b5_a_reserved_block_is_skipped(town: Town) -> None:
    found = await given(town, 2, range="192.168.7.0/24", gateway="192.168.7.1", reserved=["192.168.7.0/28"])

    assert found == {".16", ".17"}


async def test_b8_a_full_subnet_says_so_and_the_deploy_reserves_nothing(town: Town) -> None:
    await town.upload(config(lab(range="172.20.5.0/30")))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("alpha", app(2)))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert "(1)' for manual network 'lab': no more available" in caught.value.message
    assert await town.ledger.holdings("lab") == []


AZS = [{"name": "z1"}, {"name": "z2"}]


async def test_b9_an_instance_gets_its_address_from_its_own_az(town: Town) -> None:
    second = lab(range="172.20.6.0/28", gateway="172.20.6.1", az="z2")
    await town.upload(config(lab(az="z1"), second, azs=AZS))
    await town.run(manifest("alpha", app(azs=["z2"])))

    assert await town.has("alpha") == {"app/0": {"lab": "172.20.6.2"}}


async def test_b11_an_az_whose_addresses_are_all_held_is_full_whatever_the_others_have(town: Town) -> None:
    small = lab(az="z1", reserved=["172.20.5.4-172.20.5.14"])
    await town.upload(config(small, lab(range="172.20.6.0/28", gateway="172.20.6.1", az="z2"), azs=AZS))
    await town.run(manifest("alpha", app(2, azs=["z1"])))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(azs=["z1"])))
    await town.run(manifest("gamma", app(azs=["z2"])))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert "for manual network 'lab': no more available" in str(caught.value)
    assert (await town.instances("beta"), await town.has("gamma")) == ([], {"app/0": {"lab": "172.20.6.2"}})


async def test_b11_an_az_without_any_address_to_pick_is_full(town: Town) -> None:
    full = lab(az="z1", reserved=["172.20.5.2-172.20.5.14"])
    await town.upload(config(full, lab(range="172.20.6.0/28", gateway="172.20.6.1", az="z2"), azs=AZS))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("alpha", app(azs=["z1"])))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY


async def test_b12_a_dns_server_in_the_range_is_kept_back_with_a_warning(town: Town) -> None:
    uploaded = await town.upload(config(lab(dns=["172.20.5.2"])))
    await town.run(manifest("alpha", app()))

    assert [warning.place is not None for warning in uploaded.warnings] == [True]
    assert await town.tails("alpha") == {"app/0": ".3"}


async def test_b13_tenures_own_addresses_are_skipped_in_every_range(town: Town) -> None:
    other = {"name": "other", "subnets": [{"range": "172.20.6.0/28", "gateway": "172.20.6.1"}]}
    await town.upload(config(more=[other], own_addresses=["172.20.5.2", "172.20.6.2"]))
    await town.run(manifest("alpha", app(), app(name="more", network="other")))

    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.3"}, "more/0": {"other": "172.20.6.3"}}


async def test_b13_an_upload_that_names_an_instances_address_as_tenures_own_moves_it(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config(own_addresses="172.20.5.2"))
    await town.run(manifest("alpha", app()))

    assert await town.tails("alpha") == {"app/0": ".3"}


async def test_b16_a_delegated_block_keeps_all_its_addresses_from_others(town: Town) -> None:
    wide = {"name": "p", "subnets": [{"range": "10.9.0.0/16", "gateway": "10.9.0.1", "prefix": 24,
                                     "reserved": ["10.9.0.0-10.9.3.255", "10.9.5.0-10.9.255.255"]}]}  # fmt: skip
    inside = {"name": "q", "subnets": [{"range": "10.9.4.128/25", "gateway": "10.9.4.129"}]}
    await town.upload(config(more=[wide]))
    both = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "p"}]
    await town.run(manifest("alpha", app(networks=both)))
    await town.upload(config(more=[wide, inside]))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(network="q")))

    assert (await town.has("alpha"))["app/0"]["p"] == "10.9.4.0/24"
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY


async def test_b17_a_pair_is_full_unless_the_subnet_says_that_it_is_one(town: Town) -> None:
    await town.upload(config(lab(range="172.20.5.0/31", gateway=None)))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("alpha", app()))
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY

    await town.upload(config(more=[{"name": "pair", "subnets": [{"range": "10.1.0.0/31", "point_to_point": True}]}]))
    await town.run(manifest("alpha", app(2, network="pair")))

    assert [held["pair"] for held in (await town.has("alpha")).values()] == ["10.1.0.0", "10.1.0.1"]
