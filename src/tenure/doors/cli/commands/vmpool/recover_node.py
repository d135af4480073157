"""``tenure vmpool recover``: give back what a dead node had, after its VMs were cleaned up."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.vmpool.cleanup_options import cleanup_options, read_cleanup
from tenure.doors.cli.commands.vmpool.open_vm_pool import pool_options, run_on_pool, setting_option
from tenure.doors.cli.commands.vmpool.pool_care import OUTSIDE_POOL, finding_document
from tenure.doors.cli.commands.vmpool.vm_allocations import allocation_document
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid

if TYPE_CHECKING:
    from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
    from tenure.integrations.vmpool.node_recovery import RecoveryReport


@command("recover")
@cleanup_options
@click.option("--take-over", is_flag=True, help="This machine has taken the place of another one of its name.")
@pool_options
@setting_option(OUTSIDE_POOL)
@click.pass_context
@pass_session
def recover(session: Session, context: click.Context, mode: str | None, take_over: bool, **said: Any) -> None:
    """Release what a dead node had, after its VMs were cleaned up, and put the state right; or only the latter.

    With a cleanup, all VMs of the node are dead and may be rebooted; without, allocations are kept, unless `--mode
    release` says that their VMs are dead. `--node-name` names any node, without it this one is meant. A VM whose
    cleanup fails stays allocated, and the exit code is 1.

    For example:
      tenure vmpool recover --node-name worker-1
      tenure vmpool recover --node-name worker-1 --mode release
    """
    if said["node_name"] is not None and not said["node_name"].strip():
        raise Invalid("--node-name: it names no node, as a variable that was not set; without it, this node is meant")
    how: Any = {
        "cleanup": read_cleanup(said),
        "mode": mode,
        "takes_over": take_over,
        "node_name": said["node_name"] or "",
    }

    async def work(pool: "AsyncVMPool") -> "tuple[RecoveryReport, str]":
        return await pool.recover(**how), pool.settings.config_map_name

    report, pool = run_on_pool(said, work)
    answer(session, recovery_document(report, pool), "\n".join(_recovery_lines(report)))
    if report.failed:
        context.exit(FINDINGS)


def recovery_document(report: "RecoveryReport", pool: str) -> dict[str, Any]:
    """Write what a recovery did."""
    return {
        "node_name": report.node_name,
        "mode": report.mode,
        **{
            name: [allocation_document(each, pool) for each in getattr(report, name)]
            for name in ("released", "dropped", "changed", "kept")
        },
        "failed": [{**allocation_document(each.allocation, pool), "cause": each.cause} for each in report.failed],
        "findings": [finding_document(each) for each in report.repairs],
        "was_created": report.was_created,
        "is_written": report.is_written,
    }


def _recovery_lines(report: "RecoveryReport") -> Iterator[str]:
    for name in ("released", "dropped", "changed", "kept"):
        yield from (f"{name} {each.ip} of {each.allocation_id}" for each in getattr(report, name))
    for each in report.failed:
        yield f"NOT released {each.allocation.ip} of {each.allocation.allocation_id}: {each.cause}"
    yield from (each.message for each in report.repairs)
    if report.was_created:
        yield "the state was created"
    yield f"node {report.node_name} is recovered (mode {report.mode})"
