"""Asking again with other words: the holding stays as it is, and the answer names what is not written on it."""

from collections.abc import Mapping
from typing import Any

import pytest

import tenure
from tests.contract.ledger.plan import small_plan

Ledger = tenure.AsyncLedger

WORDS: Mapping[str, Any] = {"labels": {"team": "shop"}, "description": "front", "carrier": "vm-1", "plan": "p-1"}

OTHERS: list[tuple[Mapping[str, Any], str]] = [
    ({"labels": {"team": "lab"}}, "labels"),
    ({"labels": {"team": "shop", "floor": "2"}}, "labels"),
    ({"description": "back"}, "description"),
    ({"carrier": "vm-2"}, "carrier"),
    ({"plan": "p-2"}, "plan"),
    ({"labels": {"floor": "2"}, "carrier": "vm-2"}, "labels, carrier"),
]
"""Words that the holding has not, and what the warning names."""


@pytest.fixture(autouse=True)
async def plan(ledger: Ledger) -> None:
    """Lay out a small plan in which vm/a holds an address with all words on it."""
    await small_plan(ledger)
    await ledger.allocate("net", owner="vm/a", **WORDS)


@pytest.mark.sampled
@pytest.mark.parametrize(("words", "named"), OTHERS, ids=str)
@pytest.mark.parametrize("policy", ["lowest", "random"])
async def test_words_that_a_holding_has_not_are_named_and_change_nothing(
    ledger: Ledger, words: Mapping[str, Any], named: str, policy: str
) -> None:
    before = await ledger.holding("net", "192.0.2.10")
    answered = await ledger.allocate("net", owner="vm/a", policy=policy, **words)

    [warning] = answered.warnings
    since = before.since.strftime("%Y-%m-%d %H:%M:%S UTC")
    assert warning == (
        f"vm/a has held 192.0.2.10 since {since}; unchanged: {named} (modify the holding to change that)"
    )
    assert answered == before == await ledger.holding("net", "192.0.2.10")


@pytest.mark.parametrize("words", [{}, WORDS, {"labels": {}}, {"carrier": "vm-1"}, {"request": "r-2"}], ids=str)
async def test_the_same_words_and_fewer_are_answered_without_a_warning(
    ledger: Ledger, words: Mapping[str, Any]
) -> None:
    assert (await ledger.allocate("net", owner="vm/a", **words)).warnings == ()


async def test_a_label_that_was_added_since_is_no_reason_for_a_warning(ledger: Ledger) -> None:
    await ledger.modify_holding("net", "192.0.2.10", owner="vm/a", add_labels={"floor": "2"})

    assert (await ledger.allocate("net", owner="vm/a", **WORDS)).warnings == ()


async def test_a_new_holding_and_one_that_is_read_have_no_warnings(ledger: Ledger) -> None:
    made = await ledger.hold("net", owner="vm/b", lasts_s=60.5, **WORDS)

    assert made.warnings == ()
    assert (await ledger.holding("net", made.address)).warnings == ()


async def test_a_deadline_that_is_not_so_is_named(ledger: Ledger) -> None:
    limited = await ledger.hold("net", owner="vm/b", lasts_s=600)
    endless = await ledger.hold("net", owner="vm/c")

    assert (await ledger.hold("net", owner="vm/b", lasts_s=600)).warnings == ()
    [longer] = (await ledger.hold("net", owner="vm/b", lasts_s=900)).warnings
    assert limited.until is not None
    assert longer.endswith(f"unchanged: deadline, {limited.until:%Y-%m-%d %H:%M:%S} UTC")
    [ending] = (await ledger.hold("net", owner="vm/c", lasts_s=900)).warnings
    assert ending.endswith("unchanged: deadline, none")
    await ledger.confirm("net", endless.address, owner="vm/c")
    [firm] = (await ledger.hold("net", owner="vm/c")).warnings
    assert firm.endswith("it is held, not pending, and has no deadline")


async def test_every_way_of_asking_names_them(ledger: Ledger) -> None:
    other: dict[str, Any] = {"labels": {"team": "lab"}}
    status = await ledger.claim("net", owner="vm/a", **other)
    await ledger.allocate_many("net", owner="vm/run", count=2, contiguous=True)

    answers = [
        status.holding,
        *await ledger.allocate_many("net", owners=["vm/a", "vm/new"], **other),
        *await ledger.allocate_many("net", owner="vm/run", count=2, contiguous=True, **other),
        *await ledger.apply([tenure.Allocate(network="net", owner="vm/a", **other)]),
    ]
    assert [len(each.warnings) for each in answers if isinstance(each, tenure.Holding)] == [1, 1, 0, 1, 1, 1]


@pytest.mark.parametrize("many", [False, True])
async def test_an_answer_under_a_key_keeps_its_warnings_whatever_happens_since(ledger: Ledger, many: bool) -> None:
    async def ask() -> tenure.Holding:
        if not many:
            return await ledger.allocate("net", owner="vm/a", carrier="vm-2", key="k")
        [answer] = await ledger.allocate_many("net", owners=["vm/a"], labels={"team": "lab"}, key="k")
        return answer

    first = await ask()
    await ledger.modify_holding("net", "192.0.2.10", owner="vm/a", carrier="vm-2", labels={"team": "lab"})
    again = await ask()

    assert len(first.warnings) == 1
    assert (again, again.warnings) == (first, first.warnings)
