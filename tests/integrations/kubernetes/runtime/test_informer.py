"""A cache that follows a server which misbehaves: nothing is missed, nothing that is gone stays."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tenure.integrations.kubernetes.runtime.api_client import TRIES, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.informer import Handler, Informer
from tenure.integrations.kubernetes.runtime.object_cache import Delta, ObjectCache
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tests.integrations.kubernetes.runtime.crooked_server import (
    Answer,
    CrookedServer,
    breaks_off,
    crooked,
    page,
    refuses,
    says,
    watches,
)
from tests.integrations.kubernetes.runtime.test_object_cache import made
from tests.scale import PROOF

THING = ResourceType("example.org", "v1", "things", "Thing")
SILENT = watches(then="silent")
NONSENSE = [
    b"x",
    b"{}",
    b"[]",
    b"null",
    b'{"metadata": {}, "items": []}',
    b'{"metadata": {"resourceVersion": "1"}, "items": [{}]}',
    b'{"metadata": {"resourceVersion": "new"}, "items": []}',
]
"""What may come in place of a list, from a server or from what stands before it."""


@pytest.fixture
async def server() -> AsyncIterator[CrookedServer]:
    async with crooked() as started:
        started.otherwise = SILENT
        yield started


class Followed:
    """An informer at work, and what it said."""

    def __init__(self, informer: Informer, meter: RuntimeMeter) -> None:
        self.informer = informer
        self.meter = meter
        self.deltas: list[Delta] = []
        informer.on_change(self.deltas.append)

    @property
    def names(self) -> dict[str, int]:
        return {each["metadata"]["name"]: int(each["metadata"]["resourceVersion"]) for each in self.informer.cache}

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110 - a cache is polled
                await asyncio.sleep(0.01)


@asynccontextmanager
async def following(
    server: CrookedServer, silent_s: float = 60, handler: Handler | None = None
) -> AsyncIterator[Followed]:
    meter = RuntimeMeter()
    async with ApiClient(server.load, timeout_s=2) as client:
        informer = Informer(client, THING, namespace="n", silent_s=silent_s, page=2, meter=meter)
        if handler is not None:
            informer.on_change(handler)
        followed = Followed(informer, meter)
        task = asyncio.create_task(followed.informer.run())
        try:
            yield followed
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_list_is_read_page_by_page_and_watched_from_its_version_on(server: CrookedServer) -> None:
    server.answers = [
        page(7, made("a", 1), made("b", 2), more="x"),
        page(7, made("c", 3)),
        watches(("ADDED", made("d", 8)), then="silent"),
    ]
    async with following(server) as followed:
        await followed.until(lambda: len(followed.names) == 4)

    first, second, watch = server.asked[:3]
    assert (first.query["limit"], "continue" in first.query, second.query["continue"]) == ("2", False, "x")
    assert (watch.query["resourceVersion"], watch.query["allowWatchBookmarks"]) == ("7", "true")


async def test_a_list_that_expires_half_way_begins_again(server: CrookedServer) -> None:
    server.answers = [
        page(7, made("a", 1), made("b", 2), more="x"),
        refuses(410, "Expired"),
        page(9, made("a", 1), more="y"),
        page(9, made("c", 8)),
    ]
    async with following(server) as followed:
        await followed.until(followed.informer.synced.is_set)
        await followed.until(lambda: followed.names == {"a": 1, "c": 8})

    assert "continue" not in server.asked[2].query


async def test_a_watch_whose_version_is_forgotten_is_followed_by_a_list_and_what_is_gone_is_said(
    server: CrookedServer,
) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    server.answers = [
        page(7, made("a", 1), made("b", 2)),
        watches(("ERROR", gone)),
        page(20, made("b", 2), made("c", 15)),
    ]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"b": 2, "c": 15})

    assert [delta.key[1] for delta in followed.deltas if delta.after is None] == ["a"]
    assert followed.meter.relists == {"things.example.org": 2}


async def test_a_watch_that_is_refused_with_410_is_followed_by_a_list(server: CrookedServer) -> None:
    server.answers = [page(7, made("a", 1)), refuses(410, "Gone"), page(9)]
    async with following(server) as followed:
        await followed.until(lambda: followed.meter.relists == {"things.example.org": 2})
        await followed.until(lambda: followed.names == {})


@pytest.mark.parametrize("then", ["end", "break"])
async def test_a_watch_that_ends_is_resumed_where_it_was_without_a_list(server: CrookedServer, then: str) -> None:
    server.answers = [
        page(7, made("a", 1)),
        watches(("ADDED", made("b", 9)), ("BOOKMARK", {"metadata": {"resourceVersion": "12"}}), then=then),
        watches(("DELETED", made("a", 13)), then="silent"),
    ]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"b": 9})
        await followed.until(lambda: len(server.asked) == 3)

    assert server.asked[2].query["resourceVersion"] == "12"
    assert followed.meter.relists == {"things.example.org": 1}


async def test_events_that_come_late_or_twice_change_nothing(server: CrookedServer) -> None:
    server.answers = [
        page(7, made("a", 5)),
        watches(
            ("MODIFIED", made("a", 4)), ("MODIFIED", made("a", 8)), ("MODIFIED", made("a", 8)),
            ("MODIFIED", made("a", 6)), ("ADDED", made("z", 9)), then="silent",
        ),
    ]  # fmt: skip
    async with following(server) as followed:
        await followed.until(lambda: "z" in followed.names)

    assert followed.names == {"a": 8, "z": 9}
    assert len(followed.deltas) == 3


async def test_a_silent_watch_is_replaced(server: CrookedServer) -> None:
    server.answers = [page(7), SILENT, watches(("ADDED", made("a", 8)), then="silent")]
    async with following(server, silent_s=0.1) as followed:
        await followed.until(lambda: followed.names == {"a": 8})

    assert server.asked[2].query["resourceVersion"] == "7"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"{half",
        b"[]",
        b'{"type": "ADDED"}',
        b"\xff\xfe",
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "8"}}}',
    ],
)
async def test_an_event_that_cannot_be_read_is_followed_by_a_list(server: CrookedServer, nonsense: bytes) -> None:
    server.answers = [page(7), watches(nonsense, then="silent"), page(9, made("a", 8))]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"a": 8})


TIMES = 2 if PROOF else 1
"""How often a server fails; after each failure an informer waits longer."""


@pytest.mark.parametrize(
    "failure", [refuses(500, "InternalError"), refuses(403, "Forbidden"), breaks_off(), *map(says, NONSENSE)]
)
async def test_a_list_that_fails_is_tried_again(server: CrookedServer, failure: object) -> None:
    server.answers = [*[failure] * TIMES, page(3, made("a", 2))]  # type: ignore[list-item]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"a": 2})
    assert followed.informer.is_there


async def test_a_kind_that_is_not_there_is_empty_until_it_comes(server: CrookedServer) -> None:
    """KP6."""
    server.answers = [
        refuses(404, "NotFound"),
        says(b"404 page not found", 404),  # what a server says of a group that it does not have
        page(3, made("a", 2)),
        refuses(404, "NotFound"),
        refuses(404, "NotFound"),
        page(9),
    ]
    async with following(server) as followed:
        await followed.until(followed.informer.synced.is_set)
        assert (followed.informer.is_there, followed.names) == (False, {})
        assert await followed.informer.compare() == 0
        await followed.until(lambda: [delta.after is None for delta in followed.deltas] == [False, True])
        await followed.until(lambda: followed.informer.is_there and len(server.asked) >= 6)
        assert followed.names == {}


async def test_own_writes_are_read_at_once(server: CrookedServer) -> None:
    server.answers = [page(7, made("a", 5)), SILENT]
    async with following(server) as followed:
        await followed.until(followed.informer.synced.is_set)
        followed.informer.wrote(made("a", 9))
        followed.informer.wrote(made("b", 10))
        followed.informer.deleted(made("b", 10), {"kind": "Status", "status": "Success"})

        assert followed.names == {"a": 9}
        assert [delta.key[1] for delta in followed.deltas] == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    "answer", [{"kind": "Thing", "metadata": {}}, {"kind": "Status"}, {"kind": "Thing", "metadata": {"finalizers": []}}]
)
async def test_an_object_that_its_deletion_ended_is_gone(server: CrookedServer, answer: dict[str, object]) -> None:
    server.answers = [page(7, made("a", 5)), SILENT]
    async with following(server) as followed:
        await followed.until(followed.informer.synced.is_set)
        followed.informer.deleted(made("a", 5), answer)
        assert followed.names == {}


async def test_an_object_with_finalizers_outlives_its_deletion(server: CrookedServer) -> None:
    server.answers = [page(7, made("a", 5)), SILENT]
    async with following(server) as followed:
        await followed.until(followed.informer.synced.is_set)
        marked = made("a", 8)
        marked["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
        followed.informer.deleted(made("a", 5), marked)
        assert followed.names == {"a": 8}
        followed.informer.wrote({"metadata": {**made("a", 9)["metadata"], "finalizers": []}})
        assert followed.names == {"a": 9}


async def test_a_cache_that_drifted_is_mended_and_counted(server: CrookedServer) -> None:
    """KP13: the watch was past these objects, and did not bring them."""
    bookmark = ("BOOKMARK", {"metadata": {"resourceVersion": "12"}})
    server.answers = [page(7, made("a", 5), made("b", 6)), watches(bookmark, then="silent"), page(12, made("a", 9))]
    async with following(server) as followed:
        await followed.until(lambda: followed.informer.cache.reached == 12)

        assert await followed.informer.compare() == 2
        assert followed.names == {"a": 9}
        assert followed.meter.drift == {"things.example.org": 2}


async def test_a_watch_that_is_behind_a_list_is_no_drift_until_it_passes_by(server: CrookedServer) -> None:
    """The watch brings the end of ``b`` and not the change of ``a``."""
    first, second = asyncio.Event(), asyncio.Event()

    watched = watches(first, ("DELETED", made("b", 8)), second, ("ADDED", made("c", 13)), then="silent")
    server.answers = [page(7, made("a", 5), made("b", 6)), watched, page(12, made("a", 9))]
    async with following(server) as followed:
        await followed.until(lambda: len(server.asked) == 2)
        assert await followed.informer.compare() == 0
        assert followed.names == {"a": 9}
        first.set()
        await followed.until(lambda: followed.informer.cache.reached == 8)
        assert followed.meter.drift == {}
        second.set()
        await followed.until(lambda: "c" in followed.names)
        assert followed.meter.drift == {"things.example.org": 1}


async def test_a_load_balancer_without_a_server_does_not_empty_a_cache(server: CrookedServer) -> None:
    """Its 404 is not the server's word that the kind is gone; nor is a server's, of a kind that discovery still has."""
    server.answers = [page(7, made("a", 5)), says(b"no such backend", 404), refuses(404, "NotFound"), page(9)]
    server.kinds = None
    async with following(server) as followed:
        await followed.until(lambda: len(server.asked) >= 2)
        await asyncio.sleep(0.05)
        server.kinds = {"things"}
        assert followed.names == {"a": 5}
        await followed.until(lambda: len(server.asked) >= 3)
        await asyncio.sleep(0.05)
        assert followed.names == {"a": 5}
        await followed.until(lambda: followed.names == {})
    assert followed.meter.relists == {"things.example.org": 2}


@pytest.mark.parametrize("refusal", [refuses(500, "InternalError"), refuses(410, "Expired")])
async def test_a_server_that_lists_and_refuses_every_watch_is_asked_less_and_less(
    server: CrookedServer, refusal: Answer
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return await (refusal if "watch" in request.query else page(7, made("a", 5)))(request)

    server.otherwise = answer
    async with following(server) as followed:
        await asyncio.sleep(1.5)

    assert followed.meter.relists["things.example.org"] <= 5


async def test_kp11_a_watch_that_is_turned_away_for_want_of_room_is_resumed_without_a_list(
    server: CrookedServer,
) -> None:
    """In a storm of refusals a whole list is what the server can bear least."""
    full = refuses(429, "TooManyRequests", **{"Retry-After": "0"})
    server.answers = [
        page(7, made("a", 1)),
        *[full] * TRIES,
        refuses(503, "ServiceUnavailable"),
        watches(("ADDED", made("b", 9)), then="silent"),
    ]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"a": 1, "b": 9})

    assert {each.query["resourceVersion"] for each in server.asked[1:]} == {"7"}
    assert followed.meter.relists == {"things.example.org": 1}


async def test_a_server_that_ends_every_watch_at_once_is_asked_less_and_less(server: CrookedServer) -> None:
    server.answers = [page(7, made("a", 5))]
    server.otherwise = watches()
    async with following(server):
        await asyncio.sleep(1.5)

    assert len(server.asked) <= 6


async def test_a_server_restored_from_a_backup_is_listed_again(server: CrookedServer) -> None:
    """It is at 50 and says nothing to a watch from 120, so its version is asked for before a watch is resumed."""
    server.answers = [page(100, made("a", 90), made("b", 95)), watches(("ADDED", made("c", 120)), then="break")]
    server.otherwise = SILENT
    server.version = 50
    async with following(server) as followed:
        await followed.until(lambda: "c" in followed.names)
        server.answers = [page(50, made("a", 40)), watches(("ADDED", made("d", 51)), then="silent")]
        await followed.until(lambda: followed.names == {"a": 40, "d": 51})

    assert server.asked[-1].query["resourceVersion"] == "50"


async def test_a_bookmark_below_what_was_watched_is_followed_by_a_list(server: CrookedServer) -> None:
    bookmark = ("BOOKMARK", {"metadata": {"resourceVersion": "50"}})
    server.answers = [page(100, made("a", 90)), watches(bookmark, then="silent"), page(51, made("a", 40))]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"a": 40})


async def test_a_deletion_during_a_comparison_stays(server: CrookedServer) -> None:
    """The list is from before the deletion and comes after it."""
    begun, deleted = asyncio.Event(), asyncio.Event()

    async def listed(request: web.Request) -> web.StreamResponse:
        begun.set()
        await deleted.wait()
        return await page(100, made("x", 50))(request)

    watched = watches(begun, ("DELETED", made("x", 105)), then="silent")
    server.answers = [page(60, made("x", 50)), watched, listed]
    async with following(server) as followed:
        await followed.until(lambda: len(server.asked) == 2)
        comparison = asyncio.create_task(followed.informer.compare())
        await followed.until(lambda: followed.names == {})
        deleted.set()
        assert await comparison == 0
        assert followed.names == {}


async def test_a_handler_that_fails_keeps_nothing_from_the_others(server: CrookedServer) -> None:
    server.answers = [page(7, made("a", 5), made("b", 6)), watches(("ADDED", made("c", 8)), then="silent")]

    def broken(delta: Delta) -> None:
        raise ValueError("broken on purpose")

    async with following(server, handler=broken) as followed:
        await followed.until(lambda: len(followed.names) == 3)

    assert [delta.key[1] for delta in followed.deltas] == ["a", "b", "c"]
    assert followed.meter.relists == {"things.example.org": 1}


async def test_an_object_that_is_too_deep_hides_no_other(server: CrookedServer) -> None:
    """A definition that keeps unknown fields takes 10,000 levels."""
    bomb = b'{"a":' * 3_000 + b"1" + b"}" * 3_000
    deep, watched = (json.dumps({**made(name, version), "spec": 0}).encode() for name, version in (("a", 5), ("c", 8)))
    listed = json.dumps(made("b", 6)).encode() + b"," + deep.replace(b'"spec": 0', b'"spec": ' + bomb)
    event = b'{"type": "ADDED", "object": ' + watched.replace(b'"spec": 0', b'"spec": ' + bomb) + b"}"
    server.answers = [
        says(b'{"metadata": {"resourceVersion": "7"}, "items": [' + listed + b"]}"),
        watches(event, ("ADDED", made("d", 9)), then="silent"),
    ]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"b": 6, "a": 5, "c": 8, "d": 9})

    assert followed.meter.relists == {"things.example.org": 1}


async def test_a_cache_that_fails_is_listed_again_and_the_log_says_why(
    server: CrookedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    replace, failures = ObjectCache.replace, iter([RuntimeError("broken on purpose")])

    def failing(*words: Any, **more: Any) -> list[Delta]:
        if error := next(failures, None):
            raise error
        return replace(*words, **more)

    monkeypatch.setattr(ObjectCache, "replace", failing)
    server.answers = [page(7, made("a", 5)), page(8, made("a", 5))]
    async with following(server) as followed:
        await followed.until(lambda: followed.names == {"a": 5})

    assert "things.example.org: it is listed again" in caplog.text
    assert "broken on purpose" in caplog.text


async def test_a_comparison_of_a_kind_that_goes_meanwhile_brings_nothing_back(server: CrookedServer) -> None:
    gone = asyncio.Event()

    async def listed(request: web.Request) -> web.StreamResponse:
        await gone.wait()
        return await page(9, made("a", 5))(request)

    server.answers = [page(7, made("a", 5)), watches(then="break")]
    async with following(server) as followed:
        await followed.until(lambda: len(server.asked) == 2)
        server.answers, server.otherwise = [listed], refuses(404, "NotFound")
        comparison = asyncio.create_task(followed.informer.compare())
        await followed.until(lambda: not followed.informer.is_there)
        gone.set()
        assert (await comparison, followed.names) == (0, {})


@pytest.mark.parametrize(("kinds", "raises"), [(None, True), ({"things"}, True), (set(), False)])
async def test_kp5_a_comparison_believes_a_404_only_if_the_server_says_that_the_kind_is_gone(
    server: CrookedServer, kinds: set[str] | None, raises: bool
) -> None:
    """A load balancer answers so, too; a new leader must not take that for a list without anything new."""
    server.answers = [page(7, made("a", 5)), SILENT]
    async with following(server) as followed:
        await followed.until(lambda: len(server.asked) == 2)
        server.answers, server.kinds = [says(b"no such backend", 404)], kinds
        with pytest.raises(ApiError) if raises else contextlib.nullcontext():
            assert await followed.informer.compare() == 0
        assert followed.names == {"a": 5}


async def test_a_watch_ends_before_it_counts_as_silent(server: CrookedServer) -> None:
    server.answers = [page(7), SILENT]
    async with following(server) as followed:
        await followed.until(lambda: len(server.asked) == 2)

    assert 30 < int(server.asked[1].query["timeoutSeconds"]) <= 50
