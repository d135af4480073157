"""The first steps of a reader: `make run`, and beside it what the README shows, pasted from top to bottom."""

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.house.page_player import ROOT, Command, commands_of, play, wrongs
from tests.house.test_consoles import playable


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


def readme(exported: dict[str, str]) -> list[Command]:
    """Return the commands of the README as a reader pastes them beside `make run`, and one more in another folder.

    The line to export comes where the page speaks of it: what stands before uses the folder's ledger, the rest the
    server. The files of the last block are those of the tutorial, as it says.
    """
    commands = playable("README.md")
    tutorial = commands_of((ROOT / "docs" / "tutorial" / "deployments.md").read_text("utf-8"))
    files = [next(each for each in tutorial if f"cat > {name}" in each.text) for name in ("cloud.yml", "shop.yml")]
    over_http = next(place for place, each in enumerate(commands) if "$TENURE_SERVER" in each.text)
    export = Command("export " + " ".join(f"{name}={value}" for name, value in exported.items()))
    elsewhere = Command("mkdir elsewhere && cd elsewhere && tenure network add mine && test ! -e tenure.db")
    return [*files, *commands[:over_http], export, *commands[over_http:], elsewhere]


def test_the_readme_can_be_pasted_beside_make_run_and_the_page_shows_what_it_did(tmp_path: Path) -> None:
    with make_run(tmp_path) as exported:
        expected = readme(exported)
        played = play([command.text for command in expected], tmp_path)
        shown = networks(exported)

    assert wrongs(expected, played) == []
    assert {"net1", "lab", "lan", "mine"} <= set(shown)
    [allocated, streamed] = [was.printed for each, was in zip(expected, played, strict=True) if "curl" in each.text]
    assert '"owner":"instance/api-0"' in allocated
    assert "event: change" in streamed


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
