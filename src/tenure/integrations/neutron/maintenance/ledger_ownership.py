"""Whose ledger this is: nothing is changed in one unless this deployment is known there by its number.

A move into a ledger writes down the number before it touches anything, beside what the deployment agrees on. So one
that was broken off is known again by it, and so is a deployment that went back to its database and comes again; the
servers of one that has agreed do not look there, and go on as they did.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from tenure.integrations.neutron.database.agreement_lock import TABLE, Agreement
from tenure.integrations.neutron.installation import (
    ANOTHERS,
    PAPER,
    LedgerRegistration,
    enter,
    entry_in,
    hold_agreement,
    number_for,
    read_agreement,
    replace_agreement,
)
from tenure.integrations.neutron.maintenance.neutron_database import Database, InFlight
from tenure.integrations.neutron.maintenance.neutron_settings import NeutronSettings
from tenure.integrations.neutron.maintenance.repair_networks import NetworkRepair
from tenure.integrations.neutron.maintenance.repair_rows import all_ids
from tenure.integrations.neutron.options import LEDGER
from tenure.kernel.errors import Conflict
from tenure.service.apply.operations import WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger


def check(database: Database, networks: NetworkRepair | None, settings: NeutronSettings) -> None:
    """Refuse what is configured otherwise than the deployment has agreed."""
    with database.reading() as session:
        agreed = read_agreement(session)
    if agreed is None:
        raise Conflict("this deployment has not agreed on where addresses are kept; run `tenure neutron import`")
    if (agreed.mode, agreed.realm) != (settings.mode, settings.realm):
        now = f"mode {agreed.mode!r} and realm {agreed.realm!r}"
        message = f"this deployment has agreed on {now}, not on mode {settings.mode!r} and realm {settings.realm!r}"
        raise Conflict(f"{message}; `tenure neutron import` moves it")
    if networks is not None and (entry := _entry(networks)).number != agreed.ledger:
        elsewhere = "this is not the ledger that the deployment keeps its addresses in; see [tenure] ledger"
        raise Conflict(entry.against(agreed) or elsewhere)


def is_anothers(database: Database, networks: NetworkRepair | None, settings: NeutronSettings) -> bool:
    """Tell whether a ledger knows the realm by a number that is not this deployment's."""
    if networks is None:
        return False
    with database.reading() as session:
        known = _known(session, settings.realm)
    return _entry(networks).number not in {"", *known}


def check_taking_over(database: Database, networks: NetworkRepair) -> None:
    """Refuse to take networks over for a database that knows none of them: it is another deployment's, by its looks."""
    networks.read()
    theirs, ours = networks.subnet_ids(), set(all_ids(database))
    if theirs and not theirs & ours:
        held = sum(len(networks.holdings(subnet)) for subnet in theirs)
        counts = {"networks": len(theirs), "held": held, "subnets": len(ours)}
        raise Conflict(STRANGER.format(realm=networks.realm, first=networks.name(min(theirs)), **counts))


STRANGER = (
    "the ledger knows {realm!r} as a deployment of Neutron with {networks} networks (such as {first!r}) and {held} "
    "held addresses; this database has none of their subnets (its own: {subnets}): it looks like another "
    "deployment. Look at [database] connection, and give this one another [tenure] realm; --remove-held "
    "removes all that the ledger has"
)


def begin(
    database: Database, networks: NetworkRepair | None, settings: NeutronSettings, *, take_over: bool = False, dry: bool
) -> Agreement:
    """Make sure that a ledger's networks of this name are ours, and return what is to be agreed on."""
    if networks is None:
        return Agreement(settings.mode, settings.realm)
    if is_anothers(database, networks, settings) and not take_over:
        raise Conflict(ANOTHERS.format(realm=settings.realm))
    if dry:
        return Agreement(LEDGER, settings.realm)
    # Committed before the ledger hears of it: an import that is broken off here knows its number again.
    with database.writing() as session:
        agreement = _known_as(session, settings.realm, _entry(networks).number)
    networks.reach.ask(lambda ledger: _enter(ledger, agreement, take_over))
    return agreement


def _known_as(session: Any, realm: str, number: str) -> Agreement:
    """Return the number that a ledger knows this deployment by, or the one that it is to know it by."""
    known = number in _known(session, realm)
    return Agreement(LEDGER, realm, number) if known else number_for(session, realm)


def finish(database: Database, agreement: Agreement, agrees: Callable[[], bool]) -> bool:
    """Write what the deployment agrees on from now on, if all ``agrees`` when no server is at work any more.

    All who stand on what was agreed before are waited for, and who comes meanwhile waits for this.
    """
    try:
        with database.writing() as session:
            # From here on no request of a server is open, so the last look sees what stays.
            hold_agreement(session, agreement)
            if not agrees():
                session.rollback()
                return False
            replace_agreement(session, agreement)
    except InFlight as error:
        raise Conflict("servers of Neutron are at work: stop them, and run the import again") from error
    return True


def _entry(networks: NetworkRepair) -> LedgerRegistration:
    return networks.reach.ask(lambda ledger: entry_in(ledger, networks.realm))


async def _enter(ledger: AsyncLedger, agreement: Agreement, take_over: bool) -> None:
    """Enter the deployment under its number; over that of another only if it is to be taken over."""
    if await enter(ledger, agreement.realm, agreement.ledger) == agreement.ledger:
        return
    if not take_over:
        raise Conflict(ANOTHERS.format(realm=agreement.realm))
    # The revision is read before the entry: if the entry changes in between, the paper is refused.
    revision = (await ledger.paper(PAPER, agreement.realm)).revision
    entry = await entry_in(ledger, agreement.realm)
    document = {"deployment": agreement.ledger, "former": sorted({*entry.former, entry.number})}
    await ledger.apply([WritePaper(kind=PAPER, name=agreement.realm, document=document, revision=revision)])


def _known(session: Any, realm: str) -> set[str]:
    """Return the numbers by which this deployment may be known as a realm: agreed on, or written down for a ledger."""
    rows = session.execute(sa.select(TABLE.c.mode, TABLE.c.realm, TABLE.c.ledger))
    return {row.ledger for row in rows if (row.mode, row.realm) == (LEDGER, realm)}
