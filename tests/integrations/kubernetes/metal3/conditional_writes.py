"""What an operator sends, noted, and the judge of it: every write names what it was decided on (KP4)."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field
from tenure.integrations.kubernetes.runtime.api_client import JSON_PATCH, MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.credentials import Loader
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter


class SentWrite(NamedTuple):
    """A write as it was sent."""

    method: str
    path: str
    body: object
    content_type: str = "application/json"


class NotingClient(ApiClient):
    """A client that notes every write that it sends."""

    def __init__(self, load: Loader, meter: RuntimeMeter, sent: list[SentWrite]) -> None:
        super().__init__(load, meter=meter)
        self._noted = sent

    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        if method != "GET":
            self._noted.append(SentWrite(method, path, body, content_type))
        return await super()._ask(method, path, body, query=query, content_type=content_type, accept=accept)


def unconditional(sent: Iterable[SentWrite]) -> list[SentWrite]:
    """Return the writes that a server would do whatever has become of the object since it was read."""
    return [each for each in sent if not _is_conditional(each)]


def _is_conditional(sent: SentWrite) -> bool:
    match sent:
        case SentWrite("POST", _, body):
            return bool(field(_map(body), "metadata", "name"))  # of two objects of one name the server takes one
        case SentWrite("PATCH", _, list(steps), content_type) if content_type == JSON_PATCH:
            return _has_tests(steps)
        case SentWrite("PATCH", _, body, content_type) if content_type == MERGE_PATCH:
            return _names_version(field(_map(body), "metadata"))
        case SentWrite("DELETE", _, body):
            return _names_version(field(_map(body), "preconditions"))
    return False  # a PUT replaces what others have written meanwhile


def _has_tests(steps: list[Object]) -> bool:
    """Return whether a patch tests whose it is, and either the version, or every place that it takes away."""
    tested = {step["path"]: step["value"] for step in steps if step["op"] == "test"}
    changes = [step for step in steps if step["op"] != "test"]
    of_version = bool(tested.get("/metadata/resourceVersion"))
    of_places = all(step["op"] == "remove" and tested.get(step["path"]) for step in changes)
    are_first = all(step["op"] == "test" for step in steps[: len(tested)])
    return are_first and bool(tested.get("/metadata/uid")) and (of_version or of_places)


def _names_version(seen: object) -> bool:
    return all(field(_map(seen), name) for name in ("uid", "resourceVersion"))


def _map(value: object) -> Object:
    return value if isinstance(value, dict) else {}
