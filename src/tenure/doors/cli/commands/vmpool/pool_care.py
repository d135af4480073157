"""``tenure vmpool verify`` and ``repair``: what is wrong with the state of a pool, and how it is put right."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.vmpool.open_vm_pool import pool_options, run_on_pool, setting_option
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.session import Session, pass_session
from tenure.integrations.vmpool.vm_pool_settings import SOURCES

if TYPE_CHECKING:
    from tenure.integrations.vmpool.pool_decisions import RepairReport
    from tenure.integrations.vmpool.state.state_repair import PoolFinding

[OUTSIDE_POOL] = [source for source in SOURCES if source.argument == "outside_pool"]


@command("verify")
@pool_options
@setting_option(OUTSIDE_POOL)
@click.pass_context
@pass_session
def verify(session: Session, context: click.Context, **said: Any) -> None:
    """Compare the state with the pool, and report what a repair would put right; exit code 1 if there is something.

    Nothing is changed.

    For example:
      tenure vmpool verify
    """
    findings = run_on_pool(said, lambda pool: pool.verify())
    found = [finding_document(each) for each in findings]
    text = "\n".join(each.message for each in findings) or "the state is consistent"
    answer(session, {"ok": not found, "findings": found}, text)
    if found:
        context.exit(FINDINGS)


@command("repair")
@click.option(
    "--replace-unreadable",
    is_flag=True,
    help="Where state or notes cannot be read: copy them to another ConfigMap. Without a state nothing is allocated; "
    "without notes allocations stay.",
)
@pool_options
@setting_option(OUTSIDE_POOL)
@pass_session
def repair(session: Session, replace_unreadable: bool, **said: Any) -> None:
    """Put the state right, and report what was changed and why; one that is right is not written.

    For example:
      tenure vmpool repair
      tenure vmpool repair --outside-pool drop
    """
    report = run_on_pool(said, lambda pool: pool.repair(replace_unreadable=replace_unreadable))
    document = {
        "is_written": report.is_written,
        "findings": [finding_document(each) for each in report.findings],
        "unfinished": report.unfinished,
        "copy": report.copy or None,
        "replaced": list(report.replaced),
        "in_use": report.in_use,
    }
    answer(session, document, "\n".join(_repair_lines(report)))


def finding_document(finding: "PoolFinding") -> dict[str, Any]:
    """Write what is wrong with a state."""
    return {
        "kind": str(finding.kind),
        "ip": finding.ip,
        "allocation_id": finding.allocation_id or None,
        "message": finding.message,
        "is_change": finding.is_change,
    }


NEW_NOTES = "history, failed cleanups and boots of nodes are noted anew"


def _copy_place(copy: str) -> str:
    return copy if " " in copy else f"the ConfigMap {copy}"


def _repair_lines(report: "RepairReport") -> Iterable[str]:
    changes = 0
    for each in report.findings:
        changes += each.is_change
        yield each.message
    if report.unfinished:
        yield f"removed what was left of {counted({'writes': report.unfinished})} of killed processes"
    for part in report.replaced:
        yield f"the {part} could not be read; a copy is in {_copy_place(report.copy)}"
    if "state" in report.replaced and not report.in_use:
        yield "nothing is allocated now"
    elif report.replaced:
        begun = f"{NEW_NOTES}; " if "notes" in report.replaced else ""
        yield f"{begun}kept as they are: {counted({'allocations': report.in_use}) or 'no allocations'}"
    elif report.is_written:
        yield f"repaired: {counted({'changes': changes}) or 'the notes'}"
    else:
        yield "nothing to repair"
