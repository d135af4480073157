"""The addresses of a pool that keeps its list itself, and what is being done to it (VS9).

It stands in one object beside the pool, which every process follows; ``VM_POOL_IPS`` is then no more than the list
that the pool began with. Each change has a higher generation, so an older list is known as such wherever it is met.

=============== ===================================== ==========================================================
an address is   how it came there                     what is next
=============== ===================================== ==========================================================
being made      the pool is to grow; the request is   the program has ended well: it is in the pool. Until then
                noted before its program is started   the same request is made again, also by another decider
in the pool     its VM is there                       the pool is to shrink: it retires
retiring        out of the list, so it is not given   no pod has it: it is held back. Before its removal has
                out any more; its pod keeps it        begun it may come back into the pool
being removed   held back, and its program started    the program has ended well: the address is forgotten here
=============== ===================================== ==========================================================
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tenure.integrations.vmpool.state.go_json import (
    NotReadable,
    check_depth,
    read_integer,
    read_json,
    read_list,
    read_object,
    read_string,
    read_time,
    time_text,
    whole_seconds,
    write_json,
)
from tenure.integrations.vmpool.state.ip_list import canonical_ip
from tenure.integrations.vmpool.state.size_policy import SizePolicy, read_policy

MARKS = 8
"""How many writes are remembered by their marks: a writer whose answer was lost finds its own among them."""
LONGEST_CAUSE = 300


@dataclass(frozen=True, slots=True)
class VMWork:
    """A VM that is being made, or taken out of the pool."""

    since: datetime
    ip: str = ""
    """The address that a new VM is to have; empty where its program names it."""
    is_begun: bool = False
    """Whether its program was started, so that it must end well before anything else is done with the VM."""
    tries: int = 0
    """How often its program has failed."""
    cause: str = ""
    tried_at: datetime | None = None

    def failed(self, cause: str, now: datetime) -> "VMWork":
        """Return the work after a try that has failed."""
        return replace(self, tries=self.tries + 1, cause=cause[:LONGEST_CAUSE], tried_at=whole_seconds(now))

    def as_json(self) -> dict[str, Any]:
        """Return the work as it is written; what says nothing is left out."""
        said = {
            "since": time_text(self.since), "ip": self.ip, "isBegun": self.is_begun, "tries": self.tries,
            "cause": self.cause, "triedAt": self.tried_at and time_text(self.tried_at),
        }  # fmt: skip
        return {name: value for name, value in said.items() if value}


@dataclass(frozen=True, slots=True)
class SizedList:
    """The list of a pool at one moment."""

    ips: tuple[str, ...]
    """In the order of the pool."""
    generation: int = 0
    policy: SizePolicy | None = None
    """None: only operators change the list."""
    making: Mapping[str, VMWork] = field(default_factory=dict)
    """By request."""
    retiring: Mapping[str, VMWork] = field(default_factory=dict)
    """By address."""
    requests: int = 0
    """How many requests there were; no name of one is used again."""
    problem: str = ""
    """Why the pool is not as large as its policy says."""
    marks: tuple[str, ...] = ()
    unknown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return how many VMs the pool has, and will have."""
        return len(self.ips) + len(self.making)

    def knows(self, ip: str) -> bool:
        """Return whether an address is in the list, or about to come or go."""
        return ip in self.ips or ip in self.retiring or any(each.ip == ip for each in self.making.values())

    def added(self, ips: Sequence[str]) -> "SizedList":
        """Return the list with addresses more; those that retire come back, and what is there already stays."""
        new = [ip for ip in dict.fromkeys(ips) if ip not in self.ips]
        kept = {ip: each for ip, each in self.retiring.items() if ip not in new}
        return replace(self, ips=(*self.ips, *new), retiring=kept)

    def retired(self, ips: Collection[str], now: datetime) -> "SizedList":
        """Return the list without addresses, which retire from now on."""
        leaving = {ip: VMWork(whole_seconds(now)) for ip in self.ips if ip in ips}
        return replace(
            self, ips=tuple(ip for ip in self.ips if ip not in leaving), retiring={**self.retiring, **leaving}
        )

    def requested(self, pool: str, count: int, addresses: Sequence[str], now: datetime) -> "SizedList":
        """Return the list with requests for VMs: so many, or one for each address that is named."""
        named = addresses or [""] * count
        numbers = range(self.requests + 1, self.requests + 1 + len(named))
        new = {
            f"{pool}-{number}": VMWork(whole_seconds(now), ip=ip)
            for number, ip in zip(numbers, named, strict=True)
        }  # fmt: skip
        return replace(self, making={**self.making, **new}, requests=self.requests + len(named))

    def begun(self, retiring: Collection[str]) -> "SizedList":
        """Return the list with removals that have begun."""
        work = {ip: replace(each, is_begun=each.is_begun or ip in retiring) for ip, each in self.retiring.items()}
        return replace(self, retiring=work)

    def made(self, request: str, ip: str) -> "SizedList":
        """Return the list with a VM that was made for a request; nothing is changed if that was noted before."""
        if request not in self.making:
            return self
        kept = {name: each for name, each in self.making.items() if name != request}
        return replace(self.added([ip]), making=kept)

    def removed(self, ips: Collection[str]) -> "SizedList":
        """Return the list without addresses that have retired."""
        return replace(self, retiring={ip: each for ip, each in self.retiring.items() if ip not in ips})

    def failed(self, name: str, cause: str, now: datetime) -> "SizedList":
        """Return the list with the failure of a request, or of a removal."""
        making = {key: each.failed(cause, now) if key == name else each for key, each in self.making.items()}
        retiring = {key: each.failed(cause, now) if key == name else each for key, each in self.retiring.items()}
        return replace(self, making=making, retiring=retiring)

    def written(self, generation: int, mark: str) -> "SizedList":
        """Return the list as a write has it."""
        return replace(self, generation=generation, marks=(*self.marks, mark)[-MARKS:])


def write_sized_list(sized: SizedList) -> str:
    """Write a list."""
    sections: dict[str, Any] = {
        "generation": sized.generation,
        "ips": list(sized.ips),
        "policy": None if sized.policy is None else sized.policy.as_json(),
        "making": {name: each.as_json() for name, each in sized.making.items()},
        "retiring": {ip: each.as_json() for ip, each in sized.retiring.items()},
        "requests": sized.requests,
        "problem": sized.problem,
        "marks": list(sized.marks),
    }
    return write_json({**{name: value for name, value in sections.items() if value}, **sized.unknown})


def read_sized_list(text: str) -> SizedList:
    """Read a list; raise ``NotReadable``."""
    found = dict(read_object(read_json(text), "list"))
    sized = SizedList(
        tuple(_read_ip(each, "ips") for each in read_list(found.pop("ips", None), "ips")),
        read_integer(found.pop("generation", None), "generation"),
        read_policy(found.pop("policy", None)),
        {name: _read_work(each, "making") for name, each in _popped(found, "making").items()},
        {_read_ip(ip, "retiring"): _read_work(each, "retiring") for ip, each in _popped(found, "retiring").items()},
        read_integer(found.pop("requests", None), "requests"),
        read_string(found.pop("problem", None), "problem"),
        tuple(read_string(each, "marks") for each in read_list(found.pop("marks", None), "marks")),
        found,
    )
    check_depth(found, "list")
    if sized.generation < 1 or len(set(sized.ips)) < len(sized.ips):
        raise NotReadable("list: it has no generation, or an address twice")
    return sized


def _popped(found: dict[str, Any], name: str) -> dict[str, Any]:
    return read_object(found.pop(name, None), name)


def _read_ip(value: object, where: str) -> str:
    ip = canonical_ip(value)
    if ip is None:
        raise NotReadable(f"{where}: {str(value)[:80]!r} is no IP address")
    return ip


def _read_work(value: object, where: str) -> VMWork:
    found = read_object(value, where)
    since = read_time(found.get("since"), f"{where}.since")
    if since is None:
        raise NotReadable(f"{where}.since: a time is needed")
    ip = found.get("ip")
    return VMWork(
        since, "" if ip is None else _read_ip(ip, f"{where}.ip"), found.get("isBegun") is True,
        read_integer(found.get("tries"), f"{where}.tries"), read_string(found.get("cause"), f"{where}.cause"),
        read_time(found.get("triedAt"), f"{where}.triedAt"),
    )  # fmt: skip
