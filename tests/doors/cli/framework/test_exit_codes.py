"""Exit codes and errors: one table, a hint on what to do next, and nothing changed."""

import json
import subprocess
from pathlib import Path

import pytest

import tenure
from tenure.doors.cli.commands import verify_sweep
from tenure.doors.cli.framework import exit_codes, hints
from tenure.integrations.vmpool import pool_agent, vm_instances  # noqa: F401 - their errors are of the tree, too
from tenure.kernel import errors
from tenure.service.ledger.async_ledger import AsyncLedger
from tests.doors.cli.processes import TENURE, surroundings
from tests.doors.cli.site import Site, build_full

REFUSED: list[tuple[int, str, list[str]]] = [
    (2, "usage", ["network", "add"]),
    (2, "usage", ["nonsense"]),
    (2, "usage", ["allocate", "net1", "instance/x", "--label", "no-equals"]),
    (2, "usage", ["allocate", "net1", "instance/x", "--label", "a=1", "--label", "a=2"]),
    (2, "usage", ["allocate", "net1", "instance/x", "--policy", "best"]),
    (2, "usage", ["allocate", "net1", "instance/x", "--nonsense"]),
    (2, "usage", ["completion", "csh"]),
    (2, "usage", ["watch", "--after", "soon"]),
    (2, "invalid", ["allocate", "net1", "nobody"]),
    (2, "invalid", ["allocate", "net1", "instance/x", "--address", "192.0.2.300"]),
    (2, "invalid", ["allocate", "net1", "instance/x", "--wait", "-1"]),
    (2, "invalid", ["subnet", "add", "net1", "10.0.0.1/24"]),
    (2, "invalid", ["pool", "add", "net1", "192.0.2.9-192.0.2.1"]),
    (2, "invalid", ["why", "not-an-address"]),
    (2, "invalid", ["network", "add", " spaced "]),
    (2, "invalid", ["watch", "--once", "--after", "-3"]),
    (2, "address_outside_subnet", ["allocate", "net1", "instance/x", "--address", "198.51.100.9"]),
    (3, "not_found", ["allocate", "nowhere", "instance/x"]),
    (3, "not_found", ["network", "remove", "nowhere"]),
    (3, "not_found", ["subnet", "modify", "net1", "10.0.0.0/8", "--name", "x"]),
    (3, "not_found", ["pool", "retire", "net1", "nope"]),
    (3, "not_found", ["allocate", "net1", "instance/x", "--pool", "nope"]),
    (3, "not_found", ["confirm", "net1", "192.0.2.77", "instance/x"]),
    (4, "already_exists", ["network", "add", "net1"]),
    (4, "address_in_use", ["allocate", "net1", "instance/x", "--address", "192.0.2.10"]),
    (4, "address_reserved", ["allocate", "net1", "instance/x", "--address", "192.0.2.20"]),
    (4, "overlap", ["subnet", "add", "net1", "192.0.2.128/25"]),
    (4, "still_in_use", ["network", "remove", "net1"]),
    (4, "not_owner", ["release", "net1", "192.0.2.10", "instance/x"]),
    (4, "conflict", ["cancel", "net1", "192.0.2.10", "instance/web-0"]),
    (5, "pool_exhausted", ["allocate", "full", "instance/x"]),
    (5, "pool_exhausted", ["allocate", "net1", "instance/x", "--count", "80"]),
    (5, "pool_exhausted", ["hold", "full", "instance/x"]),
]


@pytest.mark.parametrize(("code", "error", "words"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_refused_has_its_code_says_what_to_do_and_changes_nothing(
    site: Site, code: int, error: str, words: list[str]
) -> None:
    build_full(site)
    before = site.state()
    plain = site.call(*words)
    found_code, found = site.error(*words)

    assert (found_code, found["code"]) == (code, error)
    assert found["message"]
    assert {"code", "message", "field", "hint"} <= found.keys()
    assert plain.exit_code == code
    assert plain.stdout == ""
    first, hint = plain.stderr.splitlines()
    assert first == f"tenure: {found['message']}"
    assert hint == f"  {found['hint']}"
    assert site.state() == before


def test_errors_carry_their_data(site: Site) -> None:
    _, error = site.error("allocate", "net1", "instance/x", "--address", "192.0.2.10")

    assert (error["field"], error["address"], error["holder"]) == ("address", "192.0.2.10", "instance/web-0")
    assert error["hint"].startswith("`tenure why 192.0.2.10`")


@pytest.mark.parametrize("url", ["sqlite:///plan.csv", "postgresql://localhost:1/x"])
def test_a_store_that_does_not_answer_is_six(site: Site, url: str) -> None:
    code, error = site.error("show", "--store", url)

    assert (code, error["code"], error["outcome"]) == (6, "store_unavailable", "none")
    assert "TENURE_STORE" in error["hint"]


def test_a_url_that_names_no_store_is_two(site: Site) -> None:
    assert site.error("show", "--store", "mysql://x")[1]["field"] == "url"


def test_the_store_is_named_by_option_before_environment(site: Site) -> None:
    other = f"sqlite:///{site.folder / 'other.db'}"
    site.text("--store", other, "network", "add", "elsewhere")

    assert [entry["name"] for entry in site.json("network", "list", "--store", other)] == ["elsewhere"]
    assert [entry["name"] for entry in site.json("network", "list")] == ["net1"]
    assert [entry["name"] for entry in site.json("--store", "memory:", "network", "list", "--store", other)] == [
        "elsewhere"
    ]


def test_without_a_store_a_file_here_is_used(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = site.call("network", "add", "here", env={"TENURE_STORE": ""})

    assert result.exit_code == 0
    with tenure.open(f"sqlite:///{tmp_path / 'tenure.db'}") as ledger:
        assert [network.name for network in ledger.networks()] == ["here"]


def test_findings_are_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: AsyncLedger) -> list[tenure.Breach]:
        return [tenure.Breach("I1", "two holdings over each other")]

    assert site.json("verify") == {"clean": True, "breaches": []}
    monkeypatch.setattr(AsyncLedger, "verify", broken)
    assert site.json("verify", code=1) == {
        "clean": False,
        "breaches": [{"invariant": "I1", "text": "two holdings over each other"}],
    }
    assert site.text("verify", code=1) == "I1: two holdings over each other\n"


def test_a_fault_of_tenure_itself_is_seventy(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_sweep, "answer", None)
    result = site.call("verify")

    assert result.exit_code == exit_codes.INTERNAL
    assert "TypeError" in result.stderr


def test_a_file_that_cannot_be_written_is_two(site: Site) -> None:
    code, error = site.error("export", "--output", str(site.folder / "nowhere" / "x.json"))

    assert (code, error["code"]) == (2, "file")
    assert error["message"] == f"{site.folder / 'nowhere'}: there is no such folder"


@pytest.mark.parametrize("words", [["export"], ["render", "hosts", "net1"]])
def test_a_file_that_cannot_be_written_is_named_as_the_user_named_it(site: Site, words: list[str]) -> None:
    (site.folder / "taken").mkdir()
    code, error = site.error(*words, "--output", "taken/x/y")
    assert (code, error["message"]) == (2, "taken/x: there is no such folder")

    result = site.call(*words, "--output", "/dev/full/x")
    assert (result.exit_code, ".part" in result.stderr) == (2, False)


def test_an_answer_that_cannot_be_written_is_seventy_four_and_the_effect_stays(site: Site) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TENURE, "allocate", "net1", "instance/untold"],
            env=surroundings(site.url), stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip

    assert done.returncode == exit_codes.UNTOLD == 74
    assert done.stderr.startswith("tenure: standard output: No space left on device; the command is done")
    assert len(done.stderr.splitlines()) == 2
    assert len(site.json("show", "instance/untold")) == 1


@pytest.mark.parametrize("words", [["export"], ["--help"], ["why", "--help"], ["watch", "--once"]], ids=" ".join)
def test_whatever_standard_output_does_not_take_is_seventy_four(site: Site, words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TENURE, *words], env=surroundings(site.url), stdout=full, stderr=subprocess.PIPE, check=False
        )

    assert done.returncode == exit_codes.UNTOLD
    assert done.stderr.startswith(b"tenure: standard output: ")


@pytest.mark.parametrize("reach", ["refuse", "force"])
def test_nobody_is_sent_to_force_against_what_force_does_not_reach(site: Site, reach: str) -> None:
    site.text("pool", "add", "net1", "192.0.2.110-192.0.2.111", "--cooling", "600")
    site.text("allocate", "net1", "instance/gone", "--address", "192.0.2.110")
    site.text("release", "net1", "192.0.2.110", "instance/gone")
    site.text("subnet", "retire", "net1", "old")

    cooling = site.error("allocate", "net1", "instance/x", "--address", "192.0.2.110", "--reserved", reach)[1]
    retired = site.error("allocate", "net1", "instance/x", "--address", "203.0.113.6", "--reserved", reach)[1]
    assert "cooling until" in cooling["message"]
    assert cooling["hint"].startswith("wait until then, name another address")
    assert "--undo" in retired["hint"]


def test_every_error_of_the_tree_has_an_exit_code_and_a_hint() -> None:
    waiting = [errors.TenureError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind not in (errors.TenureError, errors.StoreUnavailable):
            assert kind.code in hints.HINTS | hints.VM_POOL_HINTS, kind
            assert any(parent in exit_codes.EXITS for parent in kind.__mro__), kind


def test_error_documents_are_json_whatever_they_carry(site: Site) -> None:
    result = site.call("allocate", "nété", "instance/x", "--json")

    assert json.loads(result.stderr)["error"]["name"] == "nété"
    assert result.stderr.isascii()


@pytest.mark.parametrize("words", [[], ["network"]])
def test_without_a_command_the_help_is_shown_and_the_code_is_two(site: Site, words: list[str]) -> None:
    result = site.call(*words)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: tenure")
    assert site.error(*words)[1]["message"] == "Missing command."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["network", "remove", "net1"], "or pass --cascade"),
        (["allocate", "bare", "instance/x"], "add one with `tenure pool add`"),
        (["hold", "net1", "instance/x", "--lasts", "-1"], "--lasts: "),
        (["pool", "add", "net1", "192.0.2.101", "--cooling", "-1"], "--cooling: "),
    ],
)
def test_messages_speak_the_words_of_the_command_line(site: Site, words: list[str], said: str) -> None:
    site.text("network", "add", "bare")

    assert said in site.error(*words)[1]["message"]
