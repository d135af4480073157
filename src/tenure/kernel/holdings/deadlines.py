"""Deadlines: whether the time of a pending or cooling holding is over, and which ends in the log were time's own doing.

The one home of both rules. Stores write the first one as ``until_us <= now`` in their statements. A holding whose time
is over is free to everybody who reads or picks; its row stays in the way until a logged transaction removes it (I10).
"""

from tenure.kernel.holdings.holding_model import Entry, Row

DEADLINE = "deadline"
COOLED_OFF = "cooled off"


def has_passed(until_us: int | None, now_us: int) -> bool:
    """Return whether a deadline has passed at a time of the store's clock; one that is not there never does."""
    return until_us is not None and until_us <= now_us


def is_over(row: Row, now_us: int) -> bool:
    """Return whether a row's time is over at a time of the store's clock."""
    return has_passed(row.until_us, now_us)


def ended_by_time(entry: Entry) -> bool:
    """Return whether an entry says that time ended something, and not a caller."""
    return entry.details.get("because") in (DEADLINE, COOLED_OFF)
