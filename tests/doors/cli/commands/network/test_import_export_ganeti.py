"""Ganeti's files on the command line: moved in, written back, converted."""

import json

import pytest

from tenure.doors.cli.output.json_keys import GANETI_IMPORT
from tests.doors.cli.processes import on_terminal
from tests.doors.cli.site import Site, ganeti_document, ganeti_nic

IMPORT = ("network", "import-ganeti", "config.data")


def test_a_dry_run_tells_what_would_be_made_and_makes_nothing(machines: Site) -> None:
    before = machines.state()
    text = machines.text(*IMPORT, "--dry-run")
    document = machines.json(*IMPORT, "--dry-run")

    assert "  networks: net7\n" in text
    assert text.endswith("would be written: 1 group, 1 node, 1 network, 1 instance, 1 address\n")
    assert list(document) == list(GANETI_IMPORT)
    assert (document["form"], document["written"], document["new"]["instances"]) == ("today", False, ["web-7"])
    assert machines.state() == before


def test_a_configuration_moves_in_and_out_again_unchanged(site: Site) -> None:
    (site.folder / "config.data").write_text(json.dumps(ganeti_document()), "utf-8")
    store = ("--store", "sqlite:///fresh.db")
    site.text(*IMPORT, *store)

    assert site.json("instance", "list", "-o", "ips", *store) == [{"ips": [["10.7.0.4"]]}]
    assert site.json("network", "export-ganeti", "--form", "today", *store) == ganeti_document()
    assert site.text("network", "export-ganeti", "out.data", "--form", "today", *store) == "wrote out.data\n"
    assert json.loads((site.folder / "out.data").read_text("utf-8")) == ganeti_document()
    [network] = site.json("network", "export-ganeti", *store)["networks"].values()
    assert [subnet["cidr"] for subnet in network["subnets"]] == ["10.7.0.0/28"]


def test_an_import_that_is_repeated_finds_everything_there(machines: Site) -> None:
    machines.text(*IMPORT)
    before = machines.state()

    assert machines.text(*IMPORT).endswith("nothing to do: this file was brought in before\n")
    assert machines.json(*IMPORT)["present"]["networks"] == ["net7"]
    assert machines.state() == before


def test_what_is_in_the_way_is_listed_and_nothing_is_written(machines: Site) -> None:
    machines.text("group", "add", "rack7")
    before = machines.state()

    assert "in the way: group 'rack7' exists already\n" in machines.text(*IMPORT, "--dry-run", code=1)
    code, error = machines.error(*IMPORT)
    assert (code, error["field"]) == (4, "file")
    assert "rack7" in error["message"]
    assert machines.state() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"[]", "an object is needed"),
        (b"{}", "no Ganeti configuration"),
        (b'{"networks": {"x": {"name": "n", "network": "10.0.0.0/99"}}}', "networks[x]"),
    ],
)
def test_a_faulty_file_is_named_with_the_place_and_nothing_is_written(
    machines: Site, content: bytes, said: str
) -> None:
    (machines.folder / "config.data").write_bytes(content)
    before = machines.state()
    code, error = machines.error(*IMPORT)

    assert code == 2
    assert error["message"].startswith("config.data: ")
    assert said in error["message"]
    assert machines.state() == before


def test_a_running_instance_that_differs_is_told(machines: Site) -> None:
    (machines.folder / "web-7.runtime").write_text(json.dumps([[], [ganeti_nic("10.7.0.9")], {}]), "utf-8")
    found = machines.json(*IMPORT, "--runtime", "web-7.runtime", "--dry-run")["findings"]

    assert found == [
        {"place": "web-7.runtime: nics[0].ip", "reason": "runs with 10.7.0.9, the ledger has 10.7.0.4"},
    ]
    (machines.folder / "nobody.runtime").write_text(json.dumps([[], [], {}]), "utf-8")
    assert machines.error(*IMPORT, "--runtime", "nobody.runtime")[0] == 3
    assert machines.error(*IMPORT, "--runtime", "missing.runtime")[1]["code"] == "file"
    assert machines.error("network", "import-ganeti", "missing.data")[1]["code"] == "file"


def test_what_todays_form_cannot_say_is_named_and_no_file_is_touched(machines: Site) -> None:
    runtime = machines.folder / "web-7.runtime"
    before = runtime.read_text("utf-8")
    code, error = machines.error(
        "network", "export-ganeti", "out.data", "--form", "today", "--runtime", "web-7.runtime"
    )

    assert (code, error["field"]) == (4, "form")
    assert "lan" in error["message"]
    assert not (machines.folder / "out.data").exists()
    words = ["network", "export-ganeti", "nowhere/out.data", "--runtime", "web-7.runtime"]
    assert machines.error(*words)[1]["message"] == "nowhere: there is no such folder"
    assert runtime.read_text("utf-8") == before


def test_runtime_files_are_converted_both_ways(machines: Site) -> None:
    machines.text("network", "convert-runtime", "web-7.runtime", "-o", "new.runtime")

    converted = json.loads((machines.folder / "new.runtime").read_text("utf-8"))
    back = machines.json("network", "convert-runtime", "new.runtime", "--form", "today")
    assert converted[1][0]["ip"] == ["10.7.0.4"]
    assert back == json.loads((machines.folder / "web-7.runtime").read_text("utf-8"))
    written = machines.json("network", "export-ganeti", "out.data", "--runtime", "web-7.runtime")
    assert written == {"files": ["out.data", "web-7.runtime"], "form": "revised", "warnings": []}
    assert json.loads((machines.folder / "web-7.runtime").read_text("utf-8")) == converted


def test_a_runtime_file_that_is_none_is_refused(machines: Site) -> None:
    code, error = machines.error("network", "convert-runtime", "config.data")

    assert code == 2
    assert error["message"].startswith("config.data: ")


def test_progress_of_an_import_is_shown_on_a_terminal(machines: Site) -> None:
    code, shown = on_terminal(machines.url, *IMPORT)

    assert code == 0
    assert "importing" in shown


def test_a_dry_run_of_many_shows_the_first_names_and_how_many_more(machines: Site) -> None:
    document = ganeti_document()
    uuids = [f"77777777-0000-4000-9000-0000000000{number:02}" for number in range(12)]
    more = {uuid: {"name": f"rack-{uuid[-2:]}", "uuid": uuid, "networks": {}} for uuid in uuids}
    document["nodegroups"].update(more)
    (machines.folder / "config.data").write_text(json.dumps(document), "utf-8")
    [line] = [line for line in machines.text(*IMPORT, "--dry-run").splitlines() if line.startswith("  groups: ")]

    assert line.endswith(", rack-07, rack-08, … and 3 more")
    assert line.count(",") == 10
    assert len(machines.json(*IMPORT, "--dry-run")["new"]["nodegroups"]) == 13
