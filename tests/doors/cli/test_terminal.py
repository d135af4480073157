"""On a terminal, in a pipe, under Ctrl-C: the real command as a process."""

import json
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest

import tenure
from tests.doors.cli.processes import TENURE, eventually, on_terminal, piped, started, surroundings
from tests.doors.cli.site import Site, build_full

ESCAPE = "\x1b["
ROOT = Path(__file__).parents[3]


def waiting(site: Site) -> bool:
    """Tell whether a claim waits."""
    with tenure.open(site.url) as ledger:
        return bool(ledger.waiting())


@pytest.mark.parametrize("words", [["holding", "list", "net1"], ["pool", "map", "net1"], ["show", "nowhere"]])
def test_colours_are_shown_on_a_terminal_only(site: Site, words: list[str]) -> None:
    _, shown = on_terminal(site.url, *words)
    through_pipe = piped(site.url, *words)

    assert ESCAPE in shown
    assert ESCAPE not in through_pipe.stdout + through_pipe.stderr


def test_colours_are_left_out_on_request(site: Site) -> None:
    _, by_variable = on_terminal(site.url, "holding", "list", "net1", env={"NO_COLOR": "1"})
    _, by_option = on_terminal(site.url, "holding", "list", "net1", "--no-color")
    _, of_an_error = on_terminal(site.url, "show", "nowhere", "--no-color")

    assert ESCAPE not in by_variable + by_option + of_an_error
    assert by_option == piped(site.url, "holding", "list", "net1").stdout


@pytest.mark.parametrize(
    ("words", "label"),
    [
        (["backup", "b.db"], "copying"),
        (["copy", "sqlite:///tenure.db", "sqlite:///c.db"], "comparing"),
        (["import", "plan.csv"], "importing"),
        (["export", "--output", "x.json"], "exporting"),
        (["verify"], "verifying"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_progress_is_shown_on_a_terminal_only(site: Site, words: list[str], label: str) -> None:
    through_pipe = piped(site.url, *words)
    for made in ("b.db", "c.db"):
        (site.folder / made).unlink(missing_ok=True)
    code, shown = on_terminal(site.url, *words)

    assert through_pipe.returncode == code == 0
    assert through_pipe.stderr == ""
    assert label in shown
    assert ESCAPE not in shown
    assert f"{label} 0" not in shown
    assert shown.rpartition("\r")[0].endswith(" ")


def test_what_libraries_log_is_not_shown(site: Site) -> None:
    code = """
import logging
from tenure.doors.cli.main import main
try:
    main(["network", "list"])
finally:
    for name in ("asyncio", "asyncpg", "asyncpg.pool"):
        logging.getLogger(name).critical("a word among libraries")
"""
    done = subprocess.run(
        [*TENURE[:1], "-c", code], env=surroundings(site.url), capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_json_on_a_terminal_is_not_disturbed(site: Site) -> None:
    _, shown = on_terminal(site.url, "verify", "--json")
    _, exported = on_terminal(site.url, "export")

    assert json.loads(shown) == {"clean": True, "breaches": []}
    assert len(json.loads(exported)["holdings"]) == 4


def test_words_that_are_no_text_are_refused(site: Site) -> None:
    before = site.state()
    done = subprocess.run(
        [*(word.encode() for word in TENURE), b"network", b"add", b"net\xff"],
        env=surroundings(site.url), capture_output=True, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr.startswith(b"tenure: name: ")
    assert site.state() == before


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_claim_that_waits_is_withdrawn_when_its_command_is_stopped(
    site: Site, sent: signal.Signals, code: int
) -> None:
    build_full(site)
    process = started(site.url, "allocate", "full", "instance/w", "--wait", "60")
    assert eventually(lambda: waiting(site))

    process.send_signal(sent)
    printed, complaint = process.communicate(timeout=20)

    assert process.returncode == code
    assert printed == ""
    assert "Traceback" not in complaint
    assert not waiting(site)
    assert len(site.json("holding", "list", "full")) == 2


def test_a_bench_that_is_interrupted_removes_its_network(site: Site) -> None:
    process = started(site.url, "bench", "--seconds", "1.5")
    assert eventually(lambda: len(site.json("network", "list")) == 2)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)

    assert process.returncode == 130
    assert [entry["name"] for entry in site.json("network", "list")] == ["net1"]


def test_a_watch_that_is_interrupted_ends_quietly(site: Site) -> None:
    process = started(site.url, "watch", "--after", "0")
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=20)

    assert (process.returncode, complaint.strip()) == (130, "")


def test_a_watch_shows_what_others_do(site: Site) -> None:
    process = started(site.url, "watch", "--json", "--after", str(site.state()[0]))
    assert process.stdout is not None
    site.text("allocate", "net1", "instance/new", "--request", "r9")

    change = json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=20)

    assert (change["verb"], change["owner"], change["request"]) == ("grant", "instance/new", "r9")


def test_a_reader_who_goes_away_ends_the_command_quietly(site: Site) -> None:
    process = started(site.url, "watch", "--after", "0")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    site.text("allocate", "net1", "instance/new")

    assert process.wait(20) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.parametrize(
    ("locale", "ascii_only"),
    [
        ({"LC_ALL": "C"}, True),
        ({"LC_ALL": "", "LANG": "C"}, True),
        ({"LC_ALL": ""}, True),
        ({"LC_ALL": "", "LANG": "C.UTF-8"}, False),
        ({"PYTHONIOENCODING": "ascii"}, True),
    ],
    ids=str,
)
def test_the_map_is_drawn_with_what_the_locale_has(site: Site, locale: dict[str, str], ascii_only: bool) -> None:
    done = piped(site.url, "pool", "map", "net1", env=locale)

    assert done.returncode == 0
    assert done.stdout.isascii() is ascii_only


def test_names_that_the_locale_lacks_are_written_as_escapes(site: Site) -> None:
    site.text("network", "add", "łódź")

    done = piped(site.url, "network", "list", env={"PYTHONIOENCODING": "iso8859-1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u0142" in done.stdout


@pytest.mark.parametrize("noun", [[], ["network"], ["instance"]])
def test_help_is_quick_because_it_loads_no_driver_no_other_door_and_nothing_that_moves_ledgers(
    site: Site, noun: list[str]
) -> None:
    code = """
import sys
from tenure.doors.cli.main import main
try:
    main(sys.argv[1:])
finally:
    heavy = {"asyncpg", "sqlite3", "tenure.interchange.copy_ledger", "tenure.interchange.importer.import_run", "csv"}
    doors = {name for name in sys.modules if name.startswith("tenure.integrations.ganeti")}
    print(sorted(heavy & set(sys.modules) | doors), file=sys.stderr)
"""
    done = subprocess.run(
        [*TENURE[:1], "-c", code, *noun, "--help"],
        env=surroundings(site.url),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0
    assert done.stdout.startswith("Usage: tenure")
    assert done.stderr == "[]\n"


def test_a_command_loads_only_its_own_file(site: Site) -> None:
    code = "import sys\nfrom tenure.doors.cli.main import main\ntry:\n    main(['network', 'list'])\nfinally:\n    "
    code += "print([name for name in sys.modules if name.endswith(('cli.show', 'cli.holdings', 'cli.bench'))])"
    done = subprocess.run(
        [*TENURE[:1], "-c", code], env=surroundings(site.url), capture_output=True, text=True, check=False
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_script_of_the_package_is_the_command_line() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]

    assert scripts["tenure"] == "tenure.doors.cli.main:main"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_a_shell_calls_us(site: Site, shell: str) -> None:
    script = site.text("completion", shell)

    assert f"_TENURE_COMPLETE={shell}_complete" in script


def completed(site: Site, words: str, url: str | None = None) -> list[str]:
    """Ask as bash asks when somebody presses tab behind these words."""
    asked = {"_TENURE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = piped(url or site.url, env=asked, folder=site.folder)
    assert done.returncode == 0
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_options_and_names_are_completed(site: Site) -> None:
    assert completed(site, "tenure re") == ["reserve", "release", "release-owner", "render", "restore"]
    assert completed(site, "tenure network re") == ["rename", "retire", "remove", "remove-tags"]
    assert completed(site, "tenure allocate n") == ["net1"]
    assert completed(site, "tenure pool retire net1 ") == ["pool1"]
    assert completed(site, "tenure subnet retire net1 o") == ["old"]
    assert completed(site, "tenure allocate net1 instance/x --pool p") == ["pool1"]
    assert "--policy" in completed(site, "tenure allocate net1 instance/x --po")
    assert completed(site, "tenure show n") == ["net1"]


def test_names_of_machines_are_completed(machines: Site) -> None:
    assert completed(machines, "tenure instance info w") == ["web"]
    assert completed(machines, "tenure instance add x --node ") == ["node1", "node9"]
    assert completed(machines, "tenure node remove node9") == ["node9"]
    assert completed(machines, "tenure node add x --group s") == ["spare"]
    assert completed(machines, "tenure network connect lan d") == ["default"]
    assert completed(machines, "tenure network info l") == ["lan"]
    assert completed(machines, "tenure instance m") == ["modify", "move"]


def test_completion_reads_the_store_that_stands_before(site: Site) -> None:
    assert completed(site, f"tenure --store {site.url} allocate n", "sqlite:///missing.db") == ["net1"]


@pytest.mark.parametrize(
    "url", ["sqlite:///missing.db", "postgresql://localhost:1/x", "nonsense", "sqlite:///plan.csv"]
)
def test_completion_never_fails_and_makes_no_store(site: Site, url: str) -> None:
    before = sorted(path.name for path in site.folder.iterdir())

    assert completed(site, "tenure allocate n", url) == []
    assert sorted(path.name for path in site.folder.iterdir()) == before
