"""The architecture page sends its reader to files that are there, in the folder that it names."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.test_layout import ROOT

PACKAGE = ROOT / "src" / "tenure"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
CODE = re.compile(r"`([^`\s]+)`")
PLACEHOLDERS = re.compile(r"(?<![A-Za-z])(NAME|NOUN|A|B|c)(?=[/_.]|$)")


def named_files(text: str) -> Iterator[str]:
    """Yield what a text names by a path, or by a name with an ending; placeholders are any name."""
    for word in CODE.findall(text):
        is_address = word.startswith("/")
        if not is_address and ("/" in word or re.search(r"\.(py|sql|js|md)$", word)):
            yield PLACEHOLDERS.sub("*", word.rstrip("/"))


def found_in(folder: Path, name: str) -> list[Path]:
    """Return the files of a name in a folder; modules may be written without their ending."""
    return [*folder.glob(name), *folder.glob(f"{name}.py")]


def misplaced(row: str) -> Iterator[str]:
    """Yield the files that a row names and that are not where it says: beside what it has named before, or above."""
    above: set[Path] = set()
    for name in named_files(row):
        found = [path for folder in (PACKAGE, ROOT, *above) for path in found_in(folder, name)]
        if not found:
            yield name
        above |= {each for path in found for each in (path, *path.parents) if each.is_relative_to(PACKAGE)}


def test_files_of_the_table_are_where_it_says() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]

    assert len(rows) > 30
    assert [(row.split("|")[1].strip(), name) for row in rows for name in misplaced(row)] == []


def test_files_that_the_text_names_by_a_path_exist() -> None:
    text = "\n".join(line for line in PAGE.splitlines() if not line.startswith("| "))
    folders = [path for path in (*PACKAGE.rglob("*"), PACKAGE, ROOT) if path.is_dir()]
    unknown = [name for name in named_files(text) if not any(found_in(folder, name) for folder in folders)]

    assert unknown == []


def test_names_of_the_page_occur_in_the_package() -> None:
    files = [path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".sql"}]
    known = {part for path in files for part in path.relative_to(PACKAGE).with_suffix("").parts}
    known |= {word for path in files for word in re.findall(r"\w+", path.read_text("utf-8"))}
    names = [word for word in CODE.findall(PAGE) if re.fullmatch(r"[A-Za-z_][\w.]*", word) and "test" not in word]

    assert len(names) > 150
    assert sorted({name for name in names if not known.issuperset(name.removesuffix(".js").split("."))}) == []
