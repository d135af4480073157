"""A7 – A10: deployments without any cloud config, whose networks are their own and whose VMs know their addresses."""

import asyncio

import pytest

import tenure
from tenure.integrations.bosh.cloud_config import configs, legacy_deployments
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tenure.integrations.bosh.running_vms.vm_state import read_vm_state
from tenure.integrations.bosh.state.instance_state import load_deployment
from tenure.integrations.bosh.verbs import deploy_without_cloud_config, report_vm
from tenure.integrations.bosh.verbs.deploy import deploy
from tenure.integrations.bosh.views.result_documents import instance_document
from tenure.kernel.holdings.holding_model import Paper
from tenure.service.ledger.async_ledger import AsyncLedger
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

SMALL = (lab(reserved=["172.20.5.5-172.20.5.14"]),)
"""A pool of .2 to .4."""


@pytest.fixture
def alpha(town: Town) -> Fleet:
    """Give alpha, which has no VMs yet."""
    return Fleet(town, "alpha")


async def test_a7_deployments_do_not_share_addresses(town: Town, alpha: Fleet) -> None:
    beta = Fleet(town, "beta")
    await alpha.run(own("alpha", app()))
    await beta.run(own("beta", app()))

    assert (await alpha.tails(), await beta.tails()) == ({"app/0": ".2"}, {"app/0": ".2"})


async def test_no_address_is_kept_in_the_ledger(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))

    assert await town.ledger.networks() == []
    assert [each.holdings for each in await town.instances("alpha")] == [(), ()]
    assert [each.plan for each in await town.instances("alpha")] == [None, None]


async def test_an_instance_tells_the_addresses_that_its_vm_has_or_is_to_have(town: Town, alpha: Fleet) -> None:
    deployed = await alpha.deploy(own("alpha", app()))
    [waiting] = await town.instances("alpha")
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1")
    [made] = await town.instances("alpha")
    lost = await report_vm.lose(town.ledger, "alpha", "app/0")

    told: dict[str, object] = {"network": "lab", "address": "172.20.5.2", "state": "remembered", "since": None}
    assert instance_document(waiting)["addresses"] == [{**told, "vm": None, "plan": deployed.plan}]
    assert instance_document(made)["addresses"] == [{**told, "vm": "vm-1", "plan": None}]
    assert lost is not None
    assert instance_document(lost)["addresses"] == []


async def test_deploying_again_changes_nothing(town: Town, alpha: Fleet) -> None:
    first = await alpha.run(own("alpha", app(2)))
    before, last = await town.instances("alpha"), await town.ledger.last_change()
    again = await alpha.deploy(own("alpha", app(2)))

    assert (again.changes, again.plan) == (False, first.plan)
    assert await town.instances("alpha") == before
    assert await town.ledger.last_change() == last


async def test_what_vms_carry_is_reserved_before_anything_new(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))
    alpha.vms[await alpha.name_of("app", 1)]["networks"]["lab"]["ip"] = "172.20.5.4"
    deployed = await alpha.run(own("alpha", app(4)))

    assert sorted(held.address for held in deployed.granted.values()) == ["172.20.5.3", "172.20.5.5"]


async def test_a8_an_address_that_two_vms_report_is_in_use(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))
    first, second = await alpha.name_of("app", 0), await alpha.name_of("app", 1)
    alpha.vms[second]["networks"]["lab"]["ip"] = "172.20.5.2"
    before = await town.instances("alpha")
    with pytest.raises(Refused) as caught:
        await alpha.deploy(own("alpha", app(3)))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert caught.value.message == (
        f"Failed to reserve IP '172.20.5.2/32' for instance '{second} (1)': "
        f"already reserved by instance '{first}' from deployment 'alpha'"
    )
    assert await town.instances("alpha") == before


async def test_a8_also_where_no_subnet_has_the_address(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))
    for said in alpha.vms.values():
        said["networks"]["lab"]["ip"] = "192.168.9.9"
    with pytest.raises(Refused) as caught:
        await alpha.deploy(own("alpha", app(2)))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE


async def test_a8_a_static_ip_that_another_instance_has_is_in_use(alpha: Fleet) -> None:
    subnets = (lab(static=["172.20.5.10-172.20.5.11"]),)
    one, other = ["172.20.5.10"], ["172.20.5.11"]
    await alpha.run(own("alpha", app(static_ips=one), app(name="db", static_ips=other), subnets=subnets))
    with pytest.raises(Refused) as caught:
        await alpha.deploy(own("alpha", app(static_ips=other), app(name="db", static_ips=one), subnets=subnets))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert caught.value.message.endswith(f"'{await alpha.name_of('db', 0)}' from deployment 'alpha'")


async def test_a10_what_was_just_freed_is_given_last(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(name="old"), app(), subnets=SMALL))
    assert await alpha.tails() == {"old/0": ".2", "app/0": ".3"}
    await alpha.run(own("alpha", app(), subnets=SMALL))
    await alpha.run(own("alpha", app(2), subnets=SMALL))
    assert await alpha.tails() == {"app/0": ".3", "app/1": ".4"}

    await alpha.run(own("alpha", app(3), subnets=SMALL))

    assert await alpha.tails() == {"app/0": ".3", "app/1": ".4", "app/2": ".2"}


async def test_a10_in_one_deploy_too_what_was_just_freed_comes_after_all_else(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(name="old"), app(), subnets=SMALL))
    await alpha.run(own("alpha", app(), subnets=SMALL))
    deployed = await alpha.run(own("alpha", app(3), subnets=SMALL))

    new = [step.instance.uuid for step in deployed.steps if step.before is None]
    assert [deployed.granted[uuid, "lab"].address for uuid in new] == ["172.20.5.4", "172.20.5.2"]


async def test_a10_what_was_just_freed_may_be_asked_for_by_name(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(name="old"), app(), subnets=SMALL))
    await alpha.run(own("alpha", app(), subnets=SMALL))
    static = (lab(reserved=["172.20.5.5-172.20.5.14"], static=["172.20.5.2"]),)
    await alpha.run(own("alpha", app(), app(name="db", static_ips=["172.20.5.2"]), subnets=static))

    assert await alpha.tails() == {"app/0": ".3", "db/0": ".2"}


async def test_a10_an_address_is_not_free_before_its_vm_is_gone(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(name="old"), app(2), subnets=SMALL))
    with pytest.raises(Refused) as caught:
        await alpha.deploy(own("alpha", app(3), subnets=SMALL))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert caught.value.message.endswith("(2)' for manual network 'lab': no more available")


async def test_until_a_vm_is_made_its_address_is_the_same_at_every_deploy(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(name="old"), app(), subnets=SMALL))
    await alpha.run(own("alpha", app(), subnets=SMALL))
    for _ in range(2):
        await alpha.deploy(own("alpha", app(2), subnets=SMALL))
        assert [each.remembered for each in await town.instances("alpha")] == [
            {"lab": "172.20.5.3"}, {"lab": "172.20.5.4"}
        ]  # fmt: skip

    known = await load_deployment(town.ledger, "alpha")
    assert known is not None
    assert known.recent == ("172.20.5.2",)


async def test_a_vm_that_does_not_answer_fails_the_deploy(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(3)))
    alpha.vms[await alpha.name_of("app", 0)] = None
    del alpha.vms[await alpha.name_of("app", 2)]
    before = await town.instances("alpha")
    with pytest.raises(Refused, match=r"did not answer: 'app/\S+ \(0\)', 'app/\S+ \(2\)'"):
        await alpha.deploy(own("alpha", app(3)))
    with pytest.raises(Refused, match="were not asked"):
        await town.deploy(own("alpha", app(3)))

    assert await town.instances("alpha") == before


async def test_a_vm_that_does_not_answer_is_made_anew_by_a_fix(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))
    lost = await alpha.name_of("app", 0)
    old = alpha.vms[lost]["vm"]
    alpha.vms[lost] = None
    deployed = await alpha.run(own("alpha", app(2)), fix=True)

    assert [step.instance.name for step in deployed.steps if step.instance.plan] == [lost]
    assert alpha.vms[lost]["vm"] != old
    assert await alpha.tails() == {"app/0": ".2", "app/1": ".3"}
    assert not (await alpha.deploy(own("alpha", app(2)))).changes


async def test_a_fix_that_is_taken_back_leaves_the_instance(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app()))
    alpha.vms[await alpha.name_of("app", 0)] = None
    deployed = await alpha.deploy(own("alpha", app()), fix=True)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    [left] = await town.instances("alpha")
    assert (left.vm, left.plan, left.meant) == (None, None, None)


async def test_a_plan_tells_and_changes_nothing(town: Town, alpha: Fleet) -> None:
    planned = await alpha.deploy(own("alpha", app(2)), dry=True)

    assert sorted(held.address for held in planned.granted.values()) == ["172.20.5.2", "172.20.5.3"]
    assert await town.instances("alpha") == []
    assert await load_deployment(town.ledger, "alpha") is None


async def test_a_changed_gateway_makes_vms_anew_on_their_addresses(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))
    deployed = await alpha.run(own("alpha", app(2), subnets=(lab(gateway="172.20.5.14"),)))

    assert deployed.granted == {}
    assert await alpha.tails() == {"app/0": ".2", "app/1": ".3"}
    assert [(each.made_with or {})["lab"]["gateway"] for each in await town.instances("alpha")] == ["172.20.5.14"] * 2


async def test_an_address_that_fits_no_more_is_given_up_with_the_vm(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))
    await alpha.run(own("alpha", app(2), subnets=(lab(reserved=["172.20.5.2"]),)))
    assert await alpha.tails() == {"app/0": ".4", "app/1": ".3"}

    moved = lab(range="172.20.6.0/28", gateway="172.20.6.1")
    deployed = await alpha.run(own("alpha", app(2), subnets=(moved,)))

    assert sorted(held.address for held in deployed.granted.values()) == ["172.20.6.2", "172.20.6.3"]


async def test_a_network_under_another_name_keeps_its_addresses(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app(2)))
    text = own("alpha", app(2)).replace("name: lab", "name: hub")
    deployed = await alpha.run(text)

    assert deployed.granted == {}
    assert [said["networks"] for said in alpha.vms.values()] == [
        {"hub": {"ip": "172.20.5.2"}}, {"hub": {"ip": "172.20.5.3"}}
    ]  # fmt: skip


async def test_a_network_that_is_gone_is_given_up_with_the_vm(alpha: Fleet) -> None:
    hub = {"name": "hub", "type": "manual", "subnets": [{"range": "172.20.7.0/28", "gateway": "172.20.7.1"}]}
    both = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "hub"}]
    await alpha.run(own("alpha", app(networks=both), more=(hub,)))
    deployed = await alpha.run(own("alpha", app()))

    assert [len(step.bound.obsolete) for step in deployed.steps] == [1]
    assert [said["networks"] for said in alpha.vms.values()] == [{"lab": {"ip": "172.20.5.2"}}]


async def test_vips_and_dynamic_networks_are_told_by_vms_too(town: Town, alpha: Fleet) -> None:
    more = ({"name": "edge", "type": "dynamic"}, {"name": "public", "type": "vip"})
    on = [{"name": "edge", "default": ["dns", "gateway"]}, {"name": "public", "static_ips": ["203.0.113.9"]}]
    await alpha.run(own("alpha", app(networks=on), more=more))
    name = await alpha.name_of("app", 0)
    alpha.vms[name]["networks"]["edge"] = {"ip": "10.9.9.9", "type": "dynamic"}
    again = await alpha.deploy(own("alpha", app(networks=on), more=more))

    assert not again.changes
    [instance] = await town.instances("alpha")
    assert (instance.hints, alpha.vms[name]["networks"]["public"]) == ({"edge": "10.9.9.9"}, {"ip": "203.0.113.9"})


async def test_an_address_of_ours_is_no_hint_when_its_network_becomes_dynamic(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app()))
    dynamic = own("alpha", app()).replace("type: manual", "type: dynamic").partition("  subnets:")[0]
    deployed = await alpha.run(dynamic + manifest("alpha", app()).partition("\n")[2])

    assert [len(step.bound.obsolete) for step in deployed.steps] == [1]
    assert [each.hints for each in await town.instances("alpha")] == [{}]


async def test_a_vm_that_nobody_reported_speaks_for_itself(town: Town, alpha: Fleet) -> None:
    await alpha.deploy(own("alpha", app()))
    [instance] = await town.instances("alpha")
    alpha.vms[instance.name] = {"vm": "vm-7", "networks": {"lab": {"ip": "172.20.5.2"}}}
    again = await alpha.deploy(own("alpha", app()))

    assert not again.changes
    [instance] = await town.instances("alpha")
    assert (instance.vm, instance.plan, instance.meant) == ("vm-7", None, None)


async def test_what_is_said_of_no_instance_is_refused_with_its_place(alpha: Fleet) -> None:
    await alpha.run(own("alpha", app()))
    uuid = await alpha.name_of("app", 0)
    said = f'{{"web/0": null,\n "app/0": null,\n "{uuid}": null}}'
    with pytest.raises(Rejected) as caught:
        await alpha.deploy(own("alpha", app()), vm_state=read_vm_state(said, "state.json"))

    assert [(fault.message, str(fault.place)) for fault in caught.value.faults] == [
        ("There is no instance 'web/0'", "state.json:1:11 (web/0)"),
        (f"Instance '{uuid}' is told of twice", f"state.json:3:{len(uuid) + 6} ({uuid})"),
    ]


async def test_create_swap_delete_waits_for_a_cloud_config(alpha: Fleet) -> None:
    swapped = app(update={"vm_strategy": "create-swap-delete"})
    await alpha.run(own("alpha", swapped))
    await alpha.run(own("alpha", swapped), recreate=True)

    assert await alpha.tails() == {"app/0": ".2"}


async def test_prefixes_are_reported_as_large_as_they_are(alpha: Fleet) -> None:
    subnets = ({"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28},)
    await alpha.run(own("alpha", app(2), subnets=subnets))
    assert sorted(said["networks"]["lab"]["ip"] for said in alpha.vms.values()) == ["10.10.0.16/28", "10.10.0.32/28"]
    assert not (await alpha.deploy(own("alpha", app(2), subnets=subnets))).changes

    alpha.vms[await alpha.name_of("app", 0)]["networks"]["lab"]["ip"] = "10.10.0.16"
    with pytest.raises(Refused) as caught:
        await alpha.deploy(own("alpha", app(2), subnets=subnets))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_INVALID_PREFIX


async def test_without_any_networks_a_manifest_is_refused(town: Town) -> None:
    with pytest.raises(Rejected) as caught:
        await town.deploy(manifest("alpha", app()))

    assert [fault.kind for fault in caught.value.faults] == [BoshErrorKind.DEPLOYMENT_NO_NETWORKS]


async def test_a_deployment_that_is_deleted_is_gone(town: Town, alpha: Fleet) -> None:
    await alpha.run(own("alpha", app()))
    [left] = await report_vm.delete(town.ledger, "alpha")
    await report_vm.lose(town.ledger, "alpha", left.name)
    await report_vm.delete(town.ledger, "alpha")

    assert await load_deployment(town.ledger, "alpha") is None
    assert await town.instances("alpha") == []


async def test_an_upload_amid_a_deploy_is_noticed(town: Town, alpha: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(ledger: AsyncLedger) -> Paper | None:
        await town.upload(config())
        return await legacy_deployments.load_mode(ledger)

    monkeypatch.setattr(deploy_without_cloud_config, "load_mode", late)
    with pytest.raises(Rejected) as caught:
        await alpha.deploy(own("alpha", app()))

    assert [fault.kind for fault in caught.value.faults] == [BoshErrorKind.V1_DEPRECATED_NETWORKS]
    assert await town.instances("alpha") == []


@pytest.mark.parametrize("others", [[], ["gamma"], ["alpha", "gamma"]])
async def test_a_deploy_amid_the_first_upload_is_noticed(
    town: Town, alpha: Fleet, monkeypatch: pytest.MonkeyPatch, others: list[str]
) -> None:
    """Whether it is the first of all, the first of its deployment, or one that changes its networks."""
    for name in others:
        await town.deploy(own(name, app(), subnets=({"range": "10.0.0.0/28", "gateway": "10.0.0.1"},)))

    async def stale(ledger: AsyncLedger) -> list[legacy_deployments.Legacy]:
        monkeypatch.undo()
        found = await legacy_deployments.load_legacy(ledger)
        await alpha.deploy(own("alpha", app()))
        return found

    monkeypatch.setattr(configs, "load_legacy", stale)
    await town.upload(config())

    network = await town.ledger.network("lab")
    kept = [str(each.range) for each in network.subnets[0].reserved if "deployment" in each.notes.labels]
    assert kept == ["172.20.5.2-172.20.5.14"]


async def test_a_deploy_and_the_first_upload_notice_each_other(town: Town, place: str) -> None:
    """Whoever comes second: an upload keeps back what the deploy may use, a deploy is refused its networks."""

    async def run() -> str | None:
        async with await tenure.open_async(place) as ledger:
            try:
                await deploy(ledger, "manifest.yml", own("alpha", app()))
            except Rejected as error:
                return error.faults[0].kind.title
            return None

    outcome, _ = await asyncio.gather(run(), town.upload(config()))

    [network] = await town.ledger.networks()
    kept = [each for each in network.subnets[0].reserved if each.notes.labels.get("deployment") == "alpha"]
    assert (outcome, bool(kept)) in [(None, True), ("V1DeprecatedNetworks", False)]
