"""A plan that is taken back before anything of it was done: the deployment is as if the plan never was."""

import pytest

from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.state.instance_state import load_deployment
from tenure.integrations.bosh.verbs import compile_packages, report_vm
from tenure.kernel.errors import Conflict, NotFound
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest


async def test_after_its_first_plan_there_is_no_deployment(town: Town) -> None:
    door = Deployments(town.ledger)
    await town.upload(config())
    deployed = await town.deploy(manifest("alpha", app(2)))
    freed = await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert [each.address for each in freed] == ["172.20.5.2", "172.20.5.3"]
    assert await door.every() == []
    with pytest.raises(NotFound):
        await door.standing("alpha")
    with pytest.raises(NotFound):
        await report_vm.delete(town.ledger, "alpha")
    assert await report_vm.abort(town.ledger, "alpha", deployed.plan) == []


async def test_without_a_cloud_config_too(town: Town) -> None:
    deployed = await Fleet(town, "alpha").deploy(own("alpha", app(2)))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)
    await town.upload(config())

    assert await load_deployment(town.ledger, "alpha") is None
    [subnet] = (await town.ledger.network("lab")).subnets
    assert not [each for each in subnet.reserved if "deployment" in each.notes.labels]


async def test_what_was_kept_for_it_without_a_cloud_config_is_free(town: Town) -> None:
    deployed = await Fleet(town, "alpha").deploy(own("alpha", app(2)))
    await town.upload(config())
    await report_vm.abort(town.ledger, "alpha", deployed.plan)
    await town.run(manifest("beta", app()))

    assert await town.tails("beta") == {"app/0": ".2"}


async def test_a_later_plan_leaves_the_manifest_and_the_networks_of_before(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    before = await load_deployment(town.ledger, "alpha")
    await town.upload(config(lab(gateway="172.20.5.14")))
    deployed = await town.deploy(manifest("alpha", app(3)))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    after = await load_deployment(town.ledger, "alpha")
    assert before is not None
    assert after is not None
    assert (after.manifest, after.snapshot, after.plan) == (before.manifest, before.snapshot, before.plan)
    standing = await Deployments(town.ledger).standing("alpha")
    assert [(each.index, each.plan) for each in standing.instances] == [(0, None)]
    assert not standing.up_to_date


async def test_a_plan_that_took_over_another_goes_back_to_before_both(town: Town) -> None:
    await town.upload(config())
    await town.deploy(manifest("alpha", app()))
    later = await town.deploy(manifest("alpha", app(2)))
    await report_vm.abort(town.ledger, "alpha", later.plan)

    assert await load_deployment(town.ledger, "alpha") is None
    assert await town.ledger.holdings("lab") == []


async def test_where_a_part_was_done_the_deployment_stays_as_planned(town: Town) -> None:
    await town.upload(config())
    deployed = await town.deploy(manifest("alpha", app(2)))
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=deployed.plan)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    known = await load_deployment(town.ledger, "alpha")
    assert known is not None
    assert known.manifest == manifest("alpha", app(2))
    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_a_plan_with_nothing_to_do_is_done(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    same = manifest("alpha", {**app(), "env": {"note": "no address"}})
    await town.deploy(same)
    later = await town.deploy(manifest("alpha", app(2)))
    await report_vm.abort(town.ledger, "alpha", later.plan)

    known = await load_deployment(town.ledger, "alpha")
    assert known is not None
    assert known.manifest == same


async def test_its_compile_ends_with_it(town: Town) -> None:
    await town.upload(config(compilation={"workers": 2, "network": "lab"}))
    deployed = await town.deploy(manifest("alpha", app()))
    await compile_packages.begin(town.ledger, "alpha", deployed.plan)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert await town.ledger.holdings("lab") == []
    await town.run(manifest("alpha", app()))
    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_the_vm_of_a_plan_that_was_taken_back_is_refused(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    deployed = await town.deploy(manifest("alpha", app(2)))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)
    before = await town.instances("alpha")
    with pytest.raises(NotFound):
        await report_vm.commit(town.ledger, "alpha", "app/1", vm="vm-new", plan=deployed.plan)
    with pytest.raises(Conflict, match=f"does not wait for a VM of plan {deployed.plan}"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=deployed.plan)
    with pytest.raises(Conflict, match="has VM 'vm-1' and waits for no other"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert await town.instances("alpha") == before
