"""The controller of pools: serves claims of both kinds from IPPools, and judges what users write of these kinds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from aiohttp import web

from tenure.integrations.kubernetes.metal3.address_giving import AddressGiving
from tenure.integrations.kubernetes.metal3.admission.ipam_admission import IpamAdmission
from tenure.integrations.kubernetes.metal3.caches.ipam_caches import IpamCaches
from tenure.integrations.kubernetes.metal3.claim_writes import ClaimWrites
from tenure.integrations.kubernetes.metal3.ipam_meter import IpamMeter
from tenure.integrations.kubernetes.metal3.ipam_samples import ipam_samples
from tenure.integrations.kubernetes.metal3.ledger.ledger_orphans import LedgerOrphans
from tenure.integrations.kubernetes.metal3.ledger.move_notes import MoveNotes
from tenure.integrations.kubernetes.metal3.ledger.pool_ledgers import PoolLedgers
from tenure.integrations.kubernetes.metal3.objects.address_objects import pool_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS, kind_named, provider_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL, WATCH_FILTER, labels_of
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, Provider
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.metal3.orphan_watch import OrphanWatch
from tenure.integrations.kubernetes.metal3.other_writers import MANAGERS, OtherController, OtherWriters
from tenure.integrations.kubernetes.metal3.pool_overlaps import overlap_text
from tenure.integrations.kubernetes.metal3.pool_pass import PoolPasses
from tenure.integrations.kubernetes.metal3.pool_writes import PoolWrites
from tenure.integrations.kubernetes.metal3.stale_marks import StaleMarks, ipam_groups
from tenure.integrations.kubernetes.metal3.unreadable_objects import UnreadableObjects
from tenure.integrations.kubernetes.operator_context import CannotListen, ListenOptions, OperatorContext
from tenure.integrations.kubernetes.operator_samples import queue_samples, webhook_samples
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.leader_lease import NotLeading
from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of
from tenure.integrations.kubernetes.runtime.webhooks.mounted_certificate import show_mounted
from tenure.integrations.kubernetes.runtime.webhooks.webhook_certificates import WebhookCertificates
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import WebhookHost
from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue

LOG = logging.getLogger(__name__)

WORKERS = 16
"""Pools that are served at once."""
LONGEST_DELAY_S = 10.0
RETRY_S = 1.0

REGISTRATION = "admissionregistration.k8s.io"
CONFIGURATIONS = [
    ResourceType(REGISTRATION, "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
]
REGISTERED = {Provider.METAL3: "tenure-operator", Provider.IN_CLUSTER: "tenure-operator-in-cluster"}
"""What the registrations of the webhooks are called, by whose kinds they are about."""
ANOTHER = {
    Provider.METAL3: "another controller",
    Provider.IN_CLUSTER: "another controller of in-cluster pools",
}
"""What `/readyz` calls another controller that serves the kinds of a provider."""
SERVICE, SECRET_NAME = "tenure-operator", "tenure-operator-webhook"


class IpamController:
    """Serves pools on the leader; follows the server and judges objects on every replica."""

    name = "ipam"

    def __init__(self, context: OperatorContext) -> None:
        settings = context.settings
        self._settings = settings
        self._lease = context.lease
        self.meter = IpamMeter()
        kinds = [kind for name, kind in CLAIM_KINDS.items() if name in settings.controllers]
        self.queue: WorkQueue[PoolId] = WorkQueue(longest_delay_s=LONGEST_DELAY_S)
        self.caches = IpamCaches(
            context.client, settings.namespaces, context.meter, self.queue.add, self.queue.discard,
            context.events.terminating, {kind.provider for kind in kinds},
        )  # fmt: skip
        self.others = {
            provider: OtherWriters(context.client, context.events, manager)
            for provider, manager in MANAGERS.items()
            if any(kind.provider is provider for kind in kinds)
        }
        self._watch_others()
        claims = ClaimWrites(context.client, self.caches, self._check)
        self.orphans = OrphanWatch(
            self.caches, claims, context.events, self.meter, settings.orphan_grace_s, self._may_release, kinds
        )
        self.ledgers = PoolLedgers(context.client, self.caches, self._check_metal3)
        self.move_notes = MoveNotes(self.caches, self.ledgers, self._serves)
        self.ledger_orphans = LedgerOrphans(
            self.caches, self.ledgers, claims, context.events, self.meter, self.move_notes, settings.orphan_grace_s,
            self._may_release_in,
        )  # fmt: skip
        pools = PoolWrites(
            context.client, self.caches, context.events, self._check, orphans_of=self._orphans_of, serves=self._serves
        )
        # Set afterwards: pools list the orphans that claims release, and claims need pools to note that first.
        claims.note_released = pools.note_released
        giving = AddressGiving(
            self.caches, claims, pools, context.events, self.queue.add_after, self.meter, self.ledgers
        )
        self.passes = PoolPasses(self.caches, giving, self._serves, settings.allow_outside, kinds)
        groups = partial(ipam_groups, self.caches)
        self.stale_marks = StaleMarks(context.client, groups, self._check, self._serves, settings.stale_mark_s)
        self.unreadable = UnreadableObjects(self.caches, context.events, self._serves, kinds)
        self._view = CachedView(self.caches, settings, kinds)
        self.host = WebhookHost(IpamAdmission(self._view).admissions)
        own = settings.own_namespace
        names = [f"{SERVICE}.{own}.svc", f"{SERVICE}.{own}.svc.cluster.local", "localhost", "127.0.0.1"]
        registered = [(type, REGISTERED[provider]) for provider in self.others for type in CONFIGURATIONS]
        self._certificates = WebhookCertificates(context.client, own, SECRET_NAME, names, registered)
        self._runner: web.AppRunner | None = None

    def _watch_others(self) -> None:
        """Look at what others write on the kinds that have a status which only a controller writes."""
        if Provider.METAL3 in self.others:
            for kind in (IP_POOL, IP_CLAIM):  # an address has no status
                self.others[Provider.METAL3].watch(kind, self.caches.objects.own[kind])
        for type, pools in self.caches.objects.in_cluster_pools.items():
            self.others[Provider.IN_CLUSTER].watch(type, pools)

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
        others = {ANOTHER[provider]: each.reason for provider, each in self.others.items() if each.reason}
        return self.caches.objects.not_ready() | (self.host.not_ready() if self._settings.webhooks else {}) | others

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
            tasks.create_task(self.caches.objects.follow())
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
        self.caches.records.begin()
        # At once: each may wait for as long as the other manager's Lease lasts.
        await asyncio.gather(*(each.begin() for each in self.others.values()))
        await self._serve()

    async def _has_compared(self) -> bool:
        """Read everything; leaders change when servers are in trouble, so a list that fails is tried again."""
        try:
            await self.caches.objects.compare()
        except (ApiError, ApiUnreachable, ValueError) as error:
            LOG.warning("the caches cannot be compared with the server: %s", error)
            return False
        except Exception:
            # Another leader would meet the same object.
            LOG.exception("the caches cannot be compared with the server")
            return False
        return True

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.queue.work(self.passes.settle, WORKERS, self._report))
            for each in self.others.values():
                tasks.create_task(each.look_regularly())
            for run in (
                self.ledgers.run, self.orphans.run, self.move_notes.run, self.ledger_orphans.run, self.stale_marks.run,
                self.unreadable.run,
            ):  # fmt: skip
                # Another controller of one provider must not end what is done for the other.
                tasks.create_task(_run_part(run))

    def _may_release(self, address: Object) -> bool:
        """Return whether an address without a claim may be released: not in a paused pool, nor in that of others."""
        key = pool_of(address)
        return key is not None and self._may_release_in(key)

    def _may_release_in(self, key: PoolId) -> bool:
        """Return whether what is without a claim in a pool may be released."""
        pool = self.caches.objects.pools.get(key)
        if self._is_stopped(POOL_KINDS[key.kind].provider) or self.caches.records.is_pool_paused(key):
            return False
        return pool is None or self._serves(pool)

    def _orphans_of(self, key: PoolId) -> list[Object]:
        """Return what is without a claim in a pool: objects, and what its ledger holds."""
        return self.orphans.of_pool(key) + self.ledger_orphans.of_pool(key)

    def _check(self, object: Object) -> None:
        """Raise if this process must not write an object: it does not lead any more, or another controller does."""
        self._lease.check()
        self.others[provider_of(object)].check()

    def _check_metal3(self) -> None:
        """Raise if this process must not write about Metal3's pools, which alone are bound to ledgers."""
        self._lease.check()
        if Provider.METAL3 in self.others:
            self.others[Provider.METAL3].check()

    def _is_stopped(self, provider: Provider) -> bool:
        """Return whether the kinds of a provider are left alone: not chosen, or another controller serves them."""
        return provider not in self.others or bool(self.others[provider].reason)

    def _serves(self, object: Object) -> bool:
        """Return whether an object is looked after here: by its label (E7), and unless another controller does."""
        is_left = self._is_stopped(provider_of(object))
        return not is_left and self._view.serves(key_of(object)[0], labels_of(object))

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
        return self._caches.objects.is_synced

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
        return self._caches.objects.addresses_of(pool)

    def addresses_at(self, pool: PoolId, position: int) -> Iterable[Object]:
        """Return the address objects of both kinds that hold an address of a pool, or the prefix that it lies in."""
        return self._caches.records.addresses_at(pool, position)

    def claims_at(self, pool: PoolId, position: int) -> Iterable[ClaimId]:
        """Return the claims that have an address of a pool, or are about to get it."""
        return self._caches.records.claims_at(pool, position)

    def overlap_of(self, pool: PoolId, spec: PoolSpec) -> str:
        """Return what a pool of such a ``spec`` shares with others of its network."""
        return overlap_text(pool, self._caches.records.overlaps.others_of(pool, spec))

    def spec_of(self, pool: PoolId) -> PoolSpec:
        """Return what a pool says, as it is stored; nothing is in it where there is no such pool."""
        return self._caches.records.of(pool).book.spec if pool in self._caches.objects.pools else PoolSpec()

    def is_open_to(self, pool: PoolId, namespace: str) -> bool:
        """Return whether a pool may be claimed from a namespace."""
        return self._caches.records.is_open_to(pool, namespace)

    def addresses_for(self, claim: ClaimId) -> Iterable[Object]:
        """Return the IPAddress objects that name a claim."""
        return self._caches.objects.addresses_of_kind(kind_named(claim)).by_index("claim", "/".join(claim.key))

    def claim(self, id: ClaimId) -> Object | None:
        """Return a claim, or nothing."""
        return self._caches.objects.claim(id)

    def claim_of_uid(self, uid: str) -> Object | None:
        """Return the claim of a uid, or nothing."""
        return self._caches.objects.claim_of_uid(uid)


async def _run_part(run: Callable[[], Awaitable[None]]) -> None:
    """Run a part until cancelled, also where another controller is found while it writes."""
    while True:
        try:
            await run()
        except OtherController as error:
            LOG.info("a write is left out: %s", error)
        await asyncio.sleep(RETRY_S)


def _unforeseen(error: Exception) -> bool:
    """Return whether an error has a place in the log worth reading: an answer of the server says all by itself."""
    return not isinstance(error, ApiError | ApiUnreachable | NotLeading)
