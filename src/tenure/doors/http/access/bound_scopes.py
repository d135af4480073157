"""Which networks the scopes of a token mean: each means the network that had the name when the scope was bound.

A scope is bound when its token is made. One of a network that did not exist then, and one of a token from before scopes
were bound, is bound to the first network that has its name when a server looks: at its start, and whenever the token is
used. Numbers of networks are never given twice, so a bound scope follows its network through every rename, and means
nothing any more when the network is removed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tenure.doors.http.access.scopes import ALLOCATE, named_networks
from tenure.doors.http.access.token_store import TOKEN, Token, all_tokens, document_of, number_of, token_of
from tenure.doors.http.routing.principal import Visitor
from tenure.kernel.errors import Conflict
from tenure.kernel.holdings.holding_model import NetworkId
from tenure.service.apply.operations import WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

BINDER = "server"
"""On whose word a scope is bound after its token was made, as the log tells it."""

REMOVED = " (removed)"
WAITING = " (no such network yet)"


async def visitor_of(ledger: AsyncLedger, token: Token) -> Visitor:
    """Return whom a token lets in, with the networks of its scopes as they are called now."""
    token = await bind(ledger, token)
    return token.visitor((await _names_now(ledger, token.networks)).values())


async def bind(ledger: AsyncLedger, token: Token) -> Token:
    """Bind the scopes of a token that are not bound and whose network is there; return the token as it is then."""
    unbound = named_networks(token.scopes) - token.networks.keys()
    found = {name: number for name in sorted(unbound) if (number := await number_of(ledger, name)) is not None}
    if not found:
        return token
    bound = replace(token, networks={**token.networks, **found})
    write = WritePaper(kind=TOKEN, name=token.id, document=document_of(bound), revision=token.revision)
    try:
        await ledger.asked_by(BINDER).apply([write])
    except Conflict:  # another server was faster, or the token was revoked; the ledger knows which
        return await token_of(ledger, token.id) or token
    return replace(bound, revision=token.revision + 1)


async def bind_all(ledger: AsyncLedger) -> None:
    """Bind what can be bound of all tokens that are not revoked: a server does it when it starts."""
    for token in await all_tokens(ledger):
        if token.revoked is None:
            await bind(ledger, token)


async def with_names_now(ledger: AsyncLedger, tokens: Sequence[Token]) -> list[Token]:
    """Return tokens as they are shown: scopes by the present names of their networks, and what is odd about them."""
    if not any(named_networks(token.scopes) for token in tokens):
        return list(tokens)
    names = {network.id: network.name for network in await ledger.networks()}
    return [replace(token, scopes=tuple(_scopes_now(token, names))) for token in tokens]


def _scopes_now(token: Token, names: Mapping[NetworkId, str]) -> Iterable[str]:
    for scope in token.scopes:
        name = scope.removeprefix(ALLOCATE)
        if name not in named_networks([scope]):
            yield scope
        elif name not in token.networks:
            yield scope + WAITING
        elif token.networks[name] in names:
            yield ALLOCATE + names[token.networks[name]]
        else:
            yield scope + REMOVED


async def _names_now(ledger: AsyncLedger, bound: Mapping[str, NetworkId]) -> dict[NetworkId, str]:
    """Return the present names of networks. Cost: one reading each, and one of the plan if any has another name now."""
    found = {number: name for name, number in bound.items() if await number_of(ledger, name) == number}
    wanted = set(bound.values()) - found.keys()
    if wanted:
        found |= {network.id: network.name for network in await ledger.networks() if network.id in wanted}
    return found
