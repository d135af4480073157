"""``tenure vmpool allocate``, ``deallocate``, ``get``, ``list`` and ``status``: VMs of pods."""

from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.vmpool.open_vm_pool import loaded, pool_options, run_on_pools
from tenure.doors.cli.commands.vmpool.seconds_option import seconds_from_zero
from tenure.doors.cli.framework.click_base import command, with_options
from tenure.doors.cli.framework.exit_codes import warn
from tenure.doors.cli.output.json_documents import time_text
from tenure.doors.cli.output.print_answer import answer, fields, table
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid, NotFound

if TYPE_CHECKING:
    from tenure.integrations.vmpool.lists.async_vm_pool_list import AsyncVMPoolList, PooledVM
    from tenure.integrations.vmpool.state.pool_state import VMAllocation
    from tenure.integrations.vmpool.vm_pool_status import VMPoolStatus

COLUMNS = {
    "ID": "allocation_id",
    "IP": "ip",
    "NODE": "node_name",
    "POD": "pod_name",
    "NAMESPACE": "pod_namespace",
    "SINCE": "allocated_at",
}
POOL_COLUMN = {"POOL": "pool"}
"""Shown where there are several."""

which_options = with_options(
    click.argument("id", required=False),
    click.option("--ip", metavar="ADDRESS", help="The VM by its address, instead of ID."),
)


@command("allocate")
@click.argument("id")
@click.option("--pod-name", metavar="NAME", default="", help="The pod that the VM is for.")
@click.option("--pod-namespace", metavar="NAME", default="", help="The pod's namespace.")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=seconds_from_zero,
    default=0.0,
    help="Wait so long for a VM if none is free.",
)
@click.option(
    "--probe-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Give only a VM that answers on this port [default: none is asked].",
)
@click.option("--try-next", is_flag=True, help="With --probe-port: try another VM where one does not answer.")
@pool_options
@pass_session
def allocate(
    session: Session,
    id: str,
    pod_name: str,
    pod_namespace: str,
    wait: float,
    probe_port: int | None,
    try_next: bool,
    **said: Any,
) -> None:
    """Give an id a VM; an id that has one gets the same again.

    Of several pools the first that has a VM gives it; an id is asked for with the same list each time.

    For example:
      tenure vmpool allocate nginx-3f1c9d2e --pod-name nginx --pod-namespace default
      tenure vmpool allocate nginx-3f1c9d2e --pool gpu=192.0.2.10-192.0.2.19 --pool spare=192.0.2.30,192.0.2.31
    """
    probe = None if probe_port is None else loaded("machines.vm_port").ReadinessProbe(probe_port, tries_next=try_next)
    pool, given = run_on_pools(
        said, lambda pools: pools.allocate(id, pod_name, pod_namespace, wait_s=wait, probe=probe)
    )  # fmt: skip
    text = f"{given.ip} is allocated to {given.allocation_id} on {given.node_name}"
    answer(session, allocation_document(given, pool), text)


@command("deallocate")
@which_options
@pool_options
@pass_session
def deallocate(session: Session, id: str | None, ip: str | None, **said: Any) -> None:
    """Take the VM of an id back; it is no error if there is none.

    For example:
      tenure vmpool deallocate nginx-3f1c9d2e
      tenure vmpool deallocate --ip 192.0.2.13
    """
    named = _one_of(id, ip)
    is_id = id is not None
    released = run_on_pools(said, lambda pools: pools.deallocate(named) if is_id else pools.deallocate_ip(named))
    answer(session, {"released": released}, f"released {named}" if released else f"{named} is not allocated")


@command("get")
@which_options
@pool_options
@pass_session
def get(session: Session, id: str | None, ip: str | None, **said: Any) -> None:
    """Show the VM that an id has, or the id that has a VM.

    For example:
      tenure vmpool get nginx-3f1c9d2e
      tenure vmpool get --ip 192.0.2.13
    """
    named = _one_of(id, ip)
    found = run_on_pools(said, lambda pools: pools.get(named) if id is not None else pools.find_ip(named))
    if found is None:
        raise NotFound("VM allocation", named)
    document = allocation_document(found.allocation, found.pool)
    answer(session, document, fields({heading.lower(): document[key] for heading, key in COLUMNS.items()}))


@command("list")
@pool_options
@pass_session
def list_allocations(session: Session, **said: Any) -> None:
    """List the VMs that are allocated.

    For example:
      tenure vmpool list
    """
    found, names = run_on_pools(said, _list)
    documents = [allocation_document(each.allocation, each.pool) for each in found]
    table(session, documents, COLUMNS if len(names) == 1 else COLUMNS | POOL_COLUMN, nothing="no VM is allocated")


async def _list(pools: "AsyncVMPoolList") -> "tuple[list[PooledVM], list[str]]":
    return await pools.list(), list(pools.pools)


@command("status")
@pool_options
@pass_session
def status(session: Session, **said: Any) -> None:
    """Show how full the pool is, and what stands in its way; nothing is created or changed.

    For example:
      tenure vmpool status
    """
    found = run_on_pools(said, _status)
    documents = [status_document(each, place) for place, each in found.items()]
    for each in found.values():
        warn(session, each.warnings)
    text = "\n\n".join(_status_text(each, document) for each, document in zip(found.values(), documents, strict=True))
    answer(session, documents[0] if len(documents) == 1 else documents, text)


def _status_text(found: "VMPoolStatus", document: dict[str, Any]) -> str:
    stored = f"version {found.version}, {found.size_bytes:,} of {found.largest_bytes:,} bytes"
    if found.mode != "configmap":
        stored = "there"
    shown = {
        "pool": document["pool"],
        "mode": found.mode,
        "total": found.total,
        "available": found.available,
        "in use": found.in_use,
        "configured": found.pool_size,
        "draining": list(found.draining),
        "cleanup failed": list(found.cleanup_failed),
        "state": stored if found.is_there else "not there yet: the first write creates it",
        "last updated": document["last_updated"],
    }
    return fields(shown)


async def _status(pools: "AsyncVMPoolList") -> "dict[str, VMPoolStatus]":
    places = {name: f"{pool.settings.namespace}/{name}" for name, pool in pools.pools.items()}
    return {places[name]: each for name, each in (await pools.status()).items()}


def status_document(found: "VMPoolStatus", place: str) -> dict[str, Any]:
    """Write how a pool stands."""
    failed = {
        ip: {"allocation_id": each.allocation_id, "cause": each.cause, "at": time_text(each.at), "tries": each.tries}
        for ip, each in found.cleanup_failed.items()
    }
    return {
        "pool": place,
        "mode": found.mode,
        "total": found.total,
        "available": found.available,
        "in_use": found.in_use,
        "pool_size": found.pool_size,
        "list_generation": found.list_generation,
        "draining": list(found.draining),
        "cleanup_failed": failed,
        "is_there": found.is_there,
        "version": found.version,
        "last_updated": time_text(found.last_updated),
        "size_bytes": found.size_bytes,
        "largest_bytes": found.largest_bytes,
        "warnings": list(found.warnings),
    }


def allocation_document(allocation: "VMAllocation", pool: str) -> dict[str, Any]:
    """Write an allocation of a pool."""
    return {
        "pool": pool,
        "allocation_id": allocation.allocation_id,
        "ip": allocation.ip,
        "node_name": allocation.node_name,
        "pod_name": allocation.pod_name,
        "pod_namespace": allocation.pod_namespace,
        "allocated_at": time_text(allocation.allocated_at),
    }


def _one_of(id: str | None, ip: str | None) -> str:
    """Return what names the VM; raise ``Invalid`` unless it is one thing."""
    if id is not None and ip is not None:
        raise Invalid("--ip: it stands in place of ID")
    if id is None and ip is None:
        raise Invalid("ID or --ip: which VM is meant?")
    return id if id is not None else str(ip)
