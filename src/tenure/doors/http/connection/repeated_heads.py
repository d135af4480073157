"""Heads that come again: whoever asks for one address after the other on one connection sends the same head each time.

What the parser made of such a head it would make of it again, byte for byte, so it need not be asked. Only a few values
may differ: the body's length, and what names a request. They are looked at anew each time, and anything else that
differs is the parser's.
"""

import re
from dataclasses import dataclass

from tenure.doors.http.routing.dispatcher import Match

LENGTH = b"content-length"
MAY_DIFFER = (LENGTH, b"idempotency-key", b"x-request-id")
END = b"\r\n"
START = b"POST "

_is_plain = re.compile(rb"[!-~]+").fullmatch
"""Values in which there is nothing that a parser could take for something else."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head that was parsed: where it leads, and its fields."""

    match: Match
    url: bytes
    fields: dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A head as it was sent, and cut where something may differ."""

    head: Head
    sent: bytes
    whole: int
    """How long a request is whose body is as long as it was then."""
    first: bytes
    rest: tuple[tuple[bytes, bytes], ...]
    """Whose value comes next, and what comes behind it."""

    def read(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return head and body of a request that comes with the same head; None if it must be parsed. About 1 µs."""
        # The same head and the same length in all: the body is as long as content-length says.
        if len(data) == self.whole and data.startswith(self.sent):
            return self.head, data[len(self.sent) :]
        return self.read_pieces(data)

    def read_pieces(self, data: bytes) -> tuple[Head, bytes] | None:
        """Do the same piece by piece: this may differ, that must not."""
        if not data.startswith(self.first):
            return None
        # A copy, because the remembered head serves all later requests.
        at, fields = len(self.first), self.head.fields.copy()
        for name, piece in self.rest:
            end = data.find(END, at)
            value = data[at:end]
            if end < 0 or not data.startswith(piece, end) or not _is_plain(value):
                return None
            fields[name] = value
            at = end + len(piece)
        # Half a body, and a second request behind this one, are the parser's.
        if fields.get(LENGTH) != b"%d" % (len(data) - at):
            return None
        return Head(self.head.match, self.head.url, fields), data[at:]


def repeat_of(data: bytes, head: Head, body: bytes) -> Repeat | None:
    """Remember a head that came with its whole body, alone; None if it is not clear what belongs to it."""
    above, end, rest = data.partition(END + END)
    # Data need not begin with its head: the parser passes over a blank line before a request.
    if rest != body or not data.startswith(START):
        return None
    sent = above + end
    cuts = sorted((at, name) for name in MAY_DIFFER if (at := _value_at(sent, name)))
    stops = [sent.index(END, at) for at, _ in cuts]
    pieces = [sent[stop:at] for stop, at in zip([0, *stops], [*(at for at, _ in cuts), len(sent)], strict=True)]
    names = [name for _, name in cuts]
    repeat = Repeat(head, sent, len(data), pieces[0], tuple(zip(names, pieces[1:], strict=True)))
    # A trial on the very data: a head is kept only if its pieces give what the parser gave.
    return repeat if repeat.read_pieces(data) == (head, body) else None


def _value_at(sent: bytes, name: bytes) -> int:
    """Tell where the value of a field begins in a head; 0 if it has none."""
    line = b"\r\n%b:" % name
    at = sent.lower().find(line)
    if at < 0:
        return 0
    at += len(line)
    # More blanks than one stay in the value, so the trial in repeat_of fails and the head is not kept.
    return at + 1 if sent[at : at + 1] == b" " else at
