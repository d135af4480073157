"""Many deploys at once, by real processes: who finds room is served whole, and who does not holds nothing."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tests.integrations.bosh.conformance.crowd import at_once
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

pytestmark = pytest.mark.every_store

FULL = BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
IN_USE = BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE


async def test_of_ten_deployments_at_once_six_find_room_and_four_hold_nothing(town: Town, place: str) -> None:
    await town.upload(config(lab(reserved=["172.20.5.8-172.20.5.14"])))
    names = [f"d{number}" for number in range(10)]
    outcomes = await at_once(place, *(manifest(name, app()) for name in names))

    assert (outcomes.count(None), outcomes.count(FULL)) == (6, 4)
    held = {name: await town.tails(name) for name in names}
    assert sorted(tails["app/0"] for tails in held.values() if tails) == [f".{tail}" for tail in range(2, 8)]
    assert [bool(tails) for tails in held.values()] == [outcome is None for outcome in outcomes]
    assert len(await town.ledger.holdings("lab")) == 6


async def test_deployments_of_several_instances_get_all_or_nothing(town: Town, place: str) -> None:
    await town.upload(config())
    names = [f"d{number}" for number in range(6)]
    outcomes = await at_once(place, *(manifest(name, app(3)) for name in names))

    assert (outcomes.count(None), outcomes.count(FULL)) == (4, 2)
    assert sorted([len(await town.tails(name)) for name in names]) == [0, 0, 3, 3, 3, 3]
    assert len(await town.ledger.holdings("lab")) == 12


async def test_a1_deployments_at_once_get_addresses_of_their_own(town: Town, place: str) -> None:
    await town.upload(config())
    outcomes = await at_once(place, *(manifest(name, app()) for name in ("alpha", "beta")))

    assert outcomes == [None, None]
    assert {*(await town.tails("alpha")).values(), *(await town.tails("beta")).values()} == {".2", ".3"}


async def test_a2_of_two_who_ask_at_once_for_one_static_ip_one_gets_it(town: Town, place: str) -> None:
    await town.upload(config(lab(static=["172.20.5.10"])))
    outcomes = await at_once(place, *(manifest(name, app(static_ips=["172.20.5.10"])) for name in ("alpha", "beta")))

    assert set(outcomes) == {None, IN_USE}
    assert sorted([await town.tails("alpha"), await town.tails("beta")], key=len) == [{}, {"app/0": ".10"}]
    assert len(await town.ledger.holdings("lab")) == 1


async def test_a12_of_two_who_race_for_the_last_address_one_gets_it(town: Town, place: str) -> None:
    await town.upload(config(lab(reserved=["172.20.5.3-172.20.5.14"])))
    outcomes = await at_once(place, *(manifest(name, app()) for name in ("alpha", "beta")))

    assert set(outcomes) == {None, FULL}
    assert sorted([await town.tails("alpha"), await town.tails("beta")], key=len) == [{}, {"app/0": ".2"}]
    assert len(await town.ledger.holdings("lab")) == 1


async def test_d1_one_deployment_deployed_by_several_at_once_is_deployed_once(town: Town, place: str) -> None:
    await town.upload(config())
    outcomes = await at_once(place, *[manifest("alpha", app(3))] * 4)

    assert outcomes == [None] * 4
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3", "app/2": ".4"}
    assert len(await town.ledger.holdings("lab")) == 3


def on_vips(deployment: str, **vip: object) -> str:
    """Write an instance with a VIP beside its own address."""
    return manifest(deployment, app(networks=[{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub", **vip}]))


async def test_g6_of_two_who_ask_at_once_for_one_vip_one_gets_it(town: Town, place: str) -> None:
    await town.upload(config(more=[{"name": "pub", "type": "vip"}]))
    outcomes = await at_once(place, *(on_vips(name, static_ips=["198.51.100.7"]) for name in ("alpha", "beta")))

    assert set(outcomes) == {None, IN_USE}
    assert sorted(map(len, [await town.instances("alpha"), await town.instances("beta")])) == [0, 1]
    assert len(await town.ledger.holdings("lab")) == 1


async def test_g8_a_vip_pool_serves_as_many_at_once_as_it_has(town: Town, place: str) -> None:
    pool = {"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.20-198.51.100.23"]}]}
    await town.upload(config(more=[pool]))
    names = [f"d{number}" for number in range(6)]
    outcomes = await at_once(place, *(on_vips(name) for name in names))

    assert (outcomes.count(None), outcomes.count(FULL)) == (4, 2)
    held = [each.address for each in await town.ledger.holdings("pub")]
    assert sorted(held) == [f"198.51.100.{tail}" for tail in range(20, 24)]
    assert len(await town.ledger.holdings("lab")) == 4
