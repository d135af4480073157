"""Bad input: a clear error with code and field, no trace in the ledger, and never anything else."""

import inspect
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenure
from tenure.kernel.names import shown
from tenure.kernel.plan import edits
from tenure.service.apply import operations
from tests.profiles import examples
from tests.scale import in_proof
from tests.service.ledger.wrong_input import (
    BRIEF,
    GOOD,
    JUNK,
    NEVER,
    OPERATIONS,
    Arguments,
    Seeded,
    choice,
    field_names,
    parameters,
    seeded,
    verbs,
)

CODES = {getattr(tenure, name).code for name in tenure.__all__ if hasattr(getattr(tenure, name), "code")}
ALIASES = {
    "name": ("network",),
    "owner": ("owners",),
    "owners": ("owner", "slots"),
    "slots": ("slot",),
    "to": ("owner",),
    "to_slot": ("slot",),
}
"""Where an error names the thing and not the parameter that carries it."""


@pytest.fixture(scope="module", params=["memory", in_proof("sqlite")])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seeded]:
    folder: Path = tmp_path_factory.mktemp("bad-input")
    numbers = count()

    def url() -> str:
        return "memory:" if request.param == "memory" else f"sqlite:///{folder}/{next(numbers)}.db"

    with seeded(url) as opened:
        yield opened


def refused(place: Seeded, verb: str, arguments: Arguments) -> tenure.TenureError | None:
    """Make a call that may be refused: then without a trace; if it is not, the ledger must still be sound."""
    place.refresh()
    try:
        place.call(verb, arguments)
    except tenure.TenureError as caught:
        error = caught
    else:
        assert place.ledger.verify() == []
        return None
    assert not place.changed(), f"{verb} was refused ({error}) and left a trace"
    check(error)
    return error


def check(error: tenure.TenureError) -> None:
    """Check that an error says what it must, in text that can be written down."""
    assert error.code in CODES
    assert str(error).encode().decode() == error.message
    assert 0 < len(error.message) < 1000
    assert not isinstance(error, tenure.StoreUnavailable), "the store was asked what the rules should have refused"
    if isinstance(error, tenure.Invalid | tenure.NotFound | tenure.AlreadyExists):
        assert error.field, f"{error!r} names no field"
    if type(error) is tenure.Invalid:
        assert error.field is not None
        assert error.message.startswith(error.field), "the message names the field first"


def waits_for_ever(verb: str, arguments: Arguments) -> bool:
    """Tell whether a call is right and never ends: a tail from the end of the log on, or a claim on a full pool."""
    after, wait_s = arguments.get("after"), arguments.get("wait_s")
    if verb == "claim":
        return isinstance(wait_s, int | float) and wait_s > 1
    return verb == "tail" and type(after) is int and after > 0


def test_every_public_call_is_tried() -> None:
    assert sorted(GOOD) == verbs()
    assert all(set(arguments) <= set(parameters(verb)) for verb, arguments in GOOD.items())
    kinds = {kind for kind in vars(edits).values() if inspect.isclass(kind) and issubclass(kind, edits.Edit)}
    assert {*kinds, *get_args(operations.Operation)} == {edits.Edit, *OPERATIONS}


@pytest.mark.sampled
@pytest.mark.parametrize("verb", verbs())
def test_the_good_arguments_are_good(place: Seeded, verb: str) -> None:
    assert refused(place, verb, GOOD[verb]) is None


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.__name__)
def test_the_good_operations_are_good(place: Seeded, kind: type) -> None:
    assert refused(place, "apply", {"operations": [kind(**OPERATIONS[kind])]}) is None


def problem(place: Seeded, verb: str, arguments: Arguments, parameter: str, junk: object) -> str | None:
    """Try junk in one parameter; tell what is wrong with the answer, if anything is."""
    try:
        error = refused(place, verb, arguments)
    except Exception as failure:
        return f"{type(failure).__name__}: {str(failure)[:200]}"
    if error is None:
        return "was accepted" if any(junk is never for never in NEVER) and not _is_seconds(parameter, junk) else None
    named = str(error.field).partition("[")[0] if type(error) is tenure.Invalid else parameter
    if named not in (parameter, *ALIASES.get(parameter, ())) and not isinstance(junk, str):
        return f"the error names another parameter, {named}: {error}"
    return None


def _is_seconds(parameter: str, junk: object) -> bool:
    """Tell whether what is junk elsewhere is a span of time here."""
    return parameter in ("wait_s", "lasts_s", "patience_s", "lingers_s", "keep_days") and type(junk) is float


@pytest.mark.sampled
@pytest.mark.parametrize(("verb", "parameter"), [(verb, name) for verb in verbs() for name in parameters(verb)])
def test_junk_in_one_parameter_is_refused_by_its_name_or_is_no_junk(place: Seeded, verb: str, parameter: str) -> None:
    told = {}
    turn = verbs().index(verb) + parameters(verb).index(parameter)
    for junk in choice(turn, place.url):
        arguments = {**GOOD[verb], parameter: junk}
        if not waits_for_ever(verb, arguments):
            told[f"{verb}({parameter}={shown(junk)})"] = problem(place, verb, arguments, parameter, junk)

    assert not any(told.values()), "\n".join(f"{call}: {text}" for call, text in told.items() if text)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind in OPERATIONS for field in field_names(kind)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_junk_in_one_field_of_an_operation_is_refused_or_is_no_junk(place: Seeded, kind: type, field: str) -> None:
    # Good operations come first: what they did must be undone with the rest.
    good = [
        tenure.Reserve(network="net1", range="192.0.2.220", reason="before"),
        tenure.Release(network="net1", address="203.0.113.9", owner="instance/b"),
    ]
    told = {}
    turn = list(OPERATIONS).index(kind) + field_names(kind).index(field)
    for junk in choice(turn, place.url):
        operations = [*good, kind(**{**OPERATIONS[kind], field: junk})]
        told[f"{kind.__name__}({field}={shown(junk)})"] = problem(
            place, "apply", {"operations": operations}, field, junk
        )

    assert not any(told.values()), "\n".join(f"{call}: {text}" for call, text in told.items() if text)


texts = st.text(st.characters(), max_size=20) | st.text(st.sampled_from("0123456789abcdef.:/-+% "), max_size=24)
writable = [junk for junk in JUNK if junk != 10**5000]  # Hypothesis could not write that one down in its report
plain = (
    st.sampled_from(writable) | texts | st.integers() | st.floats() | st.binary(max_size=8) | st.none() | st.booleans()
)
anything = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))


@settings(max_examples=examples(4))
@given(st.data())
def test_anything_anywhere_is_refused_or_leaves_a_sound_ledger(place: Seeded, data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(verbs()))
    wrong = data.draw(st.dictionaries(st.sampled_from(parameters(verb) or ["-"]), anything, max_size=3))
    arguments = {**GOOD[verb], **{name: value for name, value in wrong.items() if name != "-"}}

    if not waits_for_ever(verb, arguments):
        refused(place, verb, arguments)


@settings(max_examples=examples(2))
@given(st.data())
def test_any_operations_are_refused_or_leave_a_sound_ledger(place: Seeded, data: st.DataObject) -> None:
    operations: list[object] = []
    for kind in data.draw(st.lists(st.sampled_from(list(OPERATIONS)), max_size=4)):
        wrong = data.draw(st.dictionaries(st.sampled_from(field_names(kind)), anything, max_size=2))
        operations.append(data.draw(st.just(kind(**{**OPERATIONS[kind], **wrong})) | anything))

    refused(place, "apply", {"operations": operations})


@pytest.mark.parametrize(
    "url", [*BRIEF, "redis://", "sqlite:", "sqlite://", "sqlite:///", "sqlite://x/y", "postgres"], ids=shown
)
def test_a_wrong_url_is_refused(url: object) -> None:
    with pytest.raises(tenure.Invalid) as refusal:
        tenure.open(url)  # type: ignore[arg-type]
    assert refusal.value.field == "url"
    check(refusal.value)
