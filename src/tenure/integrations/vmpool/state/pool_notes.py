"""What Tenure notes beside the state, under a key of its own: the Go managers keep other keys as they are.

A note never decides who has which VM, and notes that cannot be read never stop an allocation: they are then left as
they are, and nothing is added to them, until an operator replaces them.
"""

from collections.abc import Mapping
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
    write_json,
)
from tenure.integrations.vmpool.state.passed_ids import PassedIds, read_passed

HISTORY = 50
HISTORY_BYTES = 16_384
"""So long and so large the history may be; the oldest lines go first."""
NODES = 500
"""So many nodes are noted at most; a node that was forgotten is noted again when it is seen."""
CAUSES_BYTES, SHORTEST_CAUSE = 65_536, 40
"""So much room all causes of failed cleanups have; if they are more, each is cut, and keeps so many bytes at least."""
WRITES = 32
"""How many writes are remembered by their marks: a writer whose answer was lost finds its own among them (VS1)."""


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """What was done to an id's VM, when, and by which node."""

    at: datetime
    did: str
    """``allocate``, ``deallocate``, ``recover``, ``repair``, ``reassert``."""
    allocation_id: str
    ip: str
    node_name: str

    def as_json(self) -> dict[str, Any]:
        """Return the line as it is written."""
        return {
            "at": time_text(self.at), "did": self.did, "id": self.allocation_id, "ip": self.ip, "node": self.node_name
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class CleanupFailure:
    """A VM that could not be cleaned, and so stays allocated: of which id, why, since when, after how many tries."""

    allocation_id: str
    cause: str
    at: datetime
    tries: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return the failure as it is written."""
        return {"id": self.allocation_id, "cause": self.cause, "at": time_text(self.at), "tries": self.tries}


@dataclass(frozen=True, slots=True)
class NodeNote:
    """The machine that was last seen under the name of a node, and after which of its starts it was recovered."""

    boot_id: str
    system_id: str
    """Of the hardware; empty where the machine does not show it."""
    seen_at: datetime
    recovered: str = ""
    """The boot, or the start of the adaptor, after which the node was recovered last."""
    earlier_boots: tuple[str, ...] = ()
    """Boots that were seen under the name before this one, oldest first."""
    looks_every_s: int = 0
    """How often the agent of the machine looks here; 0 where that is not known."""
    claimant: str = ""
    """The boot of a machine that asks for the name, and waits whether this one is still there to object."""
    claimed_at: datetime | None = None
    objected_to: str = ""
    """The boot of the machine that this one has refused the name last."""

    def as_json(self) -> dict[str, Any]:
        """Return the note as it is written; what says nothing is left out."""
        said: dict[str, Any] = {
            "looksEverySeconds": self.looks_every_s, "claimant": self.claimant,
            "claimedAt": self.claimed_at and time_text(self.claimed_at), "objectedTo": self.objected_to,
        }  # fmt: skip
        return {
            "bootID": self.boot_id, "systemID": self.system_id, "seenAt": time_text(self.seen_at),
            "recovered": self.recovered, "earlierBoots": list(self.earlier_boots),
            **{name: value for name, value in said.items() if value},
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class PoolPlacement:
    """In which mode a pool is kept; while it is moved, to which one it goes."""

    mode: str
    moves_to: str = ""
    """Empty unless the pool is being moved."""
    epoch: int = 0
    """How often the pool was moved. A place is never used again, so what is left at one is never mistaken for news."""
    # Not compared: the place is the same, also where a note does not name the ledger yet.
    ledger: str = field(default="", compare=False)
    """The uuid of the network that has the pool where it is in a ledger: another ledger would give its VMs out again.
    Empty where it is in none, or where no process with a cluster has seen it begin there."""

    @property
    def arrived(self) -> "PoolPlacement":
        """Return the placement at the end of a move."""
        return PoolPlacement(self.moves_to, "", self.epoch + 1)

    def as_json(self) -> dict[str, Any]:
        """Return the placement as it is written."""
        said = {"mode": self.mode, "movesTo": self.moves_to, "epoch": self.epoch}
        return {**said, "ledger": self.ledger} if self.ledger else said


@dataclass(frozen=True, slots=True)
class PoolNotes:
    """All notes of a pool."""

    history: tuple[HistoryLine, ...] = ()
    """Oldest first, bounded."""
    cleanup_failed: Mapping[str, CleanupFailure] = field(default_factory=dict)
    """By IP."""
    draining: Mapping[str, datetime] = field(default_factory=dict)
    """IPs that are allocated and no longer in the pool, with when that was noted."""
    nodes: Mapping[str, NodeNote] = field(default_factory=dict)
    """By the name of the node (VD3)."""
    writes: tuple[str, ...] = ()
    """Marks of the last writes, oldest first."""
    placement: PoolPlacement | None = None
    """None: nobody has ever moved the pool."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How often which result was had since the pool was made, by all who write notes; see ``metering``."""
    passed: PassedIds = field(default_factory=PassedIds)
    left: Mapping[str, Any] = field(default_factory=dict)
    """By id: allocations that fillers stand for, where the pool has left this ConfigMap (VD4)."""
    left_in: str = ""
    """The ConfigMap that has them instead, where they had no room beside the fillers."""
    list_generation: int = 0
    """Of the newest list of addresses that was decided by; a process that knows an older one reads the list first
    (VS9). 0: the list is each process's own."""
    unknown: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    """Why the notes could not be read; they are then written by nobody, and say nothing."""

    def with_line(self, line: HistoryLine) -> "PoolNotes":
        """Return the notes with a line more."""
        return replace(self, history=(*self.history, line))

    def with_node(self, name: str, note: NodeNote) -> "PoolNotes":
        """Return the notes with that of a node; of too many nodes those go that were not seen for longest."""
        nodes = {**self.nodes, name: note}
        if len(nodes) > NODES:
            latest = sorted(nodes, key=lambda each: nodes[each].seen_at)[-NODES:]
            nodes = {each: nodes[each] for each in latest}
        return replace(self, nodes=nodes)

    def with_write(self, mark: str, *, history: int = HISTORY) -> "PoolNotes":
        """Return the notes as the next write has them: marked, and no longer than they may be."""
        lines = self.history[-history:] if history else ()
        sizes = [len(write_json(line.as_json()).encode()) for line in lines]
        while sum(sizes) > HISTORY_BYTES:
            lines, sizes = lines[1:], sizes[1:]
        failed = _with_short_causes(self.cleanup_failed, CAUSES_BYTES)
        return replace(self, history=lines, cleanup_failed=failed, writes=(*self.writes, mark)[-WRITES:])

    def with_counts(self, more: Mapping[str, int]) -> "PoolNotes":
        """Return the notes with results counted in."""
        if not more:
            return self
        return replace(self, counts={**self.counts, **{each: self.counts.get(each, 0) + more[each] for each in more}})

    @property
    def lightest(self) -> "PoolNotes":
        """Return the notes with as little for people as can be: what is noted must not stop an allocation."""
        return replace(self, history=(), cleanup_failed=_with_short_causes(self.cleanup_failed, 0))


def read_notes(text: str | None) -> PoolNotes:
    """Read notes; those that cannot be read are empty, and ``problem`` says why."""
    if text is None:
        return PoolNotes()
    try:
        found = dict(read_object(read_json(text), "notes"))
        return PoolNotes(
            tuple(_read_line(each) for each in read_list(found.pop("history", None), "history")),
            {ip: _read_failure(each) for ip, each in _popped(found, "cleanupFailed").items()},
            {ip: _read_instant(each, "draining") for ip, each in _popped(found, "draining").items()},
            {name: _read_node(each) for name, each in _popped(found, "nodes").items()},
            tuple(read_string(each, "writes") for each in read_list(found.pop("writes", None), "writes")),
            _read_placement(found.pop("placement", None)),
            {name: read_integer(each, "counts") for name, each in _popped(found, "counts").items()},
            read_passed(found.pop("passed", None)),
            _checked(_popped(found, "left"), "left"),
            read_string(found.pop("leftIn", None), "leftIn"),
            read_integer(found.pop("listGeneration", None), "listGeneration"),
            _checked(found, "notes"),
        )
    except NotReadable as error:
        return PoolNotes(problem=f"the notes cannot be read: {error}")


def write_notes(notes: PoolNotes) -> str:
    """Write notes, sections that say nothing left out."""
    sections: dict[str, Any] = {
        "history": [line.as_json() for line in notes.history],
        "cleanupFailed": {ip: each.as_json() for ip, each in sorted(notes.cleanup_failed.items())},
        "draining": {ip: time_text(at) for ip, at in sorted(notes.draining.items())},
        "nodes": {name: each.as_json() for name, each in sorted(notes.nodes.items())},
        "writes": list(notes.writes),
        "placement": None if notes.placement is None else notes.placement.as_json(),
        "counts": {name: notes.counts[name] for name in sorted(notes.counts)},
        "passed": notes.passed.as_json() if notes.passed else None,
        "left": {id: notes.left[id] for id in sorted(notes.left)},
        "leftIn": notes.left_in,
        "listGeneration": notes.list_generation,
    }
    return write_json({**{name: value for name, value in sections.items() if value}, **notes.unknown})


def _popped(found: dict[str, Any], name: str) -> dict[str, Any]:
    return read_object(found.pop(name, None), name)


def _checked(found: dict[str, Any], where: str) -> dict[str, Any]:
    check_depth(found, where)
    return found


def _with_short_causes(failures: Mapping[str, CleanupFailure], room: int) -> Mapping[str, CleanupFailure]:
    """Return failures whose causes have so much room together, or each as little as it can do with."""
    if sum(len(each.cause.encode()) for each in failures.values()) <= room:
        return failures
    most = max(SHORTEST_CAUSE, room // len(failures)) if failures else 0
    return {
        # The cut may lie within a character.
        ip: replace(each, cause=each.cause.encode()[:most].decode("utf-8", "ignore"))
        for ip, each in failures.items()
    }  # fmt: skip


def _read_placement(value: object) -> PoolPlacement | None:
    if value is None:
        return None
    found = read_object(value, "placement")
    mode, moves_to, ledger = (
        read_string(found.get(name), f"placement.{name}") for name in ("mode", "movesTo", "ledger")
    )
    return PoolPlacement(mode, moves_to, read_integer(found.get("epoch"), "placement.epoch"), ledger)


def _read_line(value: object) -> HistoryLine:
    line = read_object(value, "history")
    texts = [read_string(line.get(name), f"history.{name}") for name in ("did", "id", "ip", "node")]
    return HistoryLine(_read_instant(line.get("at"), "history.at"), *texts)


def _read_failure(value: object) -> CleanupFailure:
    found = read_object(value, "cleanupFailed")
    return CleanupFailure(
        read_string(found.get("id"), "cleanupFailed.id"),
        read_string(found.get("cause"), "cleanupFailed.cause"),
        _read_instant(found.get("at"), "cleanupFailed.at"),
        read_integer(found.get("tries"), "cleanupFailed.tries"),
    )


def _read_node(value: object) -> NodeNote:
    found = read_object(value, "nodes")
    texts = {name: read_string(found.get(name), f"nodes.{name}") for name in ("bootID", "systemID", "recovered")}
    earlier = [read_string(each, "nodes.earlierBoots") for each in read_list(found.get("earlierBoots"), "earlierBoots")]
    at = _read_instant(found.get("seenAt"), "nodes.seenAt")
    more = {name: read_string(found.get(name), f"nodes.{name}") for name in ("claimant", "objectedTo")}
    return NodeNote(
        texts["bootID"], texts["systemID"], at, texts["recovered"], tuple(earlier),
        read_integer(found.get("looksEverySeconds"), "nodes.looksEverySeconds"),
        more["claimant"], read_time(found.get("claimedAt"), "nodes.claimedAt"), more["objectedTo"],
    )  # fmt: skip


def _read_instant(value: object, where: str) -> datetime:
    time = read_time(value, where)
    if time is None:
        raise NotReadable(f"{where}: a time is needed")
    return time
