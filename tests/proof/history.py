"""What many clients asked and heard: written down as it happens, read back after the last of them is dead.

Each process appends to a file of its own, one line before a call and one after its answer, so that a ``kill -9``
leaves a call without an answer: it may have happened, or not. Times are CLOCK_MONOTONIC, which the processes of a
machine share. Every call names itself as its ``request``, so the store's own records lead back to it.
"""

import json
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import tenure

NEVER = math.inf

ASKING = ("allocate", "allocate_many", "hold")
"""Calls that may be granted something."""

ENDING = ("release", "release_owner", "cancel", "sweep")
"""Calls that are answered with what they ended."""


class Tenancy(NamedTuple):
    """One holding from grant to release. An address and a generation are one of them, for ever."""

    network: str
    address: str
    generation: int
    owner: str
    slot: str
    request: str | None

    @property
    def key(self) -> tuple[str, int]:
        """Return what sets it apart."""
        return (self.address, self.generation)

    @property
    def claim(self) -> tuple[str, str, str]:
        """Return what may hold one address at a time."""
        return (self.network, self.owner, self.slot)


class Logged(NamedTuple):
    """One entry of the store's log; edits of the plan have a number and a verb only.

    ``because``: why a holding ended that nobody released. ``pending``: granted until it is confirmed. ``at_us`` and
    ``until_us`` are times of the store. ``ticket``: the place of one who begins to wait, or goes away.
    """

    seq: int
    verb: str
    tenancy: Tenancy | None = None
    former: tuple[str, str] | None = None  # owner and slot before a transfer
    because: str | None = None
    pending: bool = False
    at_us: int = 0
    until_us: int | None = None
    ticket: int | None = None

    @property
    def by_the_clock(self) -> bool:
        """Tell whether a deadline, and no call, ended the holding."""
        return self.because in ("deadline", "cooled off")


@dataclass(frozen=True)
class Call:
    """A call and its answer, or its want of one."""

    request: str
    verb: str
    args: Mapping[str, Any]
    invoked: float
    returned: float = NEVER
    error: str | None = None
    outcome: str | None = None
    rows: Sequence[Tenancy] = ()

    @property
    def unknown(self) -> bool:
        """Tell whether it may have happened or not."""
        return self.returned == NEVER or self.outcome == "unknown"

    @property
    def granted(self) -> bool:
        """Tell whether its answer says that somebody holds something now."""
        return self.error is None and self.verb in (*ASKING, "transfer", "confirm")

    def names(self, tenancy: Tenancy) -> bool:
        """Tell whether the call is about this very tenancy: its end, or its confirmation."""
        if self.verb == "release_owner":
            return bool(self.args["owner"] == tenancy.owner)
        if self.verb not in ("release", "transfer", "cancel", "confirm"):
            return False
        wanted = (self.args["network"], self.args["address"], self.args["owner"])
        right = wanted == (tenancy.network, tenancy.address, tenancy.owner)
        return right and self.args.get("generation") in (None, tenancy.generation)


@dataclass
class History:
    """Everything that is known at the end of a round. What cools is held by nobody, and yet in the way."""

    calls: Sequence[Call]
    final: Sequence[Tenancy]
    log: Sequence[Logged] | None = None
    cooling: Sequence[Tenancy] = ()
    by_request: dict[str, Call] = field(init=False)

    def __post_init__(self) -> None:
        self.by_request = {call.request: call for call in self.calls}


class Recorder:
    """One process's pen."""

    def __init__(self, path: Path, client: str) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._client = client
        self._count = 0

    async def record(
        self, verb: str, args: Mapping[str, Any], perform: Callable[[str], Awaitable[Sequence[Tenancy]]]
    ) -> Call:
        """Write the call down, make it under its own name, and write down what came of it."""
        self._count += 1
        request = f"{self._client}-{self._count}"
        invoked = time.monotonic_ns()
        self._write({"request": request, "verb": verb, "args": dict(args), "invoked": invoked})
        answer: dict[str, Any]
        try:
            rows = list(await perform(request))
            answer = {"returned": time.monotonic_ns(), "rows": rows}
        except tenure.TenureError as error:
            answer = {"returned": time.monotonic_ns(), "error": error.code, "outcome": getattr(error, "outcome", None)}
        except Exception as error:  # nobody may ever see one of these; the checker will say so
            answer = {"returned": time.monotonic_ns(), "error": repr(error), "outcome": "unknown"}
        self._write({"request": request, **answer})
        return Call(request, verb, args, invoked, **answer)

    def note(self, word: str) -> None:
        """Write down something that is not a call."""
        self._write({"note": word, "at": time.monotonic_ns()})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Lay the pen down."""
        self._file.close()


def read_calls(paths: Iterable[Path]) -> list[Call]:
    """Read what all processes wrote, in order of asking; a last line that a kill cut short is dropped."""
    asked: dict[str, dict[str, Any]] = {}
    for path in paths:
        for line in path.read_text("utf-8").splitlines(keepends=True):
            if line.endswith("\n") and "request" in (said := json.loads(line)):
                asked.setdefault(said["request"], {}).update(said)
    return sorted((_call(said) for said in asked.values()), key=lambda call: call.invoked)


def _call(said: Mapping[str, Any]) -> Call:
    return Call(**{**said, "rows": [Tenancy(*row) for row in said.get("rows", ())]})
