"""VMs that do not answer and are fixed: they may still run, so they keep what they carry until they are gone."""

from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.views.result_documents import plan_document
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

ONE = manifest("alpha", app())
SILENT = {"app/0": VmState(None)}
MOVED = config(lab(reserved=["172.20.5.2"]))


async def test_e2_a_silent_vm_is_replaced_not_forgotten(town: Town) -> None:
    await town.upload(config())
    await town.run(ONE)
    [step] = plan_document(await town.deploy(ONE, vm_state=SILENT, fix=True), applied=True)["instances"]
    [waiting] = await town.instances("alpha")

    assert (step["vm"], step["action"], step["waits_for"]) == ("vm-1", "recreated", "vm")
    assert (waiting.vm, [each.carrier for each in waiting.holdings]) == ("vm-1", ["vm-1"])
    assert [each.vm for each in await report_vm.delete(town.ledger, "alpha")] == ["vm-1"]
    assert len(await town.ledger.holdings("lab")) == 1


async def test_what_it_has_is_nobody_elses_before_the_new_vm_is_up(town: Town) -> None:
    await town.upload(config())
    await town.run(ONE)
    await town.upload(MOVED)
    fixed = await town.deploy(ONE, vm_state=SILENT, fix=True)
    assert await town.parting("alpha") == {"app/0": {"lab": "172.20.5.2"}}
    await town.finish(fixed)

    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.3"]


async def test_a_fix_that_is_taken_back_leaves_the_vm(town: Town) -> None:
    await town.upload(config())
    await town.run(ONE)
    before = await town.has("alpha")
    await town.upload(MOVED)
    fixed = await town.deploy(ONE, vm_state=SILENT, fix=True)
    await report_vm.abort(town.ledger, "alpha", fixed.plan)
    [left] = await town.instances("alpha")

    assert (left.vm, left.plan, [each.carrier for each in left.holdings]) == ("vm-1", None, ["vm-1"])
    assert await town.has("alpha") == before


async def test_e2_a_silent_vm_is_never_swapped(town: Town) -> None:
    text = manifest("alpha", app(update={"vm_strategy": "create-swap-delete"}))
    await town.upload(config())
    await town.run(text)
    fixed = await town.run(text, vm_state=SILENT, fix=True)

    assert [step.swaps for step in fixed.steps] == [False]
    assert await town.tails("alpha") == {"app/0": ".2"}
    assert len(await town.ledger.holdings("lab")) == 1
