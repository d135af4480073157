"""Requests to an API server that misbehaves: what is turned away is sent again, what is unclear is said to be."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from tenure.integrations.kubernetes.runtime.api_client import TRIES, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
    ObjectExists,
    ObjectMissing,
    VersionExpired,
    WriteConflict,
)
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tests.integrations.kubernetes.runtime.crooked_server import (
    Answer,
    CrookedServer,
    breaks_off,
    crooked,
    hangs,
    refuses,
    responds,
    says,
)

CONFIG_MAP = ResourceType("", "v1", "configmaps", "ConfigMap")


@pytest.fixture
async def server() -> AsyncIterator[CrookedServer]:
    async with crooked() as started:
        yield started


async def test_kp11_a_request_that_comes_too_early_is_sent_again_when_the_server_says(server: CrookedServer) -> None:
    server.answers = [refuses(429, "TooManyRequests", **{"Retry-After": "0"}), responds({"kind": "Node"})]
    meter = RuntimeMeter()
    async with ApiClient(server.load, meter=meter) as client, asyncio.timeout(0.8):  # without a header it is 1 s
        assert await client.create(CONFIG_MAP, {"metadata": {"namespace": "n", "name": "a"}}) == {"kind": "Node"}

    assert [request.method for request in server.asked] == ["POST", "POST"]
    assert (meter.requests, meter.throttled) == (2, 1)


async def test_a_server_says_how_long_to_wait(server: CrookedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    here, really_sleep = threading.get_ident(), asyncio.sleep

    async def sleep(delay: float) -> None:
        if threading.get_ident() == here:
            pauses.append(delay)
        else:  # servers that other tests of this worker share have loops of their own
            await really_sleep(delay)

    times = [{"Retry-After": "7"}, {"Retry-After": "7200"}, {}, {"Retry-After": "soon"}]
    server.answers = [*(refuses(429, "TooManyRequests", **each) for each in times), responds({"kind": "Node"})]
    async with ApiClient(server.load) as client:
        monkeypatch.setattr(asyncio, "sleep", sleep)
        await client.get("/api/v1/nodes")
        monkeypatch.undo()

    assert pauses == [7.0, 30.0, 1.0, 1.0]


async def test_a_404_that_is_not_the_api_servers_says_nothing_of_the_object(server: CrookedServer) -> None:
    server.answers = [says(b"no such backend", 404), responds({"reason": "NotFound"}, 404)]
    async with ApiClient(server.load) as client:
        for _ in range(2):
            with pytest.raises(ApiError, match="404") as caught:
                await client.get("/api/v1/nodes/a")
            assert not isinstance(caught.value, ObjectMissing)


async def test_an_object_is_replaced_only_in_the_version_that_was_read(server: CrookedServer) -> None:
    object = {"metadata": {"namespace": "n", "name": "a", "resourceVersion": "5"}, "data": {"a": "b"}}
    server.answers = [responds(object), refuses(409, "Conflict")]
    async with ApiClient(server.load) as client:
        assert await client.replace(CONFIG_MAP, object) == object
        with pytest.raises(WriteConflict):
            await client.replace(CONFIG_MAP, object)
        # The server would take it for whatever is there.
        for unread in ({"namespace": "n", "name": "a"}, {"namespace": "n", "name": "a", "resourceVersion": ""}):
            with pytest.raises((AssertionError, KeyError)):
                await client.replace(CONFIG_MAP, {"metadata": unread})

    assert [(request.method, request.path) for request in server.asked] == [
        ("PUT", "/api/v1/namespaces/n/configmaps/a"), ("PUT", "/api/v1/namespaces/n/configmaps/a"),
    ]  # fmt: skip


async def test_an_object_of_a_mebibyte_is_sent_without_a_warning(server: CrookedServer) -> None:
    object = {"metadata": {"namespace": "n", "name": "a"}, "data": {"a": '"' * (1 << 20)}}
    server.answers = [responds({"kind": "ConfigMap"})]
    async with ApiClient(server.load) as client:
        assert await client.create(CONFIG_MAP, object) == {"kind": "ConfigMap"}


async def test_refused_writes_are_counted_as_conflicts(server: CrookedServer) -> None:
    server.answers = [refuses(409, "Conflict"), refuses(409, "AlreadyExists"), refuses(500, "InternalError")]
    meter = RuntimeMeter()
    async with ApiClient(server.load, meter=meter) as client:
        for _ in range(3):
            with pytest.raises(ApiError):
                await client.create(CONFIG_MAP, {"metadata": {"namespace": "n", "name": "a"}})

    assert meter.conflicts == 1


async def test_a_server_that_turns_everything_away_is_not_asked_for_ever(server: CrookedServer) -> None:
    server.otherwise = refuses(429, "TooManyRequests", **{"Retry-After": "0"})
    async with ApiClient(server.load) as client:
        with pytest.raises(ApiError, match="429"):
            await client.get("/api/v1/nodes")

    assert len(server.asked) == TRIES


async def test_expired_credentials_are_read_again_once_for_all_requests(server: CrookedServer) -> None:
    server.tokens = ["old", "new"]

    async def answer(request: object) -> object:
        shown = request.headers["Authorization"]  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
        return await (responds({"ok": 1}) if shown == "Bearer new" else refuses(401, "Unauthorized"))(request)  # type: ignore[arg-type]

    server.otherwise = answer  # type: ignore[assignment]
    async with ApiClient(server.load) as client:
        answers = await asyncio.gather(*(client.get("/version") for _ in range(20)))

    assert answers == [{"ok": 1}] * 20
    assert server.loads == 2


@pytest.mark.parametrize("answer", [breaks_off(), says(b"<html>"), says(b""), says(b'{"a": '), hangs(5)])
async def test_an_answer_that_is_not_whole_leaves_open_what_was_done(server: CrookedServer, answer: Answer) -> None:
    server.answers = [answer]
    async with ApiClient(server.load, timeout_s=0.3) as client:
        with pytest.raises(ApiUnreachable):
            await client.create(CONFIG_MAP, {"metadata": {"namespace": "n", "name": "a"}})

    assert len(server.asked) == 1  # a write is not repeated on suspicion


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (404, "NotFound", ObjectMissing),
        (409, "AlreadyExists", ObjectExists),
        (409, "Conflict", WriteConflict),
        (410, "Expired", VersionExpired),
        (410, "Gone", VersionExpired),
        (422, "Invalid", ApiError),
        (500, "InternalError", ApiError),
        (503, "", ApiError),
    ],
)
async def test_a_refusal_has_its_kind_and_the_words_of_the_server(
    server: CrookedServer, status: int, reason: str, kind: type[ApiError]
) -> None:
    server.answers = [refuses(status, reason, "so it is")]
    async with ApiClient(server.load) as client:
        with pytest.raises(ApiError, match="so it is") as caught:
            await client.get("/api/v1/nodes")

    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason) == (status, reason)


async def test_an_error_that_is_no_document_is_shown_as_it_is(server: CrookedServer) -> None:
    server.answers = [says(b"upstream went away", 502)]
    async with ApiClient(server.load) as client:
        with pytest.raises(ApiError, match="upstream went away"):
            await client.get("/api/v1/nodes")


async def test_kp11_no_more_requests_are_on_their_way_than_allowed(server: CrookedServer) -> None:
    server.otherwise = hangs(0.02)
    async with ApiClient(server.load, in_flight=3) as client:
        await asyncio.gather(*(client.get("/version") for _ in range(12)))

    assert server.most_at_once == 3


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    async with crooked() as server:
        pass
    async with ApiClient(server.load) as client:
        with pytest.raises(ApiUnreachable):
            await client.get("/version")
