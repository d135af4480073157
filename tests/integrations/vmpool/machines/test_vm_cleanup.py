"""Cleanups by a real program, a real HTTP server and a function: each either ends well, or says why it did not."""

import asyncio
import os
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tenure.integrations.vmpool.machines.vm_cleanup import (
    Cleanup,
    command_cleanup,
    function_cleanup,
    http_cleanup,
    run_cleanup,
)
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tests.integrations.vmpool.vms import allocation, until


async def cause(cleanup: Cleanup, timeout_s: float = 10.0, of: VMAllocation | None = None) -> str:
    """Clean up one VM, and return why it failed."""
    return (await run_cleanup(cleanup, of or allocation("10.0.0.7", "pod-7"), timeout_s)).cause


def python(text: str, *words: str) -> list[str]:
    return [sys.executable, "-c", text, *words]


async def test_a_command_gets_the_fields_as_words_and_in_its_environment(tmp_path: Path) -> None:
    note = tmp_path / "note"
    text = "import os, sys; open(sys.argv[1], 'w').write(' '.join([*sys.argv[2:], os.environ['TENURE_VM_ID']]))"

    assert await cause(command_cleanup(python(text, str(note), "--vm={ip}", "{pod}", "{other}"))) == ""
    assert note.read_text("utf-8") == "--vm=10.0.0.7 pod {other} pod-7"


async def test_a_command_without_a_place_for_the_ip_gets_it_last(tmp_path: Path) -> None:
    note = tmp_path / "note"

    assert (
        await cause(command_cleanup(python("import sys; open(sys.argv[1], 'w').write(sys.argv[2])", str(note)))) == ""
    )
    assert note.read_text("utf-8") == "10.0.0.7"


async def test_what_a_field_contains_is_never_read_as_a_field_or_by_a_shell(tmp_path: Path) -> None:
    note = tmp_path / "note"
    text = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    tricky = allocation("10.0.0.7", "{ip}; touch x")

    assert await cause(command_cleanup(python(text, str(note), "{id}", "{ip}")), of=tricky) == ""
    assert note.read_text("utf-8") == "{ip}; touch x"


async def test_a_command_that_fails_is_quoted_with_its_last_line() -> None:
    text = "import sys; print('first'); print('no route to', sys.argv[1], file=sys.stderr); sys.exit(3)"

    assert await cause(command_cleanup(python(text))) == f"{sys.executable} ended with 3: no route to 10.0.0.7"


async def test_of_what_a_command_says_only_the_end_is_kept() -> None:
    """It may say more than there is memory, in one line or in many."""
    text = "import sys\nfor _ in range(64): sys.stdout.write('x' * (1 << 20))\nprint(); print('the end'); sys.exit(1)"
    tracemalloc.start()
    try:
        found = await cause(command_cleanup(python(text)), timeout_s=60)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert found == f"{sys.executable} ended with 1: the end"
    assert peak < 4 << 20


async def test_a_line_without_end_is_cut_and_shown_without_its_colours() -> None:
    text = "import sys; sys.stdout.write('y' * 100_000 + '\\x1b[31mred\\a'); sys.exit(1)"
    found = await cause(command_cleanup(python(text)))

    assert found.endswith("y [31mred ")
    assert len(found) < 500
    assert found.isprintable()


async def test_a_command_that_is_not_there_has_failed() -> None:
    assert "FileNotFoundError" in await cause(command_cleanup(["no-such-program-anywhere"]))


async def test_a_command_that_is_late_is_ended_with_its_children(tmp_path: Path) -> None:
    """The child holds the pipe of the program, so that waiting for its end would take as long as the child."""
    note = tmp_path / "pid"
    text = """
import subprocess, sys
child = subprocess.Popen(["sleep", "60"])
open(sys.argv[1], "w").write(str(child.pid))
child.wait()
"""
    began = time.monotonic()

    assert await cause(command_cleanup(python(text, str(note))), timeout_s=1.0) == "it took longer than 1 s"
    assert time.monotonic() - began < 10
    child = int(note.read_text("utf-8"))
    await until(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text("utf-8")
    except OSError:
        return False


def test_a_command_needs_a_program() -> None:
    with pytest.raises(ValueError, match=r"^words: a program"):
        command_cleanup([])


class Reboots:
    """A server that reboots VMs, or will not."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.url = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.rel_url.raw_path_qs, await request.json()))
        status = int(request.query.get("status", "204"))
        if status == 0:
            await asyncio.sleep(60)
        return web.Response(status=status, headers={"Location": "/"}, text="" if status == 204 else "the VM\nis busy")


@pytest.fixture
async def reboots() -> AsyncIterator[Reboots]:
    server = Reboots()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", server.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


async def test_a_call_names_the_vm_in_url_and_body(reboots: Reboots) -> None:
    assert await cause(http_cleanup(reboots.url + "/vms/{ip}?id={id}"), of=allocation("2001:db8::7", "a/b c")) == ""
    [(method, path, body)] = reboots.asked
    assert (method, path) == ("POST", "/vms/2001%3Adb8%3A%3A7?id=a%2Fb%20c")
    assert body == {
        "allocationID": "a/b c",
        "ip": "2001:db8::7",
        "nodeName": "node-1",
        "podName": "pod",
        "podNamespace": "default",
    }


async def test_a_call_may_go_to_the_vm_itself(reboots: Reboots) -> None:
    port = reboots.url.rpartition(":")[2]

    assert await cause(http_cleanup("http://{ip}:" + port, method="PUT"), of=allocation("127.0.0.1", "a")) == ""
    assert reboots.asked[0][0] == "PUT"
    assert "Cannot connect to host ::1:" in await cause(http_cleanup("http://{ip}:" + port), of=allocation("::1", "a"))


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_an_answer_that_is_not_2xx_is_quoted_and_no_redirect_is_followed(reboots: Reboots, status: int) -> None:
    found = await cause(http_cleanup(f"{reboots.url}/{{ip}}?status={status}"))

    assert f": {status} " in found
    assert found.endswith("the VM is busy")
    assert len(reboots.asked) == 1


async def test_a_call_that_is_late_has_failed(reboots: Reboots) -> None:
    assert await cause(http_cleanup(f"{reboots.url}/?status=0"), timeout_s=0.3) == "it took longer than 0.3 s"


async def test_functions_may_be_coroutines_or_plain() -> None:
    seen: list[str] = []

    async def later(allocation: VMAllocation) -> None:
        seen.append(f"async {allocation.ip}")

    assert await cause(function_cleanup(later)) == ""
    assert await cause(function_cleanup(lambda allocation: seen.append(allocation.ip))) == ""
    assert seen == ["async 10.0.0.7", "10.0.0.7"]


async def test_a_function_that_raises_has_failed_with_its_error() -> None:
    def refuse(allocation: VMAllocation) -> None:
        raise RuntimeError(f"{allocation.ip} is on fire")

    assert await cause(function_cleanup(refuse)) == "RuntimeError: 10.0.0.7 is on fire"


async def test_a_cause_is_cut_where_it_gets_long() -> None:
    def refuse(allocation: VMAllocation) -> None:
        raise RuntimeError("x" * 10_000)

    assert len(await cause(function_cleanup(refuse))) == 500


async def test_a_plain_function_that_hangs_has_failed_in_time() -> None:
    began = time.monotonic()

    assert await cause(function_cleanup(lambda allocation: time.sleep(1)), timeout_s=0.1) == "it took longer than 0.1 s"
    assert time.monotonic() - began < 0.9


async def test_plain_functions_that_hang_keep_no_other_cleanup_waiting() -> None:
    """Threads of a pool would be used up by a few VMs that do not answer."""
    hanging = [asyncio.create_task(cause(function_cleanup(lambda allocation: time.sleep(2)), 0.1)) for _ in range(40)]
    await asyncio.gather(*hanging)

    assert await cause(function_cleanup(lambda allocation: None), timeout_s=1) == ""


def test_the_environment_of_this_process_stays_as_it_was() -> None:
    assert "TENURE_VM_IP" not in os.environ
