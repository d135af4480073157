"""The refusal of an object, in the words that an API server has for invalid objects."""

import json
from collections.abc import Sequence

from tenure.integrations.kubernetes.metal3.objects.pool_spec import SpecFault
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import Decision

MOST_FAULTS, LONGEST_VALUE = 100, 200
"""An answer must stay readable, and small enough for the API server to take it."""


def refusal(kind: ResourceType, name: str, faults: Sequence[SpecFault], warnings: Sequence[str] = ()) -> Decision:
    """Refuse an object with all of its errors in one text (A18)."""
    listed = [f"{fault.field}: Invalid value: {_shown(fault.value)}: {fault.reason}" for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        listed.append(f"and {len(faults) - MOST_FAULTS} more errors")
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    return Decision([f'{kind.kind}.{kind.group} "{name}" is invalid: {text}'], warnings)


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return "a value of too many levels"
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
