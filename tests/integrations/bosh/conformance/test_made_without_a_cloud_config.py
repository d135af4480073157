"""VMs in the making without a cloud config: what they may come up on is theirs, also when the first one comes."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.views.result_documents import instance_document, plan_document
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest

NAMED = lab(static=["172.20.5.10-172.20.5.12"])


@pytest.fixture
def alpha(town: Town) -> Fleet:
    """Give alpha, which has no VMs yet."""
    return Fleet(town, "alpha")


def static(tail: int) -> str:
    """Write a manifest whose instance asks for an address by name."""
    return own("alpha", app(static_ips=[f"172.20.5.{tail}"]), subnets=(NAMED,))


async def test_a_repeated_deploy_takes_the_vm_of_the_first_over(town: Town, alpha: Fleet) -> None:
    for _ in range(2):
        await alpha.deploy(own("alpha", app()))
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1")

    assert (made.made_with or {})["lab"]["ip"] == "172.20.5.2"


async def test_so_does_the_first_with_a_cloud_config(town: Town, alpha: Fleet) -> None:
    await alpha.deploy(own("alpha", app()))
    await town.upload(config())
    await alpha.deploy(manifest("alpha", app()))
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1")

    assert [(each.address, each.carrier) for each in made.holdings] == [("172.20.5.2", "vm-1")]


async def test_nobody_else_gets_what_a_vm_may_come_up_on(town: Town, alpha: Fleet) -> None:
    first = await alpha.deploy(own("alpha", app()))
    await alpha.deploy(own("alpha", app(name="other")))
    assert {each.group: each.remembered for each in await town.instances("alpha")}["other"] == {"lab": "172.20.5.3"}
    [leaves] = [instance_document(each) for each in await town.instances("alpha") if each.leaving]
    assert leaves["earlier"] == [{"plan": first.plan, "addresses": ["172.20.5.2"]}]

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=first.plan)
    assert [each.group for each in await town.instances("alpha")] == ["other"]


async def test_nor_of_who_has_one_and_moves(town: Town, alpha: Fleet) -> None:
    await alpha.run(static(10))
    moved = await alpha.deploy(static(11))
    both = own("alpha", app(static_ips=["172.20.5.10"]), app(name="x", static_ips=["172.20.5.11"]), subnets=(NAMED,))
    with pytest.raises(Refused) as caught:
        await alpha.deploy(both)
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    await alpha.deploy(static(10))
    [shown] = [instance_document(each) for each in await town.instances("alpha")]
    assert shown["earlier"] == [{"plan": moved.plan, "addresses": ["172.20.5.11"]}]
    assert not (await alpha.deploy(static(10))).changes
    with pytest.raises(Refused):
        await alpha.deploy(both)

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=moved.plan)
    await alpha.run(both)
    assert await alpha.tails() == {"app/0": ".10", "x/0": ".11"}


async def test_nor_another_deployment_when_the_first_cloud_config_comes(town: Town, alpha: Fleet) -> None:
    first = await alpha.deploy(static(10))
    await town.upload(config(NAMED))
    await alpha.deploy(manifest("alpha", app()))
    beta = manifest("beta", app(static_ips=["172.20.5.10"]))
    with pytest.raises(Refused) as caught:
        await town.deploy(beta)
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=first.plan)
    await town.run(beta)
    assert await town.tails("beta") == {"app/0": ".10"}


async def test_also_where_it_has_a_vm_and_two_more_are_made(town: Town, alpha: Fleet) -> None:
    await alpha.run(static(10))
    for tail in (11, 12):
        await alpha.deploy(static(tail))
    await town.upload(config(NAMED))
    last = await alpha.deploy(manifest("alpha", app(static_ips=["172.20.5.12"])))
    assert await town.parting("alpha") == {"app/0": {"lab": "172.20.5.11"}}
    assert len(await town.ledger.holdings("lab")) == 3

    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2", plan=last.plan)
    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.12"]


async def test_what_another_has_by_then_is_his(town: Town, alpha: Fleet) -> None:
    await alpha.deploy(static(10))
    await town.upload(config(NAMED))
    await town.run(manifest("beta", app(static_ips=["172.20.5.10"])))
    await alpha.deploy(manifest("alpha", app()))

    assert await town.tails("beta") == {"app/0": ".10"}
    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_a_silent_vm_keeps_its_address_when_the_first_cloud_config_comes(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app()))
    await town.upload(config())
    alpha.vms = {await alpha.name_of("app", 0): None}
    fixed = await alpha.deploy(manifest("alpha", app(name="other"), app()), fix=True)
    steps = {step["group"]: step for step in plan_document(fixed, applied=True)["instances"]}
    assert (steps["app"]["vm"], steps["app"]["action"]) == ("vm-1", "recreated")
    assert await town.tails("alpha") == {"app/0": ".2", "other/0": ".3"}

    await report_vm.abort(town.ledger, "alpha", fixed.plan)
    assert [(each.group, each.vm) for each in await town.instances("alpha")] == [("app", "vm-1")]


async def test_two_that_are_made_on_one_address_are_told_of_each_by_itself(town: Town, alpha: Fleet) -> None:
    def by(*groups: Document, gateway: str = "172.20.5.1") -> str:
        return own("alpha", *groups, subnets=({**NAMED, "gateway": gateway},))

    asks = app(static_ips=["172.20.5.10"])
    first, later = await alpha.deploy(by(asks)), await alpha.deploy(by(asks, gateway="172.20.5.14"))
    await alpha.deploy(by(app(name="other")))
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=first.plan)
    with pytest.raises(Refused):
        await alpha.deploy(by(app(name="b", static_ips=["172.20.5.10"])))

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=later.plan)
    await alpha.deploy(by(app(name="b", static_ips=["172.20.5.10"])))


async def test_vips_of_earlier_vms_are_theirs(town: Town, alpha: Fleet) -> None:
    more = ({"name": "public", "type": "vip"},)
    on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "public", "static_ips": ["203.0.113.9"]}]
    await alpha.deploy(own("alpha", app(networks=on), more=more))
    await alpha.deploy(own("alpha", app(), more=more))
    with pytest.raises(Refused) as caught:
        await alpha.deploy(own("alpha", app(), app(name="b", networks=on), more=more))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE


async def test_where_no_network_has_it_it_gets_a_block_of_its_own(town: Town, alpha: Fleet) -> None:
    await alpha.deploy(own("alpha", app()))
    hub = {"range": "172.20.7.0/28", "gateway": "172.20.7.1"}
    await town.upload(config(hub, name="hub"))
    await alpha.deploy(manifest("alpha", app(network="hub")))
    both = config(hub, name="hub", more=[{"name": "lab", "type": "manual", "subnets": [lab()]}])
    await town.upload(both)
    await town.run(manifest("beta", app()))

    assert await town.tails("beta") == {"app/0": ".3"}


async def test_who_left_before_the_first_cloud_config_is_gone_when_its_deploy_is_taken_back(
    town: Town, alpha: Fleet
) -> None:
    await alpha.deploy(own("alpha", app()))
    await alpha.deploy(own("alpha"))
    await town.upload(config())
    deployed = await alpha.deploy(manifest("alpha", app(name="other")))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert (await town.instances("alpha"), await town.ledger.holdings("lab")) == ([], [])
