"""JSON of any depth: a server stores 10,000 levels, and orjson reads some 1,000.

One object so deep, which any user may write where a definition keeps unknown fields, must not hide all others of its
list. No controller reads what lies so deep.
"""

import logging
import re
from collections.abc import Iterator
from typing import Any

import orjson

LOG = logging.getLogger(__name__)

DEEPEST = 200
"""The levels that are kept of a document that is too deep to be read: few enough to be written again."""

MOST_LEVELS = 10_100
"""A server stores 10,000 in one object, and a list or a review adds a few; what is deeper is rubbish, and not read."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
"""A text, or where a level begins or ends. A text without an end is one token, so that it is passed over once."""


def read_deep_json(document: bytes, source: str) -> Any:
    """Read JSON; of a document that is too deep, what lies deepest is read as ``null``, and the log says so.

    ``source``: where the document came from, for people. What is no JSON raises ``orjson.JSONDecodeError``. Cost: O(n)
    of the document, whatever is in it.
    """
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        found = orjson.loads(b"".join(_without_depths(document)))
        LOG.warning("%s: more levels than can be read; what lies below %d levels is left out", source, DEEPEST)
        return found


def _without_depths(document: bytes) -> Iterator[bytes]:
    """Yield a document in pieces, with ``null`` in place of each value below the deepest level."""
    depth, shown_from = 0, 0
    for token in _TOKEN.finditer(document):
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
            # What was yielded so far is no JSON, and is refused as such.
            if depth > MOST_LEVELS:
                return
            if depth == DEEPEST + 1:
                yield document[shown_from : token.start()] + b"null"
        elif mark in (b"}", b"]"):
            if depth == DEEPEST + 1:
                shown_from = token.end()
            depth -= 1
    if depth <= DEEPEST:
        yield document[shown_from:]
