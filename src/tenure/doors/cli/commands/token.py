"""``tenure token``: who may use a server of this ledger, and for what. In the ledger itself, or asked of a server."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from tenure.doors.cli.framework.click_base import noun
from tenure.doors.cli.output.json_documents import Document, time_text
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session
from tenure.doors.http.access import token_store as kept
from tenure.doors.http.access.bound_scopes import with_names_now
from tenure.doors.http.access.token_store import Token, TokenRequest
from tenure.kernel.errors import Conflict
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.wire.responses import KnownToken

BY = "command line"
SPANS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
MOST_DAYS = 100 * 366

COLUMNS = {
    "NAME": "name",
    "SCOPES": "scopes",
    "CREATED": "created",
    "BY": "created_by",
    "EXPIRES": "expires",
    "REVOKED": "revoked",
    "ID": "id",
}

_SPAN = re.compile(r"(\d{1,9})([smhdw])")


def read_expiry(context: click.Context, parameter: click.Parameter, text: str | None) -> datetime | None:
    """Read when a token ends: in a time from now, or at a time."""
    if text is None:
        return None
    span = _SPAN.fullmatch(text)
    try:
        if span is None:
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither like 30d nor like 2030-01-31", context, parameter) from None
    # Compared as numbers: a timedelta has room for fewer seconds than the text can name.
    length_s = int(span[1]) * SPANS_S[span[2]]
    if length_s > MOST_DAYS * SPANS_S["d"]:
        raise click.BadParameter(f"{text!r} is more than a century", context, parameter)
    return datetime.now(UTC) + timedelta(seconds=length_s)


@noun("token")
def token() -> None:
    """Add, list and revoke the tokens by which servers of this ledger let somebody in.

    For example:
      tenure token list
    """


@token.command("add")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    metavar="SCOPE",
    multiple=True,
    required=True,
    help="What it may do: read, allocate:NETWORK, allocate:* or admin; repeat for more.",
)
@click.option(
    "--expires",
    metavar="WHEN",
    callback=read_expiry,
    help="When it ends: in 30d (s, m, h, d, w), or at a time; else never.",
)
@click.option("--allow-missing", is_flag=True, help="Scopes may name networks that do not exist yet.")
@pass_session
def add(session: Session, name: str, scopes: tuple[str, ...], expires: datetime | None, allow_missing: bool) -> None:
    """Make a token and print it, this once: the ledger keeps only a hash of it.

    Whoever may allocate on a network may also read that network; admin may do everything. The scope means the
    network, whatever it will be called. With --allow-missing it means the first network that has the name.

    For example:
      tenure token add deploy --scope read --scope allocate:net1 --expires 30d
    """
    wish = TokenRequest(name, scopes, expires, allow_missing)
    made, text = session.run(lambda ledger: _add(session, ledger, wish))
    if text is None:
        raise Conflict(f"token {name!r} was made, but the answer that told it was lost; revoke it and make another")
    if not session.json:
        ending = "" if made.expires is None else f" until {time_text(made.expires.replace(microsecond=0))}"
        # To standard error: standard output has the token alone, for scripts.
        click.echo(f"token {name} may {', '.join(made.scopes)}{ending}; it is shown this once:", err=True)
    answer(session, {**document(made), "token": text}, text)


async def _add(session: Session, ledger: AsyncLedger, wish: TokenRequest) -> "tuple[Token | KnownToken, str | None]":
    if session.named_server is None:
        done = await kept.add_token(ledger.asked_by(BY), wish, by=BY)
        [shown] = await with_names_now(ledger, [done.token])
        return shown, done.text
    from tenure.client import remote_tokens

    made = await remote_tokens.add_token(ledger, wish.name, wish.scopes, wish.expires, allow_missing=wish.allow_missing)
    return made, made.token


@token.command("list")
@click.option("--revoked", is_flag=True, help="Those that were revoked, too.")
@pass_session
def list_tokens(session: Session, revoked: bool) -> None:
    """List the tokens, in the order they were made; their secrets are known to nobody here.

    For example:
      tenure token list --revoked
    """
    found = session.run(lambda ledger: _all(session, ledger))
    documents = [document(each) for each in found if revoked or each.revoked is None]
    nothing = "no tokens; `tenure token add NAME --scope admin` makes one, and so does the first `tenure serve`"
    table(session, documents, COLUMNS, nothing=nothing)


async def _all(session: Session, ledger: AsyncLedger) -> "Sequence[Token | KnownToken]":
    if session.named_server is None:
        return await with_names_now(ledger, await kept.all_tokens(ledger))
    from tenure.client import remote_tokens

    return await remote_tokens.all_tokens(ledger)


@token.command("revoke")
@click.argument("token", metavar="NAME|ID|TOKEN")
@pass_session
def revoke(session: Session, token: str) -> None:
    """Close the door to a token, and to all who logged in with it; every server knows within two seconds.

    A token that you came upon where it should not be is revoked by its whole text.

    For example:
      tenure token revoke old-laptop
    """
    read = kept.read_text(token)
    ident = token if read is None else read[0]  # a server writes down which path was asked for
    ended = session.run(lambda ledger: _revoke(session, ledger, ident))
    answer(session, document(ended), f"revoked token {ended.name} ({ended.id})")


async def _revoke(session: Session, ledger: AsyncLedger, ident: str) -> "Token | KnownToken":
    if session.named_server is None:
        [ended] = await with_names_now(ledger, [await kept.revoke_token(ledger.asked_by(BY), ident, by=BY)])
        return ended
    from tenure.client import remote_tokens

    return await remote_tokens.revoke_token(ledger, ident)


def document(made: "Token | KnownToken") -> Document:
    """Write a token as it may be seen."""
    return {
        "id": made.id,
        "name": made.name,
        "scopes": list(made.scopes),
        "created": time_text(made.created),
        "created_by": made.created_by,
        "expires": time_text(made.expires),
        "revoked": time_text(made.revoked),
        "revoked_by": made.revoked_by,
    }
