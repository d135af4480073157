"""One leader among replicas, by a Lease that its holder renews; a leader stops before another can begin."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
    ObjectExists,
    ObjectMissing,
    WriteConflict,
)
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object

LOG = logging.getLogger(__name__)


class NotLeading(Exception):
    """The process does not lead (any more), so it must not write."""


@dataclass(frozen=True)
class LeaseTimes:
    """How long a lease lasts unrenewed, after how long its holder stops by itself, and how often it is renewed."""

    lasts_s: float = 15.0
    stops_s: float = 10.0
    every_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.every_s < self.stops_s < self.lasts_s:
            raise ValueError("a lease is renewed more often than its holder stops, and that before it ends")


class LeaderLease:
    """The right to write, among replicas that have one Lease object.

    Time is this process's monotonic clock alone. A holder counts from *before* it asked for a renewal; a candidate
    counts from when it first *saw* the record it waits for. So clocks that are apart, or are set, do no harm: a holder
    has stopped ``stops_s`` after it sent its last good renewal, and none follows before ``lasts_s``. A process that
    was frozen finds out by ``check``, and what it sent before that is refused by its conditions (KP4).
    """

    def __init__(
        self, client: ApiClient, namespace: str, name: str, identity: str, times: LeaseTimes | None = None
    ) -> None:
        self._client = client
        self._namespace, self._name, self._identity = namespace, name, identity
        self._times = times or LeaseTimes()
        self._until = float("-inf")
        self._seen: tuple[str, str] | None = None
        self._seen_at = 0.0

    @property
    def leads(self) -> bool:
        """Whether this process may write at this moment."""
        return time.monotonic() < self._until

    def check(self) -> None:
        """Raise ``NotLeading`` unless this process may write."""
        if not self.leads:
            raise NotLeading(f"{self._identity} does not hold the lease {self._namespace}/{self._name}")

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, lead until it is lost, and wait again; give it up when cancelled."""
        try:
            while True:
                await self._win()
                LOG.info("%s leads", self._identity)
                with contextlib.suppress(NotLeading):
                    await self._lead(lead)
                LOG.warning("%s does not lead any more", self._identity)
        finally:
            await self._give_up()

    async def _win(self) -> None:
        while not await self._try():  # noqa: ASYNC110 - only the server knows
            await asyncio.sleep(self._times.every_s)

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run the leader's work beside the renewal; the first that ends, ends both."""
        work = asyncio.ensure_future(lead())
        renewal = asyncio.ensure_future(self._renew())
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
            for task in (work, renewal):
                if task.done():
                    task.result()
        finally:
            for task in (work, renewal):
                task.cancel()
            await asyncio.gather(work, renewal, return_exceptions=True)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._times.every_s)
            left_s = self._until - time.monotonic()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._try(), max(left_s, 0.0))
            self.check()

    async def _try(self) -> bool:
        """Take or renew the lease; whether it is this process's now."""
        began = time.monotonic()
        try:
            if not await self._write(await self._read()):
                return False
        except (ApiError, ApiUnreachable) as error:
            if not isinstance(error, WriteConflict | ObjectExists):
                LOG.warning("lease %s/%s: %s", self._namespace, self._name, error)
            return False
        self._until = began + self._times.stops_s
        return True

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(LEASE.path(self._namespace, self._name))
        except ObjectMissing:
            return None

    async def _write(self, lease: Object | None) -> bool:
        if lease is None:
            metadata = {"namespace": self._namespace, "name": self._name}
            await self._client.create(LEASE, {**self._head(), "metadata": metadata, "spec": self._spec(None)})
            return True
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") not in (None, "", self._identity) and not self._is_over(spec):
            return False
        metadata = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        patch = {"metadata": metadata, "spec": self._spec(spec)}
        await self._client.patch(LEASE, lease, patch, content_type=MERGE_PATCH)
        return True

    def _is_over(self, spec: Object) -> bool:
        """Say whether the holder has let the record stand unrenewed for as long as it lasts, seen from here."""
        record = (str(spec.get("holderIdentity")), str(spec.get("renewTime")))
        now = time.monotonic()
        if record != self._seen:
            self._seen, self._seen_at = record, now
        lasts_s = max(float(spec.get("leaseDurationSeconds") or 0), self._times.lasts_s)
        return now - self._seen_at > lasts_s

    def _head(self) -> Object:
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind}

    def _spec(self, before: Object | None) -> Object:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        held = (before or {}).get("holderIdentity") == self._identity
        spec: Object = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._times.lasts_s)),
            "renewTime": now,
        }
        if not held:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int((before or {}).get("leaseTransitions") or 0) + (before is not None)
        return spec

    async def _give_up(self) -> None:
        """Let another replica follow at once; what fails here is made good by time."""
        if not self.leads:
            return
        self._until = float("-inf")
        with contextlib.suppress(ApiError, ApiUnreachable, TimeoutError):
            async with asyncio.timeout(self._times.every_s):
                lease = await self._read()
                if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                    metadata = {"resourceVersion": lease["metadata"]["resourceVersion"]}
                    patch = {"metadata": metadata, "spec": {"holderIdentity": ""}}
                    await self._client.patch(LEASE, lease, patch, content_type=MERGE_PATCH)
