"""Search: every object by text, labels and place; on every store of the ledger tier."""

import pytest

import tenure

Ledger = tenure.AsyncLedger


def seen(found: list[tenure.Found]) -> list[tuple[str, str, str | None]]:
    return [(str(each.kind), each.name, each.address) for each in found]


async def laid_out(ledger: Ledger) -> None:
    """Lay out two networks with something written on every kind of object."""
    shop = {"team": "shop"}
    await ledger.add_network("front", space="site", labels=shop, description="What customers see", tags=["dmz"])
    await ledger.add_subnet("front", "192.0.2.0/24", gateway="192.0.2.1", name="Blue", labels={"floor": "2"})
    await ledger.add_pool("front", "192.0.2.10-192.0.2.19", name="web", labels=shop, description="for web servers")
    await ledger.reserve("front", "192.0.2.40-192.0.2.49", reason="printers", labels=shop, description="second floor")
    await ledger.preallocate("front", "vm/db", "192.0.2.60", slot="nic0", labels=shop, description="the database")
    await ledger.add_network("back", space="site")
    await ledger.add_subnet("back", "10.0.0.0/24", unit=28, keep_back=[], description="prefixes")
    await ledger.allocate("front", owner="vm/web-0", labels=shop, description="Shop window", carrier="host-7")
    await ledger.allocate("front", owner="vm/web-1", labels={"team": "ops", "floor": "2"})
    await ledger.allocate("back", owner="vm/router", address="10.0.0.16")


ALL_OF_SHOP = [
    ("network", "front", None),
    ("pool", "web", "192.0.2.10-192.0.2.19"),
    ("reserved", "printers", "192.0.2.40-192.0.2.49"),
    ("preallocation", "vm/db", "192.0.2.60"),
    ("holding", "vm/web-0", "192.0.2.10"),
]


async def test_labels_find_every_kind_of_object(ledger: Ledger) -> None:
    await laid_out(ledger)

    found = await ledger.search(labels={"team": "shop"})

    assert seen(found) == ALL_OF_SHOP
    assert all(each.labels == {"team": "shop"} and each.network == "front" for each in found)
    assert [each.description for each in found] == [
        "What customers see", "for web servers", "second floor", "the database", "Shop window",
    ]  # fmt: skip
    assert [each.holding for each in found if each.holding] == [await ledger.holding("front", "192.0.2.10")]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({"team": None}, ["front", "web", "printers", "vm/db", "vm/web-0", "vm/web-1"]),
        ({"floor": "2"}, ["Blue", "vm/web-1"]),
        ({"floor": "2", "team": None}, ["vm/web-1"]),
        ({"floor": "3"}, []),
        ({"unknown": None}, []),
    ],
)
async def test_all_labels_named_must_be_there(ledger: Ledger, labels: dict[str, str | None], names: list[str]) -> None:
    await laid_out(ledger)

    assert [each.name for each in await ledger.search(labels=labels)] == names


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BLUE", [("subnet", "Blue", "192.0.2.0/24")]),
        ("customers", [("network", "front", None)]),
        ("dmz", [("network", "front", None)]),
        ("Printer", [("reserved", "printers", "192.0.2.40-192.0.2.49")]),
        ("second", [("reserved", "printers", "192.0.2.40-192.0.2.49")]),
        ("database", [("preallocation", "vm/db", "192.0.2.60")]),
        ("window", [("holding", "vm/web-0", "192.0.2.10")]),
        ("host-7", [("holding", "vm/web-0", "192.0.2.10")]),
        ("router", [("holding", "vm/router", "10.0.0.16/28")]),
        ("0.16/2", [("holding", "vm/router", "10.0.0.16/28")]),
        ("prefixes", [("subnet", "", "10.0.0.0/24")]),
        ("nothing of the kind", []),
    ],
)
async def test_text_is_looked_for_in_names_owners_descriptions_and_addresses(
    ledger: Ledger, text: str, expected: list[tuple[str, str, str | None]]
) -> None:
    await laid_out(ledger)

    assert seen(await ledger.search(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.10", [("subnet", "Blue"), ("pool", "web"), ("holding", "vm/web-0")]),
        ("192.0.2.40/30", [("subnet", "Blue"), ("reserved", "printers")]),
        ("192.0.2.45-192.0.2.60", [("subnet", "Blue"), ("reserved", "printers"), ("preallocation", "vm/db")]),
        ("10.0.0.20", [("subnet", ""), ("holding", "vm/router")]),
        ("203.0.113.1", []),
        ("2001:db8::/32", []),
    ],
)
async def test_an_address_a_block_or_a_range_finds_what_lies_there(
    ledger: Ledger, text: str, expected: list[tuple[str, str]]
) -> None:
    await laid_out(ledger)

    assert [(str(each.kind), each.name) for each in await ledger.search(text)] == expected


async def test_a_kind_and_a_network_narrow_the_search(ledger: Ledger) -> None:
    await laid_out(ledger)

    assert [each.name for each in await ledger.search(kind="holding")] == ["vm/router", "vm/web-0", "vm/web-1"]
    assert [each.name for each in await ledger.search(kind="network", network="back")] == ["back"]
    assert [each.name for each in await ledger.search("vm/", kind="holding", network="front")] == [
        "vm/web-0", "vm/web-1",
    ]  # fmt: skip
    assert seen(await ledger.search("0.0", network="back")) == [
        ("subnet", "", "10.0.0.0/24"), ("holding", "vm/router", "10.0.0.16/28"),
    ]  # fmt: skip
    assert seen(await ledger.search("web", labels={"team": "shop"})) == [ALL_OF_SHOP[1], ALL_OF_SHOP[4]]


async def test_a_limit_is_respected_wherever_it_falls(ledger: Ledger) -> None:
    await laid_out(ledger)

    for most in range(1, len(ALL_OF_SHOP) + 2):
        assert seen(await ledger.search(labels={"team": "shop"}, limit=most)) == ALL_OF_SHOP[:most]


async def test_holdings_of_many_pages_are_all_looked_at(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "10.0.0.0/16")
    await ledger.add_pool("net", "10.0.0.0/16")
    await ledger.allocate_many("net", owners=[f"vm/{number}" for number in range(2100)], labels={"team": "shop"})

    by_label = await ledger.search(labels={"team": "shop"})
    by_place = await ledger.search("10.0.0.0/16", kind="holding")
    last = await ledger.search("VM/2099")

    assert [each.name for each in by_label] == [each.name for each in by_place]
    assert len({each.name for each in by_label}) == 2100
    assert [each.name for each in last] == ["vm/2099"]


async def test_a_preallocated_prefix_is_found_by_an_address_inside_it(ledger: Ledger) -> None:
    await laid_out(ledger)
    await ledger.preallocate("back", "vm/later", "10.0.0.32")

    assert ("preallocation", "vm/later", "10.0.0.32") in seen(await ledger.search("10.0.0.40"))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "text"),
        ({"labels": {}}, "text"),
        ({"text": ""}, "text"),
        ({"text": "  "}, "text"),
        ({"text": 7}, "text"),
        ({"text": "\0"}, "text"),
        ({"labels": "team"}, "labels"),
        ({"labels": {"team": 7}}, "labels"),
        ({"labels": {"": "x"}}, "labels"),
        ({"labels": {7: None}}, "labels"),
        ({"kind": "machine"}, "kind"),
        ({"kind": []}, "kind"),
        ({"text": "x", "network": "unknown"}, "network"),
        ({"text": "x", "network": 7}, "network"),
        ({"text": "x", "limit": 0}, "limit"),
        ({"text": "x", "limit": "many"}, "limit"),
    ],
)
async def test_a_wrong_question_names_the_field(ledger: Ledger, arguments: dict[str, object], field: str) -> None:
    with pytest.raises(tenure.TenureError) as told:
        await ledger.search(**arguments)  # type: ignore[arg-type]

    assert str(told.value.field).startswith(field)
