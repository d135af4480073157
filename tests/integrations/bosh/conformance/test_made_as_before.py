"""A plan that is taken back: instances are what they were before, and their VMs can be made again as they were."""

import pytest

from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.state.instance_state import DeploymentInstance, load_deployment
from tenure.integrations.bosh.verbs import cloud_check, report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tenure.integrations.bosh.views.result_documents import settings
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

OTHER = {"name": "other", "type": "manual", "subnets": [{"range": "10.9.0.0/28", "gateway": "10.9.0.1"}]}
TWO = app(networks=[{"name": "lab", "default": ["dns", "gateway"]}, {"name": "other"}])
RENAMED = app(2, name="web", migrated_from=[{"name": "app"}])


async def made_again(town: Town, ident: str, vm: str) -> DeploymentInstance:
    """Let an instance lose its VM and get another."""
    lost = await Deployments(town.ledger).instance("alpha", ident)
    await cloud_check.recreate(town.ledger, "alpha", ident, vm=lost.vm or "")
    return await report_vm.commit(town.ledger, "alpha", ident, vm=vm)


async def test_a_network_that_a_plan_adds_is_not_asked_for_any_more(town: Town) -> None:
    await town.upload(config(more=[OTHER]))
    await town.run(manifest("alpha", app()))
    [before] = await town.instances("alpha")
    plan = (await town.deploy(manifest("alpha", TWO))).plan
    await report_vm.abort(town.ledger, "alpha", plan)
    [after] = await town.instances("alpha")
    made = await made_again(town, "app/0", "vm-new")

    assert after.networks == before.networks
    assert (made.vm, made.made_with) == ("vm-new", before.made_with)


@pytest.mark.parametrize("anew", [True, False])
async def test_instances_have_the_names_of_before(town: Town, anew: bool) -> None:
    """Also those that need no VM for their new name: another one does, so there is a plan to take back."""
    await town.upload(config())
    await town.run(manifest("alpha", app(2, persistent_disk=1024)))
    before = await town.instances("alpha")
    plan = (await town.deploy(manifest("alpha", RENAMED, app(name="new")), recreate=anew)).plan
    assert sorted(f"{each.group}/{each.index}" for each in await town.instances("alpha")) == ["new/0", "web/0", "web/1"]
    await report_vm.abort(town.ledger, "alpha", plan)
    after = await town.instances("alpha")

    assert [(each.name, each.index, each.disk) for each in after] == [
        (each.name, each.index, each.disk) for each in before
    ]
    assert not (await town.deploy(manifest("alpha", app(2, persistent_disk=1024)))).changes


async def test_two_plans_are_taken_back_to_before_both(town: Town) -> None:
    await town.upload(config(more=[OTHER]))
    await town.run(manifest("alpha", app()))
    [before] = await town.instances("alpha")
    await town.deploy(manifest("alpha", TWO))
    later = await town.deploy(manifest("alpha", {**TWO, "name": "web", "migrated_from": [{"name": "app"}]}))
    await report_vm.abort(town.ledger, "alpha", later.plan)
    [after] = await town.instances("alpha")

    assert (after.name, after.networks) == (before.name, before.networks)


async def test_without_a_cloud_config_too(town: Town) -> None:
    fleet = Fleet(town, "alpha")
    await fleet.run(own("alpha", app(2)))
    before = await town.instances("alpha")
    deployed = await fleet.deploy(own("alpha", RENAMED), recreate=True)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert [each.name for each in await town.instances("alpha")] == [each.name for each in before]


async def half_done(town: Town) -> str:
    """Move a range; make the VM of one of two instances, and take the plan back for the other."""
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await town.upload(config({"range": "172.20.6.0/28", "gateway": "172.20.6.1"}, name="moved"))
    text = manifest("alpha", app(2, network="moved"))
    deployed = await town.deploy(text)
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-8", plan=deployed.plan)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)
    return text


async def test_where_a_part_was_done_the_others_are_made_with_the_networks_of_before(town: Town) -> None:
    text = await half_done(town)
    standing = await Deployments(town.ledger).standing("alpha")
    told = [settings(each, standing.config_of(each)) for each in standing.instances]
    explained = await Deployments(town.ledger).why("alpha", "app/1")
    made = await made_again(town, "app/1", "vm-9")

    assert [{name: said["ip"] for name, said in (each or {}).items()} for each in told] == [
        {"moved": "172.20.6.2"},
        {"lab": "172.20.5.3"},
    ]
    assert [each.subnet for each in explained.reasons] == ["172.20.5.0/28"]
    assert (made.vm, made.made_with) == ("vm-9", told[1])
    assert not standing.instances[0].snapshot

    await town.run(text)
    assert [each.snapshot for each in await town.instances("alpha")] == [None, None]
    assert await town.has("alpha") == {"app/0": {"moved": "172.20.6.2"}, "app/1": {"moved": "172.20.6.3"}}


async def test_they_are_made_anew_on_the_same_addresses(town: Town) -> None:
    await half_done(town)
    await recreate(town.ledger, "alpha")
    made = await report_vm.commit(town.ledger, "alpha", "app/1", vm="vm-9")

    assert (made.vm, [each.address for each in made.wanted]) == ("vm-9", ["172.20.5.3"])


async def test_who_was_to_leave_stays_with_the_networks_of_before(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await town.upload(config(lab(gateway="172.20.5.14")))
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-8", plan=plan)
    await report_vm.abort(town.ledger, "alpha", plan)
    made = await made_again(town, "app/1", "vm-9")

    assert made.made_with is not None
    assert made.made_with["lab"]["gateway"] == "172.20.5.1"
    known = await load_deployment(town.ledger, "alpha")
    assert known is not None
    assert known.snapshot != made.snapshot
