"""Idempotency keys: what is kept of an answer, and how the same request gets it again."""

import json
from hashlib import blake2b
from typing import Any

from tenure.kernel.holdings.actor import BY, written_asker
from tenure.kernel.holdings.holding_model import NO_DETAILS, Outcome, Reply, Row, State, Verdict, Wish

REUSED = Verdict(Outcome.REUSED)


def body_of(*words: object) -> bytes:
    """Return a short mark of what a request says, the same for the same words."""
    return body_of_text(repr(words))


def body_of_text(words: str) -> bytes:
    """Return the mark of words that are written as ``body_of`` would write them."""
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def reply_to(wish: Wish, verdict: Verdict) -> Reply:
    """Return what is to be kept of a wish that has its answer, for the wish's key.

    A granted row says what the wish says, but for who asked; one that its owner held already is written out.
    """
    assert wish.key is not None
    row = verdict.row
    assert row is not None
    if verdict.outcome is Outcome.GRANTED:
        return Reply(
            wish.key, wish.body, row.since_us, row.space, row.network, row.first, row.last, row.generation,
            row.until_us, kept_asker(wish),
        )  # fmt: skip
    return Reply(wish.key, wish.body, answer=json.dumps(row_document(row)))


def kept_asker(wish: Wish) -> str | None:
    """Return what is kept of who asked for what was granted."""
    asker = wish.details.get(BY)
    return None if asker is None else written_asker(asker)


def replayed(wish: Wish, reply: Reply) -> Verdict:
    """Answer a wish whose key is known: as before, if it says the same."""
    if reply.body != wish.body:
        return REUSED
    told: Any = None if reply.answer is None else json.loads(reply.answer)
    if reply.space is None:
        return Verdict(Outcome.REPLAYED, read_row_document(told))
    assert reply.first is not None
    assert reply.last is not None
    assert reply.generation is not None
    row = Row(
        reply.space, wish.network, reply.first, reply.last, wish.owner, wish.slot, wish.state, reply.generation,
        reply.at_us, reply.until_us, wish.request, wish.details if told is None else {**wish.details, BY: told},
    )  # fmt: skip
    return Verdict(Outcome.REPLAYED, row)


def row_document(row: Row) -> list[Any]:
    """Write a row as JSON values."""
    space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details = row
    return [
        space, network, first, last, owner, slot, str(state), generation, since_us, until_us, request, dict(details),
    ]  # fmt: skip


def read_row_document(document: list[Any]) -> Row:
    """Read back what ``row_document`` wrote."""
    space, network, first, last, owner, slot, state, generation, since_us, until_us, request, details = document
    return Row(
        space, network, first, last, owner, slot, State(state), generation, since_us, until_us, request,
        details or NO_DETAILS,
    )  # fmt: skip
