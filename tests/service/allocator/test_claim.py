"""Claims: stores keep their marks, which must never change; writing a key or an asker on a claim changes no more."""

from typing import Any

import pytest

from tenure.kernel.addressing.addresses import Family
from tenure.kernel.holdings.actor import BY, Asker
from tenure.kernel.holdings.holding_model import State
from tenure.kernel.names import Owner
from tenure.kernel.plan.plan_model import Policy
from tenure.service.allocator.claim import Claim, plain_claim
from tenure.service.apply.operations import read_claim

OPS = Asker("token/ops", "abc1")

EVERYTHING = Claim(
    "net1", Owner("vm/a"), "eth0", 7, "pool1", "subnet1", Policy.RANDOM, "force", State.PENDING, 1_500_000, "ticket-1",
    {"labels": {"a": "b"}}, "key1", b"mark", "z1", Family.IPV6, 64,
)  # fmt: skip
"""A claim in which no two fields are alike."""

EVERY_WORD: dict[str, Any] = {
    "slot": "n'1", "pool": 'p"2', "subnet": "ä", "policy": "random", "zone": "z'1", "labels": {"x": "y'"},
    "description": "d", "carrier": "c", "plan": "p", "request": "r", "pending": True, "lasts_s": 60,
}  # fmt: skip

MARKS: list[tuple[dict[str, Any], str]] = [
    ({}, "529340ebcbcd6db19f0d527884010dc5"),
    ({"slot": "eth0"}, "c55190f1ba1d40590b4abf00cb22979d"),
    ({"address": "192.0.2.7"}, "6d45ed436483dfec6ffcb410d86fbd7b"),
    ({"address": "2001:db8::7", "reserved": "force"}, "e38936c07542c42fc4f92ac2ab1160fa"),
    ({"address": "192.0.2.7", "reserved": "allow"}, "c00ccae4b7c7efc7efc71c102a3b1bcd"),
    ({"pool": "p1"}, "8a7c0dc8ea1c2a396e0467810acb4dba"),
    ({"subnet": "s1"}, "99319526a1a72b47ca5b557f055ecc2a"),
    ({"policy": "random"}, "1fc1938d7c3007d4f43333cb77480a7b"),
    ({"policy": "lowest"}, "f211f55ee619be87ad8cfe5e740b875e"),
    ({"policy": "hashed"}, "c14901ebe8775fc91a7855ab05d6e400"),
    ({"policy": "sticky"}, "772a64003cf01eb70363916a3c8ee9aa"),
    ({"labels": {"a": "b", "c": "d"}}, "9caeb77147a0ad0f410e4409045f8801"),
    ({"description": "two\nlines"}, "8c4b0a1aaf49c34b063385c1d01aa337"),
    ({"carrier": "vm-17"}, "c5e8ce0a9a991dae590a0f112510be51"),
    ({"plan": "deploy-7"}, "908e9bcb3fb49ea59bc9bde89b04a568"),
    ({"request": "ticket-1"}, "b24c49e28a7d425f961221c4630f9d05"),
    ({"pending": True}, "023157218e76b2e570c5a820334e489d"),
    ({"pending": True, "lasts_s": 1.5}, "a29d5b24f8ea8e8d713e66885a72a19e"),
    ({"zone": "z1"}, "6a4eb2a45c807326febb45c4aa6621b6"),
    ({"family": "ipv4"}, "f395e4f1b26193ba681e68d86224bd23"),
    ({"family": "ipv6", "zone": "z1"}, "5d092f814569a6177ad8a3799aaf8630"),
    ({"labels": {}}, "529340ebcbcd6db19f0d527884010dc5"),
    (EVERY_WORD, "74bf09c472ae127798f4970e55b11d04"),
]
"""What was said under a key, and the mark that stores have kept of it since claims have marks."""

PLAIN_MARKS = [
    ("net1", "vm/a", "529340ebcbcd6db19f0d527884010dc5"),
    ("n'ä", "realm:vm/a'b", "0297f4f7ee4b86ba7715980432058fab"),
    ("😀", "vm/\\x", "a74405634cc4601a6ddc8ee7fdcbbe44"),
]


@pytest.mark.parametrize(("words", "mark"), MARKS, ids=lambda case: "-".join(case) if isinstance(case, dict) else "")
def test_a_claim_under_a_key_has_the_mark_that_stores_have_kept(words: dict[str, Any], mark: str) -> None:
    assert read_claim("net1", "vm/a", key="k1", **words).body.hex() == mark


@pytest.mark.parametrize(("network", "owner", "mark"), PLAIN_MARKS)
def test_a_plain_claim_has_the_same_mark_whoever_asks(network: str, owner: str, mark: str) -> None:
    assert read_claim(network, owner, key="k1").body.hex() == mark
    assert plain_claim(network, owner, "k1", OPS).body.hex() == mark


def test_the_mark_does_not_depend_on_the_key() -> None:
    assert read_claim("net1", "vm/a", key="k2").body.hex() == PLAIN_MARKS[0][2]


def test_writing_on_a_claim_who_asks_changes_nothing_else() -> None:
    asked = EVERYTHING.asked_by(OPS)

    assert asked == EVERYTHING._replace(details={"labels": {"a": "b"}, BY: list(OPS)})


def test_writing_a_key_on_a_claim_changes_nothing_but_its_mark() -> None:
    keyed = EVERYTHING.under("key2")

    assert keyed == EVERYTHING._replace(key="key2", body=keyed.body)
    assert keyed.body != EVERYTHING.body
