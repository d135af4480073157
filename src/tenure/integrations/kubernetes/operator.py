"""``tenure operator``: the process that runs controllers in a cluster. It starts, answers probes, leads, and stops."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import CLAIM_KINDS
from tenure.integrations.kubernetes.metal3_data.render_controller import RenderController
from tenure.integrations.kubernetes.operator_context import CannotListen, Controller, ListenOptions, OperatorContext
from tenure.integrations.kubernetes.operator_samples import runtime_samples
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime import credentials
from tenure.integrations.kubernetes.runtime.access_review import AccessReview
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.event_recorder import EventRecorder
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease
from tenure.integrations.kubernetes.runtime.process_probes import Sample, serve_probes
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter

LOG = logging.getLogger(__name__)

REVIEWS, REVIEW_S = 2, 5.0
"""So many callers of ``/metrics`` are judged at once, each for so long at most."""

MakeClient = Callable[[credentials.Loader, RuntimeMeter], ApiClient]
"""Make the client of the controllers; a test gives one whose writes fail."""
MakeController = Callable[[OperatorContext], Controller]
CONTROLLERS: dict[str, MakeController] = {
    **dict.fromkeys(CLAIM_KINDS, IpamController),
    RenderController.name: RenderController,
}
"""Every controller that ``--controllers`` may name (KD12). Claims of all kinds have one, since they share pools."""


@dataclass
class Running:
    """An operator at work."""

    context: OperatorContext
    controllers: list[Controller]
    port: int
    webhook_port: int
    """0 if no controller has webhooks."""
    part_ended: asyncio.Task[str]
    """Done as soon as a part has ended, which none does by itself; says which, and why."""


class PartEnded(Exception):
    """A part of the operator has ended, so the others must not go on as if it were there."""


def plain_client(load: credentials.Loader, meter: RuntimeMeter) -> ApiClient:
    """Make a client that does what it is asked for."""
    return ApiClient(load, meter=meter)


@contextlib.asynccontextmanager
async def started(settings: OperatorSettings, make_client: MakeClient = plain_client) -> AsyncIterator[Running]:
    """Run an operator for as long as the block; at its end the lease is given up, so that another replica follows."""
    meter = RuntimeMeter()
    load = credentials.find_credentials(settings.kubeconfig, settings.context)
    # The lease has a session of its own: whatever the controllers' requests wait for, it is renewed (KP11).
    async with (
        make_client(load, meter) as client,
        ApiClient(load, in_flight=2, meter=meter) as lease_client,
        _access_review(settings, load, meter) as review,
    ):
        lease = LeaderLease(
            lease_client, settings.own_namespace, settings.lease, settings.identity, settings.lease_times
        )
        client.fence = lease.check  # a leader that was stopped, and wakes when another leads, sends nothing more
        context = OperatorContext(settings, client, lease, EventRecorder(client, "tenure-operator", meter), meter)
        controllers = [make(context) for make in dict.fromkeys(CONTROLLERS[name] for name in settings.controllers)]
        try:
            probes, port = await serve_probes(
                settings.host,
                settings.port,
                lambda: _missing(controllers),
                lambda: _samples(context, controllers),
                review,
            )
        except (OSError, UnicodeError) as error:
            raise CannotListen(ListenOptions("--host", "--port"), settings.host, settings.port, error) from error
        try:
            # Before the work begins: a port that is taken ends the start, and is named.
            ports = [await each.listen() for each in controllers]
            async with _at_work(context, controllers) as part_ended:
                yield Running(context, controllers, port, max(ports, default=0), part_ended)
        finally:
            for each in controllers:
                await each.close()
            await probes.cleanup()


@contextlib.asynccontextmanager
async def _access_review(
    settings: OperatorSettings, load: credentials.Loader, meter: RuntimeMeter
) -> AsyncIterator[AccessReview | None]:
    """Give what judges callers of ``/metrics``, where that is asked for.

    It has a session of its own: on that of the controllers only a leader writes, and the lease waits for no caller.
    """
    if not settings.metrics_auth:
        yield None
        return
    async with ApiClient(load, in_flight=REVIEWS, timeout_s=REVIEW_S, meter=meter) as client:
        yield AccessReview(client)


async def run_until(settings: OperatorSettings, stopped: asyncio.Event, ready: Callable[[Running], None]) -> None:
    """Run an operator until ``stopped`` is set; raise ``PartEnded`` if a part ends before that."""
    async with started(settings) as running:
        if not running.controllers:
            LOG.warning("no controllers are chosen (--controllers): nothing is done but answering probes")
        ready(running)
        stop = asyncio.create_task(stopped.wait())
        await asyncio.wait({stop, running.part_ended}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not stopped.is_set():
            raise PartEnded(running.part_ended.result())
        LOG.info("stopping")


@contextlib.asynccontextmanager
async def _at_work(context: OperatorContext, controllers: list[Controller]) -> AsyncIterator[asyncio.Task[str]]:
    tasks = [asyncio.create_task(each.follow(), name=f"{each.name}: follow") for each in controllers]
    tasks += [
        asyncio.create_task(context.events.run(), name="events"),
        asyncio.create_task(context.lease.run(lambda: _lead(controllers)), name="lease"),
    ]
    watch = asyncio.create_task(_first_end(tasks))
    try:
        yield watch
    finally:
        for task in (watch, *tasks):
            task.cancel()
        await asyncio.gather(watch, *tasks, return_exceptions=True)


async def _first_end(tasks: list[asyncio.Task[None]]) -> str:
    """Wait for the first part that ends, and return which it is, and why."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    task = next(iter(done))
    error = task.exception()
    # The log has the place; a caller prints the reason.
    LOG.critical("a part of the operator has ended", exc_info=error)
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{task.get_name()} ended: {error!r}"


async def _lead(controllers: list[Controller]) -> None:
    """Let all controllers lead; the first that fails ends the others, so that none leads on unattended."""
    if not controllers:
        # Work that returns would end the lease, and with it the operator (``WorkEnded``).
        await asyncio.Event().wait()
    async with asyncio.TaskGroup() as group:
        for each in controllers:
            group.create_task(_lead_part(each), name=f"{each.name}: lead")


async def _lead_part(controller: Controller) -> None:
    await controller.lead()
    raise PartEnded(f"{controller.name}: lead returned")


def _missing(controllers: list[Controller]) -> Mapping[str, str]:
    return {name: reason for each in controllers for name, reason in each.not_ready().items()}


def _samples(context: OperatorContext, controllers: list[Controller]) -> Iterator[Sample]:
    yield from runtime_samples(context.meter, context.lease.leads)
    for each in controllers:
        yield from each.samples()
