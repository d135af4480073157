"""A judge of what a crowd did: nothing doubled at any time, nothing leaked, exhausted only when that is true."""

import ipaddress
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.integrations.neutron.stage.deployment import Book, Deployment, deployed
from tests.integrations.neutron.stage.server import Server

EIGHT = 8

Event = dict[str, Any]


OF_ADDRESSES = ("tenure_allocations", "tenure_subnets", "ipallocations")
"""The tables of who holds what: nobody may come in anybody's way there."""

FAULTS = ("doubled", "lost", "unexplained", "failures")
"""What must not be, as a soak names it: an address that two have, one that the wrong ones have or nobody can get, an
answer that nothing explains, and a request that was made again because of an address."""


INNODB_INSERT = "[SQL: INSERT IGNORE INTO tenure_allocations"
"""The statement in which InnoDB may find a cycle: see "What MySQL adds" in docs/reference/neutron-driver.md."""

INNODB_SHARE = 50
"""At most one request in so many may be made again for that."""


def retry_kind(text: str) -> str:
    """Say why a request was made again: what is about addresses is a conflict, also if a database says deadlock.

    The exception is a cycle of locks that InnoDB makes by itself: it is counted apart, and bounded.
    """
    error, _, told = text.partition(":")
    if error == "DBDeadlock" and INNODB_INSERT in told:
        return "innodb"
    if error == "RetryRequest" or any(table in told for table in OF_ADDRESSES):
        return "conflicts"
    return "deadlocks" if error == "DBDeadlock" else "others"


RETRIES = ("conflicts", "innodb", "deadlocks", "others")


@dataclass
class Round:
    """What became of one round."""

    faults: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(FAULTS, 0)))
    creates: int = 0
    questions: int = 0
    retries: dict[str, list[str]] = field(default_factory=lambda: {why: [] for why in RETRIES})
    events: list[Event] = field(default_factory=list)

    def take_in(self, told: Sequence[Any]) -> list[list[str]]:
        """Add what workers tell; return the ports each of them made."""
        for worker in told:
            self.events += worker["events"]
            self.questions += worker["asked"]
            for text in worker["retries"]:
                self.retries[retry_kind(text)].append(text)
        return [[one["port"] for one in worker["events"] if is_made(one)] for worker in told]

    def find(self, figure: str, count: int, fault: str) -> None:
        """Note so many faults of a kind, if there are any."""
        self.figures[figure] += count
        if count:
            self.faults.append(f"{figure}: {fault}")


def is_made(event: Event) -> bool:
    """Tell whether a port was made."""
    return bool(event["verb"] == "create" and event["status"] == 201)


def addresses_of(cidr: str) -> int:
    """Return how many addresses a subnet has for ports: neither network nor broadcast nor gateway."""
    return ipaddress.ip_network(cidr).num_addresses - 3


def crowd_round(
    deployment: Deployment, server: Server, times: int, cidr: str = "10.0.0.0/24", deletes: int | None = None
) -> Round:
    """Let eight processes fill a subnet, change so many ports of theirs each, and delete so many: all, to empty it."""
    addresses = addresses_of(cidr)
    network, subnet = deployment.subnet(cidr)
    round_ = Round()

    def play(verb: str, ports: Sequence[Sequence[str]]) -> list[list[str]]:
        return round_.take_in(server.tell("crowd", network, verb, ports, times))

    ports = play("fill", [[]] * EIGHT)
    made = sum(map(len, ports))
    round_.find("lost", abs(addresses - made), f"{made} ports filled {addresses} addresses")
    compare(round_, deployment.books(subnet), addresses)
    play("churn", ports)
    compare(round_, deployment.books(subnet), addresses)
    gone = [port.removeprefix("port/") for port in deployment.in_neutron(subnet).values()][:deletes]
    play("empty", [gone[number::EIGHT] for number in range(EIGHT)])
    compare(round_, deployment.books(subnet), addresses - len(gone))
    judge(round_)
    return round_


def compare(round_: Round, books: Mapping[str, Book], count: int) -> None:
    """Look whether all books say the same of so many addresses."""
    carried = books["neutron"]
    round_.find("lost", abs(count - len(carried)), f"{len(carried)} addresses are carried, and not {count}")
    for name, book in books.items():
        apart = sorted(book.items() ^ carried.items())
        round_.find("lost", len(apart), f"in {name} and not in neutron, or the other way round: {apart[:3]}")


def judge(round_: Round) -> None:
    """Look at all answers over time."""
    creates = [event for event in round_.events if event["verb"] == "create"]
    round_.creates = sum(map(is_made, creates))
    refused = [event for event in creates if event["status"] != 201]
    strange = [event for event in round_.events if event["status"] not in (201, 204, 409)]
    round_.find("unexplained", len(strange), f"answered otherwise: {strange[:3]}")
    # A worker asks once more than it is served when it fills; in a full subnet it deletes one before it asks for one.
    wrong = abs(len(refused) - EIGHT)
    round_.find("unexplained", wrong, f"{len(refused)} times exhausted, {EIGHT} times that was true")
    both = doubled(round_.events)
    round_.find("doubled", len(both), f"{both[:3]}")
    conflicts = round_.retries["conflicts"]
    round_.find("failures", len(conflicts), f"retried for an address: {conflicts[:3]}")
    innodb = round_.retries["innodb"]
    too_many = max(0, len(innodb) - 1 - len(creates) // INNODB_SHARE)
    round_.find("failures", too_many, f"InnoDB found cycles in {len(innodb)} of {len(creates)}: {innodb[:3]}")
    asked = round_.questions - sum(map(len, round_.retries.values()))
    round_.find(
        "failures", max(0, asked - len(creates)), f"the driver was asked {asked} times for {len(creates)} ports"
    )


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
    """Play whole rounds on a deployment of their own, tell a line of each, and return figures."""
    total: Counter[str] = Counter()
    with deployed(mode, database) as deployment:
        for number in range(1, rounds + 1):
            played = crowd_round(deployment, deployment.server, times)
            retries = {why: len(texts) for why, texts in played.retries.items()}
            figures = {**played.figures, "creates": played.creates, "retries": sum(retries.values()), **retries}
            total.update(figures)
            told = [*played.faults, *played.retries["innodb"], *played.retries["deadlocks"]]
            print(f"  round {number}/{rounds} ({mode}, {database}): {figures}", *told, sep="\n    ", flush=True)
    return {"rounds": rounds, **total}
