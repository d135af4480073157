"""Cases X: external reservations."""

import pytest

from tests.integrations.ganeti.conformance.door import Door

AUTOMATIC = ["192.0.2.0-192.0.2.1", "192.0.2.255"]


def test_x01_a_range_is_reserved_as_one(door: Door) -> None:
    """X01."""
    door.modify("--add-reserved-ips 192.0.2.20-192.0.2.50")

    assert door.external("subnet1") == [AUTOMATIC[0], "192.0.2.20-192.0.2.50", AUTOMATIC[1]]
    assert door.subnet("subnet1")["pools"][0]["map"].count("X") == 31


def test_x02_a_list_goes_to_the_subnets_it_lies_in(door: Door) -> None:
    """X02."""
    door.modify("--add-reserved-ips=192.0.2.5,192.0.2.60-192.0.2.62,10.0.0.0/30")

    assert door.external("subnet1") == [AUTOMATIC[0], "192.0.2.5", "192.0.2.60-192.0.2.62", AUTOMATIC[1]]
    assert door.external("subnet2") == ["10.0.0.0-10.0.0.3", "10.0.0.255"]


def test_x04_a_part_is_lifted(door: Door) -> None:
    """X04."""
    door.modify("--add-reserved-ips 192.0.2.20-192.0.2.50")

    door.modify("--remove-reserved-ips 192.0.2.30-192.0.2.35")

    assert door.external("subnet1") == [AUTOMATIC[0], "192.0.2.20-192.0.2.29", "192.0.2.36-192.0.2.50", AUTOMATIC[1]]


@pytest.mark.parametrize("text", ["203.0.113.1", "10.0.0.250-192.0.2.5", "192.0.2.5,203.0.113.1", "nonsense", ""])
def test_x06_a_bad_address_refuses_the_whole_command(door: Door, text: str) -> None:
    """X06, and not X17's warning: the reference says why (``tenure network modify``)."""
    door.refuse_modify(f"--add-reserved-ips '{text}'", "--add-reserved-ips")
    door.refuse(f"network add net2 --subnet add:cidr=192.0.2.0/24 --add-reserved-ips '{text}'", "--add-reserved-ips")


def test_x07_reserved_addresses_are_not_picked(door: Door) -> None:
    """X07."""
    door.modify("--add-reserved-ips 192.0.2.10-192.0.2.12")

    assert door.add("inst1", "ip=pool") == ["192.0.2.13"]


def test_x08_a_reserved_address_is_not_given_by_name(door: Door) -> None:
    """X08."""
    door.modify("--add-reserved-ips 192.0.2.10-192.0.2.12")

    door.refuse_add("ip=192.0.2.11", "--net", "192.0.2.11", "reserved")


@pytest.mark.parametrize("word", ["--force", "--no-conflicts-check"])
def test_x09_x10_with_force_it_is_given_and_stays_reserved(door: Door, word: str) -> None:
    """X09, X10, U25: both words are understood, on add and on modify; both marks are set."""
    door.modify("--add-reserved-ips 192.0.2.10-192.0.2.12")

    assert door.add("inst1", "ip=192.0.2.11", word) == ["192.0.2.11"]
    door.refuse("instance modify --net 0:modify,ip1=192.0.2.12 inst1", "192.0.2.12")
    door.do(f"instance modify {word} --net 0:modify,ip1=192.0.2.12 inst1")
    assert door.field("inst_list") == ["inst1"]
    assert "192.0.2.10-192.0.2.12" in door.external("subnet1")
    door.do("instance remove inst1")
    assert "192.0.2.10-192.0.2.12" in door.external("subnet1")
    assert door.add("inst2", "ip=pool") == ["192.0.2.13"]


def test_a_used_address_may_be_reserved(door: Door) -> None:
    """D:96: it stays with its instance, and goes to nobody afterwards."""
    door.add("inst1", "ip=pool")

    door.modify("--add-reserved-ips 192.0.2.10")
    door.do("instance remove inst1")

    assert door.add("inst2", "ip=pool") == ["192.0.2.11"]


def test_x13_a_pool_without_free_addresses_is_passed_over(door: Door) -> None:
    """X13."""
    door.modify("--add-reserved-ips 192.0.2.10-192.0.2.100")

    assert door.add("inst1", "ip=pool") == ["10.0.0.8"]


def test_x14_the_gateway_stays_reserved(door: Door) -> None:
    """X14: a warning for the gateway, the others are lifted; network and broadcast addresses may be lifted."""
    door.modify("--add-reserved-ips 192.0.2.5-192.0.2.7")

    result = door.modify("--remove-reserved-ips 192.0.2.1,192.0.2.6,192.0.2.0")

    assert "warning" in result.stderr
    assert "192.0.2.1 is the gateway" in result.stderr
    assert door.external("subnet1") == ["192.0.2.1", "192.0.2.5", "192.0.2.7", "192.0.2.255"]
    assert door.add("inst1", "ip=192.0.2.0") == ["192.0.2.0"]


@pytest.mark.parametrize(
    ("removed", "rest"),
    [
        ("192.0.2.20,192.0.2.99", ["192.0.2.99"]),
        ("192.0.2.18-192.0.2.22", ["192.0.2.18-192.0.2.19"]),
        ("192.0.2.18-192.0.2.52", ["192.0.2.18-192.0.2.19", "192.0.2.51-192.0.2.52"]),
        ("192.0.2.99,192.0.2.18-192.0.2.20", ["192.0.2.99", "192.0.2.18-192.0.2.19"]),
    ],
)
def test_x05_what_is_reserved_in_part_is_lifted_with_a_warning_for_the_rest(
    door: Door, removed: str, rest: list[str]
) -> None:
    """X05: in a list as in a range."""
    door.modify("--add-reserved-ips 192.0.2.20-192.0.2.50")

    result = door.modify(f"--remove-reserved-ips {removed}")

    assert [f"tenure: warning: --remove-reserved-ips: {piece} was not reserved" for piece in rest] == [
        line for line in result.stderr.splitlines() if "was not reserved" in line
    ]
    assert "192.0.2.20" not in " ".join(door.external("subnet1"))


def test_x05_of_many_parts_that_were_not_reserved_a_few_are_named(door: Door) -> None:
    """X05."""
    door.modify(f"--add-reserved-ips {','.join(f'192.0.2.{last}' for last in range(100, 150, 2))}")

    told = door.ask("network modify --remove-reserved-ips 192.0.2.100-192.0.2.149 net1")["warnings"]

    assert len(told) == 11
    assert told[-1] == "--remove-reserved-ips: and 15 more parts of 192.0.2.100-192.0.2.149 were not reserved"


def test_x05_scripts_find_the_warning_in_the_document(door: Door) -> None:
    """X05."""
    door.modify("--add-reserved-ips 192.0.2.20")

    told = door.ask("network modify --remove-reserved-ips 192.0.2.20-192.0.2.21 net1")

    assert told["warnings"] == ["--remove-reserved-ips: 192.0.2.21 was not reserved"]


@pytest.mark.parametrize("text", ["192.0.2.99", "192.0.2.98,192.0.2.99", "192.0.2.90-192.0.2.99"])
def test_what_is_not_reserved_at_all_is_not_lifted(door: Door, text: str) -> None:
    """A command that would lift nothing is a mistake."""
    door.modify("--add-reserved-ips 192.0.2.5")

    door.refuse_modify(f"--remove-reserved-ips {text}", "--remove-reserved-ips", "192.0.2.9", "reserve list net1")


def test_x15_a_prefix_is_one_range(door: Door) -> None:
    """X15."""
    door.modify("--add-reserved-ips 2001:db8:0:0:5::/80")

    assert door.external("six") == ["2001:db8::-2001:db8::1", "2001:db8:0:0:5::-2001:db8::5:ffff:ffff:ffff"]


def test_x16_addresses_of_nodes_are_reserved_in_new_blocks(door: Door) -> None:
    """X16."""
    door.do("node add node9 --primary-ip 198.51.100.9 --secondary-ip 203.0.113.9")

    door.modify("--subnet add:cidr=198.51.100.0/24,name=a")
    door.modify("--no-conflicts-check --subnet add:cidr=203.0.113.0/24,name=b")

    assert "198.51.100.9" in door.external("a")
    assert "203.0.113.9" not in door.external("b")
    door.do("node remove node9")
    assert "198.51.100.9" not in door.external("a")


def test_addresses_of_a_new_node_are_reserved_in_networks_that_cover_them(door: Door) -> None:
    """A node's addresses count in the conflict checks, whichever comes first."""
    door.add("inst1", "ip=192.0.2.30")

    door.refuse("node add node9 --primary-ip 192.0.2.30", "192.0.2.30", "inst1")
    door.do("node add node9 --primary-ip 192.0.2.10")

    assert door.add("inst2", "ip=pool") == ["192.0.2.11"]
    door.do("node add node8 --primary-ip 192.0.2.30 --no-conflicts-check")


def test_u17_overlapping_ranges_merge_with_a_warning(door: Door) -> None:
    """U17."""
    door.modify("--add-reserved-ips 192.0.2.20-192.0.2.30")

    result = door.modify("--add-reserved-ips 192.0.2.25-192.0.2.40")

    assert "warning" in result.stderr
    assert "192.0.2.20-192.0.2.40" in door.external("subnet1")


SMALL = "subnet add plain 198.51.100.8/29"


@pytest.mark.parametrize(
    "lines",
    [
        [SMALL, "pool add plain 198.51.100.9-198.51.100.12"],
        [f"{SMALL} --no-conflicts-check", "pool add plain 198.51.100.9-198.51.100.12"],
        [f"{SMALL} --no-conflicts-check", "network modify --pool add:198.51.100.9-198.51.100.12 plain"],
        [
            f"{SMALL} --name a",
            "subnet modify plain a --cidr 198.51.100.0/24",
            "pool add plain 198.51.100.9-198.51.100.12",
        ],
        [SMALL, "pool add plain 198.51.100.9-198.51.100.12", "reserve remove plain 198.51.100.9"],
    ],
)
def test_no_command_lets_an_instance_have_a_nodes_own_address(door: Door, lines: list[str]) -> None:
    """X16 by every command that opens ground."""
    door.do("node add node9 --primary-ip 198.51.100.9", "network add plain", "network connect plain", *lines)

    assert door.add("inst1", "ip=pool,network=plain") == ["198.51.100.10"]
    door.refuse_add("ip=198.51.100.9,network=plain", "198.51.100.9", "node node9")


def test_what_is_kept_for_a_node_is_said(door: Door) -> None:
    door.do("node add node9 --primary-ip 198.51.100.9", "network add plain")

    told = door.do(SMALL)
    lifted = door.do("reserve remove plain 198.51.100.9")

    assert "198.51.100.9 is kept away from picking: it is an address of node node9" in told.stderr
    assert "198.51.100.9 is kept away from picking: it is an address of node node9" in lifted.stderr


def test_a_subnet_is_not_added_over_a_nic_without_network_by_any_command(door: Door) -> None:
    """U37."""
    door.do("instance add --net 0:ip=203.0.113.7 loose")

    door.refuse("subnet add net1 203.0.113.0/24", "instance loose has 203.0.113.7")
    door.refuse("network modify --subnet add:cidr=203.0.113.0/24 net1", "instance loose has 203.0.113.7")
    door.do("subnet add net1 203.0.113.0/24 --no-conflicts-check")


@pytest.mark.parametrize("gateway", ["192.0.2.0", "192.0.2.255"])
def test_a_gateway_is_neither_the_first_nor_the_last_address_by_any_command(door: Door, gateway: str) -> None:
    door.refuse(f"subnet modify net1 subnet1 --gateway {gateway}", gateway)
    door.refuse(f"network modify --subnet subnet1:modify,gateway={gateway} net1", gateway)
    door.refuse(f"subnet add net1 10.7.0.0/24 --gateway 10.7.0.{gateway.rpartition('.')[2]}", "10.7.0.")


def test_verify_names_a_holding_on_the_address_of_a_node_or_a_gateway(door: Door) -> None:
    door.do("node add node9 --primary-ip 192.0.2.9")
    door.add("inst1", "ip0=192.0.2.9,ip1=pool", "--force")
    door.do("allocate net1 pod/1 --address 192.0.2.1 --reserved force", "node add node8 --primary-ip 192.0.2.77")
    door.do("allocate net1 node/node8 --address 192.0.2.77 --reserved force")
    door.do("allocate net1 router/six --address 2001:db8::1 --reserved force")

    result = door.call("verify")

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "machines: network net1: 192.0.2.1 is the gateway of 192.0.2.0/24, and pod/1 holds it",
        "machines: network net1: 192.0.2.9 is an address of node node9, and instance/inst1 holds it",
    ]
