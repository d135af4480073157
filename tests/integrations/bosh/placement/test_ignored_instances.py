"""Ignored instances: what would change or remove one is refused, and nothing changes (D25)."""

from tenure.integrations.bosh.placement import place
from tests.integrations.bosh.placement.builders import (
    config,
    dynamic,
    gone,
    group,
    ignored,
    manual,
    on,
    present,
    refusal,
    static,
    subnet,
    vip,
)

SITE = config(
    manual("lab", subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14")),
    manual("other", subnet("172.20.6.0/28")),
    dynamic("edge"),
    vip("public"),
)
ZONED = config(manual("lab", subnet("172.20.5.0/28", azs=["z1", "z2"])))
TEN, ELEVEN = "172.20.5.10", "172.20.5.11"
MODIFICATION = ("DeploymentIgnoredInstancesModification", 190020)
NOT_ALLOWED = "This operation is not allowed."
REMOVED = "an attempt was made to remove a static ip"
REQUESTED = "1 instance(s) of that instance group were requested."
NETWORKS = (
    *MODIFICATION,
    f"In instance group 'app', which contains ignored vms, an attempt was made to modify the networks. {NOT_ALLOWED}",
)
STATIC = (
    *MODIFICATION,
    f"In instance group 'app', {REMOVED} that is used by an ignored instance. {NOT_ALLOWED}",
)


def test_d25_another_network_for_an_ignored_instance_is_refused() -> None:
    instances = [ignored(present(0, lab="172.20.5.2"))]

    assert refusal(group(1, on("other")), SITE, instances) == NETWORKS
    assert refusal(group(1, on("lab"), on("other")), SITE, instances) == NETWORKS


def test_d25_a_network_less_for_an_ignored_instance_is_refused() -> None:
    instances = [ignored(present(0, lab="172.20.5.2", other="172.20.6.2"))]

    assert refusal(group(1, on("lab")), SITE, instances) == NETWORKS


def test_d25_an_ignored_instances_static_ip_cannot_be_taken_off_the_list() -> None:
    instances = [ignored(present(0, lab=TEN)), present(1, lab=ELEVEN)]

    assert refusal(group(2, on("lab", ELEVEN, "172.20.5.12")), SITE, instances) == STATIC


def test_d25_an_ignored_instances_vip_cannot_be_taken_off_the_list() -> None:
    instances = [ignored(present(0, lab="172.20.5.2", public="203.0.113.11"))]

    assert refusal(group(1, on("lab"), on("public", "203.0.113.12")), SITE, instances) == STATIC


def test_d25_an_ignored_instance_does_not_stand_in_the_way_of_others() -> None:
    instances = [present(0, lab=TEN), ignored(present(1, lab=ELEVEN))]

    placement = place(group(2, on("lab", "172.20.5.12", ELEVEN)), SITE, instances)

    assert static(placement, "lab") == {0: "172.20.5.12", 1: ELEVEN}


def test_fewer_instances_than_are_ignored_are_refused() -> None:
    instances = [ignored(present(index, lab=f"172.20.5.{index + 2}")) for index in range(2)]

    assert refusal(group(1, on("lab")), SITE, instances) == (
        *MODIFICATION,
        f"Instance Group 'app' has 2 ignored instance(s). {REQUESTED} Deleting ignored instances is not allowed.",
    )


def test_an_az_cannot_be_removed_from_under_an_ignored_instance() -> None:
    instances = [ignored(present(0, "z2", lab="172.20.5.2"))]

    assert refusal(group(1, on("lab"), azs=["z1"]), ZONED, instances) == (
        *MODIFICATION,
        "Instance Group 'app' no longer contains AZs [\"z2\"] where ignored instance(s) exist.",
    )


def test_a_dynamic_network_of_an_ignored_instance_is_no_change() -> None:
    instances = [ignored(present(0, lab="172.20.5.2"))]

    assert gone(place(group(1, on("lab"), on("edge")), SITE, instances)) == []


def test_an_ignored_instance_that_holds_nothing_yet_stays() -> None:
    instances = [present(0), ignored(present(1))]

    assert gone(place(group(1, on("lab")), SITE, instances)) == [0]
    assert gone(place(group(1, on("lab", TEN)), SITE, instances)) == [0]


def test_an_ignored_instance_for_which_no_static_ip_is_left_is_not_let_go() -> None:
    instances = [present(0, lab=TEN), ignored(present(1))]

    assert refusal(group(1, on("lab", TEN)), SITE, instances) == STATIC
