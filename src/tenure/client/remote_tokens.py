"""Tokens, asked of a server."""

import re
from collections.abc import Sequence
from datetime import datetime

from tenure.client.remote_ledger import RemoteLedger
from tenure.client.transport import Transport, segment
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wire import responses
from tenure.wire.responses import KnownToken, NewToken

_TEXT = re.compile(r"\s*tnr_([0-9a-f]{16})_")
"""How a token's text begins."""


async def add_token(
    ledger: AsyncLedger,
    name: str,
    scopes: Sequence[str],
    expires: datetime | None = None,
    *,
    allow_missing: bool = False,
) -> NewToken:
    """Have a server make a token."""
    # Said only where it is wanted, so that an older server takes all other requests.
    more = {"allow_missing": True} if allow_missing else {}
    body = {"name": name, "scopes": list(scopes), "expires": expires, **more}
    made: NewToken = await _servers(ledger).ask("POST", "/tokens", NewToken, body=body)
    return made


async def all_tokens(ledger: AsyncLedger) -> list[KnownToken]:
    """Ask a server for every token there ever was, in order of creation."""
    found: responses.Listing[KnownToken] = await _servers(ledger).ask(
        "GET", "/tokens", responses.Listing[KnownToken], query={"revoked": "true"}
    )
    return found.items


async def revoke_token(ledger: AsyncLedger, ident: str) -> KnownToken:
    """Have a server close the door to a token, found by its id, its name, or its text, of which only the id is sent."""
    read = _TEXT.match(ident)
    named = ident if read is None else read[1]  # paths are written to logs, here and on the way
    ended: KnownToken = await _servers(ledger).ask("POST", f"/tokens/{segment(named)}:revoke", KnownToken, body={})
    return ended


def _servers(ledger: AsyncLedger) -> Transport:
    assert isinstance(ledger._end, RemoteLedger)
    return ledger._end.transport
