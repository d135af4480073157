"""Instances that a deploy leaves as they are: ignored ones, those stopped hard, and those that are to go already."""

from typing import Any

import pytest

from tenure.integrations.bosh.planning.explain_instance import waits_for
from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.integrations.bosh.state.instance_state import load_instance
from tenure.integrations.bosh.verbs import errands, report_vm
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

SWAP: dict[str, Any] = {"update": {"vm_strategy": "create-swap-delete"}}


@pytest.mark.parametrize("more", [{}, SWAP], ids=["delete-create", "create-swap-delete"])
async def test_d25_an_ignored_instance_is_not_recreated(town: Town, more: dict[str, Any]) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2, **more)))
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    before = await load_instance(town.ledger, "alpha", "app/0")
    await town.deploy(manifest("alpha", app(2, **more)), recreate=True)

    assert await load_instance(town.ledger, "alpha", "app/0") == before
    assert (await load_instance(town.ledger, "alpha", "app/1")).plan is not None


async def test_d25_nor_made_anew_for_another_gateway_or_because_it_is_silent(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    before = await load_instance(town.ledger, "alpha", "app/0")
    await town.upload(config(lab(gateway="172.20.5.14")))
    await town.deploy(manifest("alpha", app(2)), vm_state={"app/0": VmState(None)}, fix=True)

    after = await load_instance(town.ledger, "alpha", "app/0")
    assert (after.vm, after.plan, after.made_with) == (before.vm, None, before.made_with)
    assert [held.carrier for held in after.holdings] == [before.vm]
    assert (await load_instance(town.ledger, "alpha", "app/1")).plan is not None


async def test_an_ignored_instance_that_waits_goes_on_waiting_for_the_same(town: Town) -> None:
    await town.upload(config())
    first = await town.deploy(manifest("alpha", app()))
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    await town.deploy(manifest("alpha", app(2)))

    assert (await load_instance(town.ledger, "alpha", "app/0")).plan == first.plan


@pytest.mark.parametrize("recreated", [False, True])
async def test_e3_an_instance_that_was_stopped_hard_gets_no_vm_before_it_is_started(
    town: Town, recreated: bool
) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    stopped = await load_instance(town.ledger, "alpha", "app/0")
    await town.run(manifest("alpha", app(3)), recreate=recreated)
    assert await load_instance(town.ledger, "alpha", "app/0") == stopped
    assert waits_for(stopped) == "start"

    started = await report_vm.start(town.ledger, "alpha", "app/0")

    assert waits_for(started) == "vm"
    assert (await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")).vm == "vm-new"
    assert (await town.tails("alpha"))["app/0"] == ".2"


async def test_one_that_was_stopped_hard_gets_another_address_where_its_own_fits_no_more(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    deployed = await town.deploy(manifest("alpha", app()))
    assert await town.tails("alpha") == {"app/0": ".3"}

    freed = await report_vm.abort(town.ledger, "alpha", deployed.plan)

    assert [each.address for each in freed] == ["172.20.5.3"]
    assert [(each.state, each.plan) for each in await town.instances("alpha")] == [("detached", None)]


@pytest.mark.parametrize("static", [False, True])
async def test_an_index_is_given_again_only_when_who_had_it_is_gone(town: Town, static: bool) -> None:
    await town.upload(config(lab(static=["172.20.5.10-172.20.5.12"])))

    def wanted(number: int) -> str:
        named: dict[str, Any] = (
            {"static_ips": [f"172.20.5.{tail}" for tail in range(10, 10 + number)]} if static else {}
        )
        return manifest("alpha", app(number, **named))

    await town.run(wanted(2))
    await town.deploy(wanted(1))  # app/1 is to go, and its VM is still there
    if static:
        await town.deploy(manifest("alpha", app(2, static_ips=["172.20.5.10", "172.20.5.12"])))
    else:
        await town.deploy(wanted(2))
    assert sorted((each.index, each.leaving) for each in await town.instances("alpha")) == [
        (0, False), (1, True), (2, False)
    ]  # fmt: skip
    await report_vm.lose(town.ledger, "alpha", "app/1")
    if not static:
        await town.deploy(wanted(3))
        assert sorted(each.index for each in await town.instances("alpha")) == [0, 1, 2]


async def test_an_adopted_instance_gets_no_index_of_one_that_is_to_go(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(1, name="old"), app()))
    await town.deploy(manifest("alpha", app(1, name="old"), app(0)))
    await town.deploy(manifest("alpha", app(migrated_from=[{"name": "old"}])))

    assert sorted((each.group, each.index, each.leaving) for each in await town.instances("alpha")) == [
        ("app", 0, True), ("app", 1, False)
    ]  # fmt: skip


async def test_an_errand_gives_no_index_of_one_that_is_to_go(town: Town) -> None:
    await town.upload(config())
    errand = app(name="smoke", lifecycle="errand")
    await town.run(manifest("alpha", errand))
    await town.finish(await errands.run(town.ledger, "alpha", "smoke"))
    await town.deploy(manifest("alpha", {**errand, "instances": 0}))
    await town.deploy(manifest("alpha", errand))
    await errands.run(town.ledger, "alpha", "smoke")

    assert sorted((each.index, each.leaving) for each in await town.instances("alpha")) == [(0, True), (1, False)]
