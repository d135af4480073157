"""The first steps of a reader: `make run`, and beside it what the README shows, pasted from top to bottom."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from tenure.doors.cli.main import main
from tests.house.test_consoles import BLOCK, ROOT, commands_of, play, wrongs

README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def made(*words: str) -> list[str]:
    """Return the commands that make would run for a target."""
    told = subprocess.run(
        ["make", "--no-print-directory", "-n", "-o", ".venv/.installed", *words],
        cwd=ROOT,
        # A make around this one, as in `make test`, would hand its own flags down.
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.splitlines()


@contextmanager
def make_run(folder: Path) -> Iterator[dict[str, str]]:
    """Run what `make run` runs, in a folder; give what it asks the reader to export."""
    command = made("run", "ARGS=--port 0 --log json")[-1].replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    server = subprocess.Popen(
        shlex.split(command.removeprefix("exec ")),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(3)]
        exported = dict(word.split("=", 1) for word in lines[-1].split("export ")[1].split())
        yield exported
    finally:
        server.terminate()
        server.communicate(timeout=30)


def networks(exported: dict[str, str]) -> list[str]:
    """Name the networks that the page would show."""
    head = {"authorization": f"Bearer {exported['TENURE_TOKEN']}"}
    request = urllib.request.Request(f"{exported['TENURE_SERVER']}/api/v1/utilisation", headers=head)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return [item["network"] for item in json.load(answer)["items"]]


@pytest.mark.parametrize("through", ["the folder", "the server"])
def test_commands_beside_make_run_use_its_ledger_and_the_page_shows_what_they_did(tmp_path: Path, through: str) -> None:
    with make_run(tmp_path) as exported:
        more = exported if through == "the server" else {}
        play(["tenure network add mine"], tmp_path, **more)

        assert networks(exported) == ["mine"]
    if through == "the folder":
        assert (tmp_path / "tenure.db").exists()


def test_the_readme_can_be_pasted_beside_make_run(tmp_path: Path) -> None:
    expected = commands_of(README)
    [over_http] = [text for kind, text in BLOCK.findall(README) if kind == "sh" and "curl" in text]
    with make_run(tmp_path) as exported:
        printed = play([command for command, _ in expected], tmp_path, **exported)
        # The reader ends the stream of events by Ctrl-C.
        answers = play(
            [line.replace("--no-buffer", "--no-buffer --max-time 2") for line in over_http.splitlines()],
            tmp_path,
            **exported,
        )
        shown = networks(exported)

    assert wrongs(expected, printed) == []
    assert {"net1", "lab", "lan"} <= set(shown)
    assert '"owner":"instance/api-0"' in answers[0]
    assert "event: change" in answers[1]


def test_the_demo_has_a_ledger_of_its_own() -> None:
    fill, serve = made("run", "DEMO=1")

    assert fill.endswith(" sqlite:///demo.db")
    assert "--store sqlite:///demo.db" in serve
    assert "--store" not in made("run")[-1]


def test_make_run_installs_what_the_tutorials_need() -> None:
    rule = next(
        line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if "install_packages.sh rest" in line
    )

    assert rule.endswith("install_packages.sh rest,deployments")


def lines_of(page: Path) -> Iterator[str]:
    """Yield the command lines of a page that are not played: what a reader adapts before he pastes it."""
    for kind, text in BLOCK.findall(page.read_text("utf-8")):
        if kind == "sh":
            for line in text.replace("\\\n", "").splitlines():
                if line.startswith("tenure "):
                    yield line


@pytest.mark.parametrize("page", [page for page in PAGES if list(lines_of(page))], ids=lambda page: page.name)
def test_command_lines_that_are_not_played_can_be_read(page: Path) -> None:
    for line in lines_of(page):
        words = shlex.split(re.split(r" [|&;]", line)[0], comments=True)[1:]
        context = main.make_context("tenure", words)
        # As click itself descends into groups, but nothing is done.
        while isinstance(context.command, click.Group):
            name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
            assert command is not None, line
            context = command.make_context(name, rest, parent=context)
