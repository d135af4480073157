"""E5, E12, and D2, H1 without a deploy: VMs that are missing, and VMs that are made anew."""

from typing import Any

import pytest

from tenure.integrations.bosh.cloud_config.site_survey import load_orphans
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.state.instance_state import load_deployments
from tenure.integrations.bosh.verbs import cloud_check, recreate, report_vm
from tenure.kernel.errors import Conflict, NotFound
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

ONE = manifest("alpha", app())
TWO = manifest("alpha", app(2))
MOVED = config(lab(range="172.20.6.0/28", gateway="172.20.6.1"))
SWAP: dict[str, Any] = {"update": {"vm_strategy": "create-swap-delete"}}


async def up(town: Town, text: str = ONE, cloud: str | None = None) -> list[str]:
    """Deploy alpha whole, and return its VMs."""
    await town.upload(cloud or config())
    await town.run(text)
    return await vms(town)


async def vms(town: Town) -> list[str]:
    return [each.vm or "" for each in await town.instances("alpha")]


async def test_check_names_the_instances_whose_vms_are_not_there(town: Town) -> None:
    first, second = await up(town, TWO)
    whole = await cloud_check.check(town.ledger, "alpha", {first, second, "vm-of-another"})
    [missing] = await cloud_check.check(town.ledger, "alpha", {second})

    assert whole == []
    assert (missing.instance.index, missing.vm) == (0, first)


async def test_check_leaves_ignored_instances_alone(town: Town) -> None:
    await up(town)
    [instance] = await town.instances("alpha")
    await report_vm.ignore(town.ledger, "alpha", instance.name)

    assert await cloud_check.check(town.ledger, "alpha", set()) == []
    with pytest.raises(NotFound):
        await cloud_check.check(town.ledger, "beta", set())


@pytest.mark.parametrize("now", [MOVED, config(name="lab9"), config(lab(reserved=["172.20.5.2"]))])
async def test_e5_a_recreated_vm_has_the_old_address_and_the_old_settings(town: Town, now: str) -> None:
    [lost] = await up(town)
    [before] = await town.instances("alpha")
    await town.upload(now)
    waiting = await cloud_check.recreate(town.ledger, "alpha", "app/0", vm=lost)
    again = await cloud_check.recreate(town.ledger, "alpha", "app/0", vm=lost)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert (waiting.vm, waiting.plan is not None) == (None, True)
    assert again == waiting
    assert made.made_with == before.made_with
    assert [(each.address, each.carrier) for each in made.holdings] == [("172.20.5.2", "vm-new")]


async def test_e12_a_recreated_vm_frees_what_it_does_not_carry(town: Town) -> None:
    [lost] = await up(town)
    await town.upload(MOVED)
    await town.deploy(ONE)
    await report_vm.fail(town.ledger, "alpha", "app/0")
    [both] = await town.instances("alpha")
    [missing] = await cloud_check.check(town.ledger, "alpha", set())
    await cloud_check.recreate(town.ledger, "alpha", missing.instance.name, vm=missing.vm)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert missing.vm == lost
    assert {each.address for each in both.holdings} == {"172.20.5.2", "172.20.6.2"}
    assert [each.address for each in made.holdings] == ["172.20.6.2"]
    assert made.made_with is not None
    assert made.made_with["lab"]["gateway"] == "172.20.6.1"


async def test_a_deleted_reference_leaves_the_address_with_its_instance(town: Town) -> None:
    [lost] = await up(town)
    forgot = await cloud_check.delete_reference(town.ledger, "alpha", "app/0", vm=lost)
    await cloud_check.delete_reference(town.ledger, "alpha", "app/0", vm=lost)
    await town.run(manifest("beta", app()))
    settled = await cloud_check.check(town.ledger, "alpha", set())
    await town.run(ONE)

    assert (forgot.vm, forgot.plan) == (None, None)
    assert settled == []
    assert (await town.tails("alpha"), await town.tails("beta")) == ({"app/0": ".2"}, {"app/0": ".3"})


async def test_a_deleted_reference_of_an_instance_that_leaves_keeps_its_address_until_the_next_deploy(
    town: Town,
) -> None:
    [lost] = await up(town)
    await town.deploy(manifest("alpha"))
    await cloud_check.delete_reference(town.ledger, "alpha", "app/0", vm=lost)
    held = len(await town.ledger.holdings("lab"))
    await town.run(manifest("alpha"))

    assert held == 1
    assert await town.ledger.holdings("lab") == []


async def test_what_was_decided_for_another_vm_is_refused(town: Town) -> None:
    [old] = await up(town)
    await report_vm.lose(town.ledger, "alpha", "app/0")
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")
    with pytest.raises(Conflict, match="has VM 'vm-new' now"):
        await cloud_check.recreate(town.ledger, "alpha", "app/0", vm=old)
    with pytest.raises(Conflict, match="has VM 'vm-new' now"):
        await cloud_check.delete_reference(town.ledger, "alpha", "app/0", vm=old)
    await town.deploy(manifest("alpha"))
    with pytest.raises(Conflict, match="is not wanted any more"):
        await cloud_check.recreate(town.ledger, "alpha", "app/0", vm="vm-new")


async def test_d2_recreating_all_gives_new_vms_the_same_addresses_and_the_remembered_settings(town: Town) -> None:
    before = await up(town, TWO)
    await town.upload(config(lab(gateway="172.20.5.14", dns=["10.0.0.53"])))
    await town.finish(await recreate.recreate(town.ledger, "alpha"))
    made_with = [each.made_with for each in await town.instances("alpha")]

    assert not set(before) & set(await vms(town))
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    assert [each and each["lab"]["gateway"] for each in made_with] == ["172.20.5.1", "172.20.5.1"]


async def test_recreating_one_leaves_the_others_alone(town: Town) -> None:
    before = await up(town, TWO)
    await town.finish(await recreate.recreate(town.ledger, "alpha", "app/1"))
    after = await vms(town)

    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


async def test_who_waits_is_stopped_hard_leaves_or_is_ignored_is_not_recreated(town: Town) -> None:
    await up(town, manifest("alpha", app(4), app(name="smoke", lifecycle="errand")))
    await town.deploy(manifest("alpha", app(3), app(name="new"), app(name="smoke", lifecycle="errand")))
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await report_vm.ignore(town.ledger, "alpha", "app/1")
    recreated = await recreate.recreate(town.ledger, "alpha")

    assert [step.instance.index for step in recreated.steps] == [2]
    with pytest.raises(Refused) as caught:
        await recreate.recreate(town.ledger, "alpha", "app/1")
    assert caught.value.kind is BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION


async def test_a_repeated_recreation_does_nothing_and_tells_the_plan_that_instances_wait_for(town: Town) -> None:
    await up(town, TWO)
    first = await recreate.recreate(town.ledger, "alpha")
    before = await town.ledger.last_change()
    second = await recreate.recreate(town.ledger, "alpha")
    one = await recreate.recreate(town.ledger, "alpha", "app/1")

    assert {second.plan, one.plan} == {first.plan}
    assert (second.steps, second.changes) == ([], False)
    assert await town.ledger.last_change() == before
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=second.plan)


async def test_a_recreation_of_nobody_tells_the_plan_of_the_deployment(town: Town) -> None:
    await up(town, TWO)
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    recreated = await recreate.recreate(town.ledger, "alpha", "app/0")
    [known] = await load_deployments(town.ledger)

    assert (recreated.plan, recreated.changes) == (known.plan, False)


async def test_recreating_whom_a_deploy_made_wait_answers_with_the_plan_of_that_deploy(town: Town) -> None:
    await up(town, TWO)
    deployed = await town.deploy(TWO, recreate=True)
    recreated = await recreate.recreate(town.ledger, "alpha")

    assert (recreated.plan, recreated.steps) == (deployed.plan, [])
    assert {each.plan for each in await town.instances("alpha")} == {deployed.plan}


async def test_h1_swapped_vms_that_are_recreated_get_new_addresses_beside_the_old(town: Town) -> None:
    before = await up(town, manifest("alpha", app(2, **SWAP)))
    recreated = await recreate.recreate(town.ledger, "alpha")
    parting = await town.parting("alpha")
    await town.finish(recreated)
    orphans = await load_orphans(town.ledger)

    assert parting == {"app/0": {"lab": "172.20.5.2"}, "app/1": {"lab": "172.20.5.3"}}
    assert set((await town.tails("alpha")).values()) == {".4", ".5"}
    assert {each.vm for each in orphans} == set(before)


async def test_h1_swapped_vms_have_no_room_where_the_remembered_networks_are_no_more(town: Town) -> None:
    await up(town, manifest("alpha", app(**SWAP)))
    await town.upload(MOVED)
    with pytest.raises(Refused, match="the cloud config changed"):
        await recreate.recreate(town.ledger, "alpha")

    assert await town.tails("alpha") == {"app/0": ".2"}
    assert await town.parting("alpha") == {}


async def test_a_recreation_can_be_tried_and_taken_back(town: Town) -> None:
    before = await up(town, manifest("alpha", app(**SWAP)))
    tried = await recreate.recreate(town.ledger, "alpha", dry=True)
    untouched = await town.instances("alpha")
    recreated = await recreate.recreate(town.ledger, "alpha")
    freed = await report_vm.abort(town.ledger, "alpha", recreated.plan)

    assert [each.address for each in tried.granted.values()] == ["172.20.5.3"]
    assert untouched[0].plan is None
    assert [each.address for each in freed] == ["172.20.5.3"]
    assert await vms(town) == before
    assert await town.tails("alpha") == {"app/0": ".2"}
