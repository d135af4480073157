"""Never two holders of one address, never two addresses of one claim: with real concurrency."""

import asyncio
import random
from collections import Counter

from tenure.kernel.holdings.holding_model import Outcome, Wish
from tenure.ports import Book
from tests.contract.crowd import Asked, Errand, send_crowd
from tests.contract.sites import Site, at

TASKS = 16
PROCESSES = 4


async def test_of_many_tasks_that_want_one_address_exactly_one_gets_it(site: Site[Book]) -> None:
    wishes = [site.wish("192.0.2.10", f"vm/{n}") for n in range(TASKS)]

    verdicts = [verdict for [verdict] in await asyncio.gather(*(site.grant(wish) for wish in wishes))]

    [row] = await site.rows()
    granted = [verdict.row for verdict in verdicts if verdict.outcome is Outcome.GRANTED]
    refused = [verdict for verdict in verdicts if verdict.outcome is not Outcome.GRANTED]
    assert granted == [row]
    assert all(verdict.outcome is Outcome.AGAIN or verdict.row == row for verdict in refused)
    assert Outcome.ALREADY not in {verdict.outcome for verdict in refused}


async def test_of_many_tasks_that_serve_one_claim_exactly_one_does(site: Site[Book]) -> None:
    wishes = [site.wish(f"192.0.2.{n}", "vm/a", slot="nic0") for n in range(TASKS)]

    verdicts = [verdict for [verdict] in await asyncio.gather(*(site.grant(wish) for wish in wishes))]

    [row] = await site.rows()
    assert [verdict.row for verdict in verdicts if verdict.outcome is Outcome.GRANTED] == [row]
    refused = [verdict for verdict in verdicts if verdict.outcome is not Outcome.GRANTED]
    assert all(verdict.outcome is Outcome.AGAIN or verdict.row == row for verdict in refused)
    assert Outcome.TAKEN not in {verdict.outcome for verdict in refused}


async def test_tasks_with_crossing_batches_share_the_addresses_out_without_loss(site: Site[Book]) -> None:
    base = at("10.0.0.0")
    places = [base + n for n in range(60)]

    async def take(worker: int) -> list[int]:
        order = random.Random(worker).sample(places, len(places))
        won: list[int] = []
        for start in range(0, len(order), 10):
            batch = [Wish(site.here.networks[0], p, p, f"vm/{worker}", str(p)) for p in order[start : start + 10]]
            verdicts = await site.grant(*batch)
            won += [w.first for w, v in zip(batch, verdicts, strict=True) if v.outcome is Outcome.GRANTED]
        return won

    shares = await asyncio.gather(*(take(worker) for worker in range(8)))

    assert sorted(place for share in shares for place in share) == places
    assert [(row.first, row.owner) for row in await site.rows()] == sorted(
        (place, f"vm/{worker}") for worker, share in enumerate(shares) for place in share
    )


async def test_a_claim_repeated_with_release_in_between_never_holds_twice(site: Site[Book]) -> None:
    async def churn(worker: int) -> None:
        for turn in range(12):
            [verdict] = await site.grant(site.wish(f"192.0.2.{(worker * 5 + turn) % 16}", "vm/a"))
            rows = await site.store.by_owner(["vm/a"])
            assert len(rows) <= 1
            if verdict.outcome is Outcome.GRANTED and verdict.row is not None:
                await site.release(site.ticket(verdict.row))

    await asyncio.gather(*(churn(worker) for worker in range(6)))

    assert await site.rows() == []


async def test_processes_that_want_the_same_addresses_and_claims_get_each_once(shared_site: Site[Book]) -> None:
    errands = [
        Errand(shared_site.provider.name, shared_site.url, shared_site.here, _crossing_batches(worker))
        for worker in range(PROCESSES)
    ]

    answers = await send_crowd(errands)

    granted = [asked for heard in answers for asked, outcome in heard if outcome is Outcome.GRANTED]
    addresses = Counter(first for first, _, _ in granted)
    claims = Counter((owner, slot) for _, owner, slot in granted)
    assert max(addresses.values()) == 1
    assert max(claims.values()) == 1
    rows = await shared_site.rows()
    assert {(row.first, row.owner, row.slot) for row in rows} == set(granted)
    assert {first for first in addresses if first < at("10.0.1.0")} == set(range(at("10.0.0.0"), at("10.0.0.0") + 120))
    assert {slot for owner, slot in claims if owner == "vm/common"} == {str(n) for n in range(60)}


def _crossing_batches(worker: int) -> list[list[Asked]]:
    """Mix wishes for common addresses (each of its own claim) and for common claims (each its own address)."""
    chance = random.Random(worker)
    addresses: list[Asked] = [(at("10.0.0.0") + n, f"vm/{worker}", str(n)) for n in range(120)]
    claims: list[Asked] = [(at("10.0.1.0") + 256 * worker + n, "vm/common", str(n)) for n in range(60)]
    mixed = chance.sample(addresses + claims, len(addresses) + len(claims))
    return [mixed[start : start + 12] for start in range(0, len(mixed), 12)]
