"""Whose an address is: a release that comes late must not free what somebody else got.

Neutron says which address is let go, not by whom. Two deletions of one port may overlap: the second still knows the
address when it has become another port's. So the row is asked for its port, and the session, which has loaded every
port that its transaction works on. A port that is gone is this transaction's to clear up after.
"""

from typing import Any

import sqlalchemy as sa
from neutron.db import models_v2
from sqlalchemy.orm.util import identity_key

from tenure.integrations.neutron.address_requests import port_of
from tenure.integrations.neutron.database.allocation_rows import MYSQL, dialect_of

PORTS = models_v2.Port.__table__


def is_anothers(session: Any, owner: str) -> bool:
    """Tell whether an owner is a port that is there, and that this transaction has nothing to do with."""
    port = port_of(owner)
    if port is None or identity_key(models_v2.Port, port) in session.identity_map:
        return False
    wanted = sa.select(PORTS.c.id).where(PORTS.c.id == port)
    if dialect_of(session) in MYSQL:
        wanted = wanted.with_for_update(read=True)  # as it is now, not as the transaction first saw it
    return session.execute(wanted).first() is not None
