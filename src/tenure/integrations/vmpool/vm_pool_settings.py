"""What a VM pool is used with: the six fields of Go's ``GlobalVMPoolConfig``, and ours. Checked at birth.

Each has an argument here, a flag of ``tenure vmpool`` and an environment variable: ``SOURCES`` is the one table (VS4).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tenure.integrations.vmpool.pool_errors import NO_POOL_IPS, PoolTooLarge
from tenure.integrations.vmpool.retry_schedule import RetryMode, RetrySchedule
from tenure.integrations.vmpool.state.allocation_names import check_namespace, check_node_name, check_object_name
from tenure.integrations.vmpool.state.ip_list import MAX_RANGE_IPS, check_pool_ips, read_ip_list
from tenure.integrations.vmpool.state.pool_notes import HISTORY
from tenure.integrations.vmpool.state.pool_state import PoolState, write_state
from tenure.integrations.vmpool.state.state_repair import OutsidePool, PoolLine
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

DEFAULT_NAMESPACE = "confidential-containers-system"
DEFAULT_CONFIG_MAP = "byom-ip-pool-state"
LARGEST_CONFIG_MAP = 1_048_576
"""Bytes of all values of a ConfigMap together; the API server refuses one more."""
COMFORTABLE_IPS = 1000
"""Above so many addresses every write costs tens of milliseconds, and writers are in each other's way (VS5)."""
ENTRY_BYTES = 414
"""An allocated address in the text, with a pod name, a sandbox id and a node name of usual length."""

LONGEST_DELAY_SHARE = 3
"""No delay is longer than this part of the time that an operation has."""

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?", re.ASCII)
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
LONGEST_S = 86_400.0


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
    SettingSource("outside_pool", "--outside-pool", "POOL_OUTSIDE", "'keep' or 'drop' allocations outside the pool"),
)
"""``max_range_ips`` is a part of reading ``pool_ips`` from text, and no argument of ``VMPoolSettings`` itself."""


@dataclass(frozen=True, kw_only=True)
class VMPoolSettings:
    """Settings of one pool."""

    pool_ips: Sequence[str]
    """Each once, in any spelling; kept in canonical spelling."""
    namespace: str = DEFAULT_NAMESPACE
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
            operation_timeout_s=_seconds(self.operation_timeout_s, "operation_timeout_s"),
            retry_interval_s=_seconds(self.retry_interval_s, "retry_interval_s"),
        )
        if self.max_retries is not None:
            _count(self.max_retries, "max_retries")
        _count(self.history, "history")
        _choice(self.retry, "retry", ("deadline", "go"))
        _choice(self.outside_pool, "outside_pool", ("keep", "drop"))
        if self.node_name:
            check_node_name(self.node_name)
        smallest = len(write_state(PoolState.fresh(self.line.ips)))
        if smallest > LARGEST_CONFIG_MAP:
            raise PoolTooLarge(size=smallest, limit=LARGEST_CONFIG_MAP)

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
        unknown = sorted(set(given) - {source.argument for source in SOURCES} - {"history", "remarks"})
        if unknown:
            raise Invalid(f"{unknown[0]}: there is no such setting", field=unknown[0])
        words: dict[str, Any] = {
            source.argument: value for source in SOURCES if (value := surroundings.get(source.variable, "").strip())
        } | {name: value for name, value in given.items() if value is not None}
        most = words.pop("max_range_ips", MAX_RANGE_IPS)
        ips = words.pop("pool_ips", "")
        if isinstance(ips, str):
            found = read_ip_list(ips, max_range_ips=_whole_number(most, "max_range_ips"), field="pool_ips")
            words["remarks"] = (*words.get("remarks", ()), *found.remarks)
            ips = found.ips
        if not ips:
            raise Invalid(f"{NO_POOL_IPS}: set VM_POOL_IPS or --pool-ips", field="pool_ips")
        if "max_retries" in words:
            words["max_retries"] = _whole_number(words["max_retries"], "max_retries")
        return cls(pool_ips=ips, **words)

    @property
    def schedule(self) -> RetrySchedule:
        """Return when writes are tried again."""
        longest_s = self.operation_timeout_s / LONGEST_DELAY_SHARE
        return RetrySchedule(self.retry, self.retry_interval_s, longest_s, self.max_retries)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what an operator should know before it bites: what was left out of the list, and its size (VS5)."""
        count = len(self.line.ips)
        said = list(self.remarks)
        if count > COMFORTABLE_IPS:
            said.append(
                f"the pool has {count} addresses in one ConfigMap, and every write carries all of them: above "
                f"{COMFORTABLE_IPS} use several pools (a ConfigMap each), a ConfigMap per IP, or Tenure's own ledger"
            )
        free = len(write_state(PoolState.fresh(self.line.ips)))
        fits = max((LARGEST_CONFIG_MAP - free) // (ENTRY_BYTES - 18), 0)
        if fits < count:
            said.append(
                f"about {fits} of {count} addresses can be allocated at a time: then the ConfigMap is full "
                f"({LARGEST_CONFIG_MAP} bytes)"
            )
        return tuple(said)


def _seconds(value: object, field: str) -> float:
    """Return a duration: a number of seconds, or text such as ``30s`` or ``100ms``."""
    if isinstance(value, str) and (match := DURATION.fullmatch(value.strip())):
        value = float(match[1]) * UNITS_S[match[2]]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= LONGEST_S:
        needed = "a duration above 0, a day at most, such as 30, 30s or 100ms, is needed"
        raise Invalid(f"{field}: {needed}, not {shown(value)}", field=field)
    return float(value)


def _count(value: object, field: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 1_000_000:
        raise Invalid(f"{field}: a number from 0 on is needed, not {shown(value)}", field=field)
    return value


def _whole_number(value: object, field: str) -> int:
    """Return a number that may be spelled as text, as the environment has it."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return _count(value, field)


def _choice(value: object, field: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise Invalid(f"{field}: {' or '.join(map(repr, choices))} is needed, not {shown(value)}", field=field)
