"""Every write of an operator in a ledger fails: before, after, and coming late; nothing is lost or left (KD17)."""

from collections.abc import Iterator

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.ledger import open_ledgers
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, OWN_ADDRESS
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.ledger.faulty_ledger import LedgerFaults, Moment
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import (
    NETWORK,
    bound_pool,
    held,
    owner,
    planned_ledger,
    say_where,
    until_held,
)
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until

VERBS = {"take": "allocate", "moved": "modify_holding", "go": "release"}
FAULTS = {(verb, f"{story}-{moment.value}"): moment for story, verb in VERBS.items() for moment in Moment}
MOVED = {"moved-before": "10.9.0.27", "moved-after": "10.9.0.28", "moved-late": "10.9.0.29"}
GOING = [f"go-{moment.value}" for moment in Moment]
TAKING = [f"take-{moment.value}" for moment in Moment]


@pytest.fixture
def ledger(unserved: Namespace) -> Iterator[tenure.Ledger]:
    """Give a ledger of twenty addresses that holds what claims of another cluster had, which were moved here."""
    with planned_ledger("10.9.0.29") as url, tenure.open(url) as opened:
        say_where(unserved, url)
        for name, address in MOVED.items():
            labels = {"claim-uid": "former", "claim-created": "2020-01-01T00:00:00Z", "pool-uid": "former"}
            opened.allocate(NETWORK, owner=owner("east", unserved, name), address=address, labels=labels)
        yield opened


def test_kd17_every_write_in_the_ledger_fails_and_is_done_once(
    kube: KubeServer, unserved: Namespace, ledger: tenure.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that comes late does not end what the next claim of that name has (I9)."""
    place = unserved

    def meanwhile(verb: str, claim: str, address: str) -> None:
        if (verb, claim) == ("allocate", "leaves"):  # its grant is on its way when it is deleted
            place.delete(IP_CLAIM, claim)
        if (verb, claim) == ("allocate", "robbed") and not place.get(IP_ADDRESS, "by-hand"):
            place.address("by-hand", address, "nobody")

    faults = LedgerFaults({**FAULTS, ("allocate", "leaves"): Moment.LATE}, meanwhile)
    monkeypatch.setattr(open_ledgers, "_open", faults.open)
    with operator_in(kube, place.name, webhooks=False, orphan_grace_s=1.0):
        bound_pool(place, "east")
        for name in (*TAKING, *GOING, "leaves", "robbed"):
            place.claim(name)
        for name, address in MOVED.items():
            place.claim(name, annotations={OWN_ADDRESS: address})
        had = {name: place.ip(name) for name in (*TAKING, *GOING, *MOVED)}
        assert had.items() >= MOVED.items()
        assert place.ip("robbed") != (place.get(IP_ADDRESS, "by-hand") or {})["spec"]["address"]
        for name in GOING:
            place.delete(IP_CLAIM, name)
        for name in GOING:
            place.gone(IP_CLAIM, name)
        place.claim("go-late")
        again = place.ip("go-late")
        until(lambda: {each.partition(":")[0] for each in faults.arrived} == {
            "take-late", "moved-late", "go-late", "leaves"
        })  # fmt: skip
        place.gone(IP_CLAIM, "leaves")
        kept = {name: had[name] for name in (*TAKING, *MOVED)} | {"robbed": place.ip("robbed"), "go-late": again}
        until_held(ledger, {owner("east", place, name): address for name, address in kept.items()})

    assert faults.wanted == {}
    assert len(set(kept.values())) == len(kept)
    for name in GOING:
        ends = [each.ended_by for each in ledger.history(had[name]) if str(each.owner) == owner("east", place, name)]
        assert ends[0] == "claim deleted"
        assert ends[1:] in ([], [None])  # what the claim has that was made again
    assert {str(each.owner) for each in ledger.holdings(NETWORK)} == held(ledger).keys()
