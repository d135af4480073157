"""Reports that come late or twice: what a plan after them wants is neither taken for done nor freed."""

import pytest

from tenure.doors.deployments import finishing
from tenure.doors.deployments.recreating import recreate
from tenure.kernel.errors import Conflict
from tests.doors.deployments.conformance.town import Town, app, config, lab, manifest


async def moving(town: Town) -> str:
    """Deploy an instance, and a plan by which it is to move from .2 to .3; return the plan."""
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    return (await town.deploy(manifest("alpha", app()))).plan


async def test_a_repeated_report_of_the_vm_that_is_to_be_replaced_frees_nothing(town: Town) -> None:
    await moving(town)
    before = await town.instances("alpha")
    await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-1")

    assert await town.instances("alpha") == before
    assert await town.parting("alpha") == {"app/0": {"lab": "172.20.5.2"}}


async def test_a_vm_that_was_changed_in_place_is_reported_with_its_plan(town: Town) -> None:
    plan = await moving(town)
    made = await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=plan)

    assert (made.plan, made.vm) == (None, "vm-1")
    assert await town.tails("alpha") == {"app/0": ".3"}
    assert await town.parting("alpha") == {}


async def test_a_repeated_report_still_tells_what_the_iaas_picked(town: Town) -> None:
    await town.upload(config(more=[{"name": "edge", "type": "dynamic"}]))
    await town.run(manifest("alpha", app(network="edge")))
    await recreate(town.ledger, "alpha")
    told = await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-1", hints={"edge": "10.9.9.9"})

    assert told.hints == {"edge": "10.9.9.9"}
    assert told.plan is not None


async def test_where_two_plans_wanted_other_addresses_a_vm_says_which_it_was_made_for(town: Town) -> None:
    await moving(town)
    await town.upload(config(lab(reserved=["172.20.5.2-172.20.5.3"])))
    later = await town.deploy(manifest("alpha", app()))
    before = await town.instances("alpha")
    with pytest.raises(Conflict, match=f"waits for a VM of plan {later.plan}, and an earlier plan wanted other"):
        await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-new")
    assert await town.instances("alpha") == before

    await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=later.plan)

    assert await town.tails("alpha") == {"app/0": ".4"}
    assert [each.overtakes for each in await town.instances("alpha")] == [False]


async def test_it_need_not_where_both_plans_want_the_same(town: Town) -> None:
    await moving(town)
    await town.deploy(manifest("alpha", app(2)))
    await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert (await town.tails("alpha"))["app/0"] == ".3"


async def test_it_need_not_where_the_first_was_reported_as_failed(town: Town) -> None:
    await moving(town)
    await finishing.fail(town.ledger, "alpha", "app/0")
    await finishing.fail(town.ledger, "alpha", "app/0")
    await town.upload(config(lab(reserved=["172.20.5.2-172.20.5.3"])))
    await town.deploy(manifest("alpha", app()))
    await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert await town.tails("alpha") == {"app/0": ".4"}


async def test_a_second_vm_for_one_instance_is_refused(town: Town) -> None:
    """Whoever made it too has it on the same address, and is to delete it."""
    await town.upload(config())
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=plan)
    for meant in (None, plan):
        with pytest.raises(Conflict):
            await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-2", plan=meant)

    assert [each.vm for each in await town.instances("alpha")] == ["vm-1"]
