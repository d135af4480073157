"""NetBox's exports: tables of its pages and lists of its REST interface, by the mapping that the reference shows."""

import json
from typing import Any

import pytest

import tenure
from tenure.interchange.formats.detect import parse_source, read_source
from tenure.interchange.formats.source_items import Fault, Oddity, Remark, Source, SourceHolding
from tenure.interchange.importer.import_run import run_import

PREFIXES = """\
Prefix,Status,Children,VRF,Utilization,Tenant,Site,VLAN,Role,Pool,Description
192.0.2.0/24,Active,0,red (65000:1),10,Shop,,,,False,office
• 198.51.100.0/25,Reserved,0,Global,0,,,,,✔,spare
203.0.113.0/24,Deprecated,0,Global,0,,,,,False,
10.0.0.0/8,Container,2,Global,0,,,,,False,
10.1.0.0/16,Active,1,Global,0,,,,,False,
10.1.2.0/24,Active,0,Global,0,,,,,False,
"""
RANGES = """\
Start address,End address,Size,VRF,Status,Role,Tenant,Marked Utilized,Description
192.0.2.10/24,192.0.2.99/24,90,red (65000:1),Active,,,False,for all
192.0.2.200/24,192.0.2.210/24,11,red (65000:1),Reserved,,,False,printers
192.0.2.220/24,192.0.2.221/24,2,red (65000:1),Active,,,True,
"""
ADDRESSES = """\
IP Address,VRF,Status,Role,Tenant,Assigned,DNS Name,Description,Interface,Parent
192.0.2.10/24,red (65000:1),Active,,Shop,True,www.example.com,front,eth0,web-0
192.0.2.11/24,red (65000:1),DHCP,,,False,p1.example.com,,,
192.0.2.12/24,red (65000:1),Reserved,,,False,,for later,,
192.0.2.13/24,red (65000:1),Deprecated,,,False,,,,
10.1.2.3/24,Global,Active,VIP,,True,,,eth1,web-0
"""
TABLES = [("prefixes.csv", PREFIXES), ("ranges.csv", RANGES), ("addresses.csv", ADDRESSES)]


def tables(*chosen: tuple[str, str]) -> Source:
    """Read tables."""
    return parse_source([(name, text.encode()) for name, text in chosen or TABLES])


def listed(*entries: dict[str, Any]) -> Source:
    """Read a list of the REST interface."""
    return parse_source([("list.json", json.dumps(list(entries)).encode())])


def holdings(source: Source) -> list[SourceHolding]:
    """Return the holdings of a source."""
    return [item.what for item in source.items if isinstance(item.what, SourceHolding)]


@pytest.mark.parametrize(
    "header",
    ["IP Address,Hostname,Owner", "address,hostname,owner", "Prefix,Site,Comment", "Start address,End address"],
)
def test_a_table_without_netboxs_own_columns_is_not_taken_for_netboxs(header: str) -> None:
    row = "192.0.2.10,192.0.2.11,instance/x"
    source = parse_source([("hosts.csv", f"{header}\n{row}\n".encode())])

    [item] = source.items
    assert isinstance(item.what, Fault)
    assert (item.what.code, item.what.field, item.place.line) == ("missing_column", "network", 1)
    assert "format netbox" in item.what.reason


@pytest.mark.parametrize("header", ["IP Address,VRF", "IP Address,Status", "address,status,dns_name"])
def test_a_view_of_netbox_with_few_columns_is_still_netboxs(header: str) -> None:
    assert parse_source([("view.csv", f"{header}\n192.0.2.10/24,\n".encode())]).items != []
    assert not isinstance(parse_source([("view.csv", f"{header}\n192.0.2.10/24,\n".encode())]).items[0].what, Fault)


def test_a_table_is_read_as_netboxs_where_the_caller_says_so() -> None:
    source = parse_source([("hosts.csv", b"IP Address,Hostname\n192.0.2.10/24,x\n")], format="netbox")

    assert not any(isinstance(item.what, Fault) for item in source.items)


async def test_the_tables_of_an_export_become_a_plan_and_holdings() -> None:
    async with await tenure.open_async("memory:") as ledger:
        report = await run_import(ledger, tables())

        red, other = await ledger.network("red"), await ledger.network("global")
        held = [(h.address, h.owner, h.slot, h.labels) for h in await ledger.holdings("red")]
        assert await ledger.verify() == []

    [office] = red.subnets
    assert (str(office.cidr), office.notes.description, office.notes.labels) == (
        "192.0.2.0/24", "office", {"tenant": "Shop"},
    )  # fmt: skip
    assert [str(pool.range) for pool in office.pools] == ["192.0.2.10-192.0.2.99"]
    assert {kept.request for kept in office.reserved} == {"import prefixes.csv, ranges.csv, addresses.csv"}
    assert {(str(kept.range), kept.reason) for kept in office.reserved} == {
        ("192.0.2.12", "for later"),
        ("192.0.2.200-192.0.2.210", "printers"),
        ("192.0.2.220-192.0.2.221", "in use in NetBox"),
    }
    shapes = [(str(s.cidr), s.retired, sorted(s.keep_back), len(s.reserved)) for s in other.subnets]
    usual = ["broadcast", "gateway", "network"]
    assert shapes == [
        ("198.51.100.0/25", False, ["gateway"], 1),
        ("203.0.113.0/24", True, usual, 0),
        ("10.1.2.0/24", False, usual, 0),
    ]
    assert held == [
        ("192.0.2.10", "device/web-0", "eth0/192.0.2.10", {"hostname": "www.example.com", "tenant": "Shop"}),
        ("192.0.2.11", "dns-name/p1.example.com", "192.0.2.11", {"hostname": "p1.example.com", "status": "dhcp"}),
        ("192.0.2.13", "netbox/192.0.2.13", "", {"status": "deprecated"}),
    ]  # fmt: skip
    assert [(odd.place.source, odd.place.line) for odd in report.oddities] == [("prefixes.csv", 5), ("prefixes.csv", 6)]


async def test_the_same_export_again_changes_nothing() -> None:
    async with await tenure.open_async("memory:") as ledger:
        first = await run_import(ledger, tables())
        changes = await ledger.last_change()

        again = await run_import(ledger, tables())

        assert again.new.total() == 0
        assert again.already == first.new
        assert await ledger.last_change() == changes


@pytest.mark.parametrize(
    ("assigned", "owner", "slot"),
    [
        ({"name": "eth0", "device": {"id": 1, "name": "sw1"}}, "device/sw1", "eth0/192.0.2.5"),
        ({"name": "ens3", "virtual_machine": {"id": 1, "name": "vm1"}}, "virtual-machine/vm1", "ens3/192.0.2.5"),
        ({"name": "eth0", "device": {"id": 7, "name": None, "display": "r (7)"}}, "device/r (7)", "eth0/192.0.2.5"),
        ({"id": 3, "display": "VRRP: 10", "group_id": 10}, "fhrp-group/VRRP: 10", "192.0.2.5"),
        (None, "dns-name/a.example.com", "192.0.2.5"),
    ],
)  # fmt: skip
def test_the_assigned_object_of_a_rest_list_is_the_owner(assigned: object, owner: str, slot: str) -> None:
    entry = {
        "id": 9, "address": "192.0.2.5/24", "vrf": {"id": 1, "name": "red", "rd": "1:1"}, "dns_name": "a.example.com",
        "status": {"value": "active", "label": "Active"}, "assigned_object": assigned, "tags": [{"name": "x"}],
    }  # fmt: skip

    [held] = holdings(listed(entry))

    assert (held.network, held.address, held.owner, held.slot) == ("red", "192.0.2.5", owner, slot)
    assert held.labels == {"hostname": "a.example.com", "tags": "x"}


def test_a_page_with_results_is_read_and_a_part_of_them_is_a_fault() -> None:
    page = {"count": 2, "next": "more", "results": [{"prefix": "192.0.2.0/24", "vrf": None}, {"name": "?"}]}

    source = parse_source([("page.json", json.dumps(page).encode())])

    remarks = [(item.place.path, item.what.code) for item in source.items if isinstance(item.what, Remark)]
    assert remarks == [("results[1]", "unknown_record"), ("next", "not_all")]


def test_a_status_of_ones_own_is_taken_as_active_and_told() -> None:
    source = listed({"address": "192.0.2.5/24", "status": {"value": "parked"}})

    assert [held.labels for held in holdings(source)] == [{"status": "parked"}]
    assert [item.what.code for item in source.items if isinstance(item.what, Oddity)] == ["unknown_status"]


def test_an_assigned_address_that_is_reserved_is_held_by_whom_it_is_assigned_to() -> None:
    assigned = {"name": "eth0", "device": {"name": "sw1"}}

    [held] = holdings(listed({"address": "192.0.2.5/24", "status": {"value": "reserved"}, "assigned_object": assigned}))

    assert (held.owner, held.labels) == ("device/sw1", {"status": "reserved"})


async def test_an_address_in_no_prefix_is_a_fault_of_its_line() -> None:
    table = ADDRESSES + "172.16.0.1/24,Global,Active,,,,,,,\n"
    async with await tenure.open_async("memory:") as ledger:
        with pytest.raises(tenure.Invalid, match=r"addresses\.csv line 7: address: .*lies in no subnet"):
            await run_import(ledger, tables(TABLES[0], TABLES[1], ("addresses.csv", table)))


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"", "is empty"), (b"{", "is not JSON"), (b'{"a": 1}', "is not an export"), (b"[" * 99999, "is not JSON")],
)
def test_a_file_that_is_no_source_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(tenure.Invalid, match=problem):
        parse_source([("file", content)])


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(tenure.Invalid, match="cannot be read"):
        read_source("nowhere.csv")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(tenure.Invalid, match="none of auto, csv, json, netbox"):
        read_source("nowhere.csv", format="xml")
