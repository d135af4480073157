"""Whose ledger this is: nothing is changed in one unless this deployment is known there by its number.

A move into a ledger writes down the number before it touches anything, beside what the deployment agrees on. So one
that was broken off is known again by it, and so is a deployment that went back to its database and comes again; the
servers of one that has agreed do not look there, and go on as they did.
"""

from typing import Any

import sqlalchemy as sa

from tenure.doors.neutron.deployment import (
    ANOTHERS,
    PAPER,
    TABLE,
    Agreement,
    enter,
    number_for,
    number_in,
    read_agreement,
    replace_agreement,
)
from tenure.doors.neutron.options import LEDGER
from tenure.doors.neutron.tending.database import Database
from tenure.doors.neutron.tending.networks import Networks
from tenure.doors.neutron.tending.settings import Settings
from tenure.kernel.errors import Conflict
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import WritePaper


def check(database: Database, networks: Networks | None, settings: Settings) -> None:
    """Refuse what is configured otherwise than the deployment has agreed."""
    with database.reading() as session:
        agreed = read_agreement(session)
    if agreed is None:
        raise Conflict("this deployment has not agreed on where addresses are kept; run `tenure neutron import`")
    if (agreed.mode, agreed.realm) != (settings.mode, settings.realm):
        now = f"mode {agreed.mode!r} and realm {agreed.realm!r}"
        message = f"this deployment has agreed on {now}, not on mode {settings.mode!r} and realm {settings.realm!r}"
        raise Conflict(f"{message}; `tenure neutron import` moves it")
    if networks is not None and _number(networks) != agreed.ledger:
        raise Conflict("this is not the ledger that the deployment keeps its addresses in; see [tenure] ledger")


def begin(
    database: Database, networks: Networks | None, settings: Settings, *, take_over: bool = False, dry: bool
) -> Agreement:
    """Make sure that a ledger's networks of this name are ours, and return what is to be agreed on."""
    if networks is None:
        return Agreement(settings.mode, settings.realm)
    with database.reading() as session:
        known = _known(session, settings.realm)
    number = _number(networks)
    if number in known:
        return Agreement(LEDGER, settings.realm, number)
    if number and not take_over:
        raise Conflict(ANOTHERS.format(realm=settings.realm))
    if not dry:
        with database.writing() as session:
            agreement = number_for(session, settings.realm)
        networks.reach.ask(lambda ledger: _enter(ledger, agreement, take_over))
        return agreement
    return Agreement(LEDGER, settings.realm, number)


def finish(database: Database, agreement: Agreement) -> None:
    """Write what the deployment agrees on from now on."""
    with database.writing() as session:
        replace_agreement(session, agreement)


def _number(networks: Networks) -> str:
    return networks.reach.ask(lambda ledger: number_in(ledger, networks.realm))


async def _enter(ledger: AsyncLedger, agreement: Agreement, take_over: bool) -> None:
    """Enter the deployment under its number; over that of another only if it is to be taken over."""
    if await enter(ledger, agreement.realm, agreement.ledger) == agreement.ledger:
        return
    if not take_over:
        raise Conflict(ANOTHERS.format(realm=agreement.realm))
    revision = (await ledger.paper(PAPER, agreement.realm)).revision
    document = {"deployment": agreement.ledger}
    await ledger.apply([WritePaper(kind=PAPER, name=agreement.realm, document=document, revision=revision)])


def _known(session: Any, realm: str) -> set[str]:
    """Return the numbers by which this deployment may be known as a realm: agreed on, or written down for a ledger."""
    rows = session.execute(sa.select(TABLE.c.mode, TABLE.c.realm, TABLE.c.ledger))
    return {row.ledger for row in rows if (row.mode, row.realm) == (LEDGER, realm)}
