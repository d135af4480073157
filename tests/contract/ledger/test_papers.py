"""Papers: documents that doors keep in the ledger, written in the same transaction as what they tell of."""

import pytest

import tenure
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import news, verbs


def write(name: str, document: object = None, *, revision: int = 0, kind: str = "instance") -> tenure.WritePaper:
    document = {"nics": 1} if document is None else document
    return tenure.WritePaper(kind=kind, name=name, document=document, revision=revision)  # type: ignore[arg-type]


def remove(name: str, *, revision: int, kind: str = "instance") -> tenure.RemovePaper:
    return tenure.RemovePaper(kind=kind, name=name, revision=revision)


async def names(ledger: tenure.AsyncLedger, kind: str = "instance", **asked: str) -> list[str]:
    return [paper.name for paper in await ledger.papers(kind, **asked)]  # type: ignore[arg-type]


DEEP = {"ü": [1, 2.5, None, True, {"a\u0000b": "c"}], "empty": {}, "big": 10**30, "text": "“§”\n"}


async def test_a_paper_is_read_back_as_it_was_written(ledger: tenure.AsyncLedger) -> None:
    [written] = await ledger.apply([write("web-0", DEEP)])

    assert written == tenure.Paper("instance", "web-0", 1, DEEP)
    assert await ledger.paper("instance", "web-0") == written
    assert await ledger.papers("instance") == [written]


@pytest.mark.usefixtures("embedded")
async def test_even_half_a_letter_is_read_back(ledger: tenure.AsyncLedger) -> None:
    [written] = await ledger.apply([write("web-0", {"half": "\ud800"})])

    assert (
        await ledger.paper("instance", "web-0") == written == tenure.Paper("instance", "web-0", 1, {"half": "\ud800"})
    )


async def test_what_a_caller_does_to_his_copy_does_not_reach_the_ledger(ledger: tenure.AsyncLedger) -> None:
    mine = {"nics": ["a"]}
    [written] = await ledger.apply([write("web-0", mine)])
    assert isinstance(written, tenure.Paper)
    mine["nics"].append("b")
    written.document["nics"].append("c")
    (await ledger.paper("instance", "web-0")).document["nics"].append("d")

    assert (await ledger.paper("instance", "web-0")).document == {"nics": ["a"]}


async def test_every_writing_raises_the_revision_and_is_told_in_the_log(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("web-0")])
    [second] = await ledger.apply([write("web-0", {"nics": 2}, revision=1)])
    await ledger.apply([remove("web-0", revision=2)])

    assert second == tenure.Paper("instance", "web-0", 2, {"nics": 2})
    told = [(change.verb, dict(change.details)) for change in await news(ledger)]
    assert told == [
        ("paper.write", {"kind": "instance", "name": "web-0", "revision": 1}),
        ("paper.write", {"kind": "instance", "name": "web-0", "revision": 2}),
        ("paper.remove", {"kind": "instance", "name": "web-0", "revision": 2}),
    ]
    with pytest.raises(tenure.NotFound, match="no instance 'web-0'"):
        await ledger.paper("instance", "web-0")


async def test_a_new_paper_is_not_written_over_one_that_is_there(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("web-0")])

    with pytest.raises(tenure.AlreadyExists, match="instance 'web-0' exists already") as refused:
        await ledger.apply([write("web-0", {"other": 1})])

    assert refused.value.field == "name"
    assert (await ledger.paper("instance", "web-0")).document == {"nics": 1}


@pytest.mark.parametrize("revision", [1, 3])
async def test_a_paper_that_changed_since_it_was_read_is_left_alone(ledger: tenure.AsyncLedger, revision: int) -> None:
    await ledger.apply([write("web-0"), write("web-0", {"nics": 2}, revision=1)])

    for late in (write("web-0", {"late": 1}, revision=revision), remove("web-0", revision=revision)):
        with pytest.raises(tenure.Conflict, match=rf"changed meanwhile \(revision 2, not {revision}\)") as refused:
            await ledger.apply([late])
        assert refused.value.field == "revision"

    assert (await ledger.paper("instance", "web-0")).document == {"nics": 2}


async def test_a_paper_that_is_gone_is_neither_written_over_nor_removed(ledger: tenure.AsyncLedger) -> None:
    with pytest.raises(tenure.Conflict, match=r"revision 0, not 1"):
        await ledger.apply([write("web-0", revision=1)])
    with pytest.raises(tenure.NotFound, match="no instance 'web-0'"):
        await ledger.apply([remove("web-0", revision=1)])

    assert await names(ledger) == []


async def test_operations_on_one_paper_follow_one_another(ledger: tenure.AsyncLedger) -> None:
    one, two, gone, again = await ledger.apply(
        [write("a"), write("a", {"n": 2}, revision=1), remove("a", revision=2), write("a", {"n": 3})]
    )

    assert (one, two) == (tenure.Paper("instance", "a", 1, {"nics": 1}), tenure.Paper("instance", "a", 2, {"n": 2}))
    assert gone is None
    assert await ledger.papers("instance") == [again] == [tenure.Paper("instance", "a", 1, {"n": 3})]
    assert await verbs(ledger) == ["paper.write", "paper.write", "paper.remove", "paper.write"]


async def test_a_kept_paper_can_be_removed_and_written_anew_at_once(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("a"), write("a", {"n": 2}, revision=1)])
    await ledger.apply([remove("a", revision=2), write("a", {"n": 3}), write("a", {"n": 4}, revision=1)])

    assert await ledger.papers("instance") == [tenure.Paper("instance", "a", 2, {"n": 4})]


async def test_a_paper_written_and_removed_at_once_leaves_nothing(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("a"), remove("a", revision=1)])

    assert await names(ledger) == []


async def test_the_second_of_two_that_write_over_one_revision_is_refused(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("a")])

    with pytest.raises(tenure.Conflict, match="revision 2, not 1"):
        await ledger.apply([write("a", revision=1), write("a", revision=1)])
    with pytest.raises(tenure.AlreadyExists):
        await ledger.apply([write("b"), write("b")])
    with pytest.raises(tenure.NotFound):
        await ledger.apply([remove("a", revision=1), remove("a", revision=1)])

    assert await ledger.papers("instance") == [tenure.Paper("instance", "a", 1, {"nics": 1})]


async def test_many_papers_of_several_kinds_are_one_with_what_they_tell_of(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    many = [write(f"vm-{number:03}", {"n": number}, kind=kind) for number in range(200) for kind in ("b", "a")]
    answers = await ledger.apply([*many[:201], tenure.Allocate(network="net", owner="vm/a"), *many[201:]])

    assert len(answers) == 401
    assert [paper.document["n"] for paper in await ledger.papers("a")] == list(range(200))
    assert await names(ledger, "b", prefix="vm-19", after="vm-195") == ["vm-196", "vm-197", "vm-198", "vm-199"]
    assert [each.owner for each in await ledger.holdings("net")] == ["vm/a"]


async def test_papers_and_holdings_are_all_there_or_none_is(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    await ledger.apply([write("kept"), write("mark", {})])
    cursor = await ledger.last_change()
    taken = tenure.Allocate(network="net", owner="vm/b", address="192.0.2.1")

    with pytest.raises(tenure.AddressReserved):
        await ledger.apply(
            [write("new"), write("kept", {"n": 2}, revision=1), remove("mark", revision=1), taken, write("more")]
        )
    with pytest.raises(tenure.Conflict):
        await ledger.apply([tenure.Allocate(network="net", owner="vm/b"), write("kept", revision=7)])

    assert [(paper.name, paper.revision) for paper in await ledger.papers("instance")] == [("kept", 1), ("mark", 1)]
    assert (await ledger.holdings("net"), await ledger.last_change()) == ([], cursor)


async def test_of_an_index_mark_the_log_does_not_tell(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("web-0/net", {}, kind="nic"), write("web-0")])
    await ledger.apply([write("web-0/net", {}, kind="nic", revision=1), remove("web-0", revision=1)])
    await ledger.apply([remove("web-0/net", kind="nic", revision=2)])

    assert await verbs(ledger) == ["paper.write", "paper.remove"]


async def test_a_paper_that_becomes_an_index_mark_or_ceases_to_be_one_is_told(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("a", {})])
    await ledger.apply([write("a", {"n": 1}, revision=1)])
    await ledger.apply([write("a", {}, revision=2)])
    await ledger.apply([remove("a", revision=3)])

    assert [change.details["revision"] for change in await news(ledger)] == [2, 3]


async def test_papers_come_in_order_of_name_and_in_pages(ledger: tenure.AsyncLedger) -> None:
    made = ["a", "a b", "a-b", "B", "b", "ä", "ab", "abc", "𝒳", "zebra"]
    await ledger.apply([write(name) for name in made])
    await ledger.apply([write("other", kind="group")])

    assert await names(ledger) == sorted(made)
    assert await names(ledger, prefix="a") == ["a", "a b", "a-b", "ab", "abc"]
    assert await names(ledger, prefix="a", after="a-b") == ["ab", "abc"]
    assert [paper.name for paper in await ledger.papers("instance", limit=3)] == ["B", "a", "a b"]
    assert await names(ledger, "nothing") == []


async def test_a_name_is_found_only_by_itself(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([write("web-0"), write("web-00")])

    assert (await ledger.paper("instance", "web-00")).name == "web-00"
    with pytest.raises(tenure.NotFound):
        await ledger.paper("instance", "web-")
    with pytest.raises(tenure.NotFound):
        await ledger.paper("group", "web-0")


@pytest.mark.parametrize(
    "document",
    [None, [], "text", {1: "a"}, {"a": {2: "b"}}, {"a": [{None: 1}]}, {"a": int}, {"a": float("nan")}, {"a": {1}}],
    ids=repr,
)
async def test_what_is_no_document_is_refused(ledger: tenure.AsyncLedger, document: object) -> None:
    with pytest.raises(tenure.Invalid, match=r"^document: ") as refused:
        await ledger.apply([tenure.WritePaper(kind="k", name="n", document=document)])  # type: ignore[arg-type]

    assert refused.value.field == "document"
    assert await ledger.papers("k") == []


async def test_a_document_without_end_is_refused(ledger: tenure.AsyncLedger) -> None:
    ring: dict[str, object] = {}
    ring["ring"] = ring
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    for document in (ring, {"deep": deep}):
        with pytest.raises(tenure.Invalid, match=r"^document: "):
            await ledger.apply([write("a", document)])


async def test_the_same_key_gets_the_same_papers(ledger: tenure.AsyncLedger) -> None:
    first = await ledger.apply([write("a", DEEP), remove("a", revision=1), write("b")], key="k-1")

    assert await ledger.apply([write("a", DEEP), remove("a", revision=1), write("b")], key="k-1") == first
    assert first[1:] == [None, tenure.Paper("instance", "b", 1, {"nics": 1})]
    with pytest.raises(tenure.KeyReused):
        await ledger.apply([write("a", DEEP)], key="k-1")


async def test_history_search_and_why_pay_no_heed_to_papers(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.apply([write("vm/a"), write("192.0.2.10")])
    await ledger.release("net", given.address, owner="vm/a")

    assert [str(each.ending) for each in await ledger.history(given.address)] == ["released"]
    assert await ledger.search("vm/a") == []
    assert not (await ledger.why(given.address)).findings[0].holding
