"""A store that is not there: only what begins a ledger makes its file; everybody else says so."""

from pathlib import Path

import pytest

from tests.doors.cli.site import Site

READING = [
    ["show"],
    ["show", "net1", "--map"],
    ["why", "192.0.2.10"],
    ["verify"],
    ["history", "192.0.2.10"],
    ["search", "web"],
    ["export"],
    ["audit", "plan.csv"],
    ["watch", "--once"],
    ["waiting", "list"],
    ["network", "list"],
    ["render", "hosts", "net1"],
    ["backup", "x.db"],
    ["allocate", "net1", "instance/x"],
    ["sweep"],
    ["archive", "--keep-days", "90"],
]


@pytest.mark.sampled
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_missing_file_is_told_and_not_made(site: Site, words: list[str]) -> None:
    before = sorted(site.folder.iterdir())
    code, error = site.error(*words, "--store", "sqlite:///missing.db")

    assert (code, error["code"], error["kind"]) == (3, "not_found", "ledger")
    assert "missing.db" in error["message"]
    assert "--store" in error["hint"]
    assert "tenure network add" in error["hint"]
    assert sorted(site.folder.iterdir()) == before


@pytest.mark.parametrize(
    "words", [["network", "add", "net1"], ["import", "all.json"], ["restore", "friday.db"]], ids=" ".join
)
def test_what_begins_a_ledger_makes_its_file(site: Site, words: list[str]) -> None:
    (site.folder / "all.json").write_text(site.text("export"), "utf-8")
    site.text(*words, "--store", "sqlite:///new.db")

    assert [entry["name"] for entry in site.json("network", "list", "--store", "sqlite:///new.db")] == ["net1"]


@pytest.mark.parametrize(
    "words", [["show"], ["network", "add", "x"], ["audit", "plan.csv"], ["backup", "x.db"], ["bench"]], ids=" ".join
)
def test_an_empty_url_is_refused(site: Site, words: list[str], tmp_path: Path) -> None:
    before = sorted(site.folder.iterdir())

    for order in (["--store", "", *words], [*words, "--store", ""]):
        code, error = site.error(*order)
        assert (code, error["code"], error["field"]) == (2, "invalid", "url")
    assert sorted(site.folder.iterdir()) == before


def test_a_file_that_is_no_backup_is_named_and_the_store_is_not_blamed(site: Site) -> None:
    strange = site.error("restore", "plan.csv", "--store", "sqlite:///new.db")
    missing = site.error("restore", "nowhere.db", "--store", "sqlite:///new.db")

    assert (strange[0], missing[0]) == (6, 3)
    assert "plan.csv" in strange[1]["message"]
    for _, error in (strange, missing):
        assert error["hint"] == "FILE is what `tenure backup FILE` wrote"
    assert not (site.folder / "new.db").exists()
    copied = site.error("copy", "sqlite:///nowhere.db", "sqlite:///new.db")
    assert (copied[0], copied[1]["hint"]) == (3, "SOURCE is the URL of the ledger to copy")
    target = site.error("restore", "friday.db", "--store", "sqlite:///plan.csv")
    assert (target[0], target[1]["hint"]) == (6, "look at `--store` or TENURE_STORE")
