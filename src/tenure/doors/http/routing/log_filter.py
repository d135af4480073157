"""Which entries of the log are wanted: the same words for lists and for events."""

from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.routing.principal import Visitor
from tenure.kernel.addressing.ranges import parse_range
from tenure.kernel.holdings.holding_model import Change
from tenure.kernel.names import Owner, check_name
from tenure.wire import field_types

VerbText = Annotated[str, Meta(description="grant, release, …; one that ends in a dot takes all that begin so.")]
ActorText = Annotated[str, Meta(description="On whose word, such as token/ops.")]


class WantedChanges(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which entries of the log."""

    network: field_types.Name | None = None
    owner: field_types.Owner | None = None
    verb: VerbText | None = None
    range: field_types.Span | None = None
    actor: ActorText | None = None


class Filter:
    """Tells whether an entry is wanted, and open to the visitor who wants it."""

    def __init__(self, wanted: WantedChanges, visitor: Visitor) -> None:
        if wanted.network is not None:
            check_name(wanted.network, field="network")
            visitor.check_read(wanted.network)
        self._wanted = wanted
        self._own = visitor.own
        self._owner = None if wanted.owner is None else Owner(wanted.owner)
        self._range = None if wanted.range is None else parse_range(wanted.range)
        self.takes_all = self._own is None and all(
            getattr(wanted, name) is None for name in WantedChanges.__struct_fields__
        )

    def __call__(self, change: Change) -> bool:
        """Tell whether an entry is wanted."""
        wanted = self._wanted
        return (
            # By number: the entries of a network that was removed have no name any more.
            (self._own is None or change.network in self._own)
            and wanted.network in (None, change.network_name)
            and self._owner in (None, change.owner)
            and wanted.actor in (None, change.actor)
            and self._verb_fits(change.verb)
            and self._place_fits(change)
        )

    def _verb_fits(self, verb: str) -> bool:
        wanted = self._wanted.verb
        return wanted is None or verb == wanted or (wanted.endswith(".") and verb.startswith(wanted))

    def _place_fits(self, change: Change) -> bool:
        if self._range is None:
            return True
        if change.first is None or change.last is None:
            return False
        return change.first <= self._range.last and self._range.first <= change.last
