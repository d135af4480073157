"""The shape of the house: short functions, a docstring in every module, no paths of anybody's machine."""

import ast
import re
import statistics
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("src", "tests", "bench", "tools", "examples")
GENERATED: set[str] = set()
"""Written by a tool and read by nobody: it may be as long as the ledger has verbs."""

LONGEST_FUNCTION, P90_FUNCTION, MEDIAN_FUNCTION = 60, 25, 8

PRIVATE = re.compile(r"^(?:async )?(?:def |class )?(_[A-Za-z]\w*)(?=\(|:| =)", re.MULTILINE)
"""A function, class or constant for its own module only."""
DOCSTRING = re.compile(r'(\s*#.*\n)*\s*r?"""')
MACHINE_FOLDERS = ("home", "root", "Users", "mnt", "work", "opt", "var/tmp", "tmp")
MACHINE_PATH = re.compile(rf"""(?:^|[\s"'(=:`])/(?:{"|".join(MACHINE_FOLDERS)})/[\w.-]+""")
TEXT = {".py", ".md", ".sql", ".toml", ".txt", ".yaml", ".yml", ".json", ".cfg", ".ini", ""}
SKIPPED = {
    ".git",
    ".venv",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    "build",
    "dist",
}


def files() -> list[Path]:
    """List the project's own files: what git knows or would take, or everything where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, encoding="utf-8")
    except (OSError, subprocess.CalledProcessError):
        every = (path for path in ROOT.rglob("*") if SKIPPED.isdisjoint(path.relative_to(ROOT).parts))
    else:
        every = (ROOT / name for name in done.stdout.split("\0") if name)
    return sorted(path for path in every if path.is_file())


FILES = files()
MODULES = [path for path in FILES if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in ROOMS]


def name_of(path: Path) -> str:
    """Name a file from the root."""
    return path.relative_to(ROOT).as_posix()


@cache
def functions(path: Path) -> list[tuple[int, str]]:
    """Return length and name of a file's functions."""
    return [
        (node.end_lineno - node.lineno + 1, f"{name_of(path)}:{node.lineno} {node.name}")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    ]


def written(room: str = "") -> list[Path]:
    """List the modules that people write."""
    return [path for path in MODULES if name_of(path).startswith(room) and name_of(path) not in GENERATED]


def test_the_house_is_found() -> None:
    assert {"src/tenure/wiring.py", "tests/house/test_layout.py"} <= {name_of(path) for path in MODULES}


def test_no_function_needs_a_scroll_bar() -> None:
    long = [found for path in written() for found in functions(path) if found[0] > LONGEST_FUNCTION]

    assert long == []


def test_the_usual_function_of_the_package_is_short() -> None:
    function_lengths = [lines for path in written("src/") for lines, _ in functions(path)]

    assert statistics.median(function_lengths) <= MEDIAN_FUNCTION
    assert statistics.quantiles(function_lengths, n=10)[-1] <= P90_FUNCTION


def test_every_module_with_something_in_it_says_what_it_is() -> None:
    texts = {name_of(path): path.read_text("utf-8") for path in MODULES}
    silent = [name for name, text in texts.items() if text.strip() and not DOCSTRING.match(text)]

    assert silent == []


def test_nothing_private_is_left_over() -> None:
    alone = [
        f"{name_of(path)}: {name}"
        for path in written("src/")
        for words in [Counter(re.findall(r"\w+", path.read_text("utf-8")))]
        for name in PRIVATE.findall(path.read_text("utf-8"))
        if words[name] == 1
    ]

    assert alone == []


def test_there_is_no_room_for_odds_and_ends() -> None:
    odd = {"utils", "util", "helpers", "helper", "misc", "common", "tools_", "shared"}

    assert [name_of(path) for path in MODULES if odd & {part.lower() for part in path.with_suffix("").parts[-3:]}] == []


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    found = [
        f"{name_of(path)}:{number}"
        for path in FILES
        if path.suffix in TEXT and path != Path(__file__)
        for text in [path.read_text("utf-8")]
        if any(f"/{folder}/" in text for folder in MACHINE_FOLDERS)  # which takes a tenth of the time
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]

    assert found == []


@pytest.mark.parametrize("line", ["see /home/ann/ledger.db", '"/tmp/x"', "path=/root/file"])
def test_a_path_of_somebodys_machine_would_be_seen(line: str) -> None:
    assert MACHINE_PATH.search(line)


def test_versions_are_pinned_without_host_names() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]

    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", pin)] == []


def test_the_build_runs_what_people_run() -> None:
    script = ROOT / ".ci" / "run"

    assert "make test" in script.read_text("utf-8")
    assert script.stat().st_mode & 0o111
