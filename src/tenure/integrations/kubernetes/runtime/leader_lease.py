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


class WorkEnded(Exception):
    """The work of the leader returned although the process leads; it should go on until it is cancelled."""


@dataclass(frozen=True)
class LeaseTimes:
    """How long a lease lasts unrenewed, after how long its holder stops by itself, and how often it is renewed.

    Between the holder's stop and the end of the lease lies more than ``every_s``: work that is cancelled has ended by
    then.
    """

    lasts_s: float = 15.0
    stops_s: float = 10.0
    every_s: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.every_s < self.stops_s or not self.stops_s + self.every_s < self.lasts_s:
            raise ValueError("a lease is renewed more often than its holder stops, and that well before it ends")


class LeaderLease:
    """The right to write, among replicas that have one Lease object.

    Time is this process's monotonic clock alone. A holder counts from *before* it asked for a renewal; a candidate
    counts from when it first *saw* the record it waits for. So clocks that are apart, or are set, do no harm: a holder
    has stopped ``stops_s`` after it sent its last good renewal, and none follows before ``lasts_s``. A process that
    was frozen finds out by ``check``, and what it sent before that is refused by its conditions (KP4).

    A Lease that is deleted while it is held is made again by its holder. A candidate that has seen another holder
    waits ``lasts_s`` before it does so; a candidate that has seen none cannot know of one, and makes it at once. Then
    the holder stops at its next renewal.
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
        self.refusal: ApiError | None = None
        """What the server refused at the last try."""
        self.answers = 0
        """How many tries the server has answered, and not with an error."""

    @property
    def leads(self) -> bool:
        """Whether this process may write at this moment."""
        return time.monotonic() < self._until

    def check(self) -> None:
        """Raise ``NotLeading`` unless this process may write."""
        if not self.leads:
            raise NotLeading(f"{self._identity} does not hold the lease {self._namespace}/{self._name}")

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, lead until it is lost, and wait again; give it up when cancelled.

        ``NotLeading`` out of the work, also in a group, ends that leadership only. Every other error is raised, and
        so is ``WorkEnded`` if the work returns.
        """
        try:
            while True:
                await self._win()
                LOG.info("%s leads", self._identity)
                try:
                    await self._lead(lead)
                except* NotLeading:
                    LOG.warning("%s does not lead any more", self._identity)
                await asyncio.sleep(self._times.every_s)  # work that ends at once is not begun again at once
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
            raise WorkEnded(f"{self._identity} leads and has nothing to do")
        finally:
            for task in (work, renewal):
                task.cancel()
            # Both are waited for: the work must have ended before this process can lead again.
            await asyncio.gather(work, renewal, return_exceptions=True)

    async def _renew(self) -> None:
        while True:
            # Never past the end of its time: a leader that is renewed rarely must stop in time as well.
            await asyncio.sleep(min(self._times.every_s, self._left_s))
            # Not ``wait_for``: in Python 3.11 it swallows a cancellation that comes together with the answer.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._left_s):
                    await self._try()
            self.check()

    @property
    def _left_s(self) -> float:
        return max(self._until - time.monotonic(), 0.0)

    async def _try(self) -> bool:
        """Take or renew the lease; whether it is this process's now."""
        began = time.monotonic()
        try:
            is_written = await self._write(await self._read())
        except (WriteConflict, ObjectExists):
            # Another process wrote. A holder must know at once whether that was another holder.
            self.answers += 1
            return self.leads and await self._is_still_held()
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("lease %s/%s: %s", self._namespace, self._name, error)
            self.refusal = error if isinstance(error, ApiError) else None
            return False
        self.refusal = None
        self.answers += 1
        if not is_written:
            return False
        self._until = began + self._times.stops_s
        # Noted, so that this process, once it leads no more, waits where the Lease is missing.
        self._seen = (self._identity, "")
        return self.leads  # an answer that took too long is no right to write

    async def _is_still_held(self) -> bool:
        """Read the lease again, and stop leading if another process holds it."""
        try:
            self._holder_of(await self._read())
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("lease %s/%s: %s", self._namespace, self._name, error)
        return self.leads

    def _holder_of(self, lease: Object | None) -> str:
        """Return the holder of a lease that was read; if that is another process, this one does not lead."""
        holder = str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")
        if holder not in ("", self._identity):
            self._until = float("-inf")
        return holder

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(LEASE.path(self._namespace, self._name))
        except ObjectMissing:
            return None

    async def _write(self, lease: Object | None) -> bool:
        holder = self._holder_of(lease)
        if lease is None:
            if not self.leads and not self._is_over(("", "missing"), 0.0):
                return False
            metadata = {"namespace": self._namespace, "name": self._name}
            await self._client.create(LEASE, {**self._head(), "metadata": metadata, "spec": self._spec(None)})
            return True
        spec = lease.get("spec") or {}
        if holder not in ("", self._identity):
            record = (holder, str(spec.get("renewTime")))
            if not self._is_over(record, float(spec.get("leaseDurationSeconds") or 0)):
                return False
        metadata = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        patch = {"metadata": metadata, "spec": self._spec(spec)}
        await self._client.patch(LEASE, lease, patch, content_type=MERGE_PATCH)
        return True

    def _is_over(self, record: tuple[str, str], lasts_s: float) -> bool:
        """Say whether a record has stood unrenewed for as long as it lasts, seen from here.

        That the Lease is missing is a record, too, after one with a holder: the holder may not know it yet.
        """
        now = time.monotonic()
        if record == ("", "missing") and self._seen is None:
            return True
        if record != self._seen:
            self._seen, self._seen_at = record, now
        # The longer of both: the holder may have been started with other times than this process.
        return now - self._seen_at > max(lasts_s, self._times.lasts_s)

    def _head(self) -> Object:
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind}

    def _spec(self, before: Object | None) -> Object:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        held = (before or {}).get("holderIdentity") == self._identity
        spec: Object = {
            "holderIdentity": self._identity,
            # The server refuses a Lease of 0 seconds.
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
        # Before the name is taken out of the Lease: with that write another replica may begin.
        self._until = float("-inf")
        with contextlib.suppress(ApiError, ApiUnreachable, TimeoutError):
            # Not longer than a follower would have to wait anyway.
            async with asyncio.timeout(self._times.lasts_s - self._times.stops_s):
                while not await self._release():
                    LOG.debug("a renewal that was cancelled on its way has arrived")

    async def _release(self) -> bool:
        """Take this process's name out of the lease; whether it is out."""
        lease = await self._read()
        if lease is None or self._holder_of(lease) != self._identity:
            return True
        metadata = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        patch = {"metadata": metadata, "spec": {"holderIdentity": ""}}
        try:
            await self._client.patch(LEASE, lease, patch, content_type=MERGE_PATCH)
        except WriteConflict:
            return False
        return True
