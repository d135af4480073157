"""The public names: what ``tenure`` promises is there, and nothing that it does not promise."""

import ast
import inspect
from collections.abc import Callable
from types import ModuleType

import pytest

import tenure
from tenure.kernel import errors
from tenure.kernel.plan import edits

FIRST_PAGE = {
    "add_network",
    "add_pool",
    "add_subnet",
    "allocate",
    "allocate_many",
    "apply",
    "changes",
    "close",
    "release",
    "release_owner",
    "reserve",
    "why",
}
"""The verbs of the design's first page. Users build on them; a name that goes from here breaks somebody."""

CODES = {
    "AddressInUse": "address_in_use",
    "AddressOutsideSubnet": "address_outside_subnet",
    "AddressCovered": "address_covered",
    "AddressReserved": "address_reserved",
    "AlreadyExists": "already_exists",
    "Conflict": "conflict",
    "CursorExpired": "cursor_expired",
    "Invalid": "invalid",
    "KeyReused": "key_reused",
    "NotFound": "not_found",
    "NotOwner": "not_owner",
    "Overlap": "overlap",
    "PoolExhausted": "pool_exhausted",
    "StillInUse": "still_in_use",
    "StoreUnavailable": "store_unavailable",
    "TenureError": "error",
}
"""The errors of the design's first page. Codes are for scripts: one may be added, none may change."""


def verbs(kind: type) -> dict[str, Callable[..., object]]:
    found = inspect.getmembers(kind, callable)
    return {name: member for name, member in found if not name.startswith("_")}


def classes(module: ModuleType, root: type) -> dict[str, type]:
    return {
        name: kind for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, root) and kind.__module__ == module.__name__
    }  # fmt: skip


def test_all_is_what_is_imported_for_users() -> None:
    tree = ast.parse(inspect.getsource(tenure))
    imported = [
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]

    assert set(tenure.__all__) == set(imported)
    assert len(set(tenure.__all__)) == len(tenure.__all__)
    assert all(hasattr(tenure, name) for name in tenure.__all__)


def test_nothing_but_modules_is_public_beside_all() -> None:
    public = {name for name, value in vars(tenure).items() if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(tenure, name), ModuleType)}

    assert public - modules == set(tenure.__all__)


@pytest.mark.parametrize("name", ["open", "open_async", "Ledger", "AsyncLedger", *CODES])
def test_the_first_page_names_it_so_it_is_there(name: str) -> None:
    assert name in tenure.__all__


@pytest.mark.parametrize("verb", sorted(FIRST_PAGE))
def test_the_first_page_uses_the_verb_so_the_ledger_has_it(verb: str) -> None:
    assert verb in verbs(tenure.Ledger)


def test_every_error_is_public_and_in_the_one_tree() -> None:
    tree = classes(errors, tenure.TenureError)

    assert set(tree) == set(CODES)
    assert all(getattr(tenure, name) is kind for name, kind in tree.items())


def test_every_error_has_its_own_code_which_never_changes() -> None:
    codes = {name: kind.__dict__["code"] for name, kind in classes(errors, tenure.TenureError).items()}

    assert codes == CODES
    assert len(set(codes.values())) == len(codes)


def test_every_edit_is_public() -> None:
    kinds = classes(edits, edits.Edit)

    assert set(kinds) - {"Edit"} <= set(tenure.__all__)


def test_both_ledgers_have_the_same_verbs() -> None:
    assert set(verbs(tenure.Ledger)) == set(verbs(tenure.AsyncLedger))


@pytest.mark.parametrize("verb", sorted(verbs(tenure.Ledger)))
def test_a_verb_takes_the_same_and_answers_the_same_on_both_ledgers(verb: str) -> None:
    blocking, asynchronous = (inspect.signature(getattr(kind, verb)) for kind in (tenure.Ledger, tenure.AsyncLedger))

    assert blocking.parameters == asynchronous.parameters
    assert str(blocking.return_annotation).replace("Async", "") == str(asynchronous.return_annotation).replace(
        "Async", ""
    )


@pytest.mark.parametrize("verb", sorted(verbs(tenure.Ledger)))
def test_a_verb_says_what_it_does(verb: str) -> None:
    assert inspect.getdoc(getattr(tenure.Ledger, verb)) == inspect.getdoc(getattr(tenure.AsyncLedger, verb))
    assert inspect.getdoc(getattr(tenure.Ledger, verb))


@pytest.mark.parametrize("verb", sorted(verbs(tenure.Ledger)))
def test_options_are_keywords_and_what_is_needed_comes_first(verb: str) -> None:
    signature = inspect.signature(getattr(tenure.Ledger, verb))
    plain = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]

    assert len(plain) <= 3
