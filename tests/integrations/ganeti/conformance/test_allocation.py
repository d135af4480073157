"""Cases A: allocation."""

import pytest

from tests.integrations.ganeti.conformance.door import Door


def test_a01_the_first_address_of_the_first_pool(door: Door) -> None:
    """A01."""
    assert door.add("inst1", "ip=pool") == ["192.0.2.10"]


def test_a02_the_first_free_address(door: Door) -> None:
    """A02."""
    door.add("inst1", "ip0=pool,ip1=pool")

    assert door.add("inst2", "ip=pool") == ["192.0.2.12"]


def test_a04_a_full_pool_leads_to_the_next_subnet_then_to_the_next_pool(door: Door) -> None:
    """A04."""
    door.modify("--pool remove:192.0.2.11-192.0.2.100")

    assert door.add("inst1", "ip0=pool,ip1=pool") == ["192.0.2.10", "10.0.0.8"]
    door.add("inst2", ",".join(f"ip{index}=pool" for index in range(7)))
    assert door.add("inst3", "ip=pool") == ["10.0.0.40"]


def test_a05_when_all_pools_are_full_nothing_is_left_behind(door: Door) -> None:
    """A05."""
    door.modify("--pool pool3:remove --pool remove:192.0.2.12-192.0.2.100")
    door.add("inst1", "ip=pool")

    door.refuse_add("ip0=pool,ip1=pool", "--net", "not enough free addresses")
    assert door.add("inst2", "ip=pool") == ["192.0.2.11"]


def test_an_instance_that_has_the_last_address_is_there_already_for_a_caller_that_asks_again(door: Door) -> None:
    """The answer to the first call may have been lost: that the pool is full would say that nothing was done."""
    door.modify("--pool pool3:remove --pool remove:192.0.2.11-192.0.2.100")
    door.add("inst1", "ip=pool")

    door.refuse("instance add --net 0:ip=pool,network=net1 inst1", "inst1", "already")
    door.refuse_add("ip=pool", "no free address")


def test_a07_a_pool_may_be_named(door: Door) -> None:
    """A07."""
    assert door.add("inst1", "ip=pool3") == ["10.0.0.8"]


def test_a08_a_named_pool_that_is_full_leads_nowhere(door: Door) -> None:
    """A08."""
    door.add("inst1", ",".join(f"ip{index}=pool3" for index in range(14)))

    door.refuse_add("ip=pool3", "--net", "pool3")


def test_a09_a_word_that_is_neither_address_nor_pool(door: Door) -> None:
    """A09."""
    door.refuse_add("ip=nosuch", "--net", "nosuch", "neither")


def test_a10_an_address_outside_pools_shows_in_no_map(door: Door) -> None:
    """A10."""
    assert door.add("inst1", "ip=192.0.2.200") == ["192.0.2.200"]

    assert all("X" not in pool["map"] for subnet in door.field("subnets") for pool in subnet["pools"])
    door.refuse_add("ip=192.0.2.200", "192.0.2.200", "inst1")


def test_a11_an_address_inside_a_pool_sets_its_bit(door: Door) -> None:
    """A11."""
    door.add("inst1", "ip=192.0.2.12")

    assert door.subnet("subnet1")["pools"][0]["map"][:4] == "..X."


def test_a12_an_address_outside_all_subnets(door: Door) -> None:
    """A12."""
    door.refuse_add("ip=203.0.113.1", "--net", "203.0.113.1", "in no subnet")


def test_a14_the_same_address_in_another_network(door: Door) -> None:
    """A14."""
    door.do("network add net2 --subnet add:cidr=192.0.2.0/24", "network connect net2")
    door.add("inst1", "ip=192.0.2.12")

    assert door.add("inst2", "ip=192.0.2.12,network=net2") == ["192.0.2.12"]


@pytest.mark.parametrize("word", ["POOL", "Pool"])
def test_a16_keywords_in_any_case(door: Door, word: str) -> None:
    """A16."""
    assert door.add("inst1", f"ip={word}") == ["192.0.2.10"]


@pytest.mark.parametrize("address", ["192.0.2.0", "192.0.2.255", "192.0.2.1"])
def test_a17_kept_back_addresses_need_force(door: Door, address: str) -> None:
    """A17."""
    door.refuse_add(f"ip={address}", "--net", address)

    assert door.add("inst1", f"ip={address}", "--force") == [address]


def test_a18_u21_order_is_the_order_of_subnets_not_of_versions(door: Door) -> None:
    """A18, U21."""
    door.do(
        "network add net2 --subnet add:cidr=2001:db8:2::/64,name=six --subnet add:cidr=10.2.0.0/24,name=four"
        " --pool add:10.2.0.5-10.2.0.9 --pool add:2001:db8:2::5-2001:db8:2::5",
        "network connect net2",
    )

    assert door.add("inst1", "ip0=pool,ip1=pool,network=net2") == ["2001:db8:2::5", "10.2.0.5"]
    assert door.add("inst2", "ip=pool") == ["192.0.2.10"]


def test_p26_u22_first_is_the_order_of_adding(door: Door) -> None:
    """P26, U22: of pools, not of addresses; parts of a split pool stay in place."""
    door.modify("--pool pool3:remove --pool add:10.0.0.40-10.0.0.45 --pool add:10.0.0.8/29 --pool pool1:remove")

    assert door.add("inst1", "ip=pool") == ["10.0.0.40"]
    door.modify("--pool remove:10.0.0.42")
    assert door.pools("subnet2") == ["10.0.0.40-10.0.0.41", "10.0.0.43-10.0.0.45", "10.0.0.8-10.0.0.15"]
    assert door.add("inst2", "ip0=pool,ip1=pool") == ["10.0.0.41", "10.0.0.43"]
