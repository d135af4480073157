"""When a VM that was told to reboot may be given out again: after a while, or when it was away and is back."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tenure.integrations.vmpool.machines.vm_port import SSH_PORT, dial
from tenure.integrations.vmpool.state.argument_checks import check_port, check_seconds

WAIT_S = 5.0
RETURN_S = 120.0
LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class FixedWait:
    """One wait for all VMs, after the last cleanup; 0 is none."""

    seconds: float = WAIT_S

    def __post_init__(self) -> None:
        check_seconds(self.seconds, "seconds", may_be_zero=True)


@dataclass(frozen=True, slots=True)
class AwaitReturn:
    """Each VM is looked at from its own cleanup on, until its port was closed and is open again.

    Closed twice in a row: one packet that was lost must not count as a reboot.
    """

    port: int = SSH_PORT
    within_s: float = RETURN_S
    every_s: float = LOOK_EVERY_S
    must_go_away: bool = True
    """Whether the port must have been closed; not where the cleanup itself waits for the reboot."""

    def __post_init__(self) -> None:
        check_port(self.port)
        check_seconds(self.within_s, "within_s")
        check_seconds(self.every_s, "every_s")

    async def cause_of_absence(self, ip: str) -> str:
        """Wait until a VM is back; return an empty text, or why it does not count as back."""
        end = time.monotonic() + self.within_s
        if self.must_go_away and not await self._seen(end, ip, is_open=False, times=2):
            return f"it was not seen to go away within {self.within_s:g} s"
        if not await self._seen(end, ip, is_open=True, times=1):
            return f"it was not back on port {self.port} within {self.within_s:g} s"
        return ""

    async def _seen(self, end: float, ip: str, *, is_open: bool, times: int) -> bool:
        """Return whether a port was seen to be open, or closed, so many times in a row before the end.

        A look has its whole time, also the last one: one that is cut short would look like a closed port.
        """
        in_a_row = 0
        while time.monotonic() < end:
            in_a_row = in_a_row + 1 if (await dial(ip, self.port) == "") == is_open else 0
            if in_a_row == times:
                return True
            await asyncio.sleep(min(self.every_s, max(0.0, end - time.monotonic())))
        return False


ReturnPlan = FixedWait | AwaitReturn


StopEvent = asyncio.Event | threading.Event
"""What ends a wait early; callers who block set one of ``threading``."""
NOTICED_S = 0.1
"""How soon an event of another thread is noticed."""


@contextlib.asynccontextmanager
async def followed(stop: StopEvent | None) -> AsyncIterator[asyncio.Event]:
    """Give an event of the running loop that is set when ``stop`` is; without one it is never set."""
    if isinstance(stop, asyncio.Event):
        yield stop
        return
    event = asyncio.Event()
    watch = asyncio.create_task(_follow(stop, event)) if stop is not None else None
    try:
        yield event
    finally:
        if watch is not None:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)


async def _follow(stop: threading.Event, event: asyncio.Event) -> None:
    for _ in iter(stop.is_set, True):
        await asyncio.sleep(NOTICED_S)
    event.set()


async def wait_unless(stop: asyncio.Event, seconds: float) -> bool:
    """Wait; return whether the whole time has passed, and not earlier because of ``stop``."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return True
    return False
