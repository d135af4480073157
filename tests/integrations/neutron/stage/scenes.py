"""Scenes that are played inside a server's process, where a test wants a session of Neutron's in its own hands."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import netaddr
from neutron.ipam import driver as ipam_driver
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from oslo_config import cfg
from sqlalchemy import event

from tenure.integrations.neutron import options
from tenure.integrations.neutron.maintenance import run
from tenure.integrations.neutron.maintenance.neutron_settings import NeutronSettings
from tenure.integrations.neutron.transaction.ledger_client import REACHES
from tests.integrations.neutron.stage.neutron import Neutron
from tests.integrations.neutron.stage.points import Trouble

PATIENCE_S = 60


class TurnedBack(Exception):
    """Ends a transaction or a savepoint that is to be rolled back."""


Step = tuple[Any, ...]
"""``take, subnet, port, address`` (None: any) · ``drop, subnet, address`` · ``savepoint, steps, end``."""


def transaction(neutron: Neutron, steps: Sequence[Step], end: str) -> list[Any]:
    """Make steps with the driver in a transaction that ends with ``commit`` or ``rollback``; return what was got.

    A commit may be lost on the way, where that was armed.
    """
    context = neutron_context.get_admin_context()
    got: list[Any] = []
    try:
        with db_api.CONTEXT_WRITER.using(context):
            _make(context, steps, got)
            _end(end)
    except (TurnedBack, Trouble):
        pass
    return got


def _make(context: Any, steps: Sequence[Step], got: list[Any]) -> None:
    for verb, *words in steps:
        if verb == "savepoint":
            inner, end = words
            _savepoint(context, inner, end, got)
        elif verb == "take":
            got.append(_take(context, *words))
        else:
            subnet, address = words
            _pool(context).get_subnet(subnet).deallocate(address)


def _savepoint(context: Any, steps: Sequence[Step], end: str, got: list[Any]) -> None:
    try:
        with context.session.begin_nested():
            _make(context, steps, got)
            _end(end)
    except TurnedBack:
        pass


def _take(context: Any, subnet: str, port: str, address: str | None) -> str:
    pool = _pool(context)
    wish = {"ip_address": address} if address else {}
    request = pool.get_address_request_factory().get_request(context, {"id": port, "device_owner": ""}, wish)
    return str(pool.get_subnet(subnet).allocate(request))


def _pool(context: Any) -> Any:
    return ipam_driver.Pool.get_instance(None, context)


def _end(end: str) -> None:
    if end == "rollback":
        raise TurnedBack


def delegate(neutron: Neutron, subnet: str, cidr: str) -> None:
    """Change the block of a subnet, as an agent does to which a prefix was delegated."""
    block = netaddr.IPNetwork(cidr)
    change = {"subnet": {"cidr": str(block)}}
    neutron.plugin.update_subnet(neutron_context.get_admin_context(), subnet, change)


def settled(neutron: Neutron) -> None:
    """Wait until nothing is owed to the ledger."""
    section = options.register()
    reach = REACHES.to(section.ledger, section.timeout_s)
    deadline = time.monotonic() + PATIENCE_S
    while reach.owed:
        assert time.monotonic() < deadline, f"{reach.owed} things are still owed to the ledger"
        time.sleep(0.02)


def reconcile(neutron: Neutron) -> None:
    """Reconcile the deployment of this server, as an operator does."""
    section = options.register()
    found = NeutronSettings(cfg.CONF.database.connection, section.mode, section.realm, section.ledger)
    run.reconcile(found, lambda done, total: None)


def statements(neutron: Neutron, steps: Sequence[Step]) -> list[str]:
    """Make steps in a transaction, and return what was asked of our tables in Neutron's database for it, by verb."""
    asked: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "tenure_" in statement:
            asked.append(statement.split()[0])

    engine = db_api.CONTEXT_WRITER.get_engine()
    event.listen(engine, "before_cursor_execute", note)
    try:
        transaction(neutron, steps, "commit")
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return asked


SCENES: dict[str, Callable[..., Any]] = {
    "transaction": transaction,
    "statements": statements,
    "delegate": delegate,
    "settled": settled,
    "reconcile": reconcile,
}
