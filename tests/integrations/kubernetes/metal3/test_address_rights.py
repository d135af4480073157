"""Whose address an object is, and which claim comes first to an address: the two rules, row by row."""

from itertools import permutations

import pytest

from tenure.integrations.kubernetes.metal3.address_rights import (
    ReadClaims,
    Title,
    holders_before,
    owner_of,
    title_of,
    was_told,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, OWN_ADDRESS, PICKED_FOR
from tenure.integrations.kubernetes.metal3.pool_book import CLAIM, LOST, NAME, OBJECT, PICKED, RESERVED, PoolBook
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tenure.kernel.addressing.addresses import parse_address

X = parse_address("10.0.0.1")
NAMED = "10.0.0.1"


def claim(name: str, uid: str = "", pool: str = "p", created: str = "2026", given: str = "", **marks: str) -> Object:
    annotations = {mark: value for mark, value in marks.items() if value}
    return {
        "apiVersion": IP_CLAIM.api_version, "kind": IP_CLAIM.kind, "spec": {"pool": {"name": pool}},
        "metadata": {
            "namespace": "m3", "name": name, "uid": uid or name, "creationTimestamp": created,
            "annotations": annotations,
        },
        "status": {"address": {"name": given}} if given else {},
    }  # fmt: skip


def address(*owners: tuple[str, str], names: str = "c", is_going: bool = False) -> Object:
    references = [{"kind": "IPClaim", "name": name, "uid": uid} for name, uid in owners]
    metadata = {"namespace": "m3", "name": "a", "uid": "a", "ownerReferences": references}
    return {
        "apiVersion": IP_ADDRESS.api_version, "kind": IP_ADDRESS.kind,
        "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z" if is_going else None},
        "spec": {"address": NAMED, "pool": {"name": "p"}, "claim": {"name": names}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("object", "claims", "owner"),
    [
        (address(("c", "c1")), [claim("c", "c1")], "c1"),
        (address(("c", "c1"), is_going=True), [claim("c", "c1")], "c1"),
        (address(("c", "c1")), [claim("c", "c1", pool="q")], "c1"),
        (address(("d", "d1")), [claim("c", "c1"), claim("d", "d1")], "d1"),
        (address(("d", "d1"), ("c", "c1")), [claim("c", "c1"), claim("d", "d1")], "c1"),
        (address(("e", "e1"), ("d", "d1")), [claim("e", "e1"), claim("d", "d1")], "e1"),
        (address(), [claim("c", "c1")], "c1"),
        (address(("c", "gone")), [claim("c", "c2")], "c2"),
        (address(("c", "gone"), is_going=True), [claim("c", "c2")], ""),
        (address(is_going=True), [claim("c", "c2")], ""),
        (address(("c", "gone")), [claim("c", "c2", pool="q")], ""),
        (address(("c", "gone")), [claim("d", "d1")], ""),
        (address(names=""), [claim("d", "d1")], ""),
    ],
)
def test_kd8_an_object_is_one_claims_or_nobodys(object: Object, claims: list[Object], owner: str) -> None:
    found = owner_of(object, ReadClaims(claims))

    assert (uid_of(found) if found else "") == owner


def book(**holders: str) -> PoolBook:
    """Return a book in which claims hold the address, each by a sort."""
    made = PoolBook()
    for uid, sort in holders.items():
        made.hold((sort, uid), X)
    return made


@pytest.mark.parametrize(
    ("object", "sort", "title"),
    [
        (claim("c"), PICKED, Title.PICKED),
        (claim("c", **{OWN_ADDRESS: NAMED, PICKED_FOR: "c"}), CLAIM, Title.PICKED),
        (claim("c", **{OWN_ADDRESS: NAMED, PICKED_FOR: "another"}), CLAIM, Title.BROUGHT),
        (claim("c", **{OWN_ADDRESS: "10.0.0.9"}), PICKED, Title.PICKED),
        (claim("c", given="a", **{OWN_ADDRESS: NAMED, PICKED_FOR: "c"}), CLAIM, Title.GIVEN),
        (claim("c", given="a"), LOST, Title.GIVEN),
        (claim("c", given="a"), PICKED, Title.PICKED),
        (claim("c", given="a", **{OWN_ADDRESS: NAMED}), RESERVED, Title.RESERVED),
    ],
)
def test_a_claim_comes_to_an_address_by_a_title(object: Object, sort: str, title: Title) -> None:
    assert title_of(object, X, book(c=sort)) is title


def test_of_any_two_claims_exactly_one_yields() -> None:
    """So claims never wait for each other; objects and names come before all of them."""
    brought = {OWN_ADDRESS: NAMED}
    claims = [
        claim("reserved", created="2029"), claim("given", created="2028", given="a", **brought),
        claim("first", created="2026", **brought), claim("second", created="2027", **brought),
        claim("picked", created="2025"),
    ]  # fmt: skip
    sorts = {"reserved": RESERVED, "given": LOST, "first": CLAIM, "second": CLAIM, "picked": PICKED}
    full, known = book(**sorts), ReadClaims(claims)
    for one, other in permutations(claims, 2):
        pair = book(**{uid_of(each): sorts[uid_of(each)] for each in (one, other)})
        assert bool(holders_before(one, X, pair, known)) != bool(holders_before(other, X, pair, known))

    order = sorted(claims, key=lambda each: len(holders_before(each, X, full, known)))
    assert [uid_of(each) for each in order] == ["reserved", "given", "first", "second", "picked"]
    for holder in ((OBJECT, "a"), (NAME, "n"), (RESERVED, "of a claim that was never seen")):
        full.hold(holder, X)
        assert holders_before(order[0], X, full, known) == [holder]
        full.drop(holder)


@pytest.mark.parametrize(
    ("object", "told"),
    [
        (claim("c"), False),
        (claim("c", given="a"), True),
        (claim("c", given="another"), False),
        (claim("c", **{OWN_ADDRESS: NAMED, PICKED_FOR: "c"}), False),
        (claim("c", **{OWN_ADDRESS: NAMED, PICKED_FOR: "elsewhere"}), True),
        (claim("c", given="another", **{OWN_ADDRESS: NAMED, PICKED_FOR: "c"}), True),
    ],
)
def test_what_a_user_may_know_of_is_never_exchanged(object: Object, told: bool) -> None:
    assert was_told(object, address(("c", "c"))) is told
