"""The short way of plain allocations: ``POST …/networks/NAME:allocate`` for any address that is free.

Most requests that a ledger gets are of this one kind, and the long way (a scope, a task, a call, an application) costs
more than the ledger's own work. The short way differs in how it waits: for a call-back of the batcher, without a task.
What is accepted and what is answered is the long way's: ``read_json``, ``wished_claim`` and ``wire.encode``.
Whatever is unusual about a request, or about its answer, is left to the long way, which begins again and decides alike.
"""

import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from tenure.doors.http.access.shares import Share
from tenure.doors.http.connection.repeated_heads import Head
from tenure.doors.http.observe.request_log import Watch
from tenure.doors.http.routes.holding_routes import wished_claim
from tenure.doors.http.routing.dispatcher import Dispatcher, Match
from tenure.doors.http.routing.endpoint import API, Endpoint
from tenure.doors.http.routing.principal import Visitor
from tenure.doors.http.routing.read_request import JSON, Before, known_request_id, read_json, read_key
from tenure.doors.http.routing.send_response import USUAL, encode, unfinished
from tenure.doors.http.server_state import Site
from tenure.kernel.errors import TenureError
from tenure.kernel.holdings.actor import Asker
from tenure.service.allocator.claim import Claim
from tenure.service.ledger.fast_path import AtOnce, WishInFlight
from tenure.service.read.presenter import holding_of
from tenure.wire.encode import holding
from tenure.wire.problems import problem_of, status_of

PLAIN_PATH = re.compile(rb"%b/networks/[A-Za-z0-9._~-]{1,255}:allocate" % re.escape(API.encode()))
"""Paths in which nothing is encoded, and that have no query."""

# Callers choose the paths that are remembered; without a limit they could fill the memory.
REMEMBERED = 4096

UNUSUAL = frozenset(
    {b"content-encoding", b"cookie", b"expect", b"if-match", b"if-none-match", b"transfer-encoding", b"upgrade"}
)
"""Headers that ask for more."""


class Request(Protocol):
    """A request as it came in, and whoever waits for its answer."""

    head: Head
    body: bytes
    client: tuple[str, int] | None

    def answer(self, head: bytes, body: bytes) -> None:
        """Write an answer: 200, with this head and body."""

    def refuse(self, error: TenureError, body: bytes, request_id: str) -> None:
        """Write a problem, and close."""

    def begin_anew(self, before: Before) -> None:
        """Go the long way, where it is known what was done before."""


class Shortcut:
    """Serves plain allocations of one open site. Cost beside the ledger's work: some 20 µs."""

    def __init__(self, site: Site, endpoints: Sequence[Endpoint]) -> None:
        self._site = site
        self._limits = site.limits
        self._ledger = AtOnce(site.ledger)
        self._dispatcher = Dispatcher(endpoints)
        self._matches: dict[bytes, Match] = {}
        self._under_way: dict[Request, tuple[Watch, Share]] = {}

    def leads_to(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> Head | None:
        """Return the head of a request that may go the short way, if nothing about it is unusual."""
        match = self._match(url)
        if match is None:
            return None
        fields = dict(headers)
        # A header that comes twice is in the dictionary once; only the long way sees both and refuses them.
        if len(fields) != len(headers) or not UNUSUAL.isdisjoint(fields) or fields.get(b"content-type") != JSON:
            return None
        # The long way refuses a request without Host; the short way never refuses.
        if b"host" not in fields:
            return None
        return Head(match, url, fields)

    def _match(self, url: bytes) -> Match | None:
        """Return the route of a path that may go the short way; a look in a dictionary if it did before."""
        known = self._matches.get(url)
        if known is not None or not PLAIN_PATH.fullmatch(url):
            return known
        try:
            match = self._dispatcher.find("POST", url)
        except TenureError:  # such as a name that is two dots
            return None
        if len(self._matches) >= REMEMBERED:
            # Dropping all costs nothing on the way of a known path; an order of use would cost every request.
            self._matches.clear()
        self._matches[url] = match
        return match

    def take(self, request: Request) -> bool:
        """Begin to serve a request; False, and nothing was done, if it must go the long way."""
        began = time.perf_counter()
        head, journal, shares = request.head, self._site.journal, self._site.shares
        request_id = known_request_id(head.fields) or journal.next_id()
        try:
            visitor = self._visitor(request)
            share = None if visitor is None else shares.room_for(visitor.id)
            if visitor is None or share is None:
                return False
            claim = self._claim(request, visitor, request_id)
            # The batcher answers in a later turn of the loop, so the answer finds the request under way.
            if not self._ledger.begin(claim, partial(self._tell, request)):
                return False
        except Exception:  # whatever is wrong with it, the long way says so
            return False
        # Only now, because every `return False` above sends the request the long way, and that way counts it itself.
        shares.begin(share)
        watch = journal.begin("POST", head.url, request.client, request_id, began)
        watch.route, watch.visitor = head.match.endpoint, visitor
        self._under_way[request] = watch, share
        return True

    def give_up(self) -> None:
        """Tell everybody who still waits that the server stops, and that nobody knows what becomes of his wish."""
        for request, (watch, share) in self._under_way.items():
            self._site.shares.end(share)
            watch.error = unfinished()
            watch.status = status_of(watch.error)
            body = encode(problem_of(watch.error, watch.request_id))
            request.refuse(watch.error, body, watch.request_id)
            watch.size = len(body)
            watch.end()
        self._under_way.clear()

    def _visitor(self, request: Request) -> Visitor | None:
        """Return who asks, if he is known and his request is not too large."""
        if len(request.body) > self._limits.body_bytes:
            return None
        return self._site.access.known(request.head.fields, request.head.match)

    def _claim(self, request: Request, visitor: Visitor, request_id: str) -> Claim:
        head = request.head
        wish = read_json(head.match.endpoint.body, request.body, JSON)
        key, asker = read_key(head.fields, visitor.id), Asker(visitor.actor, request_id)
        return wished_claim(head.match.params["network"], wish, key, asker)

    def _tell(self, request: Request, begun: WishInFlight) -> None:
        """Answer a request that was granted what it wants; else the long way finds out what there is to say."""
        # Also for a request that was given up: granted() returns a pick that came to nothing to the view.
        granted, under_way = begun.granted(), self._under_way.pop(request, None)
        if under_way is None:  # it was given up
            return
        watch, share = under_way
        self._site.shares.end(share)  # on the long way it is counted again
        if granted is None:
            # No watch.end() here: the long way writes the one log line of this request.
            self._site.meter.begin_anew()
            if begun.in_doubt() and watch.visitor is not None:
                self._ledger.leave_in_doubt(Asker(watch.visitor.actor, watch.request_id), begun)
            request.begin_anew(Before(watch.request_id, watch.began, in_doubt=begun.in_doubt()))
            return
        self._site.meter.count("shortcuts")
        body = encode(holding(holding_of(*granted)))
        request.answer(USUAL % (len(body), watch.request_id.encode()), body)
        watch.status, watch.size = 200, len(body)
        watch.end()
