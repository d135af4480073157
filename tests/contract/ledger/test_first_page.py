"""The library's first page, exactly as DESIGN.md prints it, on every store of the ledger tier."""

import re

import pytest

import tenure

pytestmark = pytest.mark.every_store


def test_the_first_page_does_what_it_says(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = tenure.open(place)
    ledger.add_network("net1")
    ledger.add_subnet("net1", "192.0.2.0/24", gateway="192.0.2.1", name="subnet1")
    ledger.add_pool("net1", "192.0.2.10-192.0.2.100", name="pool1")
    ledger.reserve("net1", "192.0.2.20-192.0.2.50")

    web0 = ledger.allocate("net1", owner="instance/web-0")
    db0 = ledger.allocate("net1", owner="instance/db-0", address="192.0.2.5")
    six = ledger.allocate("net1", owner="instance/web-1", policy="random", labels={"team": "shop"})
    many = ledger.allocate_many("net1", owners=[f"pod/{n}" for n in range(40)])
    print(web0.address, web0.prefix, web0.gateway, web0.owner, web0.state)

    ledger.release("net1", web0.address, owner="instance/web-0")
    ledger.release_owner("instance/db-0")
    for change in ledger.changes(after=0):
        print(change.seq, change.verb, change.address, change.owner)
    print(ledger.why("192.0.2.5"))
    breaches = ledger.verify()
    ledger.close()

    pickable = [f"192.0.2.{n}" for n in [*range(11, 20), *range(51, 101)] if f"192.0.2.{n}" != six.address]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "192.0.2.10 24 192.0.2.1 instance/web-0 held"
    assert (db0.address, db0.owner) == ("192.0.2.5", "instance/db-0")
    assert six.address in {f"192.0.2.{n}" for n in [*range(11, 20), *range(51, 101)]}
    assert six.labels == {"team": "shop"}
    assert [(one.address, one.owner) for one in many] == [(a, f"pod/{n}") for n, a in enumerate(pickable[:40])]
    assert printed[1:8] == [
        "1 network.add None None",
        "2 subnet.add None None",
        "3 pool.add None None",
        "4 reserve None None",
        "5 grant 192.0.2.10 instance/web-0",
        "6 grant 192.0.2.5 instance/db-0",
        f"7 grant {six.address} instance/web-1",
    ]
    assert printed[8:48] == [f"{8 + n} grant {one.address} pod/{n}" for n, one in enumerate(many)]
    assert printed[48:50] == ["48 release 192.0.2.10 instance/web-0", "49 release 192.0.2.5 instance/db-0"]
    assert printed[50:] == ["192.0.2.5: free in network net1, in no pool: only by naming it"]
    assert breaches == []


async def test_the_first_page_has_an_asyncio_twin(place: str) -> None:
    async with await tenure.open_async(place) as ledger:
        await ledger.add_network("net1", space="site")
        await ledger.add_subnet("net1", "192.0.2.0/24", gateway="192.0.2.1")
        await ledger.add_pool("net1", "192.0.2.10-192.0.2.100")
        web0 = await ledger.allocate("net1", owner="instance/web-0", request="req-7")
        why = str(await ledger.why(web0.address))
        kept_back = str(await ledger.why("192.0.2.1"))

    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    assert re.fullmatch(rf"192\.0\.2\.10: held by instance/web-0 in network net1 since {moment}, by request req-7", why)
    assert kept_back == "192.0.2.1: not free in network net1: kept back as the gateway of 192.0.2.0/24"


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://x", "sqlite:tenure.db", "sqlite://", "sqlite:///"])
def test_a_url_that_names_no_store_is_refused_with_a_reason(url: str) -> None:
    with pytest.raises(tenure.Invalid) as told:
        tenure.open(url)

    assert told.value.field == "url"
