"""Papers written by several at once: one is first, nobody's writing is lost."""

import asyncio

import pytest

import tenure
from tenure.ports import LedgerStore, Transaction
from tenure.service.apply.operations import Operation
from tests.contract.clerks import send_clerks
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import another, store_of
from tests.contract.sites import Site

pytestmark = pytest.mark.every_store

NAMES = [f"p{number}" for number in range(12)]
STEPS = 15
WAITS_S = 0.15


def write(name: str, *, revision: int = 0, kind: str = "instance", **document: object) -> tenure.WritePaper:
    return tenure.WritePaper(kind=kind, name=name, document=document or {"nics": 1}, revision=revision)


async def outcomes(*calls: object) -> list[str]:
    """Make calls at the same time; name the error of each that was refused."""
    done = await asyncio.gather(*calls, return_exceptions=True)  # type: ignore[call-overload]
    assert not [each for each in done if isinstance(each, BaseException) and not isinstance(each, tenure.TenureError)]
    return sorted(type(each).__name__ if isinstance(each, Exception) else "" for each in done)


async def test_processes_that_write_the_same_papers_lose_nothing(shared_site: Site[LedgerStore]) -> None:
    async with await tenure.open_async(shared_site.url) as ledger:
        await ledger.apply([write("all", kind="count", steps=0)])
        done = await send_clerks(shared_site.url, 3, NAMES, STEPS)
        written = [{paper.name: paper.document["by"] for paper in await ledger.papers(k)} for k in ("first", "second")]
        counted = await ledger.paper("count", "all")

    assert sorted(name for each in done for name in each["had"]) == sorted(NAMES)
    assert written == [{name: each["clerk"] for each in done for name in each["had"]}] * 2
    assert (counted.document["steps"], counted.revision) == (3 * STEPS, 3 * STEPS + 1)


async def test_of_two_who_write_the_same_new_paper_one_is_told(ledger: tenure.AsyncLedger, place: str) -> None:
    second = await another(ledger, place)
    for number in range(10):
        papers = [write(f"a-{number}", n=1), write(f"b-{number}", n=1)]
        told = await outcomes(ledger.apply(papers), second.apply(papers[::-1]))
        assert told == ["", "AlreadyExists"]
    if place != "memory:":
        await second.close()

    assert {paper.revision for paper in await ledger.papers("instance")} == {1}


async def test_of_two_who_write_over_one_revision_one_is_told(ledger: tenure.AsyncLedger, place: str) -> None:
    await ledger.apply([write("a"), write("b", kind="group")])
    second = await another(ledger, place)
    for revision in range(1, 11):
        papers = [write("a", revision=revision), write("b", kind="group", revision=revision)]
        told = await outcomes(ledger.apply(papers), second.apply(papers[::-1]))
        assert told == ["", "Conflict"]
    if place != "memory:":
        await second.close()

    assert (await ledger.paper("instance", "a")).revision == 11


async def test_the_same_request_twice_at_once_has_one_answer(ledger: tenure.AsyncLedger, place: str) -> None:
    second = await another(ledger, place)
    for number in range(10):
        request = [write(f"a-{number}"), write(f"b-{number}")]
        one, other = await asyncio.gather(
            ledger.apply(request, key=f"k-{number}"), second.apply(request, key=f"k-{number}")
        )
        assert one == other
    if place != "memory:":
        await second.close()

    assert len(await ledger.papers("instance")) == 20


async def test_many_may_expect_a_paper_at_once_while_a_writer_waits(parallel_site: Site[LedgerStore]) -> None:
    expected = tenure.ExpectPaper(kind="group", name="rack1", revision=1)
    held, may_end = asyncio.Event(), asyncio.Event()

    async def hold(tx: Transaction) -> None:
        await tx.papers_named("group", ["rack1"], shared=True)
        held.set()
        await may_end.wait()

    async with await tenure.open_async(parallel_site.url) as ledger:
        await ledger.apply([write("rack1", kind="group")])
        holder = asyncio.create_task(store_of(ledger).transact(hold))
        await held.wait()
        async with asyncio.timeout(5):
            await asyncio.gather(*(ledger.apply([expected, write(f"vm-{number}")]) for number in range(3)))
        writer = asyncio.create_task(ledger.apply([write("rack1", kind="group", revision=1)]))
        await asyncio.sleep(WAITS_S)
        waited = not writer.done()
        may_end.set()
        await holder
        [written] = await writer

    assert waited
    assert isinstance(written, tenure.Paper)
    assert written.revision == 2


@pytest.mark.parametrize("turned", [False, True])
async def test_a_group_never_goes_while_somebody_moves_in(ledger: tenure.AsyncLedger, place: str, turned: bool) -> None:
    await small_plan(ledger)
    second = await another(ledger, place)
    for number in range(8):
        group, member = f"g{number}", f"g{number}/vm"
        await ledger.apply([write(group, kind="group")])
        leaving: list[Operation] = [
            tenure.ExpectNoPapers(kind="member", prefix=f"{group}/"),
            tenure.RemovePaper(kind="group", name=group, revision=1),
        ]
        moving_in: list[Operation] = [
            tenure.ExpectPaper(kind="group", name=group, revision=1),
            write(member, kind="member"),
        ]
        told = await outcomes(ledger.apply(leaving[:: -1 if turned else 1]), second.apply(moving_in))

        assert told in (["", "StillInUse"], ["", "NotFound"])
        left = [paper.name for paper in await ledger.papers("group", prefix=group)]
        assert (left == [group]) == (len(await ledger.papers("member", prefix=group)) == 1)
    if place != "memory:":
        await second.close()
