"""Groups of nodes and nodes on the command line."""

import pytest

from tenure.doors.cli.output.json_keys import GROUP, NODE
from tests.doors.cli.site import Site


def test_groups_and_nodes_are_added_listed_and_removed(site: Site) -> None:
    assert site.text("group", "add", "default") == "added group default\n"
    assert site.text("node", "add", "node1", "--primary-ip", "192.0.2.9") == "added node node1 to group default\n"

    assert site.text("node", "list").splitlines()[1].split() == ["node1", "default", "192.0.2.9", "-", "0"]
    assert site.text("group", "list").splitlines()[1].split() == ["default", "1", "0", "-"]
    assert site.json("node", "remove", "node1") == {"removed": {"node": "node1"}}
    assert site.json("group", "remove", "default") == {"removed": {"group": "default"}}
    assert site.text("node", "list") == "no nodes; `tenure node add NAME` makes one\n"
    assert site.text("group", "list") == "no groups; `tenure group add NAME` makes one\n"


def test_a_nodes_addresses_are_reserved_unless_told_otherwise(site: Site) -> None:
    site.text("group", "add", "default")
    site.text("node", "add", "node1", "--primary-ip", "192.0.2.60", "--secondary-ip", "192.0.2.61")
    site.text("node", "add", "node2", "--primary-ip", "192.0.2.62", "--no-conflicts-check")

    kept = [entry["range"] for entry in site.json("reserve", "list", "net1")]
    assert kept == ["192.0.2.20-192.0.2.50", "192.0.2.60-192.0.2.61"]


def test_documents_have_the_keys_that_the_reference_names(machines: Site) -> None:
    assert list(machines.json("node", "list")[0]) == list(NODE)
    assert list(machines.json("node", "add", "node2", "--group", "default")) == list(NODE)
    assert list(machines.json("group", "list")[0]) == list(GROUP)
    assert list(machines.json("group", "add", "rack2")) == list(GROUP)


def test_fields_may_be_chosen(machines: Site) -> None:
    assert machines.json("node", "list", "-o", "name,inst_list")[0] == {"name": "node1", "inst_list": ["web"]}
    words = ["group", "list", "-o", "name,network_cnt", "--no-headers", "--separator", ":"]
    assert machines.text(*words) == "default:1\nempty:0\nspare:1\n"
    assert [field["name"] for field in machines.json("group", "list-fields")] == list(GROUP)
    assert [field["name"] for field in machines.json("node", "list-fields")] == list(NODE)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, ["group", "add", "a/b"], "group: a name"),
        (4, ["group", "add", "default"], "'default' exists already"),
        (3, ["group", "remove", "nowhere"], "no group 'nowhere'"),
        (4, ["group", "remove", "default"], "node node1, network lan"),
        (2, ["node", "add", "a b"], "node: a name"),
        (2, ["node", "add", "n", "--group", "default", "--primary-ip", "192.0.2.300"], "primary_ip"),
        (3, ["node", "add", "n"], "--group"),
        (3, ["node", "add", "n", "--group", "nowhere"], "no group 'nowhere'"),
        (4, ["node", "add", "node1", "--group", "default"], "'node1' exists already"),
        (4, ["node", "add", "n", "--group", "default", "--primary-ip", "198.51.100.10"], "198.51.100.10"),
        (4, ["node", "remove", "node1"], "web"),
        (3, ["node", "remove", "nowhere"], "no node 'nowhere'"),
        (2, ["node", "list", "-o", "colour"], "colour"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_refused_tells_why_and_changes_nothing(machines: Site, code: int, words: list[str], said: str) -> None:
    before = machines.state()
    found, error = machines.error(*words)

    assert found == code, error
    assert said in error["message"]
    assert error["hint"]
    assert "--cascade" not in error["hint"]
    assert machines.state() == before


def test_a_group_may_begin_a_ledger(site: Site) -> None:
    site.text("group", "add", "default", "--store", "sqlite:///fresh.db")

    assert [group["name"] for group in site.json("group", "list", "--store", "sqlite:///fresh.db")] == ["default"]
    assert site.error("node", "add", "node1", "--store", "sqlite:///missing.db")[0] == 3
    assert not (site.folder / "missing.db").exists()
