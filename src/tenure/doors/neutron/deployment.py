"""What all servers of a deployment agree on: where addresses are kept. Whoever differs refuses to work.

Neutron's database has one row about it, and a shared ledger one paper for each deployment; the same number is on both.
So a server that is led to another ledger, or a second deployment under the same name, is noticed before it does harm.
"""

import os
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from sqlalchemy import event

from tenure.doors.neutron import options
from tenure.doors.neutron.keeping import DatabaseKeeper, Keeper
from tenure.doors.neutron.ledger_keeper import LedgerKeeper
from tenure.doors.neutron.reach import REACHES, Reach
from tenure.doors.neutron.requests import Site
from tenure.doors.neutron.session_book import dialect_of, insert_unless_there
from tenure.doors.neutron.tables import DeploymentRow
from tenure.kernel.errors import AlreadyExists, NotFound
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import WritePaper

PAPER = "neutron"
TABLE = DeploymentRow.__table__
THE_ROW = 1


class Disagrees(Exception):
    """The configuration of a server is not the one of the deployment it belongs to."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Where a deployment keeps its addresses."""

    mode: str
    realm: str
    ledger: str = ""


class Checked:
    """What this process has found to agree; a process that was forked looks for itself."""

    def __init__(self) -> None:
        self.key: tuple[Any, ...] | None = None
        self.keeper: Keeper | None = None

    def remember(self, key: tuple[Any, ...], keeper: Keeper) -> None:
        """Look no further while the process and its configuration stay the same."""
        self.key, self.keeper = key, keeper


CHECKED = Checked()


def keeper(session: Any) -> Keeper:
    """Return the keeper of this server's mode, in a transaction; Disagrees if the deployment has another."""
    section = options.register()
    key = (os.getpid(), section.mode, section.ledger, section.realm)
    if CHECKED.keeper is None or key != CHECKED.key:
        made = _keeper(section)
        if _agree(session, section, made):
            CHECKED.remember(key, made)
        else:
            event.listen(session, "after_commit", lambda ended: _remember_committed(ended, key, made))
        return made
    return CHECKED.keeper


def _remember_committed(session: Any, key: tuple[Any, ...], made: Keeper) -> None:
    """Believe what was written just now from when it cannot be rolled back any more."""
    if session.get_nested_transaction() is None:
        CHECKED.remember(key, made)


def space_at(site: Site) -> str | None:
    """Name the space that a new subnet shares with others; None: it is a space of its own."""
    section = options.register()
    mapped = (
        section.space_of_network.get(site.network),
        section.space_of_address_scope.get(site.address_scope),
        section.space_of_subnet_pool.get(site.subnet_pool),
    )
    return next((space for space in mapped if space), None)


def check_at_start() -> None:
    """Refuse to start a server that is configured otherwise than the others."""
    context = neutron_context.get_admin_context()
    with db_api.CONTEXT_WRITER.using(context):
        keeper(context.session)


def _keeper(section: Any) -> Keeper:
    """Make the keeper that the configuration wants."""
    if section.mode == options.LEDGER:
        if not section.ledger:
            raise Disagrees("[tenure] ledger is not set: mode 'ledger' needs the URL of one")
        return LedgerKeeper(REACHES.to(section.ledger, section.timeout_s), section.realm)
    if section.space_of_network or section.space_of_address_scope or section.space_of_subnet_pool:
        raise Disagrees("[tenure] space_of_…: spaces can be shared only with mode 'ledger'; set it, or remove them")
    return DatabaseKeeper()


def _agree(session: Any, section: Any, made: Keeper) -> bool:
    """Compare with what is written, or write it; tell whether it was there before."""
    written = read_agreement(session)
    number = _number(made, section.realm, written) if isinstance(made, LedgerKeeper) else ""
    wanted = Agreement(section.mode, section.realm, number)
    if written is None and write_agreement(session, wanted):
        return False
    found = written or read_agreement(session)
    if found is not None and found != wanted:
        raise Disagrees(_difference(found, wanted))
    return True


def _difference(found: Agreement, wanted: Agreement) -> str:
    if found.mode != wanted.mode:
        was = f"this deployment keeps its addresses in mode {found.mode!r}, and this server is set to {wanted.mode!r}"
    elif found.realm != wanted.realm:
        was = f"this deployment is called {found.realm!r} in its ledger, and [tenure] realm here is {wanted.realm!r}"
    else:
        was = "this server's [tenure] ledger is not the one that this deployment keeps its addresses in"
    return f"{was}; make the configuration the same on every server, or move with `tenure neutron import`"


def read_agreement(session: Any) -> Agreement | None:
    """Read what the deployment agreed on, if it did, as it is now."""
    columns = (TABLE.c.mode, TABLE.c.realm, TABLE.c.ledger)
    statement = sa.select(*columns).where(TABLE.c.id == THE_ROW).with_for_update(read=True)
    row = session.execute(statement).first()
    return None if row is None else Agreement(*row)


def write_agreement(session: Any, agreement: Agreement) -> bool:
    """Write what the deployment agrees on, unless it did before; tell whether it was done."""
    values = {"id": THE_ROW, "mode": agreement.mode, "realm": agreement.realm, "ledger": agreement.ledger}
    return bool(session.execute(insert_unless_there(TABLE, dialect_of(session)).values(values)).rowcount)


def replace_agreement(session: Any, agreement: Agreement) -> None:
    """Write what the deployment agrees on from now on."""
    session.execute(TABLE.delete())
    write_agreement(session, agreement)


def _number(made: LedgerKeeper, realm: str, written: Agreement | None) -> str:
    """Return the deployment's number as the ledger has it; a ledger that knows nothing of the realm gets one."""
    if written is not None and written.ledger:
        return made.reach.ask(lambda ledger: number_in(ledger, realm))
    return made.reach.ask(lambda ledger: enter(ledger, realm))


async def number_in(ledger: AsyncLedger, realm: str) -> str:
    """Return the number of a deployment, as its ledger has it; "" if it has none."""
    try:
        paper = await ledger.paper(PAPER, realm)
    except NotFound:
        return ""
    return str(paper.document["deployment"])


async def enter(ledger: AsyncLedger, realm: str) -> str:
    """Enter a new deployment in a ledger, and return its number; Disagrees if the realm is somebody else's."""
    number = str(uuid4())
    try:
        await ledger.apply([WritePaper(kind=PAPER, name=realm, document={"deployment": number})])
    except AlreadyExists:
        # A first request that was rolled back leaves the paper and nothing else; then there is nothing to lose.
        prefix = f"{realm}-"
        if any(network.name.startswith(prefix) for network in await ledger.networks()):
            raise Disagrees(
                f"the ledger knows another deployment of Neutron as {realm!r}; give this one another [tenure] realm, "
                "or bring it in with `tenure neutron import`"
            ) from None
        return await number_in(ledger, realm)
    return number


def reach_of(section: Any) -> Reach:
    """Return the way to the configured ledger."""
    return REACHES.to(section.ledger, section.timeout_s)
