"""D: what a change of documents changes for instances."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

TWO = manifest("alpha", app(2))


async def deployed(town: Town, text: str = TWO, **subnet: Any) -> list[str | None]:
    """Deploy on ``lab``, and return the VMs."""
    await town.upload(config(lab(**subnet)))
    await town.run(text)
    return await vms(town)


async def vms(town: Town) -> list[str | None]:
    return [each.vm for each in await town.instances("alpha")]


async def test_d1_nothing_changed_nothing_touched(town: Town) -> None:
    before = await deployed(town)
    again = await town.run(TWO)

    assert await vms(town) == before
    assert not again.changes
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}


async def test_d2_recreated_vms_have_the_same_addresses(town: Town) -> None:
    before = await deployed(town)
    await town.run(TWO, recreate=True)

    assert not set(before) & set(await vms(town))
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}


async def test_d3_another_gateway_makes_other_vms_on_the_same_addresses(town: Town) -> None:
    before = await deployed(town)
    await town.upload(config(lab(gateway="172.20.5.14")))
    await town.run(TWO)

    assert not set(before) & set(await vms(town))
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    await town.run(manifest("beta", app(11)))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("gamma", app()))

    assert ".1" in (await town.tails("beta")).values(), ".1 is free now, .14 is not"
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY


async def test_d4_another_dns_makes_other_vms_on_the_same_addresses(town: Town) -> None:
    before = await deployed(town)
    await town.upload(config(lab(dns=["10.0.0.53"])))
    await town.run(TWO)

    assert not set(before) & set(await vms(town))
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}


async def test_d6_only_whose_address_is_reserved_now_moves(town: Town) -> None:
    before = await deployed(town)
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    await town.run(TWO)
    after = await vms(town)

    assert await town.tails("alpha") == {"app/0": ".4", "app/1": ".3"}
    assert (before[0] != after[0], before[1] == after[1]) == (True, True)


async def test_d7_d8_a_moved_range_moves_everybody_and_the_old_address_is_held_until_the_vm_is_replaced(
    town: Town,
) -> None:
    await deployed(town, manifest("alpha", app()))
    old = {"name": "old", "subnets": [lab(static=["172.20.5.2"])]}
    await town.upload(config(lab(range="172.20.6.0/28", gateway="172.20.6.1"), more=[old]))
    moving = await town.deploy(manifest("alpha", app()))
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(network="old", static_ips=["172.20.5.2"])))
    await town.finish(moving)
    await town.run(manifest("beta", app(network="old", static_ips=["172.20.5.2"])))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.6.2"}}
    assert await town.has("beta") == {"app/0": {"old": "172.20.5.2"}}


TWO_NETS = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "b"}]
B = {"name": "b", "subnets": [{"range": "172.20.9.0/28", "gateway": "172.20.9.1"}]}


async def test_d9_a_network_that_a_group_leaves_is_freed_after_the_vm_is_replaced(town: Town) -> None:
    await town.upload(config(more=[B]))
    await town.run(manifest("alpha", app(networks=TWO_NETS)))
    leaving = await town.deploy(manifest("alpha", app()))
    old = await town.parting("alpha")
    await town.finish(leaving)

    assert old == {"app/0": {"b": "172.20.9.2"}}
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}}
    assert await town.ledger.holdings("b") == []


async def test_d11_a_network_that_is_gone_from_the_config_is_freed_the_same_way(town: Town) -> None:
    await town.upload(config(more=[B]))
    await town.run(manifest("alpha", app(networks=TWO_NETS)))
    await town.upload(config())
    leaving = await town.deploy(manifest("alpha", app()))
    old = await town.parting("alpha")
    await town.finish(leaving)

    assert old == {"app/0": {"b": "172.20.9.2"}}
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}}
    assert await town.parting("alpha") == {}
    assert [each.name for each in await town.ledger.networks()] == ["b", "lab"]
    await town.upload(config())
    assert [each.name for each in await town.ledger.networks()] == ["lab"], "gone with its last address"


async def test_d12_a_renamed_network_keeps_its_addresses(town: Town) -> None:
    await deployed(town)
    await town.upload(config(name="lab9"))
    renamed = manifest("alpha", app(2, network="lab9"))
    second = await town.run(renamed)
    third = await town.run(renamed)

    assert await town.has("alpha") == {"app/0": {"lab9": "172.20.5.2"}, "app/1": {"lab9": "172.20.5.3"}}
    assert second.granted == {}
    assert not third.changes


async def test_d13_a_twin_network_keeps_the_address(town: Town) -> None:
    twin = {"name": "b", "subnets": [lab()]}
    await town.upload(config(more=[twin]))
    await town.run(manifest("alpha", app()))
    await town.run(manifest("alpha", app(network="b")))

    assert await town.has("alpha") == {"app/0": {"b": "172.20.5.2"}}


async def test_d15_a_subnet_that_leaves_an_az_moves_only_whom_it_served_there(town: Town) -> None:
    azs = [{"name": "z1"}, {"name": "z2"}]
    second = {"range": "172.20.6.0/28", "gateway": "172.20.6.1", "azs": ["z2"]}
    group = manifest("alpha", app(2, azs=["z1", "z2"]))
    await town.upload(config(lab(azs=["z1", "z2"]), second, azs=azs))
    await town.run(group)
    before = await town.instances("alpha")
    await town.upload(config(lab(azs=["z1"]), second, azs=azs))
    await town.run(group)
    after = await town.instances("alpha")

    assert [each.uuid for each in after] == [each.uuid for each in before]
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}, "app/1": {"lab": "172.20.6.2"}}
    assert after[0].vm == before[0].vm


async def test_d16_another_az_makes_another_instance_and_both_hold_until_the_old_vm_is_gone(town: Town) -> None:
    azs = [{"name": "z1"}, {"name": "z2"}]
    second = {"range": "172.20.6.0/28", "gateway": "172.20.6.1", "azs": ["z2"]}
    await town.upload(config(lab(azs=["z1"]), second, azs=azs))
    await town.run(manifest("alpha", app(azs=["z1"])))
    [old] = await town.instances("alpha")
    moving = await town.deploy(manifest("alpha", app(azs=["z2"])))
    held = {each.address for each in await town.ledger.holdings("lab")}
    made = next(each for each in await town.instances("alpha") if not each.leaving)
    await report_vm.commit(town.ledger, "alpha", made.name, vm="vm-new", plan=moving.plan)
    between = {each.address for each in await town.ledger.holdings("lab")}
    await report_vm.lose(town.ledger, "alpha", old.name)
    [new] = await town.instances("alpha")

    assert held == between == {"172.20.5.2", "172.20.6.2"}
    assert new.uuid == made.uuid != old.uuid
    assert {each.address for each in await town.ledger.holdings("lab")} == {"172.20.6.2"}


@pytest.mark.parametrize(("first", "then"), [("dyn", "lab"), ("lab", "dyn")])
async def test_d18_from_a_dynamic_network_to_a_manual_one_an_address_comes_and_back_it_goes(
    town: Town, first: str, then: str
) -> None:
    await town.upload(config(more=[{"name": "dyn", "type": "dynamic"}]))
    await town.run(manifest("alpha", app(network=first)))
    [before] = await town.instances("alpha")
    changing = await town.deploy(manifest("alpha", app(network=then)))
    held = [each.address for each in await town.ledger.holdings("lab")]
    await town.finish(changing)
    [after] = await town.instances("alpha")

    assert held == ["172.20.5.2"], "reserved before the VM, or held until it is replaced"
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"} if then == "lab" else {}}
    assert (after.uuid, after.vm != before.vm) == (before.uuid, True)


async def test_d19_a_network_twice_in_a_group_is_refused(town: Town) -> None:
    await town.upload(config())
    with pytest.raises(Rejected) as caught:
        await town.run(
            manifest("alpha", app(networks=[{"name": "lab", "default": ["dns", "gateway"]}, {"name": "lab"}]))
        )

    assert BoshErrorKind.NETWORK_RESERVATION_ALREADY_EXISTS in [fault.kind for fault in caught.value.faults]


async def test_d20_a_group_under_another_name_keeps_its_instances(town: Town) -> None:
    before = await deployed(town)
    await town.run(manifest("alpha", app(2, name="web", migrated_from=[{"name": "app"}])))

    assert await town.tails("alpha") == {"web/0": ".2", "web/1": ".3"}
    assert await vms(town) == before


async def test_d22_scaling_down_takes_the_highest_index_and_frees_it_after_its_vm_is_gone(town: Town) -> None:
    await deployed(town, manifest("alpha", app(3)))
    smaller = await town.deploy(TWO)
    held = await town.tails("alpha")
    await town.finish(smaller)

    assert held == {"app/0": ".2", "app/1": ".3", "app/2": ".4"}
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
