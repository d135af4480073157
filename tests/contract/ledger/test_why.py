"""Why an address is what it is: who, since when, by which request; or what keeps it away."""

import re

import tenure
from tests.contract.ledger.plan import small_plan

Ledger = tenure.AsyncLedger
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


async def finding(ledger: Ledger, address: str, network: str | None = None) -> tenure.Finding:
    [found] = (await ledger.why(address, network=network)).findings
    return found


async def test_a_held_address_tells_who_since_when_and_by_which_request(ledger: Ledger) -> None:
    await small_plan(ledger)
    given = await ledger.allocate(
        "net", owner="vm/a", slot="nic0", request="r1", labels={"team": "shop"}, description="front"
    )

    found = await finding(ledger, given.address)

    assert (found.status, found.holding, found.owner, found.since) == ("held", given, "vm/a", given.since)
    assert (found.until, found.request, found.labels, found.description) == (None, "r1", {"team": "shop"}, "front")
    assert re.fullmatch(rf"held by vm/a \(nic0\) in network net since {MOMENT}, by request r1", found.text)


async def test_an_address_inside_a_held_prefix_tells_the_prefix(ledger: Ledger) -> None:
    await ledger.add_network("net")
    await ledger.add_subnet("net", "10.0.0.0/24", unit=28, keep_back=[])
    await ledger.allocate("net", owner="vm/a", address="10.0.0.16")

    assert "in network net, within 10.0.0.16/28 since" in (await finding(ledger, "10.0.0.20")).text


async def test_a_pending_address_tells_until_when(ledger: Ledger) -> None:
    await small_plan(ledger)
    timed = await ledger.hold("net", owner="vm/a", lasts_s=3600, request="r1")
    open_ended = await ledger.hold("net", owner="vm/b")

    found = await finding(ledger, timed.address)
    other = await finding(ledger, open_ended.address)

    assert (found.status, found.until) == ("pending", timed.until)
    text = rf"pending for vm/a in network net since {MOMENT} until {MOMENT}, by request r1"
    assert re.fullmatch(text, found.text)
    assert other.until is None
    assert "without a deadline" in other.text


async def test_a_draining_address_is_still_its_owners(ledger: Ledger) -> None:
    await small_plan(ledger)
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.modify_holding("net", given.address, owner="vm/a", state="draining")

    assert (await finding(ledger, given.address)).text.startswith("draining by vm/a in network net since")


async def test_a_cooling_address_tells_until_when_and_who_had_it(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.modify_pool("net", "pool", cooling_s=3600)
    given = await ledger.allocate("net", owner="vm/a")
    await ledger.release("net", given.address, owner="vm/a")

    found = await finding(ledger, given.address)

    assert (found.status, found.owner, found.since) == ("cooling", "vm/a", given.since)
    assert found.until is not None
    assert found.until > given.since
    assert re.fullmatch(rf"cooling until {MOMENT} in network net; vm/a had it since {MOMENT}", found.text)


async def test_a_reserved_address_tells_on_whose_word(ledger: Ledger) -> None:
    await small_plan(ledger, network="a", space="site")
    await small_plan(ledger, network="b", space="site")
    await ledger.reserve(
        "a", "192.0.2.30-192.0.2.39", reason="printers", labels={"team": "office"}, description="floor 2", request="T-7"
    )

    here, there = (await ledger.why("192.0.2.35")).findings

    assert (here.network, here.status, here.reason, here.request) == ("a", "reserved", "printers", "T-7")
    assert (here.labels, here.description) == ({"team": "office"}, "floor 2")
    assert here.text == "not free in network a: reserved in network 'a': printers, by request T-7"
    assert there.text == "not free in network b: reserved in network 'a': printers, by request T-7"


async def test_a_preallocated_address_tells_for_whom_it_waits(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.preallocate("net", "vm/a", "192.0.2.12", slot="nic0", description="soon", request="T-8")

    found = await finding(ledger, "192.0.2.12")

    assert (found.status, found.owner, found.request, found.description) == ("pre-allocated", "vm/a", "T-8", "soon")
    assert found.text == "not free in network net: pre-allocated to vm/a (nic0), by request T-8"


async def test_what_a_subnet_keeps_back_is_told_as_what(ledger: Ledger) -> None:
    await small_plan(ledger)

    found = [await finding(ledger, address) for address in ("192.0.2.0", "192.0.2.1", "192.0.2.255")]

    assert [(each.status, each.reason) for each in found] == [
        ("kept back", "network"), ("kept back", "gateway"), ("kept back", "broadcast"),
    ]  # fmt: skip


async def test_retired_free_outside_pools_and_outside_everything_are_told_apart(ledger: Ledger) -> None:
    await small_plan(ledger)
    await ledger.add_subnet("net", "10.0.0.0/24", name="other")
    await ledger.retire_subnet("net", "other")

    found = [await finding(ledger, address) for address in ("192.0.2.10", "192.0.2.50", "10.0.0.5")]
    nowhere = await ledger.why("203.0.113.1")

    assert [each.status for each in found] == ["free", "outside pools", "retired"]
    assert (nowhere.findings, str(nowhere)) == ((), "203.0.113.1: in no subnet of any network")
