"""Every write of an operator in a ledger fails: before, after, and coming late; nothing is lost or left (KD17)."""

from collections.abc import Iterator

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.ledger import open_ledgers
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import DELETE_FOR_MOVE, IP_ADDRESS, IP_CLAIM, OWN_ADDRESS
from tenure.integrations.kubernetes.metal3.objects.ledger_owner import MOVED_FROM
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
MARKED = [f"marked-{moment.value}" for moment in Moment]
NOTES = {
    (note, claim): moment for note in ("note_moved", "note_stays") for claim, moment in zip(MARKED, Moment, strict=True)
}
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


def mark(place: Namespace, name: str, value: str | None) -> None:
    """Mark a claim as a move does before it deletes it, or take the mark off."""
    place.patch(IP_CLAIM, name, {"metadata": {"annotations": {DELETE_FOR_MOVE: value}}})


def noted(place: Namespace, ledger: tenure.Ledger) -> list[str]:
    """Return the marked claims whose holdings say that they are on their way."""
    found = {str(each.owner): each.labels for each in ledger.holdings(NETWORK)}
    return [name for name in MARKED if MOVED_FROM in found[owner("east", place, name)]]


def test_kd17_every_note_of_a_move_in_the_ledger_fails_and_is_right_in_the_end(
    kube: KubeServer, unserved: Namespace, ledger: tenure.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the move was killed, so that the claim stays, and the word that it goes arrives after that."""
    place, faults = unserved, LedgerFaults(dict(NOTES))
    monkeypatch.setattr(open_ledgers, "_open", faults.open)
    with operator_in(kube, place.name, webhooks=False, orphan_grace_s=1.0):
        bound_pool(place, "east")
        for name in MARKED:
            place.claim(name)
        had = {owner("east", place, name): place.ip(name) for name in MARKED}
        for name in MARKED:
            mark(place, name, "")
        until(lambda: noted(place, ledger) == MARKED)
        for name in MARKED:
            mark(place, name, None)
        until(lambda: faults.arrived == ["marked-late"] * 2)
        until(lambda: noted(place, ledger) == [])

    assert faults.wanted == {}
    assert held(ledger).items() >= had.items()
