"""The fields of instances, nodes and groups; and how fields of anything are chosen, written and documented."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenure import Invalid
from tenure.integrations.ganeti.machine_model import Group, Node
from tenure.integrations.ganeti.query.machine_fields import (
    GROUP_DEFAULT,
    GROUP_FIELDS,
    INSTANCE_DEFAULT,
    INSTANCE_FIELDS,
    NODE_DEFAULT,
    NODE_FIELDS,
    GroupFacts,
    InstanceFacts,
    NodeFacts,
)
from tenure.integrations.ganeti.query.network_fields import FIELDS, NETWORK_DEFAULT, Field, cell, select
from tests.integrations.ganeti.plans import instance, nic, of_cases, of_today

REFERENCE = Path(__file__).parents[4] / "docs" / "reference" / "network-fields.md"
CATALOGUES: dict[str, tuple[dict[str, Field[Any]], tuple[str, ...]]] = {
    "Networks": (dict(FIELDS), NETWORK_DEFAULT),
    "Instances": (dict(INSTANCE_FIELDS), INSTANCE_DEFAULT),
    "Nodes": (dict(NODE_FIELDS), NODE_DEFAULT),
    "Groups": (dict(GROUP_FIELDS), GROUP_DEFAULT),
}


def test_instances_are_told_with_the_networks_and_addresses_of_each_nic() -> None:
    network = of_cases()
    web = instance("web", nic(network, "192.0.2.10", "10.0.0.8"), nic(None, number=1))
    facts = InstanceFacts(web, {network.uuid: network})

    told = {name: field.read(facts) for name, field in INSTANCE_FIELDS.items()}

    assert (told["name"], told["node"], told["group"], told["nic_count"]) == ("web", "node1", "default", 2)
    assert (told["uuid"], told["serial_no"]) == ("uuid-of-web", 1)
    assert told["ips"] == [["192.0.2.10", "10.0.0.8"], []]
    assert told["macs"] == ["aa:00:00:00:00:00", "aa:00:00:00:00:01"]
    assert told["networks"] == ["net1", None]
    assert told["nics"][0] == {
        "uuid": "nic-uuid-0",
        "name": None,
        "mac": "aa:00:00:00:00:00",
        "network": "net1",
        "network_uuid": "uuid-1",
        "mode": "bridged",
        "link": "br100",
        "vlan": "",
        "ips": ["192.0.2.10", "10.0.0.8"],
    }
    cells = {name: field.write(told[name]) for name, field in INSTANCE_FIELDS.items()}
    assert (cells["ips"], cells["networks"]) == ("192.0.2.10,10.0.0.8;-", "net1,-")
    assert cells["nics"] == "aa:00:00:00:00:00,net1,192.0.2.10,10.0.0.8;aa:00:00:00:00:01,-"


def test_nodes_and_groups_are_told_with_what_is_on_them() -> None:
    node, other = Node("node1", "default", "n1", "192.0.2.9"), Node("node2", "far", "n2")
    web, far = instance("web"), replace(instance("db"), node="node2", group="far")
    networks = [of_cases(), of_today()]

    node_facts = NodeFacts(node, [far, web])
    group_facts = GroupFacts(Group("default", "g1"), [other, node], [far, web], networks)

    assert {name: field.read(node_facts) for name, field in NODE_FIELDS.items()} == {
        "name": "node1",
        "group": "default",
        "primary_ip": "192.0.2.9",
        "secondary_ip": None,
        "inst_list": ["web"],
        "inst_cnt": 1,
        "uuid": "n1",
    }
    assert {name: field.read(group_facts) for name, field in GROUP_FIELDS.items()} == {
        "name": "default",
        "node_list": ["node1"],
        "node_cnt": 1,
        "inst_list": ["web"],
        "inst_cnt": 1,
        "network_list": [("net1", "bridged", "br100", "")],
        "network_cnt": 1,
        "uuid": "g1",
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, list(NETWORK_DEFAULT)),
        ("name,map", ["name", "map"]),
        (" map , name ", ["map", "name"]),
        ("+map", [*NETWORK_DEFAULT, "map"]),
        ("+map,uuid", [*NETWORK_DEFAULT, "map", "uuid"]),
    ],
)
def test_fields_are_chosen_by_name(text: str | None, names: list[str]) -> None:
    assert [field.name for field in select(text, NETWORK_DEFAULT, FIELDS)] == names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name,free", "no field 'free'; near it: free_count"),
        ("+grouplist", "no field 'grouplist'; near it: group_list"),
        ("zzzz", "no field 'zzzz'; there are: name, network,"),
        ("NAME", "no field 'NAME'; near it: name"),
        ("name,", "name is missing"),
        ("", "name is missing"),
        ("+", "name is missing"),
        ("+,map", "name is missing"),
        ("x" * 10_000, "no field 'xxx"),
        ("\x00\ud800", "no field"),
    ],
)
def test_a_field_that_is_not_there_is_refused_with_those_near_it(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as refused:
        select(text, NETWORK_DEFAULT, FIELDS)

    assert refused.value.field == "output"
    assert len(refused.value.message) < 600


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "Y"),
        (False, "N"),
        ("", ""),
        (0, "0"),
        ([], ""),
        (["a", None], "a,-"),
        ({"a": 1}, '{"a": 1}'),
    ],
)
def test_a_value_has_a_cell(value: object, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize("part", CATALOGUES)
def test_the_page_shows_every_field_and_no_other(part: str) -> None:
    fields, default = CATALOGUES[part]
    [section] = re.findall(rf"^## {part}\n(.*?)(?=^## |\Z)", REFERENCE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    rows = [line for line in section.splitlines() if line.startswith("| `")]

    assert rows == [
        f"| `{field.name}`{' *' if field.name in default else ''} | {field.title} | {field.doc} |"
        for field in fields.values()
    ]
