"""What goes between the benchmark and its processes of Neutron: a site in, then orders, each with its answer."""

import dataclasses
import json
from dataclasses import dataclass

STOCK, DATABASE, LEDGER = "stock", "database", "ledger"
"""What is measured: Neutron's own driver, and ours in its two modes."""

ALLOCATE, GIVE_BACK, COUNT = "allocate", "give back", "count"


@dataclass(frozen=True, slots=True)
class Site:
    """A deployment of Neutron: its driver, its database, and the one subnet in it, so many of whose addresses are held.

    Whoever is told no subnet makes everything.
    """

    driver: str
    database: str
    pool: str
    held: int
    ledger: str | None = None
    subnet: str | None = None

    def dump(self) -> str:
        """Write the site in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Site":
        """Read what ``dump`` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Order:
    """Something to do: allocate so many addresses, give all of them back, or count what is held in the subnet."""

    what: str
    count: int = 0
    lowest: bool = False

    def dump(self) -> str:
        """Write the order in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Order":
        """Read what ``dump`` wrote."""
        return cls(**json.loads(text))
