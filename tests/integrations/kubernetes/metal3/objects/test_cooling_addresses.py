"""What a pool says of addresses that cool off, as it is written and read."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import (
    CoolingAddress,
    cooling_entries,
    cooling_in,
)
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import COOLING_LIST
from tenure.integrations.kubernetes.metal3.objects.listed_entries import as_annotation
from tenure.kernel.addressing.addresses import parse_address

CLAIM = ClaimId("IPClaim", "m3", "a")
FIRST = CoolingAddress(1_800_000_000, parse_address("10.0.0.9"), CLAIM)
SECOND = CoolingAddress(1_800_000_007, parse_address("fd00::1"), CLAIM._replace(kind="IPAddressClaim"))


def in_status(*entries: Any) -> dict[str, Any]:
    return {"metadata": {}, "status": {"tenure": {"cooling": list(entries)}}}


def test_what_is_written_is_read_again_from_the_status_and_from_the_annotation() -> None:
    entries = cooling_entries([SECOND, FIRST])
    annotated = {"metadata": {"annotations": {COOLING_LIST: as_annotation(entries)}}}

    assert entries[0] == {
        "address": "10.0.0.9", "until": "2027-01-15T08:00:00Z", "kind": "IPClaim", "claim": "m3/a",
    }  # fmt: skip
    assert list(cooling_in(in_status(*entries)).values()) == [FIRST, SECOND]
    assert cooling_in(annotated) == cooling_in(in_status(*entries))


def test_the_time_may_be_of_any_zone_and_ends_not_before_its_second_does() -> None:
    entry = {"address": "10.0.0.9", "until": "2027-01-15T09:59:59.5+02:00"}

    (read,) = cooling_in(in_status(entry)).values()

    assert read == FIRST._replace(claim=ClaimId("", "", ""))


@pytest.mark.parametrize(
    "entry",
    [None, "10.0.0.1", {}, {"address": "10.0.0.1"}, {"address": "banana", "until": "2027-01-15T08:00:00Z"},
     {"address": "10.0.0.1", "until": "tomorrow"}, {"address": 7, "until": 7}],
)  # fmt: skip
def test_what_cannot_be_read_cools_nothing(entry: object) -> None:
    """A forged entry must not stop a pool."""
    assert cooling_in(in_status(entry)) == {}
    assert cooling_in({"metadata": {"annotations": {COOLING_LIST: "{"}}}) == {}
