"""D25: ignored instances in the midst of something: they wait for what they waited for, with the settings of then."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.test_in_the_making import FIRST, ON_A, ON_B, ON_BOTH, two
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

OTHER = app(name="other", network="c")


async def moved_and_ignored(town: Town) -> str:
    """Let an instance be ignored while it moves from ``a`` to ``b``; return the plan."""
    await town.upload(two())
    await town.run(ON_A)
    plan = (await town.deploy(ON_B)).plan
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    return plan


async def test_another_gateway_is_not_its_own_before_it_is_deployed_again(town: Town) -> None:
    await town.upload(two())
    plan = (await town.deploy(ON_A)).plan
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    await town.upload(two({**FIRST, "gateway": "10.0.0.30"}))
    await town.deploy(ON_A)
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", plan=plan)
    assert (made.made_with or {})["a"]["gateway"] == "10.0.0.17"

    await report_vm.ignore(town.ledger, "alpha", "app/0", ignored=False)
    again = await town.deploy(ON_A)
    assert [(step.instance.plan == again.plan, step.instance.vm) for step in again.steps] == [(True, "vm-1")]


async def test_an_unchanged_manifest_is_no_change_while_it_moves(town: Town) -> None:
    plan = await moved_and_ignored(town)
    before = await town.instances("alpha")
    await town.deploy(ON_B)
    await town.deploy(manifest("alpha", app(network="b"), OTHER))
    assert [each.holdings for each in await town.instances("alpha") if each.group == "app"] == [before[0].holdings]
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-2", plan=plan)

    assert {name: said["ip"] for name, said in (made.made_with or {}).items()} == {"b": "10.0.0.2"}


async def test_a_network_more_is_one(town: Town) -> None:
    await moved_and_ignored(town)
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("alpha", ON_BOTH))

    assert caught.value.kind is BoshErrorKind.DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION


async def test_what_it_was_promised_it_gets(town: Town) -> None:
    await town.upload(config(lab(static=["172.20.5.10-172.20.5.12"])))
    pair = [app(static_ips=["172.20.5.10"]), app(name="other", static_ips=["172.20.5.11"])]
    swapped = manifest("alpha", app(static_ips=["172.20.5.11"]), app(name="other", static_ips=["172.20.5.10"]))
    await town.run(manifest("alpha", *pair))
    await town.deploy(swapped, hand_over=True)
    await report_vm.ignore(town.ledger, "alpha", "other/0")
    with pytest.raises(Refused):
        await town.deploy(manifest("alpha", *pair), hand_over=True)
    await town.deploy(swapped, hand_over=True)
    for name in ("app/0", "other/0"):
        await report_vm.lose(town.ledger, "alpha", name)

    assert await town.tails("alpha") == {"app/0": ".11", "other/0": ".10"}
    assert [each.waits for each in await town.instances("alpha")] == [(), ()]
