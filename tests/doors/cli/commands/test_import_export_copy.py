"""Commands that move ledgers: import, export, audit, render, backup, restore, copy; and sweep and bench."""

import asyncio
import json
import time
from pathlib import Path

import pytest

import tenure
from tenure.doors.cli.commands.export import FORMATS
from tenure.doors.cli.output.json_keys import COPY
from tenure.wiring import without_secrets
from tests.doors.cli.site import Site
from tests.infrastructure.postgres import fresh_schema


def test_an_import_is_tried_first_and_written_after(site: Site) -> None:
    before = site.state()
    dry = site.json("import", "plan.csv", "--dry-run")

    assert (dry["ok"], dry["written"], dry["new"]["holdings"]) == (True, False, 2)
    assert site.state() == before
    done = site.json("import", "plan.csv")
    assert (done["written"], done["new"]["holdings"]) == (True, 2)
    again = site.json("import", "plan.csv")
    assert (again["new"]["holdings"], again["already"]["holdings"]) == (0, 2)
    assert "there already: 2 holdings" in site.text("import", "plan.csv")


def test_an_import_with_faults_names_them_all_and_writes_nothing(site: Site) -> None:
    (site.folder / "bad.csv").write_text(
        "network,address,owner\nnet1,192.0.2.10,instance/other\nnet1,nonsense,instance/x\nnet1,192.0.2.62,instance/ok\n"
    )
    before = site.state()

    for words in (["import", "bad.csv"], ["import", "bad.csv", "--dry-run"]):
        report = site.json(*words, code=1)
        assert (report["ok"], report["written"]) == (False, False)
        assert [fault["line"] for fault in report["faults"]] == [2, 3]
        text = site.text(*words, code=1)
        assert "bad.csv line 2" in text
        assert "2 faults: correct them, then run the import again" in text
    assert site.state() == before


def test_a_spreadsheet_is_not_taken_for_netboxs(site: Site) -> None:
    (site.folder / "hosts.csv").write_text("IP Address,Hostname,Owner\n192.0.2.70,web-7,shop\n")
    before = site.state()
    report = site.json("import", "hosts.csv", code=1)

    assert [(fault["field"], fault["line"]) for fault in report["faults"]] == [("network", 1)]
    assert site.state() == before


@pytest.mark.parametrize("words", [["plan.csv"], ["netbox.csv"]], ids=" ".join)
def test_a_dry_run_where_no_ledger_is_tries_a_new_one_and_leaves_nothing(site: Site, words: list[str]) -> None:
    new = site.folder / "new.db"
    report = site.json("import", *words, "--dry-run", "--store", f"sqlite:///{new}", code=1)

    assert (report["ok"], report["written"], new.exists()) == (False, False, False)
    (site.folder / "all.json").write_text(site.text("export", "--json"), "utf-8")
    whole = site.json("import", "all.json", "--dry-run", "--store", f"sqlite:///{new}")
    assert (whole["ok"], whole["new"]["networks"], new.exists()) == (True, 1, False)


def test_a_file_that_is_not_there_or_cannot_be_read_is_told(site: Site) -> None:
    assert site.error("import", "nowhere.csv")[0] == 2
    (site.folder / "odd.json").write_text("{")
    assert "not JSON" in site.error("import", "odd.json")[1]["message"]


def test_an_export_comes_back_whole(site: Site) -> None:
    exported = site.text("export", "--json")
    (site.folder / "all.json").write_text(exported, "utf-8")
    other = f"sqlite:///{site.folder / 'other.db'}"
    report = site.json("import", "all.json", "--store", other)

    assert json.loads(exported)["holdings"]
    assert report["ok"] is True
    assert site.json("holding", "list", "net1", "--store", other)[0]["owner"] == "instance/web-0"


@pytest.mark.parametrize(
    ("format", "begins"),
    [
        ("csv", "network,address,owner"),
        ("netbox-prefixes", "prefix,vrf"),
        ("netbox-ranges", "start_address,end_address"),
        ("netbox-addresses", "address,vrf"),
    ],
)
def test_an_export_is_written_to_a_file_or_to_the_pipe(site: Site, format: str, begins: str) -> None:
    piped = site.text("export", "--format", format, "--network", "net1")
    told = site.json("export", "--format", format, "--network", "net1", "--output", "out.txt")

    assert piped.startswith(begins)
    assert told == {"file": "out.txt", "format": format}
    assert (site.folder / "out.txt").read_text("utf-8").splitlines() == piped.splitlines()
    assert list(site.folder.glob(".*part")) == []


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_of_a_network_that_is_not_there_writes_nothing(site: Site, format: str) -> None:
    result = site.call("export", "--format", format, "--network", "nowhere")

    assert (result.exit_code, result.stdout) == (3, "")
    assert "nowhere" in result.stderr


def test_a_broken_export_leaves_the_old_file(site: Site) -> None:
    (site.folder / "out.txt").write_text("old")

    assert site.error("export", "--network", "nowhere", "--output", "out.txt")[0] == 3
    assert (site.folder / "out.txt").read_text() == "old"
    assert list(site.folder.glob(".*part")) == []


def test_an_audit_compares_with_the_ledger_and_writes_nothing(site: Site) -> None:
    (site.folder / "two.csv").write_text("network,address,owner\nnet1,192.0.2.10,instance/other\n")
    before = site.state()
    report = site.json("audit", "two.csv", code=1)

    assert report["compared"] == 5
    [disagree] = [each for each in report["discrepancies"] if each["verdict"] == "disagree"]
    assert disagree["address"] == "192.0.2.10"
    assert "discrepancies" in site.text("audit", "two.csv", code=1).splitlines()[-1]
    assert site.state() == before


def test_an_audit_takes_other_ledgers_and_several_files_of_one_export(site: Site) -> None:
    agree = site.json("audit", f"sqlite:///{site.folder / 'friday.db'}")
    several = site.json("audit", "plan.csv,netbox.csv", "--no-ledger", code=1)

    assert (agree["ok"], len(agree["sources"])) == (True, 2)
    assert several["sources"] == ["plan.csv, netbox.csv"]
    assert site.error("audit", f"sqlite:///{site.folder / 'missing.db'}")[0] == 3
    assert not (site.folder / "missing.db").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["hosts", "net1", "--domain", "example.org"], "192.0.2.10\tweb-0.example.org web-0"),
        (["dnsmasq", "net1"], "host-record=web-0,192.0.2.10"),
        (["kea", "net1"], '"subnet": "192.0.2.0/24"'),
        (
            ["ptr", "net1", "--serial", "7", "--nameserver", "ns.example.org", "--domain", "example.org"],
            "web-0.example.org.",
        ),
    ],
    ids=["hosts", "dnsmasq", "kea", "ptr"],
)
def test_a_network_is_rendered_and_what_is_left_out_is_told(site: Site, words: list[str], expected: str) -> None:
    plain = site.call("render", *words)
    document = site.json("render", *words)

    assert plain.exit_code == 0
    assert expected in plain.stdout
    assert "left out: net1 192.0.2.13: state: it is pending" in plain.stderr
    assert [remark["path"] for remark in document["left_out"] if remark["field"] == "state"] == ["192.0.2.13"]
    assert expected in (document["text"] if "text" in document else "".join(document["zones"].values()))


def test_renderings_are_written_to_files(site: Site) -> None:
    one = site.json("render", "hosts", "net1", "--output", "hosts.txt")
    ptr = ["render", "ptr", "net1", "--serial", "7", "--nameserver", "ns.example.org", "--domain", "example.org"]
    zones = site.json(*ptr, "--folder", ".")

    assert one["file"] == "hosts.txt"
    assert "web-0" in (site.folder / "hosts.txt").read_text("utf-8")
    assert "2.0.192.in-addr.arpa.zone" in zones["files"]
    assert all((site.folder / file).exists() for file in zones["files"])


def test_a_backup_is_restored_into_an_empty_store_and_nothing_else(site: Site) -> None:
    report = site.json("backup", "monday.db")
    restored = f"sqlite:///{site.folder / 'restored.db'}"
    again = site.json("restore", "monday.db", "--store", restored)

    assert list(report) == list(COPY)
    assert report["digest"] == again["digest"]
    assert report["breaches"] == []
    assert site.json("holding", "list", "net1", "--store", restored) == site.json("holding", "list", "net1")
    assert site.error("backup", "monday.db")[1]["code"] == "already_exists"
    assert site.error("restore", "monday.db", "--store", restored)[0] == 4
    assert site.error("restore", "tuesday.db", "--store", restored)[0] == 3


def test_a_backup_tells_what_it_copied(site: Site) -> None:
    text = site.text("backup", "monday.db")

    assert text.startswith("backed up to monday.db, as of change ")
    assert ": 1 space, 1 network, 4 holdings, " in text
    assert " 0 " not in text


def test_one_of_a_kind_is_told_in_the_singular(site: Site) -> None:
    (site.folder / "one.csv").write_text("network,address,owner\nnet1,192.0.2.60,instance/new\n")
    (site.folder / "bad.csv").write_text("network,address,owner\nnet1,nonsense,instance/x\n")

    assert "1 fault: correct it, then run the import again" in site.text("import", "bad.csv", code=1)
    assert site.text("import", "one.csv") == "written: 1 holding\n"
    assert site.text("audit", "one.csv", "--no-ledger") == "compared 1 holding of 1 source: all agree\n"


async def test_a_ledger_is_copied_to_postgresql_and_back(site: Site) -> None:
    async with fresh_schema() as url:
        there = await asyncio.to_thread(site.json, "copy", site.url, url)
        back = await asyncio.to_thread(site.json, "copy", url, f"sqlite:///{site.folder / 'back.db'}")
        shown = await asyncio.to_thread(site.json, "show", "--store", url)

    assert there["digest"] == back["digest"]
    assert shown == await asyncio.to_thread(site.json, "show")


def test_old_changes_are_archived_and_history_still_tells_of_them(site: Site) -> None:
    site.text("release", "net1", "192.0.2.10", "instance/web-0")
    before = site.json("history", "192.0.2.10")

    assert site.text("archive", "--keep-days", "30") == "0 changes moved into the archive\n"
    assert site.json("archive", "--keep-days", "0")["moved"] > 5

    code, error = site.error("watch", "--once", "--after", "0")
    assert (code, error["code"]) == (4, "cursor_expired")
    assert [each["owner"] for each in before["tenures"]] == ["instance/web-0"]
    assert site.json("history", "192.0.2.10") == before
    assert site.text("verify") == "clean: every invariant holds\n"


def test_a_sweep_removes_what_is_overdue(site: Site) -> None:
    site.text("hold", "net1", "instance/late", "--lasts", "0.001")
    time.sleep(0.05)

    assert [holding["owner"] for holding in site.json("sweep")] == ["instance/late"]
    assert site.text("sweep") == "nothing is overdue\n"


def test_a_bench_measures_and_leaves_the_store_as_it_was(site: Site) -> None:
    before = [network.name for network in site.state()[1]]  # type: ignore[attr-defined]
    rows = site.json("bench", "--seconds", "0.1")

    assert [(row["what"], row["callers"]) for row in rows] == [
        ("raw commits", 1),
        ("allocations", 1),
        ("allocations", 16),
    ]
    assert all(row["per_s"] > 0 and row["ratio"] > 0 for row in rows)
    assert [network.name for network in site.state()[1]] == before  # type: ignore[attr-defined]
    with tenure.open(site.url) as ledger:
        assert any(change.verb == "network.remove" for change in ledger.changes())


def test_a_bench_without_a_store_leaves_nothing(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    result = site.call("bench", "--seconds", "0.05", env={"TENURE_STORE": ""})

    assert result.exit_code == 0
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@db.example:5432/site?password=secret", "postgresql://db.example:5432/site"),
        ("sqlite:///site.db", "sqlite:///site.db"),
        ("sqlite:////srv/site.db", "sqlite:////srv/site.db"),
    ],
)
def test_an_audit_report_names_ledgers_without_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
