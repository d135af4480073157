"""Names of the house: a file name and a public class name stand for one thing each, and folders stay small."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from tests.house.test_layout import MODULES, ROOT, name_of, written

PACKAGE = ROOT / "src" / "tenure"
MOST_MODULES = 22

GERUNDS = {"waiting", "wiring"}
"""Modules that are still named by what they do and not by what they have. The list only shrinks."""

NOUNS = {"holding"}
"""Words in -ing that are nouns of the field."""

SUITES = {"contract", "conformance", "proof", "house"}
"""Folders whose tests are about a promise and not about a module, whatever they are called."""


def modules() -> list[Path]:
    """List the modules of the package; migrations are named by their number or revision."""
    return [path for path in written("src/") if not path.stem.startswith("__") and "migration" not in str(path.parent)]


def is_implementation(path: Path) -> bool:
    """Return whether a module implements a port beside others, which then have the same file name."""
    return path.is_relative_to(PACKAGE / "stores")


def is_mirror(path: Path) -> bool:
    """Return whether a module says on the wire what others say inside: its classes are named like theirs."""
    return path.is_relative_to(PACKAGE / "wire") or path.stem.endswith(("_responses", "_schemas"))


@cache
def public_classes() -> dict[str, list[str]]:
    """Return where each public class is defined."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        if not is_mirror(path) and not is_implementation(path):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(name_of(path))
    return dict(found)


def room_of(path: Path) -> tuple[str, ...]:
    """Return the folders of a module, or of a test, below ``src/tenure`` or ``tests``."""
    parts = path.relative_to(ROOT).parent.parts
    return parts[2:] if parts[0] == "src" else parts[1:]


def misplaced_tests() -> list[str]:
    """List the tests that bear the name of a module of their integration or layer, and stand elsewhere.

    Such a test stands in the folder that mirrors the module's, or below it where it shares a stage with others.
    """
    rooms = defaultdict(list)
    for path in modules():
        rooms[path.stem].append(room_of(path))
    tests = [path for path in MODULES if path.stem.startswith("test_") and SUITES.isdisjoint(path.parts)]
    return [
        name_of(path)
        for path in tests
        if (near := [each for each in rooms[path.stem.removeprefix("test_")] if each[:2] == room_of(path)[:2]])
        and not any(room_of(path)[: len(each)] == each for each in near)
    ]


def glossary() -> list[str]:
    """List the words of the glossary."""
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text("utf-8")
    return [word.lower() for word in re.findall(r"^\| \*\*([^*]+)\*\*", text, re.MULTILINE)]


def test_a_file_name_stands_for_one_module() -> None:
    names = Counter(path.name for path in modules() if not is_implementation(path))

    assert sorted(name for name, times in names.items() if times > 1) == []


def test_a_public_class_name_stands_for_one_class() -> None:
    assert {name: places for name, places in public_classes().items() if len(places) > 1} == {}


def test_no_folder_has_more_modules_than_a_reader_can_hold() -> None:
    sizes = Counter(name_of(path.parent) for path in modules())

    assert {folder: size for folder, size in sizes.items() if size > MOST_MODULES} == {}


def test_a_module_is_named_by_what_it_has() -> None:
    found = {path.stem for path in modules() if re.fullmatch(r"[a-z]+ing", path.stem)} - NOUNS

    assert found == GERUNDS


def test_a_test_is_found_from_its_module() -> None:
    assert misplaced_tests() == []


def test_a_word_of_the_glossary_has_one_meaning() -> None:
    words = Counter(glossary())
    classes = public_classes()

    assert len(words) > 15
    assert [word for word, times in words.items() if times > 1] == []
    assert {word: found for word in words if len(found := classes.get(word.title(), [])) > 1} == {}
