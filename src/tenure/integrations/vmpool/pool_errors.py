"""What a VM pool refuses, in the words of the Go managers: ``outer: inner``, so that their users' searches still hit.

    TenureError
    ├── Invalid                    a setting, an id, a name or an IP is wrong by itself (field)
    │   ├── BadArgument            a number or a word that an argument cannot be; a ``ValueError`` as well
    │   ├── NodeNameUnknown        nothing says on which node this runs
    │   └── NamespaceUnknown       nothing says in which namespace the pool is
    ├── PoolExhausted
    │   └── VMPoolExhausted        "no available IPs in pool"
    ├── Conflict
    │   ├── PoolSwapConflict       other writers were faster until the retries were used up
    │   └── PoolStateUnreadable    the text in the ConfigMap is no state; it stays as it is (VD5)
    │       └── PoolStateMisplaced the state is under ``binaryData``, where no manager looks
    ├── StoreUnavailable
    │   └── PoolUnavailable        the API server did not answer in time (outcome)
    ├── PoolForbidden              the role does not allow it (403)
    ├── PoolTooLarge               the state would not fit into a ConfigMap (size, limit, remedy)
    ├── PoolWriteRefused           the API server will not have this write at all (400, 422, …)
    │   └── PoolNamespaceMissing   the namespace of the pool is not there (namespace)
    ├── VMNotReady                 "invalid allocated IP": the VM does not answer, or is to be cleaned up (ip)
    └── VMWorkUnfinished           work on VMs has ended before it was done; what is left of it is in the message

A conflict is one only where another writer was faster: a write that is forbidden or too large says so.
"""

from typing import Literal

from tenure.kernel.errors import Conflict, Invalid, PoolExhausted, StoreUnavailable, TenureError

NO_CLIENT = "kubernetes client cannot be nil"
NO_CONFIGURATION = "configuration cannot be nil"
NO_POOL_IPS = "pool IPs cannot be empty"
INVALID_IP = "invalid IP address"
INVALID_ALLOCATED_IP = "invalid allocated IP"
NO_AVAILABLE_IPS = "no available IPs in pool"
NO_NODE_NAME = "unable to determine node name"
NO_NAMESPACE = "unable to determine namespace"
READ_FAILED = "failed to retrieve pool state"
CONFIG_MAP_READ_FAILED = "failed to retrieve the pool state configmap"
WRITE_FAILED = "failed to update pool state"
CONFIG_MAP_WRITE_FAILED = "failed to update the pool state configmap"
CONFLICT = "conflict"
RETRIES_USED_UP = {
    "allocate": "failed to allocate IP after retries",
    "deallocate": "failed to deallocate IP after retries",
}
"""By operation; other operations say that the state could not be updated."""

OPERATOR_COMMAND = "repair it with replace_unreadable, which keeps a copy"
MOVED_BY_REPAIR = "a repair (`tenure vmpool repair`) moves it to data, as it is"
LOOK_AT_CELL = "look at the ConfigMap of that name, and mend or remove what stands there"
"""What an operator does about a cell that cannot be read: it is one of many, and the others are as they were."""


def wrapped(*parts: object) -> str:
    """Write a chain of errors as the Go managers do: the outermost first."""
    return ": ".join(str(part) for part in parts if str(part))


class BadArgument(Invalid, ValueError):
    """An argument is no such number, or none of the words that it may be."""

    code = "bad_argument"


class NodeNameUnknown(Invalid):
    """Nothing says on which node this process runs."""

    code = "node_name_unknown"

    def __init__(self, message: str) -> None:
        super().__init__(wrapped(NO_NODE_NAME, message), field="node_name")


class NamespaceUnknown(Invalid):
    """Nothing says in which namespace the pool is."""

    code = "namespace_unknown"

    def __init__(self, message: str) -> None:
        super().__init__(wrapped(NO_NAMESPACE, message), field="namespace")


class VMPoolExhausted(PoolExhausted):
    """Every VM of the pool is allocated; said only after the ConfigMap was read."""

    code = "vm_pool_exhausted"

    def __init__(self, *, in_use: int) -> None:
        TenureError.__init__(self, NO_AVAILABLE_IPS)
        self.in_use = in_use


class PoolSwapConflict(Conflict):
    """Other writers were faster, again and again; nothing was changed for this caller."""

    code = "pool_swap_conflict"

    def __init__(self, operation: str, message: str, *, attempts: int) -> None:
        outer = RETRIES_USED_UP.get(operation, WRITE_FAILED)
        super().__init__(wrapped(outer, CONFLICT, message))
        self.operation = operation
        self.attempts = attempts


class PoolStateUnreadable(Conflict):
    """What is under the key is no state that could be read; it is neither changed nor overwritten."""

    code = "pool_state_unreadable"

    def __init__(self, reason: str, remedy: str = OPERATOR_COMMAND) -> None:
        what = f"failed to unmarshal the allocation state: {reason}"
        super().__init__(f"{wrapped(READ_FAILED, what)}; nothing was changed: {remedy}")
        self.reason = reason
        self.remedy = remedy


class PoolStateMisplaced(PoolStateUnreadable):
    """The state is under ``binaryData`` of the ConfigMap, and can be read there; every manager looks under ``data``."""

    code = "pool_state_misplaced"

    def __init__(self, key: str, text: str) -> None:
        super().__init__(f"{key} is in binaryData, and has to be in data", MOVED_BY_REPAIR)
        self.key = key
        self.text = text


class PoolUnavailable(StoreUnavailable):
    """The API server did not answer, or not in time. ``outcome`` says whether a write may have been done."""

    code = "pool_unavailable"

    def __init__(self, message: str, *, outcome: Literal["none", "unknown"]) -> None:
        super().__init__(message, outcome=outcome)


class PoolForbidden(TenureError):
    """The API server knows the caller, and the caller's role does not allow this on this ConfigMap."""

    code = "pool_forbidden"


class PoolTooLarge(TenureError):
    """The values of the ConfigMap would be larger together than a ConfigMap may be; nothing was written."""

    code = "pool_too_large"

    def __init__(
        self,
        *,
        size: int,
        limit: int,
        remedy: str = "release allocations, or spread the addresses over several pools",
    ) -> None:
        super().__init__(
            f"pool state too large: {size} bytes, of {limit} that a ConfigMap may have; nothing was changed: {remedy}"
        )
        self.size = size
        self.limit = limit
        self.remedy = remedy


class PoolWriteRefused(TenureError):
    """The API server refuses the write for a reason that no retry removes; nothing was changed."""

    code = "pool_write_refused"


class PoolNamespaceMissing(PoolWriteRefused):
    """The namespace that a pool is to be kept in is not there; Tenure makes none."""

    code = "pool_namespace_missing"

    def __init__(self, namespace: str, message: str) -> None:
        remedy = f"create it first (`kubectl create namespace {namespace}`), or name another one (POOL_NAMESPACE)"
        super().__init__(wrapped(message, f"there is no namespace {namespace!r}: {remedy}"))
        self.namespace = namespace


class VMNotReady(TenureError):
    """A VM that was to be allocated does not answer, or is still to be cleaned up; nothing was changed."""

    code = "vm_not_ready"

    def __init__(self, ip: str, cause: str) -> None:
        super().__init__(wrapped(INVALID_ALLOCATED_IP, ip, cause))
        self.ip = ip
        self.cause = cause


class VMWorkUnfinished(TenureError):
    """Work on VMs has ended before it was done: an instance that was to be made, or a recovery."""

    code = "vm_work_unfinished"
