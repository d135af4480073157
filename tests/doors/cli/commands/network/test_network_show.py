"""Lists of networks: our columns, chosen fields, lines for scripts; info and map."""

import json

import pytest

import tenure
from tenure.doors.cli.output.json_keys import NETWORK_MAP
from tenure.integrations.ganeti.query.network_fields import FIELDS
from tests.doors.cli.site import Site


def test_the_usual_columns_show_groups_and_tags(machines: Site) -> None:
    head, row, *_ = machines.text("network", "list", "lan").splitlines()

    assert head.split() == [
        "NETWORK", "SPACE", "KIND", "SUBNETS", "GROUPS", "TAGS", "RETIRED", "LABELS", "DESCRIPTION",
    ]  # fmt: skip
    assert row.split() == ["lan", "lan", "manual", "198.51.100.0/24", "default,spare", "prod", "no", "-", "-"]


def test_chosen_fields_make_the_columns(machines: Site) -> None:
    head, *rows = machines.text("network", "list", "-o", "name,free_count,gateway6").splitlines()

    assert head.split() == ["Network", "FreeCount", "IPv6Gateway"]
    assert [row.split() for row in rows] == [["lan", "50", "-"], ["net1", "56", "-"]]


def test_a_plus_adds_to_the_usual_fields(machines: Site) -> None:
    head, _ = machines.text("network", "list", "lan", "-o", "+uuid").splitlines()

    assert head.split() == ["Network", "Subnet", "Gateway", "MacPrefix", "GroupList", "Tags", "UUID"]


def test_scripts_get_plain_lines(machines: Site) -> None:
    words = ["network", "list", "lan", "-o", "name,gateway6,tags,inst_list,group_cnt", "--separator", "|"]

    assert machines.text(*words) == "Network|IPv6Gateway|Tags|InstanceList|NodeGroups\nlan|-|prod|web|2\n"
    assert machines.text(*words, "--no-headers") == "lan|-|prod|web|2\n"
    assert machines.text(*words, "--no-headers", "-v") == "lan|(unavail)|prod|web|2\n"
    assert machines.text("network", "list", "net1", "lan", "-o", "name", "--no-headers") == "net1\nlan\n"
    usual = machines.text("network", "list", "lan", "--no-headers", "--separator", ";")
    assert usual == "lan;lan;manual;198.51.100.0/24;default,spare;prod;no;-;\n"


def test_with_json_objects_have_exactly_the_chosen_fields(machines: Site) -> None:
    [found] = machines.json("network", "list", "lan", "-o", "subnets,name,group_list")

    assert list(found) == ["subnets", "name", "group_list"]
    assert found["group_list"] == [["default", "bridged", "br100", ""], ["spare", "bridged", "br100", ""]]
    [pool] = found["subnets"][0]["pools"]
    assert (pool["start"], pool["end"], pool["map"]) == ("198.51.100.10", "198.51.100.60", "X" + "." * 50)


def test_nothing_is_said_to_scripts_where_there_is_nothing(site: Site) -> None:
    site.text("network", "remove", "net1", "--cascade")

    assert site.text("network", "list") == "no networks; `tenure network add NAME` makes one\n"
    assert site.text("network", "list", "--no-headers") == ""
    assert site.json("network", "list", "-o", "name") == []
    assert site.json("network", "info") == []


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, ["list", "-o", "name,colour"], "colour"),
        (2, ["list", "-o", "name,,map"], "missing"),
        (2, ["list", "-o", "mapp"], "near it: map"),
        (3, ["list", "nowhere"], "nowhere"),
        (3, ["list", "net1", "nowhere", "-o", "name"], "nowhere"),
        (3, ["info", "nowhere"], "nowhere"),
        (3, ["map", "nowhere"], "nowhere"),
        (3, ["list-fields", "colour"], "there are: name"),
    ],
)
def test_what_is_not_there_is_told(site: Site, code: int, words: list[str], said: str) -> None:
    found, error = site.error("network", *words)

    assert found == code
    assert said in error["message"]


def test_fields_are_listed_with_their_meaning(site: Site) -> None:
    assert [field["name"] for field in site.json("network", "list-fields")] == list(FIELDS)
    assert site.json("network", "list-fields", "map")[0]["doc"] == FIELDS["map"].doc
    assert site.text("network", "list-fields", "map").splitlines()[0].split() == ["FIELD", "TITLE", "MEANING"]


def test_info_tells_all_and_has_all_fields(machines: Site) -> None:
    text = machines.text("network", "info", "lan")
    [document] = machines.json("network", "info", "lan")

    assert text.startswith("Network name: lan\n")
    assert "    Pool 198.51.100.10-198.51.100.60 (web): size 51, used 1" in text
    assert text.endswith("  Used by 1 instance:\n    web: 0:198.51.100.10\n")
    assert list(document) == list(FIELDS)
    assert [each["name"] for each in machines.json("network", "info")] == ["lan", "net1"]


def test_what_another_network_of_the_space_holds_is_not_free(site: Site) -> None:
    site.text("network", "add", "twin", "--space", "net1", "--subnet", "add:cidr=203.0.113.32/28,pool")
    site.text("network", "add", "over", "--space", "net1", "--subnet", "add:cidr=203.0.113.64/28,pool")
    with tenure.open(site.url) as ledger:
        ledger.allocate("over", owner="instance/o", address="203.0.113.66")

    assert site.json("network", "list", "twin", "-o", "free_count") == [{"free_count": 14}]
    assert site.json("network", "list", "over", "-o", "free_count") == [{"free_count": 13}]


def test_a_map_draws_every_subnet_with_its_pools(machines: Site) -> None:
    lines = machines.text("network", "map", "lan", "--ascii").splitlines()

    assert lines[0] == "lan 198.51.100.0/24, 256 addresses"
    assert lines[1] == "  198.51.100.0  xx------ --#..... ........ ........"
    assert lines[-1] == "  web 198.51.100.10-198.51.100.60: 50 of 51 addresses free"
    assert max(map(len, lines)) < 80


@pytest.mark.parametrize("block", ["10.0.0.0/8", "2001:db8::/64"])
def test_a_map_of_a_large_subnet_is_summarised(site: Site, block: str) -> None:
    site.text("network", "add", "large", "--subnet", f"add:cidr={block},pool")
    site.text("allocate", "large", "instance/x")

    text = site.text("network", "map", "large")
    [document] = site.json("network", "map", "large")
    assert len(text.splitlines()) < 80
    assert "one sign is a /" in text
    assert "closer: " in text
    assert document["counts"]["held"] == 1
    assert sum(document["counts"].values()) == sum(piece["size"] for piece in document["ranges"])
    assert len(document["ranges"]) <= 5


def test_the_document_of_a_map_has_ranges_and_counts(machines: Site) -> None:
    [document] = machines.json("network", "map", "lan")

    assert list(document) == list(NETWORK_MAP)
    assert [(piece["first"], piece["last"], piece["kind"]) for piece in document["ranges"]] == [
        ("198.51.100.0", "198.51.100.1", "reserved"),
        ("198.51.100.2", "198.51.100.9", "outside"),
        ("198.51.100.10", "198.51.100.10", "held"),
        ("198.51.100.11", "198.51.100.60", "free"),
        ("198.51.100.61", "198.51.100.249", "outside"),
        ("198.51.100.250", "198.51.100.250", "reserved"),
        ("198.51.100.251", "198.51.100.254", "outside"),
        ("198.51.100.255", "198.51.100.255", "reserved"),
    ]
    [pool] = document["pools"]
    assert (pool["name"], pool["size"], pool["counts"]["free"], pool["counts"]["held"]) == ("web", 51, 50, 1)


def test_a_network_without_subnets_has_no_picture(site: Site) -> None:
    site.text("network", "add", "bare")

    assert site.text("network", "map", "bare").startswith("network bare has no subnets")
    assert json.loads(site.text("network", "map", "bare", "--json")) == []
    assert "Subnets: none" in site.text("network", "info", "bare")
