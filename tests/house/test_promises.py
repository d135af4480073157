"""The table of promises in CONTRIBUTING: every promise of the README has a row, and every test it names is there."""

import ast
import re
from pathlib import Path

from tests.house.test_layout import ROOT

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)


def rows() -> dict[str, str]:
    """Return what proves each promise in ``make test``."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text[text.index("## Which promise is proven where") : text.index("## Style")]
    return {promise: proof for promise, proof, _ in ROW.findall(table) if "`tests/" in proof}


def modules(place: Path) -> list[Path]:
    """List the test modules of a file or folder."""
    return sorted(place.rglob("test_*.py")) if place.is_dir() else [place]


def is_run_by_make_test(module: Path) -> bool:
    """Return whether a module has tests that are not all left for ``make proof``."""
    tree = ast.parse(module.read_text("utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    marks = [ast.unparse(node.value) for node in assigned if ast.unparse(node.targets[0]) == "pytestmark"]
    tests = [node for node in ast.walk(tree) if str(getattr(node, "name", "")).startswith("test_")]
    return bool(tests) and not any("pytest.mark.proof" in mark for mark in marks)


def test_every_promise_of_the_readme_has_a_row() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    promises = set(re.findall(r"^\d\. \*\*([^*]+)\*\*", readme[readme.index("## Promises") :], re.MULTILINE))

    assert len(promises) >= 8
    assert promises - set(rows()) == set()


def test_every_row_names_tests_that_make_test_runs() -> None:
    named = {place for proof in rows().values() for place in re.findall(r"`(tests/[^`]+)`", proof)}
    idle = [place for place in named if not any(map(is_run_by_make_test, modules(ROOT / place)))]

    assert len(named) > 20
    assert [place for place in named if not (ROOT / place).exists()] == []
    assert idle == []
