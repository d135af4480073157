"""Several workers on one ledger; and a stop that loses nothing."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

import tenure
from tests.doors.http.processes import STOP_S, TENURE, Serving, environment, serving, until


def test_workers_share_one_ledger_and_count_together(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "3") as server:
        server.lay_out()
        with concurrent.futures.ThreadPoolExecutor(8) as crowd:
            asked = [crowd.submit(server.allocate, f"instance/{number}") for number in range(120)]
            held = {future.result().document["address"] for future in asked}
        children = _workers(server)
        counts = {server.metrics()["tenure_allocations_total"] for _ in range(6)}

    assert len(held) == 120
    assert len(children) >= 3
    assert counts == {120.0}


def test_a_worker_that_dies_is_started_again_and_its_numbers_are_kept(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2", "--log", "json") as server:
        server.lay_out()
        for number in range(20):
            server.allocate(f"instance/{number}")
        workers = _workers(server)
        workers[0].kill()
        until(lambda: len(_workers(server)) == 2 and workers[0] not in _workers(server))
        until(lambda: sum('"event":"serving"' in line for line in server.lines()) == 3)
        answers = {server.ask("GET", "/readyz").status for _ in range(20)}
        counted = server.metrics()["tenure_allocations_total"]

    assert answers == {200}
    assert counted == 20.0
    assert any('"event":"worker died"' in line for line in server.lines())


def test_a_stop_is_heard_while_the_first_worker_still_waits_for_its_store(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        store = f"postgresql://nobody@127.0.0.1:{mute.getsockname()[1]}/none"
        words = [*TENURE, "serve", "--port", "0", "--workers", "2", "--store", store]
        with subprocess.Popen(words, cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL) as process:
            mute.settimeout(30)
            with mute.accept()[0]:
                process.send_signal(signal.SIGTERM)
                try:
                    code = process.wait(15)
                finally:
                    process.kill()

    assert code == 0


def test_workers_stop_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as server:
        until(lambda: len(_workers(server)) == 2)
        workers = _workers(server)
        server.process.kill()
        _, alive = psutil.wait_procs(workers, timeout=20)

    assert alive == []


@pytest.mark.parametrize("policy", ["lowest", "random"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_under_load_answers_all_it_accepted_and_the_ledger_has_all_it_answered(
    workers: int, policy: str, tmp_path: Path
) -> None:
    with serving(tmp_path, "--workers", str(workers)) as server:
        server.lay_out(policy=policy)
        answered: list[tuple[str, str]] = []
        refusals: list[str] = []
        crowd = [threading.Thread(target=_hammer, args=(server, n, answered, refusals)) for n in range(12)]
        for thread in crowd:
            thread.start()
        until(lambda: len(answered) > 200)
        code = server.stop()
        for thread in crowd:
            thread.join()
        with tenure.open(f"sqlite:///{tmp_path / 'tenure.db'}") as ledger:
            held = {(holding.owner, holding.address) for holding in ledger.holdings("net1")}
            breaches = ledger.verify()

    log = "\n".join(server.lines())
    assert code == 0
    assert set(answered) <= held
    assert len(held) - len(answered) <= len(crowd)  # at most the one request each thread had under way
    assert set(refusals) <= {"refused", "503"}
    assert breaches == []
    assert "Traceback" not in log
    assert "stopped" in log


def test_long_polls_and_streams_do_not_hold_up_a_stop(tmp_path: Path) -> None:
    with serving(tmp_path, "--grace-s", "20") as server:
        server.lay_out(block="10.0.0.0/29", pool="10.0.0.2")
        server.allocate("instance/first")
        waits = http.client.HTTPConnection(*server.address, timeout=30)
        streams = http.client.HTTPConnection(*server.address, timeout=30)
        with contextlib.closing(waits), contextlib.closing(streams):
            body = json.dumps({"owner": "instance/late", "wait_s": 50})
            head = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
            waits.request("POST", "/api/v1/networks/net1:claim", body, head)
            streams.request("GET", "/api/v1/events", headers=head)
            stream = streams.getresponse()
            until(lambda: server.metrics()["tenure_http_requests_in_flight"] >= 3)
            began = time.monotonic()
            code = server.stop()
            took = time.monotonic() - began
            poll, rest = waits.getresponse(), stream.read()
            told = json.loads(poll.read())

    assert (code, poll.status, told["code"]) == (0, 503, "store_unavailable")
    assert told["data"] == {"outcome": "unknown"}
    assert rest.endswith(b": the stream ends\n\n")
    assert took < 5


@pytest.mark.parametrize("policy", ["lowest", "random"])
def test_a_store_that_is_stuck_does_not_keep_anybody_beyond_the_grace(policy: str, tmp_path: Path) -> None:
    with serving(tmp_path, "--grace-s", "1") as server:
        server.lay_out(policy=policy)
        server.allocate("instance/first")
        body = b'{"owner": "instance/late"}'
        head = server.head(
            "POST", "/api/v1/networks/net1:allocate", "Content-Type: application/json", f"Content-Length: {len(body)}"
        )
        with contextlib.closing(sqlite3.connect(tmp_path / "tenure.db")) as other, server.connected() as waiting:
            other.execute("BEGIN IMMEDIATE")
            waiting.sendall(head + body)
            until(lambda: server.process.poll() is None and _in_flight(server) >= 2)
            server.process.send_signal(signal.SIGTERM)
            answer = waiting.recv(65536)
            other.rollback()
        code = server.process.wait(STOP_S)

    assert code == 0
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"outcome":"unknown"' in answer
    assert "Traceback" not in server.log.read_text("utf-8")


def _in_flight(server: Serving) -> float:
    return server.metrics()["tenure_http_requests_in_flight"]


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, "--grace-s", "60") as server, server.connected() as slow:
        slow.sendall(server.head("POST", "/api/v1/networks", "Content-Length: 100") + b"{")
        until(lambda: server.metrics()["tenure_http_requests_in_flight"] >= 2)
        server.process.send_signal(signal.SIGINT)
        until(lambda: any("stopping" in line for line in server.lines()))
        began = time.monotonic()
        code = server.stop(signal.SIGINT)

    assert code == 128 + signal.SIGINT
    assert time.monotonic() - began < 3


def test_what_is_not_done_within_the_grace_is_told_and_dropped(tmp_path: Path) -> None:
    with serving(tmp_path, "--grace-s", "1", "--body-s", "60") as server, server.connected() as slow:
        slow.sendall(server.head("POST", "/api/v1/networks", "Content-Length: 100") + b"{")
        until(lambda: server.metrics()["tenure_http_requests_in_flight"] >= 2)
        began = time.monotonic()
        code = server.stop()
        took = time.monotonic() - began
        answer = slow.recv(65536)

    assert (code, took < 6) == (0, True)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"store_unavailable"' in answer
    assert "Traceback" not in server.log.read_text("utf-8")


def _workers(server: Serving) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a dead one that nobody has buried yet is none, either
            found += [child] if "spawn_main" in " ".join(child.cmdline()) else []
    return found


def _hammer(server: Serving, number: int, answered: list[tuple[str, str]], refusals: list[str]) -> None:
    connection = http.client.HTTPConnection(*server.address, timeout=30)
    head = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    with contextlib.closing(connection):
        for turn in range(100_000):
            owner = f"instance/{number}-{turn}"
            try:
                connection.request("POST", "/api/v1/networks/net1:allocate", json.dumps({"owner": owner}), head)
                answer = connection.getresponse()
                document = json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                refusals.append("refused")
                return
            if answer.status >= 300:
                refusals.append(str(answer.status))
                return
            answered.append((owner, document["address"]))
