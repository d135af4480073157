"""Edits as values: what the log tells of them."""

import ipaddress
import json
from dataclasses import fields
from types import MappingProxyType

import pytest

from tenure.kernel.plan import edits
from tenure.kernel.plan.edits import KEEP

KINDS = [kind for kind in vars(edits).values() if isinstance(kind, type) and issubclass(kind, edits.Edit)]
KINDS.remove(edits.Edit)


def test_every_edit_has_a_verb_of_its_own() -> None:
    assert len({kind.verb for kind in KINDS}) == len(KINDS) == 15


def test_an_edit_tells_what_was_asked_and_nothing_else() -> None:
    edit = edits.AddPool(network="net1", range="192.0.2.10-192.0.2.20", policy="random")

    assert edit.told() == {"network": "net1", "range": "192.0.2.10-192.0.2.20", "policy": "random"}


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (edits.AddPool(network="n", range="192.0.2.1"), {"range": "192.0.2.1"}),
        (
            edits.AddPool(network="n", range="192.0.2.1", cooling_s=0, rank=0),
            {"range": "192.0.2.1", "cooling_s": 0, "rank": 0},
        ),
        (edits.AddSubnet(network="n", cidr="192.0.2.0/24"), {"cidr": "192.0.2.0/24"}),
        (edits.AddSubnet(network="n", cidr="192.0.2.0/24", keep_back=[]), {"cidr": "192.0.2.0/24", "keep_back": []}),
    ],
)
def test_nothing_and_none_at_all_that_were_said_differ_from_what_was_not_said(
    edit: edits.Edit, told: dict[str, object]
) -> None:
    assert edit.told() == {"network": "n", **told}


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (edits.ModifyNetwork(network="n", retired=False), {"retired": False}),
        (edits.ModifySubnet(network="n", subnet="s", gateway=None), {"subnet": "s", "gateway": None}),
        (edits.ModifyPool(network="n", pool="p", cooling_s=0, name=None), {"pool": "p", "cooling_s": 0, "name": None}),
        (edits.ModifyNetwork(network="n", tags=[], description=""), {"tags": [], "description": ""}),
    ],
)
def test_a_modify_tells_what_it_takes_away(edit: edits.Edit, told: dict[str, object]) -> None:
    assert edit.told() == {"network": "n", **told}


def test_what_is_told_can_be_written_as_json() -> None:
    told = edits.AddSubnet(
        network="n",
        cidr=ipaddress.ip_network("192.0.2.0/24"),
        gateway=ipaddress.ip_address("192.0.2.1"),
        dns=[ipaddress.ip_address("192.0.2.2")],
        keep_back=frozenset({"gateway"}),  # type: ignore[arg-type]
        labels=MappingProxyType({"a": "b"}),
    ).told()

    assert json.loads(json.dumps(told)) == {
        "network": "n",
        "cidr": "192.0.2.0/24",
        "gateway": "192.0.2.1",
        "dns": ["192.0.2.2"],
        "keep_back": ["gateway"],
        "labels": {"a": "b"},
    }


@pytest.mark.parametrize("kind", [edits.ModifyNetwork, edits.ModifySubnet, edits.ModifyPool])
def test_a_modify_keeps_by_default_whatever_it_can_change(kind: type[edits.Edit]) -> None:
    named = {"network", "subnet", "pool"}

    assert all(entry.default is KEEP for entry in fields(kind) if entry.name not in named)
    assert repr(KEEP) == "KEEP"
