"""``tenure vmpool move``: keeps a pool in another mode from now on, while it is in use."""

from typing import Any

import click

from tenure.doors.cli.commands.vmpool.open_vm_pool import pool_options, run_on_pool
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.session import Session, pass_session
from tenure.integrations.vmpool.vm_pool_settings import MODES


@command("move")
@click.option("--to", required=True, type=click.Choice(MODES), help="The mode in which the pool is to be kept.")
@pool_options
@pass_session
def move(session: Session, to: str, **said: Any) -> None:
    """Keep a pool in another mode from now on; nodes go on meanwhile, and follow by themselves.

    An interrupted move goes on when the command is called again; --to with the former mode takes it back. Go managers
    find no free address in the ConfigMap that the pool has left, not even after their repair.

    For example:
      tenure vmpool move --to per-ip
    """
    report = run_on_pool(said, lambda pool: pool.move(to))
    document = {
        "from": report.moved_from,
        "to": report.moved_to,
        "allocations": report.allocations,
        "is_moved": report.is_moved,
    }
    count = counted({"allocations": report.allocations}) or "no allocation"
    text = f"moved from {report.moved_from} to {report.moved_to}, with {count}"
    answer(session, document, text if report.is_moved else f"the pool is in mode {report.moved_to} already")
