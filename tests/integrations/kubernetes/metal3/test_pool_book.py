"""What is free in a pool, against a plain model of it."""

import random
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.in_cluster_spec import read_prefix_pool
from tenure.integrations.kubernetes.metal3.objects.pool_spec import read_pool_spec
from tenure.integrations.kubernetes.metal3.pool_book import (
    CLAIM,
    OBJECT,
    RESERVED,
    RESTS_S,
    Holder,
    PoolBook,
    cooling_holder,
)
from tenure.kernel.addressing.addresses import Family, format_address, parse_address


def book_of(spec: dict[str, Any], clock: list[float] | None = None) -> PoolBook:
    now = clock or [0.0]
    book = PoolBook(random.Random(7), lambda: now[0])
    reading = read_pool_spec({"namePrefix": "p", **spec})
    assert reading.faults == []
    book.lay(reading)
    return book


def picked(book: PoolBook, count: int) -> list[str]:
    """Pick addresses until there is none."""
    found = []
    for number in range(count):
        position = book.pick()
        if position is None:
            break
        book.hold((CLAIM, f"uid-{number}"), position)
        found.append(format_address(position))
    return found


RANGE = {"start": "10.0.0.1", "end": "10.0.0.4"}


def test_entries_are_used_in_order_and_overlaps_belong_to_the_first() -> None:
    entries = [{"start": "10.0.0.3", "end": "10.0.0.4"}, {"start": "10.0.0.1", "end": "10.0.0.5"}]
    assert picked(book_of({"pools": entries}), 9) == ["10.0.0.3", "10.0.0.4", "10.0.0.1", "10.0.0.2", "10.0.0.5"]


def test_gateways_pre_allocations_and_drained_addresses_are_not_picked() -> None:
    """A gateway counts in all entries, also that of another entry (KD9)."""
    entries = [RANGE, {"start": "10.0.0.5", "end": "10.0.0.6", "gateway": "10.0.0.2"}]
    spec = {"pools": entries, "preAllocations": {"x": "10.0.0.3"}, "tenure": {"drain": ["10.0.0.4-10.0.0.5"]}}
    book = book_of(spec)
    assert picked(book, 9) == ["10.0.0.1", "10.0.0.6"]
    assert (book.spec.size, book.kept_back, book.free, book.held) == (6, 4, 0, 2)


def test_a_holder_that_moves_frees_what_it_had() -> None:
    book = book_of({"pools": [RANGE]})
    first, second = parse_address("10.0.0.1"), parse_address("10.0.0.2")
    book.hold((OBJECT, "a"), first)
    book.hold((OBJECT, "a"), second)
    assert (book.holders_at(first), book.holders_at(second), book.free) == (frozenset(), frozenset({(OBJECT, "a")}), 3)


def test_an_address_is_free_when_its_last_holder_is_gone() -> None:
    book = book_of({"pools": [RANGE]})
    place = parse_address("10.0.0.1")
    for holder in ((OBJECT, "a"), (RESERVED, "u"), (CLAIM, "u")):
        book.hold(holder, place)
    assert book.others_at(place, "u") == [(OBJECT, "a")]
    assert book.others_at(place, "u", [(OBJECT, "a")]) == []
    for holder in ((OBJECT, "a"), (RESERVED, "u")):
        book.drop(holder)
        assert book.free == 3
    book.drop((CLAIM, "u"))
    assert book.free == 4


def test_ks6_random_gives_a_released_address_again_only_when_nothing_else_is_free() -> None:
    clock = [0.0]
    book = book_of({"pools": [RANGE], "allocationStrategy": "random"}, clock)
    released = parse_address("10.0.0.2")
    book.hold((OBJECT, "a"), released)
    book.drop((OBJECT, "a"))
    assert book.free == 4
    taken = picked(book, 4)
    assert taken[3] == "10.0.0.2"
    assert len(set(taken)) == 4

    again = book_of({"pools": [RANGE], "allocationStrategy": "random"}, clock)
    again.hold((OBJECT, "a"), released)
    again.drop((OBJECT, "a"))
    clock[0] += RESTS_S + 1
    firsts = set()
    for number in range(50):
        position = again.pick()
        assert position is not None
        again.hold((CLAIM, str(number)), position)
        firsts.add(position)
        again.drop((CLAIM, str(number)))
    assert released in firsts


def test_a_pool_of_both_families_counts_each() -> None:
    book = book_of({"pools": [RANGE, {"start": "fd00::1", "end": "fd00::ff"}]})
    book.hold((OBJECT, "a"), parse_address("fd00::1"))
    book.hold((OBJECT, "b"), parse_address("10.0.0.1"))
    assert (book.free_of(Family.IPV4), book.free_of(Family.IPV6)) == (3, 254)
    assert (book.spec.size_of(Family.IPV4), book.spec.size_of(Family.IPV6)) == (4, 255)


@pytest.mark.parametrize("is_laid_first", [True, False])
def test_two_objects_in_one_prefix_are_doubled_whether_the_pool_is_seen_before_them_or_not(is_laid_first: bool) -> None:
    """Which address lies in which prefix is known with the pool."""
    book, reading = PoolBook(), read_prefix_pool({"prefixes": ["fd00::/62"]})
    if is_laid_first:
        book.lay(reading)
    for name, address in (("a", "fd00::"), ("b", "fd00::1"), ("c", "fd00:0:0:1::")):
        book.hold((OBJECT, name), parse_address(address))
    book.lay(reading)
    assert book.doubled == {parse_address("fd00::")}
    book.drop((OBJECT, "b"))
    assert book.doubled == set()


@pytest.mark.parametrize("strategy", ["sequential", "random"])
@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_the_book_agrees_with_a_list_of_holders(strategy: str, seed: int) -> None:
    """Also over changes of the pool: laid anew, the book is what it would have been from the start."""
    chance = random.Random(seed)
    specs: list[dict[str, Any]] = [
        {"pools": [{"start": "10.0.0.1", "end": f"10.0.0.{last}"}], "gateway": f"10.0.0.{gate}"}
        for last, gate in ((9, 3), (20, 3), (14, 9), (20, 30))
    ]
    book = book_of({**specs[0], "allocationStrategy": strategy})
    spec = book.spec
    where: dict[Holder, int] = {}
    for _ in range(400):
        holder = (chance.choice([OBJECT, CLAIM, RESERVED]), str(chance.randrange(12)))
        match chance.randrange(4):
            case 0:
                book.drop(holder)
                where.pop(holder, None)
            case 1:
                reading = read_pool_spec({"namePrefix": "p", "allocationStrategy": strategy, **chance.choice(specs)})
                book.lay(reading)
                spec = reading.spec
            case 2:
                place = parse_address(f"10.0.0.{chance.randrange(1, 25)}")
                book.hold(holder, place)
                where[holder] = place
            case _:
                position = book.pick()
                if position is not None:
                    book.hold(holder, position)
                    where[holder] = position
        on_line = {place for runs in spec.runs() for each in runs for place in range(each.first, each.last + 1)}
        free = on_line - set(where.values())
        assert book.free == len(free) == book.free_of(Family.IPV4)
        assert book.held == len(set(where.values()))
        inside = {place for place in set(where.values()) if spec.entry_at(place) is not None}
        assert book.used == len(inside) == spec.size - book.free - book.kept_back
        objects = {place for (sort, _), place in where.items() if sort == OBJECT}
        assert book.outside == {place for place in objects if spec.entry_at(place) is None}
        pick = book.pick()
        assert pick in free if free else pick is None
        if strategy == "sequential" and free:
            assert pick == min(free)


def test_6_8_what_only_cools_off_is_kept_and_what_is_held_besides_is_used() -> None:
    book = book_of({"pools": [RANGE], "preAllocations": {"x": "10.0.0.4"}})
    first, fixed = parse_address("10.0.0.1"), parse_address("10.0.0.4")
    cools = [cooling_holder(position, ClaimId("IPClaim", "m3", "x")) for position in (first, fixed)]
    book.hold(cools[0], first)
    book.hold(cools[1], fixed)
    assert (book.free, book.used, book.kept_back, book.cooling_of(Family.IPV4)) == (2, 0, 2, 2)
    assert picked(book, 9) == ["10.0.0.2", "10.0.0.3"]

    book.hold((OBJECT, "x"), fixed)
    assert (book.used, book.kept_back, book.cooling_of(Family.IPV4)) == (3, 1, 1)
    book.lay(read_pool_spec({"namePrefix": "p", "pools": [RANGE]}))
    assert (book.used, book.kept_back, book.cooling_of(Family.IPV4)) == (3, 1, 1)
    book.drop(cools[0])
    book.drop((OBJECT, "x"))
    assert (book.free, book.used, book.kept_back) == (1, 2, 1)
    book.drop(cools[1])
    assert (book.free, book.kept_back, book.cooling_of(Family.IPV4)) == (2, 0, 0)
