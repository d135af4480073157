"""``tenure cluster``: the master's address, which is kept away from instances as the nodes' are."""

import click

from tenure.doors.cli.framework.click_base import noun
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session

NONE = "none"
"""Takes the address away."""


@noun("cluster")
def cluster() -> None:
    """Say and show what is so of the whole cluster.

    For example:
      tenure cluster info
    """


@cluster.command("info")
@pass_session
def info(session: Session) -> None:
    """Show the master's address.

    For example:
      tenure cluster info
    """
    from tenure.integrations.ganeti.cluster import Cluster

    master = session.run(lambda ledger: Cluster(ledger).master())
    answer(session, {"master_ip": master.ip}, _text(master.ip))


@cluster.command("modify")
@click.option("--master-ip", metavar="ADDRESS", required=True, help="The address at which the master answers; or none.")
@click.option(
    "--no-conflicts-check",
    "check",
    flag_value=False,
    default=True,
    help="Do not reserve it in the networks that have it.",
)
@pass_session
def modify(session: Session, master_ip: str, check: bool) -> None:
    """Say at which address the master answers; it is reserved in every network that has it, now and later.

    For example:
      tenure cluster modify --master-ip 203.0.113.70
    """
    from tenure.integrations.ganeti.cluster_edits import ClusterEdits

    wanted = None if master_ip.lower() == NONE else master_ip
    changed, master = session.run(lambda ledger: ClusterEdits(ledger).set_master(wanted, check=check))
    head = "" if changed else "nothing to change: "
    answer(session, {"master_ip": master.ip, "changed": changed}, head + _text(master.ip))


def _text(address: str | None) -> str:
    return "the master has no address" if address is None else f"the master answers at {address}"
