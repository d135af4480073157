"""Events on a real server: seen by people, rare, and never in the way."""

import asyncio
from contextlib import suppress
from typing import cast

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import NAMESPACE_GOING, error_of
from tenure.integrations.kubernetes.runtime.event_recorder import WAITING, EventRecorder
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.terminating_namespaces import REMEMBERED, TerminatingNamespaces
from tests.infrastructure.kube import KubeServer

CONFIG_MAP = ResourceType("", "v1", "configmaps", "ConfigMap")


def events(kube: KubeServer, namespace: str) -> list[Object]:
    found: list[Object] = kube.ask("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return found


async def test_what_happens_again_and_again_is_one_event_a_minute(
    client: ApiClient, kube: KubeServer, namespace: str
) -> None:
    """KP12."""
    object = await client.create(CONFIG_MAP, {"metadata": {"namespace": namespace, "name": "a"}})
    recorder = EventRecorder(client, "tests")
    for _ in range(100):
        recorder.record(CONFIG_MAP, object, "Exhausted", "nothing is free", "Warning")
    recorder.record(CONFIG_MAP, object, "Served", "got one")
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(10):
        while len(await asyncio.to_thread(events, kube, namespace)) < 2:  # noqa: ASYNC110 - a server is polled
            await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    written = events(kube, namespace)
    found = {each["reason"]: each for each in written}
    assert len(written) == 2
    assert {name: (each["type"], each["note"]) for name, each in found.items()} == {
        "Exhausted": ("Warning", "nothing is free"),
        "Served": ("Normal", "got one"),
    }
    assert found["Served"]["regarding"]["uid"] == object["metadata"]["uid"]


async def test_more_events_than_can_be_written_are_dropped_and_counted(client: ApiClient, namespace: str) -> None:
    meter = RuntimeMeter()
    recorder = EventRecorder(client, "tests", meter)
    for number in range(WAITING + 50):
        metadata = {"namespace": namespace, "name": "a", "uid": str(number)}
        recorder.record(CONFIG_MAP, {"metadata": metadata}, "Many", "…")

    assert meter.events_dropped == 50


async def test_a_long_note_in_any_script_is_cut_to_what_the_server_takes(
    client: ApiClient, kube: KubeServer, namespace: str
) -> None:
    """It counts bytes, and refuses what is longer; no character is cut in two."""
    meter = RuntimeMeter()
    recorder = EventRecorder(client, "tests", meter)
    object = {"metadata": {"namespace": namespace, "name": "a", "uid": "1"}}
    recorder.record(CONFIG_MAP, object, "Long", "x" + "é" * 1023)
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(10):
        while not (written := await asyncio.to_thread(events, kube, namespace)):
            assert meter.events_dropped == 0
            await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    assert [each["note"] for each in written] == ["x" + "é" * 511]


async def test_an_event_that_cannot_be_written_stops_nothing(
    client: ApiClient, kube: KubeServer, namespace: str
) -> None:
    meter = RuntimeMeter()
    recorder = EventRecorder(client, "tests", meter)
    recorder.record(CONFIG_MAP, {"metadata": {"namespace": "not-there", "name": "a", "uid": "1"}}, "Lost", "…")
    recorder.record(CONFIG_MAP, {"metadata": {"namespace": namespace, "name": "a", "uid": "2"}}, "Kept", "…")
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(events, kube, namespace):  # noqa: ASYNC110 - a server is polled
            await asyncio.sleep(0.05)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    assert meter.events_dropped == 1


async def test_kp8_a_namespace_that_is_being_deleted_is_asked_for_one_event_and_no_more() -> None:
    """A namespace of the same name that is made afterwards gets events again."""
    asked: list[str] = []
    refusal = {"kind": "Status", "reason": "Forbidden", "details": {"causes": [{"reason": NAMESPACE_GOING}]}}

    class Server:
        async def create(self, kind: ResourceType, object: Object) -> Object:
            asked.append(object["metadata"]["namespace"])
            if asked[-1] == "going":
                raise error_of(403, refusal)
            return object

    recorder = EventRecorder(cast(ApiClient, Server()), "tests")
    task = asyncio.create_task(recorder.run())
    for number in range(6):
        for namespace in ("going", "stays"):
            metadata = {"namespace": namespace, "name": "a", "uid": f"{namespace}-{number}"}
            recorder.record(CONFIG_MAP, {"metadata": metadata}, "Served", "…")
        if number % 2:
            await asyncio.sleep(0.01)
    assert (asked.count("going"), asked.count("stays")) == (1, 6)

    recorder.terminating.took("going")
    recorder.record(CONFIG_MAP, {"metadata": {"namespace": "going", "name": "a", "uid": "new"}}, "Served", "…")
    await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert asked.count("going") == 2


def test_namespaces_that_are_gone_are_not_remembered_for_ever() -> None:
    terminating = TerminatingNamespaces()
    causes = {"kind": "Status", "reason": "Forbidden", "details": {"causes": [{"reason": NAMESPACE_GOING}]}}
    for number in range(REMEMBERED + 10):
        assert terminating.note(f"n{number}", error_of(403, causes))

    assert len(terminating._names) == REMEMBERED
    assert not terminating.note("n", error_of(403, {"kind": "Status", "reason": "Forbidden"}))
    assert "n" not in terminating
