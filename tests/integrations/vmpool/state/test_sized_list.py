"""The list of a pool that keeps it itself: what becomes of an address, and what is written (VS9)."""

from datetime import UTC, datetime

import pytest

from tenure.integrations.vmpool.state.go_json import NotReadable
from tenure.integrations.vmpool.state.size_policy import SizePolicy, Watermark
from tenure.integrations.vmpool.state.sized_list import SizedList, read_sized_list, write_sized_list

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
THREE = ("10.0.0.1", "10.0.0.2", "10.0.0.3")


def test_an_address_comes_by_a_request_and_goes_by_retiring() -> None:
    began = SizedList(THREE, 1)

    asked = began.requested("pool", 2, (), NOW)
    grown = asked.made("pool-2", "10.0.0.9")
    leaving = grown.retired(["10.0.0.1", "10.0.0.9"], NOW)
    back = leaving.added(["10.0.0.9"])
    gone = back.begun(["10.0.0.1"]).removed(["10.0.0.1"])

    assert (list(asked.making), asked.size) == (["pool-1", "pool-2"], 5)
    assert (grown.ips, list(grown.making)) == ((*THREE, "10.0.0.9"), ["pool-1"])
    assert (leaving.ips, set(leaving.retiring)) == (THREE[1:], {"10.0.0.1", "10.0.0.9"})
    assert (back.ips, set(back.retiring)) == ((*THREE[1:], "10.0.0.9"), {"10.0.0.1"})
    assert (gone.ips, gone.retiring) == (back.ips, {})
    assert gone.requested("pool", 1, (), NOW).making.keys() == {"pool-1", "pool-3"}, "no request is named twice"


def test_what_was_done_already_is_done_once() -> None:
    asked = SizedList(THREE, 1).requested("pool", 1, (), NOW)

    made = asked.made("pool-1", "10.0.0.9")

    assert made.made("pool-1", "10.0.0.9") == made
    assert made.added(THREE) == made
    assert made.retired(["10.9.9.9"], NOW) == made
    assert made.knows("10.0.0.9")
    assert not made.knows("10.0.0.8")


def test_a_list_is_read_as_it_was_written() -> None:
    policy = SizePolicy(low=Watermark(1), high=Watermark(3), prefix="10.0.0.0/24")
    full = (
        SizedList(THREE, policy=policy, problem="none", unknown={"more": {"a": [1]}})
        .requested("pool", 0, ["10.0.0.7"], NOW)
        .retired(["10.0.0.3"], NOW)
        .begun(["10.0.0.3"])
        .failed("pool-1", "it said no", NOW)
        .written(7, "mark")
    )

    assert read_sized_list(write_sized_list(full)) == full
    assert full.making["pool-1"].tries == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"ips": ["10.0.0.1"]}', '{"generation": 1, "ips": ["junk"]}',
        '{"generation": 1, "ips": ["10.0.0.1", "10.0.0.1"]}', '{"generation": "1", "ips": []}',
        '{"generation": 1, "making": {"a": {}}}', '{"generation": 1, "retiring": {"x": {"since": "now"}}}',
        '{"generation": 1, "policy": {"low": "9", "high": "1"}}',
    ],
)  # fmt: skip
def test_rubbish_is_no_list(text: str) -> None:
    with pytest.raises(NotReadable):
        read_sized_list(text)
