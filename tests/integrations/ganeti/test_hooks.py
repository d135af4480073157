"""Hooks are real programs: they run in order, see the documented environment, and hold no operation up for good."""

import asyncio
import contextlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tenure import Invalid
from tenure.integrations.ganeti.hook_environment import hook_variables, instance_variables
from tenure.integrations.ganeti.hooks import (
    KEPT_BYTES,
    LIMIT_S,
    OP_CODES,
    PATH,
    HookResult,
    count_hooks,
    failed,
    run_hooks,
)
from tenure.integrations.ganeti.instances import NEW_WORDS
from tests.integrations.ganeti.plans import instance, nic, of_cases

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "hooks.md"


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    """Make an empty directory of hooks."""
    place = tmp_path / "hooks"
    place.mkdir()
    return place


def put(hooks: Path, name: str, script: str, *, phase: str = "instance-add-pre", mode: int = 0o755) -> Path:
    """Write a hook in shell."""
    path = hooks / f"{phase}.d" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(mode)
    return path


async def run(hooks: Path, **variables: str) -> list[HookResult]:
    """Run what is there for adding an instance, before it."""
    return await run_hooks(hooks, "instance-add", "pre", variables, limit_s=20)


async def until(true: Callable[[], bool]) -> None:
    """Wait for something that must happen soon."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what is waited for is another process
            await asyncio.sleep(0.01)


def alive(numbers: Iterable[int]) -> list[int]:
    """Tell which processes still run; one that only waits to be buried does not."""
    return [number for number in numbers if _state(number) not in (None, "Z", "X")]


def _state(number: int) -> str | None:
    try:
        text = Path(f"/proc/{number}/stat").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()[0]


def told_of(token: str) -> list[str]:
    """Find the processes that have a word in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it ended, or is somebody else's
            found += [place.parent.name] if token.encode() in place.read_bytes() else []
    return found


async def test_hooks_run_one_after_another_in_the_order_of_their_names(hooks: Path, tmp_path: Path) -> None:
    for name in ("b", "10-z", "2-a", "B", "_a"):
        put(hooks, name, f"echo {name} in >> {tmp_path}/log; sleep 0.02; echo {name} out >> {tmp_path}/log")

    results = await run(hooks)

    order = ["10-z", "2-a", "B", "_a", "b"]
    assert [(result.name, result.outcome, result.code) for result in results] == [(n, "success", 0) for n in order]
    assert (tmp_path / "log").read_text("utf-8").split("\n")[:-1] == [f"{n} {w}" for n in order for w in ("in", "out")]
    assert all(result.seconds >= 0.02 for result in results)


async def test_every_hook_runs_though_one_before_it_failed(hooks: Path) -> None:
    put(hooks, "1", "exit 0")
    put(hooks, "2", "echo no room; echo at all >&2; exit 3")
    put(hooks, "3", "kill -TERM $$")
    put(hooks, "4", "echo done")

    results = await run(hooks)

    assert [(each.outcome, each.code, each.output) for each in results] == [
        ("success", 0, ""),
        ("failed", 3, "no room\nat all\n"),
        ("failed", -15, ""),
        ("success", 0, "done\n"),
    ]
    assert [each.name for each in failed(results)] == ["2", "3"]


async def test_what_is_no_hook_is_skipped_and_told(hooks: Path) -> None:
    put(hooks, "10-run", "exit 0")
    put(hooks, "20-plain", "exit 0", mode=0o644)
    put(hooks, "30-run.dpkg-old", "exit 0")
    put(hooks, "40-run~", "exit 0")
    (hooks / "instance-add-pre.d" / "50-directory").mkdir()
    (hooks / "instance-add-pre.d" / "60-nowhere").symlink_to("gone")
    (hooks / "instance-add-pre.d" / "70-linked").symlink_to(put(hooks, "real", "exit 0", phase="shared"))

    results = await run(hooks)

    assert [(each.name, each.outcome) for each in results if each.outcome != "skipped"] == [
        ("10-run", "success"),
        ("70-linked", "success"),
    ]
    skipped = {each.name: each.output for each in results if each.outcome == "skipped"}
    assert skipped["20-plain"] == "it is not executable"
    assert "letters" in skipped["30-run.dpkg-old"]
    assert skipped["30-run.dpkg-old"] == skipped["40-run~"]
    assert skipped["50-directory"] == skipped["60-nowhere"] == "it is not a file"
    assert failed(results) == []
    assert count_hooks(hooks, "instance-add", "pre") == 2


async def test_a_name_that_is_no_text_can_still_be_shown(hooks: Path) -> None:
    put(hooks, "ok", "exit 0")
    (hooks / "instance-add-pre.d" / os.fsdecode(b"\xff\x1b[2J")).touch()

    [_, skipped] = await run(hooks)

    assert skipped.name == "\ufffd\ufffd[2J"


async def test_q17_a_hook_sees_the_documented_environment_and_nothing_else(
    hooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_STORE", "secret")
    # A shell may drop names with a colon, so the program that looks is the hook itself.
    program = hooks / "instance-add-pre.d" / "look"
    program.parent.mkdir()
    program.symlink_to("/usr/bin/env")
    network = of_cases()
    web = instance("web", nic(network, "192.0.2.10", "10.0.0.8"))
    variables = hook_variables(instance_variables(web, {network.uuid: network}))

    [result] = await run_hooks(hooks, "instance-add", "pre", variables)

    assert dict(line.split("=", 1) for line in result.output.splitlines()) == {
        **variables,
        "PATH": PATH,
        "GANETI_HOOKS_VERSION": "2",
        "GANETI_HOOKS_PHASE": "pre",
        "GANETI_HOOKS_PATH": "instance-add",
        "GANETI_OP_CODE": "OP_INSTANCE_CREATE",
        "GANETI_OBJECT_TYPE": "INSTANCE",
        "GANETI_OP_TARGET": "web",
    }
    assert variables["GANETI_INSTANCE_NIC0_IP:1"] == "10.0.0.8"


async def test_u29_a_shell_script_reads_the_twin_of_a_name_with_a_colon(hooks: Path) -> None:
    put(hooks, "say", 'echo "$GANETI_INSTANCE_NIC0_IP_1"')

    [result] = await run(hooks, **{"GANETI_INSTANCE_NIC0_IP:1": "10.0.0.8", "GANETI_INSTANCE_NIC0_IP_1": "10.0.0.8"})

    assert result.output == "10.0.0.8\n"


async def test_a_hook_runs_in_the_root_directory_with_nothing_to_read(hooks: Path) -> None:
    put(hooks, "look", "pwd; readlink /proc/self/fd/0; cat")

    [result] = await run(hooks)

    assert result.output == "/\n/dev/null\n"


async def test_a_directory_may_be_named_from_where_one_is(hooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(hooks, "say", "echo here")
    monkeypatch.chdir(hooks.parent)

    [result] = await run(Path("hooks"))

    assert result.output == "here\n"


@pytest.mark.sampled
@pytest.mark.parametrize("phase", ["pre", "post"])
@pytest.mark.parametrize("operation", OP_CODES)
async def test_an_operation_runs_its_own_hooks_only(operation: str, phase: str, hooks: Path) -> None:
    for name in OP_CODES:
        for each in ("pre", "post"):
            put(hooks, "say", f"echo {name}-{each} $GANETI_OP_CODE $GANETI_HOOKS_PHASE", phase=f"{name}-{each}")

    [result] = await run_hooks(hooks, operation, phase, {})

    assert result.output == f"{operation}-{phase} {OP_CODES[operation]} {phase}\n"


async def test_a_hook_that_hangs_is_killed_with_all_that_it_started(hooks: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    put(hooks, "1-hang", f"echo waiting; sleep 300 & echo $! $$ > {numbers}; trap '' TERM; wait; sleep 300")
    put(hooks, "2-after", "echo after")

    began = time.monotonic()
    results = await run_hooks(hooks, "instance-add", "pre", {}, limit_s=0.5)

    assert [(each.outcome, each.code, each.output) for each in results] == [
        ("timeout", None, "waiting\n"),
        ("success", 0, "after\n"),
    ]
    assert 0.5 <= time.monotonic() - began < 10
    assert failed(results) == results[:1]
    await until(lambda: alive(map(int, numbers.read_text("utf-8").split())) == [])


async def test_calling_off_the_operation_kills_the_running_hook_and_runs_no_other(hooks: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    put(hooks, "1-hang", f"sleep 300 & echo $! $$ > {numbers}; wait")
    put(hooks, "2-after", f"touch {tmp_path}/after")
    running = asyncio.create_task(run(hooks))
    await until(lambda: numbers.exists() and len(numbers.read_text("utf-8").split()) == 2)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await until(lambda: alive(map(int, numbers.read_text("utf-8").split())) == [])
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize("steps", range(12))
async def test_calling_off_at_any_moment_of_the_start_leaves_nothing_running(steps: int, hooks: Path) -> None:
    token = uuid.uuid4().hex
    put(hooks, "hang", "sleep 300 & wait")
    running = asyncio.create_task(run(hooks, TOKEN=token))
    for _ in range(steps):
        await asyncio.sleep(0)
    time.sleep(0.05)  # noqa: ASYNC251 - the hook shall get far while the loop stands still

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    await until(lambda: told_of(token) == [])


async def test_of_a_hook_that_prints_without_end_only_the_end_is_kept(hooks: Path) -> None:
    put(hooks, "chatty", "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end")

    [result] = await run(hooks)

    assert result.outcome == "success"
    assert result.output == "…" + ("x" * KEPT_BYTES + "\nthe end\n")[-KEPT_BYTES:]


async def test_output_that_is_no_text_does_no_harm(hooks: Path) -> None:
    put(hooks, "odd", r"printf 'a\377b'")

    [result] = await run(hooks)

    assert result.output == "a\ufffdb"


async def test_a_program_that_a_hook_leaves_behind_holds_nobody_up(hooks: Path, tmp_path: Path) -> None:
    number = tmp_path / "number"
    put(hooks, "daemon", f"echo started; sleep 30 & echo $! > {number}")

    began = time.monotonic()
    [result] = await run(hooks)

    left = int(number.read_text("utf-8"))
    running = alive([left])
    os.kill(left, 9)
    assert (result.outcome, result.output) == ("success", "started\n")
    assert time.monotonic() - began < 10
    assert running == [left]


@pytest.mark.parametrize("script", ["#!/no/such/interpreter\n", "\x7fELFnot a program"])
async def test_a_hook_that_cannot_be_started_has_failed(script: str, hooks: Path) -> None:
    put(hooks, "broken", "").write_text(script, "utf-8")
    put(hooks, "fine", "exit 0")

    [broken, fine] = await run(hooks)

    assert (broken.outcome, broken.code) == ("failed", None)
    assert broken.output.startswith("it cannot be started: ")
    assert fine.outcome == "success"


@pytest.mark.parametrize("variables", [{"A": "x\0y"}, {"A=B": "x"}, {"A": "x" * 3_000_000}])
async def test_a_variable_that_no_environment_can_hold_is_a_failure_not_a_traceback(
    variables: dict[str, str], hooks: Path
) -> None:
    put(hooks, "fine", "exit 0")

    [result] = await run(hooks, **variables)

    assert result.outcome == "failed"
    assert result.output.startswith("it cannot be started: ")


async def test_a_phase_without_directory_has_no_hooks(hooks: Path) -> None:
    assert await run(hooks) == []
    assert count_hooks(hooks, "instance-add", "pre") == 0


@pytest.mark.parametrize("where", ["gone", "file"])
async def test_a_hook_directory_that_is_none_is_refused(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Invalid, match=re.escape("is not a directory")) as refused:
        await run(tmp_path / where)

    assert refused.value.field == "hooks"
    with pytest.raises(Invalid, match=where):
        count_hooks(tmp_path / where, "instance-add", "pre")


async def test_a_phase_that_is_no_directory_is_refused(hooks: Path) -> None:
    (hooks / "instance-add-pre.d").touch()

    with pytest.raises(Invalid, match=r"instance-add-pre\.d") as refused:
        await run(hooks)

    assert refused.value.field == "hooks"


@pytest.mark.parametrize("limit_s", [0, -1, float("nan"), float("inf")])
async def test_a_time_limit_is_a_time(limit_s: float, hooks: Path) -> None:
    with pytest.raises(Invalid, match="seconds"):
        await run_hooks(hooks, "instance-add", "pre", {}, limit_s=limit_s)


@pytest.mark.parametrize(("operation", "phase"), [("node-add", "pre"), ("instance-add", "mid"), ("../x", "pre")])
async def test_there_are_hooks_only_for_what_is_documented(operation: str, phase: str, hooks: Path) -> None:
    with pytest.raises(Invalid, match="no hooks for"):
        await run_hooks(hooks, operation, phase, {})


def test_the_page_shows_every_directory_and_every_operation() -> None:
    page = REFERENCE.read_text("utf-8")
    rows = re.findall(r"^\| `((?:instance|network)-[a-z-]+\.d)` \| [^|]+ \| `(\w+)` \|$", page, re.MULTILINE)

    assert rows == [(f"{name}-{phase}.d", code) for name, code in OP_CODES.items() for phase in ("pre", "post")]
    assert f"{LIMIT_S:.0f} seconds" in page
    assert f"last {KEPT_BYTES} bytes" in page


async def test_the_page_shows_every_variable_and_no_other(hooks: Path) -> None:
    (hooks / "instance-add-pre.d").mkdir()
    (hooks / "instance-add-pre.d" / "look").symlink_to("/usr/bin/env")
    network = replace(of_cases(), mac_prefix="aa:00:01")
    web = instance("web", nic(network, "192.0.2.10", "10.0.0.8", name="front"))
    variables = hook_variables(instance_variables(web, {network.uuid: network}))

    [result] = await run_hooks(hooks, "instance-add", "pre", variables)

    told = (line.partition("=")[0] for line in result.output.splitlines())
    named = {re.sub(r"(?<=[:_])\d+$", "i", re.sub("^GANETI_(INSTANCE_NIC0_)?", "", name)) for name in told}
    rows = re.findall(r"^\| `(?:GANETI_)?([A-Z][\w:]*[A-Za-z0-9])` \|", REFERENCE.read_text("utf-8"), re.MULTILINE)
    groups = ["GROUP_NAME", "GROUP_NETWORK_MODE", "GROUP_NETWORK_LINK", "GROUP_NETWORK_VLAN"]
    others = [*(word for word, _ in NEW_WORDS.values()), "OLD_NAME", "NEW_NAME", *groups]
    assert sorted(rows) == sorted([*named, *others])
