"""Networks over each other: one space, so every address once; but what a network keeps back is its own affair."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.kernel.plan.edits import Reserve
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest

pytestmark = pytest.mark.every_store


def twin(**changes: object) -> Document:
    """Write a second network over ``lab``."""
    return {"name": "lab2", "type": "manual", "subnets": [lab(**changes)]}


def both(number: int = 1) -> str:
    """Write a deployment with a group on each."""
    return manifest("alpha", app(number), app(number, name="other", network="lab2"))


async def addresses(town: Town) -> list[str]:
    """Return all addresses that alpha has, by instance."""
    return [address for held in (await town.has("alpha")).values() for address in held.values()]


async def test_two_networks_may_share_a_block_each_with_its_own_part(town: Town) -> None:
    low, high = ["172.20.5.8-172.20.5.14"], ["172.20.5.2-172.20.5.7"]
    await town.upload(config(lab(reserved=low), more=[twin(reserved=high)]))
    await town.run(both(6))

    found = await town.has("alpha")
    assert {held["lab"] for name, held in found.items() if name < "other"} == {f"172.20.5.{n}" for n in range(2, 8)}
    assert {held["lab2"] for name, held in found.items() if name > "other"} == {f"172.20.5.{n}" for n in range(8, 14)}


async def test_what_one_lists_as_static_the_other_may_pick_and_then_has(town: Town) -> None:
    await town.upload(config(lab(static=["172.20.5.2"]), more=[twin()]))
    await town.run(manifest("beta", app(network="lab2")))
    assert await town.has("beta") == {"app/0": {"lab2": "172.20.5.2"}}
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("alpha", app(static_ips=["172.20.5.2"])))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE


async def test_a_gateway_is_given_to_nobody_in_any_of_them(town: Town) -> None:
    await town.upload(config(more=[twin(gateway="172.20.5.2")]))
    await town.run(both())

    assert await addresses(town) == ["172.20.5.3", "172.20.5.4"]


async def test_first_and_last_addresses_of_one_may_be_picked_in_a_larger_one(town: Town) -> None:
    large = {"name": "lab2", "type": "manual", "subnets": [{"range": "172.20.4.0/23", "gateway": "172.20.4.1",
             "reserved": ["172.20.4.2-172.20.4.255"]}]}  # fmt: skip
    await town.upload(config(more=[large]))
    await town.run(both())

    assert await addresses(town) == ["172.20.5.2", "172.20.5.0"]


async def test_what_people_reserve_by_hand_binds_all_of_them(town: Town) -> None:
    await town.upload(config(more=[twin()]))
    await town.ledger.apply([Reserve(network="lab", range="172.20.5.2-172.20.5.5", reason="cameras")])
    await town.run(both())

    assert await addresses(town) == ["172.20.5.6", "172.20.5.7"]


async def test_d14_who_changes_to_a_network_that_reserves_his_address_moves(town: Town) -> None:
    await town.upload(config(more=[twin(reserved=["172.20.5.2-172.20.5.4"])]))
    await town.run(manifest("alpha", app()))
    await town.run(manifest("alpha", app(network="lab2")))

    assert await town.has("alpha") == {"app/0": {"lab2": "172.20.5.5"}}
