"""What all servers of a deployment agree on: where addresses are kept. Whoever differs refuses to work.

Neutron's database has one row about it, and a shared ledger one paper for each deployment; the same number is on both.
So a server that is led to another ledger, or a second deployment under the same name, is noticed before it does harm.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from neutron_lib import context as neutron_context
from neutron_lib import exceptions as n_exc
from neutron_lib.db import api as db_api
from sqlalchemy import orm

from tenure.doors.neutron import options
from tenure.doors.neutron.keeping import DatabaseKeeper, Keeper
from tenure.doors.neutron.ledger_keeper import LedgerKeeper
from tenure.doors.neutron.reach import REACHES, Reach
from tenure.doors.neutron.session_book import dialect_of, insert_unless_there
from tenure.doors.neutron.spaces import mapped_spaces
from tenure.doors.neutron.tables import DeploymentRow
from tenure.kernel.errors import AlreadyExists, NotFound, StoreUnavailable
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import WritePaper

LOG = logging.getLogger(__name__)

PAPER = "neutron"
TABLE = DeploymentRow.__table__
THE_ROW, THE_NUMBER = 1, 2
"""What is agreed on now; and the number by which the deployment is known, or will be, in a ledger."""


class Disagrees(n_exc.ServiceUnavailable):  # type: ignore[misc]  # Neutron's library has no types
    """The configuration of a server is not the one of the deployment it belongs to. 503."""

    message = "%(reason)s"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Where a deployment keeps its addresses."""

    mode: str
    realm: str
    ledger: str = ""


class Checked:
    """What this process has found to agree; a process that was forked looks for itself."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with nothing."""
        self.key: tuple[Any, ...] | None = None
        self.keeper: Keeper | None = None

    def remember(self, key: tuple[Any, ...], keeper: Keeper) -> None:
        """Look no further while the configuration stays the same."""
        self.key, self.keeper = key, keeper


CHECKED = Checked()
os.register_at_fork(after_in_child=CHECKED.begin)


def keeper(session: Any) -> Keeper:
    """Return the keeper of this server's mode; Disagrees if the deployment has another."""
    section = options.register()
    key = (section.mode, section.ledger, section.realm)
    if CHECKED.keeper is None or key != CHECKED.key:
        made = _keeper(section)
        _agree(session, section, made)
        CHECKED.remember(key, made)
        return made
    return CHECKED.keeper


@contextmanager
def _beside(session: Any) -> Iterator[Any]:
    """Open a transaction beside the caller's, which may yet be rolled back; on SQLite, where one writes, in it."""
    if dialect_of(session) == "sqlite":
        yield session
        return
    with orm.Session(bind=session.get_bind().engine) as own, own.begin():
        yield own


def check_at_start() -> None:
    """Refuse to start a server that is configured otherwise than the others; one whose ledger is away looks later."""
    context = neutron_context.get_admin_context()
    try:
        with db_api.CONTEXT_WRITER.using(context):
            keeper(context.session)
    except StoreUnavailable as error:
        LOG.warning("%s; requests that need it are answered with 503 until it is back", error)


def _keeper(section: Any) -> Keeper:
    """Make the keeper that the configuration wants."""
    if section.mode == options.LEDGER:
        if not section.ledger:
            raise Disagrees(reason="[tenure] ledger is not set: mode 'ledger' needs the URL of one")
        return LedgerKeeper(REACHES.to(section.ledger, section.timeout_s), section.realm)
    if mapped_spaces(section):
        raise Disagrees(
            reason="[tenure] space_of_…: spaces can be shared only with mode 'ledger'; set it, or remove them"
        )
    return DatabaseKeeper()


def _agree(session: Any, section: Any, made: Keeper) -> None:
    """Compare with what is written, or write it: first the number, then the ledger's paper, then what is agreed.

    Whoever is interrupted in between finds his number again, and goes on.
    """
    wanted = Agreement(section.mode, section.realm)
    with _beside(session) as own:
        agreed = read_agreement(own)
        if isinstance(made, LedgerKeeper) and agreed is None:
            wanted = number_for(own, section.realm)
    if isinstance(made, LedgerKeeper):
        wanted = _entered(made.reach, wanted, agreed)
    with _beside(session) as own:
        if not write_agreement(own, wanted):
            agreed = read_agreement(own)
            if agreed != wanted:
                raise Disagrees(reason=_difference(agreed or wanted, wanted))


def _entered(reach: Reach, wanted: Agreement, agreed: Agreement | None) -> Agreement:
    """Return what is wanted with the number that the ledger knows; a new deployment is entered there."""
    if agreed is not None:
        return replace(wanted, ledger=reach.ask(lambda ledger: number_in(ledger, wanted.realm)))
    if reach.ask(lambda ledger: enter(ledger, wanted.realm, wanted.ledger)) != wanted.ledger:
        raise Disagrees(reason=ANOTHERS.format(realm=wanted.realm))
    return wanted


ANOTHERS = (
    "the ledger knows another deployment of Neutron as {realm!r}: give this one another [tenure] realm; or, if it is "
    "the same one and only its database was made anew, bring it in with `tenure neutron import --take-over`"
)


def _difference(found: Agreement, wanted: Agreement) -> str:
    if found.mode != wanted.mode:
        was = f"this deployment keeps its addresses in mode {found.mode!r}, and this server is set to {wanted.mode!r}"
    elif found.realm != wanted.realm:
        was = f"this deployment is called {found.realm!r} in its ledger, and [tenure] realm here is {wanted.realm!r}"
    else:
        was = "this server's [tenure] ledger is not the one that this deployment keeps its addresses in"
    return f"{was}; make the configuration the same on every server, or move with `tenure neutron import`"


def read_agreement(session: Any) -> Agreement | None:
    """Read what the deployment agreed on, if it did."""
    columns = (TABLE.c.mode, TABLE.c.realm, TABLE.c.ledger)
    row = session.execute(sa.select(*columns).where(TABLE.c.id == THE_ROW)).first()
    return None if row is None else Agreement(*row)


def write_agreement(session: Any, agreement: Agreement, *, row: int = THE_ROW) -> bool:
    """Write what the deployment agrees on, unless it did before; tell whether it was done."""
    values = {"id": row, "mode": agreement.mode, "realm": agreement.realm, "ledger": agreement.ledger}
    return bool(session.execute(insert_unless_there(TABLE, dialect_of(session)).values(values)).rowcount)


def replace_agreement(session: Any, agreement: Agreement) -> None:
    """Write what the deployment agrees on from now on; the number it has in a ledger is kept, for a way back."""
    session.execute(TABLE.delete().where(TABLE.c.id == THE_ROW))
    write_agreement(session, agreement)


def number_for(session: Any, realm: str) -> Agreement:
    """Return the number that this deployment has, or is to have, in a ledger; it is written down before it is used."""
    columns = (TABLE.c.mode, TABLE.c.realm, TABLE.c.ledger)
    statement = sa.select(*columns).where(TABLE.c.id == THE_NUMBER)
    found = session.execute(statement).first()
    if found is not None and found.realm != realm:
        session.execute(TABLE.delete().where(TABLE.c.id == THE_NUMBER))
        found = None
    if found is None:
        write_agreement(session, Agreement(options.LEDGER, realm, str(uuid4())), row=THE_NUMBER)
        # Where another was quicker an older reading would not show his.
        found = session.execute(statement.with_for_update(read=True)).one()
    return Agreement(*found)


async def number_in(ledger: AsyncLedger, realm: str) -> str:
    """Return the number of a deployment, as its ledger has it; "" if it has none."""
    try:
        paper = await ledger.paper(PAPER, realm)
    except NotFound:
        return ""
    return str(paper.document["deployment"])


async def enter(ledger: AsyncLedger, realm: str, number: str) -> str:
    """Enter a deployment in a ledger under a number, and return the number that it has there."""
    try:
        await ledger.apply([WritePaper(kind=PAPER, name=realm, document={"deployment": number})])
    except AlreadyExists:
        return await number_in(ledger, realm)
    return number
