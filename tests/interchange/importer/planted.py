"""A table of many good rows with faults planted in it, each with the line and the field that must be told."""

from dataclasses import dataclass

import tenure
from tenure.interchange.formats.detect import parse_source
from tenure.interchange.formats.source_items import Source

HEADER = "network,address,owner,slot,labels,description\n"
PLAN: list[tenure.AddNetwork | tenure.AddSubnet | tenure.AddPool | tenure.Reserve | tenure.Preallocate] = [
    tenure.AddNetwork(network="site"),
    tenure.AddSubnet(network="site", cidr="10.0.0.0/8", gateway="10.0.0.1"),
    tenure.AddPool(network="site", range="10.64.0.0-10.127.255.255"),
    tenure.Reserve(network="site", range="10.200.0.0/16", reason="spare"),
    tenure.Preallocate(network="site", owner="host/waited-for", address="10.201.0.9"),
]
HELD_BEFORE = [
    tenure.Allocate(network="site", owner="host/older", address="10.202.0.1"),
    tenure.Allocate(network="site", owner="host/settled", slot="eth0", address="10.202.0.2"),
]


@dataclass(frozen=True)
class Planted:
    """A wrong row, the field at fault and the code it must be told by."""

    row: str
    field: str
    code: str


def good_row(number: int) -> str:
    """Write a row that nothing is wrong with."""
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return f"site,{address},host/h{number},,team=shop,machine {number}\n"


def wrong_rows() -> list[Planted]:
    """List fifty faults of every kind."""
    kinds = [
        Planted("site,10.203.0.{n}.9,host/w{n},,,\n", "address", "invalid"),
        Planted("site,10.203.1.{n}/24,host/w{n},,,\n", "address", "invalid"),
        Planted("site,10.203.2.{n},no owner {n},,,\n", "owner", "invalid"),
        Planted("elsewhere,10.203.3.{n},host/w{n},,,\n", "network", "not_found"),
        Planted("site,192.0.2.{n},host/w{n},,,\n", "address", "address_outside_subnet"),
        Planted("site,10.0.0.{n0},host/w{n},,,\n", "address", "duplicate_address"),
        Planted("site,10.203.4.{n},host/h{n0},,,\n", "owner", "duplicate_owner"),
        Planted("site,10.200.0.{n},host/w{n},,,\n", "address", "address_reserved"),
        Planted("site,10.203.5.{n},host/w{n},,team shop,\n", "labels", "invalid"),
        Planted("site,10.203.6.{n},host/w{n},,,a,b\n", "", "too_many_columns"),
    ]
    once = [
        Planted("site,10.202.0.1,host/newer,,,\n", "address", "address_in_use"),
        Planted("site,10.203.7.1,host/settled,eth0,,\n", "owner", "owner_holds_another"),
        Planted("site,10.201.0.9,host/another,,,\n", "address", "address_reserved"),
        Planted("site,10.0.0.1,host/gate,,,\n", "address", "address_reserved"),
        Planted("site,10.203.8.1,host/tab,\x07,,\n", "slot", "invalid"),
    ]
    many = [
        Planted(kind.row.format(n=number, n0=number + 20), kind.field, kind.code)
        for number in range(2, 7)
        for kind in kinds
    ]
    return [*many[: 50 - len(once)], *once]


def planted_table(rows: int, *, faults: bool = True) -> tuple[Source, dict[int, Planted]]:
    """Build the table, and tell which line has which fault."""
    lines = [good_row(number) for number in range(2, rows + 2)]
    wanted: dict[int, Planted] = {}
    if faults:
        wrong = wrong_rows()
        step = rows // (len(wrong) + 1)
        for count, planted in enumerate(wrong, 1):
            place = count * step
            lines[place] = planted.row
            wanted[place + 2] = planted  # lines are counted from one, and the header is the first
    return parse_source([("plan.csv", (HEADER + "".join(lines)).encode())]), wanted


async def prepare(ledger: tenure.AsyncLedger) -> None:
    """Make the plan that the table is for, with two holdings that are in the way."""
    await ledger.apply([*PLAN, *HELD_BEFORE])
