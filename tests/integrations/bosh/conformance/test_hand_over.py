"""C8, C10 and what users ask for besides: addresses that change hands inside one plan, where that is asked for."""

import asyncio
from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.planning.explain_instance import waiting_text, waits_for
from tenure.integrations.bosh.state.vm_settings import settings_of
from tenure.integrations.bosh.verbs import cloud_check, report_vm
from tenure.integrations.bosh.views.result_documents import plan_document
from tests.integrations.bosh.conformance.swapping import POOL, commit, lose, one, static, swapping, waits
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

SWAP: dict[str, Any] = {"update": {"vm_strategy": "create-swap-delete"}}


async def test_c8_two_groups_swap_in_one_plan(town: Town) -> None:
    await swapping(town)
    planned = [await waits(town, "a"), await waits(town, "b")]
    await lose(town, "a")
    half = [await waits(town, "a"), await waits(town, "b")]
    made_b = await commit(town, "b")
    made_a = await commit(town, "a")

    assert planned == [["172.20.5.11"], ["172.20.5.10"]]
    assert half == [["172.20.5.11"], []]
    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}
    assert [made.made_with and made.made_with["lab"]["ip"] for made in (made_a, made_b)] == [
        "172.20.5.11",
        "172.20.5.10",
    ]
    assert [dict(each.labels) for each in await town.ledger.holdings("lab")] == [{}, {}]


async def test_c8_while_it_waits_nobody_else_gets_the_address(town: Town) -> None:
    await swapping(town)
    other = manifest("beta", app(static_ips=["172.20.5.10"]))
    for step in ("planned", "lost", "committed"):
        if step == "lost":
            await lose(town, "a")
        if step == "committed":
            await commit(town, "b")
        with pytest.raises(Refused) as caught:
            await town.deploy(other, hand_over=True)
        assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE


async def test_c8_who_still_waits_gets_no_vm_and_is_told_for_whom(town: Town) -> None:
    await swapping(town)
    giver = await one(town, "b")
    with pytest.raises(Refused) as caught:
        await commit(town, "a")

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert "IP '172.20.5.11/32' for instance 'a/" in caught.value.message
    assert f"it waits for '{giver.name}' to hand it over" in caught.value.message


async def test_c8_settings_tell_what_is_waited_for(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11))
    planned = await town.deploy(static(a=11, b=10), hand_over=True)
    giver, waiting = await one(town, "b"), await one(town, "a")

    told = settings_of(waiting, planned.config)["lab"]
    assert told["waiting"] == {"ip": "172.20.5.11", "of": giver.name}
    assert "ip" not in told


@pytest.mark.parametrize("dry", [True, False], ids=["plan", "apply"])
async def test_c8_a_plan_tells_settings_as_they_are_and_addresses_as_they_will_be(town: Town, dry: bool) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11))
    planned = await town.deploy(static(a=11, b=10), hand_over=True, dry=dry)
    giver = await one(town, "b")
    [told, _] = plan_document(planned, applied=not dry)["instances"]

    assert told["settings"]["lab"]["waiting"] == {"ip": "172.20.5.11", "of": giver.name}
    assert "ip" not in told["settings"]["lab"]
    assert [(each["before"], each["after"]) for each in told["networks"]] == [(["172.20.5.10"], "172.20.5.11")]


async def test_c8_a_plan_that_is_only_tried_tells_the_swap_and_changes_nothing(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11))
    before = await town.ledger.last_change()
    tried = await town.deploy(static(a=11, b=10), hand_over=True, dry=True)

    assert [each.instance.waits[0]["address"] for each in tried.steps] == ["172.20.5.11", "172.20.5.10"]
    assert await town.ledger.last_change() == before


async def test_c8_three_groups_in_a_ring(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11, c=12))
    await town.deploy(static(a=11, b=12, c=10), hand_over=True)
    await lose(town, "a")
    for group in ("c", "b", "a"):
        await commit(town, group)

    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".12", "c/0": ".10"}


async def test_c8_reports_may_come_at_once_and_twice(town: Town) -> None:
    await swapping(town)
    await asyncio.gather(lose(town, "a"), lose(town, "b"), lose(town, "a"), lose(town, "b"))
    waiting = [await waits(town, "a"), await waits(town, "b")]
    commits = [report_vm.commit(town.ledger, "alpha", f"{group}/0", vm=f"vm-new-{group}") for group in ("a", "b")]
    await asyncio.gather(*commits, town.deploy(static(a=11, b=10), hand_over=True))

    assert waiting == [[], []]
    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}


async def test_c8_who_waits_is_explained(town: Town) -> None:
    await swapping(town)
    waiting = await one(town, "a")

    assert waits_for(waiting) == "hand_over"
    assert waiting_text(waiting).startswith("172.20.5.11 of b/")


async def test_a_static_ip_moves_to_another_whose_own_becomes_free(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11))
    await town.deploy(static(a=12, b=10), hand_over=True)
    await commit(town, "a")
    free_for_b = await waits(town, "b")
    await commit(town, "b")

    assert free_for_b == []
    assert await town.tails("alpha") == {"a/0": ".12", "b/0": ".10"}
    assert len(await town.ledger.holdings("lab")) == 2


async def test_c10_a_new_group_waits_for_the_one_that_leaves(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10))
    await town.deploy(static(b=10), hand_over=True)
    with pytest.raises(Refused):
        await commit(town, "b")
    await lose(town, "a")
    made = await commit(town, "b")

    assert [each.address for each in made.holdings] == ["172.20.5.10"]
    assert await town.tails("alpha") == {"b/0": ".10"}


async def test_c10_what_no_vm_carries_changes_hands_at_once(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10))
    await report_vm.stop(town.ledger, "alpha", "a/0", hard=True)
    handed = await town.deploy(static(b=10), hand_over=True)

    assert await waits(town, "b") == []
    assert [each.address for each in handed.granted.values()] == ["172.20.5.10"]
    assert await town.tails("alpha") == {"b/0": ".10"}


async def test_c8_two_without_vms_swap_at_once(town: Town) -> None:
    await town.upload(POOL)
    await town.deploy(static(a=10, b=11))
    for group in ("a", "b"):
        await report_vm.fail(town.ledger, "alpha", f"{group}/0")
    await town.run(static(a=11, b=10), hand_over=True)

    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}
    assert len(await town.ledger.holdings("lab")) == 2


@pytest.mark.parametrize("what", ["failed", "taken back"])
async def test_c8_what_a_vm_may_come_up_on_changes_hands_when_that_is_known(town: Town, what: str) -> None:
    await town.upload(POOL)
    first = await town.deploy(static(a=10, b=11))
    await town.deploy(static(a=11, b=10), hand_over=True)
    assert [await waits(town, "a"), await waits(town, "b")] == [["172.20.5.11"], ["172.20.5.10"]]
    await lose(town, "a")
    assert await waits(town, "b") == ["172.20.5.10"], "that no VM is there does not say that none is made"
    if what == "failed":
        for group in ("a", "b"):
            await report_vm.fail(town.ledger, "alpha", f"{group}/0", plan=first.plan)
    else:
        await report_vm.abort(town.ledger, "alpha", first.plan)
    await commit(town, "a")
    await commit(town, "b")

    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}
    assert len(await town.ledger.holdings("lab")) == 2


async def test_c8_nor_does_it_where_the_vm_is_made_in_place_of_a_lost_one(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10))
    await lose(town, "a")
    await town.deploy(static(a=10))
    await town.deploy(static(a=11, b=10), hand_over=True)
    assert await waits(town, "b") == ["172.20.5.10"]
    await commit(town, "a")

    assert await waits(town, "b") == []


async def test_c8_c10_without_the_option_both_are_refused(town: Town) -> None:
    await town.upload(POOL)
    await town.run(static(a=10, b=11))
    before = await town.has("alpha")
    for text in (static(a=11, b=10), static(b=10)):
        with pytest.raises(Refused) as caught:
            await town.deploy(text)
        assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE

    assert await town.has("alpha") == before


async def test_what_another_deployment_has_is_refused_with_the_option_too(town: Town) -> None:
    await town.upload(POOL)
    await town.run(manifest("beta", app(static_ips=["172.20.5.10"])))
    with pytest.raises(Refused):
        await town.deploy(static(a=10), hand_over=True)


async def test_a_vip_changes_hands_like_any_other(town: Town) -> None:
    def with_vip(**groups: str) -> str:
        networks = {
            name: [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub", "static_ips": [vip]}]
            for name, vip in groups.items()
        }
        return manifest("alpha", *(app(name=name, networks=on) for name, on in networks.items()))

    await town.upload(config(more=[{"name": "pub", "type": "vip"}]))
    await town.run(with_vip(a="198.51.100.7", b="198.51.100.8"))
    await town.deploy(with_vip(a="198.51.100.8", b="198.51.100.7"), hand_over=True)
    await lose(town, "b")
    await commit(town, "a")
    await commit(town, "b")

    assert {name: held["pub"] for name, held in (await town.has("alpha")).items()} == {
        "a/0": "198.51.100.8",
        "b/0": "198.51.100.7",
    }


async def test_a_pool_that_is_full_is_served_from_what_the_plan_gives_up(town: Town) -> None:
    await town.upload(config(lab(reserved=["172.20.5.4-172.20.5.14"])))
    await town.run(manifest("alpha", app(2, name="a")))
    with pytest.raises(Refused):
        await town.deploy(manifest("alpha", app(2, name="b")))
    await town.deploy(manifest("alpha", app(2, name="b")), hand_over=True)
    waiting = [each.waits[0]["address"] for each in await town.instances("alpha") if each.group == "b"]
    for index in (0, 1):
        await report_vm.lose(town.ledger, "alpha", f"a/{index}")
        await report_vm.commit(town.ledger, "alpha", f"b/{index}", vm=f"vm-b{index}")

    assert waiting == ["172.20.5.2", "172.20.5.3"]
    assert await town.tails("alpha") == {"b/0": ".2", "b/1": ".3"}


async def test_only_whom_the_pool_has_no_room_for_waits(town: Town) -> None:
    await town.upload(config(lab(reserved=["172.20.5.5-172.20.5.14"])))
    await town.run(manifest("alpha", app(2, name="a")))
    await town.deploy(manifest("alpha", app(2, name="b")), hand_over=True)
    new = [each for each in await town.instances("alpha") if each.group == "b"]

    assert [[wait["address"] for wait in each.waits] for each in new] == [[], ["172.20.5.2"]]


async def test_what_the_plan_gives_up_serves_only_the_az_it_lies_in(town: Town) -> None:
    azs = [{"name": "z1"}, {"name": "z2"}]
    first = {"range": "172.20.5.0/30", "gateway": "172.20.5.1", "azs": ["z1"]}
    second = {"range": "172.20.6.0/30", "gateway": "172.20.6.1", "azs": ["z2"]}
    await town.upload(config(first, second, azs=azs))
    await town.run(manifest("alpha", app(2, name="a", azs=["z1", "z2"])))
    await town.deploy(manifest("alpha", app(2, name="b", azs=["z1", "z2"])), hand_over=True)
    found = {each.az: each.waits[0]["address"] for each in await town.instances("alpha") if each.group == "b"}

    assert found == {"z1": "172.20.5.2", "z2": "172.20.6.2"}
    with pytest.raises(Refused):
        await town.deploy(manifest("alpha", app(3, name="b", azs=["z1", "z2"])), hand_over=True)


async def test_a_vip_pool_that_is_empty_is_served_from_what_the_plan_gives_up(town: Town) -> None:
    pool = {"name": "pub", "type": "vip", "subnets": [{"static": ["198.51.100.20"]}]}
    on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "pub"}]
    await town.upload(config(more=[pool]))
    await town.run(manifest("alpha", app(name="a", networks=on)))
    await town.deploy(manifest("alpha", app(name="b", networks=on)), hand_over=True)
    waiting = await waits(town, "b")
    await lose(town, "a")
    await commit(town, "b")

    assert waiting == ["198.51.100.20"]
    assert (await town.has("alpha"))["b/0"]["pub"] == "198.51.100.20"


async def test_swapped_vms_do_not_wait_for_each_other(town: Town) -> None:
    await town.upload(config(lab(reserved=["172.20.5.4-172.20.5.14"])))
    await town.run(manifest("alpha", app(2, **SWAP)))
    with pytest.raises(Refused) as caught:
        await town.deploy(manifest("alpha", app(2, **SWAP)), recreate=True, hand_over=True)

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY
    assert await town.parting("alpha") == {}


async def test_what_a_swapped_vm_had_is_handed_over_when_the_orphan_is_deleted(town: Town) -> None:
    await town.upload(POOL)
    await town.run(manifest("alpha", app(name="a", static_ips=["172.20.5.10"], **SWAP)))
    old = (await one(town, "a")).vm or ""
    text = manifest("alpha", app(name="a", **SWAP), app(name="b", static_ips=["172.20.5.10"]))
    await town.deploy(text, hand_over=True)
    await commit(town, "a")
    with pytest.raises(Refused):
        await commit(town, "b")
    again = await town.deploy(text, hand_over=True)
    await report_vm.clean_up_orphan(town.ledger, old)
    await commit(town, "b")

    assert again.granted == {}
    assert await town.tails("alpha") == {"a/0": ".2", "b/0": ".10"}


async def test_a_vm_that_is_stopped_hard_hands_over(town: Town) -> None:
    await swapping(town)
    await report_vm.stop(town.ledger, "alpha", "a/0", hard=True)

    assert await waits(town, "b") == []


async def test_a_vm_that_is_missing_hands_over_if_it_is_recreated_but_not_if_it_is_only_forgotten(town: Town) -> None:
    await swapping(town)
    vms = {each.group: each.vm or "" for each in await town.instances("alpha")}
    await cloud_check.delete_reference(town.ledger, "alpha", "a/0", vm=vms["a"])
    forgotten = await waits(town, "b")
    await cloud_check.recreate(town.ledger, "alpha", "b/0", vm=vms["b"])
    recreated = await waits(town, "a")
    await commit(town, "a")
    await commit(town, "b")

    assert (forgotten, recreated) == (["172.20.5.10"], [])
    assert await town.tails("alpha") == {"a/0": ".11", "b/0": ".10"}
