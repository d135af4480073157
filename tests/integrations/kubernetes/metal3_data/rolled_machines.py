"""A fleet of machines that is made, deleted and made again with the same names, while leaders are killed."""

import contextlib
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from subprocess import Popen
from typing import TypeVar

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, key_of
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark
from tests.integrations.kubernetes.metal3_data.render_replica import render_replica

T = TypeVar("T")

WITHIN_S = 300.0
HANDS = 8
"""So many machines are made or deleted at once."""


def calmly(look: Callable[[], T]) -> T:
    """Return what ``look`` gives as soon as it gives something true; a look at a fleet costs the server much."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.25)
    return found


class Fleet:
    """Machines of two templates on one pool; every other host has a fixed address."""

    def __init__(self, park: MachinePark, count: int) -> None:
        self.park = park
        self.names = [f"m{number}" for number in range(count)]
        self.fixed = {
            f"host-{name}-p": f"10.9.{number // 200}.{number % 200 + 1}"
            for number, name in enumerate(self.names)
            if number % 2
        }

    def begin(self) -> None:
        """Create the cluster, the pool, the templates and the hosts."""
        self.park.cluster()
        self.park.pool("p", "10.8.0.1-10.8.7.254", "10.9.0.1-10.9.7.254", prefix=16, preAllocations=self.fixed)
        entry = {"id": "n", "link": "e", "ipAddressFromIPPool": "p"}
        for name in ("kcp", "md"):
            self.park.template(name, metaData={"indexes": [{"key": "i"}]}, networkData={"networks": {"ipv4": [entry]}})
        self._all(lambda name: self.park.host(f"host-{name}"))

    def make(self) -> dict[str, str]:
        """Make all machines; return the address of each, as it was rendered."""
        self._all(lambda name: self.park.machine(name, f"host-{name}", "kcp" if name.endswith("0") else "md"))
        calmly(lambda: len(self._ready()) == len(self.names))
        return {
            name: self.park.secret(f"{name}-networkdata", "networkData")["networks"][0]["ip_address"]
            for name in self.names
        }

    def remove(self) -> None:
        """Delete all machines, and wait until their names are free, as CAPM3 does before it makes a claim again."""
        self._all(self.park.remove_machine)
        calmly(lambda: not self.park.all(self.park.data_claims))

    def check(self, given: dict[str, str]) -> None:
        """Check that addresses are where they were asked for, once each, and the objects say the same."""
        assert {f"host-{name}-p": given[name] for name in self.names if f"host-{name}-p" in self.fixed} == self.fixed
        assert len(set(given.values())) == len(given)
        held = {each["spec"]["claim"]["name"]: each["spec"]["address"] for each in self.park.all(IP_ADDRESS)}
        assert held == {f"host-{name}-p": address for name, address in given.items()}
        assert {key_of(each)[1] for each in self.park.all(IP_CLAIM)} == set(held)
        numbers = [(each["spec"]["template"]["name"], each["spec"]["index"]) for each in self.park.all(self.park.datas)]
        assert len(set(numbers)) == len(self.names)

    def _ready(self) -> list[str]:
        return [key_of(each)[1] for each in self.park.all(self.park.datas) if (each.get("status") or {}).get("ready")]

    def _all(self, act: Callable[[str], object]) -> None:
        with ThreadPoolExecutor(HANDS) as hands:
            list(hands.map(act, self.names))


def roll(park: MachinePark, count: int, kills: int) -> None:
    """Make a fleet, delete it, make it again, with leaders that die meanwhile; nothing is left in the end."""
    fleet = Fleet(park, count)
    lease = f"render-{secrets.token_hex(4)}"
    with contextlib.ExitStack() as stack:

        def replica(number: int) -> "Popen[bytes]":
            return stack.enter_context(render_replica(park.server, park.name, lease, f"r{number}"))

        running = {f"r{number}": replica(number) for number in range(2)}
        fleet.begin()
        over = threading.Event()
        with ThreadPoolExecutor(1) as killer:
            dying = killer.submit(_kill_leaders, park, lease, running, replica, kills, over)
            try:
                first = fleet.make()
                fleet.check(first)
                fleet.remove()
                second = fleet.make()
            finally:
                over.set()
        assert dying.result() > 0
        fleet.check(second)
        fleet.remove()
        calmly(park.none_left)


def _kill_leaders(
    park: MachinePark,
    lease: str,
    running: "dict[str, Popen[bytes]]",
    replica: "Callable[[int], Popen[bytes]]",
    kills: int,
    over: threading.Event,
) -> int:
    """Kill the leader as soon as it has rendered something new, again and again; another replica follows each.

    Return how many were killed until the fleet was there for the second time.
    """
    for number in range(kills):
        seen = len(park.all(park.datas))
        calmly(lambda seen=seen: over.is_set() or len(park.all(park.datas)) != seen)  # type: ignore[misc]
        leader = calmly(lambda: over.is_set() or (_leader(park, lease) in running and _leader(park, lease)))
        if over.is_set():
            return number
        running.pop(str(leader)).kill()
        running[f"r{number + 2}"] = replica(number + 2)
    return kills


def _leader(park: MachinePark, lease: str) -> str:
    found = park.ask("GET", LEASE.path("tenure-system", lease))
    return str(found["spec"].get("holderIdentity") or "")
