"""Completion: names read from the ledger. It never fails and never makes a store; at worst it is silent."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from tenure.doors.cli.session import Session, missing_file
from tenure.kernel.plan.plan_model import Network
from tenure.service.ledger.async_ledger import AsyncLedger

T = TypeVar("T")

# A person waits at the Tab key, and a silent completion is better than a late one.
PATIENCE_S = 2.0


def complete_network(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names of networks."""
    return _beginning(incomplete, [network.name for network in _networks(context)])


def complete_subnet(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names and blocks of the subnets of the network that stands before."""
    subnets = [subnet for network in _meant(context) for subnet in network.subnets]
    return _beginning(incomplete, [subnet.name or str(subnet.cidr) for subnet in subnets])


def complete_pool(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names of the pools of the network that stands before."""
    pools = [pool for network in _meant(context) for _, pool in network.pools()]
    return _beginning(incomplete, [pool.name or str(pool.range) for pool in pools])


def complete_group(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names of groups of nodes."""
    return _names(context, "group", incomplete)


def complete_node(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names of nodes."""
    return _names(context, "node", incomplete)


def complete_instance(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names of instances."""
    return _names(context, "instance", incomplete)


def complete_deployment(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the names of deployments."""
    return _names(context, "deployments.deployment", incomplete)


def complete_deployed_instance(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offer the instances of the deployment that stands before, by group and uuid."""
    above = f"{context.params.get('deployment')}/"
    papers = _asked(context, lambda ledger: ledger.papers("deployments.instance", prefix=above + incomplete))
    return _beginning(incomplete, [paper.name.removeprefix(above) for paper in papers])


def _names(context: click.Context, kind: str, incomplete: str) -> list[str]:
    papers = _asked(context, lambda ledger: ledger.papers(kind, prefix=incomplete))
    return _beginning(incomplete, [paper.name for paper in papers])


def _beginning(incomplete: str, names: list[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def _meant(context: click.Context) -> list[Network]:
    # Behind an option that still lacks its value, click has sorted nothing yet: the network is the first word.
    name = context.params.get("network") or next(iter(context.args), None)
    return [network for network in _networks(context) if network.name == name]


def _networks(context: click.Context) -> list[Network]:
    return _asked(context, lambda ledger: ledger.networks())


def _asked(context: click.Context, question: Callable[[AsyncLedger], Awaitable[list[T]]]) -> list[T]:
    session = context.find_root().obj
    if not isinstance(session, Session):
        session = Session()
    if missing_file(session.url):
        return []
    with contextlib.suppress(Exception):  # whatever is wrong, the shell wants names or nothing
        return asyncio.run(asyncio.wait_for(_read(session, question), PATIENCE_S))
    return []


async def _read(session: Session, question: Callable[[AsyncLedger], Awaitable[list[T]]]) -> list[T]:
    async with await session.open() as ledger:
        return await question(ledger)
