"""What goes between the benchmark and its processes of Neutron: a site in, then orders, each with its answer."""

import dataclasses
import json
from dataclasses import dataclass

STOCK, DATABASE, LEDGER = "stock", "database", "ledger"
"""The drivers that are measured: Neutron's own, and ours in its two modes."""

REALM = "neutron"


@dataclass(frozen=True, slots=True)
class Site:
    """A deployment of Neutron: its database, its driver, and the one subnet in it."""

    driver: str
    database: str
    pool: str
    held: int
    ledger: str | None = None
    subnet: str | None = None
    """Nothing: the process is the first, and makes everything."""

    def dump(self) -> str:
        """Write the site in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Site":
        """Read what ``dump`` wrote."""
        return cls(**json.loads(text))


ALLOCATE, GIVE_BACK, COUNT = "allocate", "give back", "count"


@dataclass(frozen=True, slots=True)
class Order:
    """Something to do: to allocate so many, to give everything back, or to count what is held."""

    what: str
    count: int = 0
    lowest: bool = False
    profile: str | None = None
    """A file for the profile of what is done."""

    def dump(self) -> str:
        """Write the order in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Order":
        """Read what ``dump`` wrote."""
        return cls(**json.loads(text))
