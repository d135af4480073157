"""Whose a holding in a ledger is."""

import pytest

from tenure.integrations.kubernetes.metal3.ledger_state import LedgerRow, is_of, is_written_on
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import OWN_ADDRESS, PICKED_FOR
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import parse_address

HERE, MOVED_HERE = {OWN_ADDRESS: "10.9.0.10", PICKED_FOR: "mine"}, {OWN_ADDRESS: "10.9.0.10", PICKED_FOR: "former"}


def row(claim_uid: str, created: str = "2026-01-02") -> LedgerRow:
    """Return what a ledger holds under the name of the claim."""
    position = parse_address("10.9.0.10")
    return LedgerRow(position, "east:ipclaim/m/c", "", 7, claim_uid, created, "pool", None, is_owned=True)


def claim(annotations: dict[str, str], created: str = "2026-01-01") -> Object:
    """Return a claim."""
    metadata = {"name": "c", "namespace": "m", "uid": "mine", "creationTimestamp": created, "annotations": annotations}
    return {"apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPClaim", "metadata": metadata, "spec": {}}


@pytest.mark.parametrize(
    ("claim_uid", "annotations", "expected"),
    [
        ("mine", {}, True),
        ("", {}, True),
        ("another", {}, False),
        ("another", {OWN_ADDRESS: "10.9.0.11"}, False),
        ("another", {OWN_ADDRESS: "10.9.0.10"}, True),
        ("another", MOVED_HERE, True),
        ("another", HERE, False),
    ],
)
def test_kp18_a_holding_is_the_claims_by_its_uid_or_by_the_address_that_the_claim_brings(
    claim_uid: str, annotations: dict[str, str], expected: bool
) -> None:
    """What two clusters of one realm picked at the same time is not brought by either of them."""
    assert is_of(row(claim_uid), claim(annotations)) is expected


@pytest.mark.parametrize(("created", "expected"), [("2026-01-01", True), ("2026-01-03", False)])
def test_of_two_claims_of_a_move_the_younger_one_writes_itself_on_the_holding(created: str, expected: bool) -> None:
    assert is_written_on(row("another"), claim(MOVED_HERE, created), "pool") is expected


@pytest.mark.parametrize("another", ["a-lower-uid", "z-higher-uid"])
def test_of_two_claims_of_one_second_the_one_that_comes_later_writes_itself_on_the_holding(another: str) -> None:
    """The API server says the second only, and a uid says nothing of an order."""
    same = "2026-01-02"
    before = row(another, same)
    after = before._replace(former_claim="mine")

    assert not is_written_on(before, claim(MOVED_HERE, same), "pool")
    assert is_written_on(after, claim(MOVED_HERE, same), "pool")
