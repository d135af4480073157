"""What is exported and imported again is the same: plan and holdings, in JSON, in CSV, and as far as NetBox goes."""

import csv
import io
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import tenure
from tenure.interchange.exporter.export_run import export_csv, export_json
from tenure.interchange.exporter.netbox_writer import TABLES, export_netbox
from tenure.interchange.formats.detect import parse_source
from tenure.interchange.formats.source_items import Source
from tenure.interchange.importer.import_run import plan_import, run_import
from tenure.kernel.plan.document import network_document
from tests.kernel.strategies import names, owners, texts
from tests.profiles import examples

Told = list[tuple[Any, ...]]


async def joined(pieces: AsyncIterator[str]) -> bytes:
    """Put an export together."""
    return "".join([piece async for piece in pieces]).encode()


async def plan_of(ledger: tenure.AsyncLedger) -> list[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Write the plan in a form that can be compared."""
    return [
        (space.name, [(name, _plan_alone(network)) for name, network in space.networks.items()])
        for space in await ledger.spaces()
    ]


def _plan_alone(network: tenure.Network) -> dict[str, Any]:
    """Write a network without what each ledger counts by itself."""
    counted = ("serial", "created_us", "modified_us")
    return {name: value for name, value in network_document(network).items() if name not in counted}


async def holdings_of(ledger: tenure.AsyncLedger) -> Told:
    """Write the holdings in a form that can be compared."""
    every = [holding for network in await ledger.networks() for holding in await ledger.holdings(network.name)]
    return [
        (h.network, h.address, h.unit, h.owner, h.slot, h.state, h.labels, h.description, h.carrier, h.plan)
        for h in every
    ]


labels = st.dictionaries(names, texts, max_size=2)
optional = st.none() | names


@st.composite
def subnets(draw: st.DrawFn, network: str, number: int, served: set[bool]) -> list[Any]:
    """Draw a subnet with pools, reserved ranges and a pre-allocation, and holdings in it."""
    wide = draw(st.booleans())
    base = f"2001:db8:{number:x}:" if draw(st.booleans()) else f"10.{number}."
    block, at = (f"{base}:/64", f"{base}:{{:x}}") if ":" in base else (f"{base}0.0/16", f"{base}0.{{}}")
    dhcp = draw(st.booleans()) and (":" in base) not in served
    served |= {":" in base} if dhcp else set()
    operations: list[Any] = [
        tenure.AddSubnet(
            network=network,
            cidr=block,
            unit=(124 if ":" in base else 28) if wide else None,
            gateway=draw(st.none() | st.just(at.format(1))),
            name=draw(st.none() | st.just(f"s{number}")),
            dhcp=dhcp,
            zones=draw(st.lists(names, max_size=2, unique=True)),
            keep_back=draw(st.none() | st.just(["last"])),
            labels=draw(labels),
            description=draw(texts),
        ),
        tenure.AddPool(
            network=network, range=f"{at.format(16)}-{at.format(95)}", name=draw(optional), labels=draw(labels)
        ),
        tenure.Reserve(
            network=network, range=f"{at.format(32)}-{at.format(47)}", reason=draw(texts), labels=draw(labels)
        ),
        tenure.Preallocate(network=network, owner=draw(owners), slot=f"w{number}", address=at.format(96)),
    ]
    for unit in draw(st.lists(st.integers(1, 5), unique=True)):
        operations.append(
            tenure.Allocate(
                network=network,
                owner=draw(owners),
                slot=f"{number}/{unit}",
                address=at.format(unit * 16),
                reserved="force",
                labels=draw(labels),
                description=draw(texts),
                carrier=draw(optional),
                plan=draw(optional),
                pending=draw(st.booleans()),
            )
        )
        if not operations[-1].pending and draw(st.booleans()):
            last = operations[-1]
            operations.append(
                tenure.ModifyHolding(network=network, address=last.address, owner=last.owner, state="draining")
            )
    return operations


@st.composite
def sites(draw: st.DrawFn) -> Sequence[Any]:
    """Draw the operations that make a ledger, retirements last."""
    operations: list[Any] = []
    for index, network in enumerate(draw(st.lists(names, min_size=1, max_size=3, unique=True))):
        space = draw(st.none() | st.just("shared space"))
        operations.append(tenure.AddNetwork(network=network, space=space, labels=draw(labels), tags=["t"]))
        served: set[bool] = set()
        for number in range(index * 4, index * 4 + draw(st.integers(0, 3))):
            operations += draw(subnets(network, number, served))
        for group in draw(st.lists(names, max_size=2, unique=True)):
            mode, link, vlan = draw(st.sampled_from(["bridged", "routed"])), draw(texts), draw(texts)
            operations.append(tenure.Connect(network=network, group=group, mode=mode, link=link, vlan=vlan))
        if draw(st.booleans()):
            operations.append(tenure.ModifyNetwork(network=network, retired=True))
    return operations


@given(sites())
@settings(max_examples=examples(0.7))
async def test_a_whole_export_read_into_an_empty_ledger_gives_the_same_plan_and_holdings(site: Sequence[Any]) -> None:
    async with await tenure.open_async("memory:") as old, await tenure.open_async("memory:") as new:
        await old.apply(site)
        exported = await joined(export_json(old))

        report = await run_import(new, parse_source([("all.json", exported)]), batch=7)
        again = await plan_import(new, parse_source([("all.json", exported)]))

        assert report.ok
        assert await plan_of(new) == await plan_of(old)
        assert await holdings_of(new) == await holdings_of(old)
        assert (again.new.total(), again.already.total()) == (0, report.new.total())
        assert await new.verify() == []


@given(sites())
@settings(max_examples=examples(0.5))
async def test_a_table_of_holdings_read_into_the_same_plan_gives_the_same_holdings(site: Sequence[Any]) -> None:
    plan = [
        each for each in site if not isinstance(each, tenure.Allocate | tenure.ModifyHolding | tenure.ModifyNetwork)
    ]
    async with await tenure.open_async("memory:") as old, await tenure.open_async("memory:") as new:
        await old.apply(site)
        await new.apply(plan)
        exported = await joined(export_csv(old))

        await run_import(new, parse_source([("held.csv", exported)]), force=True, batch=7)

        assert await holdings_of(new) == await holdings_of(old)


async def a_site(ledger: tenure.AsyncLedger) -> None:
    """Make two networks with a bit of everything."""
    await ledger.add_network("red")
    await ledger.add_network("global")
    await ledger.add_subnet("red", "192.0.2.0/24", description="office")
    await ledger.add_subnet("red", "2001:db8::/64")
    await ledger.add_subnet("red", "198.51.100.0/31")
    await ledger.add_pool("red", "192.0.2.10-192.0.2.99", description="for all")
    await ledger.reserve("red", "192.0.2.200-192.0.2.210", reason="printers")
    await ledger.add_subnet("global", "203.0.113.0/24")
    await ledger.retire_subnet("global", "203.0.113.0/24")
    await ledger.allocate("red", owner="host/a", labels={"hostname": "www.example.com"})
    await ledger.allocate("red", owner="host/b", address="2001:db8::5", description="=cmd()")


def shapes(networks: list[tenure.Network]) -> dict[str, Any]:
    """Tell what NetBox knows of a plan."""
    return {
        network.name: [
            (
                str(subnet.cidr),
                subnet.retired,
                subnet.keep_back,
                [str(pool.range) for pool in subnet.pools],
                [(str(kept.range), kept.reason) for kept in subnet.reserved],
            )
            for subnet in network.subnets
        ]
        for network in networks
    }


async def test_netbox_tables_read_back_give_the_same_blocks_ranges_and_addresses() -> None:
    async with await tenure.open_async("memory:") as old, await tenure.open_async("memory:") as new:
        await a_site(old)
        tables = [(f"{table}.csv", await joined(export_netbox(old, table))) for table in TABLES]

        report = await run_import(new, parse_source(tables))

        assert report.ok
        assert shapes(await new.networks()) == shapes(await old.networks())
        held = [(told[1], told[3], told[6]) for told in await holdings_of(new)]
        assert held == [
            ("192.0.2.10", "dns-name/www.example.com", {"hostname": "www.example.com"}),
            ("2001:db8::5", "netbox/2001:db8::5", {}),
        ]


async def test_an_export_is_safe_to_open_in_a_spreadsheet() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await a_site(ledger)
        await ledger.allocate("red", owner="host/c", labels={"=x": "1"}, description="@SUM(A1)", carrier="+7")
        tables = [await joined(export_csv(ledger)), await joined(export_netbox(ledger, "ip-addresses"))]

    cells = [cell for text in tables for row in csv.reader(io.StringIO(text.decode())) for cell in row]

    assert [cell for cell in cells if cell[:1] in set("=+-@")] == []
    assert "'@SUM(A1)" in cells


async def test_an_export_comes_in_pieces_and_tells_how_far_it_is() -> None:
    told: list[tuple[int, int | None]] = []
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("n")
        await ledger.add_subnet("n", "10.0.0.0/16")
        await ledger.add_pool("n", "10.0.0.0/16")
        await ledger.allocate_many("n", owners=[f"pod/{number}" for number in range(4500)])

        pieces = [piece async for piece in export_csv(ledger, progress=lambda done, total: told.append((done, total)))]

    assert [piece.count("\n") for piece in pieces] == [1, 2000, 2000, 500]
    assert told == [(2000, None), (4000, None), (4500, None)]


async def test_one_network_can_be_exported_alone() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await a_site(ledger)

        document = json.loads(await joined(export_json(ledger, network="global")))

    assert [network["name"] for space in document["spaces"] for network in space["networks"]] == ["global"]
    assert document["holdings"] == []


def test_the_request_of_an_import_names_its_source() -> None:
    assert Source("hosts of\tmarch.csv\n").request == "import hosts of?march.csv?"
    assert len(Source("x" * 999).request) == 255
