"""The state of a pool, as the text under ``allocation-state`` says it: who has which VM, and which are free.

Fields that nobody here knows are kept, at the top and in entries, behind the known ones; the Go managers drop them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tenure.integrations.vmpool.state.go_json import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    NotReadable,
    in_byte_order,
    read_integer,
    read_json,
    read_list,
    read_object,
    read_string,
    read_time,
    split_fields,
    time_text,
    whole_seconds,
    write_block,
    write_json,
    write_text,
    write_time,
)

STATE_FIELDS = {name.casefold(): name for name in ("allocatedIPs", "availableIPs", "lastUpdated", "version")}
ENTRY_NAMES = ("allocationID", "ip", "nodeName", "podName", "podNamespace", "allocatedAt")
ENTRY_FIELDS = {name.casefold(): name for name in ENTRY_NAMES}


@dataclass(frozen=True, slots=True)
class VMAllocation:
    """A VM that is allocated: which one, under which id, by which node, for which pod, since when."""

    allocation_id: str
    ip: str
    node_name: str = ""
    pod_name: str = ""
    pod_namespace: str = ""
    allocated_at: datetime | None = None
    """UTC, whole seconds; none where another writer left it out."""
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    """Fields of other writers."""


@dataclass(frozen=True, slots=True)
class PoolState:
    """A state as it was read, or as it is to be written. ``available`` is in the order that the hash counts in."""

    allocated: Mapping[str, VMAllocation]
    """By the key under which an entry stands, which counts, whatever the entry itself says."""
    available: tuple[str, ...]
    last_updated: datetime | None = None
    version: int = 0
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    @classmethod
    def fresh(cls, pool_ips: Sequence[str]) -> "PoolState":
        """Return the state of a pool of which nothing is allocated, and nothing was ever written."""
        return cls({}, tuple(pool_ips), version=1)

    def entry(self, allocation_id: str) -> VMAllocation | None:
        """Return the entry under an id, with that id; nothing if there is none."""
        found = self.allocated.get(allocation_id)
        if found is None or found.allocation_id == allocation_id:
            return found
        return replace(found, allocation_id=allocation_id)

    def written_at(self, now: datetime) -> "PoolState":
        """Return the state as the next write has it: a version more, which wraps around as Go's does."""
        version = SMALLEST_INTEGER if self.version == LARGEST_INTEGER else self.version + 1
        return replace(self, version=version, last_updated=whole_seconds(now))


def read_state(text: str) -> PoolState:
    """Read the text of a state; raise ``NotReadable``. Cost: O(n)."""
    found, unknown = split_fields(read_json(text), STATE_FIELDS, "state")
    entries = read_object(found.get("allocatedIPs"), "allocatedIPs")
    available = read_list(found.get("availableIPs"), "availableIPs")
    return PoolState(
        {key: read_entry(key, entry) for key, entry in entries.items()},
        tuple([read_string(each, "availableIPs") for each in available]),
        read_time(found.get("lastUpdated"), "lastUpdated"),
        read_integer(found.get("version"), "version"),
        unknown,
    )


def write_state(state: PoolState) -> str:
    """Write a state as Go's managers do, byte for byte where there are no unknown fields. Cost: O(n log n)."""
    allocated = state.allocated
    entries = [f"{write_text(key)}: {_write_entry(allocated[key])}" for key in in_byte_order(allocated)]
    members = [
        f'"allocatedIPs": {write_block("{}", entries, "  ")}',
        f'"availableIPs": {write_block("[]", map(write_text, state.available), "  ")}',
        f'"lastUpdated": {write_time(state.last_updated)}',
        f'"version": {state.version}',
        *_write_unknown(state.unknown, "  "),
    ]
    return write_block("{}", members, "")


def entry_document(entry: VMAllocation) -> dict[str, Any]:
    """Write an entry as a document, for places that are not the seed's."""
    said = {
        "allocationID": entry.allocation_id, "ip": entry.ip, "nodeName": entry.node_name, "podName": entry.pod_name,
        "podNamespace": entry.pod_namespace,
        "allocatedAt": None if entry.allocated_at is None else time_text(entry.allocated_at),
    }  # fmt: skip
    return {**said, **entry.unknown}


def read_entry(key: str, value: Any) -> VMAllocation:
    """Read an entry that stands under a key; raise ``NotReadable``."""
    try:
        found, unknown = split_fields(value, ENTRY_FIELDS, "entry")
        allocation_id, ip, node_name, pod_name, pod_namespace, allocated_at = map(found.get, ENTRY_NAMES)
        return VMAllocation(
            read_string(allocation_id, "allocationID"),
            read_string(ip, "ip"),
            read_string(node_name, "nodeName"),
            read_string(pod_name, "podName"),
            read_string(pod_namespace, "podNamespace"),
            read_time(allocated_at, "allocatedAt"),
            unknown,
        )
    except NotReadable as error:
        raise NotReadable(f"allocatedIPs[{key[:80]!r}]: {error}") from None


def _write_entry(entry: VMAllocation) -> str:
    known = (
        f'"allocationID": {write_text(entry.allocation_id)},\n      "ip": {write_text(entry.ip)},\n      '
        f'"nodeName": {write_text(entry.node_name)},\n      "podName": {write_text(entry.pod_name)},\n      '
        f'"podNamespace": {write_text(entry.pod_namespace)},\n      "allocatedAt": {write_time(entry.allocated_at)}'
    )
    return write_block("{}", [known, *_write_unknown(entry.unknown, "      ")], "    ")


def _write_unknown(fields: Mapping[str, Any], indent: str) -> list[str]:
    return [f"{write_text(name)}: {write_json(value, indent)}" for name, value in fields.items()]
