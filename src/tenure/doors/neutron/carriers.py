"""Who carries an address, by Neutron's own word: a release that comes late must not free what somebody else got.

Neutron says which address is let go, not by whom. Two deletions of one port may overlap: the second still knows the
address when it has become another port's. So the table of what ports carry is asked, and the session, which has
loaded every port that its transaction works on.
"""

from typing import Any

import sqlalchemy as sa
from neutron.db import models_v2
from sqlalchemy.orm.util import identity_key

from tenure.doors.neutron.session_book import MYSQL, dialect_of

CARRIED = models_v2.IPAllocation.__table__


def is_anothers(session: Any, subnet_id: str | None, spellings: set[str]) -> bool:
    """Tell whether a port carries an address that this transaction has nothing to do with."""
    wanted = sa.select(CARRIED.c.port_id).where(CARRIED.c.subnet_id == subnet_id, CARRIED.c.ip_address.in_(spellings))
    if dialect_of(session) in MYSQL:
        wanted = wanted.with_for_update(read=True)  # as it is now, not as the transaction first saw it
    port = session.execute(wanted).scalar()
    return port is not None and identity_key(models_v2.Port, port) not in session.identity_map
