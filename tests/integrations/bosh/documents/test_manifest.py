"""Manifests as a whole: what is read, what only a cloud config may say, and where each fault stands."""

from typing import Any

import pytest

from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Rejected
from tenure.integrations.bosh.model.document_model import (
    ADDRESSABLE,
    DELETE_CREATE,
    DNS,
    GATEWAY,
    SERVICE,
    GroupNetwork,
    InstanceGroup,
)
from tests.integrations.bosh.documents import configs
from tests.integrations.bosh.documents.manifests import (
    WORKED,
    faults,
    group,
    manifest,
    positions,
    read,
    refused,
    site,
    told,
)


def test_the_worked_example_is_read_against_its_cloud_config() -> None:
    shop = read(WORKED, site(configs.WORKED))

    db, web, cell = shop.groups
    required = frozenset({DNS, GATEWAY})
    assert (shop.name, shop.own) == ("shop", None)
    assert db == InstanceGroup(
        name="db",
        instances=2,
        networks=(GroupNetwork("apps", positions("10.44.16.10", "10.44.17.10"), required),),
        azs=("z1", "z2"),
    )
    assert web == InstanceGroup(
        name="web",
        instances=3,
        networks=(
            GroupNetwork("apps", None, required | {ADDRESSABLE}),
            GroupNetwork("public", positions("203.0.113.11", "203.0.113.12", "203.0.113.13")),
        ),
        azs=("z1", "z2", "z3"),
    )
    assert (cell.instances, cell.azs) == (2, ("z1", "z2"))
    assert cell.networks == (
        GroupNetwork("apps", None, required, nic_group="1"),
        GroupNetwork("pods6", None, frozenset(), nic_group="1"),
    )
    assert {(each.lifecycle, each.vm_strategy, each.persistent_disk) for each in shop.groups} == {
        (SERVICE, DELETE_CREATE, False)
    }


def test_a_deployment_may_have_no_groups_if_it_says_so() -> None:
    assert read("name: alpha\ninstance_groups: []\n").groups == ()
    assert told(faults("name: alpha\n")) == [
        (BoshErrorKind.GENERIC, "Required property 'instance_groups' was not specified", "")
    ]


def test_what_has_no_effect_on_addresses_may_be_said() -> None:
    ignored = {"jobs": [], "vm_type": "small", "stemcell": "default", "env": {}, "properties": {}, "vm_extensions": []}
    besides: dict[str, Any] = {
        "releases": [],
        "stemcells": [],
        "variables": [],
        "addons": [],
        "features": {},
        "tags": {},
    }

    assert read(manifest(group(**ignored), **besides)).groups == read(manifest(group())).groups


def test_a_key_that_nobody_reads_is_refused() -> None:
    found = refused(group(azz=["z1"]), group({"name": "lab", "statics": []}, name="b"), instance_group=[])

    assert [(kind, message.partition(";")[0]) for kind, message, _ in found] == [
        (BoshErrorKind.GENERIC, "Unknown property 'instance_group'"),
        (BoshErrorKind.GENERIC, "Unknown property 'instance_groups[0].azz'"),
        (BoshErrorKind.GENERIC, "Unknown property 'instance_groups[1].networks[0].statics'"),
    ]


def test_all_faults_are_told_at_once_each_with_its_line_and_column() -> None:
    text = """\
name: alpha
update: {vm_strategy: swap}
instance_groups:
- name: app
  instances: 3
  azs: [z9]
  networks:
  - {name: nowhere}
- name: db
  instances: 1
  lifecycle: daemon
  networks:
  - {name: lab,
     static_ips: [172.20.5.9]}
"""

    found = faults(text)

    assert [(str(each.place), each.kind.title, each.kind.value) for each in found] == [
        ("alpha.yml:2:23 (update.vm_strategy)", "DirectorError", 100),
        ("alpha.yml:6:9 (instance_groups[0].azs[0])", "JobUnknownAvailabilityZone", 140018),
        ("alpha.yml:8:12 (instance_groups[0].networks[0].name)", "JobUnknownNetwork", 150001),
        (
            "alpha.yml:14:19 (instance_groups[1].networks[0].static_ips[0])",
            "InstanceGroupNetworkInstanceIpMismatch",
            150002,
        ),
        ("alpha.yml:11:14 (instance_groups[1].lifecycle)", "DirectorError", 100),
    ]


def test_networks_are_refused_beside_a_cloud_config() -> None:
    found = refused(group(), networks=[])

    supported = "Deployment 'networks' are no longer supported."
    assert found == [
        (
            BoshErrorKind.V1_DEPRECATED_NETWORKS,
            f"{supported} Network definitions must now be provided in a cloud-config.",
            "networks",
        )
    ]
    assert (found[0][0].title, found[0][0].value) == ("V1DeprecatedNetworks", 140026)


@pytest.mark.parametrize("key", ["azs", "compilation"])
def test_what_else_is_for_the_cloud_config_is_refused_beside_one(key: str) -> None:
    message = f"Deployment manifest contains '{key}' section, but this can only be set in a cloud-config."

    assert refused(group(), **{key: []}) == [(BoshErrorKind.GENERIC, message, key)]


def test_jobs_is_refused_as_a_name_of_groups_beside_a_cloud_config() -> None:
    found = faults("name: alpha\njobs: []\n")

    assert told(found) == [
        (BoshErrorKind.GENERIC, "Jobs are no longer supported, please use instance groups instead", "jobs")
    ]


def test_two_groups_must_differ_in_their_names_as_dns_has_them() -> None:
    assert refused(group(name="my_app"), group(name="My-App")) == [
        (
            BoshErrorKind.GENERIC,
            "Invalid instance group name 'My-App', canonical name already taken",
            "instance_groups[1]",
        )
    ]


@pytest.mark.parametrize("name", ["", " app", "a\tb", "a" * 256])
def test_a_name_that_could_not_be_kept_is_refused(name: str) -> None:
    for found, way in ((refused(group(name=name)), "instance_groups[0].name"), (refused(group(), name=name), "name")):
        [(kind, message, place)] = found
        assert (kind, place) == (BoshErrorKind.GENERIC, way)
        assert message.startswith(f"{way}: ")


def test_what_is_missing_is_told_with_the_group_that_lacks_it() -> None:
    assert refused({}) == [
        (BoshErrorKind.GENERIC, "Required property 'name' was not specified", "instance_groups[0]"),
        (BoshErrorKind.GENERIC, "Required property 'instances' was not specified", "instance_groups[0]"),
        (
            BoshErrorKind.JOB_MISSING_NETWORK,
            "Instance group 'instance_groups[0]' must specify at least one network",
            "instance_groups[0]",
        ),
    ]


def test_what_is_no_manifest_is_refused_with_its_place() -> None:
    with pytest.raises(Rejected, match=r"alpha\.yml:1:1: The document cannot be read: a mapping is needed"):
        read_manifest("alpha.yml", "- a\n", site())
    assert told(faults("name: alpha\ninstance_groups: {}\n")) == [
        (BoshErrorKind.GENERIC, "Property 'instance_groups' must be a list, not a mapping", "instance_groups")
    ]
    assert told(faults("name: alpha\ninstance_groups: [app]\n")) == [
        (BoshErrorKind.GENERIC, "Property 'instance_groups[0]' must be a mapping, not text", "instance_groups[0]")
    ]


def test_a_number_of_thousands_of_digits_is_refused_like_any_other() -> None:
    """Such a number can be written, but Python refuses to print it."""
    huge = "0x" + "f" * 5000
    text = f"""\
name: alpha
instance_groups:
- name: app
  instances: {huge}
  azs: [{huge}]
  persistent_disk: -{huge}
  networks:
  - {{name: lab}}
"""

    assert [each.place.path for each in faults(text) if each.place] == [
        "instance_groups[0].instances",
        "instance_groups[0].azs[0]",
        "instance_groups[0].persistent_disk",
    ]
