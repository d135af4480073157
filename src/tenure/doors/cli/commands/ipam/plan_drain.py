"""``tenure ipam drain``: who still has addresses of a range that is to be empty, and what is left to do."""

from collections.abc import Iterator
from typing import Any

import click

from tenure.doors.cli.commands.ipam.open_cluster import ReachedCluster, cluster_options, run_on_cluster
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer, counted, table_lines
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.ranges import parse_range

HOLDERS = {"address": "address", "claim": "claim", "owner": "owner", "ipaddress": "name"}


@command("drain")
@click.argument("pool")
@click.argument("ranges", nargs=-1, metavar="[RANGE]...")
@cluster_options
@pass_session
def drain(session: Session, pool: str, ranges: tuple[str, ...], **place: Any) -> None:
    """Plan the drain of a range of an IPPool: which claims still have addresses there, for which machines.

    Without a range, it is what the pool says in spec.tenure.drain. Nothing is changed: set that field, so that no more
    addresses are picked there, then replace the machines of the claims; a claim that is made anew gets an address
    elsewhere. When nobody is left the pool has the condition Drained, and the range can be taken out of spec.pools.

    For example:
      tenure ipam drain machines
      tenure ipam drain machines 192.0.2.16/30
    """
    wanted = [parse_range(each) for each in ranges]

    async def ask(cluster: ReachedCluster) -> dict[str, Any]:
        from tenure.integrations.kubernetes.metal3.free_addresses import drain_document
        from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
        from tenure.integrations.kubernetes.metal3.read_pools import read_pools

        key = PoolId(cluster.namespace, pool)
        read = await read_pools(cluster.client, cluster.namespace, is_asked=lambda each, spec: each == key)
        read.pool(key)
        return drain_document(read, key, wanted)

    document = run_on_cluster(**place, work=ask)
    answer(session, document, "\n".join(_lines(document)))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    if not document["drain"]:
        yield f"IPPool {document['pool']} drains nothing; name a range, or set spec.tenure.drain"
        return
    where = ", ".join(document["drain"])
    if not document["is_set"]:
        yield f"not set yet: addresses of {where} are still picked; add it to spec.tenure.drain"
    if not document["left"]:
        ready = "it can be taken out of spec.pools" if document["is_set"] else "nobody has to move"
        yield f"nobody holds an address of {where}: {ready}"
        return
    yield from table_lines(document["holders"], HOLDERS)
    free = counted({"addresses": document["free_elsewhere"]}) or "no address"
    room = "" if document["has_room"] else ": too few for all; enlarge the pool first"
    yield f"left: {counted({'addresses': document['left']})}; free elsewhere in the pool: {free}{room}"
