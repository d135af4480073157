"""An address that was picked from a later pool because the earlier ones were full: the command line says so."""

import json
from typing import Any

import pytest

from tenure.doors.cli.commands import allocate
from tenure.service.ledger.async_ledger import AsyncLedger
from tests.doors.cli.site import Site

FULL = "pool four (IPv4) of network lan was full, so the IPv6 address 2001:db8::10 was picked from a later pool"


@pytest.fixture
def dual(site: Site) -> Site:
    """Give a network of both families, with one IPv4 address that is held."""
    site.text("network", "add", "lan")
    site.text("subnet", "add", "lan", "192.0.2.0/24", "--name", "v4")
    site.text("subnet", "add", "lan", "2001:db8::/64", "--name", "v6")
    site.text("pool", "add", "lan", "192.0.2.10", "--name", "four")
    site.text("pool", "add", "lan", "2001:db8::10-2001:db8::ff", "--name", "six")
    site.text("allocate", "lan", "pod/0")
    return site


@pytest.mark.parametrize("verb", ["allocate", "hold"])
def test_an_address_of_the_other_family_names_the_full_pool(dual: Site, verb: str) -> None:
    result = dual.call(verb, "lan", "pod/1")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("2001:db8::10 ")
    assert result.stderr == f"tenure: warning: {FULL}\n"


@pytest.mark.parametrize("verb", ["allocate", "hold"])
def test_scripts_find_the_family_and_the_warning_in_the_answer(dual: Site, verb: str) -> None:
    result = dual.call(verb, "lan", "pod/1", "--json")

    document = json.loads(result.stdout)
    assert (document["family"], document["warnings"], result.stderr) == ("ipv6", [FULL], "")
    assert dual.json("holding", "list", "lan")[0]["family"] == "ipv4"


@pytest.mark.parametrize("limit", [["--family", "ipv6"], ["--pool", "six"], ["--subnet", "v6"]])
def test_what_was_asked_for_needs_no_warning(dual: Site, limit: list[str]) -> None:
    assert dual.json("allocate", "lan", "pod/1", *limit)["warnings"] == []


def test_the_same_answer_again_needs_no_warning(dual: Site) -> None:
    dual.text("allocate", "lan", "pod/1")

    assert dual.json("allocate", "lan", "pod/1")["warnings"] == []


def test_neither_a_named_address_nor_one_that_waits_for_its_owner_needs_a_warning(dual: Site) -> None:
    dual.text("preallocation", "add", "lan", "2001:db8::20", "pod/2")

    assert dual.json("allocate", "lan", "pod/1", "--address", "2001:db8::30")["warnings"] == []
    assert dual.json("allocate", "lan", "pod/2")["warnings"] == []


def test_several_addresses_have_one_warning_for_people_and_each_its_own_for_scripts(dual: Site) -> None:
    told = FULL.replace("2001:db8::10 was", "2001:db8::10 and 2 more were")
    assert dual.call("allocate", "lan", "pod/1", "--count", "3").stderr == f"tenure: warning: {told}\n"
    for place in (10, 11, 12):
        dual.text("release", "lan", f"2001:db8::{place}", "pod/1")

    result = dual.call("allocate", "lan", "pod/1", "--count", "3", "--json")

    assert result.stderr == ""
    assert [each["warnings"] for each in json.loads(result.stdout)] == [
        [FULL.replace("::10 was", f"::{place} was")] for place in (10, 11, 12)
    ]


def test_of_several_addresses_only_those_from_a_later_pool_have_the_warning(dual: Site) -> None:
    dual.text("pool", "add", "lan", "192.0.2.11", "--name", "more")

    four, six = dual.json("allocate", "lan", "pod/1", "--count", "2")

    assert (four["family"], four["warnings"]) == ("ipv4", [])
    assert six["family"] == "ipv6"
    assert len(six["warnings"]) == 1


@pytest.fixture
def sticky(site: Site) -> Site:
    """Give a network of two sticky pools, whose first rank has one address, which is held."""
    site.text("network", "add", "lan")
    site.text("subnet", "add", "lan", "192.0.2.0/24")
    site.text("pool", "add", "lan", "192.0.2.10", "--name", "first", "--policy", "sticky")
    site.text("pool", "add", "lan", "192.0.2.20-192.0.2.22", "--name", "later", "--policy", "sticky", "--rank", "4")
    site.text("allocate", "lan", "pod/0")
    return site


@pytest.mark.parametrize("several", [[], ["--count", "1"]])
def test_sticky_warns_of_a_later_pool_where_the_owner_never_was(sticky: Site, several: list[str]) -> None:
    result = sticky.call("allocate", "lan", "pod/1", *several)

    assert "pool first (IPv4) of network lan was full" in result.stderr


def test_sticky_warns_though_another_owner_or_slot_had_the_address(sticky: Site) -> None:
    address = sticky.json("allocate", "lan", "pod/1")["address"]
    sticky.text("release", "lan", address, "pod/1")
    for taken in {"192.0.2.20", "192.0.2.21", "192.0.2.22"} - {address}:
        sticky.text("allocate", "lan", f"pod/{taken}", "--address", taken)

    assert sticky.json("allocate", "lan", "pod/1", "--slot", "b")["warnings"] != []


def test_sticky_that_came_back_to_its_former_address_needs_no_warning(sticky: Site) -> None:
    address = sticky.json("allocate", "lan", "pod/1")["address"]
    sticky.text("release", "lan", address, "pod/1")
    again = sticky.json("allocate", "lan", "pod/1")

    assert (again["address"], again["warnings"]) == (address, [])


def test_a_repeat_under_a_key_has_no_warning_and_the_help_says_so(dual: Site) -> None:
    first, again = (dual.json("allocate", "lan", "pod/1", "--key", "k1")["warnings"] for _ in range(2))

    assert (first, again) == ([FULL], [])
    assert "asking again, also with the same --key" in " ".join(dual.text("allocate", "--help").split())


def test_a_later_rank_names_the_earlier_pools_that_were_full(dual: Site) -> None:
    dual.text("pool", "add", "lan", "192.0.2.99", "--name", "spare", "--rank", "2", "--policy", "random")
    dual.text("pool", "modify", "lan", "four", "--policy", "random")
    dual.text("pool", "modify", "lan", "six", "--rank", "3", "--policy", "random")

    assert dual.json("allocate", "lan", "pod/1")["warnings"] == [
        "pool four (IPv4) of network lan was full, so the IPv4 address 192.0.2.99 was picked from a later pool"
    ]
    assert "pools four (IPv4), spare (IPv4) of network lan were full" in dual.call("allocate", "lan", "pod/2").stderr


def test_where_chance_decides_between_families_nothing_is_said_of_full_pools(dual: Site) -> None:
    assert dual.json("allocate", "lan", "pod/1", "--policy", "random")["warnings"] == []


@pytest.mark.parametrize("several", [[], ["--count", "1"]])
def test_an_address_of_a_pool_that_came_after_the_plan_was_read_is_printed(
    dual: Site, several: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = allocate._held_before

    async def read_before(ledger: AsyncLedger, network: str, owner: str, said: dict[str, Any]) -> Any:
        found = await read(ledger, network, owner, said)
        await ledger.add_pool(network, "192.0.2.50", name="new")
        return found

    monkeypatch.setattr(allocate, "_held_before", read_before)
    result = dual.call("allocate", "lan", "pod/1", "--pool", "new", *several)

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("192.0.2.50 held by pod/1")
