"""Machines' data and clusterctl: marks of a killed move are taken off, and what is moved keeps its owner."""

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import DELETE_FOR_MOVE, IP_CLAIM, annotations_of
from tenure.integrations.kubernetes.metal3_data.data_kinds import DATA_FINALIZER
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.integrations.kubernetes.metal3.serving import until
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark, rendering_in
from tests.integrations.kubernetes.metal3_data.test_render_controller import addresses_of, networks

MARK: Object = {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}}
UNMARKED: Object = {"metadata": {"annotations": {DELETE_FOR_MOVE: None}}}


def test_marks_that_a_killed_move_left_are_taken_off_templates_and_machines_data(
    bare_park: MachinePark,
) -> None:
    """A marked template would number no machine any more, and marked data would never be released."""
    park = bare_park
    park.cluster()
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.template("t", networkData=networks("p"))
    with rendering_in(park.server, park.name, stale_mark_s=0.5):
        park.machine("m", template="t")
        park.rendered("m")
        marked = ((park.templates, "t"), (park.data_claims, "m"), (park.datas, "t-0"))
        for kind, name in marked:
            park.patch(kind, name, MARK)
        for kind, name in marked:
            until(lambda kind=kind, name=name: DELETE_FOR_MOVE not in annotations_of(park.get(kind, name) or {}))  # type: ignore[misc]
        park.machine("n", template="t")

        assert addresses_of(park, "n") == ["10.0.0.2"]
        park.remove_machine("m")
        until(lambda: not any("t-0" in each or each.endswith(" m") for each in park.left()))


def test_data_of_which_a_claim_is_moved_stays(bare_park: MachinePark) -> None:
    """Without it nobody would release the claim, if the move is given up."""
    park = bare_park
    park.cluster()
    park.pool("p", "10.0.0.1-10.0.0.9", prefix=24)
    park.template("t", networkData=networks("p"))
    with rendering_in(park.server, park.name):
        park.machine("m", template="t")
        park.rendered("m")
        park.patch(IP_CLAIM, "t-0-p", MARK)
        park.remove_machine("m")
        until(lambda: (park.get(park.datas, "t-0") or {})["metadata"]["finalizers"] == [DATA_FINALIZER])
        park.machine("n", template="t")
        park.rendered("n")
        assert park.get(park.datas, "t-0") is not None
        park.patch(IP_CLAIM, "t-0-p", UNMARKED)

        until(lambda: not any("t-0" in each or each.endswith(" m") for each in park.left()))
