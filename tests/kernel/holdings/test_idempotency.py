"""Kept answers: what is written under an idempotency key is read back as it was."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.holdings.holding_model import OWNED, Outcome, Reply, Row, State, Verdict, Wish
from tenure.kernel.holdings.idempotency import REUSED, body_of, read_row_document, replayed, reply_to, row_document
from tests.kernel.strategies import positions

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
microseconds = st.integers(0, 2**62)
numbers = st.integers(1, 2**40)
details = st.dictionaries(
    st.sampled_from(["labels", "description", "carrier"]), texts | st.dictionaries(texts, texts, max_size=2), max_size=3
)


@st.composite
def rows(draw: st.DrawFn, state: State | None = None) -> Row:
    """Draw a row."""
    first = draw(positions)
    return Row(
        draw(numbers), draw(numbers), first, first + draw(st.integers(0, 15)), draw(texts), draw(texts),
        state or draw(st.sampled_from(State)), draw(numbers), draw(microseconds), draw(st.none() | microseconds),
        draw(st.none() | texts), draw(details),
    )  # fmt: skip


def wish_of(row: Row, key: str = "k", body: bytes = b"b") -> Wish:
    """Write the wish that a row answers."""
    lasts_us = None if row.until_us is None else row.until_us - row.since_us
    return Wish(
        row.network, row.first, row.last, row.owner, row.slot, row.state, lasts_us, row.request, row.details, key, body
    )


@given(rows())
def test_a_row_written_out_is_read_back_the_same(row: Row) -> None:
    assert read_row_document(json.loads(json.dumps(row_document(row)))) == row


@given(rows().filter(lambda row: row.state in OWNED), st.sampled_from([Outcome.GRANTED, Outcome.ALREADY]))
def test_a_replay_gives_the_row_that_was_answered(row: Row, outcome: Outcome) -> None:
    wish = wish_of(row)
    elsewhere = wish._replace(first=0, last=0)  # what a repeated pick would be, before it is made

    assert replayed(elsewhere, reply_to(wish, Verdict(outcome, row))) == Verdict(Outcome.REPLAYED, row)


@given(rows(state=State.HELD), rows(state=State.PENDING))
def test_what_was_held_already_is_told_as_it_was_and_not_as_it_is_wished(held: Row, wanted: Row) -> None:
    wish = wish_of(wanted)

    assert replayed(wish, reply_to(wish, Verdict(Outcome.ALREADY, held))).row == held


@given(rows(), st.binary(min_size=1), st.booleans())
def test_another_body_under_the_same_key_is_reused(row: Row, body: bytes, written_out: bool) -> None:
    reply = Reply("k", body, answer="[]") if written_out else Reply("k", body, 1, 1, 1, row.first, row.last, 1)

    assert replayed(wish_of(row, body=body + b"!"), reply) == REUSED


@given(st.lists(texts | st.integers() | st.none()), st.lists(texts | st.integers() | st.none()))
def test_bodies_are_the_same_exactly_for_the_same_words(one: list[object], other: list[object]) -> None:
    assert (body_of(*one) == body_of(*other)) == (one == other)


def test_a_body_is_the_same_in_every_process_and_short() -> None:
    assert body_of("allocate", "net", "vm/a", None, 5).hex() == "3dd8be2a06cf5939650e1282d58dbf06"
    assert len(body_of("x" * 10_000)) == 16


def test_a_body_can_be_made_of_text_that_cannot_be_written() -> None:
    assert body_of("\ud800") != body_of("\ud801")


def test_words_do_not_run_into_each_other() -> None:
    assert len({body_of("ab", "c"), body_of("a", "bc"), body_of("abc"), body_of("ab", "c", None)}) == 4
