"""Tokens as the ledger keeps them: papers that hold a hash. The secret is told once, to whoever asked for the token.

``tnr_`` + an id that is no secret + ``_`` + 256 random bits. A plain SHA-256 is enough for those: there is no word in
them to guess, so nothing is won by making each guess slow.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tenure.doors.http.access.scopes import ALLOCATE, named_networks, read_scopes
from tenure.doors.http.routing.principal import ANY_NETWORK, Need, Visitor
from tenure.kernel.errors import AlreadyExists, Conflict, Invalid, KeyReused, NotFound
from tenure.kernel.holdings.holding_model import NetworkId, Paper
from tenure.kernel.names import check_name
from tenure.service.apply.operations import Operation, RemovePaper, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

TOKEN = "rest.token"  # noqa: S105 - the kind of a paper
NAME = "rest.token-name"
SESSION = "rest.session"
MOST_NAME = 100
TRIES = 5

_FORM = re.compile(r"tnr_([0-9a-f]{16})_([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Token:
    """Who may come in. ``digest`` is all that is kept of the secret."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created: datetime
    created_by: str
    digest: str = field(repr=False)
    expires: datetime | None = None
    revoked: datetime | None = None
    revoked_by: str | None = None
    revision: int = 0
    networks: Mapping[str, NetworkId] = field(default_factory=dict)
    """Which network each scope means that names one; a scope that is not here is not bound (``bound_scopes``)."""

    def is_good(self, now: datetime) -> bool:
        """Tell whether it opens the door."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    @property
    def is_admin(self) -> bool:
        """Tell whether it may do everything."""
        return Need.ADMIN.value in self.scopes

    def visitor(self, networks: Iterable[str] = ()) -> Visitor:
        """Return whom it lets in, where the networks that its scopes mean have these names now."""
        everywhere = {ANY_NETWORK} if ALLOCATE + ANY_NETWORK in self.scopes else set()
        return Visitor(
            self.id,
            self.name,
            read=Need.READ.value in self.scopes,
            admin=self.is_admin,
            networks=frozenset({*networks, *everywhere}),
            numbers=frozenset(self.networks.values()),
        )


class Made(NamedTuple):
    """A token, and its text while it is known: None where the same request was answered before."""

    token: Token
    text: str | None


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What a new token is to be; checked at birth. ``allow_missing``: its scopes may name networks that come later."""

    name: str
    scopes: Sequence[str]
    expires: datetime | None = None
    allow_missing: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", read_scopes(self.scopes))
        if len(check_name(self.name, field="name")) > MOST_NAME:
            raise Invalid(f"name: at most {MOST_NAME} characters, not {len(self.name)}", field="name")
        if self.expires is not None:
            object.__setattr__(self, "expires", _in_utc(self.expires))


def _in_utc(expires: datetime) -> datetime:
    if expires.tzinfo is None:
        raise Invalid("expires: a time zone is needed", field="expires")
    try:
        return expires.astimezone(UTC)
    except OverflowError:  # such as the last hour of the year 9999, west of Greenwich
        raise Invalid(f"expires: {expires.isoformat()} is beyond the year 9999 in UTC", field="expires") from None


def read_text(text: str) -> tuple[str, str] | None:
    """Read a token's text as its id and its secret, if it is one."""
    found = _FORM.fullmatch(text)
    return None if found is None else (found[1], found[2])


def digest_of(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def id_for(asker: str, key: str) -> str:
    """Return the id of the token that is made under an idempotency key: the same for the same request."""
    return hashlib.sha256(f"{asker}\0{key}".encode()).hexdigest()[:16]


async def add_token(
    ledger: AsyncLedger, wish: TokenRequest, *, by: str, key: str | None = None, beside: Sequence[Operation] = ()
) -> Made:
    """Make a token. Under a key it is made once: its id comes from the key, and the secret is in no second answer.

    What is to be done ``beside`` is done in the same transaction.
    """
    id = secrets.token_hex(8) if key is None else id_for(by, key)
    known = None if key is None else await token_of(ledger, id)
    if known is not None:
        return Made(_same(known, wish, key), None)
    now = datetime.now(UTC)
    # Only of a new token: the same request may come again after the token's end, and gets its answer above.
    if wish.expires is not None and wish.expires <= now:
        raise Invalid(f"expires: {wish.expires.isoformat()} is past", field="expires")
    secret = secrets.token_hex(32)
    networks = await _networks_of(ledger, wish)
    made = Token(id, wish.name, tuple(wish.scopes), now, by, digest_of(secret), wish.expires, networks=networks)
    try:
        # Inside the try, too: this very request, sent twice, may have taken the name, and then its token is the answer.
        mark = await _mark(ledger, wish.name, id, now)
        await ledger.apply([WritePaper(kind=TOKEN, name=id, document=document_of(made)), mark, *beside])
    except Conflict:  # the same request, or another token of that name, was faster
        known = await token_of(ledger, id)
        if known is None:
            raise _taken(wish.name) from None
        return Made(_same(known, wish, key), None)
    return Made(replace(made, revision=1), f"tnr_{id}_{secret}")


async def _networks_of(ledger: AsyncLedger, wish: TokenRequest) -> dict[str, NetworkId]:
    """Return which networks the scopes of a new token mean; one that is not there is refused unless that was asked."""
    found: dict[str, NetworkId] = {}
    for name in sorted(named_networks(wish.scopes)):
        number = await number_of(ledger, name)
        if number is not None:
            found[name] = number
        elif not wish.allow_missing:
            text = f"scopes: there is no network {name!r}; a scope for one that comes later must be asked for as such"
            raise Invalid(text, field="scopes", case="missing_network")
    return found


async def number_of(ledger: AsyncLedger, network: str) -> NetworkId | None:
    """Return the number of the network that has a name now, if there is one; it keeps it through every rename."""
    try:
        return (await ledger.network(network)).id
    except NotFound:
        return None


def _same(known: Token, wish: TokenRequest, key: str | None) -> Token:
    if (known.name, known.scopes, known.expires) != (wish.name, wish.scopes, wish.expires):
        raise KeyReused(key or "")
    return known


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists("token", name, hint="revoke it, or take another name", field="name")


async def _mark(ledger: AsyncLedger, name: str, id: str, now: datetime) -> Operation:
    """Return what keeps a name for one token; that of a token which has expired is taken over."""
    known = await _paper(ledger, NAME, name)
    if known is not None:
        holder = await token_of(ledger, known.document["token"])
        if holder is not None and holder.is_good(now):
            raise _taken(name)
    return WritePaper(kind=NAME, name=name, document={"token": id}, revision=0 if known is None else known.revision)


async def token_of(ledger: AsyncLedger, id: str) -> Token | None:
    """Read a token by its id, whatever became of it."""
    paper = await _paper(ledger, TOKEN, id)
    return None if paper is None else _read(paper)


async def all_tokens(ledger: AsyncLedger) -> list[Token]:
    """Read every token there ever was, in order of creation."""
    found = [_read(paper) for paper in await ledger.papers(TOKEN)]
    return sorted(found, key=lambda token: (token.created, token.id))


async def find_token(ledger: AsyncLedger, ident: str) -> Token:
    """Find a token by its id, or one that is not revoked by its name; or by its text, where somebody came upon it."""
    read = read_text(ident)
    if read is not None:
        ident = read[0]  # never tell the rest of it in an error
    found = await token_of(ledger, check_name(ident, field="token"))
    if found is None and (mark := await _paper(ledger, NAME, ident)) is not None:
        found = await token_of(ledger, mark.document["token"])
    if found is None:
        raise NotFound("token", ident)
    return found


async def good_token(ledger: AsyncLedger, text: str) -> Token | None:
    """Return the token that a text is, if it opens the door."""
    read = read_text(text)
    if read is None:
        return None
    id, secret = read
    token = await token_of(ledger, id)
    given = digest_of(secret)
    # One way for a wrong secret and for an id that is not there, so that neither can be told by the time it takes.
    fits = hmac.compare_digest(given, given[::-1] if token is None else token.digest)
    return token if token is not None and fits and token.is_good(datetime.now(UTC)) else None


async def revoke_token(ledger: AsyncLedger, ident: str, *, by: str) -> Token:
    """Close the door to a token and to all who logged in with it; again is as good as once."""
    # From here on by id: between two tries the name may pass to another token.
    id = (await find_token(ledger, ident)).id
    for tries_left in reversed(range(TRIES)):
        token = await find_token(ledger, id)
        if token.revoked is not None:
            return token
        ended = replace(token, revoked=datetime.now(UTC), revoked_by=by)
        write = WritePaper(kind=TOKEN, name=token.id, document=document_of(ended), revision=token.revision)
        try:
            await ledger.apply([write, *await _end_of_marks(ledger, token)])
        except (Conflict, NotFound):
            if not tries_left:
                raise
            continue  # somebody logged in or out, or revoked it, in this moment
        return replace(ended, revision=token.revision + 1)
    raise AssertionError("unreachable")


async def _end_of_marks(ledger: AsyncLedger, token: Token) -> list[Operation]:
    mark = await _paper(ledger, NAME, token.name)
    # The name of an expired token may belong to another token by now; then the mark stays.
    gone = [] if mark is None or mark.document["token"] != token.id else [mark]
    gone += await ledger.papers(SESSION, prefix=f"{token.id}.")
    return [RemovePaper(kind=paper.kind, name=paper.name, revision=paper.revision) for paper in gone]


async def _paper(ledger: AsyncLedger, kind: str, name: str) -> Paper | None:
    try:
        return await ledger.paper(kind, name)
    except NotFound:
        return None


def document_of(token: Token) -> Mapping[str, Any]:
    """Return what the ledger keeps of a token."""
    return {
        "name": token.name,
        "scopes": list(token.scopes),
        "networks": dict(token.networks),
        "sha256": token.digest,
        "created": token.created.isoformat(),
        "created_by": token.created_by,
        "expires": None if token.expires is None else token.expires.isoformat(),
        "revoked": None if token.revoked is None else token.revoked.isoformat(),
        "revoked_by": token.revoked_by,
    }


def _read(paper: Paper) -> Token:
    said = paper.document
    return Token(
        paper.name,
        said["name"],
        tuple(said["scopes"]),
        datetime.fromisoformat(said["created"]),
        said["created_by"],
        said["sha256"],
        _moment(said["expires"]),
        _moment(said["revoked"]),
        said["revoked_by"],
        paper.revision,
        # Tokens from before scopes were bound have no networks.
        said.get("networks", {}),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
