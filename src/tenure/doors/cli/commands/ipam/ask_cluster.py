"""``tenure ipam why``, ``free`` and ``history``: who has an address of a cluster, what is free, who had it before."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.ipam.open_cluster import ReachedCluster, cluster_options, open_ledger, run_on_cluster
from tenure.doors.cli.commands.why_history_search import TENURES
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.shared_options import address_argument
from tenure.doors.cli.output.json_documents import explanation_document, history_document, tenure_document
from tenure.doors.cli.output.print_answer import answer, fields, table
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid, NotFound, TenureError
from tenure.kernel.holdings.tenures import History
from tenure.service.read.explain import Explanation

if TYPE_CHECKING:
    from tenure.integrations.kubernetes.metal3.explain_address import AddressFinding
    from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId, PoolKind
    from tenure.integrations.kubernetes.metal3.objects.pool_spec import LedgerBinding, PoolSpec
    from tenure.integrations.kubernetes.metal3.read_pools import ReadPools

NEXT = 5
"""How many addresses are named that a claim would get next."""

everywhere_option = click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="In all namespaces.")


@command("why")
@address_argument
@everywhere_option
@cluster_options
@pass_session
def why(session: Session, address: str, everywhere: bool, **place: Any) -> None:
    """Explain an address of a cluster: which claim has it and since when, or what keeps it back, or that it is free.

    Where a pool is bound to a ledger, the ledger is asked, too: its network may be shared with others. The ledger is
    the one of the pool's Secret, or the one that --server or --store names. One that cannot be asked is named.

    Pools are IPPools and those of the in-cluster provider; those of the whole cluster belong to every namespace.

    For example:
      tenure ipam why 192.0.2.10
      tenure ipam why 192.0.2.10 --all-namespaces
    """
    position = parse_address(address)

    unasked: dict[str, str] = {}
    unread: dict[str, str] = {}

    async def ask(cluster: ReachedCluster) -> "tuple[list[AddressFinding], list[tuple[str, Explanation]]]":
        from tenure.integrations.kubernetes.metal3.explain_address import explain_address
        from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS
        from tenure.integrations.kubernetes.metal3.read_pools import read_pools

        def has_it(pool: "PoolId", spec: "PoolSpec") -> bool:
            return spec.entry_at(position) is not None

        namespace = "" if everywhere else cluster.namespace
        read = await read_pools(cluster.client, namespace, list(POOL_KINDS.values()), has_it)
        unread.update(read.unread)
        told = []
        for pool, binding in _networks(read).items():
            try:
                async with await open_ledger(session, cluster, pool.namespace, binding) as ledger:
                    told.append((binding.network, await ledger.why(format_address(position), network=binding.network)))
            except TenureError as error:
                unasked[pool.path] = str(error)
        return explain_address(read, position), told

    found, told = run_on_cluster(**place, work=ask)
    known = [(network, each) for network, each in told if each.findings]
    document = {
        "address": format_address(position),
        "pools": [{**dataclasses.asdict(each), "pool": each.pool.path, "kind": each.pool.kind} for each in found],
        "ledgers": [{"network": network, **explanation_document(each)} for network, each in known],
        "unasked": unasked,
        "unread": unread,
    }
    lines = [f"{format_address(position)}: {each.text}" for each in found]
    lines += [f"in the ledger: {each}" for _, each in known]
    lines += [f"the ledger of IPPool {pool} could not be asked: {reason}" for pool, reason in unasked.items()]
    answer(session, document, "\n".join(lines) or f"{format_address(position)}: in no pool here{_but(unread)}")


def _but(unread: dict[str, str]) -> str:
    """Return which kinds of pools may have an address all the same."""
    return f"; {', '.join(f'{kind}s' for kind in unread)} cannot be read with your rights" if unread else ""


def _networks(read: "ReadPools") -> "dict[PoolId, LedgerBinding]":
    """Return a binding for each network of a ledger that pools of a namespace are bound to, whatever their number."""
    found: dict[tuple[str, ...], tuple[PoolId, LedgerBinding]] = {}
    for key in sorted(read.pools):
        if (binding := read.spec_of(key).spec.ledger) is not None:
            found.setdefault((key.namespace, binding.secret, binding.server, binding.network), (key, binding))
    return dict(found.values())


@command("free")
@click.argument("pool")
@cluster_options
@pass_session
def free(session: Session, pool: str, **place: Any) -> None:
    """Count what is free in a pool, and name the addresses that claims would get next.

    The pool is an IPPool or one of the in-cluster provider. Where several have one name, say KIND/NAME. Of a pool of
    prefixes, prefixes are counted. It is counted from the IPAddress objects of both kinds and, where the pool is bound
    to a ledger, from what the ledger holds. A random pool names free addresses that may be given next. A pool that
    cannot be read gives none: faults say why.

    For example:
      tenure ipam free machines
      tenure ipam free ippool/machines
      tenure ipam free machines --json
    """

    async def ask(cluster: ReachedCluster) -> dict[str, Any]:
        from tenure.integrations.kubernetes.metal3.free_addresses import count_free
        from tenure.integrations.kubernetes.metal3.read_pools import read_pools

        kinds, name = _named(pool)
        read = await read_pools(cluster.client, cluster.namespace, kinds, lambda each, spec: each.name == name)
        key = read.pool_named(name)
        binding = read.spec_of(key).spec.ledger
        if binding is None:
            return await count_free(read, key, None, NEXT)
        async with await open_ledger(session, cluster, key.namespace, binding) as ledger:
            return await count_free(read, key, ledger, NEXT)

    document = run_on_cluster(**place, work=ask)
    shown = {name: value for name, value in document.items() if value != [] and (name, value) != ("kind", "IPPool")}
    answer(session, document, fields(shown))


def _named(pool: str) -> "tuple[Sequence[PoolKind], str]":
    """Return the kinds of pools that NAME or KIND/NAME may be of, and the name; kinds are written as kubectl does."""
    from tenure.integrations.kubernetes.metal3.objects.pool_kinds import POOL_KINDS

    kind, _, name = pool.rpartition("/")
    every = list(POOL_KINDS.values())
    found = [each for each in every if kind.lower() in ("", each.type.kind.lower(), each.type.plural)]
    if not found:
        raise Invalid(f"{kind} is no kind of pools: name one of {', '.join(POOL_KINDS)}", field="pool")
    return found, name


@command("history")
@address_argument
@cluster_options
@pass_session
def history(session: Session, address: str, **place: Any) -> None:
    """Tell who held an address of a cluster, from when until when: claims of all clusters, and every other owner.

    Only a ledger keeps that. A pool that has the address must be bound to one.

    For example:
      tenure ipam history 192.0.2.10
    """
    position = parse_address(address)

    async def ask(cluster: ReachedCluster) -> History:
        from tenure.integrations.kubernetes.metal3.read_pools import read_pools

        read = await read_pools(cluster.client, cluster.namespace)
        for pool, binding in _networks(read).items():
            async with await open_ledger(session, cluster, pool.namespace, binding) as ledger:
                found = await ledger.network(binding.network)
                if any(position in subnet.cidr.range for subnet in found.subnets):
                    return await ledger.history(format_address(position), network=binding.network)
        hint = "only a ledger keeps a history (spec.tenure.ledger)"
        problem = f"no IPPool of namespace {cluster.namespace} that is bound to a ledger has {address}"
        raise NotFound("ledger", address, problem=problem, hint=hint, field="address")

    found = run_on_cluster(**place, work=ask)
    if session.json:
        answer(session, history_document(found), "")
        return
    rows = [{**tenure_document(each), "begun_text": each.begun_text, "ended_text": each.ended_text} for each in found]
    table(session, rows, TENURES, nothing=f"nobody is known to have held {address}")
