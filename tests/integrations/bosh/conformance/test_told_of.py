"""Which VM a report is about, where several are perhaps being made; and what is told of no VM at all."""

import pytest

from tenure.doors.cli.commands.deployment.plan_text import next_lines
from tenure.integrations.bosh.planning.explain_instance import waiting_text
from tenure.integrations.bosh.verbs import cloud_check, errands, report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tenure.integrations.bosh.views.result_documents import instance_document
from tenure.kernel.errors import Conflict
from tests.integrations.bosh.conformance.test_in_the_making import ON_A, ON_B, ON_C, SECOND, taken, two
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

ERRAND_ON_A = manifest("alpha", app(network="a", lifecycle="errand"))


async def addresses(town: Town) -> list[str]:
    """Return all addresses that are held."""
    return sorted(each.address for each in await taken(town))


async def lost(town: Town) -> None:
    """Let the VM of an instance on ``a`` be lost: another is to be made in its place."""
    await town.upload(two())
    await town.run(ON_A)
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")


async def test_of_two_plans_on_the_same_address_each_is_told_of_by_itself(town: Town) -> None:
    await town.upload(two())
    first = await town.deploy(ON_B)
    await town.upload(two(b={**SECOND, "gateway": "10.0.0.14", "reserved": ["10.0.0.1"]}))
    later = await town.deploy(ON_B)
    await report_vm.delete(town.ledger, "alpha")
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=later.plan)
    assert await addresses(town) == ["10.0.0.2"]

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=first.plan)
    assert await addresses(town) == []


async def test_a_vm_that_a_deploy_called_off_is_told_of(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    called_off = await recreate(town.ledger, "alpha")
    await town.deploy(ON_A)
    with pytest.raises(Conflict, match="does not wait for a VM of plan"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2", plan=called_off.plan)
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=called_off.plan)

    assert [(each.vm, each.earlier) for each in await town.instances("alpha")] == [("vm-1", ())]
    with pytest.raises(Conflict, match="waits for no VM, so none can have failed"):
        await report_vm.fail(town.ledger, "alpha", "app/0")


async def test_without_a_plan_it_is_said_what_to_do(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    called_off = await recreate(town.ledger, "alpha")
    await town.deploy(ON_A)
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    advice = f"say first that the VM of {called_off.plan} failed, or deploy again, and name the plan"
    for report in (
        report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2"),
        report_vm.fail(town.ledger, "alpha", "app/0"),
    ):
        with pytest.raises(Conflict, match=advice) as caught:
            await report
        assert caught.value.case == "awaited_vm_without_plan"
    [shown] = [instance_document(each) for each in await town.instances("alpha")]
    again, untold = next_lines("alpha", [{**shown, "instance": "app/0"}])
    assert "`tenure deployment apply FILE` gives the VM that is to be made a plan" in again
    assert untold.endswith(f"`tenure deployment fail alpha app/0 --plan {called_off.plan}`")
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=called_off.plan)

    assert (await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2")).vm == "vm-2"


@pytest.mark.parametrize("named", [False, True])
async def test_the_vm_that_is_there_is_no_news_of_another(town: Town, named: bool) -> None:
    await town.upload(two())
    await town.run(ON_A)
    moved = await town.deploy(ON_B)
    await town.deploy(ON_A)
    before = await town.instances("alpha")
    for _ in range(2):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=moved.plan if named else None)

    assert await town.instances("alpha") == before
    assert await addresses(town) == ["10.0.0.18", "10.0.0.2"]


async def test_what_failed_may_be_told_again(town: Town) -> None:
    await town.upload(two())
    first, later = await town.deploy(ON_A), await town.deploy(ON_B)
    for plan in (first.plan, first.plan, later.plan, first.plan, later.plan):
        told = await report_vm.fail(town.ledger, "alpha", "app/0", plan=plan)
    assert (told.failed, told.failures) == (True, (first.plan, later.plan))
    with pytest.raises(Conflict, match="does not wait for a VM of plan other"):
        await report_vm.fail(town.ledger, "alpha", "app/0", plan="other")


async def test_who_leaves_and_waits_for_one_vm_need_not_name_it(town: Town) -> None:
    await town.upload(two())
    await town.deploy(ON_A)
    await report_vm.delete(town.ledger, "alpha")
    [instance] = await town.instances("alpha")
    assert waiting_text(instance).startswith("the deletion of a VM that is perhaps being made")
    await report_vm.fail(town.ledger, "alpha", "app/0")

    assert await addresses(town) == []


async def test_of_several_it_is_to_be_said_whose_failed(town: Town) -> None:
    await town.upload(two())
    first, later = await town.deploy(ON_A), await town.deploy(ON_B)
    await report_vm.delete(town.ledger, "alpha")
    with pytest.raises(Conflict, match=f"several VMs .* of {first.plan} and {later.plan}; say whose could not be made"):
        await report_vm.fail(town.ledger, "alpha", "app/0")

    assert await addresses(town) == ["10.0.0.18", "10.0.0.2"]


@pytest.mark.parametrize("told", ["taken back", "failed, then taken back"])
async def test_a_plan_taken_back_leaves_the_vm_that_was_waited_for_before(town: Town, told: str) -> None:
    await lost(town)
    moved = await town.deploy(ON_B)
    if told != "taken back":
        await report_vm.fail(town.ledger, "alpha", "app/0", plan=moved.plan)
    assert [each.address for each in await report_vm.abort(town.ledger, "alpha", moved.plan)] == ["10.0.0.2"]
    assert len(await report_vm.delete(town.ledger, "alpha")) == 1
    assert await addresses(town) == ["10.0.0.18"]


async def test_it_is_taken_without_a_plan_then(town: Town) -> None:
    await lost(town)
    moved = await town.deploy(ON_B)
    await report_vm.abort(town.ledger, "alpha", moved.plan)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2")

    assert [each.carrier for each in made.holdings] == ["vm-2"]


async def test_who_was_recreated_is_waited_for_again(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    again = await recreate(town.ledger, "alpha")
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    moved = await town.deploy(ON_B)
    await report_vm.abort(town.ledger, "alpha", moved.plan)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2", plan=again.plan)

    assert [(each.address, each.carrier) for each in made.holdings] == [("10.0.0.18", "vm-2")]


async def test_an_errand_that_runs_is_waited_for_again(town: Town) -> None:
    await town.upload(two())
    await town.deploy(ERRAND_ON_A)
    runs = await errands.run(town.ledger, "alpha", "app")
    moved = await town.deploy(manifest("alpha", app(network="b", lifecycle="errand")))
    await report_vm.abort(town.ledger, "alpha", moved.plan)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=runs.plan)

    assert [(each.address, each.carrier) for each in made.holdings] == [("10.0.0.18", "vm-1")]


async def test_an_errand_that_is_run_while_a_deploy_is_pending_stays_as_that_made_it(town: Town) -> None:
    await town.upload(two())
    await town.run(manifest("alpha", app(network="a", lifecycle="errand"), app(name="other", network="c")))
    both = [app(network="b", lifecycle="errand"), app(2, name="other", network="c")]
    moved = await town.deploy(manifest("alpha", *both))
    await errands.run(town.ledger, "alpha", "app")
    await report_vm.abort(town.ledger, "alpha", moved.plan)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-run")

    assert {name: said["ip"] for name, said in (made.made_with or {}).items()} == {"b": "10.0.0.2"}


@pytest.mark.parametrize("leaves", ["deleted before", "deleted after", "failed", "rests"])
async def test_a_forgotten_vm_keeps_its_address(town: Town, leaves: str) -> None:
    await town.upload(two())
    await town.run(ERRAND_ON_A if leaves == "rests" else ON_A)
    if leaves == "rests":
        runs = await errands.run(town.ledger, "alpha", "app")
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=runs.plan)
    elif leaves == "deleted before":
        await report_vm.delete(town.ledger, "alpha")
    elif leaves == "failed":
        await recreate(town.ledger, "alpha")
        await report_vm.fail(town.ledger, "alpha", "app/0")
    await cloud_check.delete_reference(town.ledger, "alpha", "app/0", vm="vm-1")
    assert len(await report_vm.delete(town.ledger, "alpha")) == 1
    assert await addresses(town) == ["10.0.0.18"]

    await report_vm.lose(town.ledger, "alpha", "app/0")
    assert await addresses(town) == []


async def test_who_is_stopped_while_a_vm_is_made_in_place_of_a_lost_one_keeps_its_address(town: Town) -> None:
    await lost(town)
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await report_vm.start(town.ledger, "alpha", "app/0")
    assert [each.earlier for each in await town.instances("alpha")] == [()]
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    assert len(await report_vm.delete(town.ledger, "alpha")) == 1

    assert await addresses(town) == ["10.0.0.18"]


async def test_an_older_plan_taken_back_for_who_is_stopped_leaves_the_later_one(town: Town) -> None:
    await town.upload(two())
    first, later = await town.deploy(ON_A), await town.deploy(ON_B)
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await town.deploy(ON_C)
    assert [each.address for each in await report_vm.abort(town.ledger, "alpha", first.plan)] == ["10.0.0.18"]
    assert await addresses(town) == ["10.0.0.2", "10.0.0.34"]

    assert [each.address for each in await report_vm.abort(town.ledger, "alpha", later.plan)] == ["10.0.0.2"]


async def test_who_was_lost_keeps_its_address_when_it_is_an_errand_again(town: Town) -> None:
    await town.upload(two())
    await town.run(ERRAND_ON_A)
    runs = await errands.run(town.ledger, "alpha", "app")
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=runs.plan)
    served = await town.deploy(manifest("alpha", app(network="a"), app(name="other", network="c")))
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    await report_vm.abort(town.ledger, "alpha", served.plan)
    assert [each.errand for each in await town.instances("alpha")] == [True]
    await report_vm.delete(town.ledger, "alpha")

    assert await addresses(town) == ["10.0.0.18"]


async def test_a_vm_in_place_of_a_forgotten_one_needs_no_plan(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    await cloud_check.delete_reference(town.ledger, "alpha", "app/0", vm="vm-1")

    assert (await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2")).vm == "vm-2"


async def test_who_leaves_and_is_stopped_hard_is_gone(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    await report_vm.delete(town.ledger, "alpha")
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)

    assert (await town.instances("alpha"), await addresses(town)) == ([], [])


async def crossing(town: Town) -> tuple[str, str]:
    """Let two groups swap addresses while both VMs are made anew; return that plan, and what both wait for."""
    await town.upload(config(lab(static=["172.20.5.10-172.20.5.12"])))
    pair = [app(static_ips=["172.20.5.10"]), app(name="other", static_ips=["172.20.5.11"])]
    await town.run(manifest("alpha", *pair))
    again = await recreate(town.ledger, "alpha")
    swapped = [app(static_ips=["172.20.5.11"]), app(name="other", static_ips=["172.20.5.10"])]
    crossed = await town.deploy(manifest("alpha", *swapped), hand_over=True)
    for name in ("app/0", "other/0"):
        await report_vm.lose(town.ledger, "alpha", name)
    return again.plan, crossed.plan


@pytest.mark.parametrize("told", ["failed", "taken back"])
async def test_what_another_waits_for_is_his_when_it_is_known_what_became_of_the_last(town: Town, told: str) -> None:
    again, _ = await crossing(town)
    assert await town.tails("alpha") == {}
    if told == "failed":
        for name in ("app/0", "other/0"):
            await report_vm.fail(town.ledger, "alpha", name, plan=again)
    else:
        await report_vm.abort(town.ledger, "alpha", again)

    assert await town.tails("alpha") == {"app/0": ".11", "other/0": ".10"}
    assert [(each.waits, each.earlier) for each in await town.instances("alpha")] == [((), ()), ((), ())]


async def test_who_never_had_a_vm_is_not_made_anew(town: Town) -> None:
    await town.upload(two())
    await town.deploy(ON_A)
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await town.deploy(ON_B)
    await report_vm.start(town.ledger, "alpha", "app/0")

    assert (await recreate(town.ledger, "alpha")).steps == []


async def test_an_errand_that_never_ran_is_there_when_a_plan_that_made_it_a_service_is_taken_back(town: Town) -> None:
    await town.upload(two())
    await town.deploy(ERRAND_ON_A)
    before = await town.instances("alpha")
    served = await town.deploy(ON_A)
    await report_vm.abort(town.ledger, "alpha", served.plan)

    assert [(each.uuid, each.errand) for each in await town.instances("alpha")] == [(before[0].uuid, True)]
