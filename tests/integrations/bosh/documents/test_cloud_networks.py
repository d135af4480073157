"""Networks of the three types, and what must hold between the subnets of one."""

from typing import Any

import pytest
import yaml

from tenure.integrations.bosh.documents.cloud_networks import canonical
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tests.integrations.bosh.documents.configs import (
    LAB,
    accepted,
    lab,
    network,
    on_lab,
    refused,
    refused_subnets,
    told,
    written,
)

NEXT = {"range": "172.20.6.0/28", "gateway": "172.20.6.1"}
SIX = {"range": "2001:db8:5::/120", "gateway": "2001:db8:5::1"}
DIFFERING = (BoshErrorKind.NETWORK_PREFIX_SIZES_DIFFER, "Network 'lab' has subnets that define different prefixes")
MIXED = (
    BoshErrorKind.JOB_INVALID_AVAILABILITY_ZONE,
    "Subnets on network 'lab' must all either specify availability zone or not",
)


def dynamic(**said: Any) -> dict[str, Any]:
    return {"name": "lab", "type": "dynamic", **said}


def vip(*subnets: dict[str, Any], **said: Any) -> dict[str, Any]:
    return {"name": "lab", "type": "vip", "subnets": list(subnets), **said}


def test_a_network_is_manual_unless_it_says_otherwise() -> None:
    assert network(lab(LAB)) == network(lab(LAB, type="manual"))
    assert network(lab(LAB)).kind == "manual"


def test_subnets_keep_the_order_in_which_they_are_written() -> None:
    assert [str(each.range) for each in network(lab(NEXT, LAB)).subnets] == ["172.20.6.0/28", "172.20.5.0/28"]


@pytest.mark.parametrize("kind", ["overlay", ""])
def test_a_type_that_there_is_not_is_refused(kind: str) -> None:
    assert refused(written(lab(LAB, type=kind))) == [
        (BoshErrorKind.DEPLOYMENT_INVALID_NETWORK_TYPE, f"Invalid network type '{kind}'")
    ]


def test_no_networks_are_refused() -> None:
    for text in ("networks: []", "networks:", "azs: []"):
        assert refused(text) == [(BoshErrorKind.DEPLOYMENT_NO_NETWORKS, "No networks specified")]
    assert refused() == [(BoshErrorKind.DEPLOYMENT_NO_NETWORKS, "No networks specified")]


@pytest.mark.parametrize(
    ("name", "left"), [("Lab_1", "lab-1"), ("lab-1", "lab-1"), ("l.a b!-1", "lab-1"), ("LAB", "lab"), ("é", "")]
)
def test_a_name_in_dns_is_lower_case_with_hyphens_and_nothing_else(name: str, left: str) -> None:
    assert canonical(name) == left


def test_two_networks_of_one_canonical_name_are_refused() -> None:
    assert refused(written({**lab(LAB), "name": "lab_1"}, {**lab(NEXT), "name": "LAB-1"})) == [
        (
            BoshErrorKind.DEPLOYMENT_CANONICAL_NETWORK_NAME_TAKEN,
            "Invalid network name 'LAB-1', canonical name already taken",
        )
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (" lab", "' lab' begins or ends with white space"),
        ("la\nb", "'la\\nb' holds a control character"),
        ("lab" * 100, "a name has at most 255 characters, not 300"),
    ],
)
def test_a_name_that_the_ledger_cannot_have_is_refused_with_its_place(name: str, why: str) -> None:
    text = yaml.safe_dump({"azs": [{"name": name}], "networks": [{**lab(LAB), "name": name}]})

    assert refused(text) == [
        (BoshErrorKind.GENERIC, f"azs[0].name: {why}"),
        (BoshErrorKind.GENERIC, f"networks[0].name: {why}"),
    ]


@pytest.mark.parametrize("name", ["", "ü", "---", "_-"])
def test_a_name_of_which_nothing_is_left_is_refused(name: str) -> None:
    assert refused(written({**lab(LAB), "name": name})) == [
        (BoshErrorKind.GENERIC, f"Invalid network name '{name}', must have a letter or a digit")
    ]


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        ("{}", "Property 'networks' must be a list, not a mapping"),
        ("''", "Property 'networks' must be a list, not text"),
        ("[null]", "Property 'networks[0]' must be a mapping, not null"),
    ],
)
def test_what_is_no_list_of_networks_is_one_fault(networks: str, told: str) -> None:
    assert refused(f"networks: {networks}") == [(BoshErrorKind.GENERIC, told)]


def test_networks_may_lie_over_each_other() -> None:
    assert len(accepted(written(lab(LAB), {**lab(LAB), "name": "lab2"})).networks) == 2


def test_subnets_of_one_network_may_not_lie_over_each_other() -> None:
    told_once = (BoshErrorKind.NETWORK_OVERLAPPING_SUBNETS, "Network 'lab' has overlapping subnets")
    wide = {"range": "172.20.0.0/16", "gateway": "172.20.0.1"}

    assert refused_subnets(LAB, LAB) == [told_once]
    assert refused_subnets(LAB, wide) == [told_once]
    assert refused_subnets(LAB, wide, NEXT) == [told_once, told_once]


def test_i9_two_subnets_of_different_prefix_are_refused() -> None:
    described = {"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28}
    other = {"range": "10.10.1.0/24", "gateway": "10.10.1.1"}

    assert refused_subnets(described, other) == [DIFFERING]
    assert refused_subnets(other, described) == [DIFFERING]
    assert [each.prefix for each in network(lab(described, {**other, "prefix": 28})).subnets] == [28, 28]


def test_i9_subnets_of_both_families_are_refused_even_if_their_prefixes_are_the_same_number() -> None:
    assert refused_subnets(LAB, SIX) == [DIFFERING]
    wide = {"range": "2001:db00::/28", "gateway": "2001:db00::1", "prefix": 32}
    assert refused_subnets(LAB, wide) == [DIFFERING]


def test_either_all_subnets_name_azs_or_none_does() -> None:
    assert refused_subnets(on_lab(az="z1"), NEXT, azs="z1") == [MIXED]
    assert refused(written(dynamic(subnets=[{"az": "z1"}, {}]), azs="z1")) == [MIXED]
    assert refused(written(vip({"az": "z1"}, {"static": "198.51.100.1"}), azs="z1")) == [MIXED]


def test_an_unknown_az_is_refused() -> None:
    unknown = BoshErrorKind.NETWORK_SUBNET_UNKNOWN_AVAILABILITY_ZONE
    message = "Network 'lab' refers to an unknown availability zone '{}'"

    assert refused_subnets(on_lab(azs=["z1", "z8", "z9"]), azs="z1") == [
        (unknown, message.format("z8")),
        (unknown, message.format("z9")),
    ]
    assert refused_subnets(on_lab(az="z9"), azs="z1") == [(unknown, message.format("z9"))]
    assert refused(written(dynamic(subnets=[{"az": "z9"}]))) == [(unknown, message.format("z9"))]
    assert refused(written(vip({"azs": ["z9"], "static": "198.51.100.1"}))) == [(unknown, message.format("z9"))]


def test_az_and_azs_together_are_refused() -> None:
    assert refused_subnets(on_lab(az="z1", azs=["z1"]), azs="z1") == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, "Network 'lab' contains both 'az' and 'azs'. Choose one.")
    ]


def test_empty_azs_are_refused() -> None:
    assert refused_subnets(on_lab(azs=[])) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, "Network 'lab' refers to an empty 'azs' array")
    ]


def test_a_dynamic_network_may_be_written_flat() -> None:
    [found] = network(dynamic(dns=["8.8.8.8"], cloud_properties={"pg": "a"})).subnets

    assert (found.azs, found.dns, found.cloud_properties) == (None, ("8.8.8.8",), {"pg": "a"})
    assert (found.range, found.static, found.restricted) == (None, (), ())


def test_g4_a_dynamic_network_reaches_the_azs_that_its_subnets_name() -> None:
    found = network(dynamic(subnets=[{"az": "z1"}, {"azs": ["z2", "z3"], "prefix": 32}]), azs="z1 z2 z3 z4")

    assert found.azs == {"z1", "z2", "z3"}
    assert not any(each.serves("z4") for each in found.subnets)


@pytest.mark.parametrize("key", ["az", "azs", "managed", "prefix"])
def test_a_dynamic_network_may_not_say_what_its_subnets_or_nobody_should(key: str) -> None:
    assert refused(written(dynamic(**{key: False}))) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, f"Network 'lab' must not specify '{key}'.")
    ]


@pytest.mark.parametrize(("key", "value"), [("dns", ["8.8.8.8"]), ("cloud_properties", {})])
def test_a_dynamic_network_says_it_itself_or_its_subnets_do(key: str, value: object) -> None:
    message = f"Network 'lab' must not specify '{key}' when also specifying 'subnets'."
    message += f" Instead, '{key}' should be specified on subnet entries."

    assert refused(written(dynamic(subnets=[{}], **{key: value}))) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, message)
    ]


def test_a_dynamic_subnet_hands_out_no_blocks() -> None:
    assert refused(written(dynamic(subnets=[{"prefix": 28}]))) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, "Prefix property is not supported for dynamic networks.")
    ]


def test_a_vip_network_may_leave_its_addresses_to_the_manifest() -> None:
    described = network({"name": "lab", "type": "vip", "cloud_properties": {"zone": 1}})

    assert (described.subnets, described.cloud_properties) == ((), {"zone": 1})


def test_a_vip_pool_keeps_the_order_in_which_it_is_written() -> None:
    described = vip({"azs": ["z1"], "static": ["198.51.100.9", "198.51.100.2 - 198.51.100.3"]}, {"az": "z2"})
    first, second = network(described, azs="z1 z2").subnets

    assert told(first.static) == ["198.51.100.9", "198.51.100.2-198.51.100.3"]
    assert (first.azs, first.prefix, second.static) == (("z1",), 32, ())


def test_a_vip_pool_may_be_of_ipv6_but_not_of_both() -> None:
    six = {"static": ["2001:db8::5"]}

    assert network(vip(six)).subnets[0].prefix == 128
    assert refused(written(vip({"static": ["198.51.100.9"]}, six))) == [DIFFERING]
    assert refused(written(vip({"static": ["198.51.100.9", "2001:db8::5"]}))) == [DIFFERING]


def test_a_wrong_text_in_a_vip_pool_is_refused() -> None:
    assert refused(written(vip({"static": ["198.51.100.9 - 198.51.100.8"]}))) == [
        (BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, "Invalid IP range format: 198.51.100.9 - 198.51.100.8")
    ]


def test_a_managed_subnet_needs_neither_range_nor_gateway() -> None:
    chosen = {"name": "a", "netmask_bits": 24, "cloud_properties": {"t": 0}}
    found = network(lab(chosen, {"name": "b", "range": "172.20.5.0/28"}, managed=True))

    assert found.managed
    assert [(each.name, each.range and str(each.range), each.netmask_bits) for each in found.subnets] == [
        ("a", None, 24),
        ("b", "172.20.5.0/28", None),
    ]
    assert told(found.subnets[1].restricted) == ["172.20.5.0", "172.20.5.15"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("gateway", "172.20.5.1"), ("reserved", "172.20.5.2"), ("static", "172.20.5.3"), ("point_to_point", True)],
)
def test_of_a_managed_subnet_without_range_no_address_can_be_named(key: str, value: object) -> None:
    assert refused_subnets({"name": "a", key: value}, managed=True) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, f"Network 'lab' must not specify '{key}' without specifying 'range'.")
    ]


def test_i16_subnets_of_a_managed_network_need_names_of_their_own() -> None:
    assert refused_subnets(LAB, managed=True) == [(BoshErrorKind.GENERIC, "Required property 'name' was not specified")]
    assert refused_subnets(on_lab(name="a"), {**NEXT, "name": "a"}, managed=True) == [
        (BoshErrorKind.GENERIC, "subnet names within a managed network must be unique")
    ]
    assert not network(lab(on_lab(name="a"), {**NEXT, "name": "a"})).managed
