"""A VM is one instance's, or one worker's: whichever deployments they are of, and whenever they are reported."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.state.instance_state import INSTANCE
from tenure.integrations.bosh.state.vm_holder import ALL_VMS, SITE
from tenure.integrations.bosh.state.vm_index import VM, Vm
from tenure.integrations.bosh.verbs import cloud_check, compile_packages, errands, report_vm
from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.holding_model import Paper
from tenure.service.apply.operations import RemovePaper, WritePaper
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, config, manifest

COMPILING = config(compilation={"network": "lab", "workers": 2})
SWAP: dict[str, Any] = {"update": {"vm_strategy": "create-swap-delete"}}

Goes = Callable[[Town], Awaitable[Any]]


async def written(town: Town) -> dict[str, str]:
    """Return which VMs have papers, and which deployments these name."""
    return {paper.name: paper.document["deployment"] for paper in await town.ledger.papers(VM)}


async def forgotten(town: Town) -> None:
    """Make the ledger one of the time before VMs had papers, and before instances knew which one they lost."""
    for each in [*await town.ledger.papers(VM), await town.ledger.paper(ALL_VMS, SITE)]:
        await town.ledger.apply([RemovePaper(kind=each.kind, name=each.name, revision=each.revision)])
    for each in await town.ledger.papers(INSTANCE):
        said = {name: value for name, value in each.document.items() if name != "lost_vm"}
        write = WritePaper(kind=each.kind, name=each.name, document=said, revision=each.revision)
        await town.ledger.apply([write])


async def together(town: Town, monkeypatch: pytest.MonkeyPatch, *acts: Awaitable[Any]) -> list[Exception]:
    """Do what everybody is about to do only when all have decided; return what was refused."""
    apply, all_there, waiting = town.ledger.apply, asyncio.Event(), 0

    async def late(*words: Any, **more: Any) -> Any:
        nonlocal waiting
        waiting += 1
        if waiting == len(acts):
            all_there.set()
        await all_there.wait()
        return await apply(*words, **more)

    monkeypatch.setattr(town.ledger, "apply", late)
    return [each for each in await asyncio.gather(*acts, return_exceptions=True) if isinstance(each, Exception)]


@pytest.mark.parametrize("first", [True, False], ids=["the ledger's first VM", "a later one"])
async def test_of_two_who_report_one_vm_in_the_same_moment_one_is_refused(
    town: Town, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    await town.upload(config())
    if not first:
        await town.run(manifest("gamma", app()))
    for name in ("alpha", "beta"):
        await town.deploy(manifest(name, app()))
    reports = [report_vm.commit(town.ledger, name, "app/0", vm="vm-9") for name in ("alpha", "beta")]
    [refused] = await together(town, monkeypatch, *reports)

    assert isinstance(refused, Conflict)
    assert "cannot have VM 'vm-9': instance app/" in refused.message
    instances = [*await town.instances("alpha"), *await town.instances("beta")]
    assert sorted(each.vm or "" for each in instances) == ["", "vm-9"]


async def test_of_an_instance_and_a_worker_who_report_one_vm_in_the_same_moment_one_is_refused(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.upload(COMPILING)
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await compile_packages.begin(town.ledger, "alpha", plan)
    instance = report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-9")
    [refused] = await together(
        town, monkeypatch, instance, compile_packages.commit(town.ledger, "alpha", plan, 0, vm="vm-9")
    )

    assert "cannot have VM 'vm-9': " in str(refused)


@pytest.mark.parametrize("who", ["instance", "worker"])
async def test_who_reports_his_vm_twice_in_the_same_moment_is_not_refused(
    town: Town, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    await town.upload(COMPILING)
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await compile_packages.begin(town.ledger, "alpha", plan)
    paper, left = town.ledger.paper, [True]

    async def report() -> None:
        if who == "instance":
            await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-9", plan=plan)
        else:
            await compile_packages.commit(town.ledger, "alpha", plan, 0, vm="vm-9")

    async def late(kind: str, name: str) -> Paper:
        if kind == VM and left:
            left.clear()
            await report()
        return await paper(kind, name)

    monkeypatch.setattr(town.ledger, "paper", late)
    await report()

    assert (left, await written(town)) == ([], {"vm-9": "alpha"})


async def test_a_vm_of_another_deployment_is_refused(town: Town) -> None:
    await town.upload(COMPILING)
    await town.run(manifest("alpha", app()))
    plan = (await town.deploy(manifest("beta", app()))).plan
    await compile_packages.begin(town.ledger, "beta", plan)
    told = r"cannot have VM 'vm-1': instance app/.* of deployment alpha has it"
    with pytest.raises(Conflict, match=f"^instance app/.* {told}"):
        await report_vm.commit(town.ledger, "beta", "app/0", vm="vm-1")
    with pytest.raises(Conflict, match=f"^compile worker 0 of deployment beta {told}"):
        await compile_packages.commit(town.ledger, "beta", plan, 0, vm="vm-1")
    await compile_packages.commit(town.ledger, "beta", plan, 0, vm="vm-2")
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    with pytest.raises(Conflict, match="cannot have VM 'vm-2': worker 0 of deployment beta has it"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2")

    assert await written(town) == {"vm-2": "beta"}


async def replaced(town: Town) -> None:
    await town.run(manifest("alpha", app()), recreate=True)


async def left(town: Town) -> None:
    await town.run(manifest("alpha", app(name="other")))


async def swapped_and_deleted(town: Town) -> None:
    await town.run(manifest("alpha", app(**SWAP)), recreate=True)
    await report_vm.clean_up_orphan(town.ledger, "vm-1")


GONE: dict[str, Goes] = {
    "lost": lambda town: report_vm.lose(town.ledger, "alpha", "app/0"),
    "stopped hard": lambda town: report_vm.stop(town.ledger, "alpha", "app/0", hard=True),
    "missing": lambda town: cloud_check.recreate(town.ledger, "alpha", "app/0", vm="vm-1"),
    "forgotten": lambda town: cloud_check.delete_reference(town.ledger, "alpha", "app/0", vm="vm-1"),
    "replaced": replaced,
    "left": left,
    "swapped and deleted": swapped_and_deleted,
}


@pytest.mark.parametrize("old", [False, True], ids=["with papers", "without"])
@pytest.mark.parametrize("goes", GONE.values(), ids=GONE)
async def test_a_vm_that_is_gone_may_be_anothers(town: Town, goes: Goes, old: bool) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    if old:
        await forgotten(town)
    await goes(town)
    assert "vm-1" not in await written(town)
    await town.deploy(manifest("beta", app()))

    assert (await report_vm.commit(town.ledger, "beta", "app/0", vm="vm-1")).vm == "vm-1"
    assert (await written(town))["vm-1"] == "beta"


async def test_an_errands_vm_that_is_gone_may_be_anothers(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(name="smoke", lifecycle="errand")))
    await town.finish(await errands.run(town.ledger, "alpha", "smoke"))
    assert await written(town) == {"vm-1": "alpha"}
    await errands.end(town.ledger, "alpha", "smoke")

    assert await written(town) == {}


@pytest.mark.parametrize("orphans", [False, True], ids=["deleted", "orphaned"])
async def test_a_workers_vm_that_is_gone_may_be_anothers(town: Town, orphans: bool) -> None:
    await town.upload(config(compilation={"network": "lab", "workers": 1, "orphan_workers": orphans}))
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await compile_packages.begin(town.ledger, "alpha", plan)
    await compile_packages.commit(town.ledger, "alpha", plan, 0, vm="vm-9")
    assert await written(town) == {"vm-9": "alpha"}
    await compile_packages.end(town.ledger, "alpha", plan)
    await report_vm.clean_up_orphan(town.ledger, "vm-9")

    assert await written(town) == {}
    assert (await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-9")).vm == "vm-9"


async def test_vms_that_have_no_papers_yet_are_found_and_get_some(town: Town) -> None:
    await town.upload(COMPILING)
    await town.run(manifest("alpha", app(2)))
    plan = (await town.deploy(manifest("beta", app()))).plan
    await compile_packages.begin(town.ledger, "beta", plan)
    await compile_packages.commit(town.ledger, "beta", plan, 1, vm="vm-worker")
    await forgotten(town)
    for vm, who in (("vm-2", "instance app/.* of deployment alpha"), ("vm-worker", "worker 1")):
        with pytest.raises(Conflict, match=f"cannot have VM '{vm}': {who} has it"):
            await report_vm.commit(town.ledger, "beta", "app/0", vm=vm)
    await report_vm.commit(town.ledger, "beta", "app/0", vm="vm-9")

    assert await written(town) == {"vm-1": "alpha", "vm-2": "alpha", "vm-9": "beta", "vm-worker": "beta"}


async def test_a_paper_that_was_left_over_refuses_nobody(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.deploy(manifest("beta", app()))
    await town.ledger.apply([Vm("vm-9").written("alpha")])

    assert (await report_vm.commit(town.ledger, "beta", "app/0", vm="vm-9")).vm == "vm-9"
    assert await written(town) == {"vm-1": "alpha", "vm-9": "beta"}


async def test_a_vm_is_reported_without_a_look_at_any_other(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(3)))
    await town.deploy(manifest("beta", app()))
    [instance] = await town.instances("beta")
    papers, read = town.ledger.papers, list[str]()

    async def noting(kind: str, **more: Any) -> Sequence[Any]:
        found = await papers(kind, **more)
        read.extend(each.name for each in found)
        return found

    monkeypatch.setattr(town.ledger, "papers", noting)
    await report_vm.commit(town.ledger, "beta", instance.name, vm="vm-9")

    assert set(read) == {instance.paper_name}


async def test_a_vm_that_speaks_for_an_instance_is_its_own(town: Town) -> None:
    alpha, beta = Fleet(town, "alpha"), Fleet(town, "beta")
    for fleet in (alpha, beta):
        await fleet.run(own(fleet.deployment, app()))
    [said] = alpha.vms.values()
    said["vm"] = "vm-new"
    await alpha.deploy(own("alpha", app()))
    assert await written(town) == {"vm-2": "beta", "vm-new": "alpha"}
    said["vm"] = "vm-2"
    with pytest.raises(Conflict, match=r"cannot have VM 'vm-2': instance app/.* of deployment beta has it"):
        await alpha.deploy(own("alpha", app()))
    said["vm"] = "vm-new"
    await town.upload(config())
    said["vm"] = "vm-newer"
    await alpha.deploy(manifest("alpha", app()))
    assert await written(town) == {"vm-2": "beta", "vm-newer": "alpha"}


async def test_of_two_who_had_one_address_and_are_made_again_in_the_same_moment_one_is_refused(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only in the in-memory mode may two have had it: nobody but VMs holds addresses there."""
    alpha = Fleet(town, "alpha")
    await alpha.run(own("alpha", app()))
    await report_vm.lose(town.ledger, "alpha", "app/0")
    alpha.vms.clear()
    plan = (await alpha.deploy(own("alpha", app(name="b"), app()))).plan
    await report_vm.commit(town.ledger, "alpha", "b/0", vm="vm-b", plan=plan)
    await report_vm.abort(town.ledger, "alpha", plan)
    await report_vm.lose(town.ledger, "alpha", "b/0")
    reports = [report_vm.commit(town.ledger, "alpha", f"{group}/0", vm=f"vm-{group}") for group in ("app", "b")]
    [refused] = await together(town, monkeypatch, *reports)

    assert isinstance(refused, Refused)
    assert refused.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert "Failed to reserve IP '172.20.5.2/32' for instance " in refused.message


async def test_what_is_told_once_more_of_a_lost_vm_frees_nothing_that_the_next_is_made_on(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(), app(name="other")))
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    await town.deploy(manifest("alpha", app(), app(name="other")))
    await town.deploy(manifest("alpha", app(name="other")))
    before = await town.instances("alpha")
    told = r"lost VM 'vm-1' before, and leaves; say what became of the one that was to be made in its place$"
    with pytest.raises(Conflict, match=told):
        await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    with pytest.raises(Conflict, match=told):
        await report_vm.stop(town.ledger, "alpha", "app/0", hard=True, vm="vm-1")

    assert await town.instances("alpha") == before
    await report_vm.lose(town.ledger, "alpha", "app/0")  # whoever names no VM speaks of the one that was to be made
    assert list(await town.has("alpha")) == ["other/0"]


async def test_what_is_told_once_more_of_a_lost_vm_does_not_stop_the_next(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    plan = (await town.deploy(manifest("alpha", app()))).plan
    before = await town.ledger.last_change()
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    stopped = await report_vm.stop(town.ledger, "alpha", "app/0", hard=True, vm="vm-1")
    assert await town.ledger.last_change() == before
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2", plan=plan)

    assert (stopped.state, stopped.plan) == ("started", plan)
    assert (made.vm, made.lost_vm) == ("vm-2", None)
