"""Addresses that have left a pool: an entry of no pod holds each of them, so that no manager gives it out.

A process that knows an older list, and a Go manager, whose list never changes, find the address taken (VS9). Such an
entry stays until the address is one of the pool again.
"""

from datetime import datetime

from tenure.integrations.vmpool.state.go_json import whole_seconds
from tenure.integrations.vmpool.state.pool_state import VMAllocation

TENURE_NODE = "tenure"
"""The node of entries that are of no pod."""
HELD_BACK = "drained-"
"""Ids of such entries begin so, and end with their address."""


def held_back(ip: str, now: datetime) -> VMAllocation:
    """Return the entry that holds an address back."""
    return VMAllocation(f"{HELD_BACK}{ip}", ip, TENURE_NODE, "", "", whole_seconds(now))


def is_held_back(entry: VMAllocation) -> bool:
    """Return whether an entry is of no pod, and holds an address back."""
    return entry.node_name == TENURE_NODE and entry.allocation_id == f"{HELD_BACK}{entry.ip}"
