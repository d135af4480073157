"""Whole cloud configs: the worked example, several documents, compilation, and documents that are none."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.integrations.bosh.model.document_model import Az, Compilation
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.bosh.documents.configs import (
    LAB,
    WORKED,
    accepted,
    faults,
    lab,
    on_lab,
    refused,
    told,
    written,
)

EDGE = {"name": "edge", "type": "dynamic", "subnets": [{"az": "z1"}]}
IN_ZONE = lab(on_lab(az="z1"))


def compiling(*networks: dict[str, Any], azs: str = "z1 z2", **said: Any) -> str:
    return written(*networks, azs=azs, compilation={"workers": 2, "network": "lab", **said})


def test_the_worked_example_is_read_as_it_is_meant() -> None:
    config = accepted(WORKED)

    assert config.azs["z1"] == Az("z1", {"rack": "r11"})
    assert list(config.networks) == ["apps", "build", "edge", "public", "pubpool", "pods6"]
    assert [network.kind for network in config.networks.values()] == [
        "manual",
        "manual",
        "dynamic",
        "vip",
        "vip",
        "manual",
    ]
    assert config.compilation == Compilation("build", workers=3, az="z1")


def test_the_worked_examples_addresses_are_what_they_are_meant_to_be() -> None:
    networks = accepted(WORKED).networks
    first, second = networks["apps"].subnets
    [pods] = networks["pods6"].subnets

    assert (first.azs, second.azs) == (("z1",), ("z2", "z3"))
    assert first.dns == second.dns == ("10.44.0.53",)
    assert told(first.restricted) == ["10.44.16.0-10.44.16.7", "10.44.16.63"]
    assert told(second.restricted) == ["10.44.17.0-10.44.17.7", "10.44.17.63"]
    assert told(second.reserved) == ["10.44.17.0-10.44.17.7"]
    assert told(second.static) == ["10.44.17.10-10.44.17.13"]
    assert pods.prefix == 64
    assert pods.gateway == parse_address("2001:db8:44:100::1")
    assert told(pods.restricted) == ["2001:db8:44:100::-2001:db8:44:100::1", "2001:db8:44:10f:ffff:ffff:ffff:ffff"]
    assert [each.cloud_properties for each in networks["edge"].subnets] == [{"pg": "edge-a"}, {"pg": "edge-b"}]
    assert networks["public"].subnets == ()
    assert told(networks["pubpool"].subnets[0].static) == ["198.51.100.20-198.51.100.23"]


def test_several_documents_are_read_as_one() -> None:
    config = accepted(
        written(IN_ZONE, compilation={"workers": 1, "network": "other", "az": "z2"}),
        written({**lab({**LAB, "az": "z2"}), "name": "other"}, azs="z2"),
        "azs: [{name: z1, cpi: cpi1}]",
    )

    assert list(config.azs) == ["z2", "z1"]
    assert config.azs["z1"].cpi == "cpi1"
    assert list(config.networks) == ["lab", "other"]
    assert config.compilation == Compilation("other", workers=1, az="z2")


def test_compilation_may_be_in_only_one_document() -> None:
    assert refused(compiling(IN_ZONE, az="z1"), "compilation: {workers: 1, network: lab}") == [
        (BoshErrorKind.GENERIC, "Cloud config 'compilation' key cannot be defined in multiple cloud configs.")
    ]


def test_names_are_taken_over_all_documents() -> None:
    found = faults(written(lab(LAB), azs="z1"), written(lab(LAB), azs="z1"))

    assert [(fault.kind, fault.message, str(fault.place)) for fault in found] == [
        (
            BoshErrorKind.DEPLOYMENT_DUPLICATE_AVAILABILITY_ZONE_NAME,
            "Duplicate az name 'z1'",
            "config1.yml:2:9 (azs[0].name)",
        ),
        (
            BoshErrorKind.DEPLOYMENT_CANONICAL_NETWORK_NAME_TAKEN,
            "Invalid network name 'lab', canonical name already taken",
            "config1.yml:4:9 (networks[0].name)",
        ),
    ]


def test_faults_of_all_documents_are_told_at_once() -> None:
    found = faults(written(lab(on_lab(gateway="x"))), written({**lab(on_lab(static="y")), "name": "other"}))

    assert [(fault.place and fault.place.document) for fault in found] == ["config0.yml", "config1.yml"]


def test_every_document_that_is_no_yaml_is_told_with_its_place_and_the_others_wait() -> None:
    found = faults("networks: [", written(lab(on_lab(gateway="x"))), "azs:\n- {name: z1\n", "")

    assert [(fault.kind, fault.place and fault.place.document) for fault in found] == [
        (BoshErrorKind.GENERIC, "config0.yml"),
        (BoshErrorKind.GENERIC, "config2.yml"),
        (BoshErrorKind.GENERIC, "config3.yml"),
    ]
    assert all(fault.message.startswith("The document cannot be read: ") for fault in found)


def test_without_compilation_nothing_is_said_about_it() -> None:
    assert accepted(written(lab(LAB))).compilation is None


def test_compilation_says_where_and_how_many() -> None:
    more: dict[str, Any] = {"reuse_compilation_vms": True, "vm_resources": {"cpu": 1}, "vm_extensions": [], "env": {}}
    config = accepted(compiling(lab(LAB), orphan_workers=True, **more))

    assert config.compilation == Compilation("lab", workers=2, az=None, orphan_workers=True)


def test_compilation_on_an_unknown_network_is_refused() -> None:
    assert refused(compiling(lab(LAB), network="lob")) == [
        (BoshErrorKind.COMPILATION_CONFIG_UNKNOWN_NETWORK, "Compilation config references an unknown network 'lob'")
    ]


def test_compilation_in_an_unknown_az_is_refused() -> None:
    assert refused(compiling(IN_ZONE, az="z9")) == [
        (
            BoshErrorKind.COMPILATION_CONFIG_INVALID_AVAILABILITY_ZONE,
            "Compilation config references unknown az 'z9'. Known azs are: [z1, z2]",
        )
    ]


@pytest.mark.parametrize(
    ("described", "az"), [(IN_ZONE, "z2"), (IN_ZONE, None), (lab(LAB), "z1"), ({**EDGE, "name": "lab"}, None)]
)
def test_f6_compilation_in_an_az_that_its_network_does_not_reach_is_refused(
    described: dict[str, Any], az: str | None
) -> None:
    assert refused(compiling(described, az=az)) == [
        (
            BoshErrorKind.JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE,
            f"Compilation config refers to az '{az or ''}' but network 'lab' has no matching subnet(s).",
        )
    ]


def test_g4_a_dynamic_network_without_a_subnet_for_the_workers_az_is_refused() -> None:
    assert refused(compiling(EDGE, network="edge", az="z2")) == [
        (
            BoshErrorKind.NETWORK_SUBNET_INVALID_AVAILABILITY_ZONE,
            "Network 'edge' has no matching subnet for availability zone 'z2'",
        )
    ]
    assert accepted(compiling(EDGE, network="edge", az="z1")).compilation is not None


def test_workers_cannot_be_reached_at_a_vip_only() -> None:
    assert refused(compiling({"name": "lab", "type": "vip"}, az="z1")) == [
        (BoshErrorKind.GENERIC, "Compilation config references vip network 'lab', must be a manual or dynamic one")
    ]


@pytest.mark.parametrize("workers", [0, -1, 65537, 10**15])
def test_there_is_at_least_one_worker_and_not_more_than_can_be_counted(workers: int) -> None:
    assert refused(compiling(lab(LAB), workers=workers)) == [
        (BoshErrorKind.GENERIC, f"Property 'compilation.workers' must be from 1 to 65536, not {workers}")
    ]


def test_compilation_needs_a_network() -> None:
    assert refused(written(lab(LAB), compilation={"workers": 1})) == [
        (BoshErrorKind.GENERIC, "Required property 'network' was not specified")
    ]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("networks: {a: b}", "Property 'networks' must be a list, not a mapping", "1:11 (networks)"),
        ("networks: [lab]", "Property 'networks[0]' must be a mapping, not text", "1:12 (networks[0])"),
        ("networks: [{name: 7, type: vip}]", "Property 'networks[0].name' must be text, not a whole number", "1:19"),
        ("networks: [{name: a, type: 7}]", "Property 'networks[0].type' must be text, not a whole number", "1:28"),
        ("networks: [{type: vip}]", "Required property 'name' was not specified", "1:12 (networks[0])"),
        ("networks: [{name: a}]", "Required property 'subnets' was not specified", "1:12 (networks[0])"),
        ("networks: [{name: a, subnets: x}]", "Property 'networks[0].subnets' must be a list, not text", "1:31"),
        (
            "networks: [{name: a, type: dynamic, subnets: }]",
            "Required property 'subnets' was not specified",
            "1:12 (networks[0])",
        ),
        (
            "networks: [{name: a, type: dynamic, dns: 8.8.8.8}]",
            "Property 'networks[0].dns' must be a list, not text",
            "1:42",
        ),
        (
            "networks: [{name: a, type: dynamic, cloud_properties: []}]",
            "Property 'networks[0].cloud_properties' must be a mapping, not a list",
            "1:55",
        ),
        (
            "networks: [{name: a, subnets: [], managed: 1}]",
            "Property 'networks[0].managed' must be true or false, not a whole number",
            "1:44",
        ),
        ("networks: [{name: a, type: vip}]\nazs: z1", "Property 'azs' must be a list, not text", "2:6 (azs)"),
        ("networks: [{name: a, type: vip}]\nazs: [z1]", "Property 'azs[0]' must be a mapping, not text", "2:7"),
        (
            "networks: [{name: a, type: vip}]\nazs: [{cpi: c}]",
            "Required property 'name' was not specified",
            "2:7 (azs[0])",
        ),
        (
            "networks: [{name: a, type: vip}]\ncompilation: []",
            "Property 'compilation' must be a mapping, not a list",
            "2:14 (compilation)",
        ),
    ],
)
def test_a_wrong_type_is_told_with_its_place_and_what_is_needed(text: str, message: str, place: str) -> None:
    [fault] = faults(text)

    assert (fault.kind, fault.message) == (BoshErrorKind.GENERIC, message)
    assert str(fault.place).startswith(f"config0.yml:{place}")


@pytest.mark.parametrize(
    ("key", "value", "needed"),
    [
        ("range", 7, "text, not a whole number"),
        ("gateway", ["172.20.5.1"], "text, not a list"),
        ("prefix", "28", "a whole number, not text"),
        ("prefix", True, "a whole number, not true or false"),
        ("az", 1, "text, not a whole number"),
        ("azs", "z1", "a list, not text"),
        ("point_to_point", "yes", "true or false, not text"),
        ("netmask_bits", "28", "a whole number, not text"),
        ("cloud_properties", [], "a mapping, not a list"),
    ],
)
def test_a_wrong_type_in_a_subnet_is_told(key: str, value: object, needed: str) -> None:
    told_once = (BoshErrorKind.GENERIC, f"Property 'networks[0].subnets[0].{key}' must be {needed}")

    assert refused(written(lab(on_lab(**{key: value})))) == [told_once]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("netwroks: []\nnetworks: [{name: a, type: vip}]", "netwroks"),
        ("networks: [{name: a, type: vip, gateway: x}]", "networks[0].gateway"),
        ("networks: [{name: a, type: vip, subnets: [{range: x}]}]", "networks[0].subnets[0].range"),
        ("networks: [{name: a, type: dynamic, subnets: [{static: x}]}]", "networks[0].subnets[0].static"),
        ("networks: [{name: a, type: dynamic, range: x}]", "networks[0].range"),
        ("networks: [{name: a, subnets: [], dns: [x]}]", "networks[0].dns"),
        ("networks: [{name: a, type: vip}]\nazs: [{name: z, zone: 1}]", "azs[0].zone"),
    ],
)
def test_a_key_that_nobody_reads_is_refused_with_those_that_are_known(text: str, path: str) -> None:
    [fault] = faults(text)

    assert fault.kind is BoshErrorKind.GENERIC
    assert fault.message.startswith(f"Unknown property '{path}'; known here: ")
    assert fault.place is not None
    assert fault.place.path == path


def test_an_unknown_key_of_compilation_is_refused() -> None:
    [(kind, message)] = refused(compiling(lab(LAB), worker=3))

    assert kind is BoshErrorKind.GENERIC
    assert message.startswith("Unknown property 'compilation.worker'; known here: workers, network, az, ")


def test_what_bosh_knows_and_addresses_do_not_need_is_left_alone() -> None:
    besides: dict[str, Any] = {"vm_types": [{"name": "small"}], "disk_types": 7, "vm_extensions": None, "tags": {}}

    assert list(accepted(written(lab(LAB), **besides)).networks) == ["lab"]


def test_a_place_for_anchors_is_the_authors_own() -> None:
    text = "meta: {net: &net {type: vip}}\nx-more: &name [1]\nnetworks: [{name: a, <<: *net}]"

    assert accepted(text).networks["a"].kind == "vip"
    assert [fault.message.partition(";")[0] for fault in faults(f"{text}\nazs: [{{name: z, x-own: 1}}]")] == [
        "Unknown property 'azs[0].x-own'"
    ]


def test_azs_that_cannot_be_read_make_no_az_unknown() -> None:
    azs_amiss = "azs: {name: z1}"
    [fault] = faults(azs_amiss, written(IN_ZONE, compilation={"network": "lab", "az": "z1"}))

    assert fault.message == "Property 'azs' must be a list, not a mapping"
