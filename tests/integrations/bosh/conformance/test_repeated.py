"""A deploy that is repeated, and what a deploy rests on."""

from typing import Any

import pytest

from tenure.integrations.bosh.verbs import compile_packages, report_vm
from tenure.service.apply.operations import Release
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

ALPHA = manifest("alpha", app(2))
WORKERS = {"workers": 1, "network": "lab"}


async def test_an_unchanged_deploy_writes_nothing_and_tells_the_plan_that_is_known(town: Town) -> None:
    await town.upload(config())
    first = await town.run(ALPHA)
    before = await town.ledger.last_change()
    again = await town.deploy(ALPHA)

    assert await town.ledger.last_change() == before
    assert (again.plan, again.changes, again.granted) == (first.plan, False, {})


async def test_after_an_unchanged_deploy_the_plan_that_is_told_can_be_compiled_for(town: Town) -> None:
    await town.upload(config(compilation=WORKERS))
    await town.run(ALPHA)
    again = await town.deploy(ALPHA)

    assert (await compile_packages.begin(town.ledger, "alpha", again.plan)).plan == again.plan


@pytest.mark.parametrize("change", ["text", "config"])
async def test_what_the_author_wrote_is_kept_even_where_no_vm_changes(town: Town, change: str) -> None:
    await town.upload(config())
    first = await town.run(ALPHA)
    if change == "config":
        await town.upload(config(lab(reserved=["172.20.5.14"])))
    again = await town.deploy(f"# {change}\n{ALPHA}" if change == "text" else ALPHA)
    third = await town.deploy(f"# {change}\n{ALPHA}" if change == "text" else ALPHA)

    assert not again.changes
    assert first.plan != again.plan == third.plan


async def test_a_plan_that_nobody_finished_is_the_next_ones(town: Town) -> None:
    await town.upload(config())
    first = await town.deploy(ALPHA)
    again = await town.deploy(ALPHA)

    assert (again.plan != first.plan, again.changes) == (True, True)
    assert {each.plan for each in await town.instances("alpha")} == {again.plan}


async def test_an_ignored_instance_that_still_waits_is_told_as_kept(town: Town) -> None:
    await town.upload(config())
    await town.deploy(ALPHA)
    [one, two] = await town.instances("alpha")
    await report_vm.commit(town.ledger, "alpha", one.name, vm="vm-1")
    await report_vm.ignore(town.ledger, "alpha", two.name)

    assert not (await town.deploy(ALPHA)).changes
    assert not (await town.deploy(ALPHA)).changes


async def test_what_a_deploy_frees_is_what_it_read(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    await town.upload(config())
    await town.deploy(ALPHA)
    await report_vm.fail(town.ledger, "alpha", "app/1")
    apply, freed = town.ledger.apply, list[Release]()

    async def noting(operations: Any, **more: Any) -> Any:
        freed.extend(each for each in operations if isinstance(each, Release))
        return await apply(operations, **more)

    monkeypatch.setattr(town.ledger, "apply", noting)
    await town.deploy(manifest("alpha", app(1)))

    assert [each.address for each in freed] == ["172.20.5.3"]
    assert all(each.generation is not None for each in freed)
