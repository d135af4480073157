"""Who asks, and what he may do."""

import enum
from dataclasses import dataclass, field

from tenure.wire.http_errors import Forbidden


class Need(enum.StrEnum):
    """What a route asks of whoever calls it: ``public`` nothing at all, ``open`` only to be known."""

    PUBLIC = "public"
    OPEN = "open"
    READ = "read"
    ALLOCATE = "allocate"
    ADMIN = "admin"


ANY_NETWORK = "*"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who was let in. ``networks`` are those he may allocate on; ``*`` is all of them.

    Who may allocate on a network may also read that network. Admin may do everything. Who came in by a login has its
    name as ``session``, and what his unsafe requests must carry as ``csrf``.
    """

    id: str
    name: str
    read: bool = False
    admin: bool = False
    networks: frozenset[str] = field(default_factory=frozenset)
    anonymous: bool = False
    session: str | None = None
    csrf: str | None = field(default=None, repr=False)

    @property
    def actor(self) -> str:
        """Return on whose word his changes are made, as the log tells it."""
        return f"token/{self.name}"

    def may(self, need: Need, network: str | None = None) -> bool:
        """Tell whether he may do what a route needs, on a network where it is about one."""
        if need is Need.OPEN or self.admin:
            return True
        if need is Need.ADMIN:
            return False
        if need is Need.READ and self.read:
            return True
        return ANY_NETWORK in self.networks or (network is not None and network in self.networks)

    def check(self, need: Need, network: str | None = None) -> None:
        """Refuse what he may not do, and say what would be needed for it."""
        if not self.may(need, network):
            where = "" if network is None or need is Need.ADMIN else f" on network {network!r}"
            raise Forbidden(f"this needs the scope {need.value}{where}, which {self.name!r} does not have")
