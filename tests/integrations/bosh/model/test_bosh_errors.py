"""Every kind of fault that the door can tell is told by some document or story here: message, name and number."""

import ast
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

import tenure
from tenure.integrations import bosh
from tenure.integrations.bosh.documents.manifest import read_manifest
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, Refused, Rejected
from tenure.integrations.bosh.running_vms.vm_state import read_vm_state
from tests.integrations.bosh.conformance.town import Town
from tests.integrations.bosh.documents import configs, manifests
from tests.integrations.bosh.refused_afterwards import AFTERWARDS, STATES, UNDONE
from tests.integrations.bosh.refused_stories import STORIES, Refusal
from tests.integrations.bosh.wrong_documents import CONFIGS, MANIFESTS, OWN_MANIFESTS, SECOND_CONFIGS, Wrong

SOURCES = Path(bosh.__file__).parent
NAMED = re.compile(r"\[(\w+) (\d+)\]$")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

UNRAISED = {
    BoshErrorKind.NETWORK_RESERVATION_IP_NOT_OWNED,  # what is not held is released without a word: E18
    BoshErrorKind.NETWORK_RESERVATION_WRONG_TYPE,  # told before, as a mismatch or as not supported: C4, G3
    BoshErrorKind.NETWORK_RESERVATION_IP_OUTSIDE_SUBNET,  # told before: C4; what a VM says and no subnet has is kept
}
"""Numbers of BOSH that are kept free here: what they stand for is told earlier, or is no fault."""

EVERY: list[Wrong | Refusal] = [
    *CONFIGS,
    *SECOND_CONFIGS,
    *MANIFESTS,
    *OWN_MANIFESTS,
    *STATES,
    *STORIES,
    *AFTERWARDS,
    *UNDONE,
]


def named(case: Wrong | Refusal) -> str:
    """Name a case by its error, and by how its message begins."""
    return re.sub(r"\W+", "-", f"{case.told.rpartition('[')[2]} {case.told[:60]}")


def told(faults: Iterable[BoshFault]) -> list[str]:
    """Write faults without their places."""
    return [str(fault._replace(place=None)) for fault in faults]


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with await tenure.open_async(f"sqlite:///{tmp_path / 'tenure.db'}") as ledger:
        yield Town(ledger)
        assert await ledger.verify() == []


@pytest.mark.sampled
@pytest.mark.parametrize("case", CONFIGS, ids=named)
def test_what_is_wrong_with_a_cloud_config_is_told_once_and_with_its_place(case: Wrong) -> None:
    found = configs.faults(case.text)

    assert told(found) == [case.told]
    assert all(fault.place is not None for fault in found)


@pytest.mark.parametrize("case", SECOND_CONFIGS, ids=named)
def test_what_is_wrong_with_a_second_cloud_config_is_told(case: Wrong) -> None:
    assert told(configs.faults(configs.WORKED, case.text)) == [case.told]


@pytest.mark.sampled
@pytest.mark.parametrize("case", MANIFESTS, ids=named)
def test_what_is_wrong_with_a_manifest_is_told_once_and_with_its_place(case: Wrong) -> None:
    found = manifests.faults(case.text)

    assert told(found) == [case.told]
    assert all(fault.place is not None for fault in found)


@pytest.mark.parametrize("case", OWN_MANIFESTS, ids=named)
def test_what_is_wrong_with_a_manifest_with_its_own_networks_is_told(case: Wrong) -> None:
    with pytest.raises(Rejected) as caught:
        read_manifest("alpha.yml", case.text, None)

    assert told(caught.value.faults) == [case.told]


@pytest.mark.parametrize("case", STATES, ids=named)
def test_what_is_wrong_with_what_vms_say_is_told(case: Wrong) -> None:
    with pytest.raises(Rejected) as caught:
        read_vm_state(case.text, "state.json")

    assert told(caught.value.faults) == [case.told]


@pytest.mark.sampled
@pytest.mark.parametrize("case", [*STORIES, *AFTERWARDS], ids=named)
async def test_what_cannot_be_had_is_refused_and_nothing_is_changed(case: Refusal, town: Town) -> None:
    refused = await case.story(town)
    before = [change.seq async for change in town.ledger.changes()]
    with pytest.raises((Refused, Rejected)) as caught:
        await refused

    assert isinstance(caught.value, Refused | Rejected)
    assert [UUID.sub("UUID", text) for text in told(caught.value.faults)] == [case.told]
    assert [change.seq async for change in town.ledger.changes()] == before


@pytest.mark.parametrize("case", UNDONE, ids=named)
async def test_what_cannot_be_made_is_refused_and_undone(case: Refusal, town: Town) -> None:
    refused = await case.story(town)
    with pytest.raises(Refused) as caught:
        await refused

    assert told(caught.value.faults) == [case.told]
    assert await town.ledger.papers("deployments.network") == []


def raised() -> set[BoshErrorKind]:
    """Find the kinds that the sources speak of, except where they are only compared."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        compared = {id(leaf) for node in ast.walk(tree) if isinstance(node, ast.Compare) for leaf in ast.walk(node)}
        for node in ast.walk(tree):
            named_so = (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "BoshErrorKind"
            )
            if named_so and id(node) not in compared and path.name != "bosh_errors.py":
                assert isinstance(node, ast.Attribute)
                found.add(BoshErrorKind[node.attr])
    return found


def test_every_kind_that_can_be_raised_is_raised_here() -> None:
    numbers = {(title, int(number)) for case in EVERY for title, number in NAMED.findall(case.told)}

    assert numbers == {(kind.title, kind.value) for kind in raised()}


def test_the_other_kinds_are_known_to_be_told_otherwise() -> None:
    assert set(BoshErrorKind) - raised() == UNRAISED
