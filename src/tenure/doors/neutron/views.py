"""What this process believes is free in a subnet's pools; wrong beliefs cost one more try, and are never the last word.

Views outlive transactions. A pick that was rolled back stays marked here until the view is read anew, which happens
when it has nothing left.
"""

import os
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from random import SystemRandom

from tenure.kernel.configuration import Configuration, Network, Policy, Pool, Subnet
from tenure.kernel.layout import Layout
from tenure.kernel.ranges import AddressRange, Cidr, merge
from tenure.service.views import DoubtfulLine, DoubtfulViews

MOST_KEPT = 1024
"""Subnets whose views a process keeps; the one that was not used for longest goes."""

NETWORK = "subnet"
CHANCE = SystemRandom()


@dataclass(frozen=True, slots=True)
class Plan:
    """A subnet's block and pools, as one version of it has them."""

    subnet: str
    version: int
    cidr: Cidr
    pools: tuple[AddressRange, ...]


class SubnetViews:
    """The views of one version of one subnet: one a pool, in the order in which pools are tried."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lock = threading.Lock()
        pools = tuple(
            Pool(piece, name=str(number), policy=Policy.RANDOM) for number, piece in enumerate(plan.pools)
        )
        block = Subnet(cidr=plan.cidr, uuid=plan.subnet, unit=32 if plan.cidr.last < 6 << 128 else 128, pools=pools)
        network = Network(1, NETWORK, plan.subnet, subnets=(block,))
        layout = Layout(Configuration(1, plan.subnet, plan.version, {NETWORK: network}))
        self._views = DoubtfulViews(layout, f"{socket.gethostname()}:{os.getpid()}")
        self._lines: list[DoubtfulLine] = []

    @property
    def loaded(self) -> bool:
        """Tell whether it was read who holds what."""
        return bool(self._lines)

    def load(self, held: Iterable[int]) -> None:
        """Begin anew, knowing what is held."""
        taken = merge(AddressRange(position, position) for position in held)
        lines = []
        for number, pool in enumerate(self.plan.pools):
            view = self._views.open((NETWORK, str(number), None), loaded=True)
            for piece in taken:
                if piece.overlaps(pool):
                    view.take(piece.first, piece.last)
            lines.append(view)
        with self.lock:
            self._lines = lines

    def pick(self) -> int | None:
        """Pick an address at random from the first pool that seems to have one, and mark it. O(log n)."""
        with self.lock:
            for view in self._lines:
                number = view.pick(Policy.RANDOM, "", "", 0, CHANCE)
                if number is not None:
                    view.free.take(number, number)
                    return view.line.unit(number)[0]
        return None

    def take(self, position: int) -> None:
        """Note that an address is somebody's."""
        with self.lock:
            for view in self._lines:
                view.take(position, position)

    def give_back(self, position: int) -> None:
        """Note that an address is nobody's."""
        with self.lock:
            for view in self._lines:
                view.give_back(position, position)


class Kept:
    """The views of a process, by subnet; a process that was forked begins with none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._views: OrderedDict[tuple[int, str], SubnetViews] = OrderedDict()

    def of(self, plan: Plan) -> SubnetViews:
        """Return the views of a subnet as it is now."""
        key = (os.getpid(), plan.subnet)
        with self._lock:
            views = self._views.get(key)
            if views is None or views.plan != plan:
                views = self._views[key] = SubnetViews(plan)
            self._views.move_to_end(key)
            while len(self._views) > MOST_KEPT:
                self._views.popitem(last=False)
            return views

    def known(self, subnet: str) -> SubnetViews | None:
        """Return the views of a subnet, if there are any."""
        with self._lock:
            return self._views.get((os.getpid(), subnet))


KEPT = Kept()
