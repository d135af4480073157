"""Fillers: allocations of no pod, which keep addresses from being given out where a pool has left (VD4)."""

from dataclasses import replace

from tenure.integrations.vmpool.modes.allocation_book import GENERATION
from tenure.integrations.vmpool.pool_changes import now
from tenure.integrations.vmpool.state.allocation_names import FILLER
from tenure.integrations.vmpool.state.go_json import whole_seconds
from tenure.integrations.vmpool.state.held_back import TENURE_NODE, is_held_back
from tenure.integrations.vmpool.state.pool_state import VMAllocation, entry_document, read_entry

WAS = "was"
"""The field of a filler that has the allocation which it stands for."""


def without_generation(entry: VMAllocation) -> VMAllocation:
    """Return an entry as callers see it."""
    return replace(entry, unknown={name: each for name, each in entry.unknown.items() if name != GENERATION})


def filler_of(ip: str, to: str, was: VMAllocation | None = None) -> VMAllocation:
    """Return the allocation that keeps an address from being given out where the pool has left (VD4)."""
    unknown = {} if was is None else {WAS: entry_document(without_generation(was))}
    return VMAllocation(f"{FILLER}{to}-{ip}", ip, TENURE_NODE, "", "", whole_seconds(now()), unknown)


def is_filler(entry: VMAllocation) -> bool:
    """Return whether an allocation is none of a pod."""
    return entry.node_name == TENURE_NODE and entry.allocation_id.startswith(FILLER)


def is_nobodys(entry: VMAllocation) -> bool:
    """Return whether an allocation is none of a pod: a filler, or of an address that is held back."""
    return is_filler(entry) or is_held_back(entry)


def stands_for(entry: VMAllocation) -> VMAllocation | None:
    """Return the allocation that a filler stands for, if any."""
    said = entry.unknown.get(WAS) if is_filler(entry) else None
    return None if said is None else read_entry(str(said.get("allocationID")), said)
