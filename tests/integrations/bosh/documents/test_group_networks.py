"""The networks of groups: known ones, each once, with defaults; and what VIP networks need."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.integrations.bosh.model.document_model import ADDRESSABLE, DNS, GATEWAY, GroupNetwork
from tests.integrations.bosh.documents.manifests import addresses, group, read_group, read_network, refused

BOTH = {"default": ["dns", "gateway"]}
NETWORKS = "instance_groups[0].networks"


@pytest.mark.parametrize("networks", [[], None])
def test_a_group_without_a_network_is_refused(networks: Any) -> None:
    message = "Instance group 'app' must specify at least one network"

    assert refused({**group(), "networks": networks}) == [(BoshErrorKind.JOB_MISSING_NETWORK, message, NETWORKS)]
    assert BoshErrorKind.JOB_MISSING_NETWORK.value == 140009


def test_an_unknown_network_is_refused() -> None:
    message = "Instance group 'app' references an unknown network 'nowhere'"

    assert refused(group({"name": "nowhere"})) == [(BoshErrorKind.JOB_UNKNOWN_NETWORK, message, f"{NETWORKS}[0].name")]
    assert BoshErrorKind.JOB_UNKNOWN_NETWORK.value == 150001


def test_networks_are_a_list_of_mappings_with_names() -> None:
    assert refused({**group(), "networks": "lab"}) == [
        (BoshErrorKind.GENERIC, f"Property '{NETWORKS}' must be a list, not text", NETWORKS)
    ]
    assert refused({**group(), "networks": ["lab", {"nic_group": 1}]}) == [
        (BoshErrorKind.GENERIC, f"Property '{NETWORKS}[0]' must be a mapping, not text", f"{NETWORKS}[0]"),
        (BoshErrorKind.GENERIC, "Required property 'name' was not specified", f"{NETWORKS}[1]"),
    ]


def test_d19_a_network_that_is_listed_twice_is_refused() -> None:
    listed = ({"name": "lab"}, {"name": "lab", "static_ips": ["172.20.5.10"]})
    message = (
        "Failed to add static reservation with IP '172.20.5.10/32' for instance 'app/0' on network 'lab',"
        " instance already has dynamic reservation on the same network"
    )

    assert refused(group(*listed)) == [(BoshErrorKind.NETWORK_RESERVATION_ALREADY_EXISTS, message, f"{NETWORKS}[1]")]
    assert BoshErrorKind.NETWORK_RESERVATION_ALREADY_EXISTS.value == 130003


@pytest.mark.parametrize(("said", "kept"), [(1, "1"), ("1", "1"), ("nic1", "nic1"), (None, None)])
def test_i13_a_nic_group_is_kept_as_text(said: Any, kept: str | None) -> None:
    assert read_network(name="lab", nic_group=said).nic_group == kept


@pytest.mark.parametrize("said", [True, 1.5, ["1"]])
def test_a_nic_group_of_another_type_is_refused(said: Any) -> None:
    [(kind, message, place)] = refused(group({"name": "lab", "nic_group": said}))

    assert (kind, place) == (BoshErrorKind.GENERIC, f"{NETWORKS}[0].nic_group")
    assert message.startswith(f"Property '{NETWORKS}[0].nic_group' must be text, not ")


def test_the_only_network_is_the_default_for_all_that_is_required() -> None:
    assert read_network(name="lab").defaults == {DNS, GATEWAY}
    assert read_network(name="lab", default=["dns"]).defaults == {DNS, GATEWAY}
    assert read_network(name="lab", default=["addressable"]).defaults == {DNS, GATEWAY, ADDRESSABLE}


def test_several_networks_may_share_the_defaults() -> None:
    networks = ({"name": "lab", "default": ["dns"]}, {"name": "wide", "default": ["gateway", "addressable"]})

    assert read_group(group(*networks)).networks == (
        GroupNetwork("lab", None, frozenset({DNS})),
        GroupNetwork("wide", None, frozenset({GATEWAY, ADDRESSABLE})),
    )


def test_an_unknown_default_is_refused() -> None:
    message = (
        "Instance group 'app' specified an invalid default network property 'ntp', valid properties are: dns, gateway"
    )

    assert refused(group({"name": "lab", "default": ["ntp"]})) == [
        (BoshErrorKind.JOB_NETWORK_INVALID_DEFAULT, message, f"{NETWORKS}[0].default[0]")
    ]
    assert BoshErrorKind.JOB_NETWORK_INVALID_DEFAULT.value == 150003


@pytest.mark.parametrize(("claimed", "missing"), [([], "dns, gateway"), (["dns"], "gateway"), (["gateway"], "dns")])
def test_several_networks_without_a_default_are_refused(claimed: list[str], missing: str) -> None:
    message = (
        f"Instance group 'app' must specify which network is default for {missing},"
        " since it has more than one network configured"
    )

    assert refused(group({"name": "lab", "default": claimed}, {"name": "wide"})) == [
        (BoshErrorKind.JOB_NETWORK_MISSING_DEFAULT, message, NETWORKS)
    ]
    assert BoshErrorKind.JOB_NETWORK_MISSING_DEFAULT.value == 150005


def test_defaults_that_two_networks_claim_are_refused() -> None:
    message = (
        "Instance group 'app' specified more than one network to contain default."
        " 'dns' has default networks: 'lab', 'wide'. 'addressable' has default networks: 'lab', 'wide'."
    )
    claimed = ["dns", "addressable"]

    assert refused(group({"name": "lab", "default": [*claimed, "gateway"]}, {"name": "wide", "default": claimed})) == [
        (BoshErrorKind.JOB_NETWORK_MULTIPLE_DEFAULTS, message, NETWORKS)
    ]
    assert BoshErrorKind.JOB_NETWORK_MULTIPLE_DEFAULTS.value == 150004


def test_g3_static_ips_on_a_dynamic_network_are_refused() -> None:
    message = "Instance group 'app' using dynamic network 'cloudy' cannot specify static IP(s)"

    for said in (["172.20.5.10"], "172.20.5.10", []):
        assert refused(group({"name": "cloudy", "static_ips": said})) == [
            (BoshErrorKind.JOB_STATIC_IP_NOT_SUPPORTED_ON_DYNAMIC_NETWORK, message, f"{NETWORKS}[0].static_ips")
        ]
    assert BoshErrorKind.JOB_STATIC_IP_NOT_SUPPORTED_ON_DYNAMIC_NETWORK.value == 150008
    assert (
        BoshErrorKind.JOB_STATIC_IP_NOT_SUPPORTED_ON_DYNAMIC_NETWORK.title == "JobStaticIPNotSupportedOnDynamicNetwork"
    )


def test_vips_come_from_the_manifest_or_from_a_pool() -> None:
    vips = {"name": "public", "static_ips": ["203.0.113.7"]}

    _, given, picked = read_group(group({"name": "lab", **BOTH}, vips, {"name": "pubpool"})).networks

    assert addresses(given) == ["203.0.113.7"]
    assert (picked.static_ips, picked.defaults) == (None, frozenset())


def test_g5_a_vip_network_without_a_pool_needs_static_ips() -> None:
    networks = ({"name": "lab", **BOTH}, {"name": "public"})
    message = (
        "Instance group 'app' must specify static IPs in vip network 'public', since the network has no pool of its own"
    )

    assert refused(group(*networks)) == [(BoshErrorKind.NETWORK_RESERVATION_IP_MISSING, message, f"{NETWORKS}[1]")]
    assert BoshErrorKind.NETWORK_RESERVATION_IP_MISSING.value == 130005
    assert read_group(group(*networks, instances=0)).instances == 0


def test_g9_vips_from_the_manifest_and_from_a_pool_are_refused() -> None:
    message = "IPs cannot be specified in both the instance group and the cloud config"
    vips = {"name": "pubpool", "static_ips": ["198.51.100.20"]}

    assert refused(group({"name": "lab", **BOTH}, vips)) == [
        (BoshErrorKind.NETWORK_RESERVATION_VIP_MISCONFIGURED, message, f"{NETWORKS}[1].static_ips")
    ]
    assert BoshErrorKind.NETWORK_RESERVATION_VIP_MISCONFIGURED.value == 130014


def test_c2_vips_are_counted_too() -> None:
    vips = {"name": "public", "static_ips": ["203.0.113.7"]}
    message = "Instance group 'app' has 2 instances but was allocated 1 static IPs in network 'public'"

    assert refused(group({"name": "lab", **BOTH}, vips, instances=2)) == [
        (BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH, message, f"{NETWORKS}[1].static_ips")
    ]


def test_g11_a_vip_network_cannot_be_a_default() -> None:
    message = "Can't provide any defaults since this is a VIP network"
    networks = ({"name": "lab", "default": ["dns", "gateway"]}, {"name": "pubpool", "default": ["addressable"]})

    assert refused(group(*networks)) == [
        (BoshErrorKind.NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED, message, f"{NETWORKS}[1].default")
    ]
    assert BoshErrorKind.NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED.value == 130007


def test_g11_a_vip_network_cannot_be_the_only_one() -> None:
    message = "Can't provide any defaults since this is a VIP network"

    assert refused(group({"name": "pubpool"})) == [
        (BoshErrorKind.NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED, message, f"{NETWORKS}[0]")
    ]


def test_g11_a_default_on_a_vip_network_is_missing_elsewhere() -> None:
    found = refused(group({"name": "lab"}, {"name": "pubpool", **BOTH}))

    assert [(kind, place) for kind, _, place in found] == [
        (BoshErrorKind.NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED, f"{NETWORKS}[1].default"),
        (BoshErrorKind.JOB_NETWORK_MISSING_DEFAULT, NETWORKS),
    ]
