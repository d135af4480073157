"""Options of the revised Ganeti design on ``tenure network``: one command is one change, or none."""

import pytest

from tests.doors.cli.site import Site

FULL = (
    "network", "add", "net4",
    "--subnet", "add:cidr=10.4.0.0/24,gateway=10.4.0.1,dhcp=yes,name=front",
    "--subnet", "add:cidr=2001:db8:4::/64,gateway=2001:db8:4::1",
    "--pool", "add:10.4.0.10-10.4.0.99,name=p", "--pool", "add:subnet=2001:db8:4::/64,name=six",
    "--add-reserved-ips", "10.4.0.20-10.4.0.29,10.4.0.40", "-m", "aa:00:04", "--tags", "a,b", "--tag", "c",
    "--label", "team=shop", "--description", "whole",
)  # fmt: skip


def test_a_network_is_added_with_all_that_it_has_by_one_command(site: Site) -> None:
    made = site.json(*FULL)

    front, six = made["subnets"]
    assert (made["mac_prefix"], made["tags"], made["labels"]) == ("aa:00:04", ["c", "a", "b"], {"team": "shop"})
    assert (front["name"], front["gateway"], front["dhcp"]) == ("front", "10.4.0.1", True)
    assert [pool["range"] for pool in front["pools"]] == ["10.4.0.10-10.4.0.99"]
    assert [kept["range"] for kept in front["reserved"]] == ["10.4.0.20-10.4.0.29", "10.4.0.40"]
    assert [pool["name"] for pool in six["pools"]] == ["six"]
    assert made["warnings"] == []


def test_a_command_whose_last_option_is_wrong_changes_nothing(site: Site) -> None:
    before = site.state()
    code, error = site.error(*FULL, "--pool", "add:10.5.0.1-10.5.0.9")

    assert (code, error["field"]) == (3, "pool")
    assert "--pool 'add:10.5.0.1-10.5.0.9'" in error["message"]
    assert site.state() == before


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("code", "option", "value", "piece"),
    [
        (2, "--subnet", "add:gateway=10.9.0.1", "cidr is missing"),
        (2, "--subnet", "add:cidr=10.9.0.0/24,colour=red", "'colour=red'"),
        (2, "--subnet", "remove", "say which subnet"),
        (2, "--subnet", "add:cidr=2001:db8::/129", "'cidr=2001:db8::/129'"),
        (3, "--subnet", "nowhere:remove", "'nowhere'"),
        (4, "--subnet", "add:cidr=192.0.2.0/25", "192.0.2.0/24"),
        (2, "--pool", "add:192.0.2.9-192.0.2.2", "192.0.2.9 lies above 192.0.2.2"),
        (2, "--pool", "add:192.0.2.200,name=pool", "name=pool"),
        (4, "--pool", "add:192.0.2.90-192.0.2.130", "192.0.2.10-192.0.2.100"),
        (3, "--pool", "nope:remove", "'nope'"),
        (2, "--add-reserved-ips", "192.0.2.5,,192.0.2.6", "empty piece"),
        (2, "--add-reserved-ips", "", "nothing is written here"),
        (3, "--add-reserved-ips", "172.16.0.1", "172.16.0.1"),
        (3, "--remove-reserved-ips", "192.0.2.200", "192.0.2.200"),
        (2, "--gateway", "none4", "'none4'"),
        (3, "--gateway6", "2001:db8::1", "IPv6 subnet"),
        (2, "--network", "10.0.0.0/8", "new network"),
        (2, "--network6", "10.0.0.0/8", "not an IPv6 block"),
        (2, "--mac-prefix", "xx:00:00", "xx:00:00"),
        (2, "--tags", "a,,b", "empty tag"),
    ],
)
def test_a_bad_option_is_named_with_its_piece_and_reason_and_changes_nothing(
    site: Site, code: int, option: str, value: str, piece: str
) -> None:
    before = site.state()
    found, error = site.error("network", "modify", option, value, "net1")

    assert found == code, error
    assert option in error["message"] or option.strip("-").replace("-", "_") in error["message"]
    assert piece in error["message"]
    assert site.state() == before


def test_deprecated_options_work_and_say_that_they_will_go(site: Site) -> None:
    words = [
        "network",
        "add",
        "old1",
        "--network",
        "10.8.0.0/28",
        "--gateway",
        "10.8.0.1",
        "--network6",
        "2001:db8:8::/64",
    ]
    result = site.call(*words)

    assert result.exit_code == 0
    assert result.stdout == "added network old1\n"
    assert result.stderr.splitlines() == [
        "tenure: warning: --network is deprecated; use --subnet add:cidr=CIDR,pool",
        "tenure: warning: --gateway is deprecated; use gateway= in --subnet",
        "tenure: warning: --network6 is deprecated; use --subnet add:cidr=CIDR",
    ]
    [found] = site.json("network", "list", "old1", "-o", "map,network,network6")
    assert found == {"map": "XX" + "." * 13 + "X", "network": "10.8.0.0/28", "network6": "2001:db8:8::/64"}
    assert site.text("network", "add", "--help").count("DEPRECATED") == 4


def test_with_json_warnings_are_in_the_document_and_nowhere_else(site: Site) -> None:
    result = site.call("network", "modify", "net1", "--subnet", "add:cidr=10.6.1.0/22", "--json")
    changed = site.json("network", "modify", "net1", "--gateway", "192.0.2.2")

    assert result.stderr == ""
    assert "10.6.0.0/22" in result.stdout.partition('"warnings"')[2]
    assert changed["warnings"] == ["--gateway is deprecated; use gateway= in --subnet"]


@pytest.mark.parametrize("empty", ["none", "None", "NONE"])
def test_none_empties_a_value(site: Site, empty: str) -> None:
    site.text("network", "modify", "net1", "--mac-prefix", "aa:00:01")

    emptied = site.json("network", "modify", "net1", "--mac-prefix", empty, "--gateway", empty)
    assert (emptied["mac_prefix"], emptied["subnets"][0]["gateway"]) == (None, None)


def test_lists_of_reserved_addresses_may_be_repeated(site: Site) -> None:
    made = site.json("network", "modify", "net1", "--add-reserved-ips=192.0.2.60", "--add-reserved-ips", "192.0.2.62")
    lifted = site.json("network", "modify", "net1", "--remove-reserved-ips", "192.0.2.60,192.0.2.62")

    assert [kept["range"] for kept in made["subnets"][0]["reserved"]][1:] == ["192.0.2.60", "192.0.2.62"]
    assert [kept["range"] for kept in lifted["subnets"][0]["reserved"]] == ["192.0.2.20-192.0.2.50"]


def test_a_network_is_found_by_its_uuid_in_every_command(machines: Site) -> None:
    [found] = machines.json("network", "list", "lan", "-o", "uuid")
    uuid = found["uuid"]

    for words in (
        ["show", uuid], ["info", uuid], ["map", uuid], ["list", uuid], ["list-tags", uuid],
        ["modify", uuid, "--description", "x"], ["add-tags", uuid, "t"], ["remove-tags", uuid, "t"],
        ["connect", uuid, "default"], ["disconnect", uuid, "spare"], ["retire", uuid], ["rename", uuid, "lan2"],
    ):  # fmt: skip
        machines.text("network", *words)
    machines.text("instance", "remove", "web")
    machines.text("network", "disconnect", uuid)
    assert machines.json("network", "remove", uuid) == {"removed": {"network": "lan2"}, "hooks": []}


def test_force_is_understood_and_changes_nothing(site: Site) -> None:
    assert site.call("network", "remove", "net1", "--force").exit_code == 4
    assert site.call("network", "modify", "net1", "--force", "--subnet", "old:remove").exit_code == 4
    assert site.text("network", "add", "net5", "--force") == "added network net5\n"


def test_tags_are_added_listed_and_removed(site: Site) -> None:
    assert site.text("network", "add-tags", "net1", "a", "b") == "tags of network net1: a, b\n"
    assert site.text("network", "list-tags", "net1") == "a\nb\n"
    before = site.state()

    assert site.error("network", "remove-tags", "net1", "a", "z")[0] == 3
    assert site.state() == before
    assert site.json("network", "remove-tags", "net1", "a", "b")["tags"] == []
    assert site.json("network", "list-tags", "net1") == []
    assert site.text("network", "list-tags", "net1") == "network net1 has no tags\n"


def test_a_network_is_connected_to_some_groups_or_all_and_taken_off_them(machines: Site) -> None:
    made = machines.json("network", "connect", "net1", "spare", "-N", "mode=openvswitch,link=ovs1,vlan=.7")
    every = machines.json("network", "connect", "net1", "--parameters", "link=br7")

    assert made["connections"] == [{"group": "spare", "mode": "openvswitch", "link": "ovs1", "vlan": ".7"}]
    assert [each["group"] for each in every["connections"]] == ["spare", "default", "empty"]
    assert every["connections"][1] == {"group": "default", "mode": "bridged", "link": "br7", "vlan": ""}
    assert "spare already" in every["warnings"][0]
    assert machines.text("network", "disconnect", "net1") == "network net1 is connected to no group\n"
    again = machines.call("network", "disconnect", "net1", "spare")
    assert again.exit_code == 0
    assert again.stderr.startswith("tenure: warning: network net1 is not connected to group spare")


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, ["connect", "net1", "-N", "mode=foo"], "mode=foo"),
        (2, ["connect", "net1", "-N", "colour=red"], "colour=red"),
        (3, ["connect", "net1", "nowhere"], "no group 'nowhere'"),
        (4, ["disconnect", "lan"], "instance web"),
        (4, ["remove", "lan", "--cascade"], "group default"),
        (3, ["disconnect", "lan", "nowhere"], "no group 'nowhere'"),
        (2, ["add-tags", "lan"], "TAG"),
    ],
)
def test_a_refused_connection_tells_why_and_changes_nothing(
    machines: Site, code: int, words: list[str], said: str
) -> None:
    before = machines.state()
    found, error = machines.error("network", *words)

    assert found == code
    assert said in error["message"]
    assert error["hint"]
    assert "--cascade" not in error["hint"]
    assert machines.state() == before


def test_a_change_that_changes_nothing_leaves_no_trace(site: Site) -> None:
    before = site.state()

    for more in ([], ["--no-conflicts-check"], ["--force"]):
        assert site.text("network", "modify", "net1", *more) == "nothing to change in network net1\n"
    assert site.state() == before
    for more in (["--without", "labels"], ["--gateway", "none"], ["--tag", "a"], ["--pool", "pool1:modify,name=p"]):
        assert site.call("network", "modify", "net1", *more).stdout == "changed network net1\n"


def test_a_connection_is_told_with_its_vlan(machines: Site) -> None:
    words = ["network", "connect", "net1", "spare", "-N", "mode=routed,link=rt0,vlan=7"]

    assert machines.text(*words) == "network net1 is connected to spare (routed rt0 vlan 7)\n"
    assert "connections     spare routed rt0 vlan 7\n" in machines.text("network", "show", "net1")


def test_the_help_says_where_an_option_cannot_be_used(site: Site) -> None:
    shown = " ".join(site.text("network", "modify", "--help").split())

    assert "--network CIDR The first IPv4 subnet of a new network (in `network add` only)" in shown
