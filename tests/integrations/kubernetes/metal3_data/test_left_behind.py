"""What is left of owners that are gone is released: no number, name or address of a machine is lost for ever."""

from collections.abc import Iterator
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import DELETE_FOR_MOVE, IP_CLAIM
from tenure.integrations.kubernetes.metal3_data.data_kinds import DATA_CLAIM_FINALIZER, DATA_FINALIZER, METAL3_MACHINE
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of, uid_of
from tests.integrations.kubernetes.metal3.serving import until
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark, rendering_in
from tests.integrations.kubernetes.metal3_data.test_render_controller import addresses_of, networks

GRACE_S = 0.3
GONE = "gone-for-ever"
"""The identity of an owner that is not there any more."""


@pytest.fixture
def park(bare_park: MachinePark) -> Iterator[MachinePark]:
    """Give a namespace with a pool and a template; what is without its owner is released after a moment."""
    bare_park.cluster()
    bare_park.pool("p", "10.0.0.1-10.0.0.1", prefix=24)
    bare_park.template("t", networkData=networks("p"))
    with rendering_in(bare_park.server, bare_park.name, orphan_grace_s=GRACE_S):
        yield bare_park


def late_claim(park: MachinePark, data: str, **metadata: Any) -> Object:
    """Create the claim of a Metal3Data that is gone, as a write does that was on its way for long."""
    owner = {"apiVersion": park.datas.api_version, "kind": "Metal3Data", "name": data, "uid": GONE}
    words: dict[str, Any] = {"finalizers": [DATA_FINALIZER], "ownerReferences": [owner], **metadata}
    return park.claim(f"{data}-p", **words)


def test_claims_of_data_whose_finalizers_were_stripped_by_force_are_released(park: MachinePark) -> None:
    """The garbage collector deletes them, and nobody else would take their finalizer away."""
    park.machine("m", template="t")
    assert addresses_of(park, "m") == ["10.0.0.1"]
    former = uid_of(park.get(IP_CLAIM, "t-0-p") or {})
    park.delete(park.datas, "t-0")
    park.patch(park.datas, "t-0", {"metadata": {"finalizers": None}})
    park.delete(IP_CLAIM, "t-0-p")

    until(lambda: uid_of(park.get(IP_CLAIM, "t-0-p") or {"metadata": {"uid": former}}) != former)
    assert addresses_of(park, "m") == ["10.0.0.1"]
    park.remove_machine("m")
    until(park.none_left)


def test_a_claim_that_arrives_after_its_data_was_let_go_is_released(park: MachinePark) -> None:
    """The next machine has its number, so its claim is to have that name."""
    late_claim(park, "t-0")
    park.machine("m", template="t")

    assert addresses_of(park, "m") == ["10.0.0.1"]
    assert not [each for each in park.all(IP_CLAIM) if GONE in str(each["metadata"]["ownerReferences"])]


def test_data_that_arrives_after_its_claim_was_let_go_is_released(park: MachinePark) -> None:
    """Else its number would never be free, and its template could never be deleted."""
    spec = {
        "index": 0,
        "template": {"name": "t", "namespace": park.name},
        "claim": {"name": "former", "namespace": park.name},
    }
    owner = {"apiVersion": park.metal3_machines.api_version, "kind": METAL3_MACHINE.kind, "name": "former", "uid": GONE}
    park.create(park.datas, "t-0", spec, finalizers=[DATA_CLAIM_FINALIZER], ownerReferences=[owner])

    park.gone(park.datas, "t-0")
    park.machine("m", template="t")
    assert addresses_of(park, "m") == ["10.0.0.1"]
    assert key_of(park.data_of("m"))[1] == "t-0"


def test_what_is_moved_or_not_ours_is_left_alone(park: MachinePark) -> None:
    """Clusterctl deletes what it has marked by itself, and claims without our finalizer are somebody else's."""
    late_claim(park, "t-7", annotations={DELETE_FOR_MOVE: ""})
    late_claim(park, "t-8", finalizers=["example.com/own"])
    late_claim(park, "t-9")

    park.gone(IP_CLAIM, "t-9-p")
    assert {key_of(each)[1] for each in park.all(IP_CLAIM) if "deletionTimestamp" not in each["metadata"]} == {
        "t-7-p", "t-8-p",
    }  # fmt: skip


def test_what_nobody_deletes_stays_for_a_grace_period(bare_park: MachinePark) -> None:
    """A backup may bring its owner back meanwhile; what is being deleted does not wait."""
    park = bare_park
    park.cluster()
    late_claim(park, "t-0")
    late_claim(park, "t-1")
    park.delete(IP_CLAIM, "t-1-p")
    with rendering_in(park.server, park.name):
        park.gone(IP_CLAIM, "t-1-p")

        assert "deletionTimestamp" not in (park.get(IP_CLAIM, "t-0-p") or {})["metadata"]
