"""Events on objects, for people: rare, beside the work, and dropped before they are in its way (KP12)."""

import asyncio
import logging
import socket
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Literal

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.resource_types import EVENT, Object, ResourceType, key_of, uid_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.terminating_namespaces import TerminatingNamespaces

LOG = logging.getLogger(__name__)

WAITING = 500
REMEMBERED = 10_000
AGAIN_S = 60.0
LONGEST_NOTE = 1024


class EventRecorder:
    """Writes events from a bounded line: one for an object and a reason a minute, the rest are dropped."""

    def __init__(self, client: ApiClient, controller: str, meter: RuntimeMeter | None = None) -> None:
        self._client = client
        self._controller = controller
        self._meter = meter or RuntimeMeter()
        self._line: asyncio.Queue[Object] = asyncio.Queue(WAITING)
        self._last: OrderedDict[tuple[str, str], float] = OrderedDict()
        self.terminating = TerminatingNamespaces()
        """Namespaces that take no events; whoever else creates objects notes them here, too."""

    def record(
        self, kind: ResourceType, object: Object, reason: str, note: str, type: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        """Note what happened to an object; never waits."""
        if key_of(object)[0] in self.terminating or not self._is_news(uid_of(object), reason):
            return
        try:
            self._line.put_nowait(self._event(kind, object, reason, note, type))
        except asyncio.QueueFull:
            self._meter.events_dropped += 1

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            event = await self._line.get()
            namespace = event["metadata"]["namespace"]
            # Asked again: the namespace may have begun to go while the event stood in the line.
            if namespace in self.terminating:
                continue
            try:
                await self._client.create(EVENT, event)
            except (ApiError, ApiUnreachable) as error:
                self.terminating.note(namespace, error)
                LOG.debug("event: %s", error)
                self._meter.events_dropped += 1

    def _is_news(self, uid: str, reason: str) -> bool:
        now = time.monotonic()
        if now - self._last.get((uid, reason), float("-inf")) < AGAIN_S:
            return False
        self._last[uid, reason] = now
        self._last.move_to_end((uid, reason))
        # A forgotten entry costs an event too many; without an end, each object ever seen would stay in memory.
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        return True

    def _event(self, kind: ResourceType, object: Object, reason: str, note: str, type: str) -> Object:
        namespace, name = key_of(object)
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        regarding = {
            "apiVersion": kind.api_version, "kind": kind.kind, "namespace": namespace, "name": name,
            "uid": uid_of(object), "resourceVersion": object["metadata"].get("resourceVersion", ""),
        }  # fmt: skip
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"namespace": namespace or "default", "generateName": f"{name[:200]}-"},
            "eventTime": now,
            "reportingController": self._controller,
            "reportingInstance": socket.gethostname()[:128],
            "action": reason,
            "reason": reason,
            "regarding": regarding,
            # The server counts bytes, and refuses a longer note; half a character at the end goes, too.
            "note": note.encode()[:LONGEST_NOTE].decode(errors="ignore"),
            "type": type,
        }
