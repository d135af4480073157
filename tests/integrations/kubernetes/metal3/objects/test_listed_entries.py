"""Lists that a pool has in its status, or in an annotation."""

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import RESERVING
from tenure.integrations.kubernetes.metal3.objects.listed_entries import as_annotation, listed_entries
from tenure.integrations.kubernetes.metal3.objects.reservations import reserved_in
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import parse_address

OLD, NEW = {"address": "10.0.0.1", "uid": "u"}, {"address": "10.0.0.2", "uid": "u"}


def pool(annotation: str, *in_status: Object) -> Object:
    return {
        "metadata": {"annotations": {RESERVING: annotation}},
        "status": {"tenure": {"reserving": list(in_status)}},
    }


def test_what_the_status_says_comes_last_since_an_annotation_may_be_an_old_one() -> None:
    both = pool(as_annotation([OLD]), NEW)

    assert listed_entries(both, "reserving", RESERVING) == [OLD, NEW]
    assert reserved_in(both) == {"u": parse_address("10.0.0.2")}


@pytest.mark.parametrize("annotation", ["", "{", "7", "{}", "null"])
def test_an_annotation_that_is_no_list_hides_nothing_of_the_status(annotation: str) -> None:
    assert listed_entries(pool(annotation, NEW), "reserving", RESERVING) == [NEW]
