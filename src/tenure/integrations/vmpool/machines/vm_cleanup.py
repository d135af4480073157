"""Make VMs of a dead node usable again: by a command, an HTTP call, a function; in parallel, each with a time-out.

``sftp_reboot`` beside it puts the reboot file by sftp. A cleanup that raises, or is late, has failed.
"""

import asyncio
import contextlib
import inspect
import ipaddress
import re
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
from yarl import URL

from tenure.integrations.vmpool.machines.vm_program import QUOTED, filled, printable, run_program
from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.state.argument_checks import check_choice
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.kernel.names import shown

Cleanup = Callable[[VMAllocation], Awaitable[None]]
"""Make the VM of an allocation as new; raise if that could not be done."""
CleanupFunction = Callable[[VMAllocation], Awaitable[None] | None]
"""What users give: a coroutine function, or a plain one, which runs on a thread."""

AT_ONCE = 16
TIMEOUT_S = 30.0
LONGEST_CAUSE = 500
METHODS = ("POST", "PUT", "PATCH", "GET", "DELETE")
SENDABLE = re.compile(r"https?://[^/?#]", re.IGNORECASE)


class CleanupFailed(Exception):
    """A VM could not be cleaned up; the message says why."""


@dataclass(frozen=True, slots=True)
class CleanupOutcome:
    """What became of the cleanup of one VM."""

    cause: str
    """Why it failed; empty if it did not."""
    seconds: float


def function_cleanup(function: CleanupFunction) -> Cleanup:
    """Return a cleanup that calls a function.

    A plain function runs on a thread of its own, which nothing can end: after its time-out it has failed, but may
    still run, and keeps no other cleanup waiting.
    """

    async def clean(allocation: VMAllocation) -> None:
        # ``iscoroutinefunction`` says no of an object whose ``__call__`` is a coroutine function, so that is
        # asked, too.
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
        answer = function(allocation) if is_async else await _on_thread(function, allocation)
        if inspect.isawaitable(answer):
            await answer

    return clean


def command_cleanup(words: Sequence[str]) -> Cleanup:
    """Return a cleanup that runs a program, without a shell; it has failed if the program does not exit with 0.

    ``{ip}``, ``{id}``, ``{node}``, ``{pod}`` and ``{namespace}`` in its words are replaced. If no word has ``{ip}``,
    the IP is the last argument. The program finds the same in ``TENURE_VM_IP``, ``TENURE_VM_ID`` and so on.
    """
    if isinstance(words, str) or not words:
        raise BadArgument(f"words: a program and its arguments are needed, not {shown(words)}", field="words")
    line = [*words] if any("{ip}" in word for word in words) else [*words, "{ip}"]

    async def clean(allocation: VMAllocation) -> None:
        ended = await run_program(line, _fields(allocation), "TENURE_VM_")
        if ended.code:
            said = ended.last_error
            raise CleanupFailed(f"{line[0]} ended with {ended.code}{said and ': ' + said}")

    return clean


def http_cleanup(url: str, *, method: str = "POST", headers: Mapping[str, str] | None = None) -> Cleanup:
    """Return a cleanup that sends a request; it has failed if the answer is not 2xx, and redirects are not followed.

    ``{ip}``, ``{id}``, ``{node}``, ``{pod}`` and ``{namespace}`` in the URL are replaced; the body is a JSON document
    with the fields of the allocation.
    """
    check_choice(method, "method", METHODS)
    if not SENDABLE.match(url):
        needed = "a URL that begins with http:// or https:// is needed"
        raise BadArgument(f"url: {needed}, not {shown(url)}", field="url")

    async def clean(allocation: VMAllocation) -> None:
        quoted = {name: quote(value, safe="") for name, value in _fields(allocation).items()}
        # As the host, an address of IPv6 stands in brackets; elsewhere it is quoted like all other fields.
        place = filled(url.replace("://{ip}", "://" + _host(allocation.ip), 1), quoted)
        # As it is: an id with a slash must not become another path.
        target = URL(place, encoded=True)
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.request(
                    method, target, json=_document(allocation), headers=headers, allow_redirects=False
                ) as answer,
            ):
                if not 200 <= answer.status < 300:
                    # No more is read than is quoted: an answer may be of any length.
                    said = printable((await answer.content.read(QUOTED)).decode("utf-8", "replace").strip())
                    raise CleanupFailed(f"{method} {place}: {answer.status} {answer.reason}{said and ': ' + said}")
        except aiohttp.ClientError as error:
            raise CleanupFailed(f"{method} {place}: {error}") from error

    return clean


async def run_cleanup(cleanup: Cleanup, allocation: VMAllocation, timeout_s: float = TIMEOUT_S) -> CleanupOutcome:
    """Clean up one VM; whatever goes wrong is the outcome, never an error."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(timeout_s):
            await cleanup(allocation)
    except TimeoutError as error:
        # Its own time-outs have words of their own; ours says how long was waited.
        cause = str(error) or f"it took longer than {timeout_s:g} s"
    except CleanupFailed as error:
        cause = str(error)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
    else:
        cause = ""
    # It is noted in the ConfigMap, which has no room for stories.
    return CleanupOutcome(printable(cause[:LONGEST_CAUSE]), time.monotonic() - began)


async def _on_thread(function: CleanupFunction, allocation: VMAllocation) -> Awaitable[None] | None:
    """Call a function on a new thread that does not keep the process from ending, and return its answer."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Awaitable[None] | None] = loop.create_future()

    def settle(result: Awaitable[None] | None, error: Exception | None) -> None:
        # The time-out came first, and has answered.
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def call() -> None:
        result, error = None, None
        try:
            result = function(allocation)
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=call, name=f"cleanup of {allocation.ip}", daemon=True).start()
    return await answer


def _fields(allocation: VMAllocation) -> dict[str, str]:
    """Return what a cleanup may be told of an allocation."""
    return {
        "ip": allocation.ip,
        "id": allocation.allocation_id,
        "node": allocation.node_name,
        "pod": allocation.pod_name,
        "namespace": allocation.pod_namespace,
    }


def _document(allocation: VMAllocation) -> dict[str, str]:
    """Return an allocation by the names that it has in the state."""
    return {
        "allocationID": allocation.allocation_id,
        "ip": allocation.ip,
        "nodeName": allocation.node_name,
        "podName": allocation.pod_name,
        "podNamespace": allocation.pod_namespace,
    }


def _host(ip: str) -> str:
    """Write an address as the host of a URL."""
    return f"[{ip.replace('%', '%25')}]" if ipaddress.ip_address(ip).version == 6 else ip
