"""What all servers of a deployment agree on: where addresses are kept. Whoever differs refuses to work.

Neutron's database has one row about it, and a shared ledger one paper for each deployment; the same number is on both.
So a server that is led to another ledger, or a second deployment under the same name, is noticed before it does harm.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeGuard
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
from tenure.kernel.errors import AlreadyExists, NotFound
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import WritePaper

PAPER = "neutron"
TABLE = DeploymentRow.__table__
THE_ROW = 1


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
        with _beside(session) as own:
            _agree(own, section, made)
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
    """Refuse to start a server that is configured otherwise than the others."""
    context = neutron_context.get_admin_context()
    with db_api.CONTEXT_WRITER.using(context):
        keeper(context.session)


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
    """Compare with what is written, or write it: to the database, then to the ledger, then for good."""
    number = str(uuid4()) if _shares(made) else ""
    wanted = Agreement(section.mode, section.realm, number)
    if write_agreement(session, wanted):
        if _shares(made) and made.reach.ask(lambda ledger: enter(ledger, section.realm, number)) != number:
            raise Disagrees(reason=_ANOTHERS.format(realm=section.realm))
        return
    written = read_agreement(session)
    if _shares(made) and written is not None:
        known = made.reach.ask(lambda ledger: number_in(ledger, section.realm))
        wanted = Agreement(section.mode, section.realm, known)
    if written is not None and written != wanted:
        raise Disagrees(reason=_difference(written, wanted))


_ANOTHERS = (
    "the ledger knows another deployment of Neutron as {realm!r}; give this one another [tenure] realm. If it is the "
    "same, whose database was made anew, bring it in with `tenure neutron import --take-over`"
)


def _shares(made: Keeper) -> TypeGuard[LedgerKeeper]:
    return isinstance(made, LedgerKeeper)


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


def write_agreement(session: Any, agreement: Agreement) -> bool:
    """Write what the deployment agrees on, unless it did before; tell whether it was done."""
    values = {"id": THE_ROW, "mode": agreement.mode, "realm": agreement.realm, "ledger": agreement.ledger}
    return bool(session.execute(insert_unless_there(TABLE, dialect_of(session)).values(values)).rowcount)


def replace_agreement(session: Any, agreement: Agreement) -> None:
    """Write what the deployment agrees on from now on."""
    session.execute(TABLE.delete())
    write_agreement(session, agreement)


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


def reach_of(section: Any) -> Reach:
    """Return the way to the configured ledger."""
    return REACHES.to(section.ledger, section.timeout_s)
