"""Commands on the plan: what they change, what they print, what their documents say."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tenure.doors.cli.output.json_keys import NETWORK, POOL, PREALLOCATION, RESERVED, SUBNET
from tests.doors.cli.site import Site


def test_a_plan_is_made_and_listed_by_commands(site: Site) -> None:
    site.text("network", "add", "shop", "--space", "site", "--kind", "vip", "--tag", "a", "--tag", "b")
    site.text(
        "subnet", "add", "shop", "10.0.0.0/24", "--gateway", "10.0.0.1", "--name", "front", "--zone", "z1", "--dhcp"
    )
    site.text("pool", "add", "shop", "10.0.0.10+20", "--name", "p", "--policy", "random", "--cooling", "60")

    [entry] = [entry for entry in site.json("network", "list") if entry["name"] == "shop"]
    [subnet] = entry["subnets"]
    assert (entry["space"], entry["kind"], entry["tags"]) == ("site", "vip", ["a", "b"])
    assert (subnet["name"], subnet["gateway"], subnet["zones"], subnet["dhcp"]) == ("front", "10.0.0.1", ["z1"], True)
    assert (
        subnet["pools"][0] | {"range": "10.0.0.10-10.0.0.29", "policy": "random", "cooling_s": 60} == subnet["pools"][0]
    )
    assert entry == site.json("network", "show", "shop")


def test_what_a_modify_does_not_name_stays_and_what_it_empties_goes(site: Site) -> None:
    site.text("network", "modify", "net1", "--tag", "a", "--description", "machines")
    changed = site.json("network", "modify", "net1", "--mac-prefix", "aa:00:01", "--without", "labels")

    assert (changed["tags"], changed["description"], changed["labels"]) == (["a"], "machines", {})
    assert changed["mac_prefix"] == "aa:00:01"
    emptied = site.json("network", "modify", "net1", "--without", "mac-prefix", "--without", "tags")
    assert (emptied["mac_prefix"], emptied["tags"], emptied["description"]) == (None, [], "machines")


def test_a_subnet_is_modified_found_by_block_or_name(site: Site) -> None:
    named = site.json(
        "subnet", "modify", "net1", "192.0.2.0/24", "--name", "front", "--dns", "192.0.2.2", "--zone", "a"
    )
    emptied = site.json("subnet", "modify", "net1", "front", "--without", "dns", "--without", "zones", "--no-dhcp")

    assert (named["name"], named["dns"], named["zones"], named["gateway"]) == (
        "front",
        ["192.0.2.2"],
        ["a"],
        "192.0.2.1",
    )
    assert (emptied["dns"], emptied["zones"], emptied["name"]) == ([], [], "front")
    assert site.json("subnet", "modify", "net1", "front", "--without", "name")["name"] is None


def test_a_subnet_that_moves_and_takes_a_new_name_is_found_again(site: Site) -> None:
    moved = site.json("subnet", "modify", "net1", "old", "--cidr", "203.0.113.0/27")

    assert (moved["cidr"], moved["name"]) == ("203.0.113.0/27", "old")


def test_a_pool_is_modified_retired_and_taken_back(site: Site) -> None:
    [changed] = site.json("pool", "modify", "net1", "pool1", "--policy", "hashed", "--cooling", "5", "--name", "p2")
    site.text("pool", "retire", "net1", "p2")

    assert (changed["name"], changed["policy"], changed["cooling_s"]) == ("p2", "hashed", 5)
    assert site.json("pool", "list", "net1")[0]["retired"] is True
    assert site.call("allocate", "net1", "instance/x").exit_code == 5
    site.text("pool", "retire", "net1", "p2", "--undo")
    assert site.call("allocate", "net1", "instance/x").exit_code == 0


@pytest.mark.parametrize(("noun", "rest"), [("network", []), ("subnet", ["192.0.2.0/24"])])
def test_a_network_or_subnet_is_retired_and_taken_back(site: Site, noun: str, rest: list[str]) -> None:
    assert site.json(noun, "retire", "net1", *rest)["retired"] is True

    assert site.call("allocate", "net1", "instance/x").exit_code == 5
    assert site.json(noun, "retire", "net1", *rest, "--undo")["retired"] is False
    assert site.call("allocate", "net1", "instance/x").exit_code == 0


def test_a_network_is_renamed_and_removed_only_with_its_holdings(site: Site) -> None:
    assert site.text("network", "rename", "net1", "shop") == "net1 is now network shop\n"

    assert site.call("network", "remove", "shop").exit_code == 4
    assert site.json("network", "remove", "shop", "--cascade") == {"removed": {"network": "shop"}, "hooks": []}
    assert site.text("network", "list") == "no networks; `tenure network add NAME` makes one\n"


def test_a_range_is_cut_out_of_a_pool(site: Site) -> None:
    pools = site.json("pool", "remove", "net1", "192.0.2.40-192.0.2.49")

    assert [pool["range"] for pool in pools] == ["192.0.2.10-192.0.2.39", "192.0.2.50-192.0.2.100"]


def test_a_reserved_range_is_added_listed_and_lifted(site: Site) -> None:
    site.text("reserve", "add", "net1", "192.0.2.70+2", "--reason", "routers", "--label", "team=net", "--request", "r7")

    added = site.json("reserve", "list", "net1")[-1]
    assert (added["range"], added["reason"], added["request"]) == ("192.0.2.70-192.0.2.71", "routers", "r7")
    assert added["labels"] == {"team": "net"}
    lifted = site.json("reserve", "remove", "net1", "192.0.2.20-192.0.2.50")
    assert [entry["range"] for entry in lifted] == ["192.0.2.70-192.0.2.71"]


def test_an_address_waits_for_its_owner(site: Site) -> None:
    site.text("preallocation", "add", "net1", "192.0.2.80", "instance/db-7", "--slot", "nic0", "--description", "new")

    assert site.text("allocate", "net1", "instance/db-7", "--slot", "nic0", "--quiet") == "192.0.2.80\n"
    assert [entry["owner"] for entry in site.json("preallocation", "list")] == ["instance/db-9", "instance/db-7"]
    left = site.json("preallocation", "remove", "net1", "instance/db-9")
    assert [entry["owner"] for entry in left] == ["instance/db-7"]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["network", "list"], NETWORK),
        (["subnet", "list"], SUBNET),
        (["pool", "list"], POOL),
        (["reserve", "list"], RESERVED),
        (["preallocation", "list"], PREALLOCATION),
    ],
)
def test_documents_of_the_plan_have_the_keys_that_the_reference_names(
    site: Site, words: list[str], keys: dict[str, str]
) -> None:
    document = site.json(*words)[0]

    assert list(document) == list(keys)
    for nested, of in (("subnets", SUBNET), ("pools", POOL), ("reserved", RESERVED), ("preallocations", PREALLOCATION)):
        for entry in document.get(nested, []):
            assert entry.keys() == of.keys() - {"network", *({"subnet"} if "range" in entry else ())}


def test_a_table_is_aligned_and_says_nothing_twice(site: Site) -> None:
    head, *rows = site.text("subnet", "list", "net1").splitlines()

    assert head.split()[:4] == ["NETWORK", "SUBNET", "NAME", "GATEWAY"]
    assert [row[head.index("SUBNET") :].split()[0] for row in rows] == ["192.0.2.0/24", "203.0.113.0/28"]
    assert [row[head.index("GATEWAY") :].split()[0] for row in rows] == ["192.0.2.1", "-"]


def test_a_description_of_several_lines_stays_one_row(site: Site) -> None:
    site.text("network", "modify", "net1", "--description", "two\nlines\twide")

    assert len(site.text("network", "list").splitlines()) == 2
    assert "two lines wide" in site.text("network", "list")
    assert site.json("network", "show", "net1")["description"] == "two\nlines\twide"


def test_numbers_stand_to_the_right_and_words_and_times_to_the_left(site: Site) -> None:
    head, row, *_ = site.text("holding", "list", "net1").splitlines()
    pool_head, pool_row = site.text("pool", "list", "net1").splitlines()

    assert row.index("20") == head.index("SINCE")
    assert row[head.index("UNTIL")] == "-"
    assert "." not in row[head.index("SINCE") : head.index("UNTIL")]
    assert pool_row.index(" 0 ") + 2 == pool_head.index("COOLING (s)") + len("COOLING (s)")


def test_wide_letters_keep_a_table_aligned(site: Site) -> None:
    site.text("network", "add", "東京")
    head, first, second = site.text("network", "list").splitlines()

    assert first.index("manual") == head.index("KIND")
    assert second.index("manual") == head.index("KIND") - 4


LABELLED = [
    ("network", "modify", "lab"),
    ("subnet", "modify", "lab", "203.0.113.0/24"),
    ("pool", "modify", "lab", "labelled"),
    ("holding", "modify", "lab", "203.0.113.10", "instance/labelled"),
]
"""Every command that changes labels."""


@pytest.fixture
def lab(site: Site) -> Callable[[Sequence[str]], dict[str, str]]:
    """Put two labels on a network, a subnet, a pool and a holding; give what reads those of one of them."""
    had = ("--label", "hostname=web-0", "--label", "mac=aa")
    site.json("network", "add", "lab", *had)
    site.json("subnet", "add", "lab", "203.0.113.0/24", *had)
    site.json("pool", "add", "lab", "203.0.113.10-203.0.113.19", "--name", "labelled", *had)
    site.json("allocate", "lab", "instance/labelled", *had)

    def labels(command: Sequence[str]) -> dict[str, str]:
        found: dict[str, Any] = site.json("network", "show", "lab")
        if command[0] == "holding":
            [found] = site.json("holding", "list", "lab")
        if command[0] in ("subnet", "pool"):
            [found] = site.json(command[0], "list", "lab")
        read: dict[str, str] = found["labels"]
        return read

    return labels


@pytest.mark.parametrize("command", LABELLED, ids=lambda command: command[0])
def test_a_label_is_added_to_those_that_there_are(
    site: Site, lab: Callable[[Sequence[str]], dict[str, str]], command: Sequence[str]
) -> None:
    site.json(*command, "--label", "team=shop")
    assert lab(command) == {"hostname": "web-0", "mac": "aa", "team": "shop"}
    site.json(*command, "--label", "team=bank", "--no-label", "mac")
    assert lab(command) == {"hostname": "web-0", "team": "bank"}
    site.json(*command, "--label", "rack=4", "--labels-only")
    assert lab(command) == {"rack": "4"}
    site.json(*command, "--without", "labels")
    assert lab(command) == {}


@pytest.mark.sampled
@pytest.mark.parametrize("command", LABELLED, ids=lambda command: command[0])
@pytest.mark.parametrize(
    "said",
    [
        ("--labels-only",),
        ("--labels-only", "--label", "a=b", "--no-label", "mac"),
        ("--without", "labels", "--label", "a=b"),
        ("--without", "labels", "--no-label", "mac"),
        ("--without", "description", "--description", "x"),
        ("--label", "mac=b", "--no-label", "mac"),
    ],
    ids=" ".join,
)
def test_words_about_labels_that_contradict_each_other_are_refused(
    site: Site, lab: Callable[[Sequence[str]], dict[str, str]], command: Sequence[str], said: Sequence[str]
) -> None:
    code, error = site.error(*command, *said)

    assert (code, error["code"]) == (2, "usage") or error["code"] == "invalid"
    assert lab(command) == {"hostname": "web-0", "mac": "aa"}
