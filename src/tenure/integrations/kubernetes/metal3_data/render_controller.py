"""``render``: the controller that makes metadata and network data of machines (KD12: only where it is named)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import WATCH_FILTER, field, labels_of, text
from tenure.integrations.kubernetes.metal3.other_writers import OtherManager, OtherWriters
from tenure.integrations.kubernetes.metal3.stale_marks import StaleMarks
from tenure.integrations.kubernetes.metal3_data.claim_making import ClaimMaking
from tenure.integrations.kubernetes.metal3_data.data_caches import DataCaches, Group, WorkKey
from tenure.integrations.kubernetes.metal3_data.data_kinds import DATA, DATA_CLAIM, TEMPLATE
from tenure.integrations.kubernetes.metal3_data.data_pass import DataPasses
from tenure.integrations.kubernetes.metal3_data.data_writes import DataWrites
from tenure.integrations.kubernetes.metal3_data.left_behind import LeftBehind
from tenure.integrations.kubernetes.metal3_data.template.machine_reading import owner_named
from tenure.integrations.kubernetes.metal3_data.template.render_data import RenderRules
from tenure.integrations.kubernetes.metal3_data.template_pass import TemplatePasses
from tenure.integrations.kubernetes.operator_context import OperatorContext
from tenure.integrations.kubernetes.operator_samples import queue_samples
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.leader_lease import NotLeading
from tenure.integrations.kubernetes.runtime.process_probes import Sample
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of
from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue

LOG = logging.getLogger(__name__)

WORKERS = 16
"""Templates and machines that are looked after at once."""
LONGEST_DELAY_S = 10.0
RETRY_S = 1.0

CAPM3 = OtherManager(
    "CAPM3's manager",
    frozenset({"cluster-api-provider-metal3-manager", "manager", "cluster-api-provider-metal3"}),
    "controller-leader-election-capm3",
    ("capm3-system",),
)
"""The manager that renders machines where this controller does not."""


class RenderController:
    """Numbers and renders machines on the leader; follows the server on every replica."""

    name = "render"

    def __init__(self, context: OperatorContext) -> None:
        settings = context.settings
        self._settings = settings
        self._lease = context.lease
        self.queue: WorkQueue[WorkKey] = WorkQueue(longest_delay_s=LONGEST_DELAY_S)
        self.caches = DataCaches(context.client, settings.namespaces, context.meter, self.queue.add, CAPM3.note_write)
        self.others = OtherWriters(context.client, context.events, CAPM3)
        own = {TEMPLATE: self.caches.templates, DATA_CLAIM: self.caches.data_claims, DATA: self.caches.datas}
        for kind, objects in own.items():
            self.others.watch(kind, objects)
        writes = DataWrites(context.client, self._check, context.events.terminating)
        claims = ClaimMaking(self.caches, writes, by_host=settings.claims_by_host)
        left = LeftBehind(self.caches, writes, self._serves, settings.orphan_grace_s, self.queue.add_after)
        self.templates = TemplatePasses(self.caches, writes, left, self._serves)
        rules = RenderRules(dns_in_meta_data=not settings.render_like_capm3)
        self.datas = DataPasses(self.caches, writes, claims, left, self._serves, rules, self.queue.add_after)
        self.stale_marks = StaleMarks(
            context.client, self._marked_groups, lambda _: self._check(), self._is_rendered_by, settings.stale_mark_s
        )

    async def listen(self) -> int:
        """Open nothing: nobody asks this controller anything."""
        return 0

    async def close(self) -> None:
        """Close nothing."""

    def not_ready(self) -> Mapping[str, str]:
        """Return what the caches lack, and which other controller is at work."""
        others = {"another controller of machines' data": self.others.reason} if self.others.reason else {}
        return self.caches.not_ready() | others

    def samples(self) -> Iterator[Sample]:
        """Return the numbers of this part."""
        if not self._lease.leads:
            return
        yield from queue_samples(self.name, self.queue)
        counts = Counter(_state_of(data) for data in self.caches.datas)
        for state in ("ready", "failed", "waiting"):
            help = "Metal3Data objects by what became of them."
            yield Sample("tenure_operator_machine_data", help, "gauge", counts[state], {"state": state})

    async def follow(self) -> None:
        """Keep caches up to date, until cancelled."""
        await self.caches.follow()

    async def lead(self) -> None:
        """Read everything from the server itself (KP5), then look after machines until cancelled."""
        while not await self._has_compared():  # noqa: ASYNC110 - a server is asked again
            await asyncio.sleep(RETRY_S)
        self.caches.wake_all()
        await self.others.unless_found(self._work)

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.queue.work(self._settle, WORKERS, self._report))
            tasks.create_task(self._take_marks_off())

    async def _take_marks_off(self) -> None:
        """Take marks of killed moves off until cancelled, also where a write is stopped meanwhile."""
        while True:
            try:
                await self.stale_marks.run()
            except NotLeading as error:
                LOG.info("a write is left out: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _has_compared(self) -> bool:
        try:
            await self.caches.compare()
        except (ApiError, ApiUnreachable, ValueError) as error:
            LOG.warning("the caches cannot be compared with the server: %s", error)
            return False
        except Exception:
            # Another leader would meet the same object.
            LOG.exception("the caches cannot be compared with the server")
            return False
        return True

    async def _settle(self, key: WorkKey) -> None:
        await (self.templates if key.kind == TEMPLATE.kind else self.datas).settle(key.key)

    def _check(self) -> None:
        """Raise if this process must not write: it does not lead any more, or another controller is at work."""
        self._lease.check()
        self.others.check()

    def _serves(self, object: Object) -> bool:
        """Return whether the operator works in a namespace, on objects with such labels (E7)."""
        settings = self._settings
        is_in = not settings.namespaces or key_of(object)[0] in settings.namespaces
        return is_in and (not settings.watch_filter or labels_of(object).get(WATCH_FILTER) == settings.watch_filter)

    def _marked_groups(self) -> list[Group]:
        """Return the kinds whose marks are looked at: machines' claims, too, since others may be their IPAM."""
        caches = self.caches
        return [caches.templates, caches.data_claims, caches.datas, caches.ip_claims, caches.cluster_api_claims]

    def _is_rendered_by(self, object: Object) -> bool:
        """Return whether an object is of a kind that is looked after here, or a claim of a machine."""
        is_own = text(object, "apiVersion").startswith(f"{DATA.group}/")
        return self._serves(object) and (is_own or bool(owner_named(object, DATA.kind)))

    def _report(self, key: WorkKey, error: Exception, delay_s: float) -> None:
        is_unforeseen = not isinstance(error, ApiError | ApiUnreachable | NotLeading)
        LOG.warning("%s %s/%s: again in %.1f s: %s", *key, delay_s, error, exc_info=is_unforeseen)


def _state_of(data: Object) -> str:
    if field(data, "status", "ready") is True:
        return "ready"
    return "failed" if text(data, "status", "errorMessage") else "waiting"
