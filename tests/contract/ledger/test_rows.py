"""A transaction's verbs on rows: insert, find, rewrite, remove, remember."""

import pytest

from tenure.kernel.errors import AlreadyExists
from tenure.kernel.holdings.holding_model import Outcome, Row, State, Verdict
from tenure.ports import LedgerStore, Transaction
from tests.contract.sites import Site, at

pytestmark = pytest.mark.every_store


async def _insert(site: Site[LedgerStore], place: str, owner: str) -> Verdict:
    async def work(tx: Transaction) -> Verdict:
        [verdict] = await tx.insert(site.here.space, [site.wish(place, owner)])
        return verdict

    return await site.store.transact(work)


NEIGHBOURS = [
    ("192.0.2.16/28", "192.0.2.16"),
    ("192.0.2.16/28", "192.0.2.20"),
    ("192.0.2.16/28", "192.0.2.31"),
    ("192.0.2.16/28", "192.0.2.24/29"),
    ("192.0.2.16", "192.0.2.16/28"),
    ("192.0.2.20", "192.0.2.16/28"),
    ("192.0.2.31", "192.0.2.16/28"),
    ("192.0.2.24/29", "192.0.2.0/24"),
    ("2001:db8::/64", "2001:db8::1"),
    ("2001:db8::1", "2001:db8::/48"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("held", "wanted"), NEIGHBOURS, ids=[f"{held} then {wanted}" for held, wanted in NEIGHBOURS])
async def test_a_unit_of_another_size_that_lies_over_a_holding_is_taken(
    site: Site[LedgerStore], held: str, wanted: str
) -> None:
    holder = (await _insert(site, held, "vm/a")).row

    verdict = await _insert(site, wanted, "vm/b")

    assert (verdict.outcome, verdict.row) == (Outcome.TAKEN, holder)
    assert await site.rows() == [holder]


@pytest.mark.sampled
@pytest.mark.parametrize("wanted", ["192.0.2.15", "192.0.2.32", "192.0.2.32/28", "192.0.2.0/28", "2001:db8::/64"])
async def test_a_unit_of_another_size_beside_a_holding_is_granted(site: Site[LedgerStore], wanted: str) -> None:
    await _insert(site, "192.0.2.16/28", "vm/a")

    verdict = await _insert(site, wanted, "vm/b")

    assert verdict.outcome is Outcome.GRANTED
    assert len(await site.rows()) == 2


async def test_a_wide_unit_over_many_holdings_is_told_one_of_them(site: Site[LedgerStore]) -> None:
    rows = [(await _insert(site, f"192.0.2.{number}", f"vm/{number}")).row for number in (3, 7, 200)]

    verdict = await _insert(site, "192.0.2.0/24", "vm/b")

    assert verdict.outcome is Outcome.TAKEN
    assert verdict.row in rows


async def test_rows_are_found_by_address_and_by_claim(site: Site[LedgerStore]) -> None:
    a = await site.held_by("192.0.2.10", "vm/a", slot="nic0")
    b = await site.held_by("192.0.2.11", "vm/b", state=State.PENDING)
    await site.held_by("192.0.2.12", "vm/c", state=State.DRAINING)
    network = site.here.networks[0]
    claims = [(network, "vm/c", ""), (network, "vm/b", ""), (network, "vm/a", ""), (network, "vm/a", "nic0")]

    async def work(tx: Transaction) -> tuple[list[Row | None], list[Row | None]]:
        places = [at("192.0.2.11"), at("192.0.2.99"), at("192.0.2.10")]
        return list(await tx.rows_at(site.here.space, places)), list(await tx.rows_for(claims))

    by_address, by_claim = await site.store.transact(work)

    assert by_address == [b, None, a]
    assert by_claim == [None, b, None, a]


async def test_every_verb_that_is_asked_for_nothing_does_nothing(site: Site[LedgerStore]) -> None:
    row = await site.held_by("192.0.2.10")

    async def work(tx: Transaction) -> None:
        assert list(await tx.insert(site.here.space, [])) == []
        assert list(await tx.rows_at(site.here.space, [])) == []
        assert list(await tx.rows_for([])) == []
        assert list(await tx.rows_of([])) == []
        assert list(await tx.configurations([])) == []
        await tx.rewrite([])
        await tx.remove([])
        await tx.remember([])
        await tx.put_networks(site.here.space, [])
        await tx.remove_networks([])
        assert await tx.log([]) == 1

    await site.store.transact(work)

    assert await site.grant() == []
    assert await site.release() == []
    assert await site.rows() == [row]
    assert len(await site.news()) == 1


async def test_a_row_is_rewritten_wholly_and_found_anew(site: Site[LedgerStore]) -> None:
    row = await site.held_by("192.0.2.10", "vm/a", slot="nic0")
    new = row._replace(
        owner="vm/b", slot="nic9", state=State.PENDING, generation=row.generation + 1000, since_us=5, until_us=99,
        request="req-2", details={"labels": {"x": "y"}},
    )  # fmt: skip

    async def work(tx: Transaction) -> list[Row | None]:
        [found] = await tx.rows_at(site.here.space, [row.first])
        assert found == row
        await tx.rewrite([new])
        network = site.here.networks[0]
        return list(await tx.rows_for([(network, "vm/a", "nic0"), (network, "vm/b", "nic9")]))

    claims = await site.store.transact(work)

    assert claims == [None, new]
    assert await site.rows() == [new]
    assert list(await site.store.by_owner(["vm/a", "vm/b"])) == [new]


async def test_a_parting_row_can_come_back_unless_its_claim_is_held_again(site: Site[LedgerStore]) -> None:
    parting = await site.held_by("192.0.2.10", "vm/a", state=State.DRAINING)
    back = parting._replace(state=State.HELD)

    await site.store.transact(lambda tx: tx.rewrite([back]))
    await site.store.transact(lambda tx: tx.rewrite([parting]))
    successor = await site.held_by("192.0.2.11", "vm/a")
    with pytest.raises(AlreadyExists):
        await site.store.transact(lambda tx: tx.rewrite([back]))

    assert await site.rows() == [parting, successor]


async def test_an_owners_former_address_is_remembered_by_network_and_slot(site: Site[LedgerStore]) -> None:
    network, other = site.here.networks
    first = await site.held_by("192.0.2.10", "vm/a", slot="nic0")
    second = await site.held_by("2001:db8::7", "vm/a", slot="nic1")
    await site.store.transact(lambda tx: tx.remember([first, second]))

    async def look(tx: Transaction) -> list[int | None]:
        asked = [(network, "nic0"), (network, "nic1"), (network, ""), (other, "nic0")]
        return [await tx.former(number, "vm/a", slot) for number, slot in asked]

    assert await site.store.transact(look) == [first.first, second.first, None, None]


async def test_the_latest_address_is_the_one_remembered_and_a_release_can_note_it(site: Site[LedgerStore]) -> None:
    network = site.here.networks[0]
    seen = []
    for place, remember in (("192.0.2.10", True), ("192.0.2.11", False), ("192.0.2.12", True)):
        row = await site.held_by(place, "vm/a")
        await site.release(site.ticket(row, remember=remember))
        seen.append(await site.store.transact(lambda tx: tx.former(network, "vm/a", "")))

    assert seen == [at("192.0.2.10"), at("192.0.2.10"), at("192.0.2.12")]


async def test_a_removed_network_is_forgotten_with_its_owners(site: Site[LedgerStore]) -> None:
    network = site.here.networks[0]
    row = await site.held_by("192.0.2.10", "vm/a")
    await site.release(site.ticket(row, remember=True))

    await site.store.transact(lambda tx: tx.remove_networks([network]))

    assert await site.store.transact(lambda tx: tx.former(network, "vm/a", "")) is None
