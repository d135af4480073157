"""Routes as data: what each takes, what it answers, who may ask. The dispatcher and the OpenAPI document read them."""

import enum
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tenure.doors.http.routing.principal import Need, Visitor
from tenure.kernel.errors import KeyReused
from tenure.service.ledger.async_ledger import AsyncLedger

API = "/api/v1"


class Rests(enum.Enum):
    """Which reading of a thing a change rests on."""

    NOTHING = "nothing"
    TELLS = "the answer carries an ETag"
    NEEDS = "If-Match is needed"


@dataclass(slots=True)
class Call:
    """One request that was let in: who asks, what for, and what the answer's head is to say."""

    site: Any
    ledger: AsyncLedger
    visitor: Visitor
    params: Mapping[str, str]
    query: Any = None
    body: Any = None
    key: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    request_id: str = ""
    head: dict[str, str] = field(default_factory=dict)
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    """What the request's head says; only streams are told."""

    def own_words(self, error: KeyReused) -> KeyReused:
        """Tell of a key as whoever asks wrote it: in the ledger his token's id stands before it."""
        return KeyReused(error.key.removeprefix(f"{self.visitor.id}/"))


Streaming = Callable[[Any, Any], Awaitable[None]]
"""What a route that streams returns; it is called with receive and send."""

Handler = Callable[[Call], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One route: a method on a path."""

    method: str
    path: str
    handler: Handler
    section: str
    summary: str
    need: Need
    answer: Any = None
    body: Any = None
    query: type[msgspec.Struct] | None = None
    status: int = 200
    rests: Rests = Rests.NOTHING
    streams: bool = False
    waits: bool = False
    """A request with ``wait_s`` may take long; it ends when whoever asked goes away."""

    apart: bool = False
    """Worked on beside the server's loop: it may compute for long."""

    keyed: bool = True
    """A POST takes an idempotency key; without, it may be repeated as it is, and tells what is so now."""

    @property
    def edits(self) -> bool:
        """Return whether it may edit a plan: only an admin may. (``apply`` looks at its operations by itself.)"""
        return self.method != "GET" and self.need is Need.ADMIN

    @property
    def name(self) -> str:
        """Name the route: what clients that are made from the document call it."""
        return self.handler.__name__


class RouteSection:
    """The routes of one noun, in the order they are written."""

    def __init__(self, name: str, about: str, *, apart: bool = False) -> None:
        self.name = name
        self.about = about
        self.apart = apart
        self.endpoints: list[Endpoint] = []

    def route(self, method: str, path: str, *, need: Need, **more: Any) -> Callable[[Handler], Handler]:
        """Make a function the handler of a route; its docstring is the route's summary."""

        def taken(handler: Handler) -> Handler:
            summary = (handler.__doc__ or "").strip()
            self.endpoints.append(Endpoint(method, path, handler, self.name, summary, need, apart=self.apart, **more))
            return handler

        return taken
