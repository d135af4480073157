"""When a pool grows and shrinks: watermarks of how many VMs are free, with room between them (VS9).

Below the low one VMs are added, above the high one VMs are taken out, in both cases until as many are free as lie in
the middle between them: so a pool that was changed is not changed back at once.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.state.argument_checks import check_count, check_seconds
from tenure.integrations.vmpool.state.go_json import NotReadable, read_integer, read_object, read_string
from tenure.integrations.vmpool.state.ip_list import MOST_IPS
from tenure.kernel.names import shown

WATERMARK = re.compile(r"(\d{1,6})(%?)", re.ASCII)
STEP = 10
SHRINK_AFTER_S = 300.0


@dataclass(frozen=True, slots=True)
class Watermark:
    """So many free VMs, or such a share of the pool in percent."""

    number: int
    is_share: bool = False

    def of(self, size: int) -> int:
        """Return how many VMs that is in a pool of a size; parts of a VM count as one."""
        return -(-size * self.number // 100) if self.is_share else self.number

    @property
    def text(self) -> str:
        """Return the watermark as it is written."""
        return f"{self.number}%" if self.is_share else str(self.number)


def read_watermark(value: object, field: str) -> Watermark:
    """Read a number of VMs, or a share such as ``20%``."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    match = WATERMARK.fullmatch(text.strip()) if isinstance(text, str) else None
    found = None if match is None else Watermark(int(match[1]), bool(match[2]))
    if found is None or (found.is_share and found.number > 100):
        needed = "a number of VMs, or a share of the pool such as 20%, is needed"
        raise BadArgument(f"{field}: {needed}, not {shown(value)}", field=field)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePolicy:
    """How large a pool is to be; checked at birth."""

    low: Watermark
    high: Watermark
    least: int = 1
    most: int = MOST_IPS
    step: int = STEP
    """How many VMs are added or taken out at a time."""
    prefix: str = ""
    """Where new addresses come from, in their order; empty: the program that makes VMs names them."""
    shrink_after_s: float = SHRINK_AFTER_S
    """For how long more VMs have to be free than the high watermark says."""

    def __post_init__(self) -> None:
        check_count(self.least, "min", least=1, most=MOST_IPS)
        check_count(self.most, "max", least=self.least, most=MOST_IPS)
        check_count(self.step, "step", least=1, most=MOST_IPS)
        check_seconds(self.shrink_after_s, "shrink_after", may_be_zero=True)
        if self.low.is_share != self.high.is_share or self.low.number >= self.high.number:
            both = f"not {self.low.text} and {self.high.text}"
            raise BadArgument(f"low: it has to be below high, both numbers or both shares, {both}", field="low")
        if self.prefix:
            object.__setattr__(self, "prefix", check_prefix(self.prefix))

    def target(self, size: int) -> int:
        """Return how many VMs are to be free in a pool of a size once it was changed."""
        return -(-(self.low.of(size) + self.high.of(size)) // 2)

    def growth(self, size: int, free: int) -> int:
        """Return how many VMs to add to a pool of a size with so many that are free, or soon will be."""
        room = min(self.step, self.most - size)
        if size >= self.least and free >= self.low.of(size):
            return 0
        # Measured in the pool as it is then: a watermark that is a share grows with the pool.
        wanted = (number for number in range(1, room + 1) if free + number >= self.target(size + number))
        return max(0, min(room, max(next(wanted, room), self.least - size)))

    def shrinkage(self, size: int, free: int) -> int:
        """Return how many VMs to take out of a pool of a size with so many that are free."""
        if size > self.most:
            return min(self.step, size - self.most)
        if free <= self.high.of(size):
            return 0
        room = min(self.step, size - self.least)
        # Measured in the pool as it is then: a watermark that is a share shrinks with the pool.
        fitting = (number for number in range(room, 0, -1) if free - number >= self.target(size - number))
        return next(fitting, 0)

    def as_json(self) -> dict[str, Any]:
        """Return the policy as it is written."""
        return {
            "low": self.low.text, "high": self.high.text, "min": self.least, "max": self.most, "step": self.step,
            "prefix": self.prefix, "shrinkAfterSeconds": round(self.shrink_after_s),
        }  # fmt: skip


def check_prefix(value: object) -> str:
    """Return a prefix in its canonical spelling, or say what is wrong with it."""
    try:
        found = ipaddress.ip_network(value) if isinstance(value, str) else None
    except ValueError as error:
        raise BadArgument(f"prefix: a network such as 192.0.2.0/24 is needed: {error}", field="prefix") from None
    if found is None:
        raise BadArgument(f"prefix: a network such as 192.0.2.0/24 is needed, not {shown(value)}", field="prefix")
    return found.compressed


def read_policy(value: object) -> SizePolicy | None:
    """Read a policy that is stored; raise ``NotReadable``."""
    if value is None:
        return None
    found: Mapping[str, Any] = read_object(value, "policy")
    try:
        return SizePolicy(
            low=read_watermark(found.get("low"), "low"),
            high=read_watermark(found.get("high"), "high"),
            least=read_integer(found.get("min"), "policy.min"),
            most=read_integer(found.get("max"), "policy.max"),
            step=read_integer(found.get("step"), "policy.step"),
            prefix=read_string(found.get("prefix"), "policy.prefix"),
            shrink_after_s=float(read_integer(found.get("shrinkAfterSeconds"), "policy.shrinkAfterSeconds")),
        )
    except BadArgument as error:
        raise NotReadable(f"policy.{error}") from None
