"""VMs that somebody was told to make while nobody said what became of them: what they may come up on is kept for them.

An instance waits for one VM: of its plan, or without any plan in place of one that it lost. That one may come up on all
that the instance is to keep, so nothing is written down of it. Once something else is wanted, it is an *earlier* one,
and is written down with its addresses until somebody says what became of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.kernel.holdings.holding_model import Holding

STAYS, RESUMES, ENDS = "stays", "resumes", "ends"
"""What becomes of an earlier VM if the plan that its instance waits for now is taken back: it is an earlier one still,
or the one waited for, as before that plan; or it is taken back, too, because that plan took its own plan over."""


@dataclass(frozen=True, slots=True)
class Making:
    """A VM that is perhaps being made: for which plan, and on which addresses (or prefixes) it may come up.

    An address is enough: in the space of a site it is one holder's, whatever its network is called.
    """

    plan: str | None
    addresses: tuple[str, ...]
    then: str = STAYS

    def has(self, held: Holding) -> bool:
        """Tell whether it may come up on an address."""
        return told(held) in self.addresses

    def written(self) -> dict[str, Any]:
        """Return it as it is written on its instance's paper."""
        return {"plan": self.plan, "addresses": list(self.addresses), "then": self.then}


def told(held: Holding) -> str:
    """Write what is held: an address, or a prefix with its length."""
    return held.address if held.row.first == held.row.last else f"{held.address}/{held.unit}"


def read_making(said: Mapping[str, Any]) -> Making:
    """Read it from its instance's paper."""
    return Making(said["plan"], tuple(said["addresses"]), said["then"])
