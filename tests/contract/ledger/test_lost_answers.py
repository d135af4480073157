"""An answer is lost after the commit, and somebody else goes on meanwhile: asking again must not do it again.

The store commits and loses its answer; before the ledger asks again, another server changes what the first try did. The
caller must be answered what the first try did, and the second try must add nothing to the log.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import pytest

import tenure
from tenure.ports import LedgerStore
from tenure.service.ledger.engine_ledger import server_of
from tests.contract.ledger.timing import another

pytestmark = pytest.mark.every_store

Act = Callable[[tenure.AsyncLedger], Awaitable[Any]]

WRITES = ("transact", "grant", "grant_unless_freed", "release", "rewrite_unchanged")
TEN = "192.0.2.10"


class Case(NamedTuple):
    """What is asked, what another server does before it is asked again, and what the caller must be answered."""

    ask: Act
    meanwhile: Act
    answered: Callable[[Any], bool]


async def nothing(_: tenure.AsyncLedger) -> None:
    """Leave things as the first try left them."""


async def taken_by_another(other: tenure.AsyncLedger) -> None:
    await other.allocate("net", owner="vm/z", address=TEN)


async def taken_again(other: tenure.AsyncLedger) -> None:
    await other.allocate("net", owner="vm/held", address=TEN)


async def let_go(other: tenure.AsyncLedger) -> None:
    for holding in await other.holdings(owner="vm/new"):
        await other.release("net", holding.address, owner="vm/new")


async def release_by_generation(ledger: tenure.AsyncLedger) -> tenure.Holding | None:
    generation = (await ledger.holding("net", TEN)).generation
    return await ledger.release("net", TEN, owner="vm/held", generation=generation)


async def confirm_by_generation(ledger: tenure.AsyncLedger) -> tenure.Holding:
    generation = (await ledger.holding("net", "192.0.2.11")).generation
    return await ledger.confirm("net", "192.0.2.11", owner="vm/pending", generation=generation)


def held_ten(answer: Any) -> bool:
    return isinstance(answer, tenure.Holding) and (answer.address, answer.owner) == (TEN, "vm/held")


def new(answer: Any) -> bool:
    return isinstance(answer, tenure.Holding) and answer.owner == "vm/new"


CASES: dict[str, Case] = {
    "a release, and its owner gets the address again": Case(
        lambda ledger: ledger.release("net", TEN, owner="vm/held"), taken_again, held_ten
    ),
    "a release, and another owner gets the address": Case(
        lambda ledger: ledger.release("net", TEN, owner="vm/held"), taken_by_another, held_ten
    ),
    "a release that names the generation": Case(release_by_generation, taken_by_another, held_ten),
    "a release in an apply": Case(
        lambda ledger: ledger.apply([tenure.Release(network="net", address=TEN, owner="vm/held")]),
        taken_again,
        lambda answer: held_ten(answer[0]),
    ),
    "all of an owner released": Case(
        lambda ledger: ledger.release_owner("vm/held"), taken_again, lambda answer: held_ten(answer[0])
    ),
    "a transfer that is taken back": Case(
        lambda ledger: ledger.transfer("net", TEN, owner="vm/held", to="vm/to"),
        lambda other: other.transfer("net", TEN, owner="vm/to", to="vm/held"),
        lambda answer: answer.owner == "vm/to",
    ),
    "words on a holding that others write over": Case(
        lambda ledger: ledger.modify_holding("net", TEN, owner="vm/held", description="mine"),
        lambda other: other.modify_holding("net", TEN, owner="vm/held", description="theirs"),
        lambda answer: answer.description == "mine",
    ),
    "a confirmation, and the holding ends": Case(
        lambda ledger: ledger.confirm("net", "192.0.2.11", owner="vm/pending"),
        lambda other: other.release("net", "192.0.2.11", owner="vm/pending"),
        lambda answer: answer.owner == "vm/pending",
    ),
    "a confirmation that names the generation, and the holding is handed over": Case(
        confirm_by_generation,
        lambda other: other.transfer("net", "192.0.2.11", owner="vm/pending", to="vm/to"),
        lambda answer: (answer.owner, answer.state) == ("vm/pending", "held"),
    ),
    "two confirmations in an apply, and one of the holdings ends": Case(
        lambda ledger: ledger.apply(
            [
                tenure.Confirm(network="net", address="192.0.2.12", owner="vm/pending"),
                tenure.Confirm(network="net", address="192.0.2.11", owner="vm/pending"),
            ]
        ),
        lambda other: other.release("net", "192.0.2.12", owner="vm/pending"),
        lambda answer: [each.address for each in answer] == ["192.0.2.12", "192.0.2.11"],
    ),
    "a cancellation, and its owner holds it again": Case(
        lambda ledger: ledger.cancel("net", "192.0.2.11", owner="vm/pending"),
        lambda other: other.hold("net", owner="vm/pending", address="192.0.2.11"),
        lambda answer: answer.owner == "vm/pending",
    ),
    "a subnet that others remove": Case(
        lambda ledger: ledger.add_subnet("net", "198.51.100.0/24", name="second"),
        lambda other: other.remove_subnet("net", "second"),
        lambda answer: answer is not None,
    ),
    "a network that is removed": Case(lambda ledger: ledger.remove_network("spare"), nothing, lambda answer: True),
    "a network that is added": Case(
        lambda ledger: ledger.add_network("fresh"), nothing, lambda answer: answer.name == "fresh"
    ),
    "a named address": Case(lambda ledger: ledger.allocate("net", owner="vm/new", address="192.0.2.20"), let_go, new),
    "the lowest address": Case(lambda ledger: ledger.allocate("net", owner="vm/new"), let_go, new),
    "an address at random": Case(lambda ledger: ledger.allocate("net", owner="vm/new", policy="random"), let_go, new),
    "an address by hash, held for the time being": Case(
        lambda ledger: ledger.hold("net", owner="vm/new", policy="hashed", lasts_s=60.0), let_go, new
    ),
    "several addresses": Case(
        lambda ledger: ledger.allocate_many("net", owners=["vm/new", "vm/too"]), let_go, lambda answer: new(answer[0])
    ),
    "a claim": Case(lambda ledger: ledger.claim("net", owner="vm/new"), let_go, lambda answer: new(answer.holding)),
}


@pytest.fixture
async def other(ledger: tenure.AsyncLedger, place: str) -> AsyncIterator[tenure.AsyncLedger]:
    """Give a second ledger on the same store, whose answers are not lost."""
    async with await another(ledger, place) as opened:
        yield opened


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger, embedded: None) -> None:
    """Lay out a subnet with one address held, and one pending."""
    await ledger.add_network("spare")
    await ledger.add_network("net")
    await ledger.add_subnet("net", "192.0.2.0/24", name="block")
    await ledger.add_pool("net", "192.0.2.10-192.0.2.100", name="pool")
    await ledger.allocate("net", owner="vm/held")
    await ledger.hold("net", owner="vm/pending")
    await ledger.hold("net", owner="vm/pending", slot="second")


class Loss:
    """Loses the answer of the first change that goes through a store, once; what comes then is another's turn."""

    def __init__(self, store: LedgerStore, meanwhile: Act, other: tenure.AsyncLedger) -> None:
        self.newest: int | None = None
        self._store, self._meanwhile, self._other = store, meanwhile, other
        for name in WRITES:
            setattr(store, name, self._losing(getattr(store, name)))

    def _losing(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def losing(*words: Any, **more: Any) -> Any:
            before = await self._store.last_change()
            answer = await write(*words, **more)
            if self.newest is None and await self._store.last_change() > before:
                self.newest = 0  # what happens meanwhile is not lost
                await self._meanwhile(self._other)
                self.newest = await self._store.last_change()
                raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")
            return answer

        return losing


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_what_was_done_is_answered_and_not_done_again(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, case: Case
) -> None:
    asking = ledger.asked_by("token/ops", request_id="r-1")
    loss = Loss(server_of(ledger).store, case.meanwhile, other)

    answer = await case.ask(asking)

    assert case.answered(answer), answer
    assert loss.newest is not None
    assert [str(change) for change in [each async for each in other.changes(after=loss.newest)]] == []


@pytest.mark.parametrize("policy", ["lowest", "random"])
async def test_what_was_not_done_is_done_once(ledger: tenure.AsyncLedger, policy: str) -> None:
    store = server_of(ledger).store
    for name in WRITES:
        write, lost = getattr(store, name), list[int]()

        async def losing(*words: Any, write: Any = write, lost: list[int] = lost, **more: Any) -> Any:
            if not lost:
                lost.append(1)
                raise tenure.StoreUnavailable("nothing arrived", outcome="unknown")
            return await write(*words, **more)

        setattr(store, name, losing)

    first = await ledger.asked_by("token/ops", request_id="r-1").allocate("net", owner="vm/new", policy=policy)

    assert await ledger.holdings(owner="vm/new") == [first]
    grants = [each async for each in ledger.changes() if each.owner == "vm/new"]
    assert [(each.verb, each.request_id) for each in grants] == [("grant", "r-1")]


async def test_a_release_that_another_request_has_done_is_told_apart(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    store = server_of(ledger).store
    release, lost = store.release, list[int]()

    async def losing(*words: Any, **more: Any) -> Any:
        if not lost:
            lost.append(1)
            await other.asked_by("token/dev", request_id="r-2").release("net", TEN, owner="vm/held")
            raise tenure.StoreUnavailable("nothing arrived", outcome="unknown")
        return await release(*words, **more)

    store.release = losing  # type: ignore[method-assign]

    assert await ledger.asked_by("token/ops", request_id="r-1").release("net", TEN, owner="vm/held") is None


@pytest.mark.sampled
@pytest.mark.parametrize(("mine", "theirs"), [("mine", "theirs"), (None, "theirs"), ("mine", None)])
async def test_releases_are_told_apart_by_the_names_that_callers_give_them(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, mine: str | None, theirs: str | None
) -> None:
    store = server_of(ledger).store
    release = store.release

    async def losing(*words: Any, **more: Any) -> Any:
        store.release = release  # type: ignore[method-assign]  # a store in memory is the other's, too
        await other.release("net", TEN, owner="vm/held", request=theirs)
        raise tenure.StoreUnavailable("nothing arrived", outcome="unknown")

    store.release = losing  # type: ignore[method-assign]

    assert await ledger.release("net", TEN, owner="vm/held", request=mine) is None


async def test_a_release_that_another_request_did_before_the_first_try_is_told_apart(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    server = server_of(ledger)
    store, look, release = server.store, server.row_at, server.store.release

    async def overtaken_look(space: int, position: int) -> Any:
        found = await look(space, position)
        server.row_at = look  # type: ignore[method-assign]
        await other.release("net", TEN, owner="vm/held", request="theirs")
        await ledger.allocate("net", owner="vm/new", policy="random")  # the server has seen a number behind that end
        store.release = losing  # type: ignore[method-assign]
        return found

    async def losing(*words: Any, **more: Any) -> Any:
        store.release = release  # type: ignore[method-assign]
        raise tenure.StoreUnavailable("nothing arrived", outcome="unknown")

    server.row_at = overtaken_look  # type: ignore[method-assign]

    assert await ledger.release("net", TEN, owner="vm/held", request="mine") is None


async def test_a_release_whose_part_of_the_log_was_trimmed_after_a_loss_is_unknown(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    store = server_of(ledger).store
    release = store.release

    async def losing(*words: Any, **more: Any) -> Any:
        await release(*words, **more)
        store.release = release  # type: ignore[method-assign]
        await other.trim_changes(before=await other.last_change() + 1)
        raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")

    store.release = losing  # type: ignore[method-assign]

    with pytest.raises(tenure.StoreUnavailable) as caught:
        await ledger.release("net", TEN, owner="vm/held")
    assert caught.value.outcome == "unknown"


async def test_a_release_that_came_to_nothing_is_not_called_done_when_the_holding_was_handed_over(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    store = server_of(ledger).store
    release, lost = store.release, list[int]()

    async def losing(*words: Any, **more: Any) -> Any:
        if not lost:
            lost.append(1)
            await other.transfer("net", TEN, owner="vm/held", to="vm/next")
            raise tenure.StoreUnavailable("nothing arrived", outcome="unknown")
        return await release(*words, **more)

    store.release = losing  # type: ignore[method-assign]

    with pytest.raises(tenure.NotOwner):
        await ledger.asked_by("token/ops", request_id="r-1").release("net", TEN, owner="vm/held")
    assert [each.address for each in await other.holdings(owner="vm/next")] == [TEN]


async def test_a_confirmation_that_came_to_nothing_is_not_called_done_when_the_holding_was_cancelled(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    store = server_of(ledger).store

    async def losing(*words: Any, **more: Any) -> Any:
        await other.cancel("net", "192.0.2.11", owner="vm/pending")
        raise tenure.StoreUnavailable("nothing arrived", outcome="unknown")

    store.rewrite_unchanged = losing  # type: ignore[method-assign]

    with pytest.raises(tenure.NotFound):
        await ledger.asked_by("token/ops", request_id="r-1").confirm("net", "192.0.2.11", owner="vm/pending")


async def test_a_confirmation_that_another_request_made_is_told_apart_when_the_holding_ended(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    store = server_of(ledger).store
    rewrite = store.rewrite_unchanged

    async def losing(*words: Any, **more: Any) -> Any:
        store.rewrite_unchanged = rewrite  # type: ignore[method-assign]  # a store in memory is the other's, too
        await other.asked_by("token/dev", request_id="r-2").confirm("net", "192.0.2.11", owner="vm/pending")
        await other.release("net", "192.0.2.11", owner="vm/pending")
        raise tenure.StoreUnavailable("nothing arrived", outcome="unknown")

    store.rewrite_unchanged = losing  # type: ignore[method-assign]

    with pytest.raises(tenure.NotFound):
        await ledger.asked_by("token/ops", request_id="r-1").confirm("net", "192.0.2.11", owner="vm/pending")


async def test_a_confirmation_whose_part_of_the_log_was_trimmed_after_a_loss_is_unknown(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    store = server_of(ledger).store
    rewrite = store.rewrite_unchanged

    async def losing(*words: Any, **more: Any) -> Any:
        await rewrite(*words, **more)
        await other.release("net", "192.0.2.11", owner="vm/pending")
        await other.trim_changes(before=await other.last_change())
        raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")

    store.rewrite_unchanged = losing  # type: ignore[method-assign]

    with pytest.raises(tenure.StoreUnavailable) as caught:
        await ledger.confirm("net", "192.0.2.11", owner="vm/pending")
    assert caught.value.outcome == "unknown"


@pytest.mark.parametrize("arrives", [True, False], ids=["committed", "never arrived"])
async def test_a_log_that_was_trimmed_before_the_ledger_was_opened_leaves_no_doubt_of_a_confirmation(
    ledger: tenure.AsyncLedger, place: str, arrives: bool
) -> None:
    await ledger.trim_changes(before=await ledger.last_change())
    async with await another(ledger, place) as opened:
        store, before = server_of(opened).store, await ledger.last_change()
        rewrite = store.rewrite_unchanged

        async def losing(*words: Any, **more: Any) -> Any:
            store.rewrite_unchanged = rewrite  # type: ignore[method-assign]
            if arrives:
                await rewrite(*words, **more)
            raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")

        store.rewrite_unchanged = losing  # type: ignore[method-assign]

        answer = await opened.confirm("net", "192.0.2.11", owner="vm/pending")

    assert answer == await ledger.holding("net", "192.0.2.11")
    assert [change.verb async for change in ledger.changes(after=before)] == ["confirm"]


async def test_a_log_that_others_trimmed_before_a_confirmation_leaves_no_doubt_of_it(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger
) -> None:
    await other.trim_changes(before=await other.last_change())
    store = server_of(ledger).store
    rewrite = store.rewrite_unchanged

    async def losing(*words: Any, **more: Any) -> Any:
        await rewrite(*words, **more)
        store.rewrite_unchanged = rewrite  # type: ignore[method-assign]
        raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")

    store.rewrite_unchanged = losing  # type: ignore[method-assign]

    assert (await ledger.confirm("net", "192.0.2.11", owner="vm/pending")).state == "held"


@pytest.mark.sampled
@pytest.mark.parametrize("write", ["a grant", "a confirmation", "an apply"])
async def test_the_newest_number_is_known_without_a_look_after_every_write(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, write: str
) -> None:
    if write == "a grant":
        await ledger.allocate("net", owner="vm/new", policy="random")
    elif write == "a confirmation":
        await ledger.confirm("net", "192.0.2.11", owner="vm/pending")
    else:
        await ledger.modify_holding("net", TEN, owner="vm/held", description="words")

    assert server_of(ledger).store.newest == await other.last_change()


async def test_a_release_that_cannot_be_looked_up_after_a_loss_is_unknown(ledger: tenure.AsyncLedger) -> None:
    store = server_of(ledger).store
    release = store.release

    async def losing(*words: Any, **more: Any) -> Any:
        await release(*words, **more)
        store.release = release  # type: ignore[method-assign]
        raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")

    async def unreadable(*words: Any, **more: Any) -> Any:
        raise tenure.StoreUnavailable("cannot be reached", outcome="none")

    store.release, store.changes_at = losing, unreadable  # type: ignore[method-assign]

    with pytest.raises(tenure.StoreUnavailable) as caught:
        await ledger.release("net", TEN, owner="vm/held")
    assert caught.value.outcome == "unknown"


UNKNOWN: dict[str, Act] = {
    name: CASES[name].ask
    for name in (
        "a release in an apply",
        "a confirmation, and the holding ends",
        "a transfer that is taken back",
        "words on a holding that others write over",
        "a subnet that others remove",
        "a named address",
        "the lowest address",
        "an address at random",
        "an address by hash, held for the time being",
        "several addresses",
        "a claim",
    )
}


@pytest.mark.sampled
@pytest.mark.parametrize("ask", UNKNOWN.values(), ids=UNKNOWN)
async def test_what_cannot_be_looked_up_after_a_loss_is_unknown(
    ledger: tenure.AsyncLedger, other: tenure.AsyncLedger, ask: Act
) -> None:
    store, before = server_of(ledger).store, await other.last_change()

    async def unreachable(*words: Any, **more: Any) -> Any:
        raise tenure.StoreUnavailable("cannot be reached", outcome="none")

    def losing(write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def lost(*words: Any, **more: Any) -> Any:
            answer = await write(*words, **more)
            if await committed() == before:
                return answer
            for name in (*WRITES, "changes_at", "watch", "last_change", "effects"):
                setattr(store, name, unreachable)
            raise tenure.StoreUnavailable("the answer was lost", outcome="unknown")

        return lost

    committed, kept = store.last_change, dict(vars(store))
    for name in WRITES:
        setattr(store, name, losing(getattr(store, name)))
    with pytest.raises(tenure.StoreUnavailable) as caught:
        await ask(ledger.asked_by("token/ops", request_id="r-1"))
    for name in set(vars(store)) - set(kept):
        delattr(store, name)

    assert caught.value.outcome == "unknown"
    assert await other.last_change() > before
