"""A11, and the way from the in-memory mode to cloud configs: what is kept for whom, and what VMs bring along."""

import pytest

from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tenure.integrations.bosh.state.instance_state import load_deployment
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

WIDE = {"range": "172.20.5.0/27", "gateway": "172.20.5.30"}
"""Twice as large as alpha's network: .16 and above are nobody's."""


@pytest.fixture
async def alpha(town: Town) -> Fleet:
    """Give alpha, deployed with two VMs and without a cloud config."""
    fleet = Fleet(town, "alpha")
    await fleet.run(own("alpha", app(2)))
    return fleet


async def kept(town: Town, network: str = "lab") -> dict[str, str]:
    """Return what is kept for deployments without a cloud config: ranges with their reasons."""
    found = await town.ledger.network(network)
    return {
        str(each.range): each.reason
        for subnet in found.subnets
        for each in subnet.reserved
        if "deployment" in each.notes.labels
    }


async def test_a11_others_skip_the_whole_range_of_a_deployment_without_a_cloud_config(town: Town, alpha: Fleet) -> None:
    await town.upload(config(WIDE))
    await town.run(manifest("beta", app(2)))

    assert await town.tails("beta") == {"app/0": ".16", "app/1": ".17"}
    assert await kept(town) == {"172.20.5.1-172.20.5.15": "deployment 'alpha' has no cloud config"}


async def test_a11_what_alpha_reserved_for_others_and_what_beta_names_can_be_had(town: Town) -> None:
    alpha = Fleet(town, "alpha")
    await alpha.run(own("alpha", app(), subnets=(lab(reserved=["172.20.5.4-172.20.5.5"]),)))
    await town.upload(config({**WIDE, "static": ["172.20.5.10"]}))
    await town.run(manifest("beta", app(3), app(name="db", static_ips=["172.20.5.10"])))

    assert await town.tails("beta") == {"app/0": ".4", "app/1": ".5", "app/2": ".16", "db/0": ".10"}


async def test_a11_where_nothing_else_is_left_there_is_no_room(town: Town, alpha: Fleet) -> None:
    await town.upload(config())
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("beta", app()))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY


async def test_a11_networks_under_other_names_are_skipped_too(town: Town, alpha: Fleet) -> None:
    twin = {"name": "hub", "type": "manual", "subnets": [WIDE]}
    await town.upload(config({"range": "10.0.0.0/28", "gateway": "10.0.0.1"}, more=[twin]))
    await town.run(manifest("beta", app(network="hub")))

    assert await town.has("beta") == {"app/0": {"hub": "172.20.5.16"}}
    assert await kept(town) == {}


async def test_a11_a_later_upload_keeps_what_is_kept(town: Town, alpha: Fleet) -> None:
    await town.upload(config(WIDE))
    again = await town.upload(config(WIDE))
    assert again.changed == []
    await town.upload(config({**WIDE, "static": ["172.20.5.2"]}))

    assert list(await kept(town)) == ["172.20.5.1", "172.20.5.3-172.20.5.15"]


async def test_a11_nothing_is_kept_for_a_deployment_that_is_deleted(town: Town, alpha: Fleet) -> None:
    gamma = Fleet(town, "gamma")
    await gamma.run(own("gamma", app(), subnets=(lab(reserved=["172.20.5.0-172.20.5.7"]),)))
    await town.upload(config(WIDE))
    for each in await report_vm.delete(town.ledger, "alpha"):
        await report_vm.lose(town.ledger, "alpha", each.name)
    assert list(await kept(town)) == ["172.20.5.1-172.20.5.15"]
    await report_vm.delete(town.ledger, "alpha")

    assert await kept(town) == {"172.20.5.8-172.20.5.15": "deployment 'gamma' has no cloud config"}


async def test_the_first_deploy_with_a_cloud_config_reserves_what_vms_carry(town: Town, alpha: Fleet) -> None:
    await town.upload(config(WIDE))
    deployed = await alpha.run(manifest("alpha", app(3)))

    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3", "app/2": ".1"}
    assert [held.address for held in deployed.granted.values()] == ["172.20.5.1"]
    assert await kept(town) == {}
    await town.run(manifest("beta", app()))
    assert await town.tails("beta") == {"app/0": ".4"}


async def test_if_nothing_changes_by_a_cloud_config_no_vm_is_touched(town: Town, alpha: Fleet) -> None:
    await town.upload(config())
    deployed = await alpha.run(manifest("alpha", app(2)))
    again = await town.deploy(manifest("alpha", app(2)))

    assert (deployed.changes, again.changes) == (False, False)
    assert [held.carrier for each in await town.instances("alpha") for held in each.holdings] == [
        said["vm"] for said in alpha.vms.values()
    ]


async def test_vms_must_be_asked_at_the_first_deploy_with_a_cloud_config(town: Town, alpha: Fleet) -> None:
    await town.upload(config(WIDE))
    with pytest.raises(Refused, match="were not asked"):
        await town.deploy(manifest("alpha", app(2)))
    alpha.vms[await alpha.name_of("app", 1)] = None
    with pytest.raises(Refused, match="did not answer"):
        await alpha.deploy(manifest("alpha", app(2)))
    assert list(await kept(town)) == ["172.20.5.1-172.20.5.15"]

    await alpha.run(manifest("alpha", app(2)), fix=True)

    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}


async def test_once_there_is_a_cloud_config_networks_in_a_manifest_are_refused(town: Town, alpha: Fleet) -> None:
    await town.upload(config(WIDE))
    with pytest.raises(Rejected) as caught:
        await alpha.deploy(own("alpha", app(2)))
    assert [fault.kind for fault in caught.value.faults] == [BoshErrorKind.V1_DEPRECATED_NETWORKS]
    await alpha.run(manifest("alpha", app(2)))
    with pytest.raises(Rejected) as caught:
        await alpha.deploy(own("alpha", app(2)))

    assert [fault.kind.value for fault in caught.value.faults] == [140026]


async def test_an_address_in_no_network_of_the_cloud_config_is_held_until_the_vm_is_replaced(
    town: Town, alpha: Fleet
) -> None:
    await town.upload(config({"range": "10.0.0.0/28", "gateway": "10.0.0.1"}, name="hub"))
    deployed = await alpha.deploy(manifest("alpha", app(2, network="hub")))
    assert await town.parting("alpha") == {"app/0": {"lab": "172.20.5.2"}, "app/1": {"lab": "172.20.5.3"}}
    await town.finish(deployed)

    assert await town.has("alpha") == {"app/0": {"hub": "10.0.0.2"}, "app/1": {"hub": "10.0.0.3"}}
    assert await town.parting("alpha") == {}
    await town.upload(config({"range": "10.0.0.0/28", "gateway": "10.0.0.1"}, name="hub"))
    assert [each.name for each in await town.ledger.networks()] == ["hub"]


async def test_an_address_that_the_cloud_config_has_under_another_name_stays(town: Town, alpha: Fleet) -> None:
    await town.upload(config(name="hub"))
    deployed = await alpha.run(manifest("alpha", app(2, network="hub")))

    assert deployed.granted == {}
    assert await town.has("alpha") == {"app/0": {"hub": "172.20.5.2"}, "app/1": {"hub": "172.20.5.3"}}
    assert [each.name for each in await town.ledger.networks()] == ["hub"]


async def test_an_address_that_the_cloud_config_reserves_is_held_until_the_vm_is_replaced(
    town: Town, alpha: Fleet
) -> None:
    await town.upload(config(lab(gateway="172.20.5.2")))
    await alpha.run(manifest("alpha", app(2)))

    assert await town.tails("alpha") == {"app/0": ".1", "app/1": ".3"}


async def test_a_vm_on_an_address_that_another_deployment_has_is_refused(town: Town, alpha: Fleet) -> None:
    """Beta names it, though alpha's VM has it: what is listed as static can be had."""
    await town.upload(config({**WIDE, "static": ["172.20.5.2"]}))
    await town.run(manifest("beta", app(static_ips=["172.20.5.2"])))
    [holder] = await town.instances("beta")
    with pytest.raises(Refused) as caught:
        await alpha.deploy(manifest("alpha", app(2)))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert caught.value.message == (
        f"Failed to reserve IP '172.20.5.2/32' for instance '{await alpha.name_of('app', 0)} (0)': "
        f"already reserved by instance '{holder.name}' from deployment 'beta'"
    )
    assert await town.has("alpha") == {"app/0": {}, "app/1": {}}


async def test_two_who_come_from_the_in_memory_mode_on_one_address_are_told(town: Town, alpha: Fleet) -> None:
    gamma = Fleet(town, "gamma")
    await gamma.run(own("gamma", app()))
    await town.upload(config())
    await alpha.run(manifest("alpha", app(2)))
    with pytest.raises(Refused, match=r"already reserved by instance '\S+' from deployment 'alpha'"):
        await gamma.deploy(manifest("gamma", app()))

    gamma.vms[await gamma.name_of("app", 0)] = None
    await gamma.run(manifest("gamma", app()), fix=True)

    assert await town.tails("gamma") == {"app/0": ".4"}


async def test_a_plan_for_the_first_deploy_changes_nothing(town: Town, alpha: Fleet) -> None:
    await town.upload(config(WIDE))
    before = await town.ledger.last_change()
    planned = await alpha.deploy(manifest("alpha", app(3)), dry=True)

    assert [held.address for held in planned.granted.values()] == ["172.20.5.1"]
    assert await town.ledger.last_change() == before


async def test_what_is_not_full_by_alphas_own_range_serves_alpha(town: Town, alpha: Fleet) -> None:
    """The refusal names whom the last address is missing for, with alpha's own range given back to it."""
    await town.upload(config())
    with pytest.raises(Refused) as caught:
        await alpha.deploy(manifest("alpha", app(14)))

    assert caught.value.message.endswith("(13)' for manual network 'lab': no more available")


async def test_hints_and_silence_are_heard_with_a_cloud_config_too(town: Town) -> None:
    beta = Fleet(town, "beta")
    await town.upload(config(more=[{"name": "edge", "type": "dynamic"}]))
    on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "edge"}]
    await beta.run(manifest("beta", app(2, networks=on)))
    first, second = await beta.name_of("app", 0), await beta.name_of("app", 1)
    beta.vms[first]["networks"]["edge"] = {"ip": "10.9.9.9"}
    beta.vms[second] = None
    with pytest.raises(Refused, match="did not answer"):
        await beta.deploy(manifest("beta", app(2, networks=on)))
    deployed = await beta.deploy(manifest("beta", app(2, networks=on)), fix=True)

    assert [step.instance.name for step in deployed.steps if step.instance.plan] == [second]
    told = {each.name: (each.vm, each.hints) for each in await town.instances("beta")}
    assert told == {first: (beta.vms[first]["vm"], {"edge": "10.9.9.9"}), second: ("vm-2", {})}
    assert await town.tails("beta") == {"app/0": ".2", "app/1": ".3"}


async def test_the_door_takes_what_vms_say(town: Town, alpha: Fleet) -> None:
    door = Deployments(town.ledger)
    await door.upload_config(config(WIDE))
    planned = await door.plan(manifest("alpha", app(2)), vm_state=alpha.state())
    await door.apply(manifest("alpha", app(2)), vm_state=alpha.state())

    known = await load_deployment(town.ledger, "alpha")
    assert known is not None
    assert known.snapshot is not None
    assert [step.instance.vm for step in planned.steps] == [said["vm"] for said in alpha.vms.values()]


async def test_a_vm_that_speaks_for_two_instances_is_refused_and_nothing_is_changed(town: Town, alpha: Fleet) -> None:
    await town.upload(config())
    one, other = [await alpha.name_of("app", number) for number in (0, 1)]
    told = alpha.vms | {other: {**alpha.vms[other], "vm": alpha.vms[one]["vm"]}}
    before = await town.instances("alpha")
    with pytest.raises(Rejected) as caught:
        await town.deploy(manifest("alpha", app(2)), vm_state=Fleet(town, "alpha", told).state())

    [fault] = caught.value.faults
    vm = told[one]["vm"]
    assert fault.message == f"VM '{vm}' is told of as that of '{one}' and of '{other}': a VM is one instance's"
    assert await town.instances("alpha") == before
    assert await town.ledger.holdings("lab") == []
