"""The ledger's reading verbs for callers who block. Written by tools/make_blocking.py."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from tenure.kernel.addresses import AddressLike
from tenure.kernel.configuration import Configuration, Network
from tenure.kernel.tenures import History
from tenure.kernel.values import Change, Holding, Paper
from tenure.service.blocking_plan import BlockingPlanVerbs
from tenure.service.explaining import Explanation
from tenure.service.searching import Found


class BlockingReadingVerbs(BlockingPlanVerbs):
    """Every verb that looks something up, run to its end."""

    def spaces(self) -> list[Configuration]:
        """Read all spaces, in order of name."""
        return self._portal.run(self._ledger.spaces())

    def networks(self) -> list[Network]:
        """Read all networks, in order of name."""
        return self._portal.run(self._ledger.networks())

    def network(self, name: str) -> Network:
        """Read one network."""
        return self._portal.run(self._ledger.network(name))

    def holding(self, network: str, address: AddressLike) -> Holding:
        """Read who holds an address (or the prefix it lies in) in a network."""
        return self._portal.run(self._ledger.holding(network, address))

    def holdings(
        self,
        network: str | None = None,
        *,
        owner: str | None = None,
        after: AddressLike | None = None,
        limit: int | None = None,
    ) -> list[Holding]:
        """Read holdings of a network, in order of address, or of an owner.

        ``after`` is a cursor: the last address of the page before. Memory and time grow with ``limit``, not the ledger.
        """
        return self._portal.run(self._ledger.holdings(network, owner=owner, after=after, limit=limit))

    def holdings_of(self, owners: Sequence[str]) -> list[Holding]:
        """Read all that owners hold: owner by owner as they are named, each in order of network, slot and address.

        Cost: O(log n) an owner, one question for a thousand of them.
        """
        return self._portal.run(self._ledger.holdings_of(owners))

    def paper(self, kind: str, name: str) -> Paper:
        """Read a document that a door keeps in the ledger."""
        return self._portal.run(self._ledger.paper(kind, name))

    def papers(self, kind: str, *, prefix: str = "", after: str = "", limit: int | None = None) -> list[Paper]:
        """Read papers of a kind whose name begins so, in order of name; ``after`` is a cursor: the last name read."""
        return self._portal.run(self._ledger.papers(kind, prefix=prefix, after=after, limit=limit))

    def changes(self, after: int = 0, *, limit: int | None = None) -> Iterator[Change]:
        """Read the log behind a number, in commit order, up to its end."""
        return self._portal.iterate(self._ledger.changes(after, limit=limit))

    def tail(self, after: int = 0) -> Iterator[Change]:
        """Follow the log from a number on, for ever; every change once, in commit order."""
        return self._portal.iterate(self._ledger.tail(after))

    def last_change(self) -> int:
        """Return the number of the newest change."""
        return self._portal.run(self._ledger.last_change())

    def why(self, address: AddressLike, *, network: str | None = None) -> Explanation:
        """Explain an address: who, since when, by which request; or why it is not free; in every network it lies in."""
        return self._portal.run(self._ledger.why(address, network=network))

    def history(self, address: AddressLike, *, network: str | None = None, at: datetime | None = None) -> History:
        """Tell who held an address (or the prefix it lies in), from when until when, and how it ended.

        ``at`` asks who held it at a time. Pending and draining are parts of a tenure, cooling comes after it.
        Cost: O(log n) and the tenures of the address.
        """
        return self._portal.run(self._ledger.history(address, network=network, at=at))

    def search(
        self,
        text: str | None = None,
        *,
        labels: Mapping[str, str | None] | None = None,
        kind: str | None = None,
        network: str | None = None,
        limit: int | None = None,
    ) -> list[Found]:
        """Find networks, subnets, pools, reserved ranges, pre-allocations and holdings by text, labels or place.

        An address, a block or a range finds what lies there, in O(log n + answer). Other text is looked for in names,
        owners, addresses and descriptions, whatever its case; a label of None need only be there. Such a search reads
        all holdings, page by page; one of another ``kind`` reads none.
        """
        return self._portal.run(self._ledger.search(text, labels=labels, kind=kind, network=network, limit=limit))
