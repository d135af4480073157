"""Tokens, and logins with them."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from tenure.doors.http.access import token_store as kept
from tenure.doors.http.access.bound_scopes import with_names_now
from tenure.doors.http.access.token_store import Token, TokenRequest
from tenure.doors.http.routing.endpoint import Call, RouteSection
from tenure.doors.http.routing.principal import Need
from tenure.wire import responses
from tenure.wire.responses import KnownToken, NewToken, ScopeText

tokens = RouteSection("tokens", "Who may come in, and for what.")

Expiry = Annotated[datetime, Meta(tz=True, description="When it ends; null: never.", examples=["2030-01-01T00:00:00Z"])]
Text = Annotated[str, Meta(description="The whole token.", max_length=200, examples=["tnr_0123456789abcdef_…"])]


class TokenBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a new token is to be."""

    name: Annotated[str, Meta(min_length=1, max_length=100, examples=["ops"])]
    scopes: Annotated[list[ScopeText], Meta(min_length=1, max_length=100)]
    expires: Expiry | None = None
    allow_missing: Annotated[bool, Meta(description="Scopes may name networks that do not exist yet.")] = False


class Revocation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An empty body."""


class WhichTokens(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which tokens."""

    revoked: Annotated[bool, Meta(description="Those that were revoked, too.")] = False


class LoginBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The token to log in with."""

    token: Text


class LoggedIn(responses.Shape, frozen=True, kw_only=True):
    """Who is logged in, until when, and what his unsafe requests must carry as X-CSRF-Token."""

    name: str
    until: datetime
    csrf: str


def written(token: Token) -> KnownToken:
    """Write a token as it may be seen."""
    return KnownToken(**_fields(token))  # type: ignore[arg-type]


def _fields(token: Token) -> dict[str, object]:
    fields: dict[str, object] = {name: getattr(token, name) for name in KnownToken.__struct_fields__}
    return {**fields, "scopes": list(token.scopes)}


@tokens.route("GET", "/tokens", need=Need.ADMIN, query=WhichTokens, answer=responses.Listing[KnownToken])
async def list_tokens(call: Call) -> responses.Listing[KnownToken]:
    """Read the tokens there are, in the order they were made."""
    found = await kept.all_tokens(call.ledger)
    wanted = [token for token in found if call.query.revoked or token.revoked is None]
    return responses.Listing(items=[written(token) for token in await with_names_now(call.ledger, wanted)])


@tokens.route("POST", "/tokens", need=Need.ADMIN, body=TokenBody, answer=NewToken, status=201)
async def add_token(call: Call) -> NewToken:
    """Make a token; the answer tells it, this once. Names are unique among tokens that are good.

    A scope on a network means that network, whatever it will be called, and none that comes to have its name later.
    A network that does not exist is refused, unless allow_missing is said: then the first one of that name is meant.

    Repeated under its Idempotency-Key, the request makes no second token and is answered without the text: nobody
    keeps it. A token whose text was lost is revoked, and another made.
    """
    body = call.body
    wish = TokenRequest(body.name, body.scopes, body.expires, body.allow_missing)
    made = await kept.add_token(call.ledger, wish, by=call.visitor.actor, key=call.key)
    [shown] = await with_names_now(call.ledger, [made.token])
    return NewToken(**_fields(shown), token=made.text)  # type: ignore[arg-type]


@tokens.route("GET", "/tokens/{token}", need=Need.ADMIN, answer=KnownToken)
async def get_token(call: Call) -> KnownToken:
    """Read a token, found by its id, or by its name if it is not revoked."""
    [shown] = await with_names_now(call.ledger, [await kept.find_token(call.ledger, call.params["token"])])
    return written(shown)


@tokens.route("POST", "/tokens/{token}:revoke", need=Need.ADMIN, body=Revocation, answer=KnownToken, keyed=False)
async def revoke_token(call: Call) -> KnownToken:
    """Close the door to a token, and to all who logged in with it; every server knows within two seconds."""
    ended = await kept.revoke_token(call.ledger, call.params["token"], by=call.visitor.actor)
    # At once on this server; the others hear of it from the log, or look again within two seconds.
    call.site.access.forget(ended.id)
    [shown] = await with_names_now(call.ledger, [ended])
    return written(shown)


@tokens.route("POST", "/login", need=Need.PUBLIC, body=LoginBody, answer=LoggedIn, keyed=False)
async def login(call: Call) -> LoggedIn:
    """Log in with a token: sets a cookie that pages use in place of it, for twelve hours at most."""
    cookie, made = await call.site.access.log_in(call.visitor, call.body.token, call.request_id)
    call.head["set-cookie"] = cookie
    return LoggedIn(name=made.token.name, until=made.until, csrf=made.csrf)


@tokens.route("POST", "/logout", need=Need.PUBLIC, keyed=False)
async def logout(call: Call) -> None:
    """Log out: ends the login and takes the cookie away."""
    call.head["set-cookie"] = await call.site.access.log_out(call.visitor, call.request_id)
