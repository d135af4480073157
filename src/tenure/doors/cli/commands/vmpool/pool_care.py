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
    help="Where state or notes cannot be read: copy them to another ConfigMap, and begin with nothing allocated.",
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
        "copy": report.copy or None,
    }
    answer(session, document, "\n".join(_repair_lines(report.findings, report.is_written, report.copy)))


def finding_document(finding: "PoolFinding") -> dict[str, Any]:
    """Write what is wrong with a state."""
    return {
        "kind": str(finding.kind),
        "ip": finding.ip,
        "allocation_id": finding.allocation_id or None,
        "message": finding.message,
        "is_change": finding.is_change,
    }


def _repair_lines(findings: "Iterable[PoolFinding]", is_written: bool, copy: str) -> Iterable[str]:
    changes = 0
    for each in findings:
        changes += each.is_change
        yield each.message
    if copy:
        yield f"what could not be read is in the ConfigMap {copy}; nothing is allocated now"
    elif is_written:
        yield f"repaired: {counted({'changes': changes})}"
    else:
        yield "nothing to repair"
