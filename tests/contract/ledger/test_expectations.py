"""Expectations: an ``apply`` goes on only if things are as its caller saw them."""

import asyncio

import pytest

import tenure
from tenure.kernel.holdings.fingerprint import mark_of
from tenure.service.apply.operations import Operation
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import another, let_deadlines_pass, verbs

MARK = tenure.WritePaper(kind="done", name="it", document={"n": 1})
"""What is written if an expectation is met."""


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)


async def goes_on(ledger: tenure.AsyncLedger, *operations: Operation) -> bool:
    """Tell whether the mark behind an expectation was written, and nothing else if it was not."""
    cursor = await ledger.last_change()
    try:
        await ledger.apply([*operations, MARK])
    except tenure.Conflict:
        assert await ledger.papers("done") == []
        assert await ledger.last_change() == cursor
        return False
    await ledger.apply([tenure.RemovePaper(kind="done", name="it", revision=1)])
    return True


async def test_every_change_raises_the_serial_of_its_network_alone(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger, network="other", space="net")
    before = {network.name: network for network in await ledger.networks()}
    await ledger.apply(
        [tenure.Reserve(network="net", range="192.0.2.200"), tenure.ModifyNetwork(network="net", description="d")]
    )
    await ledger.allocate("net", owner="vm/a")
    after = {network.name: network for network in await ledger.networks()}

    assert (before["net"].serial, after["net"].serial) == (3, 4)
    assert after["other"] == before["other"]
    assert after["net"].created_us == before["net"].created_us < before["net"].modified_us < after["net"].modified_us


async def test_a_network_is_expected_by_its_serial(ledger: tenure.AsyncLedger) -> None:
    serial = (await ledger.network("net")).serial

    assert await goes_on(ledger, tenure.Expect(network="net", serial=serial))
    assert not await goes_on(ledger, tenure.Expect(network="net", serial=serial + 1))
    with pytest.raises(
        tenure.Conflict, match=rf"network 'net' was changed meanwhile \(serial {serial}, not 1\)"
    ) as told:
        await ledger.apply([tenure.Expect(network="net", serial=1)])
    assert told.value.field == "serial"
    with pytest.raises(tenure.NotFound):
        await ledger.apply([tenure.Expect(network="none", serial=1)])


async def test_an_expectation_stands_among_the_edits_before_it(ledger: tenure.AsyncLedger) -> None:
    serial = (await ledger.network("net")).serial
    edit = tenure.Reserve(network="net", range="192.0.2.200")
    await ledger.apply([edit, tenure.Expect(network="net", serial=serial + 1)])

    assert (await ledger.network("net")).serial == serial + 1


async def test_of_two_editors_who_read_the_same_serial_one_is_told(ledger: tenure.AsyncLedger, place: str) -> None:
    second = await another(ledger, place)
    for number in range(200, 206):
        serial = (await ledger.network("net")).serial
        edits: list[Operation] = [
            tenure.Expect(network="net", serial=serial),
            tenure.Reserve(network="net", range=f"192.0.2.{number}"),
        ]
        done = await asyncio.gather(ledger.apply(edits), second.apply(edits), return_exceptions=True)
        assert sorted(type(each).__name__ for each in done) == ["Conflict", "list"]
    if place != "memory:":
        await second.close()


async def test_a_paper_is_expected_in_its_revision(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([tenure.WritePaper(kind="group", name="rack1", document={"n": 1})])
    expected = tenure.ExpectPaper(kind="group", name="rack1", revision=1)

    assert await ledger.apply([expected, expected]) == [None, None]
    assert await goes_on(ledger, expected)
    assert not await goes_on(ledger, tenure.ExpectPaper(kind="group", name="rack1", revision=2))
    with pytest.raises(tenure.Conflict, match=r"group 'rack1' was changed meanwhile \(revision 1, not 0\)"):
        await ledger.apply([tenure.ExpectPaper(kind="group", name="rack1", revision=0)])
    with pytest.raises(tenure.NotFound, match="no group 'rack2'") as told:
        await ledger.apply([tenure.ExpectPaper(kind="group", name="rack2", revision=0)])
    assert told.value.field == "name"


async def test_a_paper_is_expected_as_the_operations_before_left_it(ledger: tenure.AsyncLedger) -> None:
    write = tenure.WritePaper(kind="group", name="rack1", document={"n": 1})
    await ledger.apply([write, tenure.ExpectPaper(kind="group", name="rack1", revision=1)])

    with pytest.raises(tenure.NotFound):
        await ledger.apply(
            [
                tenure.RemovePaper(kind="group", name="rack1", revision=1),
                tenure.ExpectPaper(kind="group", name="rack1", revision=1),
            ]
        )


async def test_no_papers_are_expected_by_how_names_begin(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([tenure.WritePaper(kind="nic", name=f"net/{number}", document={}) for number in range(5)])

    assert await goes_on(ledger, tenure.ExpectNoPapers(kind="nic", prefix="net2/"))
    assert await goes_on(ledger, tenure.ExpectNoPapers(kind="vm", prefix="net/"))
    assert not await goes_on(ledger, tenure.ExpectNoPapers(kind="nic", prefix="net/"))
    with pytest.raises(tenure.StillInUse, match=r"by net/0, net/1, net/2, …; remove them first$") as told:
        await ledger.apply([tenure.ExpectNoPapers(kind="nic", prefix="net/")])
    assert (told.value.kind, told.value.name) == ("nic", "net/")


def nobody(where: str = "192.0.2.0/24", state: str | None = None, network: str = "net") -> tenure.ExpectNoHoldings:
    return tenure.ExpectNoHoldings(network=network, range=where, state=state)


async def test_no_holdings_are_expected_in_a_range_of_one_network(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger, network="other", space="net")
    given = await ledger.allocate("net", owner="vm/a")

    assert not await goes_on(ledger, nobody())
    assert not await goes_on(ledger, nobody(given.address))
    assert await goes_on(ledger, nobody("192.0.2.11-192.0.2.255"))
    assert await goes_on(ledger, nobody(network="other"))
    with pytest.raises(tenure.StillInUse) as told:
        await ledger.apply([nobody("192.0.2.8/29")])
    assert told.value.message == (
        "range '192.0.2.8-192.0.2.15' is still in use by vm/a (192.0.2.10); release them first"
    )
    assert (told.value.kind, told.value.holders, told.value.field) == ("range", ["vm/a (192.0.2.10)"], "range")


async def test_no_holdings_of_a_state_are_expected(ledger: tenure.AsyncLedger) -> None:
    await ledger.allocate("net", owner="vm/a")
    await ledger.hold("net", owner="vm/p", lasts_s=3600)

    assert await goes_on(ledger, nobody(state="draining"))
    assert await goes_on(ledger, nobody("192.0.2.10", state="pending"))
    assert not await goes_on(ledger, nobody(state="held"))
    with pytest.raises(tenure.StillInUse, match=r"by vm/p \(192.0.2.11, pending\)"):
        await ledger.apply([nobody(state="pending")])
    with pytest.raises(tenure.Invalid, match="state: 'lost' is none of pending, held"):
        await ledger.apply([nobody(state="lost")])


async def test_what_is_overdue_stands_in_nobodys_way(ledger: tenure.AsyncLedger) -> None:
    await ledger.hold("net", owner="vm/p", lasts_s=3600)
    await let_deadlines_pass(ledger)
    cursor = await ledger.last_change()
    await ledger.apply([nobody(state="pending"), MARK])

    assert await ledger.holdings("net") == []
    assert await verbs(ledger, cursor) == ["paper.write"]


async def test_one_of_a_state_is_found_among_thousands(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_subnet("net", "10.0.0.0/16")
    await ledger.add_pool("net", "10.0.0.0/16", name="wide")
    await ledger.allocate_many("net", owner="vm/many", count=1100, pool="wide")
    last = await ledger.hold("net", owner="vm/p", pool="wide")

    assert not await goes_on(ledger, nobody("10.0.0.0/16", state="pending"))
    await ledger.cancel("net", last.address, owner="vm/p")
    assert await goes_on(ledger, nobody("10.0.0.0/16", state="pending"))


async def test_nobody_is_granted_anything_where_nobody_is_expected(ledger: tenure.AsyncLedger, place: str) -> None:
    second = await another(ledger, place)
    for number in range(8):
        await ledger.apply([tenure.WritePaper(kind="empty", name="it", document={"n": number})])
        done = await asyncio.gather(
            ledger.apply([nobody(), tenure.RemovePaper(kind="empty", name="it", revision=1)]),
            second.apply(
                [
                    tenure.ExpectPaper(kind="empty", name="it", revision=1),
                    tenure.Allocate(network="net", owner=f"vm/{number}"),
                ]
            ),
            return_exceptions=True,
        )
        names = [type(each).__name__ for each in done]
        assert names in (["list", "NotFound"], ["StillInUse", "list"])
        await ledger.release_owner(f"vm/{number}")
        if names[0] == "StillInUse":
            await ledger.apply([tenure.RemovePaper(kind="empty", name="it", revision=1)])
    if place != "memory:":
        await second.close()


def the_holding(held: tenure.Holding, **other: object) -> tenure.ExpectHolding:
    said = {"owner": held.owner, "generation": held.generation, "mark": mark_of(held.row), **other}
    return tenure.ExpectHolding(network=held.network, address=held.address, **said)  # type: ignore[arg-type]


async def test_a_holding_is_expected_as_it_was_read(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.allocate("net", owner="vm/a", labels={"team": "shop"})

    assert await goes_on(ledger, the_holding(held))
    assert await goes_on(ledger, the_holding(held, generation=None, mark=None))
    assert not await goes_on(ledger, the_holding(held, owner="vm/b"))
    assert not await goes_on(ledger, the_holding(held, generation=held.generation + 1))
    assert not await goes_on(ledger, the_holding(held, mark="another"))
    with pytest.raises(tenure.Invalid, match="mark: a name must not be empty"):
        await ledger.apply([the_holding(held, mark="")])


@pytest.mark.parametrize(
    "change",
    [{"labels": {}}, {"labels": {"team": "bank"}}, {"description": "d"}, {"carrier": "vm-1"}, {"state": "draining"}],
    ids=str,
)
async def test_whatever_is_written_on_a_holding_changes_its_mark(
    ledger: tenure.AsyncLedger, change: dict[str, object]
) -> None:
    held = await ledger.allocate("net", owner="vm/a", labels={"team": "shop"})
    read = await ledger.holding("net", held.address)
    await ledger.modify_holding("net", held.address, owner="vm/a", **change)  # type: ignore[arg-type]

    assert mark_of(read.row) == mark_of(held.row)
    with pytest.raises(tenure.Conflict, match=r"the holding of 192.0.2.10 was changed meanwhile") as told:
        await ledger.apply([the_holding(held), MARK])
    assert told.value.field == "mark"


async def test_a_holding_that_was_released_is_expected_in_vain(ledger: tenure.AsyncLedger) -> None:
    held = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", held.address, owner="vm/a")

    with pytest.raises(tenure.NotFound, match="it was released meanwhile"):
        await ledger.apply([the_holding(held), MARK])
    await ledger.allocate("net", owner="vm/a", address=held.address)
    assert not await goes_on(ledger, the_holding(held))


async def test_of_two_writers_who_read_the_same_mark_one_is_told(ledger: tenure.AsyncLedger, place: str) -> None:
    second = await another(ledger, place)
    await ledger.allocate("net", owner="vm/a")
    for number in range(6):
        held = await second.holding("net", "192.0.2.10")
        done = await asyncio.gather(
            *(
                each.apply(
                    [
                        the_holding(held),
                        tenure.ModifyHolding(
                            network="net", address=held.address, owner="vm/a", description=f"{number} {name}"
                        ),
                    ]
                )
                for each, name in ((ledger, "first"), (second, "second"))
            ),
            return_exceptions=True,
        )
        assert sorted(type(each).__name__ for each in done) == ["Conflict", "list"]
    if place != "memory:":
        await second.close()
