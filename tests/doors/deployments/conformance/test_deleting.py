"""A deployment that is deleted: nothing that goes on at the same time, or comes late, brings it back."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tenure.doors.deployments import finishing
from tenure.doors.deployments.deploying import deploy
from tenure.doors.deployments.records import load_deployment
from tenure.kernel.errors import Conflict
from tenure.service.ledger import AsyncLedger
from tests.doors.deployments.conformance.town import Town, app, config, manifest


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
    ledger: Any = Interrupted(town.ledger, lambda: finishing.delete(town.ledger, "alpha"))
    deployed = await deploy(ledger, "manifest.yml", other)

    assert [step.instance.uuid == old.uuid for step in deployed.steps] == [False, True]
    assert {each.uuid == old.uuid: each.leaving for each in await town.instances("alpha")} == {True: True, False: False}


async def test_a_plan_that_is_taken_back_after_a_delete_keeps_nobody(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    plan = (await town.deploy(manifest("alpha", app(2)), recreate=True)).plan
    await finishing.delete(town.ledger, "alpha")
    await finishing.abort(town.ledger, "alpha", plan)

    assert [(each.leaving, each.plan) for each in await town.instances("alpha")] == [(True, None)] * 2
    for each in await town.instances("alpha"):
        await finishing.lose(town.ledger, "alpha", each.name)
    assert await finishing.delete(town.ledger, "alpha") == []
    assert await load_deployment(town.ledger, "alpha") is None
    assert await town.ledger.holdings("lab") == []


async def test_what_a_plan_reserved_goes_with_who_is_deleted(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.upload(config({"range": "172.20.5.0/28", "gateway": "172.20.5.1", "reserved": ["172.20.5.2"]}))
    plan = (await town.deploy(manifest("alpha", app()))).plan
    await finishing.delete(town.ledger, "alpha")
    assert await finishing.abort(town.ledger, "alpha", plan) == []
    await finishing.lose(town.ledger, "alpha", "app/0")

    assert await town.ledger.holdings("lab") == []


async def unmade(town: Town) -> str:
    """Delete a deployment while its only VM is perhaps being made; return the plan."""
    await town.upload(config())
    plan = (await town.deploy(manifest("alpha", app()))).plan
    for _ in range(2):
        assert [each.vm for each in await finishing.delete(town.ledger, "alpha")] == [None]
    return plan


async def test_an_address_is_nobody_elses_while_a_vm_may_come_up_on_it(town: Town) -> None:
    plan = await unmade(town)
    await town.run(manifest("beta", app()))
    assert await town.tails("beta") == {"app/0": ".3"}
    with pytest.raises(Conflict, match="is not wanted any more; report that its VM is deleted"):
        await finishing.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=plan)

    await finishing.lose(town.ledger, "alpha", "app/0", vm="vm-new")
    assert await finishing.delete(town.ledger, "alpha") == []
    assert [each.address for each in await town.ledger.holdings("lab")] == ["172.20.5.3"]


async def test_it_is_free_when_that_vm_failed(town: Town) -> None:
    plan = await unmade(town)
    with pytest.raises(Conflict, match="does not wait for a VM of plan other"):
        await finishing.fail(town.ledger, "alpha", "app/0", plan="other")
    await finishing.fail(town.ledger, "alpha", "app/0", plan=plan)

    assert await town.instances("alpha") == []
    assert await town.ledger.holdings("lab") == []


async def test_it_is_free_when_the_plan_is_taken_back(town: Town) -> None:
    plan = await unmade(town)
    freed = await finishing.abort(town.ledger, "alpha", plan)

    assert [each.address for each in freed] == ["172.20.5.2"]
    assert await finishing.delete(town.ledger, "alpha") == []
    assert await town.ledger.holdings("lab") == []


async def test_who_failed_is_gone_at_once(town: Town) -> None:
    await town.upload(config())
    await town.deploy(manifest("alpha", app()))
    await finishing.fail(town.ledger, "alpha", "app/0")

    assert await finishing.delete(town.ledger, "alpha") == []
    assert await town.ledger.holdings("lab") == []
