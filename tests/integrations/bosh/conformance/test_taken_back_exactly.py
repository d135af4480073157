"""What a plan changed beside reservations goes back with it: names that addresses moved under, errands, the mode."""

from typing import Any

import pytest

from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.state.instance_state import load_deployment
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tenure.integrations.bosh.views.result_documents import plan_document, settings
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Document, Town, app, config, manifest

WIDE = {"range": "172.20.5.0/27", "gateway": "172.20.5.1"}


def network(name: str, subnet: str, gateway: str, **more: Any) -> Document:
    """Write a network of one subnet."""
    return {"name": name, "type": "manual", "subnets": [{"range": subnet, "gateway": gateway, **more}]}


def networks(*those: Document) -> str:
    """Write a cloud config of these networks."""
    first, *more = those
    return config(*first["subnets"], name=first["name"], more=more)


def on(*names: str, **static: str) -> list[Document]:
    """Write the networks of a group, the first of which is the default."""
    said: list[dict[str, Any]] = [{"name": name} for name in names]
    said[0]["default"] = ["dns", "gateway"]
    return [{**each, "static_ips": [static[each["name"]]]} if each["name"] in static else each for each in said]


SAME = networks(network("a", "10.0.0.0/28", "10.0.0.1", static=["10.0.0.6"]), network("b", "10.0.0.0/28", "10.0.0.1"))
BOTH = manifest("alpha", app(networks=on("a", "b", a="10.0.0.6")))
FIRST = manifest("alpha", app(networks=on("a")))

TURNED = networks(network("a", "10.0.0.16/28", "10.0.0.17"), network("b", "10.0.0.0/28", "10.0.0.1"))
ROTATED = networks(network("a", "10.0.0.0/28", "10.0.0.1"), network("b", "10.0.1.0/28", "10.0.1.1"))
EXCHANGED = networks(network("a", "10.0.0.0/28", "10.0.0.1"), network("b", "10.0.0.16/28", "10.0.0.17"))
PAIR = manifest("alpha", app(networks=on("a", "b")))

MOVES = {
    "left": (SAME, BOTH, SAME, FIRST),
    "rotated": (TURNED, PAIR, ROTATED, PAIR),
    "exchanged": (TURNED, PAIR, EXCHANGED, PAIR),
}
"""Ways to keep an address under another network's name: config and manifest, before and after."""

moves = pytest.mark.parametrize(("before", "had", "after", "wants"), MOVES.values(), ids=list(MOVES))


async def moved(town: Town, before: str, had: str, after: str, wants: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Deploy, and let a plan keep an address under another name; return it, and what there was before."""
    await town.upload(before)
    await town.run(had)
    held = await town.has("alpha")
    await town.upload(after)
    return (await town.deploy(wants)).plan, held


@moves
async def test_an_address_goes_back_to_the_network_it_was_of(
    town: Town, before: str, had: str, after: str, wants: str
) -> None:
    plan, held = await moved(town, before, had, after, wants)
    assert await town.has("alpha") != held
    await report_vm.abort(town.ledger, "alpha", plan)

    assert await town.has("alpha") == held
    assert await town.parting("alpha") == {}
    standing = await Deployments(town.ledger).standing("alpha")
    [told] = [settings(each, standing.config_of(each)) for each in standing.instances]
    assert told == standing.instances[0].made_with


@moves
async def test_the_deploy_that_goes_back_brings_it_back_as_well(
    town: Town, before: str, had: str, after: str, wants: str
) -> None:
    _, held = await moved(town, before, had, after, wants)
    await town.upload(before)
    await town.deploy(had)

    assert await town.has("alpha") == held
    [instance] = await town.instances("alpha")
    assert "moved_from" not in {label for each in instance.wanted for label in each.labels}


@moves
async def test_it_goes_back_through_two_plans(town: Town, before: str, had: str, after: str, wants: str) -> None:
    _, held = await moved(town, before, had, after, wants)
    again = await town.deploy(wants, recreate=True)
    await report_vm.abort(town.ledger, "alpha", again.plan)

    assert await town.has("alpha") == held


@moves
async def test_it_goes_back_where_its_instance_is_stopped_hard(
    town: Town, before: str, had: str, after: str, wants: str
) -> None:
    await town.upload(before)
    await town.run(had)
    held = await town.has("alpha")
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await town.upload(after)
    deployed = await town.deploy(wants)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert await town.has("alpha") == held
    assert await town.parting("alpha") == {}


@moves
async def test_when_the_vm_is_up_it_is_of_its_new_network(
    town: Town, before: str, had: str, after: str, wants: str
) -> None:
    await moved(town, before, had, after, wants)
    plan = (await town.deploy(wants)).plan
    instance = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-9", plan=plan)
    has = await town.has("alpha")
    again = await town.deploy(wants, recreate=True)
    await report_vm.abort(town.ledger, "alpha", again.plan)

    assert {label for each in instance.wanted for label in each.labels} == set()
    assert await town.has("alpha") == has


async def test_its_network_may_have_gone_meanwhile(town: Town) -> None:
    plan, held = await moved(town, *MOVES["rotated"])
    await town.upload(networks(network("a", "10.0.0.0/28", "10.0.0.1")))
    await report_vm.abort(town.ledger, "alpha", plan)

    assert await town.has("alpha") == held
    await town.upload(TURNED)
    assert not (await town.deploy(PAIR)).changes


async def test_what_an_upload_says_that_moves_is_what_the_deploy_moves(town: Town) -> None:
    await town.upload(TURNED)
    await town.run(PAIR)
    told = await Deployments(town.ledger).moved_by(ROTATED)

    assert [(each.held.network, each.held.address) for each in told] == [("a", "10.0.0.18")]


async def test_a_renamed_network_is_known_by_its_old_name_again(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config(name="lab9"))
    before = await Deployments(town.ledger).standing("alpha")
    plan = (await town.deploy(manifest("alpha", app(network="lab9"), app(name="new", network="lab9")))).plan
    await report_vm.abort(town.ledger, "alpha", plan)
    after = await Deployments(town.ledger).standing("alpha")

    assert await town.has("alpha") == {"app/0": {"lab9": "172.20.5.2"}}
    assert [settings(each, after.config_of(each)) for each in after.instances] == [
        settings(each, before.config_of(each)) for each in before.instances
    ]


async def test_a_vm_on_a_renamed_network_is_made_anew_on_the_address_that_is_told(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config(name="lab9"))
    told = plan_document(await recreate(town.ledger, "alpha"), applied=True)

    assert [(each["network"], each["after"]) for each in told["instances"][0]["networks"]] == [("lab", "172.20.5.2")]


async def kept(town: Town) -> dict[str, str]:
    """Return what is kept for deployments without a cloud config."""
    [subnet] = (await town.ledger.network("lab")).subnets
    return {str(each.range): each.reason for each in subnet.reserved if "deployment" in each.notes.labels}


async def test_the_first_deploy_with_a_cloud_config_is_taken_back_whole(town: Town) -> None:
    fleet = Fleet(town, "alpha")
    await fleet.run(own("alpha", app(2)))
    await town.upload(config(WIDE))
    keeps = await kept(town)
    known, instances = await load_deployment(town.ledger, "alpha"), await town.instances("alpha")
    deployed = await fleet.deploy(manifest("alpha", app(3)))
    assert await kept(town) == {}
    freed = await report_vm.abort(town.ledger, "alpha", deployed.plan)
    back = await load_deployment(town.ledger, "alpha")

    assert known is not None
    assert back is not None
    assert (back.manifest, back.snapshot) == (known.manifest, None)
    assert [(each.name, each.vm, each.networks, each.remembered) for each in await town.instances("alpha")] == [
        (each.name, each.vm, each.networks, each.remembered) for each in instances
    ]
    assert [each.address for each in freed] == ["172.20.5.4"]
    assert await town.ledger.holdings("lab") == []
    assert await kept(town) == keeps != {}


async def test_it_can_be_done_again(town: Town) -> None:
    fleet = Fleet(town, "alpha")
    await fleet.run(own("alpha", app(2)))
    await town.upload(config(WIDE))
    deployed = await fleet.deploy(manifest("alpha", app(3)))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)
    await town.run(manifest("beta", app()))
    await fleet.run(manifest("alpha", app(3)))

    assert await town.tails("beta") == {"app/0": ".16"}
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3", "app/2": ".4"}
    assert await kept(town) == {}


async def test_who_came_meanwhile_keeps_what_it_has(town: Town) -> None:
    fleet = Fleet(town, "alpha")
    await fleet.run(own("alpha", app(2)))
    await town.upload(config(WIDE))
    keeps = await kept(town)
    deployed = await fleet.deploy(manifest("alpha", app(3)))
    await town.run(manifest("beta", app()))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)
    await town.run(manifest("beta", app(2)))

    assert await kept(town) == keeps
    assert await town.tails("beta") == {"app/0": ".5", "app/1": ".16"}


async def test_where_a_part_of_it_was_done_it_stays(town: Town) -> None:
    fleet = Fleet(town, "alpha")
    await fleet.run(own("alpha", app(2)))
    await town.upload(config(WIDE))
    deployed = await fleet.deploy(manifest("alpha", app(2)))
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-8", plan=deployed.plan)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    assert await kept(town) == {}


SERVICE = app()
ERRAND = app(2, name="tests", lifecycle="errand")


async def test_errands_that_a_first_plan_brought_go_with_it(town: Town) -> None:
    await town.upload(config())
    deployed = await town.deploy(manifest("alpha", SERVICE, ERRAND))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert await Deployments(town.ledger).every() == []
    assert await town.instances("alpha") == []


async def test_errands_without_a_cloud_config_too(town: Town) -> None:
    fleet = Fleet(town, "alpha")
    deployed = await fleet.deploy(own("alpha", SERVICE, ERRAND))
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert await Deployments(town.ledger).every() == []
    assert await town.instances("alpha") == []


async def test_errands_that_a_later_plan_brought_go_with_it(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", SERVICE))
    await town.deploy(manifest("alpha", app(2), ERRAND))
    later = await town.deploy(manifest("alpha", app(3), ERRAND))
    await report_vm.abort(town.ledger, "alpha", later.plan)

    assert [f"{each.group}/{each.index}" for each in await town.instances("alpha")] == ["app/0"]


async def test_errands_of_a_plan_that_was_done_stay(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", SERVICE, ERRAND))
    before = await town.instances("alpha")
    change = await town.ledger.last_change()
    assert not (await town.deploy(manifest("alpha", SERVICE, ERRAND))).changes
    assert await town.ledger.last_change() == change
    await town.deploy(manifest("alpha", app(2), ERRAND))
    later = await town.deploy(manifest("alpha", app(3), ERRAND))
    await report_vm.abort(town.ledger, "alpha", later.plan)

    assert [each.name for each in await town.instances("alpha")] == [each.name for each in before]


async def test_an_errand_that_rests_goes_back_to_the_last_plan_that_was_done(town: Town) -> None:
    def text(count: int, *names: str) -> str:
        return manifest("alpha", app(count, network="a"), app(name="tests", lifecycle="errand", networks=on(*names)))

    await town.upload(TURNED)
    for number, names in enumerate((("a",), ("a", "b")), 1):
        await town.run(text(number, *names))
    later = await town.deploy(text(3, "b"))
    await report_vm.abort(town.ledger, "alpha", later.plan)

    [errand] = [each for each in await town.instances("alpha") if each.errand]
    assert [said["name"] for said in errand.networks] == ["a", "b"]


async def test_who_left_at_once_is_a_part_that_is_done(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await report_vm.stop(town.ledger, "alpha", "app/1", hard=True)
    fewer = manifest("alpha", app())
    deployed = await town.deploy(fewer)
    await report_vm.abort(town.ledger, "alpha", deployed.plan)

    known = await load_deployment(town.ledger, "alpha")
    assert known is not None
    assert known.manifest == fewer
    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_what_others_were_to_have_is_free_all_the_same(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await report_vm.stop(town.ledger, "alpha", "app/1", hard=True)
    deployed = await town.deploy(manifest("alpha", app(), app(name="new")))
    freed = await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert [each.address for each in freed] == ["172.20.5.4"]
    assert await town.tails("alpha") == {"app/0": ".2"}


async def test_who_never_had_a_vm_is_no_part_that_is_done(town: Town) -> None:
    await town.upload(config())
    first = await town.deploy(manifest("alpha", app(2)))
    await report_vm.fail(town.ledger, "alpha", "app/1", plan=first.plan)
    later = await town.deploy(manifest("alpha", app()))
    await report_vm.abort(town.ledger, "alpha", later.plan)

    assert await load_deployment(town.ledger, "alpha") is None
    assert await town.ledger.holdings("lab") == []


RESTING = app(2, name="smoke", lifecycle="errand")


@pytest.mark.parametrize("pending", [False, True])
async def test_errands_that_never_ran_come_back_with_the_plan_that_ended_them(town: Town, pending: bool) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(), RESTING))
    before, known = await town.instances("alpha"), await load_deployment(town.ledger, "alpha")
    if pending:  # taken back together
        await town.deploy(manifest("alpha", app(2), app(name="smoke", lifecycle="errand")))
    plan = (await town.deploy(manifest("alpha", app(2)))).plan
    assert {each.group for each in await town.instances("alpha")} == {"app"}
    await report_vm.abort(town.ledger, "alpha", plan)
    again = plan_document(await town.deploy(manifest("alpha", app(), RESTING), dry=True), applied=False)
    back = await load_deployment(town.ledger, "alpha")

    assert {(each.name, each.index, each.errand) for each in await town.instances("alpha")} == {
        (each.name, each.index, each.errand) for each in before
    }
    assert (again["counts"]["kept"], again["counts"]["created"]) == (3, 0)
    assert known is not None
    assert back is not None
    assert (back.manifest, back.plan, back.undo) == (known.manifest, known.plan, None)


async def test_an_errand_that_was_only_of_the_plans_taken_back_does_not_come_back(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.deploy(manifest("alpha", app(2), RESTING))
    plan = (await town.deploy(manifest("alpha", app(2)))).plan
    await report_vm.abort(town.ledger, "alpha", plan)

    assert [each.group for each in await town.instances("alpha")] == ["app"]


async def test_an_errand_whose_place_another_has_does_not_come_back(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(), RESTING))
    await town.deploy(manifest("alpha", app(2)))
    plan = (await town.deploy(manifest("alpha", app(2), app(name="smoke", lifecycle="errand")))).plan
    ran = await Deployments(town.ledger).run_errand("alpha", "smoke")
    await report_vm.commit(town.ledger, "alpha", "smoke/0", vm="vm-smoke", plan=ran.plan)
    await report_vm.abort(town.ledger, "alpha", plan)

    found = sorted((each.index, each.vm is None) for each in await town.instances("alpha") if each.group == "smoke")
    assert found == [(0, False), (1, True)]
