"""Templates with anything in any place: each is rendered whole, or refused with paths; nothing else ever happens."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tenure.integrations.kubernetes.metal3_data.template.data_yaml import data_yaml
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineObject, PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.template_fields import TemplateRefused
from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort
from tests.integrations.kubernetes.metal3_data.whole_template import BOOTS_BY, CARDS, NOTES, whole_spec
from tests.integrations.kubernetes.metal3_data.worked_example import (
    SEED_TEMPLATE,
    TEMPLATE,
    Document,
    document,
    facts,
    rendered,
    template_with,
)
from tests.scale import in_proof

TEMPLATES = [template_with(**whole_spec(version)) for version in ("v1beta1", "v1beta2")]
TEMPLATES += [document(text) for text in (SEED_TEMPLATE, TEMPLATE)]
ANYTHING: list[Any] = [
    None, True, False, 0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 1.5, "", " ", "yes", "null", "1e3", "é", "😀",
    "52:54:00:12:34:56", "a" * 5000, [], {}, [[]], [None], {"a": None}, {"": ""}, {1: 2}, ["a"] * 3, "10.0.0.1", "::1",
    "0.0.0.0/0", "::ffff:1.2.3.4", "fe80::1%eth0", "010.1.1.1", "256.1.1.1", "\x00", "\x85", "\u2028", "x\ny",
    "machine", "baremetalhost", "v4", "v6", "noted", "other",
]  # fmt: skip
KEYS = ("x", "Name", "key", "name", "id", "string", "prefix", "services", "fromPoolRef")
NAMED = {sort: MachineObject(str(sort), {"rack": "r"}, NOTES) for sort in ObjectSort}
ADDRESSES = {
    **dict.fromkeys(("v4", "bare", "noted", "other", "pool-1", "pool-2", "bm-v4"), PoolAddress("10.0.0.9", 24)),
    **dict.fromkeys(("v6", "bm-v6"), PoolAddress("fd00::9", 64, "fd00::1", ("fd00::53",))),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything within a document."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def mangled(template: Document, chance: random.Random) -> Document:
    """Return a template of which something is replaced, missing, there twice, or too much."""
    found = copy.deepcopy(template)
    for _ in range(chance.choice((1, 1, 2))):
        *parents, key = chance.choice(list(places(found)))
        parent: Any = found
        for each in parents:
            parent = parent[each]
        anything = copy.deepcopy(chance.choice(ANYTHING))
        match chance.randrange(6):
            case 0:
                del parent[key]
            case 1 if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
            case 1:
                parent[chance.choice(KEYS)] = anything
            case _:
                parent[key] = anything
    return found


@pytest.mark.parametrize("count", [120, in_proof(3000)])
def test_whatever_a_template_says_it_is_rendered_whole_or_refused_with_paths(count: int) -> None:
    chance = random.Random(count)  # the same templates in every run
    faults: list[tuple[tuple[str, str], ...]] = []
    for _ in range(count):
        written = mangled(chance.choice(TEMPLATES), chance)
        cards = CARDS if chance.random() < 0.9 else None
        try:
            found = rendered(written, facts(objects=NAMED, interfaces=cards, boot_mac=BOOTS_BY), ADDRESSES)
        except TemplateRefused as refused:
            faults.append(refused.faults)
            continue
        for part in (found.meta_data, found.network_data):
            assert yaml.safe_load(data_yaml(part)) == part, written

    assert count / 2 < len(faults) < count
    assert all(path and 0 < len(reason) < 400 for each in faults for path, reason in each)


def test_a_text_of_any_length_in_any_place_is_refused_in_a_few_words() -> None:
    """One place after the other; without addresses and cards, so that whatever is not found is named."""
    faults: list[tuple[str, str]] = []
    for template in TEMPLATES:
        for *parents, key in places(template):
            written: Any = copy.deepcopy(template)
            parent = written
            for each in parents:
                parent = parent[each]
            if not isinstance(parent[key], str):
                continue
            parent[key] = "a" * 5000
            for addresses in (ADDRESSES, {}):
                try:
                    rendered(written, facts(objects=NAMED, interfaces=CARDS, boot_mac=BOOTS_BY), addresses)
                except TemplateRefused as refused:
                    faults += refused.faults

    assert len(faults) > 100
    assert [(path, reason) for path, reason in faults if not path or not 0 < len(reason) < 400] == []
