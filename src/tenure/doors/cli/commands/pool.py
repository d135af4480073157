"""``tenure pool``: the ranges that addresses are picked from, and their map."""

from typing import Any

import click

from tenure.doors.cli.commands.subnet import chosen_networks, edited_plan
from tenure.doors.cli.framework.click_base import noun, with_options
from tenure.doors.cli.framework.complete_names import complete_pool
from tenure.doors.cli.framework.exit_codes import unless_nothing, warn_beside_list
from tenure.doors.cli.framework.shared_options import (
    changed,
    changed_labels,
    description_option,
    labels_option,
    network_argument,
    network_choice,
    no_check_option,
    policy_option,
    pool_argument,
    range_argument,
    relabel_options,
    undo_option,
    without_option,
)
from tenure.doors.cli.output.json_documents import pool_entry
from tenure.doors.cli.output.network_chart import print_map
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.plan.edits import AddPool
from tenure.kernel.plan.plan_model import Network

COLUMNS = {
    "NETWORK": "network",
    "POOL": "name",
    "RANGE": "range",
    "SUBNET": "subnet",
    "POLICY": "policy",
    "COOLING (s)": "cooling_s",
    "RANK": "rank",
    "RETIRED": "retired",
    "LABELS": "labels",
}

pool_options = with_options(
    click.option("--name", help="A name for it."),
    policy_option,
    click.option(
        "--cooling",
        "cooling_s",
        type=int,
        metavar="SECONDS",
        help="How long a released address rests; 0 in a new pool.",
    ),
    click.option("--rank", type=int, metavar="N", help="Pools of a lower one are picked from first; 0 in a new pool."),
    labels_option,
    description_option,
)


@noun("pool")
def pool() -> None:
    """Add, change, list, draw and remove the pools of a network.

    For example:
      tenure pool list net1
    """


@pool.command("add")
@network_argument
@range_argument
@pool_options
@no_check_option
@pass_session
def add(session: Session, network: str, range: str, check: bool, **said: Any) -> None:
    """Add a range to pick from; a name that exists gains a range.

    A range is one address, first-last, a block, or start+size. A range of a pool that exists has its policy, cooling
    and rank unless said otherwise; the policy is one for all.

    For example:
      tenure pool add net1 192.0.2.128/26 --name front --cooling 300
      tenure pool add net1 192.0.2.200+10 --policy random
    """
    # The option is shared with modify, where None leaves the description as it is.
    said["description"] = said["description"] or ""
    edit = AddPool(network=network, range=range, **said)
    made = session.run(lambda ledger: edited_plan(ledger, edit, check=check))
    _told(session, made, f"added {range} to the pools of network {network}")


@pool.command("modify")
@network_argument
@pool_argument
@pool_options
@relabel_options
@without_option("name", "labels", "description")
@pass_session
def modify(session: Session, network: str, pool: str, without: tuple[str, ...], **said: Any) -> None:
    """Change a pool, found by its name or its exact range.

    For example:
      tenure pool modify net1 pool1 --policy random --cooling 60
    """
    wanted = changed_labels(said, without)
    empty: dict[str, Any] = {"name": None, "description": ""}
    wanted |= {field: changed(value, field, without, empty.get(field)) for field, value in said.items()}
    made = session.run(lambda ledger: ledger.modify_pool(network, pool, **wanted))
    _told(session, made, f"changed pool {pool} of network {network}")


@pool.command("retire")
@network_argument
@pool_argument
@undo_option
@pass_session
def retire(session: Session, network: str, pool: str, undo: bool) -> None:
    """Stop picking from a pool; what is held stays and is released as usual.

    For example:
      tenure pool retire net1 pool1
    """
    made = session.run(lambda ledger: ledger.modify_pool(network, pool, retired=not undo))
    _told(session, made, f"{'back in use:' if undo else 'retired'} pool {pool} of network {network}")


@pool.command("remove")
@network_argument
@pool_argument
@pass_session
def remove(session: Session, network: str, pool: str) -> None:
    """Remove a pool by name, or a range from all pools it touches; holdings stay.

    For example:
      tenure pool remove net1 192.0.2.60-192.0.2.100
    """
    made = session.run(lambda ledger: ledger.remove_pool(network, pool))
    _told(session, made, f"removed {pool} from the pools of network {network}")


@pool.command("list")
@network_choice
@pass_session
def list_pools(session: Session, network: str | None) -> None:
    """List the pools of a network, or of all, in the order they are picked from.

    For example:
      tenure pool list net1
    """
    networks = session.run(lambda ledger: chosen_networks(ledger, network))
    documents = [entry for each in networks for entry in _entries(each)]
    table(session, documents, COLUMNS, nothing="no pools; `tenure pool add NETWORK RANGE` makes one")


@pool.command("map")
@network_argument
@click.argument("pool", required=False, shell_complete=complete_pool)
@click.option("--ascii/--unicode", "ascii_only", default=None, help="Which signs to draw with; else by the locale.")
@pass_session
def map_pool(session: Session, network: str, pool: str | None, ascii_only: bool | None) -> None:
    """Draw a map of a network's subnets, or of one pool: held, pending, cooling, reserved, free.

    One sign is one address where there are few, and a block of them, shaded by how much is taken, where there are
    many. Where all that is taken hides in one sign, a second picture looks closer.

    For example:
      tenure pool map net1 pool1 --ascii
    """
    print_map(session, network, pool, ascii_only)


def _entries(network: Network) -> list[dict[str, Any]]:
    return [pool_entry(network.name, subnet, pool) for subnet, pool in network.pools()]


def _told(session: Session, network: Network, text: str) -> None:
    warn_beside_list(session, network.warnings)
    answer(session, _entries(network), unless_nothing(text, network))
