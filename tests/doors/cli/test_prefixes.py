"""Prefixes on the command line: what one command prints, the others read."""

import pytest

from tests.doors.cli.site import Site

PREFIX = "2001:db8:100::/64"


@pytest.fixture
def prefixes(site: Site) -> Site:
    """Add a network that hands out prefixes."""
    site.text("network", "add", "net6")
    site.text("subnet", "add", "net6", "2001:db8:100::/48", "--unit", "64")
    site.text("pool", "add", "net6", "2001:db8:100::/56")
    return site


def test_a_prefix_is_read_as_it_is_printed(prefixes: Site) -> None:
    assert prefixes.text("allocate", "net6", "site/a").startswith(f"{PREFIX} held by site/a")

    assert "site/a" in prefixes.text("why", PREFIX)
    assert "site/a" in prefixes.text("show", PREFIX)
    assert "site/a" in prefixes.text("history", PREFIX)
    assert prefixes.json("holding", "modify", "net6", PREFIX, "site/a", "--carrier", "vm")["carrier"] == "vm"
    assert prefixes.json("transfer", "net6", PREFIX, "site/a", "site/b")["owner"] == "site/b"
    assert prefixes.json("release", "net6", PREFIX, "site/b")["owner"] == "site/b"
    assert prefixes.json("hold", "net6", "site/c", "--address", PREFIX)["state"] == "pending"
    assert prefixes.json("confirm", "net6", PREFIX, "site/c")["state"] == "held"
    assert prefixes.json("holding", "list", "net6", "--after", PREFIX) == []


def test_a_prefix_is_printed_with_its_length_wherever_it_is_printed(prefixes: Site) -> None:
    quiet = prefixes.text("allocate", "net6", "site/a", "--quiet")

    assert quiet == f"{PREFIX}\n"
    for words in (["show", "net6"], ["show", "site/a"], ["holding", "list", "net6"]):
        assert PREFIX in prefixes.text(*words).split(), words
        assert "192.0.2.10/32" not in prefixes.text("show", "net1")
    assert f"  {PREFIX}  site/a" in prefixes.text("watch", "--once")
    assert prefixes.text("release-owner", "site/a") == f"site/a no longer holds {PREFIX} in net6\n"


def test_a_pending_prefix_is_cancelled_and_a_free_one_waits_for_its_owner(prefixes: Site) -> None:
    prefixes.text("hold", "net6", "site/c")
    [wish] = prefixes.json("preallocation", "add", "net6", "2001:db8:100:7::/64", "site/d")

    assert prefixes.json("cancel", "net6", PREFIX, "site/c")["owner"] == "site/c"
    assert wish["address"] == "2001:db8:100:7::"
    assert prefixes.json("allocate", "net6", "site/d", "--address", "2001:db8:100:7::/64")["owner"] == "site/d"


@pytest.mark.parametrize(
    "words",
    [
        ["why", "192.0.2.10/33"],
        ["show", "192.0.2.10/33"],
        ["release", "net1", "192.0.2.10/24", "instance/web-0"],
        ["history", "2001:db8::/129"],
        ["why", "192.0.2.0/24"],
        ["show", "192.0.2.0/24"],
        ["history", "192.0.2.10/31"],
        ["release", "net1", "192.0.2.10/31", "instance/web-0"],
        ["transfer", "net1", "192.0.2.10/31", "instance/web-0", "instance/b"],
        ["confirm", "net1", "192.0.2.10/31", "instance/web-0"],
        ["cancel", "net1", "192.0.2.10/31", "instance/web-0"],
        ["holding", "modify", "net1", "192.0.2.10/31", "instance/web-0", "--carrier", "x"],
        ["preallocation", "add", "net1", "192.0.2.60/30", "instance/x"],
        ["hold", "net1", "instance/x", "--address", "192.0.2.60/30"],
        ["allocate", "net1", "instance/x", "--address", "192.0.2.60/30"],
        ["allocate", "net1", "instance/x", "--address", "192.0.2.60/x"],
    ],
    ids=" ".join,
)
def test_a_length_that_does_not_fit_is_refused(site: Site, words: list[str]) -> None:
    before = site.state()
    code, error = site.error(*words)

    assert (code, error["code"], error["field"]) == (2, "invalid", "address")
    assert site.state() == before


def test_a_single_address_may_have_its_length(site: Site) -> None:
    assert site.json("release", "net1", "192.0.2.10/32", "instance/web-0")["address"] == "192.0.2.10"


def test_holdings_of_a_network_without_pools_are_counted(site: Site) -> None:
    site.text("network", "add", "bare")
    site.text("subnet", "add", "bare", "198.51.100.0/24")
    for last in ("7", "8"):
        site.text("allocate", "bare", f"instance/{last}", "--address", f"198.51.100.{last}")
    site.text("hold", "bare", "instance/p", "--address", "198.51.100.9")

    [row] = [row for row in site.json("show") if row["network"] == "bare"]
    assert (row["held"], row["pending"], row["cooling"]) == (2, 1, 0)
    assert (row["pool"], row["size"], row["free"]) == (None, None, None)
