"""What a VM pool is used with: the six fields of Go's ``GlobalVMPoolConfig``, and ours. Checked at birth.

Each has an argument here, a flag of ``tenure vmpool`` and an environment variable: ``SOURCES`` is the one table (VS4).
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from tenure.integrations.vmpool.pod_surroundings import find_namespace
from tenure.integrations.vmpool.pool_errors import NO_POOL_IPS, PoolTooLarge
from tenure.integrations.vmpool.retry_schedule import RETRY_MODES, RetryMode, RetrySchedule
from tenure.integrations.vmpool.state.allocation_names import check_namespace, check_node_name, check_object_name
from tenure.integrations.vmpool.state.argument_checks import check_choice, check_count, read_count, read_seconds
from tenure.integrations.vmpool.state.ip_list import MAX_RANGE_IPS, MOST_IPS, check_pool_ips, read_ip_list
from tenure.integrations.vmpool.state.pool_notes import HISTORY
from tenure.integrations.vmpool.state.pool_state import PoolState, write_state
from tenure.integrations.vmpool.state.state_repair import OUTSIDE_RULES, OutsidePool, PoolLine
from tenure.integrations.vmpool.state.state_rules import PICK_RULES, PickRule
from tenure.kernel.errors import Invalid

DEFAULT_CONFIG_MAP = "byom-ip-pool-state"
LARGEST_CONFIG_MAP = 1_048_576
"""Bytes of all values of a ConfigMap together; the API server refuses one more."""
NEARLY_FULL = 0.9
"""From this share of that size on, the status and every write warn."""
COMFORTABLE_IPS = 1000
"""Above so many addresses every write costs tens of milliseconds, and writers are in each other's way (VS5)."""
PoolMode = Literal["configmap", "per-ip", "shards", "ledger"]
MODES: tuple[PoolMode, ...] = get_args(PoolMode)
SHARDS, MOST_SHARDS = 8, 256
TOKEN_VARIABLE = "TENURE_TOKEN"  # noqa: S105 - the name of a variable
ENTRY_BYTES = 414
"""An allocated address in the text, with a pod name, a sandbox id and a node name of usual length."""

LONGEST_NAME = 240
"""A name of a pool that is longer leaves no room for the names of objects beside it."""
LONGEST_DELAY_SHARE = 3
"""No delay is longer than this part of the time that an operation has."""


def object_beside(name: str, what: str) -> str:
    """Return the name of an object beside a pool; that of the pool is cut where it leaves no room."""
    if len(name) <= LONGEST_NAME:
        return f"{name}-{what}"
    return f"{name[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:40]}-{what}"


@dataclass(frozen=True, slots=True)
class SettingSource:
    """Where a setting comes from: an argument, a flag, an environment variable."""

    argument: str
    flag: str
    variable: str
    meaning: str


SOURCES = (
    SettingSource("pool_ips", "--pool-ips", "VM_POOL_IPS", "the addresses of the VMs: a list with commas and ranges"),
    SettingSource("max_range_ips", "--max-range-ips", "MAX_RANGE_IPS", "how many addresses of a range are used"),
    SettingSource("namespace", "--pool-namespace", "POOL_NAMESPACE", "the namespace of the ConfigMap"),
    SettingSource("config_map_name", "--pool-configmap-name", "POOL_CONFIGMAP_NAME", "the name of the ConfigMap"),
    SettingSource("operation_timeout_s", "--operation-timeout", "POOL_OPERATION_TIMEOUT", "how long a call may take"),
    SettingSource("max_retries", "--max-retries", "POOL_MAX_RETRIES", "how often a write is tried again"),
    SettingSource("retry_interval_s", "--retry-interval", "POOL_RETRY_INTERVAL", "the longest first delay"),
    SettingSource("retry", "--retry", "POOL_RETRY", "'deadline', or 'go' for four attempts as client-go makes them"),
    SettingSource("node_name", "--node-name", "NODE_NAME", "the node on which allocations are made"),
    SettingSource("pool_mode", "--pool-mode", "VM_POOL_MODE", "'configmap', 'per-ip', 'shards' or 'ledger'"),
    SettingSource("pool_shards", "--pool-shards", "VM_POOL_SHARDS", "how many ConfigMaps mode shards has"),
    SettingSource("pool_ledger", "--pool-ledger", "VM_POOL_LEDGER", "the URL of the store or server of mode ledger"),
    SettingSource("pool_pick", "--pool-pick", "VM_POOL_PICK", "'hash' as the seed picks, or 'rendezvous'"),
    SettingSource("outside_pool", "--outside-pool", "POOL_OUTSIDE", "'keep' or 'drop' allocations outside the pool"),
)
"""``max_range_ips`` is a part of reading ``pool_ips`` from text, and no argument of ``VMPoolSettings`` itself."""


@dataclass(frozen=True, kw_only=True)
class VMPoolSettings:
    """Settings of one pool."""

    pool_ips: Sequence[str]
    """Each once, in any spelling; kept in canonical spelling."""
    namespace: str = field(default_factory=find_namespace)
    """That of the pod, else the default."""
    config_map_name: str = DEFAULT_CONFIG_MAP
    operation_timeout_s: float = 30.0
    """How long a call may take, with all that it waits for."""
    max_retries: int | None = None
    """How often a write is tried again; none: until the time is up."""
    retry_interval_s: float = 0.02
    """The longest first delay before a write is tried again; later ones are longer."""
    retry: RetryMode = "deadline"
    node_name: str = ""
    """Empty: found when an allocation needs it."""
    outside_pool: OutsidePool = "keep"
    """What a repair does with allocations outside the pool; allocating and deallocating always keep them."""
    pool_mode: PoolMode = "configmap"
    """Where allocations are kept; only the first is shared with Go managers."""
    pool_shards: int = SHARDS
    pool_ledger: str = ""
    """The URL of a store, or of a server; a server's token is ``pool_token``."""
    pool_token: str = field(default="", repr=False)
    pool_pick: PickRule = "hash"
    history: int = HISTORY
    """How many operations are noted in the ConfigMap; 0 for none."""
    remarks: tuple[str, ...] = ()
    """What was left out when the list of addresses was read."""
    line: PoolLine = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._set(pool_ips=check_pool_ips(self.pool_ips))
        self._set(line=PoolLine(tuple(self.pool_ips)))
        check_namespace(self.namespace, field="namespace")
        check_object_name(self.config_map_name, field="config_map_name")
        self._set(
            operation_timeout_s=read_seconds(self.operation_timeout_s, "operation_timeout_s"),
            retry_interval_s=read_seconds(self.retry_interval_s, "retry_interval_s"),
        )
        if self.max_retries is not None:
            check_count(self.max_retries, "max_retries")
        check_count(self.history, "history")
        check_choice(self.retry, "retry", RETRY_MODES)
        check_choice(self.outside_pool, "outside_pool", OUTSIDE_RULES)
        if self.node_name:
            check_node_name(self.node_name)
        self._check_mode()
        smallest = len(write_state(PoolState.fresh(self.line.ips)))
        # Where not even the free addresses fit, no write could ever succeed.
        if self.pool_mode == "configmap" and smallest > LARGEST_CONFIG_MAP:
            raise PoolTooLarge(size=smallest, limit=LARGEST_CONFIG_MAP)

    def _check_mode(self) -> None:
        check_choice(self.pool_mode, "pool_mode", MODES)
        check_choice(self.pool_pick, "pool_pick", PICK_RULES)
        check_count(self.pool_shards, "pool_shards", least=1, most=MOST_SHARDS)
        if self.pool_mode == "ledger" and not self.pool_ledger:
            needed = "mode ledger needs the URL of a store or a server, such as http://127.0.0.1:8080 (VM_POOL_LEDGER)"
            raise Invalid(f"pool_ledger: {needed}", field="pool_ledger")

    def _set(self, **values: object) -> None:
        """Write what was read of a word; from here on it is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def upstream(cls, pool_ips: Sequence[str], **given: Any) -> Self:
        """Return settings with the values of Go's provider: five retries, 100 ms, 30 s (case 82)."""
        return cls(pool_ips=pool_ips, **{"max_retries": 5, "retry_interval_s": 0.1, **given})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **given: Any) -> Self:
        """Return settings of the environment; what is given as an argument, such as by a flag, counts before it.

        ``pool_ips`` may be a list, or text with ranges; ``max_range_ips`` counts for ranges from either place. Values
        that are None, and variables that are empty, say nothing. An argument that is not known is refused.
        """
        surroundings = os.environ if environment is None else environment
        unknown = sorted(set(given) - {source.argument for source in SOURCES} - {"history", "remarks", "pool_token"})
        if unknown:
            raise Invalid(f"{unknown[0]}: there is no such setting", field=unknown[0])
        words: dict[str, Any] = {
            source.argument: value for source in SOURCES if (value := surroundings.get(source.variable, "").strip())
        } | {name: value for name, value in given.items() if value is not None}
        words["namespace"] = find_namespace(words.get("namespace", ""), environment=surroundings)
        most = words.pop("max_range_ips", MAX_RANGE_IPS)
        ips = words.pop("pool_ips", "")
        if isinstance(ips, str):
            longest = read_count(most, "max_range_ips", least=1, most=MOST_IPS)
            found = read_ip_list(ips, max_range_ips=longest, field="pool_ips")
            words["remarks"] = (*words.get("remarks", ()), *found.remarks)
            ips = found.ips
        if not ips:
            raise Invalid(f"{NO_POOL_IPS}: set VM_POOL_IPS or --pool-ips", field="pool_ips")
        for name in ("max_retries", "pool_shards"):
            if name in words:
                words[name] = read_count(words[name], name)
        if token := surroundings.get(TOKEN_VARIABLE, "").strip():
            words.setdefault("pool_token", token)
        return cls(pool_ips=ips, **words)

    @property
    def schedule(self) -> RetrySchedule:
        """Return when writes are tried again."""
        longest_s = self.operation_timeout_s / LONGEST_DELAY_SHARE
        return RetrySchedule(self.retry, self.retry_interval_s, longest_s, self.max_retries)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what an operator should know of a pool in the mode that the settings name."""
        return self.warnings_in(self.pool_mode)

    def warnings_in(self, mode: str) -> tuple[str, ...]:
        """Return what an operator should know before it bites: what was left out of the list, and its size (VS5)."""
        count = len(self.line.ips)
        said = list(self.remarks)
        if mode != "configmap":
            return tuple(said)
        if count > COMFORTABLE_IPS:
            said.append(
                f"the pool has {count} addresses in one ConfigMap, and every write carries all of them: above "
                f"{COMFORTABLE_IPS} use the mode per-ip, shards or ledger (VM_POOL_MODE), or several pools"
            )
        free = len(write_state(PoolState.fresh(self.line.ips)))
        # An address that is allocated is no longer free, where it had some 18 bytes.
        fits = max((LARGEST_CONFIG_MAP - free) // (ENTRY_BYTES - 18), 0)
        if fits < count:
            said.append(
                f"about {fits} of {count} addresses can be allocated at a time: then the ConfigMap is full "
                f"({LARGEST_CONFIG_MAP} bytes)"
            )
        return tuple(said)
