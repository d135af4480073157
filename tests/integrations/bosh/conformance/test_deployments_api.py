"""The door itself: what is done around a deploy, each by its own verb."""

from tenure.integrations.bosh.deployments_api import Deployments
from tests.integrations.bosh.conformance.recorder import FIRST, Recorder
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

NETWORK = {"name": "made", "type": "manual", "managed": True, "subnets": [FIRST]}
CLOUD = config(lab(static=["172.20.5.10-172.20.5.11"]), more=[NETWORK], compilation={"network": "made"})


def swapped(first: int, second: int) -> str:
    """Write two groups on static addresses, and an errand."""
    groups = [app(name=name, static_ips=[f"172.20.5.{tail}"]) for name, tail in (("a", first), ("b", second))]
    return manifest("alpha", *groups, app(name="smoke", lifecycle="errand"))


async def test_everything_around_a_deploy_is_done_through_the_door(town: Town) -> None:
    door = Deployments(town.ledger, cloud=Recorder())
    await door.upload_config(CLOUD)
    deployed = await door.apply(swapped(10, 11))
    compiling = await door.begin_compiling("alpha", deployed.plan)
    await door.commit_worker("alpha", deployed.plan, 0, vm="vm-worker")
    await door.end_compiling("alpha", deployed.plan)
    for group in ("a", "b"):
        await door.commit("alpha", f"{group}/0", vm=f"vm-{group}", plan=deployed.plan)
    await door.run_errand("alpha", "smoke")
    await door.commit("alpha", "smoke/0", vm="vm-smoke")
    [rests] = await door.end_errand("alpha", "smoke")
    planned = await door.plan(swapped(11, 10), hand_over=True)
    await door.apply(swapped(11, 10), hand_over=True)
    [missing] = await door.check("alpha", {"vm-a"})
    await door.recreate_missing("alpha", missing.instance.name, vm=missing.vm)
    await door.commit("alpha", "a/0", vm="vm-a2")
    await door.commit("alpha", "b/0", vm="vm-b2")
    recreated = await door.recreate("alpha", "a/0")
    await door.delete_reference("alpha", "b/0", vm="vm-b2")

    assert [each.settings["made"]["ip"] for each in compiling.workers] == ["10.60.1.2"]
    assert rests.vm is None
    assert [step.instance.waits[0]["address"] for step in planned.steps[:2]] == ["172.20.5.11", "172.20.5.10"]
    assert recreated.changes
    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10", "smoke/0": ".2"}


async def test_managed_networks_are_told_and_deleted_through_the_door(town: Town) -> None:
    cloud = Recorder()
    door = Deployments(town.ledger, cloud=cloud)
    await door.upload_config(config(more=[NETWORK]))
    await door.apply(manifest("alpha", app(network="made")))
    used = [each.deployments for each in await door.managed_networks()]
    for each in await door.delete("alpha"):
        await door.lose("alpha", each.name)
    await door.delete("alpha")
    await door.delete_network("made")

    assert used == [("alpha",)]
    assert cloud.asked == ["create s1 10.60.1.0/28", "delete cid-s1"]
    assert await door.managed_networks() == []
