"""What this process believes is free in a subnet's pools; wrong beliefs cost one more try, and are never the last word.

Views outlive transactions. A pick that was rolled back stays marked here until the view is read anew, which happens
when it has nothing left.
"""

import os
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterable

from tenure.integrations.neutron.database.subnet_records import SubnetRecord
from tenure.kernel.addressing.addresses import width
from tenure.kernel.addressing.ranges import parse_cidr
from tenure.kernel.picking.policies import first_free
from tenure.kernel.plan.layout import Layout, LineKey
from tenure.kernel.plan.plan_model import Configuration, Network, Policy, Pool, Subnet
from tenure.ports import Chance
from tenure.service.allocator.doubtful_view import DoubtfulLine, DoubtfulViews

MOST_KEPT = 1024
"""Subnets whose views a process keeps; the one that was not used for longest goes."""

NETWORK = "subnet"

ROWS_A_PICK = 100
"""Rows that may be read for each pick of the lowest: what other processes let go of is seen only by reading again."""


class SharedLine(DoubtfulLine):
    """A doubtful line that several threads pick from."""

    lock: threading.RLock
    rows: int = 0
    """Rows that it was read from."""
    picks: int = 0
    """Picks of the lowest since then."""

    def is_due(self) -> bool:
        """Tell whether to read the subnet before the lowest is picked.

        With few rows it is always so: there the lowest is exact. In a large subnet an address that another process let
        go of may be missed for as many picks as make a hundredth of the rows.
        """
        return not self.loaded or self.picks * ROWS_A_PICK >= self.rows

    def lowest(self) -> int | None:
        """Pick the lowest number that is believed free. O(log n)."""
        with self.lock:
            self.picks += 1
            return first_free(self.free)

    def pick(self, policy: Policy, owner: str, slot: str, attempt: int, chance: Chance) -> int | None:
        """Pick as a doubtful line does."""
        with self.lock:
            return super().pick(policy, owner, slot, attempt, chance)


class SharedViews(DoubtfulViews):
    """Doubtful views of several threads: each step is one, the database is asked between steps."""

    lines: dict[LineKey, SharedLine]  # type: ignore[assignment]  # ``open`` makes no others

    def __init__(self, layout: Layout, server: str) -> None:
        super().__init__(layout, server)
        # Reentrant, because ``take_number`` calls ``take``.
        self._lock = threading.RLock()

    def open(
        self, key: LineKey, taken: Iterable[tuple[int, int]] = (), *, seen: int = 0, loaded: bool = False
    ) -> SharedLine:
        """Begin a line anew."""
        view = SharedLine.begin(self.layout.line(*key), taken, self._server, seen=seen, loaded=loaded)
        # One lock for all lines of a subnet: a pick from one of them is marked on the others.
        view.lock = self._lock
        with self._lock:
            self.lines[key] = view
        return view

    def take_number(self, view: DoubtfulLine, number: int) -> tuple[int, int]:
        """Mark a pick as taken."""
        with self._lock:
            return super().take_number(view, number)

    def take(self, first: int, last: int) -> None:
        """Note that a span is in somebody's way."""
        with self._lock:
            super().take(first, last)

    def give_back(self, first: int, last: int) -> None:
        """Note that a span is in nobody's way."""
        with self._lock:
            super().give_back(first, last)


def layout_of(record: SubnetRecord) -> Layout:
    """Lay a subnet out as the allocator wants it: a network of its own, in a space of its own."""
    cidr = parse_cidr(record.cidr)
    pools = tuple(Pool(piece, name=str(number), policy=Policy.RANDOM) for number, piece in enumerate(record.pools))
    block = Subnet(cidr=cidr, uuid=record.id, unit=width(cidr.first), pools=pools)
    return Layout(Configuration(1, record.id, 1, {NETWORK: Network(1, NETWORK, record.id, subnets=(block,))}))


class SubnetViews:
    """The views of a process, by subnet; a process that was forked begins with none."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with nothing: another process's lock may be held for ever by a thread that is not here."""
        self._lock = threading.Lock()
        self._views: OrderedDict[str, tuple[str, SharedViews]] = OrderedDict()

    def of(self, record: SubnetRecord) -> SharedViews:
        """Return the views of a subnet as it is now."""
        with self._lock:
            mark, views = self._views.get(record.id, ("", None))
            # Another mark is another plan: the old view would pick from pools that the subnet no longer has.
            if views is None or mark != record.mark:
                # Stripes are spread by this name: under one name, all processes would pick from the same stripes.
                views = SharedViews(layout_of(record), f"{socket.gethostname()}:{os.getpid()}")
                self._views[record.id] = (record.mark, views)
            self._views.move_to_end(record.id)
            while len(self._views) > MOST_KEPT:
                self._views.popitem(last=False)
            return views


KEPT = SubnetViews()
os.register_at_fork(after_in_child=KEPT.begin)
