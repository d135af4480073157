"""Instances without a VM in the in-memory mode: nobody holds their addresses, and nobody else's become theirs."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import report_vm
from tenure.kernel.errors import Conflict
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, lab


@pytest.fixture
async def alpha(town: Town) -> Fleet:
    """Give alpha, with one instance on .2."""
    fleet = Fleet(town, "alpha")
    await fleet.run(own("alpha", app()))
    return fleet


async def test_who_was_stopped_hard_is_started_on_what_the_last_deploy_left_it(town: Town, alpha: Fleet) -> None:
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    alpha.vms.clear()
    text = own("alpha", app(3, name="b"), app())
    await alpha.run(text)
    before = await town.ledger.last_change()
    assert not (await alpha.deploy(text)).changes
    assert await town.ledger.last_change() == before
    started = await report_vm.start(town.ledger, "alpha", "app/0")
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert await alpha.tails() == {"b/0": ".2", "b/1": ".3", "b/2": ".4"}
    assert (started.remembered, made.remembered) == ({"lab": "172.20.5.5"}, {"lab": "172.20.5.5"})


async def test_who_was_stopped_hard_is_started_as_it_was_if_there_was_no_deploy(town: Town, alpha: Fleet) -> None:
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await report_vm.start(town.ledger, "alpha", "app/0")
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert made.remembered == {"lab": "172.20.5.2"}


async def test_who_lost_its_vm_does_not_get_back_what_a_plan_gave_to_another(town: Town, alpha: Fleet) -> None:
    await report_vm.lose(town.ledger, "alpha", "app/0")
    alpha.vms.clear()
    text = own("alpha", app(name="b"), app())
    plan = (await alpha.deploy(text)).plan
    await report_vm.commit(town.ledger, "alpha", "b/0", vm="vm-b", plan=plan)
    await report_vm.abort(town.ledger, "alpha", plan)
    with pytest.raises(
        Refused, match=r"'172\.20\.5\.2/32' for instance 'app/.*already reserved by instance 'b/"
    ) as caught:
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE


async def test_where_two_plans_want_other_settings_a_vm_says_which_it_was_made_for(town: Town, alpha: Fleet) -> None:
    def by(gateway: str) -> str:
        return own("alpha", app(), subnets=(lab(gateway=gateway),))

    for _ in range(2):
        await alpha.deploy(by("172.20.5.14"))
        assert [bool(each.earlier) for each in await town.instances("alpha")] == [False]
    later = await alpha.deploy(by("172.20.5.13"))
    with pytest.raises(Conflict, match="an earlier plan wanted other settings"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=later.plan)

    assert (made.made_with or {})["lab"]["gateway"] == "172.20.5.13"
