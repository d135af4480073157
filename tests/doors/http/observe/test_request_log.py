"""The log: one line a request, whatever it was; no secret in it; nobody can forge a line."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tenure.doors.http.observe.log_format import console_note, json_note
from tenure.doors.http.observe.log_writer import Sink
from tenure.doors.http.observe.request_log import Journal
from tenure.doors.http.settings import Settings
from tests.doors.http.processes import Serving, serving, until

SECRETS = ("tnr_" + "0" * 16 + "_" + "f" * 64, "swordfish-cookie", "swordfish-body", "swordfish-query")


def requests_of(server: Serving) -> list[dict[str, Any]]:
    """Return the lines of requests, as documents."""
    documents = [json.loads(line) for line in server.lines()]
    return [document for document in documents if document["event"] == "request"]


def test_every_request_has_one_line_that_tells_who_what_how_long_and_how_it_ended(tmp_path: Path) -> None:
    with serving(tmp_path, "--log", "json") as server:
        server.lay_out()
        server.ask("POST", "/api/v1/networks/net1:allocate", {"owner": "instance/a"}, X_Request_Id="mine-7")
        server.ask("GET", "/api/v1/networks/none")
        server.ask("GET", "/healthz", token=None)
    lines = requests_of(server)

    allocated, missing, health = lines[-3:]
    assert len(lines) == 6
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", allocated["time"])
    assert {name: allocated[name] for name in ("request_id", "actor", "method", "route", "path", "status", "peer")} == {
        "request_id": "mine-7",
        "actor": "admin",
        "method": "POST",
        "route": "/api/v1/networks/{network}:allocate",
        "path": "/api/v1/networks/net1:allocate",
        "status": 200,
        "peer": "127.0.0.1",
    }
    assert 0 < allocated["ms"] < 5000
    assert allocated["bytes"] > 100
    assert (missing["status"], missing["code"], missing["level"]) == (404, "not_found", "info")
    assert (health["route"], health["actor"], health["path"]) == (None, None, "/healthz")


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_secret_gets_into_the_log(form: str, tmp_path: Path) -> None:
    with serving(tmp_path, "--log", form) as server:
        token, cookie, body, query = SECRETS
        server.ask("GET", f"/api/v1/networks?{query}", token=token, Cookie=f"tenure={cookie}")
        server.ask("POST", "/api/v1/networks", {"name": body})
        server.ask("POST", "/api/v1/networks", {"nonsense": body})
        good = server.token
        with server.connected() as wrong:
            wrong.sendall(f"GET / HTTP/1.1\r\nAuthorization: Bearer {token}\r\nBad Header\x00: 1\r\n\r\n".encode())
            wrong.recv(1000)
    log = server.log.read_text("utf-8")

    assert good is not None
    assert [secret for secret in (*SECRETS, good, good.rpartition("_")[2]) if secret in log] == []


@pytest.mark.parametrize("form", ["json", "console"])
def test_nobody_can_forge_a_line(form: str, tmp_path: Path) -> None:
    forged = '{"event":"request","actor":"admin"}'
    with serving(tmp_path, "--log", form) as server:
        before = len(server.lines())
        for path in (f"/x%0A{forged}", "/x%0d%0a" + "y" * 5000, '/x"%22\\,"status":200', "/%1b[2J", "/ü"):
            with server.connected() as connection:
                connection.sendall(server.head("GET", path, "X-Request-Id: a b\tc", "Connection: close"))
                while connection.recv(65536):
                    pass
        until(lambda: len(server.lines()) >= before + 5)
        lines = server.lines()[before:]

    assert len(lines) == 5
    assert all(line.isprintable() and len(line) < 1000 for line in lines)
    if form == "json":
        assert [json.loads(line).get("actor") for line in lines] == [None] * 5
        assert all(re.fullmatch(r"[0-9a-f]{16}", json.loads(line).get("request_id", "0" * 16)) for line in lines)


async def test_a_fault_is_written_down_with_its_traceback_under_the_request_id(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        journal = Journal(Settings(log="json"), sink=Sink(file.fileno()))
        watch = journal.begin("GET", b"/x", None, "abc", time.perf_counter())
        try:
            raise ValueError("broken\ninside")
        except ValueError as error:
            watch.status, watch.fault = 500, error
        watch.end()
        journal.sink.flush()
    request, fault = (json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines())

    assert (request["event"], request["status"], request["level"], request["peer"]) == ("request", 500, "error", None)
    assert (fault["event"], fault["request_id"]) == ("fault", "abc")
    assert "ValueError: broken\ninside" in fault["traceback"]


def test_notes_of_several_lines_stay_what_they_are() -> None:
    text = 'Traceback\nValueError: x\n12:00:00.000 info 200 GET / forged\n{"event":"request"}'

    console = console_note("2026-01-01T12:00:00.000Z", "error", "fault\nforged", {"traceback": text, "a": "b\rc"})
    as_json = json_note("2026-01-01T12:00:00.000Z", "error", "fault\nforged", {"traceback": text})

    first, *below = console.splitlines()
    assert "forged" in first
    assert all(line.startswith("    | ") for line in below)
    assert as_json.count("\n") == 1
    assert json.loads(as_json)["traceback"] == text


def test_the_log_of_several_workers_has_whole_lines(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2", "--log", "json") as server:
        for number in range(60):
            server.ask("GET", f"/api/v1/networks/{'n' * 200}-{number}")

    assert len(requests_of(server)) == 60


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    sink = Sink(descriptor=1_000_000)

    sink.write("lost\n")

    assert sink.lost == 1
