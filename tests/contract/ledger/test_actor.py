"""On whose word: every change of a ledger that acts for somebody tells for whom, and by which request of his."""

import pytest

import tenure
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import let_deadlines_pass, let_waiters_die

pytestmark = pytest.mark.usefixtures("embedded")

ANN = ("token/ann", "r-1")


@pytest.fixture
async def anns(embedded: None, ledger: tenure.AsyncLedger) -> tenure.AsyncLedger:
    """Give the ledger of somebody named, with a small plan that nobody in particular wrote."""
    await small_plan(ledger)
    return ledger.asked_by(ANN[0], request_id=ANN[1])


async def told(ledger: tenure.AsyncLedger, after: int) -> list[tuple[str, str | None, str | None]]:
    return [(change.verb, change.actor, change.request_id) async for change in ledger.changes(after)]


async def test_what_is_done_in_nobodys_name_tells_of_nobody(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    holding = await ledger.allocate("net", owner="vm/a")

    assert holding.actor is None
    assert {(actor, request) for _, actor, request in await told(ledger, 0)} == {(None, None)}


async def test_every_verb_on_holdings_tells_who_asked(ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger) -> None:
    start = await ledger.last_change()

    first = await anns.allocate("net", owner="vm/a", key="k")
    await anns.modify_holding("net", first.address, owner="vm/a", labels={"x": "y"})
    await anns.transfer("net", first.address, owner="vm/a", to="vm/b")
    await anns.release("net", first.address, owner="vm/b")
    second = await anns.hold("net", owner="vm/c")
    await anns.confirm("net", second.address, owner="vm/c")
    await anns.allocate_many("net", owners=["vm/d"])
    await anns.release_owner("vm/d")

    verbs = ["grant", "modify", "transfer", "release", "grant", "confirm", "grant", "release"]
    assert await told(ledger, start) == [(verb, *ANN) for verb in verbs]
    assert all("by" not in change.details for change in [change async for change in ledger.changes(start)])


async def test_edits_and_papers_tell_who_asked(ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger) -> None:
    start = await ledger.last_change()

    await anns.add_network("other")
    await anns.reserve("net", "192.0.2.12")
    await anns.apply([tenure.WritePaper(kind="note", name="n", document={"x": 1})])

    found = await told(ledger, start)
    assert len(found) == 3
    assert {(actor, request) for _, actor, request in found} == {ANN}


async def test_waiting_and_giving_up_tell_who_asked(ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger) -> None:
    await ledger.allocate_many("net", owner="vm/full", count=10)
    start = await ledger.last_change()

    await anns.claim("net", owner="vm/late")
    await anns.withdraw("net", owner="vm/late")

    assert await told(ledger, start) == [("wait", *ANN), ("leave", *ANN)]


async def test_trimming_tells_who_asked_and_sweeping_that_it_was_time(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    await ledger.hold("net", owner="vm/late", lasts_s=60)
    await ledger.allocate_many("net", owner="vm/full", count=9)
    await ledger.claim("net", owner="vm/waits", patience_s=60)
    await let_deadlines_pass(ledger)
    await let_waiters_die(ledger)
    start = await ledger.last_change()

    await anns.sweep()
    await anns.trim_changes(start)

    assert await told(ledger, start) == [("release", None, None), ("leave", None, None), ("trim", *ANN)]
    assert [change.details async for change in ledger.changes(start + 2)] == [{"before": start}]


async def test_a_holding_tells_on_whose_word_it_is_held_until_somebody_else_hands_it_on(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    held = await anns.allocate("net", owner="vm/a")
    read = await ledger.holding("net", held.address)
    handed_on = await ledger.asked_by("token/bob").transfer("net", held.address, owner="vm/a", to="vm/b")

    assert (held.actor, read.actor, handed_on.actor) == ("token/ann", "token/ann", "token/bob")


async def test_a_change_of_words_by_nobody_tells_of_nobody(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    held = await anns.allocate("net", owner="vm/a")
    start = await ledger.last_change()

    await ledger.modify_holding("net", held.address, owner="vm/a", description="x")

    assert await told(ledger, start) == [("modify", None, None)]


async def test_a_repeated_request_under_a_key_is_the_same_whoever_asks(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    first = await anns.allocate("net", owner="vm/a", key="k")
    again = await ledger.asked_by("token/ann", request_id="r-2").allocate("net", owner="vm/a", key="k")

    assert (again.address, again.generation) == (first.address, first.generation)


@pytest.mark.parametrize("actor", ["", "a\nb", 7])
async def test_an_actor_without_a_name_is_refused(ledger: tenure.AsyncLedger, actor: str) -> None:
    with pytest.raises(tenure.Invalid) as refused:
        ledger.asked_by(actor)

    assert refused.value.field == "actor"


async def test_a_cooling_release_tells_who_asked(ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger) -> None:
    held = await anns.allocate("net", owner="vm/a")
    start = await ledger.last_change()

    await anns.release("net", held.address, owner="vm/a", lingers_s=60)

    assert await told(ledger, start) == [("cool", *ANN)]


@pytest.mark.parametrize("policy", ["lowest", "random"])
async def test_a_repeated_key_tells_who_asked_first(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger, policy: str
) -> None:
    again = ledger.asked_by("token/ann", request_id="r-2")
    given = await anns.allocate("net", owner="vm/a", policy=policy, key="k")
    await ledger.release("net", given.address, owner="vm/a")

    assert await again.allocate("net", owner="vm/a", policy=policy, key="k") == given
    assert given.row.details["by"] == list(ANN)


@pytest.mark.parametrize("key", [None, "k"])
async def test_what_a_release_returns_names_the_request_and_the_actor_of_the_release(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger, key: str | None
) -> None:
    bobs = ledger.asked_by("token/bob", request_id="r-2")
    for owner in ("vm/a", "vm/b"):
        await anns.allocate("net", owner=owner, request="granted")
    await anns.hold("net", owner="vm/c", request="granted")

    ended = [
        await bobs.release("net", "192.0.2.10", owner="vm/a", request="ended", key=key),
        *await bobs.release_owner("vm/b", request="ended"),
        await bobs.cancel("net", "192.0.2.12", owner="vm/c", request="ended"),
    ]

    assert [(each.request, each.actor, each.request_id) for each in ended if each] == [
        ("ended", "token/bob", "r-2")
    ] * 3


async def test_what_a_release_by_nobody_returns_does_not_name_the_grant(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    held = await anns.allocate("net", owner="vm/a", request="granted")

    ended = await ledger.release("net", held.address, owner="vm/a")

    assert ended is not None
    assert (ended.request, ended.actor, ended.request_id) == (None, None, None)


async def test_what_a_sweep_returns_was_ended_by_no_request(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    await anns.hold("net", owner="vm/late", lasts_s=60, request="granted")
    await let_deadlines_pass(ledger)

    [swept] = await anns.sweep()

    assert (swept.request, swept.actor, swept.request_id) == (None, None, None)


async def test_the_log_names_the_request_of_an_end_apart_from_that_of_the_beginning(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    for owner, ends in (("vm/a", {"request": "ended"}), ("vm/b", {})):
        held = await anns.allocate("net", owner=owner, request="granted")
        await anns.release("net", held.address, owner=owner, **ends)  # type: ignore[arg-type]

    ended = [change async for change in ledger.changes(0) if change.verb == "release"]
    assert [(each.request, each.details["began_request"]) for each in ended] == [
        ("ended", "granted"),
        (None, "granted"),
    ]
    assert all("request" not in each.details for each in ended)


async def test_history_tells_who_began_and_who_ended_a_tenure(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    bobs = ledger.asked_by("token/bob", request_id="r-2")
    held = await anns.allocate("net", owner="vm/a", request="granted")
    await bobs.transfer("net", held.address, owner="vm/a", to="vm/b", request="handed on")
    await anns.release("net", held.address, owner="vm/b")
    await bobs.allocate("net", owner="vm/c", address=held.address)

    first, second, third = await ledger.history(held.address)
    assert (first.begun_text, first.ended_text) == ("token/ann, request granted", "token/bob, request handed on")
    assert (second.begun_text, second.ended_text) == ("token/bob, request handed on", "token/ann, request r-1")
    assert (third.begun_text, third.ended_text) == ("token/bob, request r-2", "")
    assert str(second).endswith(", released (token/ann, request r-1)")


async def test_the_history_names_who_began_and_who_ended_each_tenure(
    ledger: tenure.AsyncLedger, anns: tenure.AsyncLedger
) -> None:
    bobs = ledger.asked_by("token/bob", request_id="r-2")
    await ledger.modify_pool("net", "pool", cooling_s=0)
    first = await anns.allocate("net", owner="vm/a", request="ticket-1")
    await bobs.transfer("net", first.address, owner="vm/a", to="vm/b")
    await anns.release("net", first.address, owner="vm/b", request="ticket-2")
    again = await bobs.allocate("net", owner="vm/c", address=first.address)
    await ledger.release("net", again.address, owner="vm/c")
    await ledger.modify_pool("net", "pool", cooling_s=600)
    await anns.allocate("net", owner="vm/d", address=first.address)
    await bobs.release("net", first.address, owner="vm/d")

    found = await ledger.history(first.address)
    assert [(each.actor, each.request_id, each.ended_actor, each.ended_request_id) for each in found] == [
        (*ANN, "token/bob", "r-2"),
        ("token/bob", "r-2", *ANN),
        ("token/bob", "r-2", None, None),
        (*ANN, "token/bob", "r-2"),
    ]
    assert (found.tenures[0].request, found.tenures[1].ended_by) == ("ticket-1", "ticket-2")
