"""Edits say what they did beside what was asked, to people and to scripts."""

import json

import pytest

from tests.doors.cli.site import Site

CUT = "pool pool1 was cut from 91 to 6 addresses: 192.0.2.10-192.0.2.100 lies in 192.0.2.0/28 only in part"
LAST = "192.0.2.15 of pool pool1 is the broadcast address of 192.0.2.0/28 now and is not picked"


@pytest.fixture
def plain(site: Site) -> Site:
    """Give a network with a pool of 91 addresses, two of them held."""
    site.text("network", "add", "lan")
    site.text("subnet", "add", "lan", "192.0.2.0/24", "--name", "a")
    site.text("pool", "add", "lan", "192.0.2.10-192.0.2.100", "--name", "pool1")
    site.text("allocate", "lan", "pod/1")
    site.text("allocate", "lan", "pod/2")
    return site


@pytest.mark.parametrize(
    "words",
    [
        ["subnet", "modify", "lan", "a", "--cidr", "192.0.2.0/28"],
        ["network", "modify", "lan", "--subnet", "a:modify,cidr=192.0.2.0/28"],
    ],
)
@pytest.mark.parametrize("scripted", [False, True])
def test_a_shrink_says_what_it_cut_from_a_pool(plain: Site, words: list[str], scripted: bool) -> None:
    result = plain.call(*words, *(["--json"] if scripted else []))

    assert result.exit_code == 0, result.output
    if scripted:
        assert json.loads(result.stdout)["warnings"] == [CUT, LAST]
    else:
        assert f"warning: {CUT}\n" in result.stderr
        assert f"warning: {LAST}\n" in result.stderr


@pytest.mark.parametrize("pool", ["192.0.2.10-192.0.2.20", "pool1"])
def test_a_pool_that_goes_from_under_holdings_says_how_many_stay_held(plain: Site, pool: str) -> None:
    result = plain.call("pool", "remove", "lan", pool)

    assert "which lies in no pool any more, 2 are held and stay held" in result.stderr


def test_scripts_get_warnings_beside_a_list_as_a_document(plain: Site) -> None:
    result = plain.call("pool", "remove", "lan", "192.0.2.10-192.0.2.20", "--json")

    text = "of 192.0.2.10-192.0.2.20, which lies in no pool any more, 2 are held and stay held"
    assert json.loads(result.stderr) == {"warnings": [text]}
    assert [pool["range"] for pool in json.loads(result.stdout)] == ["192.0.2.21-192.0.2.100"]


@pytest.mark.parametrize(
    "words",
    [
        ["subnet", "modify", "lan", "a", "--name", "a"],
        ["pool", "modify", "lan", "pool1", "--name", "pool1"],
        ["network", "modify", "lan", "--subnet", "a:modify,dhcp=no"],
        ["network", "retire", "lan", "--undo"],
        ["pool", "retire", "lan", "pool1", "--undo"],
    ],
)
def test_an_edit_that_changes_nothing_says_so(plain: Site, words: list[str]) -> None:
    assert plain.text(*words).startswith("nothing to change in ")

    result = plain.call(*words, "--json")
    told = json.loads(result.stdout)
    warnings = told["warnings"] if isinstance(told, dict) else json.loads(result.stderr)["warnings"]
    assert warnings == ["nothing was changed: it is so already"]


def test_an_edit_without_side_effects_warns_of_nothing(plain: Site) -> None:
    result = plain.call("subnet", "modify", "lan", "a", "--name", "b")

    assert (result.stdout, result.stderr) == ("changed subnet 192.0.2.0/24 of network lan\n", "")


@pytest.mark.parametrize("scripted", [False, True])
def test_lifting_more_than_is_reserved_says_so(plain: Site, scripted: bool) -> None:
    plain.text("reserve", "add", "lan", "192.0.2.200-192.0.2.201")
    result = plain.call("reserve", "remove", "lan", "192.0.2.200-192.0.2.210", *(["--json"] if scripted else []))

    rest = "192.0.2.202-192.0.2.210 was not reserved"
    assert result.exit_code == 0, result.output
    assert json.loads(result.stderr) == {"warnings": [rest]} if scripted else rest in result.stderr


def test_lifting_names_what_was_lifted(plain: Site) -> None:
    plain.text("reserve", "add", "lan", "192.0.2.200-192.0.2.201")
    plain.text("reserve", "add", "lan", "192.0.2.208")

    result = plain.call("reserve", "remove", "lan", "192.0.2.200-192.0.2.210")
    assert result.stdout == "192.0.2.200-192.0.2.201, 192.0.2.208 are no longer reserved in network lan\n"

    plain.text("reserve", "add", "lan", "192.0.2.208/29")
    # In the words of the command where all of it was reserved.
    assert plain.text("reserve", "remove", "lan", "192.0.2.208/29") == (
        "192.0.2.208/29 is no longer reserved in network lan\n"
    )


@pytest.mark.parametrize("scripted", [False, True])
def test_an_own_address_of_a_node_that_stays_reserved_is_not_said_to_be_lifted(plain: Site, scripted: bool) -> None:
    plain.text("group", "add", "default")
    plain.text("node", "add", "node1", "--primary-ip", "192.0.2.5")
    plain.text("network", "connect", "lan", "default", "-N", "mode=bridged,link=br0")
    plain.text("reserve", "add", "lan", "192.0.2.6")
    json_option = ["--json"] if scripted else []
    one = plain.call("reserve", "remove", "lan", "192.0.2.5", *json_option)
    both = plain.call("reserve", "remove", "lan", "192.0.2.5-192.0.2.6", *json_option)

    assert one.exit_code == both.exit_code == 0
    for result in (one, both):
        assert "192.0.2.5 is kept away from picking: it is an address of node node1" in result.stderr
        assert "`--no-conflicts-check`" in result.stderr
    if scripted:
        assert [each["range"] for each in json.loads(one.stdout)] == ["192.0.2.5", "192.0.2.6"]
        assert set(json.loads(one.stderr)) == {"warnings", "hint"}
    else:
        assert one.stdout == "nothing to change in network lan\n"
        assert both.stdout == "192.0.2.6 is no longer reserved in network lan\n"
    freed = plain.call("reserve", "remove", "lan", "192.0.2.5", "--no-conflicts-check")
    assert (freed.stdout, freed.stderr) == ("192.0.2.5 is no longer reserved in network lan\n", "")


SHRINKS = [
    ["subnet", "modify", "lan", "a", "--cidr", "192.0.2.0/25"],
    ["network", "modify", "lan", "--subnet", "a:modify,cidr=192.0.2.0/25"],
]


@pytest.mark.parametrize("words", [*SHRINKS, ["subnet", "remove", "lan", "a", "--cascade"]])
def test_a_shrink_over_an_address_that_waits_names_it_and_the_way_out(plain: Site, words: list[str]) -> None:
    plain.text("preallocation", "add", "lan", "192.0.2.210", "i/pp")
    result = plain.call(*words)

    assert result.exit_code == 4, result.output
    assert "is still in use by i/pp (192.0.2.210 waits for it)" in result.stderr
    assert "`tenure preallocation remove lan OWNER`" in result.stderr


@pytest.mark.parametrize("words", SHRINKS)
def test_a_shrink_over_a_reserved_range_names_the_way_out(plain: Site, words: list[str]) -> None:
    plain.text("reserve", "add", "lan", "192.0.2.200-192.0.2.210")
    result = plain.call(*words)

    assert result.exit_code == 4, result.output
    assert "reserved range 192.0.2.200-192.0.2.210" in result.stderr
    assert "`tenure reserve list lan`" in result.stderr
    assert "`tenure reserve remove lan" in result.stderr


def test_a_single_address_that_loses_its_pool_is_counted_in_the_singular(plain: Site) -> None:
    result = plain.call("pool", "remove", "lan", "192.0.2.10")

    assert "which lies in no pool any more, 1 is held and stays held" in result.stderr


def test_a_pool_of_two_ranges_is_listed_once(plain: Site) -> None:
    plain.text("pool", "add", "lan", "192.0.2.120-192.0.2.130", "--name", "pool1")
    plain.text("pool", "add", "lan", "192.0.2.140")

    [line] = [line for line in plain.text("show", "lan").splitlines() if line.lstrip().startswith("pools")]
    assert line.split() == ["pools", "pool1,192.0.2.140"]
