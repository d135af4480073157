"""Who asks, and what he may do."""

import enum
from dataclasses import dataclass, field

from tenure.wire.http_errors import Forbidden


class Need(enum.StrEnum):
    """What a route asks of whoever calls it: ``public`` nothing at all, ``open`` only to be known.

    ``read own``: to read everything, or something: the route shows each visitor what lies in the networks he may read.
    """

    PUBLIC = "public"
    OPEN = "open"
    READ = "read"
    READ_OWN = "read own"
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
    numbers: frozenset[int] = field(default_factory=frozenset)
    """The networks that his scopes mean, by number: also those that were removed since."""
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
        if need in (Need.READ, Need.READ_OWN) and self.read:
            return True
        if need is Need.READ_OWN:
            return bool(self.networks or self.numbers)
        return ANY_NETWORK in self.networks or (network is not None and network in self.networks)

    @property
    def own(self) -> frozenset[int] | None:
        """Return the numbers of the networks that are all he may read; None if he may read everything."""
        return None if self.may(Need.READ) else self.numbers

    def check_read(self, network: str | None) -> None:
        """Refuse a network that is named in a question and that he may not read, whether or not it is there."""
        if network is not None:
            self.check(Need.READ, network)

    def check(self, need: Need, network: str | None = None) -> None:
        """Refuse what he may not do, and say what would be needed for it."""
        if not self.may(need, network):
            where = "" if network is None or need is Need.ADMIN else f" on network {network!r}"
            scope = Need.READ if need is Need.READ_OWN else need
            raise Forbidden(f"this needs the scope {scope.value}{where}, which {self.name!r} does not have")
