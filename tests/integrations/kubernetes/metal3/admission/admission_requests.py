"""Requests to the webhooks of Metal3's kinds, without a server, and a cluster as the webhooks see it."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenure.integrations.kubernetes.metal3.admission.ipam_admission import IpamAdmission
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, pool_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import KINDS_OF_IP_POOLS, id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    GROUP,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, uid_of
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import AdmissionRequest, Decision

NAMESPACE = "m3"


@dataclass
class View:
    """What the operator would know."""

    addresses: list[Object] = field(default_factory=list)
    synced: bool = True
    default_strategy: str = "sequential"
    allow_outside: bool = False
    served: bool = True
    kinds: tuple[ClaimKind, ...] = tuple(KINDS_OF_IP_POOLS.values())
    promised: dict[int, list[ClaimId]] = field(default_factory=dict)
    """Claims by the address that they are about to get."""
    specs: dict[PoolId, PoolSpec] = field(default_factory=dict)
    """What pools say that are there already."""
    overlap: str = ""
    """What every pool shares with others."""
    claims: list[Object] = field(default_factory=list)

    def serves(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return self.served and labels.get("ignored") is None

    def serves_kind(self, kind: ClaimKind) -> bool:
        return kind in self.kinds

    def addresses_of(self, pool: PoolId) -> Iterable[Object]:
        return [address for address in self.addresses if pool_of(address) == pool]

    def addresses_at(self, pool: PoolId, position: int) -> Iterable[Object]:
        return [each for each in self.addresses_of(pool) if position_of(each) == position]

    def claims_at(self, pool: PoolId, position: int) -> Iterable[ClaimId]:
        return self.promised.get(position, [])

    def spec_of(self, pool: PoolId) -> PoolSpec:
        return self.specs.get(pool, PoolSpec())

    def is_open_to(self, pool: PoolId, namespace: str) -> bool:
        return pool.namespace in ("", namespace) or self.spec_of(pool).is_shared_with(namespace)

    def overlap_of(self, pool: PoolId, spec: PoolSpec) -> str:
        return self.overlap

    def addresses_for(self, claim: ClaimId) -> Iterable[Object]:
        return [each for each in self.addresses if claim_id_of(each) == claim]

    def claim(self, id: ClaimId) -> Object | None:
        return next((each for each in self.claims if id_of(each) == id), None)

    def claim_of_uid(self, uid: str) -> Object | None:
        return next((each for each in self.claims if uid_of(each) == uid), None)


def an_object(kind: ResourceType, name: str, spec: Any, **metadata: Any) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"namespace": NAMESPACE, "name": name, **metadata},
        "spec": spec,
    }


def a_pool(*entries: Object, **spec: Any) -> Object:
    return an_object(IP_POOL, "p", {"namePrefix": "p", "pools": list(entries), **spec})


def a_range(start: str, end: str, **more: Any) -> Object:
    return {"start": start, "end": end, **more}


def a_claim(name: str = "c", pool: str = "p", annotations: Object | None = None, **spec: Any) -> Object:
    return an_object(IP_CLAIM, name, {"pool": {"name": pool}, **spec}, annotations=annotations or {})


def an_address(name: str, address: str, claim: str, pool: str = "p", **spec: Any) -> Object:
    written = {"address": address, "pool": {"name": pool}, "claim": {"name": claim}, **spec}
    return an_object(IP_ADDRESS, name, written)


def a_cluster_api_address(name: str, address: str, claim: str, pool: str = "p") -> Object:
    reference = {"apiGroup": GROUP, "kind": IP_POOL.kind, "name": pool}
    written = {"address": address, "prefix": 24, "poolRef": reference, "claimRef": {"name": claim}}
    return an_object(CLUSTER_API_ADDRESS, name, written)


def changed(object: Object, **spec: Any) -> Object:
    """Return an object with another ``spec``; a field that is nothing is left out."""
    written = {**object["spec"], **spec}
    return {**object, "spec": {name: value for name, value in written.items() if value is not None}}


def a_request(object: Any, before: Any = None, kind: str = "") -> AdmissionRequest:
    metadata = object.get("metadata") if isinstance(object, dict) else None
    return AdmissionRequest(
        uid="1",
        operation="CREATE" if before is None else "UPDATE",
        group=str(object.get("apiVersion", GROUP)).partition("/")[0] if isinstance(object, dict) else GROUP,
        kind=kind or object["kind"],
        namespace=NAMESPACE,
        name=metadata.get("name", "") if isinstance(metadata, dict) else "",
        user="ann",
        object=object,
        before=before,
        dry_run=False,
    )


async def validated(object: Object, before: Object | None = None, view: View | None = None) -> Decision:
    return await IpamAdmission(view or View()).validate(a_request(object, before))


async def mutated(object: Object, before: Object | None = None, view: View | None = None) -> tuple[Object, Decision]:
    """Return what becomes of an object, and the answer that says so."""
    decision = await IpamAdmission(view or View()).mutate(a_request(object, before))
    return applied(object, decision.patch), decision


async def errors(object: Object, before: Object | None = None, view: View | None = None) -> str:
    """Return why an object is refused; empty if it is not."""
    decision = await validated(object, before, view)
    assert not decision.errors or (decision.code, decision.reason) == (422, "Invalid")
    return "".join(decision.errors)


async def warnings(object: Object, before: Object | None = None, view: View | None = None) -> list[str]:
    """Return what the author of an object, which is accepted, is warned of."""
    decision = await validated(object, before, view)
    assert decision.errors == ()
    return list(decision.warnings)


def applied(object: Object, patch: Iterable[Object]) -> Object:
    """Apply a JSON patch of steps ``add`` and ``remove`` on maps."""
    result: Object = copy.deepcopy(object)
    for step in patch:
        *parents, name = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        place = result
        for parent in parents:
            place = place[parent]
        if step["op"] == "add":
            place[name] = step["value"]
        else:
            del place[name]
    return result
