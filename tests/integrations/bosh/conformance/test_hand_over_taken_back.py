"""Hand-overs that are aborted, planned again or called off: each is left with an address, and none is left over."""

import pytest

from tenure.integrations.bosh.verbs import report_vm
from tenure.kernel.errors import Conflict
from tests.integrations.bosh.conformance.swapping import POOL, commit, lose, static, swapping, waits
from tests.integrations.bosh.conformance.town import Town


async def test_a_swap_that_is_aborted_leaves_everything_as_it_was(town: Town) -> None:
    plan = await swapping(town)
    await report_vm.abort(town.ledger, "alpha", plan)
    await report_vm.abort(town.ledger, "alpha", plan)
    again = await town.deploy(static(a=10, b=11))

    assert not again.changes
    assert [await waits(town, "a"), await waits(town, "b")] == [[], []]
    assert await town.tails("alpha") == {"a/0": ".10", "b/0": ".11"}
    assert [dict(each.labels) for each in await town.ledger.holdings("lab")] == [{}, {}]


@pytest.mark.parametrize("lost", ["a", "ab"])
async def test_a_swap_that_is_aborted_half_way_gives_back(town: Town, lost: str) -> None:
    plan = await swapping(town)
    for group in lost:
        await lose(town, group)
    freed = await report_vm.abort(town.ledger, "alpha", plan)

    assert freed == []
    assert await town.tails("alpha") == {"a/0": ".10", "b/0": ".11"}
    assert [dict(each.labels) for each in await town.ledger.holdings("lab")] == [{}, {}]


async def test_a_swap_that_is_aborted_after_one_has_its_vm_leaves_each_with_an_address(town: Town) -> None:
    plan = await swapping(town)
    await lose(town, "a")
    await commit(town, "b")
    freed = await report_vm.abort(town.ledger, "alpha", plan)
    await report_vm.abort(town.ledger, "alpha", plan)

    assert freed == []
    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}


async def test_a_ring_that_is_aborted_half_way_leaves_each_with_an_address(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11, c=12))
    plan = (await town.deploy(static(a=11, b=12, c=10), hand_over=True)).plan
    for group in ("a", "b", "c"):
        await lose(town, group)
    await commit(town, "c")
    await report_vm.abort(town.ledger, "alpha", plan)

    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".12", "c/0": ".10"}


async def test_an_aborted_hand_over_from_one_who_left_frees_it_for_a_new_one_only(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10))
    plan = (await town.deploy(static(b=10), hand_over=True)).plan
    await lose(town, "a")
    freed = await report_vm.abort(town.ledger, "alpha", plan)

    assert [each.address for each in freed] == ["172.20.5.10"]
    assert await town.instances("alpha") == []


async def test_a_swap_that_is_planned_again_goes_on(town: Town) -> None:
    await swapping(town)
    await lose(town, "a")
    await town.deploy(static(a=11, b=10), hand_over=True)
    again = [await waits(town, "a"), await waits(town, "b")]
    await commit(town, "b")
    await commit(town, "a")

    assert again == [["172.20.5.11"], []]
    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}


async def test_a_swap_that_is_called_off_by_a_new_plan_moves_nobody(town: Town) -> None:
    await swapping(town)
    back = await town.run(static(a=10, b=11))

    assert not back.changes
    assert [await waits(town, "a"), await waits(town, "b")] == [[], []]
    assert await town.tails("alpha") == {"a/0": ".10", "b/0": ".11"}


async def test_a_swap_that_is_called_off_half_way_swaps_back(town: Town) -> None:
    plan = await swapping(town)
    await lose(town, "a")
    await town.deploy(static(a=10, b=11), hand_over=True)
    assert await waits(town, "a") == ["172.20.5.10"], "a VM of the other is perhaps being made on it"
    await report_vm.fail(town.ledger, "alpha", "b/0", plan=plan)
    await commit(town, "a")

    assert await town.tails("alpha") == {"a/0": ".10", "b/0": ".11"}
    assert len(await town.ledger.holdings("lab")) == 2


async def test_who_does_not_want_it_any_more_is_not_waited_for(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11))
    await town.deploy(static(a=12, b=10), hand_over=True)
    await town.deploy(static(a=12, b=11))
    await commit(town, "a")

    assert await town.tails("alpha") == {"a/0": ".12", "b/0": ".11"}
    assert len(await town.ledger.holdings("lab")) == 2


async def test_a_deployment_that_is_deleted_hands_nothing_over(town: Town) -> None:
    await swapping(town)
    left = await report_vm.delete(town.ledger, "alpha")
    for each in left:
        await report_vm.lose(town.ledger, "alpha", each.name)
    await report_vm.delete(town.ledger, "alpha")

    assert len(left) == 2
    assert await town.ledger.holdings("lab") == []


async def test_aborting_a_plan_that_another_came_after_changes_nothing(town: Town) -> None:
    first = await swapping(town)
    await lose(town, "a")
    await town.deploy(static(a=11, b=10), hand_over=True)
    freed = await report_vm.abort(town.ledger, "alpha", first)
    await commit(town, "b")
    await commit(town, "a")

    assert freed == []
    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}


async def test_a_vm_that_was_made_for_an_earlier_plan_is_refused(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10))
    earlier = await town.deploy(static(a=11))
    later = await town.deploy(static(a=12))
    with pytest.raises(Conflict, match=f"does not wait for a VM of plan {earlier.plan}"):
        await report_vm.commit(town.ledger, "alpha", "a/0", vm="vm-early", plan=earlier.plan)
    first = await report_vm.commit(town.ledger, "alpha", "a/0", vm="vm-late", plan=later.plan)
    again = await report_vm.commit(town.ledger, "alpha", "a/0", vm="vm-late", plan=later.plan)

    assert first == again
    assert await town.tails("alpha") == {"a/0": ".12"}


async def test_who_has_another_by_now_does_not_get_back_what_it_gave(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10))
    await lose(town, "a")
    await town.deploy(static(a=11, c=10), hand_over=True)
    await commit(town, "a")
    plan = (await town.deploy(static(a=12, c=10), hand_over=True)).plan
    await report_vm.abort(town.ledger, "alpha", plan)

    assert await town.tails("alpha") == {"a/0": ".11"}
    assert len(await town.ledger.holdings("lab")) == 1


async def test_what_was_handed_over_to_an_overtaken_vm_does_not_stay_with_who_has_its_own(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(b=13, c=11))
    for group in ("b", "c"):
        await lose(town, group)
        await report_vm.fail(town.ledger, "alpha", f"{group}/0")  # and none is made in its place
    await town.deploy(static(b=10, c=13), hand_over=True)
    plan = (await town.deploy(static(c=11), hand_over=True)).plan
    assert await town.parting("alpha") == {"c/0": {"lab": "172.20.5.13"}}
    for _ in range(2):
        await report_vm.abort(town.ledger, "alpha", plan)

    assert await town.tails("alpha") == {"c/0": ".11"}
    assert await town.parting("alpha") == {}
