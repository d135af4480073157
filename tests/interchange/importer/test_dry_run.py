"""The dry run of a plan: every fault is named with its place and field, what follows from it is not told twice."""

import json
from typing import Any

import pytest

import tenure
from tenure.interchange.formats.detect import parse_source
from tenure.interchange.formats.source_items import Fault, Item, Source, SourcePlace
from tenure.interchange.importer.import_run import plan_import, run_import

Document = dict[str, Any]


def export(*subnets: Document, holdings: list[Document] | None = None, **network: Any) -> Source:
    """Write a whole export with one network."""
    document = {
        "format": "tenure",
        "version": 1,
        "spaces": [{"name": "s", "networks": [{"name": "n", "subnets": subnets, **network}]}],
        "holdings": holdings or [],
    }
    return parse_source([("all.json", json.dumps(document).encode())])


async def reasons(source: Source) -> list[str]:
    """Try an import on an empty ledger, and return the faults as people read them."""
    async with await tenure.open_async("memory:") as ledger:
        return [str(fault) for fault in (await plan_import(ledger, source)).faults]


def table(text: str) -> Source:
    """Read a table of holdings."""
    return parse_source([("plan.csv", text.encode())], format="csv")


async def told(source: Source, *operations: Any, force: bool = False) -> list[tuple[str, str, str]]:
    """Try an import on a ledger with these operations behind it, and return place, field and code of the faults."""
    async with await tenure.open_async("memory:") as ledger:
        await ledger.apply(operations)
        report = await plan_import(ledger, source, force=force)
    return [(fault.place.path or str(fault.place.line), fault.field, fault.code) for fault in report.faults]


BLOCK = {"cidr": "192.0.2.0/24"}
FIRST = "spaces[0].networks[0].subnets[0]"
SECOND = "spaces[0].networks[0].subnets[1]"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("subnets", "expected"),
    [
        ([{"cidr": "192.0.2.1/24"}], (FIRST, "cidr", "invalid")),
        ([BLOCK, {"cidr": "192.0.2.128/25"}], (SECOND, "cidr", "overlap")),
        ([{**BLOCK, "gateway": "198.51.100.1"}], (FIRST, "gateway", "invalid")),
        ([{**BLOCK, "pools": [{"range": "192.0.2.9-192.0.3.9"}]}], (f"{FIRST}.pools[0]", "range", "not_found")),
        ([{**BLOCK, "pools": [{"range": "192.0.2.9-192.0.2.1"}]}], (f"{FIRST}.pools[0]", "range", "invalid")),
        (
            [{**BLOCK, "pools": [{"range": "192.0.2.1-192.0.2.9"}, {"range": "192.0.2.9"}]}],
            (f"{FIRST}.pools[1]", "range", "overlap"),
        ),
        ([{**BLOCK, "reserved": [{"range": "198.51.100.1"}]}], (f"{FIRST}.reserved[0]", "range", "not_found")),
        ([{**BLOCK, "name": "a"}, {"cidr": "198.51.100.0/24", "name": "a"}], (SECOND, "name", "already_exists")),
        ([{**BLOCK, "unit": 12}], (FIRST, "unit", "invalid")),
        ([{**BLOCK, "gatway": "192.0.2.1"}], (FIRST, "gatway", "invalid")),
        ([{"name": "a"}], (FIRST, "cidr", "invalid")),
        ([BLOCK, BLOCK], (SECOND, "cidr", "already_exists")),
        ([{**BLOCK, "pools": [{"range": "192.0.2.9"}] * 2}], (f"{FIRST}.pools[1]", "range", "already_exists")),
        ([{**BLOCK, "retired": "yes"}], (FIRST, "retired", "invalid")),
        ([{"cidr": "192.0.2.1/24", "retired": True}], (FIRST, "cidr", "invalid")),
        (["192.0.2.0/24"], (FIRST, "", "invalid")),
    ],
)
async def test_a_fault_of_the_plan_is_told_with_its_path_and_field(
    subnets: list[Any], expected: tuple[str, str, str]
) -> None:
    assert await told(export(*subnets)) == [expected]


async def test_a_pool_name_with_two_policies_is_a_fault() -> None:
    pools = [{"range": "192.0.2.1", "name": "p"}, {"range": "192.0.2.2", "name": "p", "policy": "random"}]

    assert await told(export({**BLOCK, "pools": pools})) == [(f"{FIRST}.pools[1]", "policy", "invalid")]


@pytest.mark.parametrize(
    ("waiting", "field", "code"),
    [
        ({"owner": "a/1", "address": "198.51.100.1"}, "address", "address_outside_subnet"),
        ({"owner": "nobody", "address": "192.0.2.9"}, "owner", "invalid"),
        ({"owner": "a/2", "address": "192.0.2.7"}, "address", "already_exists"),
        ({"owner": "a/0", "address": "192.0.2.8"}, "owner", "already_exists"),
    ],
)
async def test_a_fault_of_a_pre_allocation_is_told(waiting: Document, field: str, code: str) -> None:
    source = export(BLOCK, preallocations=[{"owner": "a/0", "address": "192.0.2.7"}, waiting])

    assert await told(source) == [("spaces[0].networks[0].preallocations[1]", field, code)]


async def test_a_gateway_that_somebody_holds_is_a_fault() -> None:
    operations = [
        tenure.AddNetwork(network="m", space="s"),
        tenure.AddSubnet(network="m", cidr="192.0.2.0/24"),
        tenure.Allocate(network="m", owner="a/1", address="192.0.2.1"),
    ]

    faults = await told(export({**BLOCK, "gateway": "192.0.2.1"}), *operations)

    assert faults == [(FIRST, "gateway", "address_in_use")]


async def test_a_network_in_another_space_is_a_fault() -> None:
    assert await told(export(), tenure.AddNetwork(network="n")) == [("spaces[0].networks[0]", "space", "invalid")]


async def test_what_follows_from_a_fault_of_the_plan_is_not_told() -> None:
    held = [{"network": "n", "address": "192.0.2.9", "owner": "a/1"}]

    assert await told(export({"cidr": "192.0.2.1/24"}, holdings=held)) == [(FIRST, "cidr", "invalid")]


async def test_every_field_of_a_holding_is_checked_by_itself() -> None:
    held = {"network": "n", "address": 7, "owner": None, "slot": [], "state": "lost", "labels": "x"}

    faults = await told(export(BLOCK, holdings=[held]))

    assert [field for _, field, _ in faults] == ["address", "labels", "owner", "slot", "state"]


async def test_the_length_of_a_held_prefix_must_be_the_unit_of_its_subnet() -> None:
    held = [{"network": "n", "address": "192.0.2.16/29", "owner": "a/1"}]

    assert await told(export({**BLOCK, "unit": 28}, holdings=held)) == [("holdings[0]", "address", "invalid")]


async def test_addresses_that_come_twice_in_different_units_are_told() -> None:
    plan = [
        tenure.AddNetwork(network="wide", space="s"),
        tenure.AddSubnet(network="wide", cidr="192.0.2.0/24", unit=28),
        tenure.AddNetwork(network="fine", space="s"),
        tenure.AddSubnet(network="fine", cidr="192.0.2.0/24"),
    ]
    rows = "network,address,owner\nfine,192.0.2.20,a/1\nwide,192.0.2.16,a/2\n"

    assert await told(table(rows), *plan) == [("3", "address", "duplicate_address")]


async def test_a_wide_holding_of_the_ledger_is_in_the_way_of_all_it_covers() -> None:
    plan = [
        tenure.AddNetwork(network="wide", space="s"),
        tenure.AddSubnet(network="wide", cidr="192.0.2.0/24", unit=28),
        tenure.AddNetwork(network="fine", space="s"),
        tenure.AddSubnet(network="fine", cidr="192.0.2.0/24"),
        tenure.Allocate(network="wide", owner="a/0", address="192.0.2.16"),
    ]
    rows = "network,address,owner\nfine,192.0.2.15,a/1\nfine,192.0.2.16,a/2\nfine,192.0.2.31,a/3\nfine,192.0.2.32,a/4\n"

    faults = await told(table(rows), *plan)

    assert faults == [("3", "address", "address_in_use"), ("4", "address", "address_in_use")]


SITE = [
    tenure.AddNetwork(network="n"),
    tenure.AddSubnet(network="n", cidr="192.0.2.0/24", gateway="192.0.2.1"),
    tenure.Reserve(network="n", range="192.0.2.100"),
    tenure.Preallocate(network="n", owner="a/waited", address="192.0.2.101"),
]


@pytest.mark.parametrize("address", ["192.0.2.0", "192.0.2.1", "192.0.2.255", "192.0.2.100", "192.0.2.101"])
async def test_what_is_kept_away_is_a_fault_and_with_force_an_oddity(address: str) -> None:
    source = table(f"network,address,owner\nn,{address},a/1\n")
    async with await tenure.open_async("memory:") as ledger:
        await ledger.apply(SITE)

        refused = await plan_import(ledger, source)
        forced = await run_import(ledger, source, force=True)

        assert [fault.code for fault in refused.faults] == ["address_reserved"]
        assert [(odd.place.line, odd.code) for odd in forced.oddities] == [(2, "address_reserved")]
        assert [holding.address for holding in await ledger.holdings("n")] == [address]


async def test_a_column_that_is_not_read_is_an_oddity() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.apply(SITE)

        report = await plan_import(ledger, table("network;address;owner;colour\nn;192.0.2.9;a/1;red\n"))

    assert report.ok
    assert [(odd.place.line, odd.field) for odd in report.oddities] == [(1, "colour")]


async def test_a_row_that_ends_early_lacks_what_it_does_not_say() -> None:
    faults = await told(table("address,owner,network\n192.0.2.9,a/1,n\n192.0.2.10\n"), *SITE)

    assert faults == [("3", "network", "not_found"), ("3", "owner", "invalid")]


async def test_a_missing_column_is_a_fault_of_the_header() -> None:
    assert await told(table("network,address\nn,192.0.2.9\n"), *SITE) == [("1", "owner", "missing_column")]


async def test_what_is_there_already_counts_as_that_and_its_differences_are_oddities() -> None:
    rows = "network,address,owner,labels\nn,192.0.2.9,a/1,\nn,192.0.2.10,a/2,team=shop\nn,192.0.2.11,a/3,\n"
    async with await tenure.open_async("memory:") as ledger:
        await ledger.apply(SITE)
        await ledger.allocate("n", owner="a/1", address="192.0.2.9")
        await ledger.allocate("n", owner="a/2", address="192.0.2.10")

        report = await plan_import(ledger, table(rows))

    assert (report.already["holdings"], report.new["holdings"]) == (2, 1)
    assert [(odd.place.line, odd.field) for odd in report.oddities] == [(3, "labels")]


async def test_what_ends_by_itself_is_left_out_and_told() -> None:
    rows = "network,address,owner,state,until\nn,192.0.2.9,a/1,pending,2030-01-01\nn,192.0.2.10,a/2,cooling,\n"
    async with await tenure.open_async("memory:") as ledger:
        await ledger.apply(SITE)

        report = await run_import(ledger, table(rows))

        assert [odd.code for odd in report.oddities] == ["left_out", "left_out"]
        assert await ledger.holdings("n") == []


async def test_a_pending_holding_without_deadline_comes_in_as_that(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply(SITE)

    await run_import(ledger, table("network,address,owner,state\nn,192.0.2.9,a/1,pending\n"))

    [holding] = await ledger.holdings("n")
    assert (str(holding.state), holding.until) == ("pending", None)


async def test_an_address_that_cools_off_is_in_the_way(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([*SITE, tenure.AddPool(network="n", range="192.0.2.9-192.0.2.20", cooling_s=600)])
    await ledger.allocate("n", owner="a/1", address="192.0.2.9")
    await ledger.release("n", "192.0.2.9", owner="a/1")

    report = await plan_import(ledger, table("network,address,owner\nn,192.0.2.9,a/1\n"))

    assert [(fault.place.line, fault.code) for fault in report.faults] == [(2, "address_in_use")]
    assert "cooling off" in report.faults[0].reason


async def test_what_the_ledger_has_already_is_not_judged_again() -> None:
    row = "network,address,owner\nn,192.0.2.9,a/1\n"
    async with await tenure.open_async("memory:") as ledger:
        await ledger.apply(SITE)
        await run_import(ledger, table(row))
        await ledger.reserve("n", "192.0.2.9")
        await ledger.retire_subnet("n", "192.0.2.0/24")

        again = await plan_import(ledger, table(row))
        another = await plan_import(ledger, table(row + "n,192.0.2.10,a/2\n"), force=True)

    assert (again.ok, again.already["holdings"]) == (True, 1)
    assert [(fault.place.line, fault.code) for fault in another.faults] == [(3, "address_reserved")]


async def test_a_draining_holding_comes_in_before_the_one_that_took_its_slot(ledger: tenure.AsyncLedger) -> None:
    rows = "network,address,owner,state\nn,192.0.2.9,a/1,held\nn,192.0.2.10,a/1,draining\n"
    await ledger.apply(SITE)

    await run_import(ledger, table(rows))
    again = await run_import(ledger, table(rows))

    states = {holding.address: str(holding.state) for holding in await ledger.holdings("n")}
    assert states == {"192.0.2.9": "held", "192.0.2.10": "draining"}
    assert (again.already["holdings"], again.new["holdings"]) == (2, 0)


async def test_a_source_may_be_a_plain_list_of_items() -> None:
    place = SourcePlace("by hand", 7)
    async with await tenure.open_async("memory:") as ledger:
        report = await plan_import(ledger, [Item(place, Fault(place, "x", "y", "z"))])

    assert [str(fault) for fault in report.faults] == ["by hand line 7: x: z"]


@pytest.mark.parametrize("batch", [0, 10_001, True, "9"])
async def test_a_batch_that_is_no_size_is_refused(batch: Any) -> None:
    async with await tenure.open_async("memory:") as ledger:
        with pytest.raises(tenure.Invalid, match="batch"):
            await run_import(ledger, [], batch=batch)


async def test_a_report_can_be_written_for_programs() -> None:
    async with await tenure.open_async("memory:") as ledger:
        report = await plan_import(ledger, table("network,address,owner\nm,192.0.2.9,a/1\n"))

    document = json.loads(json.dumps(report.as_document()))

    assert document["ok"] is False
    assert document["faults"][0] | {"reason": ""} == {
        "source": "plan.csv", "line": 2, "path": None, "field": "network", "code": "not_found", "reason": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("192.0.2.7/24", "'192.0.2.7/24' is an address in a block; write 192.0.2.7 without the length"),
        ("192.0.2.0/28", "write 192.0.2.0 without the length: 192.0.2.0/24 hands out single addresses"),
        ("192.0.2.7/33", "'192.0.2.7/33' is not an address block"),
    ],
)
async def test_an_address_with_a_length_is_told_to_go_without(address: str, said: str) -> None:
    held = [{"network": "n", "address": address, "owner": "pod/1"}]
    [reason] = await reasons(export({**BLOCK, "keep_back": []}, holdings=held))

    assert said in reason


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"spaces": 5}, "spaces"),
        ({"holdings": {}}, "holdings"),
        ({"spaces": [{"name": "s", "networks": "n"}]}, "spaces[0].networks"),
        ({"spaces": [{"name": "s", "networks": [{"name": "n", "subnets": None}]}]}, "spaces[0].networks[0].subnets"),
    ],
)
async def test_what_is_no_list_is_placed_where_it_stands(document: Document, place: str) -> None:
    whole = {"format": "tenure", "version": 1, **document}
    [reason] = await reasons(parse_source([("all.json", json.dumps(whole).encode())]))

    assert reason.startswith(f"all.json {place}: a list is needed, not ")


async def test_a_label_without_a_name_is_told() -> None:
    [reason] = await reasons(table("network,address,owner,labels\nn,192.0.2.7,pod/1,=;=\n"))

    assert reason == "plan.csv line 2: labels: a label needs a name before its '=', in '=;='"
