"""JSON that is too deep for orjson is read all the same, without what lies deepest."""

import logging

import orjson
import pytest

from tenure.integrations.kubernetes.runtime.deep_json import DEEPEST, read_deep_json

TOO_DEEP = 2_000


def deep(levels: int) -> bytes:
    """Return a document of so many levels, half of them lists."""
    return b'{"a":[' * (levels // 2) + b"1" + b"]}" * (levels // 2)


def depth_of(value: object) -> int:
    found = 0
    while isinstance(value, dict | list) and value:
        value = value["a"] if isinstance(value, dict) else value[0]
        found += 1
    return found


@pytest.mark.parametrize("levels", [2, DEEPEST, 1_000])
def test_what_can_be_read_is_read_whole(levels: int) -> None:
    assert depth_of(read_deep_json(deep(levels), "here")) == levels


@pytest.mark.parametrize("levels", [TOO_DEEP, 10_000])
def test_of_what_is_too_deep_the_rest_is_read_and_the_log_says_so(
    levels: int, caplog: pytest.LogCaptureFixture
) -> None:
    texts = rb'"b":"}]\\\"{[","c":[{},[1]]'
    document = b'{"first":{' + texts + b'},"bomb":' + deep(levels) + b',"last":[' + deep(levels) + b",2]}"
    with caplog.at_level(logging.WARNING):
        found = read_deep_json(document, "GET /here")

    assert found["first"] == {"b": '}]\\"{[', "c": [{}, [1]]}
    assert (found["last"][1], depth_of(found["bomb"]), depth_of(found["last"][0])) == (2, DEEPEST - 1, DEEPEST - 2)
    assert orjson.loads(orjson.dumps(found)) == found
    assert f"GET /here: more levels than can be read; what lies below {DEEPEST} levels is left out" in caplog.text


@pytest.mark.parametrize(
    "rubbish", [b"", b"{", b'{"a": "', b"[" * TOO_DEEP, deep(TOO_DEEP) + b"x", deep(TOO_DEEP) + b"]"]
)
def test_what_is_no_json_is_refused(rubbish: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        read_deep_json(rubbish, "here")


@pytest.mark.parametrize("rubbish", [b'"' + b'\\"' * 500_000, b"[" * 1_000_000], ids=["quotes", "brackets"])
def test_rubbish_is_passed_over_once_whoever_posts_it(rubbish: bytes) -> None:
    """A pattern that began anew at each quote needed an hour for the first, in which no other request was answered."""
    with pytest.raises(orjson.JSONDecodeError):
        read_deep_json(rubbish, "here")
