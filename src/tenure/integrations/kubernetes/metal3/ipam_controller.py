"""The controller of pools: serves claims of both kinds from IPPools, and judges what users write of these kinds."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from aiohttp import web

from tenure.integrations.kubernetes.metal3.address_giving import AddressGiving
from tenure.integrations.kubernetes.metal3.admission.ipam_admission import IpamAdmission
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites
from tenure.integrations.kubernetes.metal3.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.ipam_samples import ipam_samples
from tenure.integrations.kubernetes.metal3.ledger.ledger_orphans import LedgerOrphans
from tenure.integrations.kubernetes.metal3.ledger.pool_ledgers import PoolLedgers
from tenure.integrations.kubernetes.metal3.objects.address_objects import pool_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS, kind_named
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL, WATCH_FILTER, labels_of
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.orphan_watch import OrphanWatch
from tenure.integrations.kubernetes.metal3.other_writers import OtherWriters
from tenure.integrations.kubernetes.metal3.pool_overlaps import overlap_text
from tenure.integrations.kubernetes.metal3.pool_pass import PoolPasses
from tenure.integrations.kubernetes.metal3.pool_writes import PoolWrites
from tenure.integrations.kubernetes.metal3.stale_marks import StaleMarks
from tenure.integrations.kubernetes.metal3.unreadable_objects import UnreadableObjects
from tenure.integrations.kubernetes.operator_context import CannotListen, ListenOptions, OperatorContext
from tenure.integrations.kubernetes.operator_samples import queue_samples, webhook_samples
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.leader_lease import NotLeading
from tenure.integrations.kubernetes.runtime.mounted_certificate import show_mounted
from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of
from tenure.integrations.kubernetes.runtime.webhook_certificates import WebhookCertificates
from tenure.integrations.kubernetes.runtime.webhook_host import WebhookHost
from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue

LOG = logging.getLogger(__name__)

WORKERS = 16
"""Pools that are served at once."""
LONGEST_DELAY_S = 10.0
RETRY_S = 1.0

REGISTRATION = "admissionregistration.k8s.io"
CONFIGURATIONS = [
    (ResourceType(REGISTRATION, "v1", f"{kind.lower()}s", kind, namespaced=False), "tenure-operator")
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
]
SERVICE, SECRET_NAME = "tenure-operator", "tenure-operator-webhook"


class IpamController:
    """Serves pools on the leader; follows the server and judges objects on every replica."""

    name = "ipam"

    def __init__(self, context: OperatorContext) -> None:
        settings = context.settings
        self._settings = settings
        self._lease = context.lease
        self.meter = IpamMeter()
        self.queue: WorkQueue[PoolId] = WorkQueue(longest_delay_s=LONGEST_DELAY_S)
        self.caches = IpamCaches(
            context.client, settings.namespaces, context.meter, self.queue.add, self.queue.discard,
            context.events.terminating,
        )  # fmt: skip
        self.others = OtherWriters(context.client, context.events)
        for kind in (IP_POOL, IP_CLAIM):  # an address has no status
            self.others.watch(kind, self.caches.own[kind])
        kinds = [kind for name, kind in CLAIM_KINDS.items() if name in settings.controllers]
        claims = ClaimWrites(context.client, self.caches, self._check)
        self.orphans = OrphanWatch(
            self.caches, claims, context.events, self.meter, settings.orphan_grace_s, self._may_release, kinds
        )
        self.ledgers = PoolLedgers(context.client, self.caches, self._check)
        self.ledger_orphans = LedgerOrphans(
            self.caches, self.ledgers, claims, context.events, self.meter, settings.orphan_grace_s, self._may_release_in
        )
        pools = PoolWrites(context.client, self.caches, context.events, self._check, orphans_of=self._orphans_of)
        claims.note_released = pools.note_released
        giving = AddressGiving(
            self.caches, claims, pools, context.events, self.queue.add_after, self.meter, self.ledgers
        )
        self.passes = PoolPasses(self.caches, giving, self._serves, settings.allow_outside, kinds)
        self.stale_marks = StaleMarks(context.client, self.caches, self._check, self._serves, settings.stale_mark_s)
        self.unreadable = UnreadableObjects(self.caches, context.events, self._serves, kinds)
        self._view = CachedView(self.caches, settings, kinds)
        self.host = WebhookHost(IpamAdmission(self._view).admissions)
        own = settings.own_namespace
        names = [f"{SERVICE}.{own}.svc", f"{SERVICE}.{own}.svc.cluster.local", "localhost", "127.0.0.1"]
        self._certificates = WebhookCertificates(context.client, own, SECRET_NAME, names, CONFIGURATIONS)
        self._runner: web.AppRunner | None = None

    async def listen(self) -> int:
        """Listen for the API server's questions, and return the port; 0 if webhooks are left to others."""
        settings = self._settings
        if not settings.webhooks:
            return 0
        try:
            self._runner, port = await self.host.start(settings.webhook_host, settings.webhook_port)
        except (OSError, UnicodeError) as error:
            options = ListenOptions("--webhook-host", "--webhook-port")
            raise CannotListen(options, settings.webhook_host, settings.webhook_port, error) from error
        return port

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    def not_ready(self) -> Mapping[str, str]:
        """Return what the caches lack, whether a certificate is missing, and which other controller is at work."""
        others = {"another controller": self.others.reason} if self.others.reason else {}
        return self.caches.not_ready() | (self.host.not_ready() if self._settings.webhooks else {}) | others

    def samples(self) -> Iterator[Sample]:
        """Return the numbers of this part."""
        # Keys of replicas that do not lead wait for the day on which they do; their age would say nothing.
        if self._lease.leads:
            yield from queue_samples(self.name, self.queue)
        yield from webhook_samples(self.name, self.host)
        yield from ipam_samples(self.caches, self.meter, self.orphans, self._lease.leads)

    async def follow(self) -> None:
        """Keep caches up to date and judge objects, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.caches.follow())
            if self._settings.webhooks and (folder := self._settings.webhook_certificates):
                tasks.create_task(show_mounted(self.host, Path(folder)))
            elif self._settings.webhooks:
                tasks.create_task(self._certificates.show(self.host))

    async def lead(self) -> None:
        """Serve claims until cancelled; the certificate of the webhooks does not wait for that."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read_and_serve())
            if self._settings.webhooks and not self._settings.webhook_certificates:
                tasks.create_task(self._certificates.keep())

    async def _read_and_serve(self) -> None:
        """Read everything from the server itself before the first pick (KP5), then serve."""
        while not await self._has_compared():  # noqa: ASYNC110 - a server is asked again
            await asyncio.sleep(RETRY_S)
        self.caches.begin()
        await self.others.unless_found(self._serve)

    async def _has_compared(self) -> bool:
        """Read everything; leaders change when servers are in trouble, so a list that fails is tried again."""
        try:
            await self.caches.compare()
        except (ApiError, ApiUnreachable, ValueError) as error:
            LOG.warning("the caches cannot be compared with the server: %s", error)
            return False
        return True

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.queue.work(self.passes.settle, WORKERS, self._report))
            tasks.create_task(self.ledgers.run())
            tasks.create_task(self.orphans.run())
            tasks.create_task(self.ledger_orphans.run())
            tasks.create_task(self.stale_marks.run())
            tasks.create_task(self.unreadable.run())

    def _may_release(self, address: Object) -> bool:
        """Return whether an address without a claim may be released: not in a paused pool, nor in that of others."""
        key = pool_of(address)
        return key is not None and self._may_release_in(key)

    def _may_release_in(self, key: PoolId) -> bool:
        """Return whether what is without a claim in a pool may be released."""
        pool = self.caches.pools.get(key)
        return not self.caches.is_pool_paused(key) and (pool is None or self._serves(pool))

    def _orphans_of(self, key: PoolId) -> list[Object]:
        """Return what is without a claim in a pool: objects, and what its ledger holds."""
        return self.orphans.of_pool(key) + self.ledger_orphans.of_pool(key)

    def _check(self) -> None:
        """Raise if this process must not write: it does not lead any more, or another controller is at work."""
        self._lease.check()
        self.others.check()

    def _serves(self, object: Object) -> bool:
        """Return whether an object has the label that this operator filters by (E7)."""
        return self._view.serves(key_of(object)[0], labels_of(object))

    def _report(self, key: PoolId, error: Exception, delay_s: float) -> None:
        LOG.warning("%s: again in %.1f s: %s", key, delay_s, error, exc_info=_unforeseen(error))


class CachedView:
    """What webhooks know of the cluster: this replica's caches."""

    def __init__(self, caches: IpamCaches, settings: OperatorSettings, kinds: Collection[ClaimKind]) -> None:
        self._caches = caches
        self._kinds = kinds
        self._settings = settings
        self.default_strategy = settings.default_strategy
        self.allow_outside = settings.allow_outside

    @property
    def synced(self) -> bool:
        """Whether the caches hold all that the server holds."""
        return self._caches.is_synced

    def serves(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether the operator works in a namespace, on objects with such labels."""
        wanted = self._settings.watch_filter
        is_in = not self._settings.namespaces or namespace in self._settings.namespaces
        return is_in and (not wanted or labels.get(WATCH_FILTER) == wanted)

    def serves_kind(self, kind: ClaimKind) -> bool:
        """Return whether claims of a kind are served."""
        return kind in self._kinds

    def addresses_of(self, pool: PoolId) -> Iterable[Object]:
        """Return the address objects of both kinds that name a pool."""
        return self._caches.addresses_of(pool)

    def addresses_at(self, pool: PoolId, position: int) -> Iterable[Object]:
        """Return the address objects of both kinds that hold an address of a pool."""
        return self._caches.addresses_at(pool, position)

    def claims_at(self, pool: PoolId, position: int) -> Iterable[ClaimId]:
        """Return the claims that have an address of a pool, or are about to get it."""
        return self._caches.claims_at(pool, position)

    def overlap_of(self, pool: PoolId, spec: PoolSpec) -> str:
        """Return what a pool of such a ``spec`` shares with others of its network."""
        return overlap_text(pool, self._caches.overlaps.others_of(pool, spec))

    def addresses_for(self, claim: ClaimId) -> Iterable[Object]:
        """Return the IPAddress objects that name a claim."""
        return self._caches.addresses_of_kind(kind_named(claim)).by_index("claim", "/".join(claim.key))


def _unforeseen(error: Exception) -> bool:
    """Return whether an error has a place in the log worth reading: an answer of the server says all by itself."""
    return not isinstance(error, ApiError | ApiUnreachable | NotLeading)
