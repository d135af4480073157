"""Instances that come from other groups: same instances, same addresses (D20, D21)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tenure.integrations.bosh.model.bosh_errors import Refused
from tenure.integrations.bosh.model.document_model import InstanceGroup, MigratedFrom
from tenure.integrations.bosh.placement import Present, adopt, place
from tests.integrations.bosh.placement.builders import config, gone, group, manual, on, present, static, stays, subnet

SITE = config(manual("lab", subnet("172.20.5.0/28", "172.20.5.8-172.20.5.14", azs=["z1", "z2"])))
FLAT = config(manual("lab", subnet("172.20.5.0/28")))


def migrating(base: InstanceGroup, *sources: MigratedFrom) -> InstanceGroup:
    return replace(base, migrated_from=sources)


def named(instance: Present, uuid: str) -> Present:
    return replace(instance, uuid=uuid)


def refused(group: InstanceGroup, present_by_group: Mapping[str, Sequence[Present]]) -> str:
    with pytest.raises(Refused) as caught:
        adopt(group, SITE, present_by_group)
    assert (caught.value.kind.title, caught.value.kind.value) == ("DeploymentInvalidMigratedFromJob", 190018)
    return caught.value.message


def test_d20_a_renamed_group_keeps_its_instances_and_addresses() -> None:
    renamed = migrating(group(2, on("lab", "172.20.5.10", "172.20.5.11"), azs=["z1", "z2"]), MigratedFrom("old"))
    instances = [present(0, "z1", lab="172.20.5.11"), present(1, "z2", lab="172.20.5.10")]

    placement = place(renamed, SITE, adopt(renamed, SITE, {"old": instances, "another": [present(5, "z1")]}))

    assert stays(placement) == {0: "uuid-0", 1: "uuid-1"}
    assert static(placement, "lab") == {0: "172.20.5.11", 1: "172.20.5.10"}
    assert gone(placement) == []


def test_d20_a_group_has_its_own_instances_beside_those_that_come() -> None:
    wanted = migrating(group(3, on("lab")), MigratedFrom("old"))

    adopted = adopt(wanted, FLAT, {"app": [present(0)], "old": [named(present(1), "b"), named(present(2), "c")]})

    assert [(each.uuid, each.index) for each in adopted] == [("uuid-0", 0), ("b", 1), ("c", 2)]


def test_d20_only_clashing_indexes_change() -> None:
    wanted = migrating(group(4, on("lab")), MigratedFrom("old"), MigratedFrom("older"))
    old = [named(present(0), "a"), named(present(1), "b")]
    older = [named(present(1), "c"), named(present(3), "d")]

    adopted = adopt(wanted, FLAT, {"app": [present(0)], "old": old, "older": older})

    assert {each.uuid: each.index for each in adopted} == {"uuid-0": 0, "a": 2, "b": 1, "c": 4, "d": 3}


def test_d20_what_comes_does_not_depend_on_the_order_of_what_is_known() -> None:
    wanted = migrating(group(4, on("lab")), MigratedFrom("old"))
    own, old = [present(0), present(1)], [named(present(0), "a"), named(present(1), "b")]

    forwards = adopt(wanted, FLAT, {"app": own, "old": old})

    assert adopt(wanted, FLAT, {"old": old[::-1], "app": own[::-1]}) == forwards


def test_d21_an_az_that_is_not_the_instances_is_refused() -> None:
    wanted = migrating(group(1, on("lab"), azs=["z1", "z2"]), MigratedFrom("old", "z2"))

    assert refused(wanted, {"old": [present(0, "z1")]}) == (
        "Failed to migrate instance group 'old' to 'app', 'old' belongs to availability zone 'z1' and manifest "
        "specifies 'z2'"
    )


def test_d21_an_az_that_is_needed_and_not_told_is_refused() -> None:
    wanted = migrating(group(1, on("lab"), azs=["z1", "z2"]), MigratedFrom("old"))

    assert refused(wanted, {"old": [present(0)]}) == (
        "Failed to migrate instance group 'old' to 'app', availability zone of 'old' is not specified"
    )


def test_d21_an_az_that_the_group_has_not_is_refused() -> None:
    wanted = migrating(group(1, on("lab"), azs=["z1"]), MigratedFrom("old", "z2"))

    assert refused(wanted, {"old": [present(0)]}) == (
        "Failed to migrate instance group 'old' to 'app', availability zone 'z2' is not in the list of availability "
        "zones of instance group 'app'"
    )


def test_an_instance_without_az_gets_the_one_that_is_told() -> None:
    wanted = migrating(group(1, on("lab"), azs=["z1", "z2"]), MigratedFrom("old", "z2"))

    assert stays(place(wanted, SITE, adopt(wanted, SITE, {"old": [present(3)]}))) == {3: "uuid-3"}


def test_a_group_may_migrate_from_itself_to_get_azs() -> None:
    wanted = migrating(group(1, on("lab", "172.20.5.10"), azs=["z1", "z2"]), MigratedFrom("app", "z1"))

    adopted = adopt(wanted, SITE, {"app": [present(0, lab="172.20.5.10")]})

    assert [(each.uuid, each.az) for each in adopted] == [("uuid-0", "z1")]
    assert static(place(wanted, SITE, adopted), "lab") == {0: "172.20.5.10"}


def test_a_group_that_migrates_from_nobody_has_its_own() -> None:
    assert adopt(group(1, on("lab")), FLAT, {"app": [present(1), present(0)]}) == [present(0), present(1)]
    assert adopt(group(1, on("lab")), FLAT, {}) == []
