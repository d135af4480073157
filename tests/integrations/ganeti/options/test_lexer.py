"""Options as text: pieces, escapes, verbs, and words that all options share."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.integrations.ganeti.options.lexer import (
    MAX_OPTION,
    OptionPiece,
    lex,
    like_an_address,
    name_fault,
    read_literal,
    read_range,
    reference_fault,
    split_commas,
    split_verb,
    whole,
)
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import Invalid
from tests.kernel.strategies import cidrs, names, positions, ranges

OPTION = "--subnet"
UUID = "0a1b2c3d-0000-4000-8000-00000000abcd"
ANYTHING = st.text(st.characters(exclude_categories=[]), max_size=40)


def values(text: str) -> dict[str, str | bool | None]:
    return {key: piece.value for key, piece in lex(OPTION, text).items()}


def verb_of(text: str) -> tuple[str, str, str | None]:
    return split_verb(whole(OPTION, text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cidr=10.0.0.0/24,gateway=10.0.0.1", {"cidr": "10.0.0.0/24", "gateway": "10.0.0.1"}),
        ("dhcp", {"dhcp": True}),
        ("no_dhcp", {"dhcp": False}),
        ("-gateway", {"gateway": None}),
        ("-1", {"-1": True}),
        ("no_", {"no_": True}),
        ("-", {"-": True}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        (r"a=1\,2,b=3", {"a": "1,2", "b": "3"}),
        (r"a=1\\,b=2", {"a": "1\\", "b": "2"}),
        (r"a=\x", {"a": "x"}),
        (r"a=1\\\,2", {"a": "1\\,2"}),
        ("gateway=2001::1,dhcp=true", {"gateway": "2001::1", "dhcp": "true"}),
        ("", {}),
    ],
)
def test_pieces_are_read_by_key(text: str, expected: dict[str, str | bool | None]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=1,a=2", "'a' is given twice"),
        ("dhcp,no_dhcp", "'dhcp' is given twice"),
        ("-name,name=x", "'name' is given twice"),
        ("a=1,,b=2", "an empty piece"),
        ("a=1,", "an empty piece"),
        (",a=1", "an empty piece"),
        ("=1", "no key before '='"),
        ("a=1\\", "the backslash at the end escapes nothing"),
    ],
)
def test_pieces_that_say_nothing_or_too_much_are_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        lex(OPTION, text)

    assert caught.value.message.startswith("--subnet: ")
    assert reason in caught.value.message
    assert caught.value.field == "subnet"


@given(st.dictionaries(names.filter(lambda key: not key.startswith(("-", "no_"))), st.text(max_size=12), min_size=1))
def test_escaped_pieces_read_back_as_they_were(pairs: dict[str, str]) -> None:
    pairs = {key.replace("=", "."): value for key, value in pairs.items()}
    written = ",".join(f"{key}={value}".replace("\\", "\\\\").replace(",", "\\,") for key, value in pairs.items())

    assert values(written) == pairs


@given(st.text(",\\ab", max_size=20))
def test_commas_split_only_where_no_backslash_stands_before_them(text: str) -> None:
    try:
        parts = list(split_commas(OPTION, text))
    except Invalid:
        assert (len(text) - len(text.rstrip("\\"))) % 2 == 1
        return

    plain = text.replace("\\\\", "").replace("\\,", "")
    assert len(parts) == plain.count(",") + 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("subnet1:remove", ("subnet1", "remove", None)),
        ("subnet1:modify,dhcp=true,name=foo", ("subnet1", "modify", "dhcp=true,name=foo")),
        ("subnet1:modify", ("subnet1", "modify", None)),
        ("2001:db8::/64:remove", ("2001:db8::/64", "remove", None)),
        ("[2001:db8::/64]:remove", ("2001:db8::/64", "remove", None)),
        ("[2001:db8::/64]:modify,gateway=2001:db8::9", ("2001:db8::/64", "modify", "gateway=2001:db8::9")),
        ("2001:db8::/64:modify,dhcp=true", ("2001:db8::/64", "modify", "dhcp=true")),
        ("2001:db8::/64:modify,gateway=2001:db8::9", ("2001:db8::/64", "modify", "gateway=2001:db8::9")),
        ("a:remove:remove", ("a:remove", "remove", None)),
        ("[a:remove]:modify,name=b", ("a:remove", "modify", "name=b")),
        ("a[1]:remove", ("a[1]", "remove", None)),
    ],
)
def test_u10_the_verb_is_found_from_the_right_and_outside_brackets(
    text: str, expected: tuple[str, str, str | None]
) -> None:
    assert verb_of(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("subnet1", "no verb"),
        ("subnet1:destroy", "no verb"),
        ("subnet1:removed", "no verb"),
        ("[a]b:remove", "no verb"),
        ("[2001:db8::/64:remove", "the bracket is not closed"),
        (":remove", "say what to remove"),
        ("[]:modify,a=1", "say what to modify"),
        ("subnet1:remove,name=x", "nothing may follow remove"),
        ("subnet1:remove,", "nothing may follow remove"),
    ],
)
def test_an_option_without_a_clear_verb_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        verb_of(text)


@given(cidrs() | ranges(), st.booleans())
def test_every_block_and_range_can_stand_before_a_verb(ident: object, brackets: bool) -> None:
    written = f"[{ident}]" if brackets else str(ident)

    assert verb_of(f"{written}:remove") == (str(ident), "remove", None)
    assert verb_of(f"{written}:modify,name=a") == (str(ident), "modify", "name=a")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "nothing is written"),
        ("   ", "nothing is written"),
        ("a\x00b", "control character"),
        ("a\nb", "control character"),
        ("a\ud800b", "control character"),
        ("a\u202eb", "control character"),
        ("a" * (MAX_OPTION + 1), "at most 4096 characters, not 4097"),
    ],
)
def test_text_that_no_option_has_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as caught:
        whole("--add-reserved-ips", text)

    assert caught.value.field == "add_reserved_ips"
    caught.value.message.encode()
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "name", ["web", "pool3", "subnet-1", "a/b", "192.0.2.5-web", "10.0", "nöel", "[x]", "2001", "add1", "no_dhcp"]
)
def test_a_plain_word_is_a_name(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be empty"),
        ("a b", "white space"),
        ("a\tb", "white space"),
        ("a,b", "holds no ','"),
        ("a=b", "holds no '='"),
        ("a:x", "holds no ':'"),
        ("\x01", "control"),
        ("\udc80", "control"),
        ("x" * 256, "at most 255 characters"),
        ("pool", "word of the options"),
        ("None", "word of the options"),
        ("AUTO", "word of the options"),
        ("add", "word of the options"),
        ("remove", "word of the options"),
        ("modify", "word of the options"),
        (UUID, "uuid"),
        (UUID.upper(), "uuid"),
        ("192.0.2.5", "IP address"),
        ("10.9.0.300", "IP address"),
        ("::", "IP address"),
        ("2001:db8::1", "IP address"),
        ("10.0.0.0/24", "IP address"),
        ("10.0.0.0/99", "IP address"),
        ("10.0.0.1-10.0.0.9", "IP address"),
        ("10.0.0.9-10.0.0.1", "IP address"),
        ("10.0.0.1+5", "IP address"),
        ("2001:db8::1-2001:db8::9", "IP address"),
        ("fe80::1%eth0", "IP address"),
    ],
)
def test_u12_p23_what_means_something_else_is_not_a_name(name: str, reason: str) -> None:
    fault = name_fault(name)

    assert fault is not None
    assert reason in fault


def test_what_other_doors_named_can_still_be_referred_to() -> None:
    assert reference_fault("my subnet") is None
    assert reference_fault("pool") is None
    assert reference_fault(UUID) is None
    assert reference_fault(" edge") is not None


@given(positions.map(format_address) | ranges().map(str) | cidrs().map(str))
def test_every_address_range_and_block_is_recognised_and_never_a_name(text: str) -> None:
    assert like_an_address(text)
    assert name_fault(text) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("192.0.2.300", "not an IP address such as"),
        ("", "not an IP address such as"),
        ("fe80::1%eth0", "zone"),
        ("192.0.2.0/24", "not a block or a range"),
        ("192.0.2.1-192.0.2.9", "not a block or a range"),
        ("٣.0.0.1", "not an IP address such as"),
        ("010.0.0.1", "not an IP address such as"),
    ],
)
def test_what_is_not_one_address_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        read_literal(text, OptionPiece(OPTION, text, text, True))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.9-10.0.0.1", "10.0.0.9 lies above 10.0.0.1"),
        ("10.0.0.1-2001:db8::1", "different families"),
        ("10.0.0.1+5", r"first-last, without white space or '\+'"),
        ("10.0.0.1 - 10.0.0.5", "without white space"),
        ("10.0.0.7/27", "the one that it lies in is 10.0.0.0/27"),
        ("10.0.0.0/33", "not a block of addresses"),
        ("10.0.0.1-", "not an IP address"),
        ("10.0.0.1-10.0.0.5-10.0.0.9", "not a block or a range|not an IP address"),
        ("garbage", "not an IP address"),
        ("", "not an IP address"),
    ],
)
def test_p11_u31_a_range_that_runs_backwards_mixes_versions_or_is_garbage_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as caught:
        read_range(text, OptionPiece("--pool", text, text, True))

    assert caught.value.field == "pool"


@given(ANYTHING)
@example("\ud800=,\\")
def test_any_text_lexes_the_same_each_time_or_is_refused(text: str) -> None:
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append(repr(lex(OPTION, text)))
        except Invalid as error:
            error.message.encode()
            outcomes.append(error.message)

    assert outcomes[0] == outcomes[1]
