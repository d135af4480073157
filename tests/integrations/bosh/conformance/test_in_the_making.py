"""VMs in the making while plans come and go: what one may have is freed only when it is known what became of it."""

from collections.abc import Awaitable, Callable

import pytest

from tenure.integrations.bosh.verbs import cloud_check, report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.holding_model import Holding
from tests.integrations.bosh.conformance.town import Document, Town, app, config, lab, manifest

FIRST = {"range": "10.0.0.16/28", "gateway": "10.0.0.17"}
SECOND = {"range": "10.0.0.0/28", "gateway": "10.0.0.1"}
THIRD = {"name": "c", "type": "manual", "subnets": [{"range": "10.0.0.32/28", "gateway": "10.0.0.33"}]}
ON_BOTH = app(networks=[{"name": "a", "default": ["dns", "gateway"]}, {"name": "b"}])
ON_A, ON_B, ON_C = (manifest("alpha", app(network=name)) for name in "abc")


def two(a: Document = FIRST, b: Document = SECOND) -> str:
    """Write networks ``a``, ``b`` and ``c``."""
    return config(a, name="a", more=[{"name": "b", "type": "manual", "subnets": [b]}, THIRD])


async def taken(town: Town) -> list[Holding]:
    """Return all that is held, by whomever."""
    return [each for name in "abc" for each in await town.ledger.holdings(name)]


async def refuse_late(town: Town) -> None:
    """See a VM refused that does not say which plan it was made for, and nothing freed."""
    before = await town.instances("alpha")
    with pytest.raises(Conflict, match="an earlier plan wanted other settings"):
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-late")
    assert await town.instances("alpha") == before


async def test_a_vm_that_is_made_anew_does_not_come_in_where_a_later_plan_leaves_a_network(town: Town) -> None:
    await town.upload(two())
    await town.run(manifest("alpha", ON_BOTH))
    await recreate(town.ledger, "alpha")
    await town.deploy(ON_A)

    await refuse_late(town)
    assert await town.parting("alpha") == {"app/0": {"b": "10.0.0.2"}}


async def test_a_vm_whose_networks_are_swapped_by_a_later_plan_says_its_plan(town: Town) -> None:
    await town.upload(two())
    await town.deploy(manifest("alpha", ON_BOTH))
    await town.upload(two(SECOND, FIRST))
    await town.deploy(manifest("alpha", ON_BOTH))

    assert await town.has("alpha") == {"app/0": {"a": "10.0.0.2", "b": "10.0.0.18"}}
    await refuse_late(town)


async def test_a_service_that_becomes_an_errand_keeps_what_its_vm_may_come_up_on(town: Town) -> None:
    await town.upload(two())
    first = await town.deploy(ON_A)
    await town.deploy(manifest("alpha", app(network="b", lifecycle="errand")))
    assert await town.parting("alpha") == {"app/0": {"a": "10.0.0.18"}}
    await refuse_late(town)

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=first.plan)
    assert await town.parting("alpha") == {}


async def test_who_was_started_again_keeps_what_its_vm_may_come_up_on(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    moved = await town.deploy(ON_B)
    await report_vm.start(town.ledger, "alpha", "app/0")
    await town.deploy(ON_C)
    assert await town.parting("alpha") == {"app/0": {"a": "10.0.0.18", "b": "10.0.0.2"}}
    await refuse_late(town)

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=moved.plan)
    assert await town.parting("alpha") == {"app/0": {"a": "10.0.0.18"}}


async def test_who_is_not_started_does_not(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await town.deploy(ON_B)
    await town.deploy(ON_C)

    assert await town.parting("alpha") == {"app/0": {"a": "10.0.0.18"}}


@pytest.mark.parametrize("failed", [False, True], ids=["perhaps made", "failed"])
async def test_a_vm_in_place_of_a_lost_one_says_its_plan_where_a_deploy_moved_it(town: Town, failed: bool) -> None:
    await town.upload(two())
    await town.run(ON_A)
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    if failed:
        await report_vm.fail(town.ledger, "alpha", "app/0")
    moved = await town.deploy(ON_B)
    if not failed:
        await refuse_late(town)
    await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new", plan=None if failed else moved.plan)

    assert await town.has("alpha") == {"app/0": {"b": "10.0.0.2"}}


async def test_it_need_not_where_the_deploy_means_the_same(town: Town) -> None:
    await town.upload(two())
    await town.run(ON_A)
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    await town.deploy(ON_A)

    assert (await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-new")).vm == "vm-new"


async def leaving(town: Town, network: str, how: str) -> tuple[str, str]:
    """Let an instance leave while a VM is made in place of the one it has; return that plan, and whose it is then."""
    await town.upload(two())
    await town.run(ON_A)
    made = (await town.deploy(manifest("alpha", app(network=network)), recreate=True)).plan
    if how == "deleted":
        await report_vm.delete(town.ledger, "alpha")
        return made, made
    return made, (await town.deploy(manifest("alpha", app(0, network=network)))).plan


@pytest.mark.parametrize("told", ["lost", "failed"])
@pytest.mark.parametrize("how", ["deleted", "left out"])
@pytest.mark.parametrize("network", ["a", "b"], ids=["recreated", "moved"])
async def test_who_leaves_is_gone_when_both_its_vms_are(town: Town, network: str, how: str, told: str) -> None:
    _, plan = await leaving(town, network, how)
    held = {each.address for each in await taken(town)}
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    assert {each.address for each in await taken(town)} == held
    with pytest.raises(Conflict, match="say what became of the one that was to be made in its place"):
        await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    if told == "lost":
        await report_vm.lose(town.ledger, "alpha", "app/0")
    else:
        await report_vm.fail(town.ledger, "alpha", "app/0", plan=plan)

    assert await town.instances("alpha") == []
    assert await taken(town) == []


@pytest.mark.parametrize("how", ["deleted", "left out"])
async def test_it_goes_with_the_one_it_has_where_the_other_failed(town: Town, how: str) -> None:
    made, _ = await leaving(town, "b", how)
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=made)
    assert [each.address for each in await taken(town)] == ["10.0.0.18"]
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")

    assert await taken(town) == []


async def test_a_plan_taken_back_leaves_the_vm_of_who_is_deleted(town: Town) -> None:
    made, _ = await leaving(town, "a", "deleted")
    assert await report_vm.abort(town.ledger, "alpha", made) == []
    assert [each.carrier for each in await taken(town)] == ["vm-1"]
    await report_vm.lose(town.ledger, "alpha", "app/0")

    assert await taken(town) == []


async def test_who_was_lost_before_the_plan_is_taken_back_has_its_address_again(town: Town) -> None:
    _, plan = await leaving(town, "b", "left out")
    await report_vm.lose(town.ledger, "alpha", "app/0", vm="vm-1")
    await report_vm.abort(town.ledger, "alpha", plan)

    assert await town.has("alpha") == {"app/0": {"a": "10.0.0.18"}}


async def lost(town: Town) -> None:
    await report_vm.lose(town.ledger, "alpha", "app/0")


async def started_again(town: Town) -> None:
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True)
    await report_vm.start(town.ledger, "alpha", "app/0")


async def failed_and_checked(town: Town) -> None:
    await town.deploy(ON_A, recreate=True)
    await report_vm.fail(town.ledger, "alpha", "app/0")
    [instance] = await town.instances("alpha")
    await cloud_check.recreate(town.ledger, "alpha", "app/0", vm=instance.vm or "")


async def recreated_and_let_be(town: Town) -> None:
    [instance] = await town.instances("alpha")
    await recreate(town.ledger, "alpha")
    await town.deploy(ON_A)
    await report_vm.lose(town.ledger, "alpha", "app/0", vm=instance.vm)


async def recreated_and_stopped(town: Town) -> None:
    [instance] = await town.instances("alpha")
    await recreate(town.ledger, "alpha")
    await report_vm.stop(town.ledger, "alpha", "app/0", hard=True, vm=instance.vm)
    await town.deploy(ON_A)


@pytest.mark.parametrize("leaves", ["deleted", "left out"])
@pytest.mark.parametrize(
    "told_to_make", [lost, started_again, failed_and_checked, recreated_and_let_be, recreated_and_stopped]
)
async def test_who_was_told_to_make_a_vm_keeps_the_address_until_he_says_what_became_of_it(
    town: Town, told_to_make: Callable[[Town], Awaitable[None]], leaves: str
) -> None:
    await town.upload(two())
    await town.run(ON_A)
    await told_to_make(town)
    if leaves == "deleted":
        assert [each.index for each in await report_vm.delete(town.ledger, "alpha")] == [0]
    else:
        await town.deploy(manifest("alpha", app(network="a", instances=0)))

    assert [each.address for each in await taken(town)] == ["10.0.0.18"]
    await report_vm.lose(town.ledger, "alpha", "app/0")
    assert await taken(town) == []


@pytest.mark.parametrize("told_to_make", [lost, started_again])
async def test_nor_is_the_address_handed_to_another(
    town: Town, told_to_make: Callable[[Town], Awaitable[None]]
) -> None:
    await town.upload(config(lab(static=["172.20.5.10-172.20.5.12"])))
    pair = [app(static_ips=["172.20.5.10"]), app(name="other", static_ips=["172.20.5.11"])]
    await town.run(manifest("alpha", *pair))
    await told_to_make(town)
    moved = [app(static_ips=["172.20.5.12"]), app(name="other", static_ips=["172.20.5.10"])]
    await town.deploy(manifest("alpha", *moved), hand_over=True)

    waits = {each.group: [wait["address"] for wait in each.waits] for each in await town.instances("alpha")}
    assert waits == {"app": [], "other": ["172.20.5.10"]}


async def test_a_later_plan_that_failed_does_not_make_an_earlier_ones_vm_forgotten(town: Town) -> None:
    await town.upload(two())
    await town.deploy(ON_A)
    later = await town.deploy(manifest("alpha", ON_BOTH))
    await report_vm.fail(town.ledger, "alpha", "app/0", plan=later.plan)
    await town.upload(two({**FIRST, "reserved": ["10.0.0.18"]}))
    await town.deploy(manifest("alpha", ON_BOTH))
    assert await town.parting("alpha") == {"app/0": {"a": "10.0.0.18"}}

    assert len(await report_vm.delete(town.ledger, "alpha")) == 1
    assert "10.0.0.18" in [each.address for each in await taken(town)]


async def test_who_leaves_is_gone_when_the_vm_that_was_asked_for_last_is_told_of(town: Town) -> None:
    await town.upload(two())
    first = await town.deploy(ON_A)
    last = await town.deploy(ON_A)
    for _ in range(2):
        await town.deploy(manifest("alpha", app(network="a", instances=0)))
    with pytest.raises(Conflict, match="does not wait for a VM of plan"):
        await report_vm.fail(town.ledger, "alpha", "app/0", plan=first.plan)
    assert [each.address for each in await taken(town)] == ["10.0.0.18"]

    await report_vm.fail(town.ledger, "alpha", "app/0", plan=last.plan)
    assert await taken(town) == []
