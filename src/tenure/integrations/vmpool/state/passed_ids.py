"""Which ids were given a VM of another pool than the first of their list, noted with the first pool (VD7).

Every manager that serves a list of pools writes here before it answers with a VM of a later pool, in a swap of the
first pool. So whoever decides on the first pool sees whether an id has got a VM elsewhere since it looked there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tenure.integrations.vmpool.state.go_json import read_integer, read_list, read_object, read_string

KEPT_IDS = 128
"""So many are kept. Whoever has looked at the other pools before more of them than that looks again."""


@dataclass(frozen=True, slots=True)
class PassedIds:
    """How many ids were ever passed on, and the last of them with the name of their pool, oldest first."""

    count: int = 0
    latest: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.count)

    def with_id(self, allocation_id: str, pool: str) -> "PassedIds":
        """Return the notes with an id more."""
        return PassedIds(self.count + 1, (*self.latest, (allocation_id, pool))[-KEPT_IDS:])

    def is_passed_since(self, allocation_id: str, count: int) -> bool:
        """Return whether an id was passed on after so many were, or whether that is not known any more."""
        # A count below an earlier count: the notes have begun again.
        if self.count - count > len(self.latest) or self.count < count:
            return True
        return any(id == allocation_id and number > count for number, id, _ in self._numbered())

    def pool_of(self, allocation_id: str, count: int) -> str:
        """Return to which pool an id was passed on last, of the first so many; empty if that is not known."""
        found = [pool for number, id, pool in self._numbered() if id == allocation_id and number <= count]
        return found[-1] if found else ""

    def _numbered(self) -> Iterator[tuple[int, str, str]]:
        first = self.count - len(self.latest) + 1
        for number, (id, pool) in enumerate(self.latest, first):
            yield number, id, pool

    def as_json(self) -> dict[str, Any]:
        """Return the notes as they are written."""
        return {"count": self.count, "latest": [{"id": id, "pool": pool} for id, pool in self.latest]}


def read_passed(value: object) -> PassedIds:
    """Read what ``as_json`` has written; raise ``NotReadable``."""
    found = read_object(value, "passed")
    latest = [read_object(each, "passed.latest") for each in read_list(found.get("latest"), "passed.latest")]
    pairs = tuple(
        (read_string(each.get("id"), "passed.id"), read_string(each.get("pool"), "passed.pool")) for each in latest
    )
    return PassedIds(read_integer(found.get("count"), "passed.count"), pairs)
