"""Whether a VM answers on a port."""

import asyncio
import contextlib

SSH_PORT = 22
DIAL_S = 2.0


async def dial(ip: str, port: int = SSH_PORT, timeout_s: float = DIAL_S) -> str:
    """Connect to a port of a VM and hang up; return an empty text, or why it could not be done."""
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(ip, port)
    except TimeoutError:
        return f"port {port} did not answer within {timeout_s:g} s"
    except OSError as error:
        return f"port {port}: {error.strerror or error}"
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ""
