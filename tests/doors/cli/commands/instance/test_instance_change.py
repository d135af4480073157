"""Instances on the command line: NICs, addresses, what is refused, what scripts get."""

import pytest

from tenure.doors.cli.output.json_keys import INSTANCE
from tenure.integrations.ganeti.options.nic_grammar import WORDS
from tests.doors.cli.site import Site


def test_an_instance_is_added_with_its_addresses_shown(machines: Site) -> None:
    words = [
        "instance",
        "add",
        "--net",
        "0:ip0=198.51.100.40,ip1=pool,ip2=web,network=lan,mac=aa:00:00:00:00:99",
        "inst1",
    ]

    assert machines.text(*words) == (
        "added instance inst1 on node1\n"
        "  NIC 0: 198.51.100.40, 198.51.100.11, 198.51.100.12 on lan, aa:00:00:00:00:99, bridged br100\n"
    )
    assert machines.json("instance", "info", "inst1")["ips"] == [["198.51.100.40", "198.51.100.11", "198.51.100.12"]]


def test_without_a_word_an_instance_has_one_nic_on_no_network(machines: Site) -> None:
    plain = machines.json("instance", "add", "plain")
    bare = machines.json("instance", "add", "bare", "--no-nics", "-n", "node9")

    assert (plain["networks"], plain["ips"], plain["node"]) == ([None], [[]], "node1")
    assert (bare["nics"], bare["node"], bare["group"]) == ([], "node9", "spare")


@pytest.mark.parametrize("words", [["--net", "-1:add,ip0=pool,network=lan"], ["--net=-1:add,ip0=pool,network=lan"]])
def test_a_value_may_begin_with_a_dash(machines: Site, words: list[str]) -> None:
    changed = machines.json("instance", "modify", *words, "web")

    assert changed["ips"] == [["198.51.100.10"], ["198.51.100.11"]]


def test_addresses_are_changed_added_taken_away_and_exchanged(machines: Site) -> None:
    def ips(*nets: str) -> object:
        options = [word for net in nets for word in ("--net", net)]
        return machines.json("instance", "modify", *options, "web")["ips"]

    assert ips("0:modify,ip1=198.51.100.20") == [["198.51.100.10", "198.51.100.20"]]
    assert ips("0:modify,ip0=198.51.100.20,ip1=198.51.100.10") == [["198.51.100.20", "198.51.100.10"]]
    assert ips("0:modify,ip0=none") == [["198.51.100.10"]]
    assert ips("add:ip=pool,network=lan", "add:network=lan") == [["198.51.100.10"], ["198.51.100.11"], []]
    assert ips("remove", "0:remove") == [["198.51.100.11"]]


def test_a_change_to_what_is_there_is_told_as_none(machines: Site) -> None:
    before = machines.state()

    assert machines.text("instance", "modify", "--net", "0:ip0=198.51.100.10", "web").startswith("nothing to change")
    assert machines.json("instance", "modify", "--net", "0:ip0=198.51.100.10", "web")["changed"] is False
    assert machines.state() == before


def test_an_instance_that_goes_gives_everything_back(machines: Site) -> None:
    gone = machines.json("instance", "remove", "web")

    assert (gone["name"], gone["changed"], gone["hooks"]) == ("web", True, [])
    assert machines.json("instance", "list") == []
    assert machines.text("instance", "list") == "no instances; `tenure instance add NAME` makes one\n"
    assert machines.json("show", "instance/web") == []


@pytest.mark.parametrize("word", ["--force", "--no-conflicts-check"])
def test_either_word_reaches_an_externally_reserved_address(machines: Site, word: str) -> None:
    machines.text("network", "modify", "--add-reserved-ips", "198.51.100.30", "lan")
    words = ["instance", "add", "--net", "0:ip=198.51.100.30,network=lan", "inst1"]
    code, error = machines.error(*words)

    assert (code, error["code"], error["field"]) == (4, "address_reserved", "net")
    assert "--force" in error["hint"]
    assert machines.json(*words, word)["ips"] == [["198.51.100.30"]]


REFUSED = [
    (2, ["add", "--net", "0:ip=pool,network1", "x"], "'network1': unknown parameter"),
    (2, ["add", "--net", "0:ip=pool", "x"], "--net"),
    (2, ["add", "--net", "0:ip0=pool,ip2=pool,network=lan", "x"], "ip1"),
    (2, ["add", "--net", "0:ip=198.51.100.40,ip0=pool,network=lan", "x"], "the same"),
    (2, ["add", "--net", "0:network=lan,link=br5", "x"], "link"),
    (2, ["add", "--net", "0:ip=203.0.113.1,network=lan", "x"], "203.0.113.1"),
    (2, ["add", "--net", "1:network=lan", "x"], "gap"),
    (2, ["add", "a b"], "instance: a name"),
    (2, ["add", "x", "--no-nics", "--net", "0:network=lan"], "--no-nics"),
    (2, ["add"], "NAME"),
    (3, ["add", "--net", "0:ip=nosuch,network=lan", "x"], "nosuch"),
    (3, ["add", "--net", "0:ip=pool,network=nowhere", "x"], "nowhere"),
    (3, ["add", "--node", "nowhere", "x"], "nowhere"),
    (4, ["add", "web"], "'web' exists already"),
    (4, ["add", "--net", "0:ip=198.51.100.10,network=lan", "x"], "instance/web"),
    (4, ["add", "--net", "0:network=net1", "x"], "net1"),
    (4, ["add", "--net", "0:ip=198.51.100.77", "x"], "--no-conflicts-check"),
    (4, ["add", "--net", "0:ip=198.51.100.0,network=lan", "x"], "198.51.100.0"),
    (5, ["add", "--net", "0:ip=two,network=lan", "x"], "two"),
    (2, ["modify", "web"], "--net"),
    (2, ["modify", "--net", "0:modify,ip3=pool", "web"], "ip3"),
    (3, ["modify", "--net", "7:remove", "web"], "7"),
    (3, ["modify", "--net", "0:ip=pool", "nowhere"], "nowhere"),
    (3, ["remove", "nowhere"], "nowhere"),
    (3, ["info", "nowhere"], "nowhere"),
    (3, ["env", "nowhere"], "nowhere"),
    (3, ["env", "web", "--nic", "3"], "no NIC '3'"),
    (2, ["env", "web", "--nic", "0", "--post"], "--nic and --post"),
    (2, ["list", "-o", "colour"], "colour"),
    (3, ["list", "nowhere"], "nowhere"),
    (2, ["add", "x", "--hooks", "nowhere"], "'nowhere' is not a directory"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("code", "words", "said"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_refused_tells_option_piece_and_reason_and_changes_nothing(
    machines: Site, code: int, words: list[str], said: str
) -> None:
    machines.text("network", "modify", "--pool", "add:198.51.100.70,name=two", "lan")
    machines.text("allocate", "lan", "instance/y", "--address", "198.51.100.70")
    before = machines.state()
    found, error = machines.error("instance", *words)

    assert found == code, error
    assert said in error["message"]
    assert error["hint"]
    assert machines.state() == before


def test_an_option_of_several_that_is_wrong_is_the_one_that_is_named(machines: Site) -> None:
    good, bad = "0:ip=pool,network=lan", "1:ip=198.51.100.10,network=lan"
    before = machines.state()
    _, error = machines.error("instance", "add", "--net", good, "--net", bad, "x")

    assert error["message"].startswith(f"--net {bad!r}: ")
    assert machines.state() == before


def test_instances_are_listed_with_chosen_fields(machines: Site) -> None:
    machines.text("instance", "modify", "--net", "0:modify,ip1=pool", "--net", "add:network=lan", "web")

    head, row = machines.text("instance", "list").splitlines()
    assert head.split() == ["INSTANCE", "NODE", "GROUP", "NETWORKS", "IPS"]
    assert row.split() == ["web", "node1", "default", "lan,lan", "198.51.100.10,198.51.100.11;-"]
    words = ["instance", "list", "web", "-o", "name,nic_count,ips", "--no-headers", "--separator", "|"]
    assert machines.text(*words) == "web|2|198.51.100.10,198.51.100.11;-\n"
    assert machines.json("instance", "list", "-o", "ips") == [{"ips": [["198.51.100.10", "198.51.100.11"], []]}]
    assert [field["name"] for field in machines.json("instance", "list-fields")] == list(INSTANCE)


def test_documents_have_the_keys_that_the_reference_names(machines: Site) -> None:
    assert list(machines.json("instance", "list")[0]) == list(INSTANCE)
    assert list(machines.json("instance", "info", "web")) == list(INSTANCE)
    assert list(machines.json("instance", "add", "x")) == [*INSTANCE, "changed", "hooks"]


def test_variables_are_printed_one_a_line(machines: Site) -> None:
    lines = machines.text("instance", "env", "web").splitlines()
    of_nic = machines.json("instance", "env", "web", "--nic", "0")
    of_hook = machines.json("instance", "env", "web", "--post")

    assert lines[0] == "INSTANCE_NAME=web"
    assert "INSTANCE_NIC0_IP=198.51.100.10" in lines
    assert of_nic["IP"] == "198.51.100.10"
    assert machines.json("instance", "env", "web")["INSTANCE_NIC0_MAC"] == of_nic["MAC"]
    assert of_hook["GANETI_INSTANCE_NAME"] == of_hook["GANETI_POST_INSTANCE_NAME"] == "web"


def test_info_tells_of_every_nic(machines: Site) -> None:
    machines.text("instance", "modify", "--net", "add:name=back,mode=routed,link=rt1", "web")

    lines = machines.text("instance", "info", "web").splitlines()
    assert lines[0].split() == ["name", "web"]
    assert lines[-1].startswith("  NIC 1 (back): no address on no network, aa:00:00:")
    assert lines[-1].endswith(", routed rt1")
    machines.text("instance", "modify", "--net", "1:vlan=.7", "--net", "0:remove", "web")
    assert machines.text("instance", "info", "web").endswith(", routed rt1 vlan .7\n")
    machines.text("instance", "modify", "--net", "0:remove", "web")
    assert machines.text("instance", "info", "web").splitlines()[-1] == "  no NICs"


@pytest.mark.parametrize("verb", ["add", "modify"])
def test_the_help_of_net_names_all_that_a_nic_may_have(machines: Site, verb: str) -> None:
    shown = " ".join(machines.text("instance", verb, "--help").split())

    assert [
        word for word in (*WORDS, "auto") if word not in shown.partition("--net OPT")[2].partition("repeat")[0]
    ] == []
