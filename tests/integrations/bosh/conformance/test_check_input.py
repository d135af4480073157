"""What is no text, no mapping or no number is refused at the door, by the name of what it was handed in as."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.kernel.errors import Invalid
from tests.integrations.bosh.conformance.town import Town, app, config, manifest

Call = Callable[[Deployments, Any], Awaitable[object]]

NO_TEXT: tuple[object, ...] = (3, True, b"x", [], {}, 1.5, object())
DOCUMENTS: dict[str, tuple[str, Call]] = {
    "upload": ("text", lambda door, value: door.upload_config(value)),
    "moved_by": ("text", lambda door, value: door.moved_by(value)),
    "plan": ("manifest", lambda door, value: door.plan(value)),
    "apply": ("manifest", lambda door, value: door.apply(value)),
    "diff": ("manifest", lambda door, value: door.diff(value)),
}
NAMES: dict[str, tuple[str, Call]] = {
    "commit": ("instance", lambda door, value: door.commit("alpha", value, vm="vm-1")),
    "fail": ("instance", lambda door, value: door.fail("alpha", value)),
    "lose": ("instance", lambda door, value: door.lose("alpha", value)),
    "stop": ("instance", lambda door, value: door.stop("alpha", value)),
    "start": ("instance", lambda door, value: door.start("alpha", value)),
    "ignore": ("instance", lambda door, value: door.ignore("alpha", value)),
    "instance": ("instance", lambda door, value: door.instance("alpha", value)),
    "why": ("instance", lambda door, value: door.why("alpha", value)),
    "recreate": ("instance", lambda door, value: door.recreate("alpha", value)),
    "recreate_missing": ("instance", lambda door, value: door.recreate_missing("alpha", value, vm="vm-1")),
    "delete_reference": ("instance", lambda door, value: door.delete_reference("alpha", value, vm="vm-1")),
    "config": ("config", lambda door, value: door.upload_config(config(), name=value)),
    "config moved_by": ("config", lambda door, value: door.moved_by(config(), name=value)),
    "run_errand": ("errand", lambda door, value: door.run_errand("alpha", value)),
    "end_errand": ("errand", lambda door, value: door.end_errand("alpha", value)),
}
HERE = manifest("alpha", app())
OTHERS: dict[str, tuple[str, Call, tuple[object, ...]]] = {
    "vm_state": ("vm_state", lambda door, value: door.apply(HERE, vm_state=value), (*NO_TEXT[:4], "x", 1.5)),
    "one of vm_state": ("vm_state", lambda door, value: door.plan(HERE, vm_state={"app/0": value}), (*NO_TEXT, None)),
    "who in vm_state": ("vm_state", lambda door, value: door.plan(HERE, vm_state={value: VmState(None)}), (3, None)),
    "check": ("vms", lambda door, value: door.check("alpha", value), (None, 3, True, "vm-12", b"x", [3], iter([]))),
    "commit_worker": ("number", lambda door, value: door.commit_worker("alpha", None, value, vm="w"), (True, "1", 1.0)),
}


async def refused(town: Town, field: str, call: Call, values: Iterable[object]) -> None:
    """See values refused by the name of what they are handed in as, and nothing changed."""
    door = Deployments(town.ledger)
    await town.upload(config(compilation={"workers": 2, "network": "lab"}))
    await town.deploy(HERE)
    await door.begin_compiling("alpha")
    before = await town.ledger.last_change()
    for value in values:
        with pytest.raises(Invalid) as caught:
            await call(door, value)
        assert (caught.value.field, caught.value.message.partition(": ")[0]) == (field, field)
    assert await town.ledger.last_change() == before


@pytest.mark.sampled
@pytest.mark.parametrize("verb", [*DOCUMENTS, *NAMES])
async def test_what_is_no_text_is_refused_by_name(town: Town, verb: str) -> None:
    await refused(town, *(DOCUMENTS | NAMES)[verb], NO_TEXT)


@pytest.mark.parametrize("verb", DOCUMENTS)
async def test_half_a_character_cannot_be_kept(town: Town, verb: str) -> None:
    await refused(town, *DOCUMENTS[verb], ["networks: []  # \ud800"])


@pytest.mark.parametrize("verb", OTHERS)
async def test_what_is_of_another_type_is_refused_by_name(town: Town, verb: str) -> None:
    await refused(town, *OTHERS[verb])


async def test_names_of_vms_are_taken_as_a_list_or_a_set(town: Town) -> None:
    await town.upload(config())
    await town.run(HERE)
    door = Deployments(town.ledger)

    assert await door.check("alpha", ["vm-1"]) == []
    assert [each.vm for each in await door.check("alpha", {"vm-12"})] == ["vm-1"]
