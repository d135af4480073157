"""``tenure ipam import`` and ``export``: addresses of a pool that a ledger is to hold from now on, or no more."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.ipam.open_cluster import ReachedCluster, cluster_options, run_on_cluster
from tenure.doors.cli.framework.click_base import command, with_options
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.session import Session, pass_session, refuse_missing

if TYPE_CHECKING:
    from tenure.integrations.kubernetes.metal3.ledger.moving_in import MovePlan
    from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
    from tenure.integrations.kubernetes.metal3.read_pools import ReadPools
    from tenure.service.ledger.async_ledger import AsyncLedger

    MakePlan = Callable[[ReadPools, PoolId, AsyncLedger, str, str], Awaitable[MovePlan]]

NAMED = 10
"""How many addresses a dry run names to people."""

move_options = with_options(
    click.argument("pool"),
    click.option("--network", required=True, metavar="NAME", help="The network in the ledger."),
    click.option("--realm", required=True, metavar="NAME", help="The name of this cluster in the ledger."),
    click.option("--dry-run", is_flag=True, help="Only print what would be written, and what is in the way."),
    cluster_options,
)


@command("import")
@move_options
@click.pass_context
@pass_session
def import_pool(session: Session, call: click.Context, **said: Any) -> None:
    """Enter the addresses of an IPPool into a network of the ledger, each for its claim.

    Where anything is in the way (another owner has an address, or it lies in no subnet), all of it is printed and
    nothing is written. Then bind the pool: spec.tenure.ledger with the same network and realm. The ledger is the one
    that --server or --store names.

    For example:
      tenure ipam import machines --network machines --realm east --dry-run
    """
    from tenure.integrations.kubernetes.metal3.ledger.moving_in import plan_import

    _move(session, call, plan_import, "entered", **said)


@command("export")
@move_options
@click.pass_context
@pass_session
def export_pool(session: Session, call: click.Context, **said: Any) -> None:
    """Release the addresses of an IPPool in the ledger; its claims keep them, by the objects in the cluster.

    Reserve the range in the ledger first, or take it out of the network: afterwards only this cluster knows who has
    the addresses. What the ledger would give to others is in the way. --dry-run, while the pool is still bound, prints
    what others hold of its range; drain that, or the pool gives it a second time. Then remove spec.tenure.ledger from
    the pool, and run this.

    For example:
      tenure ipam export machines --network machines --realm east --dry-run
    """
    from tenure.integrations.kubernetes.metal3.ledger.moving_in import plan_export

    _move(session, call, plan_export, "released", **said)


def _move(
    session: Session, call: click.Context, make_plan: "MakePlan", done: str, pool: str, network: str, realm: str,
    dry_run: bool, **place: Any,
) -> None:  # fmt: skip
    refuse_missing(session.url)

    async def move(cluster: ReachedCluster) -> "MovePlan":
        from tenure.integrations.kubernetes.metal3.ledger.moving_in import run_plan
        from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
        from tenure.integrations.kubernetes.metal3.read_pools import read_pools

        read = await read_pools(cluster.client, cluster.namespace)
        async with await session.open() as ledger:
            plan = await make_plan(read, PoolId(cluster.namespace, pool), ledger, network, realm)
            if not dry_run and not plan.collisions:
                await run_plan(ledger, plan)
            return plan

    plan = run_on_cluster(**place, work=move)
    written = not dry_run and not plan.collisions
    answer(session, _document(plan, written), "\n".join(_lines(plan, done, written)))
    if plan.collisions:
        call.exit(FINDINGS)


def _document(plan: "MovePlan", written: bool) -> dict[str, Any]:
    return {
        "network": plan.network,
        "realm": plan.realm,
        "ok": not plan.collisions,
        "written": written,
        "addresses": [each._asdict() for each in plan.moved],
        "unchanged": [each._asdict() for each in plan.done],
        "collisions": [each._asdict() for each in plan.collisions],
    }


def _lines(plan: "MovePlan", done: str, written: bool) -> Iterator[str]:
    for each in plan.collisions:
        yield f"in the way: {each.address} of {each.owner}: {each.reason}"
    if not written:
        for moved in plan.moved[:NAMED]:
            yield f"  {moved.address} {moved.owner}"
        if len(plan.moved) > NAMED:
            yield f"  … and {len(plan.moved) - NAMED} more"
    if plan.done:
        yield f"there already: {counted({'addresses': len(plan.done)})}"
    count = counted({"addresses": len(plan.moved)}) or "no address"
    verb = (
        f"{done}:"
        if written
        else f"nothing can be written; {done} would be:"
        if plan.collisions
        else f"{done} would be:"
    )
    yield f"{verb} {count}"
