"""What a command ends in counts: addresses that move, reservations that overlap, names that come free."""

import sys
from pathlib import Path

import pytest

from tests.integrations.ganeti.conformance.door import Door

SITE = (
    "network add s1 --space site --subnet add:cidr=10.50.0.0/24,pool",
    "network add s2 --space site --subnet add:cidr=10.50.0.0/24,pool",
    "network connect s1",
    "network connect s2",
)


@pytest.fixture
def hooks(tmp_path: Path) -> str:
    """Give options that make an operation one with hooks: a directory with one that does nothing."""
    for phase in ("pre", "post"):
        hook = tmp_path / "hooks" / f"instance-modify-{phase}.d" / "nothing"
        hook.parent.mkdir(parents=True)
        hook.write_text("#!/bin/sh\n", "utf-8")
        hook.chmod(0o755)
    return f"--hooks {tmp_path / 'hooks'}"


@pytest.mark.parametrize("hooked", [False, True])
def test_an_address_of_a_nic_that_goes_may_come_back_on_another(door: Door, hooks: str, hooked: bool) -> None:
    door.add("inst1", "ip=192.0.2.50")

    more = hooks if hooked else ""
    door.do(f"instance modify {more} --net 0:remove --net add:ip=192.0.2.50,network=net1 inst1")

    assert door.ips("inst1") == [["192.0.2.50"]]


@pytest.mark.parametrize("hooked", [False, True])
def test_a_nic_moves_with_its_address_between_networks_of_one_space(door: Door, hooks: str, hooked: bool) -> None:
    door.do(*SITE)
    door.add("inst1", "ip=pool,network=s1")

    door.do(f"instance modify {hooks if hooked else ''} --net 0:modify,network=s2 inst1")

    assert door.ips("inst1") == [["10.50.0.1"]]
    [found] = door.ask("instance list -o networks inst1")
    assert found["networks"] == ["s2"]
    assert door.add("inst2", "ip=pool,network=s1") == ["10.50.0.2"]


def test_two_addresses_swap_between_networks_of_one_space(door: Door) -> None:
    door.do(*SITE, "instance add --net 0:ip=10.50.0.7,network=s1 --net 1:ip=10.50.0.8,network=s2 inst1")

    door.do("instance modify --net 0:modify,ip=10.50.0.8 --net 1:modify,ip=10.50.0.7 inst1")

    assert door.ips("inst1") == [["10.50.0.8"], ["10.50.0.7"]]


def test_a_full_pool_serves_whoever_gives_back_its_last_address(door: Door) -> None:
    door.do("network add tiny --subnet add:cidr=10.60.0.0/30,pool --add-reserved-ips 10.60.0.2", "network connect tiny")
    assert door.add("inst1", "ip=pool,network=tiny") == ["10.60.0.1"]

    door.do("instance modify --net 0:remove --net add:network=tiny,ip=pool inst1")

    assert door.ips("inst1") == [["10.60.0.1"]]


def test_an_admins_reservation_stays_when_the_node_in_it_goes(door: Door) -> None:
    door.do("node add node2 --primary-ip 192.0.2.10")
    door.modify("--add-reserved-ips 192.0.2.8-192.0.2.11")

    door.do("node remove node2")

    assert "192.0.2.8-192.0.2.11" in door.external("subnet1")
    assert door.add("inst1", "ip=pool") == ["192.0.2.12"]


def test_a_nodes_address_stays_reserved_when_the_admins_range_goes(door: Door) -> None:
    door.do("node add node2 --primary-ip 192.0.2.10")
    door.modify("--add-reserved-ips 192.0.2.8-192.0.2.11")

    result = door.modify("--remove-reserved-ips 192.0.2.8-192.0.2.11")

    assert "192.0.2.10 stays reserved for node node2" in result.stderr
    assert door.add("inst1", "ip=pool") == ["192.0.2.11"]
    door.modify("--no-conflicts-check --remove-reserved-ips 192.0.2.10")
    assert door.add("inst2", "ip=pool") == ["192.0.2.10"]


def test_two_nodes_do_not_have_one_address(door: Door) -> None:
    door.do("node add node2 --primary-ip 192.0.2.10")

    door.refuse("node add node3 --secondary-ip 192.0.2.10", "--secondary-ip", "192.0.2.10", "node2")


@pytest.mark.parametrize("prefix", ["aa", "aa:bb", "aa:bb:cc:dd", "xx:bb:cc", ""])
def test_a_mac_prefix_has_three_bytes(door: Door, prefix: str) -> None:
    door.refuse_modify(f"--mac-prefix '{prefix}'", "aa:bb:cc")


@pytest.mark.parametrize("name", ["none", "pool", "add", "192.0.2.5", "192.0.2.0/24", "2001:db8::5", "a,b", "a=b"])
def test_words_of_the_grammar_are_no_networks(door: Door, name: str) -> None:
    door.refuse(f"network add {name}", name)
    door.refuse(f"network rename net1 {name}", name)


def test_the_uuid_of_a_network_is_no_name(door: Door) -> None:
    door.refuse(f"network add {door.field('uuid')}", door.field("uuid"))


def test_a_renamed_network_leaves_its_name_to_others(door: Door) -> None:
    door.do("network rename net1 shop", "network add net1")

    assert {(each["name"], each["space"]) for each in door.ask("network list")} == {("shop", "shop"), ("net1", "net1")}


def test_an_operation_stands_whatever_hooks_behind_it_do(door: Door, tmp_path: Path) -> None:
    """A hook that removes the very network is no reason to call the operation failed."""
    door.do("network add gone --subnet add:cidr=10.70.0.0/24,pool", "network connect gone")
    door.add("inst1", "ip=pool,network=gone")
    hook = tmp_path / "after" / "instance-remove-post.d" / "clear"
    hook.parent.mkdir(parents=True)
    hook.write_text(
        f"#!/bin/sh\nexport TENURE_STORE='{door.url}'\n"
        f"{sys.executable} -m tenure.doors.cli network disconnect gone\n"
        f"{sys.executable} -m tenure.doors.cli network remove gone --cascade\n",
        "utf-8",
    )
    hook.chmod(0o755)

    door.do(f"instance remove --hooks {tmp_path / 'after'} inst1")

    assert [each["name"] for each in door.ask("network list")] == ["net1"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("instance add --net 0:mac=02:00:00:00:00:01 --net 1:mac=02:00:00:00:00:01 x", ["--net '1:mac", "02:00"]),
        ("instance add --net 0:ip=192.0.2.77 x", ["--net '0:ip=192.0.2.77'", "net1"]),
        ("network modify --subnet add:cidr=203.0.113.0/24 net1", ["--subnet 'add:cidr=203.0.113.0/24'", "loose"]),
        ("network modify --subnet subnet1:remove net1", ["--subnet 'subnet1:remove'", "192.0.2.10"]),
        ("network modify --pool add:10.0.0.30 --subnet subnet1:remove net1", ["--subnet 'subnet1:remove'"]),
        ("node add node7 --primary-ip 192.0.2.10", ["--primary-ip", "192.0.2.10", "instance/inst1"]),
    ],
)
def test_a_refusal_names_the_option(door: Door, line: str, words: list[str]) -> None:
    door.add("inst1", "ip=pool")
    door.do("instance add --net 0:ip=203.0.113.7 loose")

    door.refuse(line, *words)


def test_a_nodes_address_stays_reserved_when_its_block_is_replaced(door: Door) -> None:
    door.do("node add node2 --primary-ip 10.0.0.30")

    door.modify("--subnet add:cidr=10.0.0.0/25,name=new --subnet subnet2:remove")

    assert "10.0.0.30" in door.external("new")


@pytest.mark.parametrize(
    "removed",
    ["192.0.2.200-192.0.2.210", "192.0.2.190-192.0.2.254", "192.0.2.200-192.0.2.205,192.0.2.206-192.0.2.210"],
)
def test_a_block_shrinks_while_the_reservation_outside_of_it_is_lifted(door: Door, removed: str) -> None:
    door.modify("--add-reserved-ips 192.0.2.200-192.0.2.210")

    door.modify(f"--subnet subnet1:modify,cidr=192.0.2.0/25 --remove-reserved-ips {removed}")

    assert door.external("subnet1") == ["192.0.2.0-192.0.2.1", "192.0.2.127"]


def test_a_block_that_shrinks_past_a_part_of_a_reservation_is_refused_by_name(door: Door) -> None:
    door.modify("--add-reserved-ips 192.0.2.200-192.0.2.210")

    shrink = "--subnet subnet1:modify,cidr=192.0.2.0/25"
    door.refuse_modify(shrink, "--subnet 'subnet1:modify", "192.0.2.200-192.0.2.210", "192.0.2.0/25")
    lifted = "--remove-reserved-ips 192.0.2.200-192.0.2.205"
    door.refuse_modify(f"{shrink} {lifted}", "--subnet 'subnet1:modify", "192.0.2.206-192.0.2.210", "192.0.2.0/25")


def test_a_block_moves_while_its_pool_and_reservation_go(door: Door) -> None:
    door.modify("--add-reserved-ips 10.0.0.200")

    door.modify(
        "--subnet subnet2:modify,cidr=10.9.0.0/24 --pool pool3:remove --pool add:10.9.0.8/29"
        " --remove-reserved-ips 10.0.0.200 --add-reserved-ips 10.9.0.8"
    )

    assert door.pools("subnet2") == ["10.9.0.8-10.9.0.15"]
    assert door.external("subnet2") == ["10.9.0.0", "10.9.0.8", "10.9.0.255"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("network modify --subnet subnet2:remove net1", ["subnet 'subnet2' is still in use", "10.0.0.8"]),
        ("network modify --subnet subnet2:modify,cidr=10.0.0.128/25 net1", ["subnet 'subnet2' is still in use"]),
        ("subnet remove net1 subnet2", ["subnet 'subnet2' is still in use", "--cascade"]),
        ("subnet modify net1 subnet2 --cidr 10.0.0.128/25", ["subnet 'subnet2' is still in use", "10.0.0.8"]),
        ("network remove lone", ["network 'lone' is still in use"]),
        ("reserve add net1 203.0.113.1", ["203.0.113.1 lies in no subnet of network 'net1'", "subnet list net1"]),
        ("reserve remove net1 203.0.113.1", ["203.0.113.1 lies in no subnet of network 'net1'", "subnet list net1"]),
        ("reserve remove net1 192.0.2.99", ["no reserved range '192.0.2.99' of network 'net1'", "reserve list net1"]),
        ("pool add net1 203.0.113.1-203.0.113.9", ["lies in no subnet of network 'net1'", "subnet list net1"]),
        ("network modify --pool add:203.0.113.1 net1", ["lies in no subnet of network 'net1'", "subnet list net1"]),
        ("network modify --add-reserved-ips 203.0.113.1 net1", ["lies in no subnet of network 'net1'"]),
        ("network modify --subnet nosuch:remove net1", ["no subnet 'nosuch' of network 'net1'", "subnet list net1"]),
        ("network modify --pool nosuch:remove net1", ["no pool 'nosuch' of network 'net1'", "pool list net1"]),
        ("network modify --pool nosuch:modify,name=x net1", ["no pool 'nosuch' of network 'net1'", "pool list net1"]),
        ("pool modify net1 nosuch --name x", ["no pool 'nosuch' of network 'net1'", "pool list net1"]),
        ("pool remove net1 nosuch", ["no pool 'nosuch' of network 'net1'", "pool list net1"]),
        ("pool map net1 nosuch", ["no pool 'nosuch' of network 'net1'", "pool list net1"]),
        ("subnet modify net1 nosuch --name x", ["no subnet 'nosuch' of network 'net1'", "subnet list net1"]),
        ("allocate net1 pod/1 --pool nosuch", ["no pool 'nosuch' of network 'net1'", "pool list net1"]),
        ("allocate net1 pod/1 --subnet nosuch", ["no subnet 'nosuch' of network 'net1'", "subnet list net1"]),
        ("allocate lone pod/1", ["no pool of network 'lone'", "pool list lone"]),
        ("allocate net1 pod/1 --address 203.0.113.1", ["203.0.113.1 lies in no subnet of network 'net1'"]),
        ("preallocation remove net1 pod/1", ["no pre-allocation 'pod/1' of network 'net1'", "preallocation list net1"]),
        ("instance add --net 0:ip=nosuch,network=net1 x", ["no pool 'nosuch' of network 'net1'", "pool list net1"]),
        ("instance add --net 0:ip=pool,network=lone x", ["no pool of network 'lone'", "pool list lone"]),
        ("instance add --net 0:ip=203.0.113.1,network=net1 x", ["no subnet of network 'net1'", "subnet list net1"]),
        ("instance add --net 0:network=nosuch x", ["no network 'nosuch'", "network list"]),
        ("network modify --gateway 192.0.2.9 lone", ["no IPv4 subnet of network 'lone'", "--subnet"]),
        ("network modify --network6 none lone", ["no IPv6 subnet of network 'lone'", "subnet list lone"]),
        ("network remove-tags net1 nosuch", ["no tag 'nosuch' of network 'net1'", "list-tags net1"]),
        ("transfer net1 192.0.2.99 pod/1 pod/2", ["nobody holds 192.0.2.99 in network 'net1'", "tenure show net1"]),
    ],
)
def test_an_error_names_the_object_and_the_hint_a_command_that_lists_what_there_is(
    door: Door, line: str, words: list[str]
) -> None:
    door.do("network add lone", "network connect lone")
    door.add("inst1", "ip=pool3")
    if line == "network remove lone":
        door.do("network disconnect lone", "subnet add lone 10.99.0.0/24", "allocate lone pod/7 --address 10.99.0.7")

    door.refuse(line, *words)
