"""A module as a process that is forked: it reads, writes, ends and is killed as any other."""

import signal

from tests.infrastructure.async_module import start_module


async def test_a_module_reads_what_is_said_and_what_it_writes_comes_whole() -> None:
    said = b'{"addresses": [' + b", ".join(b"%d" % number for number in range(100_000)) + b"]}"
    process = await start_module("json.tool", "--compact")

    told, _ = await process.communicate(said)

    assert process.returncode == 0
    assert told == said.replace(b" ", b"") + b"\n"


async def test_a_module_that_fails_says_so_by_its_exit_code() -> None:
    process = await start_module("json.tool", "--no-such-option")

    assert await process.wait() == 2


async def test_a_module_that_is_killed_ends_by_that_signal() -> None:
    process = await start_module("json.tool")
    assert process.returncode is None
    process.kill()

    assert await process.wait() == -signal.SIGKILL
