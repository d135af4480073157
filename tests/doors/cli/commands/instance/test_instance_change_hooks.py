"""Hooks run by commands on instances: what is reported, and how the command ends."""

import signal
from pathlib import Path

import pytest

from tenure.doors.cli.output.json_keys import HOOK
from tests.doors.cli.processes import eventually, started
from tests.doors.cli.site import Site

ADD = ("instance", "add", "--net", "0:ip=pool,network=lan", "inst1")


def hook(site: Site, phase: str, name: str, script: str, *, mode: int = 0o755) -> Path:
    """Put a hook of ``instance add`` into the site's folder."""
    place = site.folder / "hooks" / f"instance-add-{phase}.d"
    place.mkdir(parents=True, exist_ok=True)
    file = place / name
    file.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    file.chmod(mode)
    return file


def test_hooks_are_told_what_is_done_and_are_quiet_when_all_went_well(machines: Site) -> None:
    hook(machines, "pre", "10-note", f'echo "$GANETI_INSTANCE_NIC0_IP" > {machines.folder}/told')
    result = machines.call(*ADD, "--hooks", "hooks")

    assert (result.exit_code, result.stderr) == (0, "")
    assert (machines.folder / "told").read_text("utf-8") == "198.51.100.11\n"


def test_the_directory_may_come_from_the_environment(machines: Site) -> None:
    hook(machines, "pre", "10-no", "exit 3")

    assert machines.call(*ADD, env={"TENURE_HOOKS": str(machines.folder / "hooks")}).exit_code == 4
    assert machines.call(*ADD).exit_code == 0


def test_a_hook_that_fails_before_stops_the_operation_and_is_shown(machines: Site) -> None:
    hook(machines, "pre", "10-no", "echo not today\nexit 3")
    before = machines.state()
    plain = machines.call(*ADD, "--hooks", "hooks")
    code, error = machines.error(*ADD, "--hooks", "hooks")

    assert (plain.exit_code, plain.stdout) == (4, "")
    assert plain.stderr.splitlines() == [
        "tenure: warning: hook 10-no: failed (exit code 3)",
        "  not today",
        "tenure: a hook refused the operation, nothing was changed: 10-no: failed",
        "  correct what the hook complains of, then run the command again",
    ]
    assert (code, error["code"], error["results"][0]["output"]) == (4, "hook_failed", "not today\n")
    assert list(error["results"][0]) == list(HOOK)
    assert machines.state()[1:] == before[1:]


def test_a_hook_that_fails_afterwards_is_a_finding_and_the_operation_is_done(machines: Site) -> None:
    hook(machines, "post", "10-no", "echo too late\nexit 1")
    hook(machines, "post", "20-old.bak", "exit 1")
    plain = machines.call(*ADD, "--hooks", "hooks")

    assert plain.exit_code == 1
    assert plain.stdout.startswith("added instance inst1 on node1\n")
    assert plain.stderr.splitlines() == [
        "tenure: warning: hook 10-no: failed (exit code 1)",
        "  too late",
        "tenure: warning: hook 20-old.bak: skipped, its name has other signs than letters, digits, '_' and '-'",
        "tenure: warning: instance inst1 is added all the same: its hooks ran after it was done",
    ]
    assert machines.json("instance", "info", "inst1")["ips"] == [["198.51.100.11"]]


def test_with_json_the_document_tells_how_the_hooks_went(machines: Site) -> None:
    hook(machines, "post", "10-yes", "exit 0")
    hook(machines, "post", "20-no", "exit 1")
    document = machines.json(*ADD, "--hooks", "hooks", code=1)

    assert [(each["name"], each["outcome"], each["code"]) for each in document["hooks"]] == [
        ("10-yes", "success", 0),
        ("20-no", "failed", 1),
    ]
    assert document["changed"] is True


def test_a_hook_has_its_time_and_no_more(machines: Site) -> None:
    hook(machines, "pre", "10-slow", "sleep 30")
    before = machines.state()
    result = machines.call(*ADD, "--hooks", "hooks", "--hook-timeout", "0.3")

    assert result.exit_code == 4
    assert "hook 10-slow: timeout" in result.stderr
    assert machines.state()[1:] == before[1:]


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_limit_is_a_number_of_seconds(machines: Site, limit: str) -> None:
    hook(machines, "pre", "10-yes", "exit 0")
    before = machines.state()

    assert machines.error(*ADD, "--hooks", "hooks", "--hook-timeout", limit)[0] == 2
    assert machines.state()[1:] == before[1:]


def test_an_empty_directory_name_does_not_switch_hooks_off(machines: Site) -> None:
    hook(machines, "pre", "10-no", "exit 3")
    before = machines.state()
    around = {"TENURE_HOOKS": str(machines.folder / "hooks")}
    refused = machines.call(*ADD, "--hooks", "", env=around)

    assert refused.exit_code == 2
    assert "--hooks" in refused.stderr
    assert machines.state() == before
    assert machines.call(*ADD, env={"TENURE_HOOKS": ""}).exit_code == 0


def test_what_a_hook_prints_cannot_steer_the_terminal(machines: Site) -> None:
    hook(machines, "post", "10-no", r"printf 'red \033[31m\007 \302\233 \342\200\256 ende \303\244\nnext\n'; exit 1")
    plain = machines.call(*ADD, "--hooks", "hooks")

    assert plain.stderr.splitlines()[1:3] == ["  red \\x1b[31m\\x07 \\x9b \\u202e ende ä", "  next"]


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
def test_who_interrupts_the_hooks_afterwards_is_told_that_the_change_stands(
    machines: Site, sent: signal.Signals, code: int, more: tuple[str, ...]
) -> None:
    hook(machines, "post", "10-slow", f"touch {machines.folder}/running; sleep 30")
    process = started(machines.url, *ADD, "--hooks", "hooks", *more)
    assert eventually((machines.folder / "running").exists)
    process.send_signal(sent)
    printed, complaint = process.communicate(timeout=20)

    assert (process.returncode, printed) == (code, "")
    assert complaint.strip().startswith(
        "tenure: warning: interrupted while the hooks after the operation ran: the change"
    )
    assert machines.json("instance", "info", "inst1")["ips"] == [["198.51.100.11"]]


def test_who_interrupts_the_hooks_before_gets_no_change_and_is_told_of_none(machines: Site) -> None:
    hook(machines, "pre", "10-slow", f"touch {machines.folder}/running; sleep 30")
    before = machines.state()
    process = started(machines.url, *ADD, "--hooks", "hooks")
    assert eventually((machines.folder / "running").exists)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=20)

    assert (process.returncode, complaint.strip()) == (130, "")
    assert machines.state()[1:] == before[1:]
