"""Many processes that run ``tenure instance add`` on one ledger at the same time; some are killed on the way."""

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

import tenure
from tenure.integrations.ganeti.machine_model import INSTANCE
from tests.infrastructure.forked_tenure import ForkedModule
from tests.infrastructure.postgres import schema_in_thread
from tests.integrations.ganeti.conformance.door import Door
from tests.scale import runs, second_store

CALLERS = 8
PATIENCE_S = 60.0
SETTING = (
    "group add default",
    "node add node1",
    "network add net1 --subnet add:cidr=10.1.0.0/20,gateway=10.1.0.1,pool",
    "network connect net1",
)


@pytest.fixture(params=["sqlite", second_store("postgres")])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """Give a cluster with one network of 4096 addresses."""
    if request.param == "sqlite":
        door = Door(f"sqlite:///{tmp_path / 'tenure.db'}")
        door.do(*SETTING)
        yield door
    else:
        with schema_in_thread() as url:
            door = Door(url)
            door.do(*SETTING)
            yield door


@dataclass(slots=True)
class Caller:
    """A process that calls the command line, and what it told."""

    process: "subprocess.Popen[str]"
    codes: dict[str, int] = field(default_factory=dict)
    running: int | None = None

    def listen(self) -> None:
        """Take down how the calls end."""
        assert self.process.stdout is not None
        with self.process.stdout as told:
            for event in map(json.loads, told):
                self.running = event.get("pid")
                if "code" in event:
                    self.codes[event["words"][2]] = event["code"]


def crowd(door: Door, each: int, words: list[str], *, kills: int = 0, seed: int = 0) -> dict[str, int]:
    """Let eight callers add so many instances each, killing some calls; return the exit code of each by name."""
    callers = [Caller(_started(door)) for _ in range(CALLERS)]
    listeners = [threading.Thread(target=caller.listen) for caller in callers]
    for number, (caller, listener) in enumerate(zip(callers, listeners, strict=True)):
        listener.start()
        _send(caller.process.stdin, [["instance", "add", f"i{number}-{turn}", *words] for turn in range(each)])
    chance = random.Random(seed)
    for _ in range(kills):
        time.sleep(chance.uniform(0.05, 0.4))
        # On a busy machine the callers take longer to begin than all the kills: only a call that runs can be killed.
        while not (running := [caller for caller in callers if caller.running]) and any(
            each.is_alive() for each in listeners
        ):
            time.sleep(0.01)
        _kill(chance.choice(running or callers).running)
    for caller, listener in zip(callers, listeners, strict=True):
        listener.join()
        assert caller.process.wait(PATIENCE_S) == 0
    return {name: code for caller in callers for name, code in caller.codes.items()}


def _started(door: Door) -> "subprocess.Popen[str]":
    around = {**os.environ, "TENURE_STORE": door.url}
    pipe = subprocess.PIPE
    return ForkedModule[str]("tests.integrations.ganeti.crowd.caller", env=around, stdin=pipe, stdout=pipe, text=True)


def _send(to: IO[str] | None, calls: list[list[str]]) -> None:
    assert to is not None
    to.write("".join(json.dumps(call) + "\n" for call in calls))
    to.close()


def _kill(process: int | None) -> None:
    """Kill a call and all that it started, if it is still there."""
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)


def carried(door: Door) -> dict[str, list[str]]:
    """Read the addresses of every instance."""
    return {each["name"]: each["ips"][0] for each in door.ask("instance list -o name,ips")}


def test_c09_eight_processes_get_the_lowest_addresses(door: Door) -> None:
    """C09: a thousand different ones, and the thousand lowest; ``make test`` adds 120."""
    each = runs(15, 125, proof=125)
    codes = crowd(door, each, ["--net", "0:ip=pool,network=net1"])

    assert set(codes.values()) == {0}
    found = sorted(tuple(map(int, ip.split("."))) for ips in carried(door).values() for ip in ips)
    assert found == [(10, 1, number // 256, number % 256) for number in range(2, 2 + CALLERS * each)]


def test_c10_killed_processes_leave_nothing_behind(door: Door, tmp_path: Path) -> None:
    """C10: what was answered stands, what was not is there wholly or not at all, nothing is pending for good."""
    hook = tmp_path / "hooks" / "instance-add-pre.d" / "slow"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nsleep 0.05\n", "utf-8")
    hook.chmod(0o755)
    hooks = ["--hooks", str(tmp_path / "hooks"), "--hook-timeout", "5"]

    each, kills = runs(6, 12, proof=12), runs(12, 25, proof=25)
    codes = crowd(door, each, ["--net", "0:ip0=pool,ip1=pool,network=net1", *hooks], kills=kills, seed=4)

    found = carried(door)
    assert -signal.SIGKILL in codes.values()
    assert set(codes.values()) <= {0, -signal.SIGKILL}
    assert {name for name, code in codes.items() if code == 0} <= set(found)
    addresses = [ip for ips in found.values() for ip in ips]
    assert len(set(addresses)) == len(addresses) == 2 * len(found)
    _wait_until_nothing_is_pending(door.url)
    with tenure.open(door.url) as ledger:
        assert {holding.owner for holding in ledger.holdings("net1")} == {f"instance/{name}" for name in found}
        assert {paper.name for paper in ledger.papers(INSTANCE)} == set(found)
    assert door.ask("verify")["clean"]


def _wait_until_nothing_is_pending(url: str) -> None:
    """Wait for the deadlines of what dead processes took; nobody but the clock ends them."""
    until = time.monotonic() + PATIENCE_S
    with tenure.open(url) as ledger:
        while any(holding.state == "pending" for holding in ledger.holdings("net1")):
            assert time.monotonic() < until
            time.sleep(0.2)
            ledger.sweep()
