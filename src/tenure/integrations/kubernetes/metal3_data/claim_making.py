"""The claims of a machine: made once, found by their owner, and waited for until each has its address (R6, R7)."""

from datetime import UTC, datetime, timedelta

from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_name_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import owner_reference
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import METAL3, kind_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_GROUP,
    IP_POOL,
    OWN_ADDRESS,
    annotations_of,
    field,
    finalizers_of,
    is_terminating,
    labels_of,
    mapping,
    text,
)
from tenure.integrations.kubernetes.metal3.objects.move_marks import is_marked
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import IN_CLUSTER_POOLS
from tenure.integrations.kubernetes.metal3_data.data_caches import DataCaches, cluster_of
from tenure.integrations.kubernetes.metal3_data.data_kinds import (
    DATA_FINALIZER,
    claim_kind,
    claim_spec,
    owner_uids,
)
from tenure.integrations.kubernetes.metal3_data.data_writes import DataWrites, type_of
from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts, PoolAddress
from tenure.integrations.kubernetes.metal3_data.template.needed_addresses import (
    DATA_LABEL,
    POOL_LABEL,
    NeededAddress,
    NeededAddresses,
    check_claim_names,
    claim_names,
)
from tenure.integrations.kubernetes.metal3_data.template.template_fields import TemplateRefused
from tenure.integrations.kubernetes.metal3_data.template.template_model import DataTemplate, ObjectSort
from tenure.integrations.kubernetes.runtime.api_errors import ObjectExists
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of, uid_of

LOOKED_UP = {(CLUSTER_API_GROUP, each.type.kind): each.type for each in IN_CLUSTER_POOLS}
"""Pools of the in-cluster provider, by group and kind: they are not followed, but looked up before a claim is made."""
SAYS_AFTER_S = 5.0
"""How long a machine may wait for what others make before its Metal3Data says so: most is there within moments."""


class NotServedYet(Exception):
    """A machine does not have all that it needs yet."""

    def __init__(self, reason: str, *, is_followed: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        """What people are told; empty while it is only a matter of time."""
        self.is_followed = is_followed
        """Whether a change of what is waited for wakes the machine."""


class ClaimMaking:
    """Makes claims, and reads the addresses that they have."""

    def __init__(self, caches: DataCaches, writes: DataWrites, *, by_host: bool) -> None:
        self._caches = caches
        self._writes = writes
        self._by_host = by_host

    async def addresses(
        self, data: Object, template: DataTemplate, facts: MachineFacts
    ) -> dict[NeededAddress, PoolAddress]:
        """Return the addresses of a machine, all of them; raise ``NotServedYet`` while one is missing."""
        needed = list(NeededAddresses(template, facts))
        names = {each: self._names(data, facts, each) for each in needed}
        check_claim_names({name: each for each, both in names.items() for name in both})
        # Before anything that raises: a machine that waits for a pool must not keep other claims in line.
        await self._drop_unneeded(data, {name for both in names.values() for name in both})
        await self._check_pools(data, names)
        # All are made before any is judged: a claim that failed must not keep the others from their addresses.
        claims = {each: await self._claim(data, each, names[each]) for each in needed}
        failed = [
            f"IP Allocation for {each.pool.name} failed : {reason}"
            for each, claim in claims.items()
            if (reason := _error_of(claim))
        ]
        if failed:
            raise NotServedYet(failed[0])
        return {each: await self._address(data, claim, each) for each, claim in claims.items()}

    async def _drop_unneeded(self, data: Object, names: set[str]) -> None:
        """Release the claims that a machine waits for no longer: its template, its host or a note says otherwise now.

        One that has an address stays until the machine goes: the machine may have been told of it.
        """
        for kind, claim in self._caches.claims_of(data):
            if key_of(claim)[1] not in names and DATA_FINALIZER in finalizers_of(claim) and _has_nothing(claim):
                await self._writes.release(self._caches.claims_of_kind(kind), claim, DATA_FINALIZER)

    def _names(self, data: Object, facts: MachineFacts, needed: NeededAddress) -> list[str]:
        return claim_names(needed, key_of(data)[1], facts.objects[ObjectSort.HOST].name, by_host=self._by_host)

    async def _check_pools(self, data: Object, names: dict[NeededAddress, list[str]]) -> None:
        """Refuse a pool that is not there; no claim is made until it comes, and an IPPool wakes the machine then."""
        missing = [needed.pool for needed in names if await self._is_missing(data, needed, names[needed])]
        if not missing:
            return
        refused = TemplateRefused((pool.path, f"there is no {pool.kind} {pool.name!r}") for pool in missing)
        if all(pool.is_ip_pool for pool in missing):
            raise refused
        raise NotServedYet(refused.message, is_followed=False)

    async def _is_missing(self, data: Object, needed: NeededAddress, names: list[str]) -> bool:
        """Return whether a pool is known not to be there; one of another provider is looked up for a new claim."""
        pool = needed.pool
        place = key_of(data)[0], pool.name
        if pool.is_ip_pool and self._caches.pools.get(place) is None:
            self._caches.await_change(IP_POOL, place, key_of(data))
            return True
        kind = LOOKED_UP.get((pool.group, pool.kind))
        if kind is None or self._owned(data, needed, names) is not None:
            return False
        return await self._writes.is_missing(kind, place)

    def _owned(self, data: Object, needed: NeededAddress, names: list[str]) -> Object | None:
        """Return the claim that a machine has for an address, under whichever name; nothing if there is none."""
        kind = claim_kind(needed)
        owned = {key_of(each)[1]: each for found, each in self._caches.claims_of(data) if found is kind}
        return next((owned[name] for name in names if name in owned), None)

    async def _claim(self, data: Object, needed: NeededAddress, names: list[str]) -> Object:
        """Return the machine's claim for an address, and make it if there is none."""
        kind = claim_kind(needed)
        claim = self._owned(data, needed, names)
        if claim is not None and _is_lost(claim):
            # Nobody serves a claim that is being deleted, and it stays for as long as it has our finalizer.
            if not await self._writes.release(self._caches.claims_of_kind(kind), claim, DATA_FINALIZER):
                raise NotServedYet("")
            claim = None
        if claim is None:
            claim = await self._made(data, needed, names[0])
        if not _is_for(claim, needed):
            raise NotServedYet(f"{kind.claim.kind} {key_of(claim)[1]} is not for {needed.pool.kind} {needed.pool.name}")
        return claim

    async def _made(self, data: Object, needed: NeededAddress, name: str) -> Object:
        """Create a claim; one of another machine that has its name is not used, but waited for (R7)."""
        kind = claim_kind(needed)
        group = self._caches.claims_of_kind(kind)
        if group.kind is None:
            raise NotServedYet(f"the server has no kind {kind.claim.full_name}", is_followed=False)
        try:
            return await self._writes.create(group, self._new_claim(data, needed, name, group.kind))
        except ObjectExists:
            found = await self._writes.read(group.kind, (key_of(data)[0], name))
            if found is None or uid_of(data) not in owner_uids(found):
                # Seen from the server itself: the cache may have seen it go already, so it is not only waited for.
                self._caches.await_change(kind.claim, (key_of(data)[0], name), key_of(data))
                raise NotServedYet(f"{kind.claim.kind} {name} is not this machine's", is_followed=False) from None
            # The claim is this machine's: the answer to an earlier create was lost, or the watch is behind.
            group.wrote(found)
            return found

    def _new_claim(self, data: Object, needed: NeededAddress, name: str, kind: ResourceType) -> Object:
        labels = dict(labels_of(data))
        if self._by_host and claim_kind(needed) is METAL3:
            labels |= {DATA_LABEL: key_of(data)[1], POOL_LABEL: needed.pool.name}
        metadata = {
            "name": name, "namespace": key_of(data)[0], "labels": labels, "finalizers": [DATA_FINALIZER],
            "ownerReferences": [owner_reference(type_of(self._caches.datas), data, controller=True)],
        }  # fmt: skip
        spec = claim_spec(needed, key_of(data)[0], cluster_of(data))
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}

    async def _address(self, data: Object, claim: Object, needed: NeededAddress) -> PoolAddress:
        """Read the address that a claim was given; what the claim says is believed if the address says the same."""
        kind = kind_of(claim)
        given = kind.given(claim)
        if not given:
            raise _unserved(claim, needed)
        address = await self._writes.read(kind.address_type(claim), (key_of(data)[0], given))
        if address is None or claim_name_of(address) != key_of(claim)[1]:
            raise NotServedYet("", is_followed=False)
        spec = address["spec"]
        return PoolAddress(
            text(spec, "address"),
            int(field(spec, "prefix") or 0),
            text(spec, "gateway"),
            tuple(field(spec, "dnsServers") or ()),
        )


def _is_lost(claim: Object) -> bool:
    """Return whether a claim will never have an address: somebody deleted it before it had one."""
    has_none = not kind_of(claim).given(claim)
    return is_terminating(claim) and has_none and not is_marked(claim)


def _has_nothing(claim: Object) -> bool:
    """Return whether a claim never had an address, and stays here. A move leaves its status behind, not its notes."""
    has_none = not kind_of(claim).given(claim) and OWN_ADDRESS not in annotations_of(claim)
    return has_none and not is_marked(claim)


def _unserved(claim: Object, needed: NeededAddress) -> NotServedYet:
    """Say what a claim without an address waits for: an IPPool is there, of another pool nobody knows."""
    pool = needed.pool
    if pool.is_ip_pool:
        return NotServedYet("")
    name = f"{kind_of(claim).claim.kind} {key_of(claim)[1]}"
    reason = f"{pool.path}: {name} waits for an address of {pool.kind} {pool.name!r} of {pool.group}"
    return waits_for_others(claim, reason)


def waits_for_others(object: Object, reason: str) -> NotServedYet:
    """Return why an object waits for what others make; people are told when that takes longer than it should."""
    made = datetime.fromisoformat(text(object, "metadata", "creationTimestamp"))
    if datetime.now(UTC) - made < timedelta(seconds=SAYS_AFTER_S):
        return NotServedYet("", is_followed=False)
    return NotServedYet(reason)


def _is_for(claim: Object, needed: NeededAddress) -> bool:
    """Return whether a claim is for the pool that is needed: its template may be another one by now."""
    if claim_kind(needed) is METAL3:
        return text(claim, "spec", "pool", "name") == needed.pool.name
    pool = needed.pool
    return mapping(claim, "spec", "poolRef") == {"apiGroup": pool.group, "kind": pool.kind, "name": pool.name}


def _error_of(claim: Object) -> str:
    """Return why a claim has no address; empty if it has one, or nobody has said so."""
    kind = kind_of(claim)
    if kind.given(claim):
        return ""
    if kind is METAL3:
        return text(claim, "status", "errorMessage")
    conditions: list[Object] = field(claim, "status", "conditions") or []
    ready = next((each for each in conditions if text(each, "type") == "Ready"), {})
    return (text(ready, "message") or text(ready, "reason")) if text(ready, "status") == "False" else ""
