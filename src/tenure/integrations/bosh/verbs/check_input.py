"""What callers hand to the door, checked at its edge: behind it everything has the type that it is said to have."""

import re
from collections.abc import Collection, Mapping

from tenure.integrations.bosh.running_vms.vm_state import VmState
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name, shown

_UNWRITABLE = re.compile("[\ud800-\udfff]")
"""Halves of characters: no file and no store has them."""


def check_document(value: object, *, field: str) -> str:
    """Return a document as it is, if it is text that can be kept; what it says is read later."""
    if not isinstance(value, str):
        raise Invalid(f"{field}: a document in text is needed, not {type(value).__name__}", field=field)
    half = _UNWRITABLE.search(value)
    if half is not None:
        raise Invalid(f"{field}: character {half.start() + 1} is half of one, and cannot be kept", field=field)
    return value


def check_ident(value: object) -> str:
    """Return what names an instance: ``group/uuid`` or ``group/index``."""
    return check_name(value, field="instance")


def check_vm_state(value: object) -> Mapping[str, VmState] | None:
    """Return what VMs said, by the names of their instances; None if they were not asked."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise Invalid(f"vm_state: a mapping of instances is needed, not {shown(value)}", field="vm_state")
    for ident, said in value.items():
        name = check_name(ident, field="vm_state")
        if not isinstance(said, VmState):
            raise Invalid(f"vm_state: of {name!r} a VmState is needed, not {shown(said)}", field="vm_state")
    return value


def check_vms(value: object) -> Collection[str]:
    """Return the names of VMs; a single text is not several names."""
    if not isinstance(value, Collection) or isinstance(value, str | bytes):
        raise Invalid(f"vms: the names of all VMs are needed, as a list or set, not {shown(value)}", field="vms")
    return [check_name(each, field="vms") for each in value]
