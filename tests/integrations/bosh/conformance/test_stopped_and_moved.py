"""Instances without a VM that a plan moves: what was theirs is nobody else's before their VM is up."""

import pytest

from tenure.integrations.bosh.state.instance_state import load_instance
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

OTHER = {"name": "lan2", "type": "manual", "subnets": [lab(range="172.20.6.0/28", gateway="172.20.6.1")]}
THIRD = {"name": "lan3", "type": "manual", "subnets": [lab(range="172.20.7.0/28", gateway="172.20.7.1")]}
HERE = manifest("alpha", app(2))
THERE = manifest("alpha", app(2, network="lan2"))


async def without_vm(town: Town, how: str) -> None:
    """Deploy two instances whole; the second has no VM then."""
    await town.upload(config(more=[OTHER, THIRD]))
    await town.run(HERE)
    if how == "stopped":
        await report_vm.stop(town.ledger, "alpha", "app/1", hard=True)
    else:
        await report_vm.lose(town.ledger, "alpha", "app/1")


@pytest.mark.parametrize("how", ["stopped", "lost"])
async def test_e3_an_abort_leaves_its_address_to_who_has_no_vm(town: Town, how: str) -> None:
    await without_vm(town, how)
    before = await load_instance(town.ledger, "alpha", "app/1")
    moving = await town.deploy(THERE)
    await town.run(manifest("beta", app()))
    await report_vm.abort(town.ledger, "alpha", moving.plan)
    await report_vm.start(town.ledger, "alpha", "app/1")
    made = await report_vm.commit(town.ledger, "alpha", "app/1", vm="vm-new")

    assert [(each["name"], made.snapshot) for each in made.networks] == [("lab", before.snapshot)]
    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}, "app/1": {"lab": "172.20.5.3"}}
    assert await town.tails("beta") == {"app/0": ".4"}
    assert await town.parting("alpha") == {}


@pytest.mark.parametrize("how", ["stopped", "lost"])
async def test_e3_what_it_gave_up_is_free_when_its_vm_is_up(town: Town, how: str) -> None:
    await without_vm(town, how)
    await town.run(THERE)
    if how == "stopped":
        assert await town.parting("alpha") == {"app/1": {"lab": "172.20.5.3"}}
        await report_vm.start(town.ledger, "alpha", "app/1")
        await report_vm.commit(town.ledger, "alpha", "app/1", vm="vm-new")

    assert await town.has("alpha") == {"app/0": {"lan2": "172.20.6.2"}, "app/1": {"lan2": "172.20.6.3"}}
    assert await town.ledger.holdings("lab") == []


async def test_a_plan_after_the_one_that_moved_it_is_taken_back_with_that(town: Town) -> None:
    await without_vm(town, "stopped")
    await town.deploy(THERE)
    again = await town.deploy(manifest("alpha", app(2, network="lan3")))
    await report_vm.abort(town.ledger, "alpha", again.plan)

    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}, "app/1": {"lab": "172.20.5.3"}}
    assert await town.parting("alpha") == {}
    assert not (await town.deploy(HERE)).changes


async def test_who_alone_is_moved_goes_back_too(town: Town) -> None:
    await town.upload(config(more=[OTHER]))
    await town.run(manifest("alpha", app()))
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    moving = await town.deploy(manifest("alpha", app(network="lan2")))
    before = await town.ledger.last_change()
    again = await town.deploy(manifest("alpha", app(network="lan2")))
    assert (again.plan, await town.ledger.last_change()) == (moving.plan, before)
    await report_vm.abort(town.ledger, "alpha", moving.plan)

    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}}
    assert await town.parting("alpha") == {}


async def test_a_network_that_is_dropped_comes_back(town: Town) -> None:
    await town.upload(config(more=[OTHER]))
    both = app(networks=[{"name": "lab", "default": ["dns", "gateway"]}, {"name": "lan2"}])
    await town.run(manifest("alpha", both))
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    fewer = await town.deploy(manifest("alpha", app()))
    await report_vm.abort(town.ledger, "alpha", fewer.plan)

    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2", "lan2": "172.20.6.2"}}


async def test_a_plan_that_moves_who_is_stopped_has_something_to_do(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await town.upload(config(lab(reserved=["172.20.5.2"])))
    dry = await town.deploy(manifest("alpha", app()), dry=True)
    first, again = [await town.deploy(manifest("alpha", app())) for _ in range(2)]

    assert (dry.changes, first.changes, again.changes) == (True, True, False)
