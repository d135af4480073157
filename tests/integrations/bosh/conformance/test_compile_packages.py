"""F1 – F7: workers that compile."""

import asyncio
from typing import Any

import pytest

from tenure.integrations.bosh.cloud_config.site_survey import load_orphans
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import compile_packages, report_vm
from tenure.kernel.errors import Conflict, Invalid, NotFound
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

ONE = manifest("alpha", app())
DYNAMIC = {"name": "dyn", "type": "dynamic", "dns": ["10.7.0.53"], "cloud_properties": {"pg": "a"}}


def pool(size: int, *, more: Any = (), **compilation: Any) -> str:
    """Write a cloud config with so many addresses to pick from, and compiling on ``lab`` unless said otherwise."""
    kept_back = [f"172.20.5.{2 + size}-172.20.5.14"] if size < 13 else []
    return config(lab(reserved=kept_back), more=more, compilation={"network": "lab", **compilation})


async def begun(town: Town, text: str = ONE, **said: Any) -> str:
    """Deploy without VMs, and begin to compile; return the plan."""
    plan = (await town.deploy(text)).plan
    await compile_packages.begin(town.ledger, "alpha", plan, **said)
    return plan


async def taken(town: Town) -> set[str]:
    """Return the last numbers of all addresses that are held on ``lab``."""
    return {"." + each.address.rpartition(".")[2] for each in await town.ledger.holdings("lab")}


async def test_f1_without_room_for_a_worker_the_refusal_names_it(town: Town) -> None:
    await town.upload(pool(1))
    with pytest.raises(Refused) as caught:
        await begun(town)

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert caught.value.message.startswith(
        "Failed to reserve IP for 'compilation-alpha/0 (0)' for manual network 'lab'"
    )
    assert await taken(town) == {".2"}


async def test_f1_of_several_workers_all_get_one_or_none(town: Town) -> None:
    await town.upload(pool(3, workers=4))
    with pytest.raises(Refused) as caught:
        await begun(town)

    assert "'compilation-alpha/2 (2)'" in caught.value.message
    assert await taken(town) == {".2"}


async def test_f1_a_network_with_nothing_to_pick_has_no_room(town: Town) -> None:
    build = {
        "name": "build",
        "subnets": [{"range": "172.20.9.0/30", "gateway": "172.20.9.1", "static": ["172.20.9.2"]}],
    }
    await town.upload(pool(2, more=[build], network="build"))
    with pytest.raises(Refused) as caught:
        await begun(town)

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY


async def test_f2_a_worker_has_an_address_until_the_compile_ends(town: Town) -> None:
    await town.upload(pool(2))
    deployed = await town.deploy(ONE)
    working = await compile_packages.begin(town.ledger, "alpha", deployed.plan)
    while_compiling = await taken(town)
    await compile_packages.end(town.ledger, "alpha", deployed.plan)
    await town.finish(deployed)

    [worker] = working.workers
    assert worker.settings["lab"]["ip"] == "172.20.5.3"
    assert worker.settings["lab"]["default"] == ["dns", "gateway"]
    assert while_compiling == {".2", ".3"}
    assert await taken(town) == {".2"}


async def test_workers_come_in_the_az_that_the_cloud_config_says(town: Town) -> None:
    azs = [{"name": "z1"}, {"name": "z2"}]
    second = {"range": "172.20.6.0/28", "gateway": "172.20.6.1", "azs": ["z2"]}
    await town.upload(
        config(lab(azs=["z1"]), second, azs=azs, compilation={"network": "lab", "az": "z2", "workers": 2})
    )
    deployed = await town.deploy(manifest("alpha", app(azs=["z1"])))
    working = await compile_packages.begin(town.ledger, "alpha", deployed.plan)

    assert [each.settings["lab"]["ip"] for each in working.workers] == ["172.20.6.2", "172.20.6.3"]


async def test_beginning_and_ending_again_change_nothing_more(town: Town) -> None:
    await town.upload(pool(13, workers=3))
    plan = await begun(town, workers=2)
    again = await compile_packages.begin(town.ledger, "alpha", plan, workers=2)
    more = await compile_packages.begin(town.ledger, "alpha", plan)
    at_most = await compile_packages.begin(town.ledger, "alpha", plan, workers=9)
    ended = await compile_packages.end(town.ledger, "alpha", plan)
    ended_again = await compile_packages.end(town.ledger, "alpha", plan)

    assert [each.settings["lab"]["ip"] for each in again.workers] == ["172.20.5.3", "172.20.5.4"]
    assert [each.settings["lab"]["ip"] for each in more.workers] == ["172.20.5.3", "172.20.5.4", "172.20.5.5"]
    assert at_most == more
    assert ended is not None
    assert ended_again is None
    assert await taken(town) == {".2"}


async def test_f4_what_a_broken_compile_left_is_freed_by_the_next_deploy_and_used_by_the_one_after(town: Town) -> None:
    await town.upload(pool(13))
    await begun(town)
    second = await town.run(manifest("alpha", app(2)))
    after_two = await town.tails("alpha")
    await town.run(manifest("alpha", app(3)))

    assert set(after_two.values()) == {".2", ".4"}
    assert set((await town.tails("alpha")).values()) == {".2", ".3", ".4"}
    assert await compile_packages.end(town.ledger, "alpha", second.plan) is None


async def test_f4_a_dry_run_leaves_a_compile_alone(town: Town) -> None:
    await town.upload(pool(13))
    plan = await begun(town)
    await town.deploy(manifest("alpha", app(2)), dry=True)

    assert await compile_packages.end(town.ledger, "alpha", plan) is not None


async def test_f4_what_a_known_vm_of_a_broken_compile_has_stays_with_it_until_it_is_cleaned_up(town: Town) -> None:
    await town.upload(pool(13))
    plan = await begun(town)
    await compile_packages.commit(town.ledger, "alpha", plan, 0, vm="vm-worker")
    await town.run(manifest("alpha", app(2)))
    await town.run(manifest("alpha", app(3)))
    [orphan] = await load_orphans(town.ledger)
    freed = await report_vm.clean_up_orphan(town.ledger, "vm-worker")

    assert set((await town.tails("alpha")).values()) == {".2", ".4", ".5"}
    assert (orphan.vm, orphan.instance) == ("vm-worker", "compilation-alpha/0")
    assert [each.address for each in freed] == ["172.20.5.3"]


async def test_f4_a_compile_on_another_network_frees_what_one_left_and_does_not_use_it(town: Town) -> None:
    other = {"name": "build", "subnets": [{"range": "172.20.9.0/28", "gateway": "172.20.9.1"}]}
    await town.upload(pool(13, more=[other]))
    plan = await begun(town)
    await town.upload(pool(13, more=[other], network="build"))
    working = await compile_packages.begin(town.ledger, "alpha", plan)

    assert [(each.number, each.settings["build"]["ip"]) for each in working.workers] == [(1, "172.20.9.2")]
    assert await taken(town) == {".2"}


async def test_f5_on_a_dynamic_network_workers_hold_nothing(town: Town) -> None:
    await town.upload(pool(13, more=[DYNAMIC], network="dyn", workers=2))
    deployed = await town.deploy(ONE)
    working = await compile_packages.begin(town.ledger, "alpha", deployed.plan)
    held = await taken(town)
    await compile_packages.commit(town.ledger, "alpha", deployed.plan, 0, vm="vm-worker")
    await compile_packages.end(town.ledger, "alpha", deployed.plan)

    assert [each.holding for each in working.workers] == [None, None]
    assert working.workers[0].settings["dyn"]["cloud_properties"] == {"pg": "a"}
    assert held == {".2"}


async def test_f7_orphaned_workers_keep_their_addresses_until_they_are_cleaned_up(town: Town) -> None:
    await town.upload(pool(13, orphan_workers=True, workers=2))
    plan = await begun(town)
    await compile_packages.commit(town.ledger, "alpha", plan, 0, vm="vm-worker")
    await compile_packages.commit(town.ledger, "alpha", plan, 0, vm="vm-worker")
    await compile_packages.end(town.ledger, "alpha", plan)
    held = await town.ledger.holdings(owner="bosh:orphan/vm-worker")
    ended = await taken(town)
    await report_vm.clean_up_orphan(town.ledger, "vm-worker")

    assert [each.address for each in held] == ["172.20.5.3"]
    assert ended == {".2", ".3"}  # the worker without a VM is gone
    assert await taken(town) == {".2"}


async def test_a_worker_has_one_vm_that_is_nobody_elses(town: Town) -> None:
    await town.upload(pool(13, orphan_workers=True, workers=2))
    await town.run(ONE)
    [instance] = await town.instances("alpha")
    first = await compile_packages.begin(town.ledger, "alpha")
    await compile_packages.commit(town.ledger, "alpha", None, 0, vm="vm-old")
    await compile_packages.end(town.ledger, "alpha", first.plan)
    await compile_packages.begin(town.ledger, "alpha")
    await compile_packages.commit(town.ledger, "alpha", None, 0, vm="vm-worker")
    before = await town.ledger.last_change()
    for number, vm, why in (
        (0, "vm-other", "has VM 'vm-worker' already; end the compile"),
        (1, "vm-worker", "cannot have VM 'vm-worker': worker 0 has it"),
        (1, str(instance.vm), f"cannot have VM '{instance.vm}': instance {instance.name} has it"),
        (1, "vm-old", "VM 'vm-old' is an orphan"),
    ):
        with pytest.raises(Conflict, match=why):
            await compile_packages.commit(town.ledger, "alpha", None, number, vm=vm)
    assert await town.ledger.last_change() == before
    await compile_packages.end(town.ledger, "alpha")

    assert {each.vm for each in await load_orphans(town.ledger)} == {"vm-old", "vm-worker"}


async def test_a_worker_that_is_in_the_way_is_named(town: Town) -> None:
    await town.upload(pool(13))
    await begun(town)
    await town.upload(config(lab(static=["172.20.5.3"]), compilation={"network": "lab"}))
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("beta", app(static_ips=["172.20.5.3"])))

    assert caught.value.message.endswith("already reserved by instance 'compilation-alpha/0' from deployment 'alpha'")


async def test_a_compile_belongs_to_the_last_plan(town: Town) -> None:
    await town.upload(pool(13))
    first = await begun(town)
    second = (await town.deploy(ONE)).plan
    with pytest.raises(Conflict):
        await compile_packages.begin(town.ledger, "alpha", first)
    await compile_packages.begin(town.ledger, "alpha", second)
    late = await compile_packages.end(town.ledger, "alpha", first)

    assert late is None
    assert len(await taken(town)) == 2


async def test_what_cannot_be_compiled_is_told(town: Town) -> None:
    await town.upload(config())
    deployed = await town.deploy(ONE)
    with pytest.raises(Refused, match="'compilation' was not specified"):
        await compile_packages.begin(town.ledger, "alpha", deployed.plan)
    with pytest.raises(NotFound):
        await compile_packages.begin(town.ledger, "beta", deployed.plan)
    with pytest.raises(Invalid):
        await compile_packages.begin(town.ledger, "alpha", deployed.plan, workers=0)
    with pytest.raises(NotFound):
        await compile_packages.commit(town.ledger, "alpha", deployed.plan, 0, vm="vm-worker")


async def test_a_deleted_deployment_leaves_no_worker(town: Town) -> None:
    await town.upload(pool(13))
    await begun(town)
    for each in await report_vm.delete(town.ledger, "alpha"):
        await report_vm.lose(town.ledger, "alpha", each.name)

    assert await taken(town) == set()


async def test_many_who_begin_the_same_compile_at_once_share_its_workers(town: Town) -> None:
    await town.upload(pool(13, workers=3))
    deployed = await town.deploy(ONE)
    begins = [compile_packages.begin(town.ledger, "alpha", deployed.plan) for _ in range(5)]
    answers = await asyncio.gather(*begins)

    assert {tuple(each.number for each in answer.workers) for answer in answers} == {(0, 1, 2)}
    assert await taken(town) == {".2", ".3", ".4", ".5"}
