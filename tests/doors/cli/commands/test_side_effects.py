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
