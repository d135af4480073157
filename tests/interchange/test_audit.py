"""An audit compares sources and writes nothing: two holders, other holders, holdings that one source knows alone."""

import json

import pytest

import tenure
from tenure.interchange.audit import AuditProblem, AuditReport, LedgerSource, audit
from tenure.interchange.exporter.export_run import export_json
from tenure.interchange.formats.detect import parse_source
from tenure.interchange.formats.source_items import Source

Said = tuple[str, str, list[tuple[str, str]]]


def table(name: str, *rows: str) -> Source:
    """Read a table of holdings."""
    text = "network,address,owner\n" + "".join(f"{row}\n" for row in rows)
    return parse_source([(name, text.encode())], name=name)


def said(report: AuditReport) -> list[Said]:
    """Tell each discrepancy with its places."""
    return [
        (str(each.verdict), each.address, [(str(place), owner) for place, owner in each.statements])
        for each in report.discrepancies
    ]


async def test_sources_that_agree_have_nothing_to_tell() -> None:
    report = await audit([table("a", "n,192.0.2.1,x/1"), table("b", "n,192.0.2.1,local:x/1")])

    assert (report.ok, report.compared) == (True, 2)


async def test_each_discrepancy_is_told_with_every_place() -> None:
    one = table("a", "n,192.0.2.1,x/1", "n,192.0.2.2,x/2", "n,192.0.2.3,x/3", "n,192.0.2.3,x/4")
    other = table("b", "n,192.0.2.1,x/9", "n,192.0.2.3,x/3", "n,192.0.2.7,x/7")

    report = await audit([one, other])

    assert said(report) == [
        ("disagree", "192.0.2.1", [("a line 2", "x/1"), ("b line 2", "x/9")]),
        ("only_here", "192.0.2.2", [("a line 3", "x/2")]),
        ("two_holders", "192.0.2.3", [("a line 4", "x/3"), ("a line 5", "x/4"), ("b line 3", "x/3")]),
        ("disagree", "192.0.2.3", [("a line 4", "x/3"), ("a line 5", "x/4"), ("b line 3", "x/3")]),
        ("only_here", "192.0.2.7", [("b line 4", "x/7")]),
    ]


async def test_a_ledger_is_a_source_like_others_and_is_not_written(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("n")
    await ledger.add_subnet("n", "192.0.2.0/24")
    await ledger.allocate("n", owner="x/1", address="192.0.2.1")
    await ledger.allocate("n", owner="x/2", address="192.0.2.2")
    before = await ledger.last_change()

    report = await audit([LedgerSource("ledger", ledger), table("b", "n,192.0.2.1,x/9")])

    assert said(report) == [
        ("disagree", "192.0.2.1", [("ledger n 192.0.2.1", "x/1"), ("b line 2", "x/9")]),
        ("only_here", "192.0.2.2", [("ledger n 192.0.2.2", "x/2")]),
    ]
    assert await ledger.last_change() == before


async def test_networks_of_one_space_are_one_scope() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("n", space="site")
        await ledger.add_network("m", space="site")
        await ledger.add_subnet("n", "192.0.2.0/24")
        await ledger.allocate("n", owner="x/1", address="192.0.2.1")

        report = await audit([LedgerSource("ledger", ledger), table("b", "m,192.0.2.1,x/2")])

    assert [each.verdict for each in report.discrepancies] == [AuditProblem.DISAGREE]


@pytest.mark.parametrize(("one_space", "verdicts"), [(False, ["only_here", "only_here"]), (True, ["disagree"])])
async def test_networks_of_other_names_meet_only_if_asked_to(one_space: bool, verdicts: list[str]) -> None:
    sources = [table("a", "office,192.0.2.1,x/1"), table("b", "vrf7,192.0.2.1,x/2")]

    report = await audit(sources, one_space=one_space)

    assert [str(each.verdict) for each in report.discrepancies] == verdicts


async def test_a_held_prefix_is_compared_with_the_addresses_in_it() -> None:
    wide = table("a", "n,192.0.2.16/28,x/1", "n,192.0.2.32/28,x/1", "n,192.0.2.48/28,x/1")
    fine = table("b", "n,192.0.2.17,x/1", "n,192.0.2.40,x/1", "n,192.0.2.41,x/2")

    report = await audit([wide, fine])

    assert said(report) == [
        ("disagree", "192.0.2.41", [("a line 3", "x/1"), ("b line 4", "x/2")]),
        ("only_here", "192.0.2.48/28", [("a line 4", "x/1")]),
    ]


async def test_two_holders_are_found_in_a_single_source() -> None:
    report = await audit([table("a", "n,192.0.2.1,x/1", "n,192.0.2.1,x/2", "n,192.0.2.9,x/9")])

    assert [(str(each.verdict), each.address) for each in report.discrepancies] == [("two_holders", "192.0.2.1")]


async def test_what_cannot_be_read_is_told_and_the_rest_is_compared() -> None:
    report = await audit([table("a", "n,192.0.2.300,x/1", "n,192.0.2.1,x/1"), table("b", "n,192.0.2.1,x/1")])

    assert [(str(fault.place), fault.field) for fault in report.faults] == [("a line 2", "address")]
    assert (report.discrepancies, report.ok) == ([], False)


async def test_a_netbox_export_and_a_whole_export_are_sources_too() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("red", space="site")
        await ledger.add_subnet("red", "192.0.2.0/24")
        await ledger.allocate("red", owner="device/web-0", address="192.0.2.1")
        whole = "".join([piece async for piece in export_json(ledger)])
    netbox = "address,vrf,status,device,interface\n192.0.2.1/24,red,active,web-1,eth0\n"
    sources = [parse_source([(name, text.encode())]) for name, text in [("all.json", whole), ("nb.csv", netbox)]]

    report = await audit(sources)

    assert said(report) == [
        ("disagree", "192.0.2.1", [("all.json holdings[0]", "device/web-0"), ("nb.csv line 2", "device/web-1")])
    ]
    assert json.loads(json.dumps(report.as_document()))["discrepancies"][0]["verdict"] == "disagree"


async def test_an_audit_of_nothing_is_refused() -> None:
    with pytest.raises(tenure.Invalid, match="at least one"):
        await audit([])
