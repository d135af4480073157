"""F8, F9: errands."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import errands, recreate, report_vm
from tenure.kernel.errors import Conflict, NotFound
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

SMOKE = manifest("alpha", app(), app(2, name="smoke", lifecycle="errand"))
STATIC = ["172.20.5.10", "172.20.5.11"]


POOL = config(lab(static=STATIC))
OTHER = manifest("beta", app(static_ips=["172.20.5.10"]))


def errand(tail: int) -> str:
    """Write a manifest with one errand, on a static address."""
    return manifest("alpha", app(name="smoke", lifecycle="errand", static_ips=[f"172.20.5.{tail}"]))


async def run(town: Town) -> list[str]:
    """Run the errand with new VMs, delete them, and return the addresses that they had."""
    ran = await errands.run(town.ledger, "alpha", "smoke")
    await town.finish(ran)
    ended = await errands.end(town.ledger, "alpha", "smoke")
    return [str(each.made_with and each.made_with["lab"]["ip"]) for each in ended]


async def test_f8_an_errand_reserves_nothing_when_it_is_deployed_and_waits_for_no_vm(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    rests = [each for each in await town.instances("alpha") if each.group == "smoke"]
    again = await town.run(SMOKE)

    assert [(each.holdings, each.vm, each.plan) for each in rests] == [((), None, None)] * 2
    assert await town.tails("alpha") == {"app/0": ".2"}
    assert not again.changes


async def test_f8_it_reserves_when_it_is_run_and_all_or_nothing(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    ran = await errands.run(town.ledger, "alpha", "smoke")

    assert await town.tails("alpha") == {"app/0": ".2", "smoke/0": ".3", "smoke/1": ".4"}
    assert {each.plan for each in await town.instances("alpha") if each.group == "smoke"} == {ran.plan}
    assert sorted(each.address for each in ran.granted.values()) == ["172.20.5.3", "172.20.5.4"]


async def test_f8_without_room_an_errand_is_refused_and_leaves_nothing(town: Town) -> None:
    await town.upload(config(lab(reserved=["172.20.5.4-172.20.5.14"])))
    await town.run(SMOKE)
    with pytest.raises(Refused) as caught:
        await errands.run(town.ledger, "alpha", "smoke")

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert len(await town.ledger.holdings("lab")) == 1


async def test_f9_an_errand_that_is_run_again_has_the_same_addresses(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    first = await run(town)
    await town.run(manifest("beta", app(2)))
    second = await run(town)

    assert first == second == ["172.20.5.3", "172.20.5.4"]
    assert set((await town.tails("beta")).values()) == {".5", ".6"}


async def test_f9_what_an_errand_has_stays_its_over_deploys(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    await run(town)
    again = await town.run(SMOKE)

    assert not again.changes
    assert await town.tails("alpha") == {"app/0": ".2", "smoke/0": ".3", "smoke/1": ".4"}


async def test_f9_an_errand_that_waits_for_its_vm_still_waits_after_a_deploy(town: Town) -> None:
    await town.upload(config())
    deployed = await town.run(SMOKE)
    ran = await errands.run(town.ledger, "alpha", "smoke")
    again = await town.deploy(SMOKE)
    assert await report_vm.abort(town.ledger, "alpha", deployed.plan) == [], "that plan was done before the errand ran"
    with pytest.raises(Conflict, match=f"does not wait for a VM of plan {ran.plan}, but of {again.plan}"):
        await report_vm.commit(town.ledger, "alpha", "smoke/0", vm="vm-late", plan=ran.plan)
    await town.finish(again)

    assert await town.tails("alpha") == {"app/0": ".2", "smoke/0": ".3", "smoke/1": ".4"}
    assert None not in {each.vm for each in await town.instances("alpha")}


async def test_f9_where_a_deploy_moves_it_meanwhile_nobody_else_gets_what_its_vm_may_come_up_on(town: Town) -> None:
    await town.upload(POOL)
    await town.run(errand(10))
    ran = await errands.run(town.ledger, "alpha", "smoke")
    await town.deploy(errand(11))
    with pytest.raises(Refused) as caught:
        await town.deploy(OTHER)
    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    with pytest.raises(Conflict, match=f"does not wait for a VM of plan {ran.plan}"):
        await report_vm.commit(town.ledger, "alpha", "smoke/0", vm="vm-late", plan=ran.plan)
    await report_vm.fail(town.ledger, "alpha", "smoke/0", plan=ran.plan)
    await town.run(OTHER)

    assert await town.tails("alpha") == {"smoke/0": ".11"}


@pytest.mark.parametrize("up", [True, False])
async def test_an_errand_that_was_moved_and_ended_keeps_only_what_it_is_to_have(town: Town, up: bool) -> None:
    await town.upload(POOL)
    await town.run(errand(10))
    ran = await errands.run(town.ledger, "alpha", "smoke")
    if up:
        await town.finish(ran)
    await town.deploy(errand(11))
    [ended] = await errands.end(town.ledger, "alpha", "smoke")
    await town.run(OTHER)

    assert (ended.vm, ended.plan, bool(ended.earlier)) == (None, None, False)
    assert [each.address for each in ended.holdings] == ["172.20.5.11"]


async def test_an_errand_that_was_moved_at_rest_has_both_until_its_vm_is_up(town: Town) -> None:
    """Who takes the plan back finds it as it was."""
    await town.upload(POOL)
    await town.run(errand(10))
    await town.finish(await errands.run(town.ledger, "alpha", "smoke"))
    await errands.end(town.ledger, "alpha", "smoke")
    moved = await town.deploy(errand(11))
    [ended] = await errands.end(town.ledger, "alpha", "smoke")
    assert [each.address for each in ended.holdings] == ["172.20.5.10", "172.20.5.11"]
    await report_vm.abort(town.ledger, "alpha", moved.plan)

    assert await town.tails("alpha") == {"smoke/0": ".10"}
    assert await town.parting("alpha") == {}


async def test_an_errand_that_is_run_leaves_alone_who_leaves_by_a_deploy(town: Town) -> None:
    one = manifest("alpha", app(), app(1, name="smoke", lifecycle="errand"))
    await town.upload(config())
    await town.run(SMOKE)
    await town.finish(await errands.run(town.ledger, "alpha", "smoke"))
    deployed = await town.deploy(one)
    ran = await errands.run(town.ledger, "alpha", "smoke")
    assert not ran.changes
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert [(each.leaving, each.plan) for each in await town.instances("alpha")] == [(False, None)] * 3


async def test_f9_a_removed_errand_frees_what_it_had(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    await run(town)
    await town.run(manifest("alpha", app()))

    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.2"]


async def test_an_errand_that_was_deployed_in_part_is_refused_static_ips_of_another(town: Town) -> None:
    text = manifest("alpha", app(2, name="smoke", lifecycle="errand", static_ips=STATIC))
    await town.upload(config(lab(static=STATIC)))
    await town.run(text)
    await town.run(manifest("beta", app(static_ips=["172.20.5.11"])))
    with pytest.raises(Refused) as caught:
        await errands.run(town.ledger, "alpha", "smoke")

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert await town.tails("alpha") == {}


async def test_an_errand_is_run_by_the_cloud_config_it_was_deployed_with(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    await town.upload(config(lab(dns=["10.0.0.53"], reserved=["172.20.5.3"])))
    await town.finish(await errands.run(town.ledger, "alpha", "smoke"))
    made_with = [each.made_with for each in await town.instances("alpha") if each.group == "smoke"]

    assert [each and each["lab"]["ip"] for each in made_with] == ["172.20.5.4", "172.20.5.5"]
    assert [each and "dns" in each["lab"] for each in made_with] == [False, False]


@pytest.mark.parametrize(
    "now",
    [
        config(lab(range="172.20.6.0/28", gateway="172.20.6.1")),
        config(name="other"),
        config(lab(reserved=["172.20.5.3-172.20.5.14"]), {"range": "172.20.7.0/28", "gateway": "172.20.7.1"}),
    ],
    ids=["moved", "renamed", "elsewhere"],
)
async def test_an_errand_whose_networks_are_no_more_is_to_be_deployed_again(town: Town, now: str) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    await town.upload(now)
    before = await town.ledger.last_change()
    with pytest.raises(Refused, match="the cloud config changed since deployment 'alpha' was deployed"):
        await errands.run(town.ledger, "alpha", "smoke")

    assert await town.ledger.last_change() == before


async def test_a_network_that_left_while_it_is_held_is_to_be_deployed_again(town: Town) -> None:
    swapped = app(2, name="web", network="lan", update={"vm_strategy": "create-swap-delete"})
    lan = {"name": "lan", "subnets": [{"range": "172.20.9.0/28", "gateway": "172.20.9.1"}]}
    await town.upload(config(more=[lan]))
    await town.run(manifest("alpha", swapped, app(name="smoke", network="lan", lifecycle="errand")))
    await town.upload(config())

    for done in (errands.run(town.ledger, "alpha", "smoke"), recreate.recreate(town.ledger, "alpha")):
        with pytest.raises(Refused, match=r"'alpha' was deployed\. Deploy it again\.") as caught:
            await done
        assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ERROR


async def test_running_an_errand_again_before_its_vms_are_up_reserves_nothing_more(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    await errands.run(town.ledger, "alpha", "smoke")
    again = await errands.run(town.ledger, "alpha", "smoke")
    held = await town.ledger.holdings("lab")
    freed = await report_vm.abort(town.ledger, "alpha", again.plan)

    assert again.granted == {}
    assert (len(held), len(freed)) == (3, 2), "what the first run reserved is the second one's"


async def test_an_errand_that_keeps_its_vms_is_redeployed_like_a_service(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    await town.finish(await errands.run(town.ledger, "alpha", "smoke"))
    again = await errands.run(town.ledger, "alpha", "smoke")
    await town.upload(config(lab(dns=["10.0.0.53"])))
    changed = await town.run(SMOKE)

    assert not again.changes
    assert {step.instance.group for step in changed.steps if step.instance.plan} == {"app", "smoke"}


async def test_what_is_no_errand_is_told(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    with pytest.raises(Refused, match="Instance group 'app' is not an errand"):
        await errands.run(town.ledger, "alpha", "app")
    with pytest.raises(NotFound):
        await errands.run(town.ledger, "alpha", "other")
    with pytest.raises(NotFound):
        await errands.end(town.ledger, "alpha", "other")
    with pytest.raises(NotFound):
        await errands.run(town.ledger, "beta", "smoke")


async def test_an_errand_can_be_tried_without_changing_anything(town: Town) -> None:
    await town.upload(config())
    await town.run(SMOKE)
    before = await town.ledger.last_change()
    tried = await errands.run(town.ledger, "alpha", "smoke", dry=True)

    assert sorted(each.address for each in tried.granted.values()) == ["172.20.5.3", "172.20.5.4"]
    assert await town.ledger.last_change() == before


async def test_an_errand_whose_network_has_another_name_is_to_be_deployed_again(town: Town) -> None:
    await town.upload(config())
    await town.deploy(manifest("alpha", app(lifecycle="errand")))
    await errands.run(town.ledger, "alpha", "app")
    await errands.end(town.ledger, "alpha", "app")
    await town.upload(config(name="hub"))
    with pytest.raises(Refused, match="the cloud config changed since deployment 'alpha' was deployed"):
        await errands.run(town.ledger, "alpha", "app")
