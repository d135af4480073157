"""Every numbered case of the conformance file has a test that runs on every store, and says its number."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.integrations.bosh.conformance.test_wrong_documents import CONFIGS, MANIFESTS

FOLDER = Path(__file__).parent / "conformance"

CASES = {
    "A": (1, 2, 3, 5, 6, 7, 8, 10, 11, 12),
    "B": (1, 2, 3, 4, 5, 8, 9, 11, 12, 13, 14, 16, 17),
    "C": (1, 2, 3, 4, 6, 7, 8, 10, 11, 13, 14, 15, 16, 17, 19, 20, 22),
    "D": (1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 15, 16, 18, 19, 20, 21, 22, 25, 26),
    "E": (1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 14, 15, 17, 18),
    "F": (1, 2, 4, 5, 6, 7, 8, 9),
    "G": (1, 2, 3, 4, 5, 6, 8, 9, 10, 11),
    "H": (1, 2, 3, 4, 5, 6, 7, 9),
    "I": (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16),
}
"""The cases as the file numbers them: where there is a gap, it tells none."""

NUMBER = re.compile(r"[a-i]\d+")


def told() -> Iterator[str]:
    """Give the cases that tests name: in their own name, or in the names of the documents that they are given."""
    for path in FOLDER.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and node.name.startswith("test_"):
                yield from (word.upper() for word in node.name.split("_") if NUMBER.fullmatch(word))
    for name in (*CONFIGS, *MANIFESTS):
        yield from (word.upper() for word in name.split("-") if NUMBER.fullmatch(word))


def test_every_case_has_a_test() -> None:
    assert {f"{group}{number}" for group, numbers in CASES.items() for number in numbers} - set(told()) == set()
