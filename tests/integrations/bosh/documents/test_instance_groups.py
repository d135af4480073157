"""Groups of a manifest: instances, AZs, lifecycle, how VMs are replaced, disks, and groups that become others."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.integrations.bosh.model.document_model import (
    CREATE_SWAP_DELETE,
    DELETE_CREATE,
    ERRAND,
    SERVICE,
    MigratedFrom,
)
from tests.integrations.bosh.documents.manifests import group, manifest, read, read_group, refused

ZONED = {"name": "zoned"}
MIGRATED = BoshErrorKind.DEPLOYMENT_INVALID_MIGRATED_FROM_JOB


def test_a_group_may_have_no_instances() -> None:
    assert read_group(group(instances=0)).instances == 0


@pytest.mark.parametrize("instances", [-1, 65537])
def test_a_number_of_instances_that_nobody_could_place_is_refused(instances: int) -> None:
    [(kind, message, place)] = refused(group(instances=instances))

    assert (kind, place) == (BoshErrorKind.GENERIC, "instance_groups[0].instances")
    assert message.startswith("Property 'instance_groups[0].instances' must be from 0 to 65536, not ")


@pytest.mark.parametrize("instances", ["2", True, 1.5])
def test_instances_are_a_whole_number(instances: Any) -> None:
    [(kind, message, _)] = refused(group(instances=instances))

    assert kind is BoshErrorKind.GENERIC
    assert message.startswith("Property 'instance_groups[0].instances' must be a whole number, not ")


def test_azs_keep_their_order_and_count_once() -> None:
    assert read_group(group(ZONED, azs=["z2", "z1", "z2"])).azs == ("z2", "z1")
    assert read_group(group()).azs is None


def test_empty_azs_are_refused() -> None:
    assert refused(group(ZONED, azs=[])) == [
        (
            BoshErrorKind.JOB_MISSING_AVAILABILITY_ZONES,
            "Instance group 'app' has empty availability zones",
            "instance_groups[0].azs",
        )
    ]
    assert BoshErrorKind.JOB_MISSING_AVAILABILITY_ZONES.value == 140017


def test_unknown_azs_are_refused() -> None:
    assert refused(group(ZONED, azs=["z1", "z8", "z9"])) == [
        (
            BoshErrorKind.JOB_UNKNOWN_AVAILABILITY_ZONE,
            f"Instance group 'app' references unknown availability zone '{az}'",
            f"instance_groups[0].azs[{number}]",
        )
        for number, az in ((1, "z8"), (2, "z9"))
    ]
    assert BoshErrorKind.JOB_UNKNOWN_AVAILABILITY_ZONE.value == 140018


def test_an_az_is_named_in_text() -> None:
    assert refused(group(ZONED, azs=["z1", 7])) == [
        (
            BoshErrorKind.JOB_INVALID_AVAILABILITY_ZONE,
            "Instance group 'app' has invalid availability zone '7', string expected",
            "instance_groups[0].azs[1]",
        )
    ]


def test_azs_are_a_list() -> None:
    assert refused(group(ZONED, azs="z1")) == [
        (BoshErrorKind.GENERIC, "Property 'instance_groups[0].azs' must be a list, not text", "instance_groups[0].azs")
    ]


def test_a_group_without_azs_may_not_use_a_network_with_azs() -> None:
    assert refused(group(ZONED)) == [
        (
            BoshErrorKind.JOB_INVALID_AVAILABILITY_ZONE,
            "Instance group 'app' subnets declare availability zones and the instance group does not",
            "instance_groups[0].networks[0]",
        )
    ]
    assert BoshErrorKind.JOB_INVALID_AVAILABILITY_ZONE.value == 140016


@pytest.mark.parametrize(
    ("network", "azs"),
    [("zoned", ["z1", "z3"]), ("lab", ["z1"]), ("cloudy", ["z1"]), ("cloudy-zoned", ["z2"])],
)
def test_g4_a_network_must_reach_every_az_of_the_group(network: str, azs: list[str]) -> None:
    message = f"must specify availability zone that matches availability zones of network '{network}'"

    assert refused(group({"name": network}, azs=azs)) == [
        (
            BoshErrorKind.JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE,
            f"Instance group 'app' {message}",
            "instance_groups[0].networks[0]",
        )
    ]
    assert BoshErrorKind.JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE.value == 150006


def test_vips_are_not_bound_to_azs() -> None:
    networks = ({**ZONED, "default": ["dns", "gateway"]}, {"name": "pubpool"})

    assert read_group(group(*networks, azs=["z1", "z2"])).azs == ("z1", "z2")


def test_a_group_is_a_service_or_an_errand() -> None:
    assert read_group(group()).lifecycle == SERVICE
    assert read_group(group(lifecycle="errand")).lifecycle == ERRAND


@pytest.mark.parametrize("lifecycle", ["daemon", ""])
def test_a_lifecycle_that_there_is_not_is_refused(lifecycle: str) -> None:
    assert refused(group(lifecycle=lifecycle)) == [
        (
            BoshErrorKind.GENERIC,
            f"Invalid lifecycle '{lifecycle}' for 'app', valid lifecycle profiles are: service, errand",
            "instance_groups[0].lifecycle",
        )
    ]


def test_the_strategy_of_a_group_goes_before_that_of_the_deployment() -> None:
    swapping = {"vm_strategy": CREATE_SWAP_DELETE, "canaries": 1}
    groups = (group(), group(name="b", update={"vm_strategy": DELETE_CREATE}), group(name="c", update={"serial": True}))

    assert [each.vm_strategy for each in read(manifest(*groups, update=swapping)).groups] == [
        CREATE_SWAP_DELETE,
        DELETE_CREATE,
        CREATE_SWAP_DELETE,
    ]
    assert read_group(group(update=swapping)).vm_strategy == CREATE_SWAP_DELETE


def test_an_unknown_strategy_is_refused_wherever_it_stands() -> None:
    message = "Invalid vm_strategy 'swap', valid strategies are: delete-create, create-swap-delete"

    assert refused(group(update={"vm_strategy": "swap"}), update={"vm_strategy": "swap"}) == [
        (BoshErrorKind.GENERIC, message, "update.vm_strategy"),
        (BoshErrorKind.GENERIC, message, "instance_groups[0].update.vm_strategy"),
    ]


@pytest.mark.parametrize(
    ("said", "has_disk"),
    [
        ({}, False),
        ({"persistent_disk": 0}, False),
        ({"persistent_disk": 1024}, True),
        ({"persistent_disk_type": "large"}, True),
        ({"persistent_disk_pool": "large"}, True),
        ({"persistent_disks": []}, False),
        ({"persistent_disks": [{"name": "data", "type": "large"}]}, True),
    ],
)
def test_a_group_with_any_disk_that_outlives_vms_has_one(said: dict[str, Any], has_disk: bool) -> None:
    assert read_group(group(**said)).persistent_disk is has_disk


def test_a_disk_of_less_than_nothing_is_refused() -> None:
    assert refused(group(persistent_disk=-1)) == [
        (
            BoshErrorKind.GENERIC,
            "Instance group 'app' references an invalid persistent disk size '-1'",
            "instance_groups[0].persistent_disk",
        )
    ]


def test_d20_a_group_may_become_another() -> None:
    described = group(ZONED, azs=["z1", "z2"], migrated_from=[{"name": "old"}, {"name": "older", "az": "z2"}])

    assert read_group(described).migrated_from == (MigratedFrom("old"), MigratedFrom("older", "z2"))


def test_a_group_may_become_itself_in_an_az() -> None:
    """Instances that had no AZ are given one so."""
    described = group(ZONED, azs=["z1", "z2"], migrated_from=[{"name": "app", "az": "z1"}])

    assert read_group(described).migrated_from == (MigratedFrom("app", "z1"),)


def test_a_group_that_is_still_there_cannot_become_another() -> None:
    message = (
        "Failed to migrate instance group 'old' to 'app'."
        " A deployment can not migrate an instance group and also specify it. Please remove instance group 'old'."
    )

    assert refused(group(migrated_from=[{"name": "old"}]), group(name="old")) == [
        (MIGRATED, message, "instance_groups[0].migrated_from[0]")
    ]
    assert MIGRATED.value == 190018


def test_a_group_cannot_become_two() -> None:
    message = (
        "Failed to migrate instance group 'old' to 'b'. An instance group may be migrated to only one instance group."
    )
    moving: dict[str, Any] = {"migrated_from": [{"name": "old"}]}

    assert refused(group(**moving), group(name="b", **moving)) == [
        (MIGRATED, message, "instance_groups[1].migrated_from[0]")
    ]


@pytest.mark.parametrize(("az", "azs"), [("z3", ["z1", "z2"]), ("z9", ["z1"])])
def test_a_group_can_only_become_another_in_an_az_of_that(az: str, azs: list[str]) -> None:
    message = (
        f"Failed to migrate instance group 'old' to 'app', availability zone '{az}'"
        " is not in the list of availability zones of instance group 'app'"
    )

    assert refused(group(ZONED, azs=azs, migrated_from=[{"name": "old", "az": az}])) == [
        (MIGRATED, message, "instance_groups[0].migrated_from[0].az")
    ]


def test_a_group_without_azs_takes_nothing_over_in_an_az() -> None:
    [(kind, _, place)] = refused(group(migrated_from=[{"name": "old", "az": "z1"}]))

    assert (kind, place) == (MIGRATED, "instance_groups[0].migrated_from[0].az")


def test_what_a_group_becomes_of_has_a_name() -> None:
    assert refused(group(migrated_from=[{"az": "z1"}, "old"])) == [
        (BoshErrorKind.GENERIC, "Required property 'name' was not specified", "instance_groups[0].migrated_from[0]"),
        (
            BoshErrorKind.GENERIC,
            "Property 'instance_groups[0].migrated_from[1]' must be a mapping, not text",
            "instance_groups[0].migrated_from[1]",
        ),
    ]
