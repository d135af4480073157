"""The documents say what the code does: names, signatures, codes and URLs are compared, code blocks are run."""

import ast
import contextlib
import dataclasses
import doctest
import enum
import importlib
import inspect
import io
import re
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tenure
from tenure import wiring
from tenure.kernel import errors
from tenure.ports import Abilities
from tenure.stores.memory.store import MemoryStore
from tenure.stores.postgres.store import PostgresStore
from tenure.stores.sqlite.store import SqliteStore

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES_WITH_CODE = [page for page in PAGES if "```python" in page.read_text("utf-8")]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLASS = re.compile(r"^class (\w+)\(([^)]*)\):", re.MULTILINE)
PLAIN = re.compile(r"(?<![.\w])\w+(?!\.)")
MODULE_PATH = re.compile(
    r"`((?:kernel|ports|service|stores|wire|client|interchange|integrations|doors|testing)/[\w./*]+)"
)
PLACEHOLDERS = ("NAME", "NOUN")
PICTURE = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def page(name: str) -> str:
    """Read a page of the reference."""
    return (REFERENCE / name).read_text("utf-8")


def words(text: str) -> set[str]:
    """Find what a page sets as code, and the words in it."""
    quoted = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    return {*quoted, *(word for piece in quoted for word in re.findall(r"\w+", piece))}


def public_names() -> list[str]:
    """List the names of the package that a user may import."""
    own = getattr(tenure, "__all__", None) or vars(tenure)
    return sorted(
        name for name in own if not name.startswith("_") and not isinstance(getattr(tenure, name), types.ModuleType)
    )


def public_verbs() -> list[str]:
    """List the verbs of a ledger."""
    return sorted(name for name, _ in inspect.getmembers(tenure.Ledger, inspect.isfunction) if name[0] != "_")


def signature(name: str, function: Callable[..., object]) -> str:
    """Write a call as the reference shows it."""
    pieces: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in pieces:
            pieces.append("*")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        pieces.append(parameter.name + default)
    return f"{name}({', '.join(pieces)})"


def error_modules() -> set[str]:
    """Name the modules that define an error: a class with a base that is an error."""
    source = ROOT / "src"
    texts = {path: path.read_text("utf-8") for path in (source / "tenure").rglob("*.py")}
    classes = [(path, *found) for path, text in texts.items() for found in CLASS.findall(text)]
    names, before = {"TenureError"}, 0
    while len(names) > before:
        before = len(names)
        names |= {name for _, name, bases in classes if names & set(PLAIN.findall(bases))}
    homes = {path for path, name, bases in classes if names & set(PLAIN.findall(bases))}
    return {".".join(path.relative_to(source).with_suffix("").parts) for path in homes}


def error_classes() -> Iterator[type[errors.TenureError]]:
    """Yield the whole error tree, whichever tests were collected before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Neutron's libraries import what is deprecated
        for module in error_modules():
            importlib.import_module(module)
    waiting = [errors.TenureError]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += found.__subclasses__()


ERRORS: list[type[errors.TenureError]] = sorted(set(error_classes()), key=lambda error: error.code)


def url_schemes() -> list[str]:
    """Find the schemes that ``open_store`` compares with."""
    tree = ast.parse(inspect.getsource(wiring.open_store))
    comparisons = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    about_scheme = [node for node in comparisons if isinstance(node.left, ast.Name) and node.left.id == "scheme"]
    constants = (leaf for node in about_scheme for leaf in ast.walk(node) if isinstance(leaf, ast.Constant))
    return [str(leaf.value) for leaf in constants]


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_is_in_the_reference(name: str) -> None:
    text = page("library.md")

    assert name in words(text) or f"\n{name}(" in text


@pytest.mark.parametrize("verb", public_verbs())
def test_a_verb_is_shown_with_its_whole_signature(verb: str) -> None:
    assert f"```text\n{signature(verb, getattr(tenure.Ledger, verb))}\n```" in page("library.md")


@pytest.mark.parametrize("verb", ["open", "open_async", "open_book"])
def test_opening_is_shown_with_its_whole_signature(verb: str) -> None:
    assert f"```text\n{signature(verb, getattr(tenure, verb))}\n```" in page("library.md")


def test_the_reference_shows_no_verb_that_is_gone() -> None:
    shown = re.findall(r"^```text\n(\w+)\(", page("library.md"), re.MULTILINE)

    assert sorted(shown) == sorted([*public_verbs(), "open", "open_async", "open_book"])


@pytest.mark.parametrize(
    "value",
    [
        tenure.Holding,
        tenure.Change,
        tenure.Owner,
        tenure.Explanation,
        tenure.Finding,
        tenure.Breach,
        tenure.ClaimStatus,
        tenure.WaitingClaim,
        tenure.History,
        tenure.Tenure,
        tenure.Found,
    ],
    ids=lambda value: value.__name__,
)
def test_every_field_of_a_value_is_in_the_reference(value: type) -> None:
    own = {name for name in dir(value) if not name.startswith("_")} - set(dir(str)) - set(dir(tuple)) - {"trusted"}

    assert own - words(page("library.md")) == set()


@pytest.mark.parametrize("choice", [tenure.Policy, tenure.State, tenure.NetworkKind, tenure.KeepBack])
def test_every_word_of_a_choice_is_in_the_reference(choice: type[enum.StrEnum]) -> None:
    [row] = [line for line in page("library.md").splitlines() if line.startswith(f"| `{choice.__name__}` |")]

    assert {str(word) for word in choice} <= words(row)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_is_in_the_reference_with_its_code_and_data(error: type[errors.TenureError]) -> None:
    data = set(inspect.signature(error).parameters) - {"message", "of", "problem", "hint", "field", "case"}

    [row] = [line for line in page("errors.md").splitlines() if line.startswith(f"| `{error.code}` |")]

    assert {error.__name__, *data} <= words(row)


def test_error_codes_are_distinct() -> None:
    codes = [error.code for error in ERRORS]

    assert len(codes) == len(set(codes))


def test_every_url_scheme_is_in_the_reference() -> None:
    schemes = url_schemes()

    assert {"memory", "sqlite", "postgresql"} <= set(schemes)
    assert [scheme for scheme in schemes if f"`{scheme}:" not in page("stores.md")] == []


@pytest.mark.parametrize("ability", [field.name for field in dataclasses.fields(Abilities)])
def test_an_ability_is_in_the_reference_as_each_store_declares_it(ability: str) -> None:
    declared = [getattr(store.abilities, ability) for store in (MemoryStore, SqliteStore, PostgresStore)]
    expected = [{True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value) for value in declared]

    [row] = [line for line in page("stores.md").splitlines() if line.startswith(f"| `{ability}` |")]

    assert [cell.strip() for cell in row.split("|")[3:6]] == expected


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    targets = [target for target in LINK.findall(path.read_text("utf-8")) if "://" not in target]

    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {(page.parent / target).resolve() for page in PAGES for target in PICTURE.findall(page.read_text("utf-8"))}

    assert sorted(set((ROOT / "docs" / "pictures").iterdir()) - shown) == []


def test_modules_that_pages_name_exist() -> None:
    named = {
        (page.relative_to(ROOT).as_posix(), path)
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for path in MODULE_PATH.findall(page.read_text("utf-8"))
    }
    package = ROOT / "src" / "tenure"

    assert (
        sorted(
            (page, path)
            for page, path in named
            if not any(word in path for word in PLACEHOLDERS)
            and not any(list(package.glob(f"{path.rstrip('/')}{ending}")) for ending in ("", ".py"))
        )
        == []
    )


def test_decisions_are_numbered_without_gaps_and_have_context_choice_and_price() -> None:
    decisions = sorted((ROOT / "docs" / "why").glob("*.md"))
    numbers = [int(path.name[:4]) for path in decisions]
    texts = {path.name: path.read_text("utf-8") for path in decisions}

    assert numbers == list(range(1, len(decisions) + 1))
    parts = ("**Context.**", "**Choice.**", "**Price.**")
    assert [name for name, text in texts.items() if not all(part in text for part in parts)] == []
    assert [name for name, text in texts.items() if not text.startswith(f"# {int(name[:4])}. ")] == []


def test_the_readme_leads_to_every_page() -> None:
    read_on = (ROOT / "README.md").read_text("utf-8").partition("\n## Read on\n")[2]
    pages = [path for folder in ("tutorial", "howto", "reference") for path in (ROOT / "docs" / folder).glob("*.md")]

    assert len(pages) > 30
    assert [name for path in pages if f"({(name := path.relative_to(ROOT).as_posix())})" not in read_on] == []


def test_the_readme_opens_with_the_two_commands() -> None:
    kind, block = next(FENCE.finditer((ROOT / "README.md").read_text("utf-8"))).groups()

    assert kind == "sh"
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["make run", "make test"]


@pytest.mark.parametrize("path", PAGES_WITH_CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_blocks_run_and_print_what_the_page_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the Python blocks of a page in order; a text block right behind one is what it prints."""
    monkeypatch.chdir(tmp_path)
    checker, names = doctest.OutputChecker(), {"__name__": "__main__"}
    blocks = [match.groups() for match in FENCE.finditer(path.read_text("utf-8"))]
    for (kind, code), (next_kind, expected) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(path), "exec"), names)  # noqa: S102 - our own pages

        if next_kind == "text":
            assert checker.check_output(expected, printed.getvalue(), doctest.ELLIPSIS), printed.getvalue()


def test_pages_with_code_are_found() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in PAGES_WITH_CODE}

    assert {"README.md", "docs/tutorial/first-page.md", "docs/reference/library.md"} <= found
