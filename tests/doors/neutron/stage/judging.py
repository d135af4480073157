"""A judge of what a crowd did: nothing doubled at any time, nothing leaked, exhausted only when that is true."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.doors.neutron.stage.deployment import Deployment, deployed

EIGHT = 8
ADDRESSES = 253
"""What a /24 has for ports: neither network nor broadcast nor gateway."""

Event = dict[str, Any]


@dataclass
class Round:
    """What became of one round."""

    faults: list[str] = field(default_factory=list)
    creates: int = 0
    questions: int = 0
    refusals: int = 0
    retries: dict[str, int] = field(default_factory=lambda: {"conflicts": 0, "deadlocks": 0, "others": 0})
    texts: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def take_in(self, told: Sequence[Any]) -> list[list[str]]:
        """Add what workers tell; return the ports each of them made."""
        for worker in told:
            self.events += worker["events"]
            self.questions += worker["asked"]
            self.texts += worker["texts"]
            for why, count in worker["retries"].items():
                self.retries[why] += count
        return [[one["port"] for one in worker["events"] if is_made(one)] for worker in told]

    def demand(self, good: bool, fault: str) -> None:
        """Note a fault unless all is good."""
        if not good:
            self.faults.append(fault)


def is_made(event: Event) -> bool:
    """Tell whether a port was made."""
    return bool(event["verb"] == "create" and event["status"] == 201)


def crowd_round(deployment: Deployment, times: int, deletes: int = ADDRESSES) -> Round:
    """Let eight processes fill a /24, change so many ports of theirs each, and delete so many: all, to empty it."""
    network, subnet = deployment.subnet("10.0.0.0/24")
    round_ = Round()

    def play(verb: str, ports: Sequence[Sequence[str]]) -> list[list[str]]:
        return round_.take_in(deployment.server.tell("crowd", network, verb, ports, times))

    ports = play("fill", [[]] * EIGHT)
    round_.demand(sum(map(len, ports)) == ADDRESSES, f"{sum(map(len, ports))} ports filled {ADDRESSES} addresses")
    round_.demand(len(deployment.held(subnet)) == ADDRESSES, "the books do not say that the subnet is full")
    play("churn", ports)
    round_.demand(len(deployment.held(subnet)) == ADDRESSES, "the books do not say that the subnet is full again")
    gone = [port.removeprefix("port/") for port in deployment.held(subnet).values()][:deletes]
    play("empty", [gone[number::EIGHT] for number in range(EIGHT)])
    left = len(deployment.held(subnet))
    round_.demand(left == ADDRESSES - deletes, f"{left} addresses are held by {ADDRESSES - deletes} ports")
    judge(round_)
    return round_


def judge(round_: Round) -> None:
    """Look at all answers over time."""
    creates = [event for event in round_.events if event["verb"] == "create"]
    round_.creates = sum(map(is_made, creates))
    refused = [event for event in creates if event["status"] != 201]
    round_.refusals = len(refused)
    strange = [event for event in round_.events if event["status"] not in (201, 204, 409)]
    round_.demand(strange == [], f"answered otherwise: {strange[:3]}")
    # A worker asks once more than it is served when it fills; in a full subnet it deletes one before it asks for one.
    round_.demand(len(refused) == EIGHT, f"{len(refused)} times exhausted, {EIGHT} times that was true")
    round_.faults += [f"doubled: {address}" for address in doubled(round_.events)]
    asked = round_.questions - round_.retries["deadlocks"] - round_.retries["others"]
    round_.demand(round_.retries["conflicts"] == 0, f"retried for an address: {round_.texts[:3]}")
    round_.demand(asked <= len(creates), f"the driver was asked {asked} times for {len(creates)} ports")


def doubled(events: Sequence[Event]) -> list[str]:
    """Return the addresses that two ports had at one time, surely: between the answer to one and its deletion."""
    ends = {event["port"]: event["begin"] for event in events if event["verb"] == "delete"}
    spans: dict[str, list[tuple[float, float]]] = {}
    for event in filter(is_made, events):
        spans.setdefault(event["address"], []).append((event["end"], ends.get(event["port"], float("inf"))))
    found = []
    for address, times in spans.items():
        ordered = sorted(times)
        found += [address for (_, end), (begin, _) in itertools.pairwise(ordered) if begin < end]
    return found


def crowd_rounds(mode: str, database: str, rounds: int, times: int = 8) -> dict[str, int]:
    """Play whole rounds on a deployment of their own, tell a line of each, and return figures; faults are failures."""
    total = {"failures": 0, "creates": 0, "conflicts": 0, "deadlocks": 0, "others": 0}
    with deployed(mode, database) as deployment:
        for number in range(1, rounds + 1):
            played = crowd_round(deployment, times)
            figures = {"failures": len(played.faults), "creates": played.creates, **played.retries}
            total = {name: total[name] + count for name, count in figures.items()}
            print(
                f"  round {number}/{rounds} ({mode}, {database}): {figures}", *played.faults, sep="\n    ", flush=True
            )
    return {"rounds": rounds, **total}
