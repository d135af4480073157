"""The archive of a ledger in memory: the same pages as other stores keep, in a list."""

from bisect import bisect_right
from collections.abc import Sequence

from tenure.kernel.holdings.archive_pages import ArchivedPage, place_of, places_in, told_of, unpacked, without_older
from tenure.kernel.holdings.holding_model import Change

Shelf = list[tuple[ArchivedPage, frozenset[int]]]


class MemoryArchive:
    """Pages in order, each with the marks of the addresses that it tells of."""

    def __init__(self) -> None:
        self.pages: Shelf = []

    def add(self, page: ArchivedPage, places: Sequence[int]) -> None:
        """Put a page behind the others."""
        self.pages.append((page, frozenset(places)))

    def fill(self, pages: Sequence[ArchivedPage]) -> None:
        """Take in pages of another archive."""
        for page in pages:
            self.add(page, places_in(page))

    def drop(self, before: int) -> None:
        """Drop changes below a number; what is left of a page in which it lies is packed anew."""
        end = bisect_right(self.pages, before - 1, key=lambda each: each[0].first_seq)
        # Only the last page that begins below the number can reach beyond it.
        left = [without_older(page, before) for page, _ in self.pages[:end][-1:] if page.last_seq >= before]
        self.pages[:end] = [(page, frozenset(places_in(page))) for page in left]

    def oldest(self, begun: int) -> int:
        """Return the number behind which changes are kept, here or in a log that begins behind another."""
        return self.pages[0][0].first_seq - 1 if self.pages else begun

    def read(self, after: int, limit: int) -> list[Change]:
        """Read what the next page has behind a number. O(log pages + a page)."""
        pages = (page for page, _ in self._behind(after)[:1])
        return [change for page in pages for change in unpacked(page) if change.seq > after][:limit]

    def _behind(self, after: int) -> Shelf:
        """Return the pages that have changes behind a number."""
        return self.pages[bisect_right(self.pages, after, key=lambda each: each[0].last_seq) :]

    def find(self, firsts: Sequence[int], after: int, limit: int) -> list[Change]:
        """Read entries about addresses. O(pages), and what those cost that have any."""
        wanted = frozenset(map(place_of, firsts))
        found: list[Change] = []
        for page, places in self._behind(after):
            if len(found) >= limit:
                break
            if not wanted.isdisjoint(places):
                found.extend(told_of(unpacked(page), firsts, after))
        return found[:limit]
