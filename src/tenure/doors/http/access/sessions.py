"""Logins: a cookie in place of a token, for pages. The ledger keeps a hash of each, beside the tokens.

Kept, and not signed: a signature needs a key that every server has, so it would lie in the ledger, where whoever reads
a backup finds it and makes cookies at will. Of a kept login he finds a hash. And a kept one can be ended.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tenure.doors.http.access.token_store import SESSION, Token, digest_of, token_of
from tenure.doors.http.routing.principal import Visitor
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.holdings.holding_model import Paper
from tenure.service.apply.operations import RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

LASTS_S = 12 * 3600
MOST_OF_A_TOKEN = 20
LOOKED_THROUGH = 1000
# Each removal is a transaction, and a person waits for the login meanwhile.
CLEARED_AT_ONCE = 20

_FORM = re.compile(rb"(([0-9a-f]{16})\.[0-9a-f]{16})\.([0-9a-f]{64})")


class Login(NamedTuple):
    """A login that is good: its name, its token, until when, and what an unsafe request must carry."""

    name: str
    token: Token
    until: datetime
    csrf: str

    def visitor(self, visitor: Visitor) -> Visitor:
        """Return whom it lets in: the one whom its token lets in."""
        return replace(visitor, session=self.name, csrf=self.csrf)


def cookie_name(*, secure: bool) -> str:
    """Name the cookie; browsers take one with the prefix only if it is ours alone and travels encrypted."""
    return "__Host-tenure" if secure else "tenure"


def set_cookie(value: str, *, secure: bool, lasts_s: int = LASTS_S) -> str:
    """Write the header that sets the cookie; an empty one that lasts no time takes it away."""
    flags = "; Secure" if secure else ""
    return f"{cookie_name(secure=secure)}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{flags}"


def read_cookie(headers: Mapping[bytes, bytes], *, secure: bool) -> bytes | None:
    """Find our cookie among those that a browser sends."""
    wanted = cookie_name(secure=secure).encode("ascii")
    for pair in headers.get(b"cookie", b"").split(b";"):
        name, _, value = pair.strip().partition(b"=")
        if name == wanted:
            return value
    return None


def is_cookie(value: bytes) -> bool:
    """Tell whether it has the form of a cookie of ours."""
    return _FORM.fullmatch(value) is not None


def csrf_of(secret: str) -> str:
    """Return what a page must send along with an unsafe request; only who has the cookie can ask for it."""
    return hmac.new(secret.encode("ascii"), b"csrf", hashlib.sha256).hexdigest()


async def begin(ledger: AsyncLedger, token: Token) -> tuple[str, Login]:
    """Begin a login with a token; return the cookie's value. What is overdue of others is cleared away with it."""
    now = datetime.now(UTC)
    until = now + timedelta(seconds=LASTS_S)
    if token.expires is not None:
        until = min(until, token.expires)
    name, secret = f"{token.id}.{secrets.token_hex(8)}", secrets.token_hex(32)
    document = {"sha256": digest_of(secret), "created": now.isoformat(), "until": until.isoformat()}
    await ledger.apply([WritePaper(kind=SESSION, name=name, document=document)])
    # After the write, so that the login that begins is counted among the twenty.
    await _clear_away(ledger, token.id, now)
    return f"{name}.{secret}", Login(name, token, until, csrf_of(secret))


async def _clear_away(ledger: AsyncLedger, token: str, now: datetime) -> None:
    """Remove logins that are past their time, and the oldest of a token that has too many; the next login goes on."""
    known = await ledger.papers(SESSION, limit=LOOKED_THROUGH)
    past = [paper for paper in known if _until(paper) <= now]
    # Read apart, because the first thousand logins need not have all logins of this token.
    own = [paper for paper in await ledger.papers(SESSION, prefix=f"{token}.") if _until(paper) > now]
    own.sort(key=lambda paper: str(paper.document["created"]), reverse=True)
    for paper in [*past, *own[MOST_OF_A_TOKEN:]][:CLEARED_AT_ONCE]:
        await end(ledger, paper.name)


def _until(paper: Paper) -> datetime:
    return datetime.fromisoformat(paper.document["until"])


async def good_login(ledger: AsyncLedger, cookie: bytes) -> Login | None:
    """Return the login that a cookie stands for, if it and its token are still good."""
    read = _FORM.fullmatch(cookie)
    if read is None:
        return None
    name, id, secret = (piece.decode("ascii") for piece in read.groups())
    given = digest_of(secret)
    try:
        paper = await ledger.paper(SESSION, name)
    except NotFound:
        return None
    now = datetime.now(UTC)
    if not hmac.compare_digest(given, paper.document["sha256"]) or _until(paper) <= now:
        return None
    token = await token_of(ledger, id)
    if token is None or not token.is_good(now):
        return None
    return Login(name, token, _until(paper), csrf_of(secret))


async def was_login(ledger: AsyncLedger, cookie: bytes) -> bool:
    """Tell whether a cookie stood for a login once, as far as the ledger still knows."""
    read = _FORM.fullmatch(cookie)
    if read is None:
        return False
    name, _, secret = (piece.decode("ascii") for piece in read.groups())
    try:
        paper = await ledger.paper(SESSION, name)
    except NotFound:
        return False
    return hmac.compare_digest(digest_of(secret), paper.document["sha256"])


async def lives(ledger: AsyncLedger, name: str) -> bool:
    """Tell whether a login has not ended."""
    try:
        return _until(await ledger.paper(SESSION, name)) > datetime.now(UTC)
    except NotFound:
        return False


async def end(ledger: AsyncLedger, name: str) -> None:
    """End a login; again is as good as once."""
    try:
        paper = await ledger.paper(SESSION, name)
        await ledger.apply([RemovePaper(kind=SESSION, name=name, revision=paper.revision)])
    except (NotFound, Conflict):
        return
