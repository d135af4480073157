"""The desk at the entrance: who asks, whether he may, and whether he asks too often."""

import hmac
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from tenure.doors.http.access import sessions
from tenure.doors.http.access.auth_cache import ENDED, Found, Seats
from tenure.doors.http.access.bound_scopes import visitor_of
from tenure.doors.http.access.peer import is_here, is_own_page, is_secure, peer_of
from tenure.doors.http.access.rate_limit import Limiter
from tenure.doors.http.access.sessions import Login
from tenure.doors.http.access.token_store import SESSION, TOKEN, Token, good_token, read_text, token_of
from tenure.doors.http.routing.dispatcher import Match
from tenure.doors.http.routing.principal import Need, Visitor
from tenure.doors.http.routing.read_request import Scope
from tenure.doors.http.settings import Settings
from tenure.kernel.errors import StoreUnavailable
from tenure.kernel.holdings.holding_model import Change
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wire.http_errors import Forbidden, RateLimited, Unauthorised

SAFE = ("GET", "HEAD", "OPTIONS")
FAILURES_PER_S = 1.0
ANYBODY = Visitor("anonymous", "anonymous", read=True, anonymous=True)
BEARER = "bearer "

Headers = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Stranger(Visitor):
    """Somebody at a public route, where he may log in and out: from where, by which cookie, and how it may travel."""

    peer: str = ""
    secure: bool = True
    cookie: bytes | None = field(default=None, repr=False)
    told: bytes = field(default=b"", repr=False)
    """What he sent as X-CSRF-Token."""


class Access:
    """Finds out who asks, and lets nobody do what he may not. Cost for one who was here before: about a microsecond."""

    def __init__(self, ledger: AsyncLedger, settings: Settings) -> None:
        self._ledger = ledger
        self._settings = settings
        self._tokens = Seats(self._look_for_token)
        self._logins = Seats(self._look_for_login)
        per_s = settings.limits.requests_per_s
        self._requests = Limiter(per_s, max(per_s, 1.0)) if per_s else None
        self._failures = Limiter(FAILURES_PER_S, settings.limits.failures)

    def known(self, headers: Headers, match: Match) -> Visitor | None:
        """Return who asks, if he was here a moment ago and may ask this; None if that takes more than a look."""
        given = headers.get(b"authorization")
        # With a limit on requests a second, `identify` must see each request to count it.
        seat = None if given is None or self._requests is not None else self._tokens.known.get(given)
        if seat is None or seat.visitor is None or seat.until <= time.monotonic():
            return None
        need = match.endpoint.need
        # A public route wants a Stranger, with peer and cookie, which `admit` makes.
        if need is Need.PUBLIC:
            return None
        seat.visitor.check(need, match.params.get("network"))
        return seat.visitor

    async def admit(self, scope: Scope, headers: Headers, match: Match) -> Visitor:
        """Return who asks, if he may ask this."""
        need = match.endpoint.need
        if need is Need.PUBLIC:
            return self._stranger(scope, headers)
        visitor = await self.identify(scope, headers)
        visitor.check(need, match.params.get("network"))
        return visitor

    async def admit_monitor(self, scope: Scope, headers: Headers) -> None:
        """Let in whoever may read, to the numbers; while the store is away, too, if he came in lately by a token.

        That is when the numbers are wanted most, and they tell nothing of the ledger then.
        """
        try:
            visitor = await self.identify(scope, headers)
        except StoreUnavailable:
            known = self._tokens.lately(headers.get(b"authorization", b""), time.monotonic())
            if known is None:
                raise
            visitor = known
        visitor.check(Need.READ, None)

    async def identify(self, scope: Scope, headers: Headers) -> Visitor:
        """Return who asks, or refuse him if nobody knows him or he asks too often."""
        now = time.monotonic()
        given = headers.get(b"authorization")
        # A token comes first: a wrong token beside a good cookie is refused.
        if given is not None:
            seat = self._tokens.known.get(given)
            visitor = seat.visitor if seat is not None and seat.until > now else None
            if visitor is None:
                visitor = await self._by_token(given, scope, now)
        else:
            visitor = await self._without_token(scope, headers, now)
        if self._requests is not None and (wait_s := self._requests.take(visitor.id, now)):
            told = f"more than {self._settings.limits.requests_per_s:g} requests a second by {visitor.name!r}"
            raise RateLimited(told, after_s=wait_s)
        return visitor

    async def still_good(self, visitor: Visitor) -> bool:
        """Tell whether somebody who was let in before would be let in now: for answers that go on for long."""
        if visitor.anonymous:
            return True
        # From the ledger: what the cache knows may be a second and a half old.
        token = await token_of(self._ledger, visitor.id)
        if token is None or not token.is_good(datetime.now(token.created.tzinfo)):
            return False
        return visitor.session is None or await sessions.lives(self._ledger, visitor.session)

    def hear(self, change: Change) -> None:
        """Look again at a token of which the log tells."""
        if change.verb.startswith("paper.") and change.details.get("kind") in (TOKEN, SESSION):
            # The name of a login begins with its token's id.
            self.forget(str(change.details["name"]).partition(".")[0])
        elif change.verb.startswith("network."):
            self.forget_names()

    def forget(self, token: str | None = None) -> None:
        """Look again at whoever comes next; with a token, only at those who come by it."""
        self._tokens.forget(token)
        self._logins.forget(token)

    def forget_names(self) -> None:
        """Look again at whoever comes by a token for some networks: these may be called otherwise now, or be gone."""
        self._tokens.forget_names()
        self._logins.forget_names()

    async def _by_token(self, given: bytes, scope: Scope, now: float) -> Visitor:
        text = _bearer(given)
        # A text that is no token is never looked up in the ledger, but it counts as a guess.
        formed = text is not None and read_text(text) is not None
        return await self._looked_up(self._tokens, given if formed else None, scope, now)

    async def _without_token(self, scope: Scope, headers: Headers, now: float) -> Visitor:
        cookie = sessions.read_cookie(headers, secure=is_secure(scope, headers, self._settings))
        visitor = None if cookie is None else await self._by_cookie(cookie, scope, now)
        if visitor is not None:
            _check_page(scope, headers, visitor)
            return visitor
        if self._settings.anonymous and is_here(scope, headers):
            return ANYBODY
        raise _unknown()

    async def _by_cookie(self, cookie: bytes, scope: Scope, now: float) -> Visitor | None:
        """Return who is logged in; a cookie that is no longer good is as good as none."""
        seat = self._logins.known.get(cookie)
        if seat is not None and seat.until > now:
            return seat.visitor
        try:
            return await self._looked_up(self._logins, cookie if sessions.is_cookie(cookie) else None, scope, now)
        except Unauthorised:
            return None

    async def _looked_up(self, seats: Seats, given: bytes | None, scope: Scope, now: float) -> Visitor:
        """Ask the ledger, unless this address was wrong so often that it must wait first."""
        if given is not None and seats.needs_no_count(given):
            visitor = None if seats.wrong(given, now) else await seats.find(given)
        else:
            async with self._suspected(peer_of(scope), now):
                # A wrong token that comes again is one guess more, but costs the ledger nothing.
                wrong = given is None or seats.wrong(given, now)
                visitor = None if wrong or given is None else await seats.find(given)
                # A token that was good once is no guess: the block ends without an error, which gives the count back.
                if visitor is None and not (given is not None and seats.was_good(given)):
                    raise _unknown()
        if visitor is None:
            raise _unknown()
        return visitor

    @asynccontextmanager
    async def _suspected(self, peer: str, now: float) -> AsyncIterator[None]:
        """Count a failure beforehand, so that many at once are counted, too; it is taken back unless it was one."""
        if wait_s := self._failures.take(peer, now):
            raise RateLimited("too many wrong tokens from this address", after_s=wait_s)
        try:
            yield
        except Unauthorised:
            # This is the very failure that was counted beforehand.
            raise
        except BaseException:
            self._failures.give_back(peer, now)
            raise
        self._failures.give_back(peer, now)

    async def _look_for_token(self, given: bytes) -> Found | None:
        token = await good_token(self._ledger, _bearer(given) or "")
        return None if token is None else (await visitor_of(self._ledger, token), token.expires)

    async def _look_for_login(self, cookie: bytes) -> Found | None:
        login = await sessions.good_login(self._ledger, cookie)
        if login is not None:
            return login.visitor(await visitor_of(self._ledger, login.token)), login.until
        return ENDED if await sessions.was_login(self._ledger, cookie) else None

    def _stranger(self, scope: Scope, headers: Headers) -> Stranger:
        # Public routes are logging in and out: no page of another host may do either for a browser.
        if not is_own_page(headers):
            raise _foreign_page()
        secure = is_secure(scope, headers, self._settings)
        return Stranger(
            "public",
            "nobody",
            anonymous=True,
            peer=peer_of(scope),
            secure=secure,
            cookie=sessions.read_cookie(headers, secure=secure),
            told=headers.get(b"x-csrf-token", b""),
        )

    async def log_in(self, stranger: Stranger, text: str, request_id: str) -> tuple[str, Login]:
        """Begin a login with a token; return the cookie to set."""
        now = time.monotonic()
        # A wrong token at the login is a guess like any other.
        async with self._suspected(stranger.peer, now):
            # Read from the ledger, not from the cache: a login lasts for hours.
            token: Token | None = await good_token(self._ledger, text)
            if token is None:
                raise _unknown()
        asked = self._ledger.asked_by(token.visitor().actor, request_id=request_id)
        value, login = await sessions.begin(asked, token)
        return sessions.set_cookie(value, secure=stranger.secure), login

    async def log_out(self, stranger: Stranger, request_id: str) -> str:
        """End the login of a cookie, if it is still one; return what takes the cookie away."""
        login = None if stranger.cookie is None else await sessions.good_login(self._ledger, stranger.cookie)
        if login is not None:
            _check_told(stranger.told, login.csrf)
            asked = self._ledger.asked_by(login.token.visitor().actor, request_id=request_id)
            await sessions.end(asked, login.name)
            # At once in this process; the others hear of it from the log.
            self.forget(login.token.id)
        return sessions.set_cookie("", secure=stranger.secure, lasts_s=0)


def _bearer(given: bytes) -> str | None:
    """Read the token out of an Authorization header, if it holds one."""
    text = given.decode("latin-1")
    return text[len(BEARER) :].strip() if text[: len(BEARER)].lower() == BEARER else None


def _check_page(scope: Scope, headers: Headers, visitor: Visitor) -> None:
    """Refuse what a page of somebody else makes a browser send: it has the cookie, but not what only we told."""
    if scope["method"] in SAFE:
        return
    if not is_own_page(headers):
        raise _foreign_page()
    _check_told(headers.get(b"x-csrf-token", b""), visitor.csrf or "")


def _check_told(told: bytes, csrf: str) -> None:
    if not hmac.compare_digest(told, csrf.encode("ascii")):
        raise Forbidden("X-CSRF-Token: who is logged in by a cookie must send what GET /api/v1/self tells as csrf")


def _foreign_page() -> Forbidden:
    return Forbidden("Origin: the request comes from a page of another host")


def _unknown() -> Unauthorised:
    """Say one thing whatever is wrong, so that nobody learns which tokens there are or were."""
    return Unauthorised("a good token is needed: Authorization: Bearer tnr_…")
