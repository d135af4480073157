"""What hooks and scripts are told: today's names always, the revised design's where it goes beyond today."""

from dataclasses import replace

import pytest

from tenure.integrations.ganeti.hook_environment import hook_variables, instance_variables, job_variables, nic_variables
from tenure.kernel.plan import edits
from tenure.kernel.plan.plan_model import Network
from tests.integrations.ganeti.plans import instance, nic, of_cases, of_today
from tests.kernel.plans import planned

TODAY = {
    "IP": "192.0.2.5",
    "MAC": "aa:00:00:00:00:00",
    "MODE": "bridged",
    "LINK": "br100",
    "VLAN": "",
    "UUID": "nic-uuid-0",
    "BRIDGE": "br100",
    "NETWORK_NAME": "c",
    "NETWORK_UUID": "uuid-1",
    "NETWORK_TAGS": "",
    "NETWORK_SUBNET": "192.0.2.0/28",
    "NETWORK_GATEWAY": "192.0.2.1",
}


def both_families(*, dhcp: bool = False) -> Network:
    """Plan the most that today's Ganeti can express, and its dhcp flag that it cannot."""
    plan = planned(
        edits.AddNetwork(network="c", mac_prefix="aa:00:01", tags=["one", "two"]),
        edits.AddSubnet(network="c", cidr="2001:db8::/64", gateway="2001:db8::1", uuid="s1", dhcp=dhcp),
        edits.AddSubnet(network="c", cidr="192.0.2.0/28", uuid="s2"),
    )
    return plan.network("c")


def test_q14_a_nic_with_one_address_is_told_of_as_today_name_by_name() -> None:
    network = of_today()

    assert nic_variables(nic(network, "192.0.2.5"), network) == TODAY


def test_q14_a_network_with_a_block_of_each_family_is_told_of_as_today_whatever_their_order() -> None:
    network = both_families()

    assert nic_variables(nic(network, "192.0.2.5", name="front"), network) == {
        **{name: value for name, value in TODAY.items() if name != "NETWORK_GATEWAY"},
        "NAME": "front",
        "NETWORK_TAGS": "one two",
        "NETWORK_MAC_PREFIX": "aa:00:01",
        "NETWORK_SUBNET6": "2001:db8::/64",
        "NETWORK_GATEWAY6": "2001:db8::1",
    }


def test_a_nic_without_address_has_an_empty_ip_and_no_numbers() -> None:
    network = of_today()

    assert nic_variables(nic(network), network) == {**TODAY, "IP": ""}


def test_a_nic_without_network_is_told_of_without_one() -> None:
    own = {name: value for name, value in TODAY.items() if not name.startswith("NETWORK")}

    assert nic_variables(nic(None, "192.0.2.5"), None) == own
    assert nic_variables(nic(None, "192.0.2.5", "10.0.0.1"), None) == {
        **own,
        "IP:0": "192.0.2.5",
        "IP_0": "192.0.2.5",
        "IP:1": "10.0.0.1",
        "IP_1": "10.0.0.1",
    }


@pytest.mark.parametrize(("mode", "bridge"), [("bridged", "br100"), ("openvswitch", "br100"), ("routed", None)])
def test_a_link_is_called_a_bridge_where_it_is_one(mode: str, bridge: str | None) -> None:
    assert nic_variables(replace(nic(None), mode=mode), None).get("BRIDGE") == bridge


def test_a_network_without_subnets_has_neither_block_nor_gateway() -> None:
    network = planned(edits.AddNetwork(network="net0")).network("net0")

    told = nic_variables(nic(network), network)

    assert sorted(name for name in told if name.startswith("NETWORK_")) == [
        "NETWORK_NAME",
        "NETWORK_TAGS",
        "NETWORK_UUID",
    ]


def test_q16_u29_every_subnet_is_numbered_in_both_spellings_beside_todays_names() -> None:
    network = of_cases(edits.ModifySubnet(network="net1", subnet="six", dhcp=True))

    told = nic_variables(nic(network, "10.0.0.8"), network)

    numbered = {name: value for name, value in told.items() if ":" in name}
    assert numbered == {
        "IP:0": "10.0.0.8",
        "NETWORK_SUBNET:0": "192.0.2.0/24",
        "NETWORK_GATEWAY:0": "192.0.2.1",
        "NETWORK_DHCP:0": "false",
        "NETWORK_SUBNET:1": "10.0.0.0/24",
        "NETWORK_DHCP:1": "false",
        "NETWORK_SUBNET:2": "2001:db8::/64",
        "NETWORK_GATEWAY:2": "2001:db8::1",
        "NETWORK_DHCP:2": "true",
    }
    assert {name.replace(":", "_"): value for name, value in numbered.items()}.items() <= told.items()
    assert (told["NETWORK_SUBNET"], told.get("NETWORK_GATEWAY")) == ("10.0.0.0/24", None)
    assert (told["NETWORK_SUBNET6"], told["NETWORK_GATEWAY6"]) == ("2001:db8::/64", "2001:db8::1")


TWO_BLOCKS = {
    "192.0.2.1": "192.0.2.0/24",
    "10.0.0.1": "10.0.0.0/24",
    "fe80::1": "2001:db8::/64",
    "fe80::2": "2001:db8:1::/64",
}
"""Gateways and their blocks, two of each family."""


def two_blocks() -> Network:
    """Plan a network with two blocks of each family, each with a gateway."""
    added = [
        edits.AddSubnet(network="c", cidr=cidr, gateway=gateway, uuid=f"s{number}", dhcp=number == 1)
        for number, (gateway, cidr) in enumerate(TWO_BLOCKS.items())
    ]
    return planned(edits.AddNetwork(network="c"), *added).network("c")


@pytest.mark.parametrize(
    ("addresses", "four", "six"),
    [
        ([], "192.0.2.1", "fe80::1"),
        (["192.0.2.9"], "192.0.2.1", "fe80::1"),
        (["10.0.0.9"], "10.0.0.1", "fe80::1"),
        (["10.0.0.9", "192.0.2.9"], "10.0.0.1", "fe80::1"),
        (["2001:db8:1::9"], "192.0.2.1", "fe80::2"),
        (["2001:db8:1::9", "10.0.0.9"], "10.0.0.1", "fe80::2"),
    ],
)
def test_gateway_and_subnet_are_those_of_the_block_in_which_the_nics_address_lies(
    addresses: list[str], four: str, six: str
) -> None:
    network = two_blocks()

    told = nic_variables(nic(network, *addresses), network)

    assert (told["NETWORK_GATEWAY"], told["NETWORK_SUBNET"]) == (four, TWO_BLOCKS[four])
    assert (told["NETWORK_GATEWAY6"], told["NETWORK_SUBNET6"]) == (six, TWO_BLOCKS[six])
    assert told["NETWORK_DHCP"] == ("true" if addresses[:1] == ["10.0.0.9"] else "false")


def test_q16_dhcp_without_number_is_that_of_the_first_subnet_and_only_dhcp_makes_numbers() -> None:
    network = both_families(dhcp=True)

    told = nic_variables(nic(network), network)

    assert (told["NETWORK_DHCP"], told["NETWORK_DHCP:0"], told["NETWORK_DHCP_1"]) == ("true", "true", "false")
    assert "NETWORK_DHCP" not in nic_variables(nic(None), both_families())


def test_u29_the_subnet_of_each_address_is_told_by_its_number() -> None:
    network = of_cases()

    told = nic_variables(nic(network, "10.0.0.8", "2001:db8::5", None, "192.0.2.4"), network)

    assert [told.get(f"IP_SUBNET_{number}") for number in range(4)] == ["1", "2", None, "0"]
    assert [told[f"IP:{number}"] for number in range(4)] == ["10.0.0.8", "2001:db8::5", "", "192.0.2.4"]
    assert told["IP"] == "10.0.0.8"
    assert "IP_SUBNET:0" not in told


def test_q17_hooks_find_each_nic_under_its_number() -> None:
    network = of_cases()
    web = instance("web", nic(network, "192.0.2.10", "10.0.0.8"), nic(None, number=1))

    told = hook_variables(instance_variables(web, {network.uuid: network}))

    assert told["GANETI_INSTANCE_NAME"] == "web"
    assert told["GANETI_INSTANCE_PRIMARY"] == "node1"
    assert told["GANETI_INSTANCE_NIC_COUNT"] == "2"
    assert told["GANETI_INSTANCE_NIC0_IP"] == "192.0.2.10"
    assert told["GANETI_INSTANCE_NIC0_IP:1"] == told["GANETI_INSTANCE_NIC0_IP_1"] == "10.0.0.8"
    assert told["GANETI_INSTANCE_NIC0_NETWORK_NAME"] == "net1"
    assert told["GANETI_INSTANCE_NIC1_MAC"] == "aa:00:00:00:00:01"
    assert "GANETI_INSTANCE_NIC1_NETWORK_NAME" not in told


BEFORE = instance_variables(instance("web", nic(None, "192.0.2.10")), {})
AFTER = instance_variables(instance("web", nic(None, "192.0.2.11")), {})


def addresses(told: dict[str, str]) -> dict[str, str]:
    """Find the address of the first NIC under every prefix."""
    found = {name.partition("INSTANCE_")[0]: value for name, value in told.items() if name.endswith("INSTANCE_NIC0_IP")}
    assert {name.partition("INSTANCE_")[0] for name in told} == found.keys()
    return found


def test_an_added_instance_is_told_as_it_is_going_to_be_and_then_as_it_is() -> None:
    assert addresses(job_variables(None, AFTER, post=False)) == {"GANETI_": "192.0.2.11"}
    assert addresses(job_variables(None, AFTER, post=True)) == {"GANETI_": "192.0.2.11", "GANETI_POST_": "192.0.2.11"}


def test_a_changed_instance_is_told_as_it_is_going_to_be_and_as_it_was() -> None:
    before = {"GANETI_": "192.0.2.11", "GANETI_OLD_": "192.0.2.10"}

    assert addresses(job_variables(BEFORE, AFTER, post=False)) == before
    assert addresses(job_variables(BEFORE, AFTER, post=True)) == {**before, "GANETI_POST_": "192.0.2.11"}


@pytest.mark.parametrize("post", [False, True])
def test_a_removed_instance_is_told_as_it_was(post: bool) -> None:
    assert addresses(job_variables(BEFORE, None, post=post)) == {"GANETI_": "192.0.2.10"}
