"""The audit of a pool: one structured line for each thing that happens, all with the words "IP allocation" (VS6).

``grep "IP allocation"`` on the log of a process finds every one of them. Fields are ``name=value``, quoted where a
value has blanks, quotes or control characters; the record has them as ``pool_event`` and ``pool_fields``, too.
"""

import enum
import json
import logging

LOG = logging.getLogger("tenure.vmpool")


class PoolEvent(enum.StrEnum):
    """What a line says; the name is stable, the text is for people."""

    ATTEMPT = "attempt"
    READ = "looked at"
    ALLOCATED = "allocated"
    EXISTING = "existing allocation returned"
    WAITING = "waits for a VM that is free"
    EXHAUSTED = "refused: no available IPs in pool"
    RELEASED = "released"
    NOT_FOUND = "nothing to release"
    CONFLICT = "conflict: another writer was faster"
    RESOLVED = "conflict resolved"
    SETTLED = "lost answer settled by reading again"
    FAILED = "failed"
    REPAIRED = "state repaired"
    RECOVERY = "recovery"
    CLEANUP = "VM cleanup"
    CLEANUP_FAILED = "NOT releasing IP due to failed cleanup"
    VANISHED = "vanished: another manager overwrote it"
    GONE = "gone: released by another manager, or overwritten"
    RETURNED = "returned: released by Tenure, and there again: another manager wrote over it"
    REASSERTED = "asserted again after it had vanished"
    LOST = "lost: another id has the IP by now"
    MOVED = "pool moved to another mode"
    RESIZED = "pool resized"
    RESIZE_FAILED = "pool NOT resized: a program failed"
    WARNING = "warning"


LEVELS = {
    PoolEvent.ATTEMPT: logging.DEBUG, PoolEvent.READ: logging.DEBUG,
    PoolEvent.FAILED: logging.ERROR, PoolEvent.LOST: logging.ERROR,
    **dict.fromkeys(
        (PoolEvent.VANISHED, PoolEvent.GONE, PoolEvent.RETURNED, PoolEvent.REPAIRED, PoolEvent.CLEANUP_FAILED,
         PoolEvent.WARNING, PoolEvent.EXHAUSTED, PoolEvent.RESIZE_FAILED), logging.WARNING),
}  # fmt: skip
"""Where it is not information."""


def audit(event: PoolEvent, **fields: object) -> None:
    """Write a line; fields that are None or empty say nothing and are left out."""
    level = LEVELS.get(event, logging.INFO)
    if not LOG.isEnabledFor(level):
        return
    said = {name: value for name, value in fields.items() if value is not None and value != ""}
    words = "".join(f" {name}={_quoted(value)}" for name, value in said.items())
    LOG.log(level, "IP allocation %s:%s", event.value, words, extra={"pool_event": event.name, "pool_fields": said})


def _quoted(value: object) -> str:
    text = str(value)
    is_plain = text.isprintable() and not any(each in text for each in ' "=')
    return text if is_plain else json.dumps(text, ensure_ascii=False)
