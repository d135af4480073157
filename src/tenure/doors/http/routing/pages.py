"""Lists, page by page: a cursor names the last thing that was read, so it holds whatever comes and goes meanwhile."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from tenure.wire import responses

MOST = 1000
USUAL = 100

Limit = Annotated[int, Meta(ge=1, le=MOST, description="How many at most.")]
Cursor = Annotated[str, Meta(max_length=1024, description="The next of the page before.")]

T = TypeVar("T")
S = TypeVar("S")


class Paged(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which page of a list."""

    limit: Limit = USUAL
    after: Cursor | None = None


def page_of(found: Sequence[T], wanted: Paged, place: Callable[[T], str], shown: Callable[[T], S]) -> responses.Page[S]:
    """Cut a page from a sorted list that is at hand."""
    rest = [each for each in found if wanted.after is None or place(each) > wanted.after]
    items = rest[: wanted.limit]
    more = len(rest) > len(items)
    return responses.Page(items=[shown(each) for each in items], next=place(items[-1]) if more else None)
