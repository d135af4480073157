"""What goes between the benchmark and its measured processes: a job in, a result out, both as JSON."""

import dataclasses
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """The networks of a ground: alike, each with one pool in a space of its own."""

    pool: str
    policy: str
    networks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One measured process's work."""

    work: str
    store: str
    url: str
    plan: Plan
    policy: str | None
    callers: int
    seconds: float
    count: int | None
    tag: str
    """Begins every owner of the job, so that no claim is ever a repetition of another."""

    def dump(self) -> str:
        """Write the job in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Job":
        """Read what ``dump`` wrote."""
        fields = json.loads(text)
        plan = fields.pop("plan")
        return cls(plan=Plan(plan["pool"], plan["policy"], tuple(plan["networks"])), **fields)


@dataclass(frozen=True, slots=True)
class Result:
    """What a measured process saw."""

    count: int
    seconds: float
    cpu_s: float
    p50_ms: float
    p99_ms: float
    peak_mb: float

    def dump(self) -> str:
        """Write the result in one line."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def load(cls, text: str) -> "Result":
        """Read what ``dump`` wrote."""
        return cls(**json.loads(text))
