"""Labels: ``labels`` says them all, ``add_labels`` and ``remove_labels`` say what changes; on everything alike."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

import tenure

Ledger = tenure.AsyncLedger
Change = Callable[..., Awaitable[Mapping[str, str]]]

HAD = {"hostname": "web-0", "mac": "aa:00:00:00:00:01"}


async def network(ledger: Ledger, **said: Any) -> Mapping[str, str]:
    return (await ledger.modify_network("net", **said)).notes.labels


async def subnet(ledger: Ledger, **said: Any) -> Mapping[str, str]:
    return (await ledger.modify_subnet("net", "s", **said)).subnets[0].notes.labels


async def pool(ledger: Ledger, **said: Any) -> Mapping[str, str]:
    found = (await ledger.modify_pool("net", "p", **said)).subnets[0].pools
    assert found[0].notes.labels == found[1].notes.labels
    return found[0].notes.labels


async def holding(ledger: Ledger, **said: Any) -> Mapping[str, str]:
    return (await ledger.modify_holding("net", "192.0.2.10", owner="vm/a", **said)).labels


@pytest.fixture(params=[network, subnet, pool, holding], ids=lambda each: str(each.__name__))
async def change(request: pytest.FixtureRequest, ledger: Ledger) -> Change:
    """Put labels on a network, a subnet, a pool of two ranges and a holding; give what changes one of them."""
    await ledger.add_network("net", labels=HAD)
    await ledger.add_subnet("net", "192.0.2.0/24", name="s", labels=HAD)
    for span in ("192.0.2.10-192.0.2.19", "192.0.2.30-192.0.2.39"):
        await ledger.add_pool("net", span, name="p", labels=HAD)
    await ledger.allocate("net", owner="vm/a", labels=HAD)
    changes: Change = request.param
    return changes


async def test_added_labels_leave_the_others_as_they_are(ledger: Ledger, change: Change) -> None:
    assert await change(ledger, add_labels={"team": "shop"}) == {**HAD, "team": "shop"}
    assert await change(ledger, add_labels={"team": "bank"}) == {**HAD, "team": "bank"}


async def test_removed_labels_leave_the_others_as_they_are(ledger: Ledger, change: Change) -> None:
    assert await change(ledger, remove_labels=["mac"]) == {"hostname": "web-0"}
    assert await change(ledger, remove_labels=["mac"]) == {"hostname": "web-0"}


async def test_labels_are_added_and_removed_together(ledger: Ledger, change: Change) -> None:
    assert await change(ledger, add_labels={"team": "shop"}, remove_labels=["mac"]) == {
        "hostname": "web-0",
        "team": "shop",
    }


async def test_labels_replace_all_there_were(ledger: Ledger, change: Change) -> None:
    assert await change(ledger, labels={"team": "shop"}) == {"team": "shop"}
    assert await change(ledger, labels={}) == {}


WRONG: list[tuple[Mapping[str, Any], str]] = [
    ({"labels": {"a": "b"}, "add_labels": {"c": "d"}}, "labels"),
    ({"labels": {}, "remove_labels": ["mac"]}, "labels"),
    ({"add_labels": {"mac": "x"}, "remove_labels": ["mac"]}, "remove_labels"),
    ({"add_labels": {"n": 7}}, "add_labels"),
    ({"add_labels": ["mac"]}, "add_labels"),
    ({"remove_labels": "mac"}, "remove_labels"),
    ({"remove_labels": [""]}, "remove_labels"),
    ({"add_labels": {str(number): "" for number in range(64)}}, "labels"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("said", "field"), WRONG, ids=lambda case: str(case)[:40])
async def test_what_cannot_be_meant_is_refused_by_name_and_changes_nothing(
    ledger: Ledger, change: Change, said: Mapping[str, Any], field: str
) -> None:
    before = await ledger.last_change()

    with pytest.raises(tenure.Invalid) as refusal:
        await change(ledger, **said)

    assert (refusal.value.field or "").startswith(field)
    assert await ledger.last_change() == before
    assert await change(ledger, description="x") == HAD
