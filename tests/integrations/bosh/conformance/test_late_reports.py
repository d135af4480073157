"""Reports that come late or twice: what a plan after them wants is neither taken for done nor freed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tenure.doors.cli.commands.deployment.plan_text import next_lines
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tenure.integrations.bosh.views.result_documents import instance_document, plan_document
from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.holding_model import Holding
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest


async def moving(town: Town) -> str:
    """Deploy an instance, and a plan by which it is to move from .2 to .3; return the plan."""
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    return (await town.deploy(manifest("alpha", app()))).plan


async def test_a_repeated_report_of_the_vm_that_is_to_be_replaced_frees_nothing(town: Town) -> None:
    await moving(town)
    before = await town.instances("alpha")
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1")

    assert await town.instances("alpha") == before
    assert await town.parting("alpha") == {"app/0": {"lab": "172.20.5.2"}}


async def test_a_vm_that_was_changed_in_place_is_reported_with_its_plan(town: Town) -> None:
    plan = await moving(town)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=plan)

    assert (made.plan, made.vm) == (None, "vm-1")
    assert await town.tails("alpha") == {"app/0": ".3"}
    assert await town.parting("alpha") == {}


async def test_a_repeated_report_still_tells_what_the_iaas_picked(town: Town) -> None:
    await town.upload(config(more=[{"name": "edge", "type": "dynamic"}]))
    await town.run(manifest("alpha", app(network="edge")))
    await recreate(town.ledger, "alpha")
    told = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", hints={"edge": "10.9.9.9"})

    assert told.hints == {"edge": "10.9.9.9"}
    assert told.plan is not None


async def test_where_two_plans_wanted_other_addresses_a_vm_says_which_it_was_made_for(town: Town) -> None:
    await moving(town)
    await town.upload(config(lab(reserved=["172.20.5.2-172.20.5.3"])))
    later = await town.deploy(manifest("alpha", app()))
    before = await town.instances("alpha")
    with pytest.raises(Conflict, match=f"waits for a VM of plan {later.plan}, and an earlier plan wanted other"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")
    assert await town.instances("alpha") == before

    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=later.plan)

    assert await town.tails("alpha") == {"app/0": ".4"}
    assert [bool(each.earlier) for each in await town.instances("alpha")] == [False]


async def test_it_need_not_where_both_plans_want_the_same(town: Town) -> None:
    await moving(town)
    await town.deploy(manifest("alpha", app(2)))
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert (await town.tails("alpha"))["app/0"] == ".3"


async def test_it_need_not_where_the_first_was_reported_as_failed(town: Town) -> None:
    await moving(town)
    await report_vm.fail(town.ledger, "alpha", "app/0")
    await report_vm.fail(town.ledger, "alpha", "app/0")
    await town.upload(config(lab(reserved=["172.20.5.2-172.20.5.3"])))
    await town.deploy(manifest("alpha", app()))
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert await town.tails("alpha") == {"app/0": ".4"}


async def test_a_second_vm_for_one_instance_is_refused(town: Town) -> None:
    """Whoever made it too has it on the same address, and is to delete it."""
    await town.upload(config())
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=plan)
    for meant in (None, plan):
        with pytest.raises(Conflict):
            await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2", plan=meant)

    assert [each.vm for each in await town.instances("alpha")] == ["vm-1"]


async def test_a_loss_that_is_told_again_does_not_take_the_next_vm_away(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2")
    before = await town.instances("alpha")
    with pytest.raises(Conflict, match="has VM 'vm-2' now, not 'vm-1'"):
        await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    for hard in (True, False):
        with pytest.raises(Conflict, match="has VM 'vm-2' now, not 'vm-1'"):
            await report_vm.stop(town.ledger, "alpha", "app/0", hard=hard, vm="vm-1")

    assert await town.instances("alpha") == before
    assert (await report_vm.stop(town.ledger, "alpha", "app/0", hard=True, vm="vm-2")).vm is None


async def test_who_waits_for_nothing_cannot_have_failed(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    with pytest.raises(Conflict, match="waits for no VM"):
        await report_vm.fail(town.ledger, "alpha", "app/0")
    assert [each.failed for each in await town.instances("alpha")] == [False]

    await report_vm.lose(town.ledger, "alpha", "app/0")
    assert (await report_vm.fail(town.ledger, "alpha", "app/0")).failed


async def test_a_failure_of_an_earlier_plan_is_not_that_of_the_one_waited_for(town: Town) -> None:
    first, later = await overtaking(town)
    with pytest.raises(Conflict, match="say whose VM could not be made"):
        await report_vm.fail(town.ledger, "alpha", "app/0")
    with pytest.raises(Conflict, match=f"does not wait for a VM of plan other, but of {later}"):
        await report_vm.fail(town.ledger, "alpha", "app/0", plan="other")
    told = await report_vm.fail(town.ledger, "alpha", "app/0", plan=first)
    assert (told.failed, bool(told.earlier), told.plan) == (False, False, later)

    assert (await report_vm.fail(town.ledger, "alpha", "app/0", plan=later)).failed


async def overtaking(town: Town) -> tuple[str, str]:
    """Have a first plan that wants .3 for an instance on .2, and a later one that wants .4; return both."""
    first = await moving(town)
    await town.upload(config(lab(reserved=["172.20.5.2-172.20.5.3"])))
    later = (await town.deploy(manifest("alpha", app()))).plan
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    return first, later


async def test_what_an_overtaken_plan_reserved_is_nobody_elses_while_its_vm_may_come_up(town: Town) -> None:
    _, later = await overtaking(town)
    await town.run(manifest("beta", app()))
    assert await town.tails("beta") == {"app/0": ".5"}

    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=later)
    assert await town.parting("alpha") == {}
    await town.run(manifest("beta", app(2)))
    assert (await town.tails("beta"))["app/1"] == ".3"


async def test_it_is_free_once_that_vm_is_told_to_have_failed(town: Town) -> None:
    first, _ = await overtaking(town)
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=first)
    await town.run(manifest("beta", app()))

    assert await town.tails("beta") == {"app/0": ".3"}
    assert await town.tails("alpha") == {"app/0": ".4"}


async def test_it_is_free_once_that_plan_is_taken_back(town: Town) -> None:
    first, later = await overtaking(town)
    freed = await report_vm.abort(town.ledger, "alpha", first)
    assert [each.address for each in freed] == ["172.20.5.3"]
    assert [each.plan for each in await town.instances("alpha")] == [later]
    await town.run(manifest("beta", app()))

    assert await town.tails("beta") == {"app/0": ".3"}


async def test_it_is_free_once_both_plans_are_taken_back(town: Town) -> None:
    _, later = await overtaking(town)
    freed = await report_vm.abort(town.ledger, "alpha", later)

    assert sorted(each.address for each in freed) == ["172.20.5.3", "172.20.5.4"]
    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.2"]
    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_a_third_plan_may_want_it_again(town: Town) -> None:
    await overtaking(town)
    third = await town.deploy(manifest("alpha", app()))
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=third.plan)

    assert len(await town.ledger.holdings("lab")) == 1


@pytest.mark.parametrize("known", ["failed", "taken back", "replaced"])
async def test_a_plan_that_goes_back_frees_nothing_that_a_vm_may_come_up_on(town: Town, known: str) -> None:
    moved = await moving(town)
    await town.upload(config())
    back = await town.deploy(manifest("alpha", app()))
    again = await town.deploy(manifest("alpha", app()))
    assert (again.plan, again.changes) == (back.plan, False)
    assert await town.parting("alpha") == {"app/0": {"lab": "172.20.5.3"}}
    await town.run(manifest("beta", app()))
    assert await town.tails("beta") == {"app/0": ".4"}
    if known == "failed":
        await report_vm.fail(town.ledger, "alpha", "app/0", plan=moved)
    elif known == "taken back":
        assert [each.address for each in await report_vm.abort(town.ledger, "alpha", moved)] == ["172.20.5.3"]
    else:
        await town.run(manifest("alpha", app()), recreate=True)

    assert await town.parting("alpha") == {}
    assert [(bool(each.earlier), each.plan) for each in await town.instances("alpha")] == [(False, None)]


async def test_what_became_of_that_vm_is_asked_for(town: Town) -> None:
    moved = await moving(town)
    await town.upload(config())
    back = await town.deploy(manifest("alpha", app()))
    [shown] = [instance_document(each) for each in await town.instances("alpha")]
    [step] = plan_document(back, applied=True)["instances"]
    [told] = next_lines("alpha", [{**shown, "instance": "app/0"}])
    [planned] = next_lines("alpha", [{**step, "plan": back.plan}])

    assert told.endswith(f"see that there is none, then `tenure deployment fail alpha app/0 --plan {moved}`")
    assert planned == told
    [again] = plan_document(await town.deploy(manifest("alpha", app())), applied=True)["instances"]
    assert (step["action"], again["action"], again["needs_plan"]) == ("moved", "kept", True)


async def test_where_that_vm_may_still_be_told_of_one_in_place_of_a_lost_one_needs_a_plan(town: Town) -> None:
    moved = await moving(town)
    await town.upload(config())
    await town.deploy(manifest("alpha", app()))
    await report_vm.lose(town.ledger, "alpha", "app/0")
    with pytest.raises(Conflict, match="waits for a VM, and an earlier plan wanted other settings"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=moved)
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert await town.tails("alpha") == {"app/0": ".2"}


EDGE = [{"name": "edge", "type": "dynamic"}]
ON_EDGE = app(networks=[{"name": "lab", "default": ["dns", "gateway"]}, {"name": "edge"}])


@pytest.mark.parametrize("later", [(lab(gateway="172.20.5.14"), app()), (lab(), ON_EDGE)], ids=["gateway", "network"])
async def test_where_two_plans_want_other_settings_a_vm_says_which_it_was_made_for(
    town: Town, later: tuple[Document, Document]
) -> None:
    await town.upload(config(more=EDGE))
    await town.deploy(manifest("alpha", app()))
    await town.upload(config(later[0], more=EDGE))
    plan = (await town.deploy(manifest("alpha", later[1]))).plan
    with pytest.raises(Conflict, match=f"waits for a VM of plan {plan}, and an earlier plan wanted other settings"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=plan)

    assert not (await town.deploy(manifest("alpha", later[1]))).changes


async def test_so_it_does_where_somebody_took_its_address_away(town: Town) -> None:
    await town.upload(config())
    await town.deploy(manifest("alpha", app()))
    [first] = await town.ledger.holdings("lab")
    await town.ledger.release("lab", first.address, owner=first.owner)
    await town.run(manifest("beta", app()))
    later = await town.deploy(manifest("alpha", app()))
    with pytest.raises(Conflict, match=f"waits for a VM of plan {later.plan}, and an earlier plan"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert await town.tails("alpha") == {"app/0": ".3"}


async def test_it_need_not_where_other_cloud_configs_mean_the_same_for_it(town: Town) -> None:
    await town.upload(config())
    await town.deploy(manifest("alpha", app()))
    await town.upload(config(more=EDGE))
    await town.deploy(manifest("alpha", app()))

    assert (await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")).vm == "vm-new"


async def test_a_swapped_vm_does_not_take_it_along(town: Town) -> None:
    """Under create-swap-delete the orphan has what it carried, and not what another VM was to have."""
    swapping = app(update={"vm_strategy": "create-swap-delete"})
    await town.upload(config())
    await town.run(manifest("alpha", swapping))
    await town.deploy(manifest("alpha", swapping), recreate=True)
    await town.upload(config(lab(reserved=["172.20.5.3"])))
    later = await town.deploy(manifest("alpha", swapping), recreate=True)
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=later.plan)

    [orphan] = await Deployments(town.ledger).orphans()
    assert (orphan.vm, [each.address for each in orphan.holdings]) == ("vm-1", ["172.20.5.2"])
    assert len(await town.ledger.holdings("lab")) == 2


async def test_a_vm_of_another_instance_is_refused(town: Town) -> None:
    await town.upload(config())
    await town.deploy(manifest("alpha", app(2)))
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1")
    with pytest.raises(Conflict, match=r"cannot have VM 'vm-1': instance app/.* has it"):
        await report_vm.commit(town.ledger, "alpha", "app/1", vm="vm-1")

    assert [each.vm for each in await town.instances("alpha")] == ["vm-1", None]


async def test_an_orphan_is_nobodys_vm(town: Town) -> None:
    swapping = app(update={"vm_strategy": "create-swap-delete"})
    await town.upload(config())
    await town.run(manifest("alpha", swapping))
    await town.run(manifest("alpha", swapping), recreate=True)
    await town.deploy(manifest("beta", app()))
    with pytest.raises(Conflict, match="VM 'vm-1' is an orphan already"):
        await report_vm.commit(town.ledger, "beta", "app/0", vm="vm-1")


async def test_two_vms_of_one_name_are_orphans_one_after_the_other(town: Town) -> None:
    """Ledgers of earlier times may have such; the second can be swapped when the first is deleted."""
    swapping = app(update={"vm_strategy": "create-swap-delete"})
    await town.upload(config())
    for name in ("alpha", "beta"):
        await town.run(manifest(name, swapping))
        [instance] = await town.instances(name)
        await town.ledger.apply([replace(instance, vm="same").written()])
        await town.deploy(manifest(name, swapping), recreate=True)
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-a")
    with pytest.raises(Conflict, match="VM 'same' is an orphan already; report first that the orphan is deleted"):
        await report_vm.commit(town.ledger, "beta", "app/0", vm="vm-b")

    await report_vm.clean_up_orphan(town.ledger, "same")
    assert (await report_vm.commit(town.ledger, "beta", "app/0", vm="vm-b")).vm == "vm-b"


async def test_a_report_reads_what_its_instance_holds_and_no_other(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await town.upload(config())
    deployed = await town.deploy(manifest("alpha", app(8)))
    [one, *_] = await town.instances("alpha")
    holdings_of, asked = town.ledger.holdings_of, set[str]()

    async def noting(owners: Sequence[str]) -> list[Holding]:
        asked.update(owners)
        return await holdings_of(owners)

    monkeypatch.setattr(town.ledger, "holdings_of", noting)
    await report_vm.commit(town.ledger, "alpha", one.name, vm="vm-1", plan=deployed.plan)
    await report_vm.stop(town.ledger, "alpha", f"app/{one.index}")
    await report_vm.lose(town.ledger, "alpha", one.name)

    assert asked == {one.owner}
