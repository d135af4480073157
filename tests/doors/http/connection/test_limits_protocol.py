"""Clients that are too slow, too large, too many, or do not speak HTTP: each is refused, and nobody else notices."""

import concurrent.futures
import contextlib
import re
import socket
import time
from pathlib import Path

import psutil
import pytest

from tests.doors.http.processes import serving, until


def test_a_head_that_comes_too_slowly_is_cut_off(tmp_path: Path) -> None:
    with serving(tmp_path, "--head-s", "1") as server:
        with server.connected() as slow, server.connected() as silent:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
            began = time.monotonic()
            answer, nothing = _all(slow), _all(silent)
            took = time.monotonic() - began
        fine = server.ask("GET", "/healthz")

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"too_slow"' in answer
    assert nothing == b""
    assert took < 5
    assert fine.status == 200


def test_a_second_head_on_a_connection_may_not_dawdle_either(tmp_path: Path) -> None:
    with serving(tmp_path, "--head-s", "1") as server, server.connected() as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        slow.sendall(b"GET /hea")
        answer = _all(slow)

    assert answer.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 408 " in answer


def test_an_idle_connection_is_closed_and_one_in_use_is_not(tmp_path: Path) -> None:
    with serving(tmp_path, "--keep-alive-s", "1") as server, server.connected() as idle, server.connected() as used:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(8):  # twice as long as an idle one may stay
            used.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            time.sleep(0.25)
        used.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

        assert _all(idle).count(b"HTTP/1.1 200 ") == 1
        assert _all(used).count(b"HTTP/1.1 200 ") == 9


@pytest.mark.parametrize("policy", ["lowest", "random"])
def test_requests_that_come_at_once_on_one_connection_are_answered_in_order(policy: str, tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.connected() as eager:
        server.lay_out(policy=policy)
        server.allocate("vm/first")
        bodies = [b'{"owner": "vm/%d"}' % number for number in range(20)]
        path, kind = "/api/v1/networks/net1:allocate", "Content-Type: application/json"
        heads = [server.head("POST", path, kind, f"Content-Length: {len(body)}") for body in bodies]
        eager.sendall(b"".join(head + body for head, body in zip(heads, bodies, strict=True)))
        eager.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = _all(eager)

    assert [int(owner) for owner in re.findall(rb'"owner":"vm/([0-9]+)"', answer)] == list(range(20))
    assert answer.count(b"HTTP/1.1 200 ") == 21


def test_a_body_that_comes_too_slowly_is_refused_and_the_connection_closed(tmp_path: Path) -> None:
    with serving(tmp_path, "--body-s", "1") as server, server.connected() as slow:
        slow.sendall(server.head("POST", "/api/v1/networks", "Content-Length: 1000"))
        began = time.monotonic()
        with contextlib.suppress(OSError):
            for _ in range(100):  # a byte now and then: idle it never is
                slow.sendall(b" ")
                time.sleep(0.2)
        answer = _all(slow)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("pieces", [1, 40])
def test_an_oversized_head_is_refused(pieces: int, tmp_path: Path) -> None:
    with serving(tmp_path, "--head-bytes", "4096") as server, server.connected() as large:
        head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: " + b"a" * 8000 + b"\r\n\r\n"
        size = -(-len(head) // pieces)
        with contextlib.suppress(OSError):
            for start in range(0, len(head), size):
                large.sendall(head[start : start + size])
                time.sleep(0.005 if pieces > 1 else 0)
        answer = _all(large)

    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"code":"too_large"' in answer


def test_what_is_not_http_gets_a_problem_and_no_more(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.connected() as wrong:
        wrong.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        answer = _all(wrong)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


def test_more_connections_and_requests_than_allowed_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, "--connections", "4") as server:
        with contextlib.ExitStack() as stack:
            many = [stack.enter_context(server.connected()) for _ in range(8)]
            time.sleep(0.3)
            many[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = _all(many[-1])
        until(lambda: server.ask("GET", "/healthz").status == 200)

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"code":"overloaded"' in answer


def test_a_reader_who_does_not_read_is_let_go(tmp_path: Path) -> None:
    with serving(tmp_path, "--stall-s", "1") as server, server.connected() as deaf:
        server.lay_out()
        with concurrent.futures.ThreadPoolExecutor(8) as crowd:
            list(crowd.map(lambda n: server.allocate(f"instance/{n}-{'x' * 400}"), range(400)))
        deaf.setsockopt(6, 10, 1)  # TCP_WINDOW_CLAMP: a small window
        page = server.head("GET", "/api/v1/networks/net1/holdings?limit=1000")
        with contextlib.suppress(OSError):
            for _ in range(60):
                deaf.sendall(page)
        until(lambda: len(psutil.Process(server.process.pid).net_connections()) == 1, within_s=20)


def test_what_comes_behind_a_body_as_headers_is_let_be_however_much_it_is(tmp_path: Path) -> None:
    with serving(tmp_path, "--body-s", "30") as server, server.connected() as chatty:
        server.lay_out()
        head = server.head("POST", "/api/v1/networks", "Content-Type: application/json", "Transfer-Encoding: chunked")
        chatty.sendall(head + b'10\r\n{"name": "net2"}\r\n0\r\n')
        before = psutil.Process(server.process.pid).memory_info().rss
        for number in range(400):
            chatty.sendall(b"".join(b"x-%d-%d: %b\r\n" % (number, each, b"y" * 1000) for each in range(100)))
        grown = psutil.Process(server.process.pid).memory_info().rss - before
        chatty.sendall(
            b"Authorization: Bearer other\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        answer = _all(chatty)

    assert grown < 20_000_000  # of 40,000,000 that were sent
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert answer.count(b"HTTP/1.1 200 ") == 1


@pytest.mark.parametrize("path", ["/api/v1/networks", "/api/v1/networks/net1:allocate"])
def test_a_body_that_is_no_http_is_refused_at_once(path: str, tmp_path: Path) -> None:
    with serving(tmp_path, "--body-s", "20") as server, server.connected() as spoilt:
        server.lay_out()
        spoilt.sendall(server.head("POST", path, "Content-Type: application/json", "Transfer-Encoding: chunked"))
        time.sleep(0.1)
        spoilt.sendall(b"zz\r\n")
        spoilt.settimeout(10)
        answer = _all(spoilt)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"x-request-id: " in answer


def test_requests_that_nobody_waits_to_answer_do_not_pile_up(tmp_path: Path) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with serving(tmp_path) as server, server.connected() as eager:
        before = psutil.Process(server.process.pid).memory_info().rss
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            # Read meanwhile: the server hangs up with requests unread, and the reset drops answers on their way.
            answers = reader.submit(_all, eager)
            with contextlib.suppress(OSError):
                for _ in range(200):
                    eager.sendall(one * 2000)
            grown = psutil.Process(server.process.pid).memory_info().rss - before
            answer = answers.result()
        fine = server.ask("GET", "/healthz")

    assert grown < 60_000_000
    assert answer.count(b"HTTP/1.1 200 ") >= 128  # those that were taken in have their answers
    assert fine.status == 200


@pytest.mark.parametrize("policy", ["lowest", "random"])
def test_an_offer_to_speak_something_else_is_declined_and_the_request_served_whole(policy: str, tmp_path: Path) -> None:
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    body, kind = b'{"owner": "vm/java"}', "Content-Type: application/json"
    with serving(tmp_path) as server, server.connected() as java, server.connected() as slow:
        server.lay_out(policy=policy)
        head = server.head("POST", "/api/v1/networks/net1:allocate", kind, *offer, f"Content-Length: {len(body)}")
        java.sendall(head + body + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        slow.sendall(head)
        time.sleep(0.2)
        slow.sendall(body)
        both, late = _all(java), slow.recv(65536)

    assert both.startswith(b"HTTP/1.1 200 ")
    assert (both.count(b"HTTP/1.1 200 "), both.count(b'"owner":"vm/java"')) == (2, 1)
    assert late.startswith(b"HTTP/1.1 200 ")


def _all(connection: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return data
