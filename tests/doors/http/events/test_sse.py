"""Server-sent events: the whole log, once, in order; over reconnects, servers, slow readers and a trimmed log."""

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tenure.doors.http.access.shares import STREAMS
from tenure.doors.http.routes.event_routes import Followed, follow_changes
from tenure.doors.http.routing.endpoint import Call
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.server_state import Site
from tenure.doors.http.settings import Limits, Settings
from tenure.wire.http_errors import ShareUsedUp
from tests.doors.http.processes import Serving, serving, until
from tests.infrastructure.postgres import PostgresServer, fresh_schema

Event = dict[str, str]


class Reader:
    """Reads a stream as a browser does: remembers the last id, and is given whole events."""

    def __init__(
        self,
        server: Serving,
        query: str = "",
        *,
        last_id: str | None = None,
        token: str | None = None,
        window: int | None = None,
    ) -> None:
        self.last_id = last_id
        self._connection = http.client.HTTPConnection(*server.address, timeout=30)
        if window is not None:
            self._connection.sock = socket.socket()
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
            self._connection.sock.connect(server.address)
        head = {"Authorization": f"Bearer {token or server.token}"}
        self._connection.request(
            "GET", f"/api/v1/events{query}", headers=head | ({} if last_id is None else {"Last-Event-ID": last_id})
        )
        self.answer = self._connection.getresponse()

    def events(self) -> Iterator[Event]:
        """Read event by event, to the stream's end."""
        event: Event = {}
        for raw in self.answer:
            line = raw.decode().rstrip("\n")
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            if line:
                event[name] = value
            else:
                if "data" in event:
                    yield event
                event = {}

    def take(self, count: int) -> list[int]:
        """Read so many changes; return their numbers."""
        events = self.events()
        return [int(next(events)["id"]) for _ in range(count)]

    def close(self) -> None:
        """Go away."""
        self.answer.close()
        self._connection.close()


@contextlib.contextmanager
def reading(server: Serving, query: str = "", **more: Any) -> Iterator[Reader]:
    """Read a stream for a while."""
    reader = Reader(server, query, **more)
    try:
        yield reader
    finally:
        reader.close()


def log_of(server: Serving) -> list[int]:
    """Return the numbers of all changes of a short log."""
    return [item["seq"] for item in server.ask("GET", "/api/v1/changes?limit=1000").document["items"]]


def test_a_stream_begins_behind_a_number_and_goes_on_with_what_happens(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out()
        before = log_of(server)
        with reading(server, "?after=0") as reader:
            old = reader.take(len(before))
            server.allocate("instance/a")
            event = next(reader.events())

    assert reader.answer.status == 200
    assert reader.answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert old == before
    assert event["event"] == "change"
    change = json.loads(event["data"])
    assert (change["seq"], change["verb"], change["owner"]) == (int(event["id"]), "grant", "instance/a")
    assert change["actor"] == "token/admin"


def test_without_a_number_a_stream_begins_with_what_comes_next(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out()
        with reading(server) as reader:
            newest = log_of(server)[-1]
            server.allocate("instance/a")
            [number] = reader.take(1)

    assert number == newest + 1


def test_filters_let_only_what_is_wanted_through(tmp_path: Path) -> None:
    wanted = {
        "network=net1&verb=grant": ["instance/a", "instance/b", "instance/end"],
        "owner=instance/a": ["instance/a", "instance/a", "instance/a", "instance/a", "instance/a"],
        "range=10.0.0.11": ["instance/b", "instance/b"],
        "verb=release&actor=token/admin": ["instance/a", "instance/a", "instance/b"],
    }
    with serving(tmp_path) as server:
        server.lay_out()
        server.lay_out("net2")
        for network, owner in (("net1", "a"), ("net1", "b"), ("net2", "a")):
            server.ask("POST", f"/api/v1/networks/{network}:allocate", {"owner": f"instance/{owner}"})
        server.ask("POST", "/api/v1/owners/instance%2Fa:release", {})
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(reading(server, f"?after=0&{query}")) for query in wanted]
            server.ask("POST", "/api/v1/owners/instance%2Fb:release", {})
            server.allocate("instance/end")
            server.ask("POST", "/api/v1/networks/net2:allocate", {"owner": "instance/a"})
            found = [
                [json.loads(event["data"])["owner"] for event in itertools.islice(reader.events(), len(owners))]
                for reader, owners in zip(readers, wanted.values(), strict=True)
            ]

    assert found == list(wanted.values())


WRONG: list[tuple[str, str | None, str]] = [
    ("?after=x", None, "after"),
    ("?after=-1", None, "after"),
    ("?after=999999", None, "after"),
    ("?aftr=1", None, "aftr"),
    ("?range=nonsense", None, "range"),
    ("", "one", "Last-Event-ID"),
    ("", "1" * 30, "Last-Event-ID"),
]


def test_what_cannot_be_followed_is_refused_by_name(tmp_path: Path) -> None:
    found = []
    with serving(tmp_path) as server:
        for query, last_id, _ in WRONG:
            with reading(server, query, last_id=last_id) as reader:
                found.append((query, last_id, json.loads(reader.answer.read())["field"], reader.answer.status))

    assert found == [(*wrong, 422) for wrong in WRONG]


def test_a_cursor_that_is_too_old_is_told_before_the_stream_begins(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out()
        newest = log_of(server)[-1]
        assert server.ask("POST", "/api/v1/changes:trim", {"before": newest}).status == 200
        with reading(server, "?after=1") as reader:
            problem = json.loads(reader.answer.read())
        with reading(server, last_id=str(newest)) as later:
            server.allocate("instance/a")
            went_on = later.take(1)

    assert (reader.answer.status, problem["code"]) == (410, "cursor_expired")
    assert went_on[0] > newest


def test_a_reader_that_comes_back_sees_every_change_once_and_in_order(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.lay_out()
        seen: list[int] = []
        writer = threading.Thread(target=_allocate_many, args=(server, 300))
        writer.start()
        last_id = "0"
        for turn in range(12):
            with reading(server, "?after=0", last_id=last_id) as reader:
                seen += reader.take(5 + turn * 3)
                last_id = str(seen[-1])
        writer.join()
        everything = log_of(server)
        with reading(server, last_id=last_id) as reader:
            seen += reader.take(len(everything) - len(seen))

    assert seen == everything


async def test_a_reader_moves_between_two_servers_on_one_postgresql_and_misses_nothing(tmp_path: Path) -> None:
    async with fresh_schema() as store:
        with serving(tmp_path, store=store) as one, serving(tmp_path, store=store) as other:
            other.token = one.token
            one.lay_out()
            writers = [threading.Thread(target=_allocate_many, args=(each, 150, each.url)) for each in (one, other)]
            for writer in writers:
                writer.start()
            seen: list[int] = []
            for turn in range(10):
                with reading((one, other)[turn % 2], last_id=str(seen[-1]) if seen else "0") as reader:
                    seen += reader.take(20)
            for writer in writers:
                writer.join()
            everything = log_of(one)
            with reading(other, last_id=str(seen[-1])) as reader:
                seen += reader.take(len(everything) - len(seen))

    assert seen == everything
    assert len(everything) >= 300


def test_a_reader_who_is_slow_gets_everything_and_costs_no_memory(tmp_path: Path) -> None:
    import psutil

    with serving(tmp_path, "--stall-s", "60") as server:
        server.lay_out()
        with reading(server, "?after=0") as reader:
            _allocate_many(server, 50, "warm")
            before = psutil.Process(server.process.pid).memory_info().rss
            body = {"wishes": [{"owner": f"instance/{n}-{'x' * 200}"} for n in range(500)]}
            for turn in range(12):
                owners = [{**wish, "slot": f"s{turn}"} for wish in body["wishes"]]
                operations = [{"op": "allocate", "network": "net1", **owner} for owner in owners]
                assert server.ask("POST", "/api/v1:apply", {"operations": operations}).status == 200
            grown = psutil.Process(server.process.pid).memory_info().rss - before
            newest = server.ask("GET", "/api/v1/changes/last").document["last"]
            seen = reader.take(newest)

    assert seen == list(range(1, newest + 1))
    assert grown < 60_000_000


def test_a_reader_so_slow_that_the_log_was_trimmed_past_him_is_told(tmp_path: Path) -> None:
    with serving(tmp_path, "--stall-s", "60") as server:
        server.lay_out()
        with reading(server, "?after=0", window=4096) as reader:
            for turn in range(26):  # more than the system's buffers and the server's memory of recent changes hold
                owners = [f"instance/{turn}-{number}-{'x' * 400}" for number in range(500)]
                operations = [{"op": "allocate", "network": "net1", "owner": owner} for owner in owners]
                assert server.ask("POST", "/api/v1:apply", {"operations": operations}).status == 200
            newest = server.ask("GET", "/api/v1/changes/last").document["last"]
            server.ask("POST", "/api/v1/changes:trim", {"before": newest})
            events = list(itertools.islice(reader.events(), newest))

    numbers = [int(event["id"]) for event in events[:-1]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) < newest
    assert events[-1]["event"] == "expired"
    assert json.loads(events[-1]["data"])["code"] == "cursor_expired"


def test_a_stream_outlives_an_outage_of_the_store(tmp_path: Path, fragile_postgres: PostgresServer) -> None:
    with serving(tmp_path, store=f"{fragile_postgres.url}&schema=e") as server:
        server.lay_out()
        with reading(server, "?after=0") as reader:
            seen = reader.take(len(log_of(server)))
            fragile_postgres.kill()
            until(lambda: server.ask("GET", "/readyz").status == 503)
            fragile_postgres.start()
            until(lambda: server.ask("GET", "/readyz").status == 200)
            _allocate_many(server, 20)
            seen += reader.take(20)
            everything = log_of(server)

    assert seen == everything


def test_the_stream_of_a_token_that_is_revoked_ends(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        made = server.ask("POST", "/api/v1/tokens", {"name": "reader", "scopes": ["read"]}).document
        token = next(value for value in _texts(made) if value.startswith("tnr_"))
        with reading(server, "?after=0", token=token) as reader:
            assert server.ask("POST", "/api/v1/tokens/reader:revoke", {}).status < 300
            began = time.monotonic()
            for _ in reader.events():
                pass
            took = time.monotonic() - began
        with reading(server, token=token) as again:
            pass

    assert took < 10
    assert again.answer.status == 401


def test_streams_are_bounded_and_a_reader_who_left_makes_room(tmp_path: Path) -> None:
    with serving(tmp_path, "--streams", "2", "--streams-share", "1") as server:
        with reading(server), reading(server), reading(server) as third:
            refused = third.answer.status
            counted = server.metrics()["tenure_event_streams"]
        until(lambda: _status(lambda: Reader(server)) == 200)
        until(lambda: server.metrics()["tenure_event_streams"] == 0)

    assert (refused, counted) == (429, 2)


async def test_a_burst_of_streams_is_bounded_too() -> None:
    site = Site(Settings(store="memory:", limits=Limits(streams=3, streams_share=1)))
    await site.open()

    async def waiting() -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {}

    async def sent(_: dict[str, Any]) -> None:
        await asyncio.sleep(0)

    async def read() -> None:
        visitor = Visitor("public", "nobody", anonymous=True)
        share = site.shares.admit(visitor)
        try:
            await (await follow_changes(Call(site, site.ledger, visitor, {}, Followed())))(waiting, sent)
        finally:
            site.shares.end(share)

    opened = [asyncio.create_task(read()) for _ in range(10)]
    async with asyncio.timeout(5):
        while sum(task.done() for task in opened) < 7:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    refused = [task for task in opened if task.done()]
    counted = site.shares.total[STREAMS]
    for task in opened:
        task.cancel()
    ends = await asyncio.gather(*opened, return_exceptions=True)
    await site.close()

    assert (len(refused), counted, site.shares.total) == (7, 3, [0, 0, 0])
    assert sum(isinstance(end, ShareUsedUp) for end in ends) == 7


def _status(opened: Callable[[], Reader]) -> int:
    reader = opened()
    reader.close()
    return reader.answer.status


def _texts(document: Any) -> Iterator[str]:
    for value in document.values():
        if isinstance(value, dict):
            yield from _texts(value)
        elif isinstance(value, str):
            yield value


def _allocate_many(server: Serving, count: int, name: str = "x") -> None:
    for number in range(count):
        answer = server.allocate(f"instance/{name.rpartition(':')[2]}-{number}")
        assert answer.status == 200, answer.body
