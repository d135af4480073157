"""Whether a VM answers on a port, and whether that makes it ready for a pod."""

import asyncio
import contextlib
import os
from dataclasses import dataclass

from tenure.integrations.vmpool.state.argument_checks import check_port, check_seconds

SSH_PORT = 22
DIAL_S = 2.0
PAUSES_S = (0.01, 0.05, 0.25)
"""Between the tries of a probe, as Cloud API Adaptor has them."""


async def dial(ip: str, port: int = SSH_PORT, timeout_s: float = DIAL_S) -> str:
    """Connect to a port of a VM and hang up; return an empty text, or why it could not be done."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(ip, port)
    except TimeoutError:
        return f"port {port} did not answer within {timeout_s:g} s"
    except OSError as error:
        # asyncio's own words name the address again.
        return f"port {port}: {os.strerror(error.errno) if error.errno else error}"
    writer.close()
    # The VM has answered; how it hangs up makes no difference.
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ""


@dataclass(frozen=True, slots=True)
class ReadinessProbe:
    """A VM is ready if its port answers; it is tried a few times."""

    port: int = SSH_PORT
    timeout_s: float = DIAL_S
    """For each try."""
    tries_next: bool = False
    """Whether another VM is tried where one is not ready; else that is an error, as with Cloud API Adaptor."""

    def __post_init__(self) -> None:
        check_port(self.port)
        check_seconds(self.timeout_s, "timeout_s")

    async def cause(self, ip: str) -> str:
        """Return why a VM is not ready; an empty text if it is."""
        for pause_s in (*PAUSES_S, None):
            problem = await dial(ip, self.port, self.timeout_s)
            if not problem or pause_s is None:
                return problem
            await asyncio.sleep(pause_s)
        raise AssertionError("the last try has no pause")
