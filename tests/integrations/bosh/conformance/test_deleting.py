"""A deployment that is deleted: nothing that goes on at the same time, or comes late, brings it back."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.state.instance_state import load_deployment
from tenure.integrations.bosh.verbs import report_vm
from tenure.integrations.bosh.verbs.deploy import deploy
from tenure.integrations.bosh.views.result_documents import plan_document
from tenure.kernel.errors import Conflict
from tenure.service.ledger.async_ledger import AsyncLedger
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest


class Interrupted:
    """A ledger where something else is done just before the first ``apply``."""

    def __init__(self, ledger: AsyncLedger, other: Callable[[], Awaitable[Any]]) -> None:
        self._ledger = ledger
        self._others = [other]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def apply(self, operations: Sequence[Any]) -> Any:
        """Do the other thing first, once."""
        while self._others:
            await self._others.pop()()
        return await self._ledger.apply(operations)


async def test_a_deploy_that_read_before_a_delete_does_not_say_that_all_is_kept(town: Town) -> None:
    await town.upload(config())
    text = manifest("alpha", {**app(), "env": {"note": "first"}})
    await town.run(text)
    [old] = await town.instances("alpha")
    other = text.replace("first", "second")
    ledger: Any = Interrupted(town.ledger, lambda: report_vm.delete(town.ledger, "alpha"))
    deployed = await deploy(ledger, "manifest.yml", other)

    assert [step.instance.uuid == old.uuid for step in deployed.steps] == [False, True]
    assert {each.uuid == old.uuid: each.leaving for each in await town.instances("alpha")} == {True: True, False: False}


async def test_a_plan_that_is_taken_back_after_a_delete_keeps_nobody(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    plan = (await town.deploy(manifest("alpha", app(2)), recreate=True)).plan
    await report_vm.delete(town.ledger, "alpha")
    await report_vm.abort(town.ledger, "alpha", plan)

    assert [(each.leaving, each.plan) for each in await town.instances("alpha")] == [(True, None)] * 2
    for each in await town.instances("alpha"):
        await report_vm.lose(town.ledger, "alpha", each.name)
    assert await report_vm.delete(town.ledger, "alpha") == []
    assert await load_deployment(town.ledger, "alpha") is None
    assert await town.ledger.holdings("lab") == []


async def test_what_a_plan_reserved_goes_with_who_is_deleted(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config({"range": "172.20.5.0/28", "gateway": "172.20.5.1", "reserved": ["172.20.5.2"]}))
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await report_vm.delete(town.ledger, "alpha")
    assert [each.address for each in await report_vm.abort(town.ledger, "alpha", plan)] == ["172.20.5.3"]
    await report_vm.lose(town.ledger, "alpha", "app/0")

    assert await town.ledger.holdings("lab") == []


async def unmade(town: Town) -> str:
    """Delete a deployment while its only VM is perhaps being made; return the plan."""
    await town.upload(config())
    plan = (await town.deploy(manifest("alpha", app()))).plan
    for _ in range(2):
        assert [each.vm for each in await report_vm.delete(town.ledger, "alpha")] == [None]
    return plan


async def test_an_address_is_nobody_elses_while_a_vm_may_come_up_on_it(town: Town) -> None:
    plan = await unmade(town)
    await town.run(manifest("beta", app()))
    assert await town.tails("beta") == {"app/0": ".3"}
    with pytest.raises(Conflict, match="is not wanted any more; report that its VM is deleted"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=plan)

    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-new")
    assert await report_vm.delete(town.ledger, "alpha") == []
    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.3"]


async def test_it_is_free_when_that_vm_failed(town: Town) -> None:
    plan = await unmade(town)
    with pytest.raises(Conflict, match="does not wait for a VM of plan other"):
        await report_vm.fail(town.ledger, "alpha", "app/0", plan="other")
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=plan)

    assert await town.instances("alpha") == []
    assert await town.ledger.holdings("lab") == []


async def test_it_is_free_when_the_plan_is_taken_back(town: Town) -> None:
    plan = await unmade(town)
    freed = await report_vm.abort(town.ledger, "alpha", plan)

    assert [each.address for each in freed] == ["172.20.5.2"]
    assert await report_vm.delete(town.ledger, "alpha") == []
    assert await town.ledger.holdings("lab") == []


async def test_who_failed_is_gone_at_once(town: Town) -> None:
    await town.upload(config())
    await town.deploy(manifest("alpha", app()))
    await report_vm.fail(town.ledger, "alpha", "app/0")

    assert await report_vm.delete(town.ledger, "alpha") == []
    assert await town.ledger.holdings("lab") == []


async def outgrown(town: Town) -> tuple[str, str]:
    """Let the second of two instances leave by a later plan while its first VM is perhaps being made; return both."""
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    first = await town.deploy(manifest("alpha", app(2)))
    later = await town.deploy(manifest("alpha", app()))
    await town.run(manifest("beta", app()))
    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    assert await town.tails("beta") == {"app/0": ".4"}
    [told] = [each for each in plan_document(later, applied=True)["instances"] if each["action"] == "leaves"]
    assert (told["vm"], told["waits_for"]) == (None, "deletion")
    return first.plan, later.plan


@pytest.mark.parametrize("what", ["gone", "failed", "first failed", "taken back", "deployed again"])
async def test_who_leaves_while_its_vm_may_come_up_keeps_its_address_until_that_is_known(town: Town, what: str) -> None:
    first, later = await outgrown(town)
    with pytest.raises(Conflict, match="is not wanted any more; report that its VM is deleted"):
        await report_vm.commit(town.ledger, "alpha", "app/1", vm="vm-new", plan=first)
    with pytest.raises(Conflict, match="does not wait for a VM of plan other"):
        await report_vm.fail(town.ledger, "alpha", "app/1", plan="other")
    if what == "deployed again":
        later = (await town.deploy(manifest("alpha", app()))).plan
        assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    if what == "gone":
        await report_vm.lose(town.ledger, "alpha", "app/1", vm="vm-new")
    elif "failed" in what:
        await report_vm.fail(town.ledger, "alpha", "app/1", plan=first if "first" in what else later)
    else:
        await report_vm.abort(town.ledger, "alpha", later)

    assert await town.tails("alpha") == {"app/0": ".2"}
    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.2", "172.20.5.4"]
    assert not (await town.deploy(manifest("alpha", app()))).changes


async def overtaken(town: Town) -> tuple[str, str]:
    """Have a first plan that wants .12 for a group's only instance, and a later one that wants .10; return both."""
    await town.upload(config(lab(static=["172.20.5.10-172.20.5.12"])))
    first = await town.deploy(manifest("alpha", app(name="b", static_ips=["172.20.5.12"])))
    later = await town.deploy(manifest("alpha", app(name="b", static_ips=["172.20.5.10"])))
    return first.plan, later.plan


@pytest.mark.parametrize("known", ["failed", "taken back", "gone"])
@pytest.mark.parametrize("what", ["left, failed", "failed, left", "failed, deleted"])
async def test_who_leaves_keeps_what_an_earlier_plans_vm_may_have_until_that_is_known(
    town: Town, what: str, known: str
) -> None:
    first, later = await overtaken(town)
    for each in what.split(", "):
        if each == "failed":
            await report_vm.fail(town.ledger, "alpha", "b/0", plan=later)
        elif each == "left":
            await town.deploy(manifest("alpha", app()))
        else:
            assert len(await report_vm.delete(town.ledger, "alpha")) == 1
    with pytest.raises(Refused):
        await town.deploy(manifest("beta", app(static_ips=["172.20.5.12"])))
    if known == "failed":
        await report_vm.fail(town.ledger, "alpha", "b/0", plan=first)
    elif known == "taken back":
        await report_vm.abort(town.ledger, "alpha", first)
    else:
        await report_vm.lose(town.ledger, "alpha", "b/0")
    await town.run(manifest("beta", app(2, static_ips=["172.20.5.10", "172.20.5.12"])))

    assert "b" not in {each.group for each in await town.instances("alpha")}


async def test_what_only_the_later_plan_wanted_is_free_when_that_failed(town: Town) -> None:
    first, later = await overtaken(town)
    await town.deploy(manifest("alpha", app()))
    await report_vm.fail(town.ledger, "alpha", "b/0", plan=later)
    await town.run(manifest("beta", app(static_ips=["172.20.5.10"])))

    assert await town.parting("alpha") == {"b/0": {"lab": "172.20.5.12"}}
    await report_vm.fail(town.ledger, "alpha", "b/0", plan=first)
    assert await town.parting("alpha") == {}


async def test_a_deploy_after_a_delete_frees_nothing_that_a_vm_may_come_up_on(town: Town) -> None:
    plan = await unmade(town)
    await town.deploy(manifest("alpha", app(name="web")))
    assert await town.tails("alpha") == {"app/0": ".2", "web/0": ".3"}
    await report_vm.abort(town.ledger, "alpha", plan)

    assert await town.tails("alpha") == {"web/0": ".3"}


async def test_who_leaves_after_a_plan_that_moved_it_goes_back_to_before_both(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await town.upload(config({"range": "172.20.5.0/28", "gateway": "172.20.5.1", "reserved": ["172.20.5.3"]}))
    await town.deploy(manifest("alpha", app(2)))
    later = await town.deploy(manifest("alpha", app()))
    await report_vm.abort(town.ledger, "alpha", later.plan)

    assert await town.tails("alpha") == {"app/0": ".2", "app/1": ".3"}
    assert await town.parting("alpha") == {}
