"""The names of the first design: what becomes of each, and that the page says the same (KD2)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.admission.seed_spellings import SEED_SPELLINGS, SeedSpelling, Treatment
from tests.integrations.kubernetes.metal3.admission.admission_requests import a_pool, an_address, changed, mutated
from tests.integrations.kubernetes.metal3.admission.seed_objects import SEED_OBJECTS

PAGE = Path(__file__).parents[5] / "docs" / "reference" / "kubernetes-seed.md"
ROW = re.compile(r"^\| (\w+) \| `([^`]+)` \| (?:`([^`]+)`|([^|]*)) \| (\w[\w ]*)[^|]* \|$", re.MULTILINE)
MAPS_OF_USERS = {"preAllocations", "allocations", "indexes", "dataNames"}
"""Maps whose keys are no names of the design."""

SEED = {each["kind"]: each for each in SEED_OBJECTS}


def rows() -> list[tuple[str, str, str | None, str]]:
    """Return the rows of the page: kind, name, today's name, and what happens."""
    return [(kind, name, today or None, what) for kind, name, today, _, what in ROW.findall(PAGE.read_text("utf-8"))]


def names_in(value: Any, path: str = "") -> Iterator[str]:
    """Yield the names in an object, down to those that have no names below them."""
    if isinstance(value, list):
        for each in value:
            yield from names_in(each, f"{path}[]")
    elif isinstance(value, dict) and path.rpartition(".")[2] not in MAPS_OF_USERS:
        for name, below in value.items():
            yield from names_in(below, f"{path}.{name}" if path else name)
    else:
        yield path


async def test_the_seeds_pool_is_stored_without_its_allocations() -> None:
    """KD2: the controller writes the status."""
    pool, decision = await mutated(SEED["IPPool"])

    assert pool["status"] == {"lastUpdated": "2020-04-02T06:36:09Z"}
    assert pool["spec"] == {**SEED["IPPool"]["spec"], "allocationStrategy": "sequential"}
    assert decision.warnings == [
        "status.allocations: is dropped, it is an early spelling; today's name is status.indexes"
    ]


async def test_the_text_of_the_seed_calls_pre_allocations_allocations() -> None:
    """KD2: where both are there and differ, the message names today's name."""
    fixed, others = {"c": "10.0.0.5"}, {"c": "10.0.0.6"}
    pool, decision = await mutated(a_pool(allocations=fixed))
    _, refused = await mutated(a_pool(allocations=fixed, preAllocations=others))
    empty, _ = await mutated(a_pool(allocations={}))

    assert (pool["spec"]["preAllocations"], "allocations" in pool["spec"]) == (fixed, False)
    assert decision.warnings == ["spec.allocations: is stored as spec.preAllocations, which is today's spelling"]
    assert refused.code == 422
    assert "write spec.preAllocations alone" in refused.errors[0]
    assert "preAllocations" not in empty["spec"]


async def test_the_seeds_address_is_stored_in_todays_names() -> None:
    """KD2."""
    address, decision = await mutated(SEED["IPAddress"])

    assert address["spec"] == {
        "address": "192.168.0.11",
        "claim": {"name": "RenderedData-1"},
        "pool": {"name": "pool-1"},
        "prefix": 24,
        "gateway": "192.168.0.1",
    }
    assert "status" not in address
    assert [warning.split(":")[0] for warning in decision.warnings] == [
        "spec.Address",
        "spec.claim.Name",
        "spec.pool.Name",
        "status",
    ]


async def test_the_seeds_claim_is_stored_without_its_owner() -> None:
    """KD2."""
    claim, decision = await mutated(SEED["IPClaim"])

    assert claim["spec"] == {"pool": {"name": "pool-1"}}
    assert claim["status"] == {"errorMessage": ""}
    assert len(decision.warnings) == 2


async def test_both_spellings_are_accepted_where_they_say_the_same() -> None:
    address, decision = await mutated(an_address("a", "10.0.0.5", "c", Address="10.0.0.5"))

    assert address["spec"] == an_address("a", "10.0.0.5", "c")["spec"]
    assert decision.warnings == ["spec.Address: is stored as spec.address, which is today's spelling"]


async def test_both_spellings_are_refused_where_they_differ() -> None:
    """KD2: the message names today's spelling."""
    both = changed(an_address("a", "10.0.0.5", "c"), Address="10.0.0.6", pool={"name": "p", "Name": "q"})

    _, decision = await mutated(both)

    assert (decision.code, decision.reason) == (422, "Invalid")
    (text,) = decision.errors
    assert text.startswith('IPAddress.ipam.metal3.io "a" is invalid: [spec.Address: Invalid value: "10.0.0.6": differs')
    assert "write spec.address alone" in text
    assert "write spec.pool.name alone" in text


@pytest.mark.parametrize("empty", [None, ""])
async def test_an_early_spelling_without_a_value_changes_nothing(empty: str | None) -> None:
    address, _ = await mutated(an_address("a", "10.0.0.5", "c", Address=empty))

    assert address["spec"] == an_address("a", "10.0.0.5", "c")["spec"]


def test_the_page_has_the_rows_of_the_table() -> None:
    treatments = {str(each) for each in Treatment}
    ours = {spelling.kind for spelling in SEED_SPELLINGS}
    shown = [
        SeedSpelling(kind, name, today, Treatment(what))
        for kind, name, today, what in rows()
        if kind in ours and what in treatments
    ]

    assert sorted(shown) == sorted(SEED_SPELLINGS)


@pytest.mark.parametrize("kind", sorted(SEED))
def test_the_page_has_a_row_for_each_name_of_the_seeds_objects(kind: str) -> None:
    shown = {name for row_kind, name, _, _ in rows() if row_kind == kind}
    metadata = {"apiVersion", "kind", "metadata.name", "metadata.namespace"}

    missing = [
        name
        for name in dict.fromkeys(names_in(SEED[kind]))
        if name not in metadata and not any(name == each or name.startswith((f"{each}.", f"{each}[")) for each in shown)
    ]
    assert missing == []
