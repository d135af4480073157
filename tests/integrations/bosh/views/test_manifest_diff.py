"""Manifests and configs held against each other."""

from dataclasses import replace

from tenure.integrations.bosh.model.document_model import (
    CloudConfig,
    CloudNetwork,
    GroupNetwork,
    InstanceGroup,
    Manifest,
    MigratedFrom,
)
from tenure.integrations.bosh.views.manifest_diff import Difference, changed_networks, manifest_differences
from tenure.kernel.addressing.addresses import parse_address

WEB = InstanceGroup("web", 2, (GroupNetwork("apps"),), azs=("z1",))
SHOP = Manifest("shop", (WEB,))


def differences(**changes: object) -> list[Difference]:
    """Compare the shop with one whose group is changed."""
    return manifest_differences(SHOP, Manifest("shop", (replace(WEB, **changes),)))  # type: ignore[arg-type]


def test_the_same_has_no_differences() -> None:
    assert manifest_differences(SHOP, SHOP) == []


def test_the_order_of_groups_does_not_count() -> None:
    other = InstanceGroup("db", 1, (GroupNetwork("apps"),))

    assert manifest_differences(Manifest("shop", (WEB, other)), Manifest("shop", (other, WEB))) == []


def test_fields_of_a_group_are_compared_one_by_one() -> None:
    assert differences(instances=3) == [Difference("web.instances", 2, 3)]
    assert differences(azs=("z1", "z2")) == [Difference("web.azs", ["z1"], ["z1", "z2"])]
    assert differences(azs=None) == [Difference("web.azs", ["z1"], None)]
    assert differences(migrated_from=(MigratedFrom("old"),)) == [Difference("web.migrated_from", [], ["old"])]


def test_networks_of_a_group_are_compared_by_name() -> None:
    position = parse_address("10.0.0.7")

    assert differences(networks=(GroupNetwork("apps", static_ips=(position,)),)) == [
        Difference("web.networks.apps.static_ips", None, ["10.0.0.7"])
    ]
    gone, came = reversed(differences(networks=(GroupNetwork("edge", defaults=frozenset({"dns"})),)))
    assert (gone.path, gone.after) == ("web.networks.apps", None)
    assert came == Difference("web.networks.edge", None, {"static_ips": None, "defaults": ["dns"], "nic_group": None})


def test_a_group_that_comes_or_goes_is_one_difference() -> None:
    [came] = manifest_differences(Manifest("shop", ()), SHOP)
    [gone] = manifest_differences(SHOP, Manifest("shop", ()))

    assert (came.path, came.before, came.after["instances"]) == ("web", None, 2)
    assert (gone.after, gone.before) == (None, came.after)


def test_networks_that_changed_are_named() -> None:
    kept, gone, came = (CloudNetwork(name, "dynamic") for name in ("kept", "gone", "came"))
    before = CloudConfig(networks={"kept": kept, "gone": gone, "other": CloudNetwork("other", "vip")})
    after = CloudConfig(networks={"came": came, "other": CloudNetwork("other", "dynamic"), "kept": kept})

    assert changed_networks(before, after) == ["came", "other", "gone"]
