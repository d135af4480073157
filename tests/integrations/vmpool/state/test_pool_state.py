"""The text of a state: as Go's managers write it, and with whatever others may have put there."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.integrations.vmpool.state.go_json import LARGEST_INTEGER, SMALLEST_INTEGER, NotReadable
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation, read_state, write_state

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

GO_TEXT = """{
  "allocatedIPs": {
    "b\\u003c\\u0026\\u003eé\\u2028": {
      "allocationID": "b\\u003c\\u0026\\u003eé\\u2028",
      "ip": "10.0.0.1",
      "nodeName": "node-1",
      "podName": "",
      "podNamespace": "",
      "allocatedAt": "2026-01-02T03:04:05Z"
    }
  },
  "availableIPs": [
    "10.0.0.3",
    "10.0.0.2"
  ],
  "lastUpdated": null,
  "version": 2
}"""


def test_a_state_is_written_byte_for_byte_as_go_writes_it() -> None:
    entry = VMAllocation("b<&>é\u2028", "10.0.0.1", "node-1", allocated_at=AT)
    state = PoolState({entry.allocation_id: entry}, ("10.0.0.3", "10.0.0.2"), None, 2)

    assert write_state(state) == GO_TEXT
    assert read_state(GO_TEXT) == state


def test_entries_are_in_the_order_of_the_bytes_of_their_ids() -> None:
    entries = {key: VMAllocation(key, "10.0.0.1") for key in ("b", "é", "B", "a")}
    text = write_state(PoolState(entries, ()))

    assert list(read_state(text).allocated) == ["B", "a", "b", "é"]


@pytest.mark.parametrize("text", ["null", "{}", '{"allocatedIPs": null, "availableIPs": null, "version": null}'])
def test_null_stands_for_nothing_at_all(text: str) -> None:
    assert read_state(text) == PoolState({}, ())


def test_case_65_unknown_fields_and_other_cases_of_names_are_kept_and_read() -> None:
    entry = '{"IP": "10.0.0.1", "mine": [1.50, {"x": null}]}'
    state = read_state(f'{{"VERSION": 7, "AllocatedIPs": {{"a": {entry}}}, "extra": {{"y": 1e400}}}}')

    assert (state.version, state.allocated["a"].ip) == (7, "10.0.0.1")
    written = write_state(replace(state, available=("10.0.0.2",)))
    assert read_state(written).unknown == state.unknown
    assert read_state(written).allocated["a"].unknown == state.allocated["a"].unknown
    assert '"extra": {\n    "y": 1e400\n  }' in written
    assert "1.50" in written


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"version": "3"}', "version"),
        ('{"version": 3.0}', "version"),
        ('{"version": 9223372036854775808}', "version"),
        ('{"availableIPs": {}}', "availableIPs"),
        ('{"availableIPs": [1]}', "availableIPs"),
        ('{"allocatedIPs": []}', "allocatedIPs"),
        ('{"allocatedIPs": {"a": 1}}', "allocatedIPs['a']"),
        ('{"allocatedIPs": {"a": {"ip": 1}}}', "allocatedIPs['a']: ip"),
        ('{"allocatedIPs": {"a": {"allocatedAt": "yesterday"}}}', "allocatedIPs['a']: allocatedAt"),
        ('{"lastUpdated": ""}', "lastUpdated"),
        ('{"allocatedIPs": {}, "allocatedIPs": {}}', "allocatedIPs"),
        ("[]", "state"),
        ('"text"', "state"),
        ("", "char 0"),
    ],
)
def test_wrong_types_are_refused_and_the_field_is_named(text: str, named: str) -> None:
    with pytest.raises(NotReadable) as caught:
        read_state(text)

    assert named in str(caught.value)


def test_an_entry_that_is_null_is_one_without_fields() -> None:
    assert read_state('{"allocatedIPs": {"a": null}}').allocated["a"] == VMAllocation("", "")


def test_case_16_a_write_has_the_next_version_which_wraps_as_in_go() -> None:
    state = PoolState({}, (), version=4).written_at(AT.replace(microsecond=999_999))

    assert (state.version, state.last_updated) == (5, AT)
    assert PoolState({}, (), version=LARGEST_INTEGER).written_at(AT).version == SMALLEST_INTEGER


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
entries = st.builds(
    VMAllocation, texts, texts, texts, texts, texts,
    st.none() | st.datetimes(datetime(1, 1, 2), timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=0)),
)  # fmt: skip
states = st.builds(
    PoolState,
    st.dictionaries(texts, entries, max_size=5),
    st.lists(texts, max_size=5).map(tuple),
    st.none(),
    st.integers(SMALLEST_INTEGER, LARGEST_INTEGER),
)


@given(states)
def test_what_was_written_is_read_again(state: PoolState) -> None:
    written = write_state(state)

    assert read_state(written) == state
    assert write_state(read_state(written)) == written


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | texts, lambda each: st.lists(each) | st.dictionaries(texts, each)
    )
)
def test_any_json_is_read_or_refused_and_never_half_read(value: Any) -> None:
    try:
        state = read_state(json.dumps(value))
    except NotReadable:
        return
    assert value is None or isinstance(value, dict)
    assert read_state(write_state(state)) == state


@pytest.mark.parametrize("where", ["state", "entry"])
def test_unknown_fields_that_lie_300_deep_are_kept(where: str) -> None:
    """Case 65, as another writer may have it: nothing that can be read crashes a write."""
    deep: Any = 1
    for _ in range(300):
        deep = {"n": [deep]} if _ < 90 else {"n": deep}
    entry: dict[str, Any] = {"allocationID": "a", "ip": "10.0.0.1"}
    document: dict[str, Any] = {"allocatedIPs": {"a": entry}, "availableIPs": [], "version": 1}
    (document if where == "state" else entry)["future"] = deep

    state = read_state(json.dumps(document))
    written = json.loads(write_state(state))

    assert (written if where == "state" else written["allocatedIPs"]["a"])["future"] == deep
    assert read_state(write_state(state)) == state


def test_fields_that_lie_deeper_than_python_compares_are_refused_with_their_name() -> None:
    text = '{"availableIPs": [], "future": ' + "[" * 600 + "]" * 600 + "}"

    with pytest.raises(NotReadable, match=r"'future'.*too deep"):
        read_state(text)
