"""E: VMs that are lost, stopped, or could not be made."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

ONE = manifest("alpha", app())
BETA = manifest("beta", app())
MOVED = config(lab(range="172.20.6.0/28", gateway="172.20.6.1"))


async def up(town: Town, text: str = ONE) -> str:
    """Deploy alpha whole, and name its only instance."""
    await town.upload(config())
    await town.run(text)
    return (await town.instances("alpha"))[0].name


async def test_e2_a_deploy_that_fixes_makes_a_lost_vm_anew_on_its_address(town: Town) -> None:
    await up(town)
    await town.run(BETA)
    lost = {"app/0": VmState(None)}
    with pytest.raises(Refused):
        await town.deploy(ONE, vm_state=lost)
    fixed = await town.run(ONE, vm_state=lost, fix=True)
    [again] = await town.instances("alpha")

    assert (fixed.changes, fixed.granted) == (True, {})
    assert (again.vm, again.plan, await town.tails("alpha")) == ("vm-3", None, {"app/0": ".2"})
    assert [each.carrier for each in again.holdings] == ["vm-3"]


async def test_e1_e2_who_lost_his_vm_keeps_his_address(town: Town) -> None:
    name = await up(town)
    await report_vm.lose(town.ledger, "alpha", name)
    await town.run(BETA)
    await town.run(ONE)

    assert (await town.tails("alpha"), await town.tails("beta")) == ({"app/0": ".2"}, {"app/0": ".3"})


async def test_e3_who_is_stopped_hard_keeps_his_address(town: Town) -> None:
    name = await up(town)
    await report_vm.stop(town.ledger, "alpha", name, hard=True)
    await town.run(BETA)
    await report_vm.start(town.ledger, "alpha", name)
    started = await report_vm.commit(town.ledger, "alpha", name, vm="vm-new")

    assert started.made_with is not None
    assert started.made_with["lab"]["ip"] == "172.20.5.2"
    assert await town.tails("beta") == {"app/0": ".3"}


async def test_e6_who_got_no_vm_keeps_his_address_and_gets_his_vm_on_it(town: Town) -> None:
    await town.upload(config())
    await town.deploy(ONE)
    [made] = await town.instances("alpha")
    await report_vm.fail(town.ledger, "alpha", made.name)
    await town.run(BETA)
    await town.run(ONE)
    [again] = await town.instances("alpha")

    assert (await town.tails("alpha"), await town.tails("beta")) == ({"app/0": ".2"}, {"app/0": ".3"})
    assert (again.uuid, again.failed) == (made.uuid, False)


async def test_e7_e8_a_static_ip_without_a_vm_is_held_until_its_instance_drops_it(town: Town) -> None:
    static = app(static_ips=["172.20.5.10"])
    await town.upload(config(lab(static=["172.20.5.10"])))
    await town.deploy(manifest("alpha", static))
    await report_vm.fail(town.ledger, "alpha", "app/0")
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", static))
    await town.run(ONE)
    await town.run(manifest("beta", static))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert (await town.tails("alpha"), await town.tails("beta")) == ({"app/0": ".2"}, {"app/0": ".10"})


async def test_e10_e11_who_got_no_new_vm_holds_old_and_new_until_a_good_deploy(town: Town) -> None:
    name = await up(town)
    await town.upload(MOVED)
    await town.deploy(ONE)
    await report_vm.fail(town.ledger, "alpha", name)
    [both] = await town.instances("alpha")
    await town.run(ONE)

    assert {each.address for each in both.holdings} == {"172.20.5.2", "172.20.6.2"}
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.6.2"}}
    assert await town.parting("alpha") == {}


async def test_e14_a_change_that_is_taken_back_moves_nobody(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    before = await town.instances("alpha")
    await town.upload(config(lab(reserved=["172.20.5.2-172.20.5.3"])))
    changed = await town.deploy(manifest("alpha", app(2)))
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    after = await town.instances("alpha")

    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    assert [each.vm for each in after] == [each.vm for each in before]
    assert len(await town.ledger.holdings("lab")) == 4, "a VM is perhaps being made on the others"
    await report_vm.abort(town.ledger, "alpha", changed.plan)
    assert len(await town.ledger.holdings("lab")) == 2


async def test_e15_a_deploy_that_fails_in_planning_frees_nothing(town: Town) -> None:
    name = await up(town)
    await report_vm.stop(town.ledger, "alpha", name, hard=True)
    with pytest.raises(Refused):
        await town.deploy(manifest("alpha", app(), app(20, name="many")))

    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_e17_a_dry_run_changes_nothing_and_tells_the_addresses(town: Town) -> None:
    await town.upload(config())
    before = await town.ledger.last_change()
    planned = await town.deploy(manifest("alpha", app(2)), dry=True)

    assert sorted(each.address for each in planned.granted.values()) == ["172.20.5.2", "172.20.5.3"]
    assert await town.ledger.last_change() == before
    assert await town.instances("alpha") == []


async def test_e17_a_dry_run_over_running_vms_changes_nothing_and_tells_what_apply_does(town: Town) -> None:
    await up(town)
    await town.upload(MOVED)
    before, instances = await town.ledger.last_change(), await town.instances("alpha")
    grown = manifest("alpha", app(2))
    planned = await town.deploy(grown, dry=True)
    unchanged = await town.ledger.last_change() == before and await town.instances("alpha") == instances
    applied = await town.deploy(grown)

    assert unchanged
    told, done = ([each.address for each in one.granted.values()] for one in (planned, applied))
    assert sorted(told) == sorted(done) == ["172.20.6.2", "172.20.6.3"]


async def test_e17_a_dry_run_that_lets_instances_go_changes_nothing(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    before, instances = await town.ledger.last_change(), await town.instances("alpha")
    planned = await town.deploy(ONE, dry=True)

    assert [step.after is None for step in planned.steps] == [False, True]
    assert await town.ledger.last_change() == before
    assert await town.instances("alpha") == instances


async def test_e18_what_is_not_held_is_released_without_a_word_and_without_a_change(town: Town) -> None:
    name = await up(town)
    moving = await town.run(ONE)
    await report_vm.lose(town.ledger, "alpha", name)
    before = await town.ledger.last_change()
    again = await report_vm.lose(town.ledger, "alpha", name)
    freed = [
        *await report_vm.clean_up_orphan(town.ledger, "vm-of-nobody"),
        *await report_vm.abort(town.ledger, "alpha", moving.plan),
        *await report_vm.abort(town.ledger, "alpha", "no-plan"),
        *await report_vm.abort(town.ledger, "nobody", "no-plan"),
    ]

    assert again is not None
    assert freed == []
    assert await town.ledger.last_change() == before
    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_a_plan_that_comes_again_takes_over_what_the_first_reserved(town: Town) -> None:
    await up(town)
    await town.upload(MOVED)
    wanted = manifest("alpha", app(), app(name="more"))
    first = await town.deploy(wanted)
    second = await town.deploy(wanted)
    of_first = await report_vm.abort(town.ledger, "alpha", first.plan)
    of_second = await report_vm.abort(town.ledger, "alpha", second.plan)

    assert (second.granted, of_first) == ({}, [])
    assert sorted(each.address for each in of_second) == ["172.20.6.2", "172.20.6.3"]
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}}
    assert await town.parting("alpha") == {}


async def test_who_leaves_by_a_plan_that_comes_again_stays_when_that_is_aborted(town: Town) -> None:
    await up(town, manifest("alpha", app(2)))
    await town.deploy(ONE)
    again = await town.deploy(ONE)
    await report_vm.abort(town.ledger, "alpha", again.plan)
    whole = await town.deploy(manifest("alpha", app(2)))

    assert not whole.changes
    assert [each.leaving for each in await town.instances("alpha")] == [False, False]


async def test_aborting_a_plan_frees_exactly_what_it_reserved(town: Town) -> None:
    await up(town)
    await town.upload(MOVED)
    moving = await town.deploy(manifest("alpha", app(), app(name="more")))
    freed = await report_vm.abort(town.ledger, "alpha", moving.plan)
    again = await report_vm.abort(town.ledger, "alpha", moving.plan)

    assert sorted(each.address for each in freed) == ["172.20.6.2", "172.20.6.3"]
    assert again == []
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}}
