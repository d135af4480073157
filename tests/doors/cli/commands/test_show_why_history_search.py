"""Commands that read: show, why, history, search, watch, the map."""

import json
from typing import Any

import pytest

import tenure
from tenure.doors.cli.output.json_keys import CHANGE, FINDING, FOUND, MAP, OVERVIEW, TENURE
from tests.doors.cli.site import Site, build_full


def test_the_overview_counts_every_pool(site: Site) -> None:
    build_full(site)
    full, first = site.json("show")

    assert list(full) == list(OVERVIEW)
    assert full | {"pool": "two", "size": 2, "held": 2, "free": 0} == full
    assert first | {"pool": "pool1", "size": 91, "held": 2, "pending": 1, "reserved": 32, "free": 56} == first
    assert first["size"] == sum(first[key] for key in ("held", "pending", "draining", "cooling", "reserved", "free"))


def test_the_overview_of_people_is_a_table_with_a_line_a_pool(site: Site) -> None:
    head, line = site.text("show").splitlines()

    assert head.split() == [
        "NETWORK",
        "SPACE",
        "POOL",
        "FAMILY",
        "UNIT",
        "SIZE",
        "HELD",
        "PENDING",
        "COOLING",
        "RESERVED",
        "FREE",
        "WAITING",
    ]
    assert line.split() == ["net1", "net1", "pool1", "ipv4", "address", "91", "2", "1", "0", "32", "56", "0"]


def test_the_overview_of_an_empty_ledger_says_how_to_begin(site: Site) -> None:
    site.text("network", "remove", "net1", "--cascade")

    assert "tenure network add NAME" in site.text("show")
    assert site.json("show") == []


@pytest.mark.parametrize("name", [[], ["--name", "both"]], ids=["unnamed", "one name"])
def test_ipv4_and_ipv6_have_lines_of_their_own(site: Site, name: list[str]) -> None:
    site.text("network", "add", "dual")
    site.text("subnet", "add", "dual", "198.51.100.0/29", "--keep-back", "last")
    site.text("subnet", "add", "dual", "2001:db8::/64", "--keep-back", "last")
    for span in ("198.51.100.0/30", "2001:db8::/96"):
        site.text("pool", "add", "dual", span, *name)
    site.text("allocate", "dual", "instance/lb", "--count", "4", "--subnet", "198.51.100.0/29")
    four, six = [row for row in site.json("show") if row["network"] == "dual"]
    lines = [line.split() for line in site.text("show", "dual").splitlines() if line.startswith("dual")]

    assert (four["family"], four["unit"], four["size"], four["held"], four["free"]) == ("ipv4", 32, 4, 4, 0)
    assert (six["family"], six["unit"], six["size"], six["held"], six["free"]) == ("ipv6", 128, 1 << 32, 0, 1 << 32)
    assert [line[3:7] for line in lines] == [["ipv4", "address", "4", "4"], ["ipv6", "address", str(1 << 32), "0"]]


def test_holdings_of_a_network_without_pools_are_counted_by_family(site: Site) -> None:
    site.text("network", "add", "bare2")
    for block, address in (("198.51.100.0/28", "198.51.100.7"), ("2001:db8::/64", "2001:db8::7")):
        site.text("subnet", "add", "bare2", block)
        site.text("allocate", "bare2", f"instance/{address.count(':')}", "--address", address)

    rows = [row for row in site.json("show") if row["network"] == "bare2"]
    assert [(row["family"], row["held"], row["size"]) for row in rows] == [("ipv4", 1, None), ("ipv6", 1, None)]


def test_pools_of_prefixes_and_of_addresses_have_lines_of_their_own(site: Site) -> None:
    site.text("network", "add", "six")
    site.text("subnet", "add", "six", "2001:db8::/48", "--unit", "56")
    site.text("subnet", "add", "six", "2001:db8:1::/64")
    for span in ("2001:db8::/48", "2001:db8:1::/64"):
        site.text("pool", "add", "six", span, "--name", "all")

    lines = [line.split() for line in site.text("show", "six").splitlines() if line.startswith("six")]
    assert [line[3:6] for line in lines] == [["ipv6", "/56", "256"], ["ipv6", "address", str(1 << 64)]]


def test_a_network_without_pools_is_in_the_overview(site: Site) -> None:
    site.text("network", "add", "bare")

    bare = site.json("show")[0]
    assert (bare["network"], bare["pool"], bare["size"], bare["free"]) == ("bare", None, None, None)


@pytest.mark.parametrize("what", [[], ["net1"]], ids=["the overview", "one network"])
def test_a_network_that_is_removed_between_two_readings_is_not_there(
    site: Site, monkeypatch: pytest.MonkeyPatch, what: list[str]
) -> None:
    site.text("network", "add", "stays")
    read: Any = tenure.AsyncLedger.spaces if what else tenure.AsyncLedger.holdings

    async def removing(ledger: tenure.AsyncLedger, *said: Any, **more: Any) -> Any:
        monkeypatch.undo()
        await ledger.remove_network("net1", cascade=True)
        return await read(ledger, *said, **more)

    monkeypatch.setattr(tenure.AsyncLedger, read.__name__, removing)
    if what:
        code, error = site.error("show", *what)
        assert (code, error["code"], error["message"]) == (3, "not_found", "no network 'net1'")
    else:
        assert [row["network"] for row in site.json("show")] == ["stays"]


def test_prefixes_are_counted_as_prefixes(site: Site) -> None:
    site.text("network", "add", "six")
    site.text("subnet", "add", "six", "2001:db8::/48", "--unit", "64")
    site.text("pool", "add", "six", "2001:db8::/48", "--name", "all")
    site.text("allocate", "six", "router/1")

    [row] = [row for row in site.json("show") if row["network"] == "six"]
    assert (row["size"], row["held"], row["free"]) == (65536, 1, 65535)


def test_addresses_held_by_another_network_of_the_space_are_not_free(site: Site) -> None:
    for name in ("one", "two"):
        site.text("network", "add", name, "--space", "shared")
        site.text("subnet", "add", name, "10.0.0.0/28")
        site.text("pool", "add", name, "10.0.0.4+4", "--name", "p")
    site.text("allocate", "one", "instance/x")

    rows = {row["network"]: (row["held"], row["free"]) for row in site.json("show")}
    assert rows["one"] == rows["two"] == (1, 3)


def test_a_network_is_shown_whole(site: Site) -> None:
    shown = site.json("show", "net1")

    assert shown["network"] == site.json("network", "show", "net1")
    assert [holding["owner"] for holding in shown["holdings"]][:2] == ["instance/web-0", "instance/db-0"]
    assert shown["more_holdings"] is False
    assert [row["pool"] for row in shown["pools"]] == ["pool1"]
    text = site.text("show", "net1")
    assert "192.0.2.20-192.0.2.50" in text
    assert "instance/web-0" in text


def test_a_large_network_shows_its_first_holdings_and_where_the_rest_is(site: Site) -> None:
    with tenure.open(site.url) as ledger:
        ledger.allocate_many("net1", owners=[f"pod/{number}" for number in range(52)])

    assert len(site.json("show", "net1")["holdings"]) == 50
    assert "`tenure holding list net1 --after 192.0.2.9" in site.text("show", "net1").splitlines()[-1]


def test_an_owner_and_an_address_are_shown(site: Site) -> None:
    assert [holding["address"] for holding in site.json("show", "instance/web-0")] == ["192.0.2.10"]
    assert site.json("show", "192.0.2.10") == site.json("why", "192.0.2.10")
    assert site.text("show", "instance/nobody") == "instance/nobody holds nothing\n"
    assert site.error("show", "nothing-here")[0] == 3


def test_a_network_whose_name_looks_like_an_owner_is_shown_as_a_network(site: Site) -> None:
    site.text("network", "add", "rack/7")

    assert site.json("show", "rack/7")["network"]["name"] == "rack/7"


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("192.0.2.10", "held"),
        ("192.0.2.13", "pending"),
        ("192.0.2.30", "reserved"),
        ("192.0.2.1", "kept back"),
        ("192.0.2.90", "pre-allocated"),
        ("192.0.2.60", "free"),
        ("192.0.2.200", "outside pools"),
    ],
)
def test_why_explains_an_address(site: Site, address: str, status: str) -> None:
    [finding] = site.json("why", address)["findings"]

    assert list(finding) == list(FINDING)
    assert finding["status"] == status
    assert finding["text"] in site.text("why", address)


def test_history_tells_every_holder_in_order(site: Site) -> None:
    site.text("transfer", "net1", "192.0.2.10", "instance/web-0", "instance/web-1", "--request", "move")
    site.text("release", "net1", "192.0.2.10", "instance/web-1")
    site.text("allocate", "net1", "instance/web-2", "--address", "192.0.2.10")

    document = site.json("history", "192.0.2.10")
    tenures = document["tenures"]
    assert [(each["owner"], each["ending"]) for each in tenures] == [
        ("instance/web-0", "transferred"),
        ("instance/web-1", "released"),
        ("instance/web-2", "still held"),
    ]
    assert [list(each) for each in tenures] == [list(TENURE)] * 3
    at = site.json("history", "192.0.2.10", "--at", tenures[0]["since"])
    assert [each["owner"] for each in at["tenures"]] == ["instance/web-0"]
    assert [line.split()[0] for line in site.text("history", "192.0.2.10").splitlines()[1:]] == [
        "instance/web-0",
        "instance/web-1",
        "instance/web-2",
    ]


def test_history_takes_a_time_without_a_zone_as_utc_and_refuses_what_is_no_time(site: Site) -> None:
    assert site.json("history", "192.0.2.10", "--at", "2001-01-01T00:00:00")["tenures"] == []
    assert site.error("history", "192.0.2.10", "--at", "yesterday")[1]["field"] == "at"


def test_history_says_when_the_log_was_trimmed(site: Site) -> None:
    with tenure.open(site.url) as ledger:
        ledger.trim_changes(ledger.last_change() + 1)

    assert "the log was trimmed" in site.text("history", "192.0.2.10")
    assert site.json("history", "192.0.2.10")["trimmed"] is True


def test_search_finds_by_text_label_kind_and_place(site: Site) -> None:
    def found(*words: str) -> list[tuple[str, str | None]]:
        return [(each["kind"], each["address"]) for each in site.json("search", *words)]

    assert found("switches") == [("reserved", "192.0.2.20-192.0.2.50")]
    assert found("--label", "team=shop") == [("network", None), ("holding", "192.0.2.10")]
    assert found("--label", "team", "--kind", "holding") == [("holding", "192.0.2.10")]
    assert found("192.0.2.12", "--kind", "holding") == [("holding", "192.0.2.12")]
    assert found("instance", "--limit", "1") == [("preallocation", "192.0.2.90")]
    assert list(site.json("search", "web-0")[0]) == list(FOUND)
    assert site.text("search", "nothing-like-it") == "nothing found\n"
    assert site.error("search")[0] == 2


def test_watch_reads_the_log_from_anywhere_to_its_end(site: Site) -> None:
    whole = [json.loads(line) for line in site.text("watch", "--once", "--json").splitlines()]
    tail = site.text("watch", "--once", "--after", str(whole[-2]["seq"])).splitlines()

    assert [change["seq"] for change in whole] == list(range(1, len(whole) + 1))
    assert list(whole[0]) == list(CHANGE)
    assert whole[0]["verb"] == "network.add"
    assert len(tail) == 1
    assert "192.0.2.13" in tail[0]


def test_watch_and_history_tell_who_ended_a_holding_and_by_which_request(site: Site) -> None:
    with tenure.open(site.url) as ledger:
        ledger.asked_by("token/ops", request_id="r-7").release(
            "net1", "192.0.2.10", owner="instance/web-0", request="clean-up"
        )
    [last] = [json.loads(line) for line in site.text("watch", "--once", "--json").splitlines()][-1:]
    [tenure_told] = site.json("history", "192.0.2.10")["tenures"]
    [head, line] = site.text("history", "192.0.2.10").splitlines()

    assert (last["request"], last["actor"], last["request_id"]) == ("clean-up", "token/ops", "r-7")
    assert last["details"]["began_request"] == "first"
    words = site.text("watch", "--once").splitlines()[-1].split("  ")
    assert {"request=clean-up", "actor=token/ops", "request_id=r-7", "began_request=first"} <= set(words)
    assert (tenure_told["request"], tenure_told["ended_by"]) == ("first", "clean-up")
    assert (tenure_told["ended_actor"], tenure_told["ended_request_id"]) == ("token/ops", "r-7")
    assert head.split()[-4:] == ["BEGUN", "BY", "ENDED", "BY"]
    assert line.endswith("request first  token/ops, request clean-up")


def test_release_prints_its_own_request_and_not_that_of_the_grant(site: Site) -> None:
    said = site.text("release", "net1", "192.0.2.10", "instance/web-0", "--request", "clean-up")
    again = site.json("allocate", "net1", "instance/web-0", "--request", "second")
    ended = site.json("release", "net1", again["address"], "instance/web-0")

    assert said == "instance/web-0 no longer holds 192.0.2.10 in net1 (request clean-up)\n"
    assert (again["request"], ended["request"], ended["actor"]) == ("second", None, None)


def test_watch_behind_a_trimmed_log_says_where_to_go_on(site: Site) -> None:
    with tenure.open(site.url) as ledger:
        ledger.trim_changes(5)

    code, error = site.error("watch", "--once", "--after", "1")
    assert (code, error["code"], error["oldest"]) == (4, "cursor_expired", 4)
    assert "--after 4" in error["hint"]


def test_the_map_draws_subnets_or_one_pool(site: Site) -> None:
    subnets = site.text("pool", "map", "net1", "--ascii")
    one = site.text("pool", "map", "net1", "pool1", "--ascii")

    assert subnets.splitlines()[1] == "  192.0.2.0  xx------ --#.#p.. ....xxxx xxxxxxxx"
    assert one.splitlines()[1] == " 192.0.2.0             #.#p.. ....xxxx xxxxxxxx"
    assert site.text("show", "net1", "--map", "--ascii") == subnets
    assert "held 2   p pending 1   x reserved 32   . free 56" in one


def test_the_map_for_scripts_says_the_same(site: Site) -> None:
    [picture] = site.json("pool", "map", "net1", "pool1")

    assert list(picture) == list(MAP)
    assert picture["counts"] == {
        "outside": 0, "free": 56, "reserved": 32, "pending": 1, "held": 2, "draining": 0, "cooling": 0,
    }  # fmt: skip
    assert picture["rows"][0] == {"address": "192.0.2.0", "cells": "          #.#p......xxxxxxxxxxxx"}


def test_the_map_follows_the_locale(site: Site) -> None:
    utf8 = site.call("pool", "map", "net1").stdout
    plain = site.call("pool", "map", "net1", env={"LC_ALL": "C", "LANG": "C"}).stdout

    assert not utf8.isascii()
    assert plain.isascii()
    assert site.call("pool", "map", "net1", "--unicode", env={"LC_ALL": "C", "LANG": "C"}).stdout == utf8


def test_a_map_of_what_is_not_there_says_so(site: Site) -> None:
    site.text("network", "add", "bare")

    assert (
        site.error("pool", "map", "net1", "nope")[1] | {"kind": "pool", "name": "nope"}
        == (site.error("pool", "map", "net1", "nope")[1])
    )
    assert "tenure subnet add bare CIDR" in site.text("pool", "map", "bare")
    assert site.error("show", "--map")[0] == 2


def test_retired_and_cooling_addresses_are_seen_on_the_map(site: Site) -> None:
    site.text("pool", "modify", "net1", "pool1", "--cooling", "600")
    site.text("release", "net1", "192.0.2.10", "instance/web-0")
    cooling = site.text("pool", "map", "net1", "pool1", "--ascii").splitlines()[1]
    site.text("pool", "retire", "net1", "pool1")

    assert cooling == " 192.0.2.0             c.#p.. ....xxxx xxxxxxxx"
    assert "free" not in site.text("pool", "map", "net1", "pool1", "--ascii")
