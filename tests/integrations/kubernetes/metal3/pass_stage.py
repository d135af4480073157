"""A server in memory for passes over pools: what happens between any two writes is decided by the test."""

import asyncio
import copy
import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

from tenure.integrations.kubernetes.metal3.address_giving import AddressGiving
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLAIM_FINALIZER,
    CLUSTER,
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    DELETE_FOR_MOVE,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    PICKED_FOR,
    POOL_FINALIZER,
    WISHED_ADDRESS,
    finalizers_of,
    is_terminating,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, Provider
from tenure.integrations.kubernetes.metal3.pool_pass import PoolPasses
from tenure.integrations.kubernetes.metal3.pool_writes import PoolWrites
from tenure.integrations.kubernetes.runtime.api_client import GONE, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ObjectExists, ObjectMissing, WriteConflict
from tenure.integrations.kubernetes.runtime.discovered_group import DiscoveredGroup
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.informer_group import InformerGroup
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter

NAMESPACE = "m3"
POOL = PoolId(NAMESPACE, "p")
LATER_S = 0.11
"""Longer than the first delay of a claim that failed."""

Interference = Callable[[str, ResourceType, Object], None]
"""Called before a write is done: its method, its kind, and the object."""


def claim_id(name: str, kind: str = "IPClaim") -> ClaimId:
    """Return which claim of the namespace is meant."""
    return ClaimId(kind, NAMESPACE, name)


class Stage:
    """Objects of a namespace, and the passes that an operator makes over their pool."""

    skipped_s = 0.0
    """How much time was skipped instead of waited for; the fixture ``skipped_time`` lets it have passed."""

    def __init__(self, providers: Collection[Provider] = (Provider.METAL3,)) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.writes: list[tuple[str, str, str]] = []
        self.before: Interference = lambda *write: None
        self.events: list[str] = []
        self._versions = itertools.count(100)
        self._due: set[PoolId] = set()
        self._later: set[PoolId] = set()
        client, events = cast(ApiClient, self), cast(EventRecorder, self)
        self.caches = IpamCaches(client, (), RuntimeMeter(), self._due.add, self._due.discard, providers=providers)
        self._kinds = self._followed(providers)
        for group in self._kinds.values():
            for informer in group._informers.values():
                informer.is_there = True
        claims = ClaimWrites(client, self.caches, lambda each: None)
        pools = PoolWrites(client, self.caches, events, lambda each: None, serves=self._serves)
        claims.note_released = pools.note_released
        giving = AddressGiving(self.caches, claims, pools, events, self._again)
        self.passes = PoolPasses(self.caches, giving, lambda each: True)

    def _followed(self, providers: Collection[Provider]) -> dict[ResourceType, InformerGroup]:
        """Return the objects of each kind; what the server would have to be asked about is there."""
        objects = self.caches.objects
        found: dict[ResourceType, DiscoveredGroup] = {CLUSTER: objects.clusters, **objects.in_cluster_pools}
        if Provider.IN_CLUSTER in providers:
            found |= {CLUSTER_API_CLAIM: objects.cluster_api_claims, CLUSTER_API_ADDRESS: objects.cluster_api_addresses}
        for kind, group in found.items():
            group.kind, group._informers = kind, group._make(kind)
            group._informers.on_change(group._relay)
        return {**objects.own, **{kind: each._informers for kind, each in found.items() if each._informers}}

    def record(self, kind: ResourceType, object: Object, reason: str, note: str, type: str = "Normal") -> None:
        self.events.append(reason)

    async def settle(self, passes: int = 20) -> None:
        """Make passes for as long as any is asked for."""
        for _ in range(passes):
            if not self._due and self._later:
                Stage.skipped_s += LATER_S
                self._due |= self._later
                self._later.clear()
            for key in sorted(self._due):
                self._due.discard(key)
                await self.passes.settle(key)

    def _serves(self, pool: Object) -> bool:
        return self.passes.serves(pool)  # as it is by now: tests change it

    def _again(self, key: PoolId, after_s: float) -> None:
        (self._later if after_s else self._due).add(key)

    # What users do; the watch brings it at once.

    def put(self, kind: ResourceType, name: str, spec: Object, **metadata: Any) -> Object:
        number = next(self._versions)
        head = {"namespace": NAMESPACE, "name": name, "uid": f"uid-{name}-{number}", "generation": 1}
        created = metadata.pop("created", f"2026-01-01T00:00:{number % 60:02}Z")
        object = {
            "apiVersion": kind.api_version, "kind": kind.kind, "spec": spec,
            "metadata": {**head, "resourceVersion": str(number), "creationTimestamp": created, **metadata},
        }  # fmt: skip
        self._store(kind, object)
        return object

    def pool(self, first: str = "10.0.0.1", last: str = "10.0.0.9", name: str = "p", **spec: Any) -> Object:
        entries = [{"start": first, "end": last}]
        return self.put(IP_POOL, name, {"namePrefix": "p", "pools": entries, **spec}, finalizers=[POOL_FINALIZER])

    def claim(
        self, name: str, pool: str = "p", own: str = "", asks: str = "", picked_for: str = "", **metadata: Any
    ) -> Object:
        marks = {OWN_ADDRESS: own, WISHED_ADDRESS: asks, PICKED_FOR: picked_for}
        annotations = {mark: value for mark, value in marks.items() if value}
        metadata.setdefault("finalizers", [CLAIM_FINALIZER])
        return self.put(IP_CLAIM, name, {"pool": {"name": pool}}, annotations=annotations, **metadata)

    def address(self, name: str, address: str, claim: str, pool: str = "p", *, moves: bool = False) -> Object:
        metadata = {"annotations": {DELETE_FOR_MOVE: ""}} if moves else {}
        spec = {"address": address, "pool": {"name": pool}, "claim": {"name": claim}}
        return self.put(IP_ADDRESS, name, spec, **metadata)

    def remove(self, kind: ResourceType, name: str) -> None:
        """Remove an object by force."""
        object = self.objects.pop((kind.plural, name))
        self._kinds[kind].deleted(object, GONE)

    def change(self, kind: ResourceType, name: str, change: Callable[[Object], None], *, is_seen: bool = True) -> None:
        object = self.objects[kind.plural, name]
        change(object)
        object["metadata"]["resourceVersion"] = str(next(self._versions))
        if is_seen:
            self._kinds[kind].wrote(copy.deepcopy(object))

    def see(self, kind: ResourceType, name: str) -> None:
        """Let the watch bring what an object is by now."""
        self._kinds[kind].wrote(copy.deepcopy(self.objects[kind.plural, name]))

    # What is to be seen of it.

    def given(self) -> dict[str, str]:
        """Return the addresses of objects by their names."""
        return {
            name: each["spec"]["address"] for (plural, name), each in self.objects.items() if plural == "ipaddresses"
        }

    def status(self, claim: str) -> Object:
        status: Object = self.objects["ipclaims", claim].get("status") or {}
        return status

    # The client of the operator.

    async def get(self, path: str) -> Object:
        plural, name = path.split("/")[-2:]
        await asyncio.sleep(0)
        if (plural, name) not in self.objects:
            raise ObjectMissing(404, "NotFound", path)
        return copy.deepcopy(self.objects[plural, name])

    async def create(self, kind: ResourceType, object: Object) -> Object:
        await self._began("POST", kind, object)
        if (kind.plural, object["metadata"]["name"]) in self.objects:
            raise ObjectExists(409, "AlreadyExists", object["metadata"]["name"])
        made = copy.deepcopy(object)
        number = next(self._versions)
        made["metadata"] |= {"uid": f"made-{number}", "resourceVersion": str(number)}
        self.objects[kind.plural, made["metadata"]["name"]] = made
        asyncio.get_running_loop().call_soon(self._watched, kind, number)
        return copy.deepcopy(made)

    def _watched(self, kind: ResourceType, version: int) -> None:
        """Let the watch reach the version of a write, after its answer."""
        for informer in self._kinds[kind]._informers.values():
            informer.cache.passed(version)
            informer._wake_waiting()

    async def patch(
        self, kind: ResourceType, object: Object, patch: Any, *, content_type: str = "", subresource: str = ""
    ) -> Object:
        await self._began("PATCH", kind, object)
        current = self.objects.get((kind.plural, key_of(object)[1]))
        if current is None:
            raise ObjectMissing(404, "NotFound", key_of(object)[1])
        if isinstance(patch, list):
            _apply(current, patch)
        else:
            if patch["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
                raise WriteConflict(409, "Conflict", "")
            _merge(current.setdefault("status", {}), patch["status"])
        current["metadata"]["resourceVersion"] = str(next(self._versions))
        if is_terminating(current) and not finalizers_of(current):
            del self.objects[kind.plural, key_of(object)[1]]
        return copy.deepcopy(current)

    async def delete(self, kind: ResourceType, object: Object) -> Object:
        await self._began("DELETE", kind, object)
        current = self.objects.get((kind.plural, key_of(object)[1]))
        if current is None:
            raise ObjectMissing(404, "NotFound", key_of(object)[1])
        if not finalizers_of(current):
            del self.objects[kind.plural, key_of(object)[1]]
            return GONE
        head = {"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": str(next(self._versions))}
        current["metadata"] |= head
        return copy.deepcopy(current)

    async def _began(self, method: str, kind: ResourceType, object: Object) -> None:
        await asyncio.sleep(0)
        self.before(method, kind, object)
        self.writes.append((method, kind.plural, key_of(object)[1]))

    def _store(self, kind: ResourceType, object: Object) -> None:
        self.objects[kind.plural, key_of(object)[1]] = object
        self._kinds[kind].wrote(copy.deepcopy(object))


def _apply(object: Object, steps: list[Object]) -> None:
    for step in steps:
        *parts, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place: Any = object
        for part in parts:
            place = place[int(part) if isinstance(place, list) else part]
        key: Any = int(last) if isinstance(place, list) else last
        if step["op"] == "test":
            if place[key] != step["value"]:
                raise WriteConflict(422, "Invalid", "")
        elif step["op"] == "add":
            place[key] = step["value"]
        else:
            del place[key]


def _merge(into: Object, changes: Object) -> None:
    for name, value in changes.items():
        if value is None:
            into.pop(name, None)
        elif isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        else:
            into[name] = value


def numbered(count: int) -> Iterator[str]:
    return (f"c{number:05}" for number in range(count))
