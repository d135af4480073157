"""Many ports made at once: Neutron allocates each address in a transaction of its own, and writes all ports after that.

Between the two, an address has a row of ours and no port. Whoever took it for one that was left behind would give it
away under a port that is about to carry it.
"""

import time
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from tenure.integrations.neutron.address_requests import port_of
from tenure.integrations.neutron.database.allocation_rows import HeldAddress
from tenure.integrations.neutron.maintenance.neutron_tables import PORTS

BULK_S = 900
"""For how long a row may wait for its port: longer than any request for many ports lives.

Servers and proxies give a request up after minutes. What is older was left behind by a server that died in between.
"""

AT_ONCE = 1000


def to_come(session: Any, rows: Iterable[HeldAddress], grace_s: int) -> dict[int, str]:
    """Tell for which young rows a port may yet be written: that which is not there.

    Who reads in several steps asks this before he reads which addresses ports carry: Neutron writes a port and its
    addresses together, so a port that is there already, and carries nothing then, will not carry it.
    """
    since_s = time.time() - grace_s
    young = (row for row in rows if row.since_s is not None and row.since_s > since_s)
    waiting = {row.place: port for row in young if (port := port_of(row.owner))}
    there = _there(session, sorted(set(waiting.values())))
    return {place: port for place, port in waiting.items() if port not in there}


def _there(session: Any, ports: list[str]) -> set[str]:
    found: set[str] = set()
    # In pieces: databases limit the parameters of a statement.
    for start in range(0, len(ports), AT_ONCE):
        wanted = sa.select(PORTS.c.id).where(PORTS.c.id.in_(ports[start : start + AT_ONCE]))
        found |= set(session.execute(wanted).scalars())
    return found
