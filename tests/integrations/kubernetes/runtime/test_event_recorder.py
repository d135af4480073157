"""Events on a real server: seen by people, rare, and never in the way."""

import asyncio
from contextlib import suppress

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.event_recorder import WAITING, EventRecorder
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
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
