"""What all servers of a deployment agree on: where addresses are kept. Whoever differs refuses to work.

Neutron's database has one row about it, and a shared ledger one paper for each deployment; the same number is on both.
So a server that is led to another ledger, or a second deployment under the same name, is noticed before it does harm.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NamedTuple
from uuid import uuid4

import sqlalchemy as sa
from neutron_lib import context as neutron_context
from neutron_lib import exceptions as n_exc
from neutron_lib.db import api as db_api
from oslo_db import exception as db_exc
from sqlalchemy import orm

from tenure.integrations.neutron import options
from tenure.integrations.neutron.database import agreement_lock
from tenure.integrations.neutron.database.agreement_lock import TABLE, THE_NUMBER, THE_ROW, Agreement
from tenure.integrations.neutron.database.allocation_rows import MYSQL, dialect_of, insert_unless_there
from tenure.integrations.neutron.modes.database_mode import DatabaseKeeper, Keeper
from tenure.integrations.neutron.modes.ledger_mode import LedgerKeeper
from tenure.integrations.neutron.space_mapping import mapped_spaces
from tenure.integrations.neutron.transaction.ledger_client import REACHES, Reach
from tenure.kernel.errors import AlreadyExists, NotFound, StoreUnavailable
from tenure.service.apply.operations import WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

LOG = logging.getLogger(__name__)

PAPER = "neutron"

TRIES = 3
"""Times that an agreement which is replaced while a request looks is looked at."""

GONE = "what this deployment agreed on is gone from Neutron's database; see `tenure neutron import`"


class Disagrees(n_exc.ServiceUnavailable):  # type: ignore[misc]  # Neutron's library has no types
    """The configuration of a server is not the one of the deployment it belongs to. 503."""

    message = "%(reason)s"


class Checked(NamedTuple):
    """What a process has found to agree: its configuration with what is agreed on."""

    key: tuple[Any, ...]
    keeper: Keeper
    agreement: Agreement


class Memory:
    """What this process has checked last; a process that was forked looks for itself."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with nothing."""
        self.last: Checked | None = None


CHECKED = Memory()
os.register_at_fork(after_in_child=CHECKED.forget)


def keeper(session: Any) -> Keeper:
    """Return the keeper of this server's mode; Disagrees if the deployment has another by now.

    The agreement is kept as it is until the caller's transaction ends.
    """
    section = options.register()
    key = (section.mode, section.ledger, section.realm)
    # The configuration is compared once a process, which may ask the ledger; the row is compared every time.
    for _ in range(TRIES):
        _beware(session)
        checked = CHECKED.last
        if checked is None or checked.key != key:
            made = _keeper(section)
            checked = CHECKED.last = Checked(key, made, _agree(session, section, made))
        if agreement_lock.now(session) == checked.agreement:
            return checked.keeper
        # An import has replaced the agreement since this process compared: compare again, with the row as it is now.
        CHECKED.forget()
        _beware(session)
        agreement_lock.leave(session)
    raise Disagrees(reason="what this deployment agrees on keeps changing; see `tenure neutron import`")


def may_stand(session: Any) -> bool:
    """Tell whether the next reading of a subnet should bring the agreement along.

    Not before this process has looked for itself, nor where a reader asks a copy of the database, which may lock
    nothing.
    """
    # The first look may write the agreement beside this transaction, and on MySQL would wait for the lock of this one.
    if CHECKED.last is None or agreement_lock.noted(session) is not None:
        return False
    return session.get_bind().engine is db_api.CONTEXT_WRITER.get_engine()


def _beware(session: Any) -> None:
    """Begin anew where the agreement is gone: on MySQL the transaction keeps the gap, and would wait for itself."""
    stand = agreement_lock.noted(session)
    if stand is not None and stand.agreement is None and dialect_of(session) in MYSQL:
        CHECKED.forget()
        raise db_exc.RetryRequest(Disagrees(reason=GONE))


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
        if refusal := options.against_ledger(section.ledger):
            raise Disagrees(reason=f"[tenure] ledger: {refusal}")
        return LedgerKeeper(REACHES.to(section.ledger, section.timeout_s), section.realm)
    if mapped_spaces(section):
        raise Disagrees(
            reason="[tenure] space_of_…: spaces can be shared only with mode 'ledger'; set it, or remove them"
        )
    return DatabaseKeeper()


def _agree(session: Any, section: Any, made: Keeper) -> Agreement:
    """Compare with what is written, or write it: first the number, then the ledger's paper, then what is agreed.

    Whoever is interrupted in between finds his number again, and goes on.
    """
    wanted = Agreement(section.mode, section.realm)
    with _beside(session) as own:
        agreed = read_agreement(own)
        if isinstance(made, LedgerKeeper) and agreed is None:
            wanted = number_for(own, section.realm)
    _compare(agreed, wanted)
    if isinstance(made, LedgerKeeper):
        wanted = _entered(made.reach, wanted, agreed)
    if agreed is None:
        with _beside(session) as own:
            # Of servers that start together one writes; the others must agree with what it wrote.
            agreed = None if write_agreement(own, wanted) else read_agreement(own)
        _compare(agreed, wanted)
        # Mode and realm are the same by now, so it is the ledger's number that differs.
        if agreed not in (None, wanted):
            raise Disagrees(reason=f"{ELSEWHERE}; {MEND}")
    return wanted


def _entered(reach: Reach, wanted: Agreement, agreed: Agreement | None) -> Agreement:
    """Return what is wanted with the number that the ledger knows; a new deployment is entered there."""
    if agreed is not None:
        entry = reach.ask(lambda ledger: entry_in(ledger, wanted.realm))
        if entry.number != agreed.ledger:
            raise Disagrees(reason=entry.against(agreed) or f"{ELSEWHERE}; {MEND}")
        return agreed
    if reach.ask(lambda ledger: enter(ledger, wanted.realm, wanted.ledger)) != wanted.ledger:
        raise Disagrees(reason=ANOTHERS.format(realm=wanted.realm))
    return wanted


ANOTHERS = (
    "the ledger knows another deployment of Neutron as {realm!r}: give this one another [tenure] realm; or, if it is "
    "the same one and only its database was made anew, bring it in with `tenure neutron import --take-over`"
)
TAKEN_OVER = (
    "another deployment of Neutron has taken over the name {realm!r} in the ledger (`tenure neutron import "
    "--take-over`, from another database): give one of the two another [tenure] realm, and bring this one in again "
    "with `tenure neutron import`, with --take-over if it keeps the name"
)
ELSEWHERE = "this server's [tenure] ledger is not the one that this deployment keeps its addresses in"
MEND = "make the configuration the same on every server and restart it, or move with `tenure neutron import`"


def _compare(found: Agreement | None, wanted: Agreement) -> None:
    """Refuse a configuration of another mode or realm than what is agreed on."""
    if found is not None and found.mode != wanted.mode:
        was = f"this deployment keeps its addresses in mode {found.mode!r}, and this server is set to {wanted.mode!r}"
        raise Disagrees(reason=f"{was}; {MEND}")
    if found is not None and found.realm != wanted.realm:
        was = f"this deployment is called {found.realm!r} in its ledger, and [tenure] realm here is {wanted.realm!r}"
        raise Disagrees(reason=f"{was}; {MEND}")


def read_agreement(session: Any) -> Agreement | None:
    """Read what the deployment agreed on, if it did."""
    columns = (TABLE.c.mode, TABLE.c.realm, TABLE.c.ledger)
    row = session.execute(sa.select(*columns).where(TABLE.c.id == THE_ROW)).first()
    return None if row is None else Agreement(*row)


def write_agreement(session: Any, agreement: Agreement, *, row: int = THE_ROW) -> bool:
    """Write what the deployment agrees on, unless it did before; tell whether it was done."""
    values = {"id": row, "mode": agreement.mode, "realm": agreement.realm, "ledger": agreement.ledger}
    return bool(session.execute(insert_unless_there(TABLE, dialect_of(session)).values(values)).rowcount)


def hold_agreement(session: Any, agreement: Agreement) -> None:
    """Wait for all who stand on the agreement, and keep others from it until the transaction ends.

    Where there is none this one is written, so that who wants to write another waits, too.
    """
    statement = sa.select(TABLE.c.id).where(TABLE.c.id == THE_ROW).with_for_update()
    # A missing row cannot be locked: it is written, or, where another transaction was quicker, its row is locked.
    if session.execute(statement).first() is None and not write_agreement(session, agreement):
        session.execute(statement).one()


def replace_agreement(session: Any, agreement: Agreement) -> None:
    """Write what the deployment agrees on from now on; the number it has in a ledger is kept, for a way back."""
    hold_agreement(session, agreement)
    # In its place: who waits for it finds the new one, and not that the old one is gone.
    session.execute(TABLE.update().where(TABLE.c.id == THE_ROW).values(**asdict(agreement)))


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


class LedgerRegistration(NamedTuple):
    """What a ledger knows of a deployment: its number, "" if it has none; and those that it was taken over from."""

    number: str = ""
    former: tuple[str, ...] = ()

    def against(self, agreed: Agreement) -> str:
        """Say that a deployment was taken over, if it was."""
        return TAKEN_OVER.format(realm=agreed.realm) if agreed.ledger in self.former else ""


async def entry_in(ledger: AsyncLedger, realm: str) -> LedgerRegistration:
    """Return what a ledger knows of a deployment."""
    try:
        document = (await ledger.paper(PAPER, realm)).document
    except NotFound:
        return LedgerRegistration()
    return LedgerRegistration(str(document["deployment"]), tuple(document.get("former", ())))


async def enter(ledger: AsyncLedger, realm: str, number: str) -> str:
    """Enter a deployment in a ledger under a number, and return the number that it has there."""
    try:
        await ledger.apply([WritePaper(kind=PAPER, name=realm, document={"deployment": number})])
    # Another server of this deployment was quicker, with the same number; or the name is another deployment's.
    except AlreadyExists:
        return (await entry_in(ledger, realm)).number
    return number
