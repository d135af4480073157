"""A client whose write number k fails: before it is sent, after it was done, or while it is still on its way.

Where the sender goes on, or another process takes over, the same write can fail again, at another moment.
"""

import asyncio
import contextlib
import enum
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from tenure.integrations.kubernetes.runtime.api_client import JSON_PATCH, ApiClient, Propagation
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.credentials import Loader
from tenure.integrations.kubernetes.runtime.resource_types import EVENT, Object, ResourceType, key_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tests.integrations.kubernetes.metal3.conditional_writes import NotingClient, SentWrite

LATE_S = 0.15
"""How much later a write arrives that was on its way, where its sender lives on."""


Write = Callable[[], Awaitable[Object]]
"""Send a write and return its answer."""


class Moment(enum.Enum):
    """Where a write fails."""

    BEFORE = "before"
    """It is never sent."""
    AFTER = "after"
    """It is done, and the sender does not hear of it."""
    LOST = "lost"
    """The answer is lost, and the server does the write only later: after a new leader has begun, if the old died."""


@dataclass
class Cell:
    """One case of the grid: its objects have names that begin with its own, and a hyphen."""

    name: str
    number: int = 0
    """Which write fails first."""
    moments: tuple[Moment, ...] = (Moment.BEFORE,)
    """Where that write fails, and where each further try of it."""
    is_beyond: bool = False
    """Whether the writes from that number on need not come; each that comes fails, whichever it is."""
    target: str = ""
    """The write that has failed."""
    writes: list[str] = field(default_factory=list)
    failed: int = 0
    """How many writes have failed."""
    is_dead: bool = False
    """Whether the process has died for this cell: no write of it reaches the server any more."""

    @property
    def is_met(self) -> bool:
        """Return whether the write has failed at all its moments."""
        return self.failed == len(self.moments)

    def fails(self, write: str) -> bool:
        """Note a write, and return whether it fails."""
        self.writes.append(write)
        if self.is_met:
            return False
        return write == self.target if self.target else len(self.writes) >= self.number

    def fail(self, write: str) -> Moment:
        """Let a write fail, and return at which moment."""
        self.target = "" if self.is_beyond else write
        self.failed += 1
        return self.moments[self.failed - 1]

    def for_next(self) -> "Cell":
        """Return what the next process meets in this cell, after one has died of it."""
        return Cell(self.name, moments=self.moments[self.failed :], target=self.target)


class WriteFaults:
    """The faults of one operator, cell by cell; pools do not depend on each other, so one operator meets them all."""

    def __init__(self, cells: Iterable[Cell], *, dies: bool, sent: list[SentWrite]) -> None:
        self.cells = {cell.name: cell for cell in cells}
        self.is_armed = False
        self.sent = sent
        self._dies = dies
        self._landing: list[asyncio.Task[None]] = []
        self._takeover = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def make_client(self, load: Loader, meter: RuntimeMeter) -> ApiClient:
        """Make the client of an operator that meets these faults."""
        self._loop = asyncio.get_running_loop()
        return FaultyClient(load, meter, self)

    def land(self) -> None:
        """Let the writes arrive that were on their way when their sender died, and wait until they have; any thread."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._land_all(), self._loop).result(30)

    async def send(self, kind: ResourceType, object: Object, word: str, write: Write) -> Object:
        """Send a write, unless it is one that fails."""
        name = key_of(object)[1]
        cell = self.cells.get(name.partition("-")[0])
        if cell is None or not (self.is_armed or cell.is_dead):
            return await write()
        what = f"{word} {kind.plural} {name}"
        if not cell.is_dead:
            if not cell.fails(what):
                return await write()
            await self._fail(cell, what, write)
        raise ApiUnreachable(f"{what} fails here")

    async def _fail(self, cell: Cell, what: str, write: Write) -> None:
        cell.is_dead = self._dies
        moment = cell.fail(what)
        if moment is Moment.AFTER:
            await write()
        elif moment is Moment.LOST:
            self._landing.append(asyncio.create_task(self._arrive(write)))

    async def _arrive(self, write: Write) -> None:
        await (self._takeover.wait() if self._dies else asyncio.sleep(LATE_S))
        # A refusal is right where what the write names has changed meanwhile (KP4).
        with contextlib.suppress(ApiError):
            await write()

    async def _land_all(self) -> None:
        self._takeover.set()
        await asyncio.gather(*self._landing)


def _no_fence() -> None:
    """Let everything be sent."""


class FaultyClient(NotingClient):
    """A client that asks ``WriteFaults`` before every write.

    It has no fence: what arrives late here was sent when its sender still led.
    """

    fence = property(lambda self: _no_fence, lambda self, _: None)

    def __init__(self, load: Loader, meter: RuntimeMeter, faults: WriteFaults) -> None:
        super().__init__(load, meter, faults.sent)
        self._faults = faults

    async def create(self, kind: ResourceType, object: Object) -> Object:
        """Create an object, or fail; events are left out, since nothing rests on them."""
        if kind == EVENT:
            return object
        plain = super().create
        return await self._faults.send(kind, object, "create", lambda: plain(kind, object))

    async def patch(
        self,
        kind: ResourceType,
        object: Object,
        patch: object,
        *,
        content_type: str = JSON_PATCH,
        subresource: str = "",
    ) -> Object:
        """Patch an object, or fail."""
        plain = super().patch
        return await self._faults.send(
            kind, object, f"patch {subresource or 'metadata'} of",
            lambda: plain(kind, object, patch, content_type=content_type, subresource=subresource),
        )  # fmt: skip

    async def delete(self, kind: ResourceType, object: Object, propagation: Propagation = "Background") -> Object:
        """Delete an object, or fail."""
        plain = super().delete
        return await self._faults.send(kind, object, "delete", lambda: plain(kind, object, propagation))
