"""Manual subnets: what is kept back, what may be asked for, and everything that is refused."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.kernel.addressing.addresses import format_address, parse_address
from tests.integrations.bosh.documents.configs import (
    LAB,
    accepted,
    faults,
    lab,
    on_lab,
    refused_subnets,
    subnet,
    told,
    warned,
    written,
)

PREFIXED = {"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 26}
SIX = {"range": "2001:db8:5::/120", "gateway": "2001:db8:5::1"}
TWO = {"range": "172.20.5.0/31"}
TWO_SIX = {"range": "2001:db8:5::/127"}


def test_the_base_subnet_is_read_as_it_is_written() -> None:
    found = subnet()

    assert str(found.range) == "172.20.5.0/28"
    assert found.gateway == parse_address("172.20.5.1")
    assert told(found.restricted) == ["172.20.5.0-172.20.5.1", "172.20.5.15"]
    assert (found.reserved, found.static, found.dns, found.azs) == ((), (), (), None)
    assert (found.prefix, found.name, found.netmask_bits, found.cloud_properties) == (32, None, None, {})


def test_everything_that_is_kept_back_is_merged() -> None:
    found = subnet(on_lab(reserved=["172.20.5.2 - 172.20.5.4", "172.20.5.4/30", "172.20.5.9", "172.20.5.14"]))

    assert told(found.restricted) == ["172.20.5.0-172.20.5.7", "172.20.5.9", "172.20.5.14-172.20.5.15"]
    assert told(found.reserved) == ["172.20.5.2-172.20.5.7", "172.20.5.9", "172.20.5.14"]


def test_an_ipv6_subnet_keeps_its_last_address_back_too() -> None:
    found = subnet(SIX)

    assert told(found.restricted) == ["2001:db8:5::-2001:db8:5::1", "2001:db8:5::ff"]
    assert found.prefix == 128


def test_everything_else_that_a_subnet_says_is_kept() -> None:
    found = subnet(
        on_lab(
            dns=["8.8.8.8", "2001:db8::53/128"],
            azs=["z2", "z1", "z2"],
            cloud_properties={"vlan": 4, "tags": ["a"]},
            name="front",
            netmask_bits=28,
        ),
        azs="z1 z2",
    )

    assert found.dns == ("8.8.8.8", "2001:db8::53")
    assert found.azs == ("z2", "z1")
    assert found.cloud_properties == {"vlan": 4, "tags": ["a"]}
    assert (found.name, found.netmask_bits) == ("front", 28)


def test_what_is_null_is_as_if_it_were_not_there() -> None:
    nothing = dict.fromkeys(("dns", "reserved", "static", "az", "azs", "prefix", "cloud_properties", "point_to_point"))

    assert subnet(on_lab(**nothing)) == subnet()


def test_a_range_of_one_address_is_refused() -> None:
    for text in ("172.20.5.1/32", "172.20.5.1"):
        assert refused_subnets(on_lab(range=text)) == [
            (BoshErrorKind.NETWORK_INVALID_RANGE, f"Invalid network range '{text}', should include at least 2 IPs")
        ]


def test_a_range_or_gateway_that_is_no_address_is_refused() -> None:
    assert refused_subnets({"range": "172.20.5.0/40", "gateway": "here"}) == [
        (BoshErrorKind.GENERIC, "Invalid IP or CIDR format: 172.20.5.0/40"),
        (BoshErrorKind.GENERIC, "Invalid IP or CIDR format: here"),
    ]


def test_host_bits_of_a_range_are_masked() -> None:
    assert subnet(on_lab(range="172.20.5.1/28")) == subnet()
    assert subnet({**SIX, "range": "2001:db8:5::1/120"}) == subnet(SIX)


def test_host_bits_in_reserved_and_static_are_masked() -> None:
    """Stock cloud configs reserve ``((internal_gw))/30``: the gateway, and the whole block that it is in."""
    found = subnet(on_lab(reserved=["172.20.5.1/30"], static=["172.20.5.9/30"]))

    assert told(found.reserved) == ["172.20.5.0-172.20.5.3"]
    assert told(found.static) == ["172.20.5.8-172.20.5.11"]


def test_what_host_bits_stand_for_is_judged_like_any_other_block() -> None:
    assert refused_subnets(on_lab(reserved=["172.20.5.9/27"], static=["172.20.5.2/30"])) == [
        (BoshErrorKind.NETWORK_RESERVED_IP_OUT_OF_RANGE, "Reserved IP '172.20.5.16/32' is out of network 'lab' range"),
        (BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE, "Static IP '172.20.5.0/32' is in network 'lab' reserved range"),
    ]


@pytest.mark.parametrize(
    ("gateway", "reason"),
    [
        ("172.20.5.0/30", "must be a single IP"),
        ("172.20.5.1/30", "must be a single IP"),
        ("172.20.6.1", "must be inside the range"),
        ("2001:db8::1", "must be inside the range"),
        ("172.20.5.0", "can't be the network id"),
        ("172.20.5.15", "can't be the broadcast IP"),
    ],
)
def test_a_gateway_must_be_one_address_between_the_ends_of_the_range(gateway: str, reason: str) -> None:
    assert refused_subnets(on_lab(gateway=gateway)) == [
        (BoshErrorKind.NETWORK_INVALID_GATEWAY, f"Invalid gateway for network 'lab': {reason}")
    ]


def test_a_gateway_may_be_written_as_a_block_of_one() -> None:
    assert subnet(on_lab(gateway="172.20.5.1/32")) == subnet()


def test_range_and_gateway_are_needed() -> None:
    assert refused_subnets({}) == [
        (BoshErrorKind.GENERIC, "Required property 'range' was not specified"),
        (BoshErrorKind.GENERIC, "Required property 'gateway' was not specified"),
    ]


@pytest.mark.parametrize("without", [{}, {"range": None}])
def test_what_needs_a_range_is_refused_where_the_cloud_chooses_it(without: dict[str, Any]) -> None:
    """``range: null`` is as if it were not there."""
    needing = {"gateway": "172.20.5.1", "reserved": ["172.20.5.4"], "static": ["172.20.5.5"]}

    assert refused_subnets({"name": "first", **without, **needing}, managed=True) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, f"Network 'lab' must not specify '{key}' without specifying 'range'.")
        for key in needing
    ]
    [found] = (
        accepted(written(lab({"name": "first", **without, **dict.fromkeys(needing)}, managed=True)))
        .networks["lab"]
        .subnets
    )
    assert (found.range, found.gateway) == (None, None)


def test_a_name_server_must_be_one_address() -> None:
    assert refused_subnets(on_lab(dns=["8.8.8.8", "8.8.4.0/24", "dns.example"])) == [
        (BoshErrorKind.NETWORK_INVALID_DNS, "Invalid DNS for network 'lab': must be a single IP"),
        (BoshErrorKind.GENERIC, "Invalid IP or CIDR format: dns.example"),
    ]


def test_b12_a_name_server_inside_the_range_is_kept_back_with_a_warning() -> None:
    found, [warning] = warned(on_lab(dns=["172.20.5.2", "8.8.8.8"]))

    assert told(found.restricted) == ["172.20.5.0-172.20.5.2", "172.20.5.15"]
    assert found.reserved == ()
    assert warning.message == (
        "DNS server '172.20.5.2/32' is in network 'lab' range: it is kept back as if it were reserved"
    )
    assert warning.place is not None
    assert warning.place.path == "networks[0].subnets[0].dns[0]"


def test_a_name_server_that_is_kept_back_anyway_is_worth_no_word() -> None:
    found = subnet(on_lab(dns=["172.20.5.1", "172.20.5.3"], reserved="172.20.5.2 - 172.20.5.4"))

    assert told(found.restricted) == ["172.20.5.0-172.20.5.4", "172.20.5.15"]


def test_a_name_server_in_the_static_pool_stays_there_for_the_group_that_serves_names() -> None:
    found = subnet(on_lab(dns=["172.20.5.10"], static=["172.20.5.10"]))

    assert told(found.static) == ["172.20.5.10"]
    assert told(found.restricted) == ["172.20.5.0-172.20.5.1", "172.20.5.15"]


def test_b13_the_allocators_own_addresses_are_kept_back_in_the_ranges_that_they_are_in() -> None:
    own = ["172.20.5.2", "192.0.2.9", "2001:db8:5::7"]
    [four, six] = (accepted(written(lab(each), own_addresses=own)).networks["lab"].subnets[0] for each in (LAB, SIX))

    assert told(four.restricted) == ["172.20.5.0-172.20.5.2", "172.20.5.15"]
    assert told(six.restricted) == [
        "2001:db8:5::-2001:db8:5::1",
        "2001:db8:5::7",
        "2001:db8:5::ff",
    ]


@pytest.mark.parametrize("described", [TWO, TWO_SIX])
def test_b17_a_block_of_two_is_restricted_whole_with_a_warning(described: dict[str, Any]) -> None:
    found, [warning] = warned(described)

    assert found.range is not None
    assert found.restricted == (found.range.range,)
    assert warning.message == (
        f"Network 'lab' has no IP to give in range '{found.range}': 'point_to_point: true' frees both"
    )


@pytest.mark.parametrize("described", [TWO, TWO_SIX])
def test_b17_both_ends_of_a_point_to_point_block_are_usable(described: dict[str, Any]) -> None:
    assert subnet({**described, "point_to_point": True}).restricted == ()


def test_b17_the_gateway_of_a_point_to_point_block_is_one_of_its_ends() -> None:
    found = subnet({**TWO, "gateway": "172.20.5.1", "point_to_point": True, "static": ["172.20.5.0"]})

    assert told(found.restricted) == ["172.20.5.1"]
    assert told(found.static) == ["172.20.5.0"]


def test_b17_without_point_to_point_there_is_no_room_for_a_gateway() -> None:
    assert refused_subnets({**TWO, "gateway": "172.20.5.1"}) == [
        (BoshErrorKind.NETWORK_INVALID_GATEWAY, "Invalid gateway for network 'lab': can't be the broadcast IP")
    ]


def test_point_to_point_is_for_blocks_of_two() -> None:
    assert refused_subnets(on_lab(point_to_point=True)) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, "Network 'lab' must not specify 'point_to_point' for more than 2 IPs.")
    ]
    assert subnet(on_lab(point_to_point=False)) == subnet()


@pytest.mark.parametrize(
    ("span", "outside"),
    [
        ("172.20.6.1", "172.20.6.1/32"),
        ("172.20.4.250 - 172.20.5.4", "172.20.4.250/32"),
        ("172.20.5.8 - 172.20.5.20", "172.20.5.16/32"),
        ("172.20.0.0/16", "172.20.0.0/32"),
        ("2001:db8::1", "2001:db8::1/128"),
    ],
)
def test_reserved_and_static_addresses_must_be_in_the_range(span: str, outside: str) -> None:
    assert refused_subnets(on_lab(reserved=[span])) == [
        (BoshErrorKind.NETWORK_RESERVED_IP_OUT_OF_RANGE, f"Reserved IP '{outside}' is out of network 'lab' range")
    ]
    assert refused_subnets(on_lab(static=[span])) == [
        (BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE, f"Static IP '{outside}' is out of network 'lab' range")
    ]


@pytest.mark.parametrize(
    ("static", "restricted"),
    [
        ("172.20.5.9", "172.20.5.9"),
        ("172.20.5.6 - 172.20.5.12", "172.20.5.8"),
        ("172.20.5.1", "172.20.5.1"),
        ("172.20.5.0 - 172.20.5.4", "172.20.5.0"),
        ("172.20.5.15", "172.20.5.15"),
    ],
)
def test_c19_a_static_address_that_is_kept_back_is_refused(static: str, restricted: str) -> None:
    assert refused_subnets(on_lab(static=[static], reserved=["172.20.5.8 - 172.20.5.9"])) == [
        (
            BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE,
            f"Static IP '{restricted}/32' is in network 'lab' reserved range",
        )
    ]


def test_c20_every_address_of_a_static_block_counts() -> None:
    described = on_lab(static=["172.20.5.8/29"])

    assert refused_subnets({**described, "reserved": "172.20.5.10"}) == [
        (BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE, "Static IP '172.20.5.10/32' is in network 'lab' reserved range")
    ]
    assert refused_subnets(described) == [
        (BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE, "Static IP '172.20.5.15/32' is in network 'lab' reserved range")
    ]


def test_the_allocators_own_address_is_no_static_one() -> None:
    [fault] = faults(written(lab(on_lab(static=["172.20.5.5"])), own_addresses="172.20.5.4-172.20.5.7"))

    assert fault.message == "Static IP '172.20.5.5/32' is in network 'lab' reserved range"


def test_c22_a_reserved_range_that_runs_backwards_is_refused() -> None:
    assert refused_subnets(on_lab(reserved=["172.20.5.9-172.20.5.5"])) == [
        (BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, "Invalid IP range format: 172.20.5.9-172.20.5.5")
    ]


def test_a_block_is_no_end_of_a_range() -> None:
    assert refused_subnets(on_lab(static=["172.20.5.4/30 - 172.20.5.9", "next"])) == [
        (BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, "Invalid IP range format: 172.20.5.4/30 - 172.20.5.9"),
        (BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, "Invalid IP or CIDR format: next"),
    ]


def test_i7_with_a_prefix_a_static_address_must_be_the_base_of_a_block() -> None:
    static = ["10.10.0.64", "10.10.0.128", "10.10.0.191"]

    assert refused_subnets({**PREFIXED, "static": static}) == [
        (
            BoshErrorKind.NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS,
            "Static IP '10.10.0.191/32' of network 'lab' is no base address of prefix '26'",
        )
    ]


@pytest.mark.parametrize(
    "static",
    [
        ["10.10.0.64", "10.10.0.128"],
        ["10.10.0.64 - 10.10.0.128"],
        ["10.10.0.64 - 10.10.0.191"],
        ["10.10.0.64/26", "10.10.0.128"],
    ],
)
def test_i7_a_base_address_stands_for_its_block(static: list[str]) -> None:
    assert told(subnet({**PREFIXED, "static": static}).static) == ["10.10.0.64-10.10.0.191"]


@pytest.mark.parametrize(
    ("static", "end"),
    [("10.10.0.65 - 10.10.0.128", "10.10.0.65"), ("10.10.0.64 - 10.10.0.190", "10.10.0.190")],
)
def test_i7_a_static_range_must_not_cut_a_block_in_two(static: str, end: str) -> None:
    [(kind, message)] = refused_subnets({**PREFIXED, "static": [static]})

    assert kind is BoshErrorKind.NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS
    assert message.startswith(f"Static IP '{end}/32'")


def test_i7_a_static_block_may_hold_nothing_that_is_kept_back() -> None:
    assert refused_subnets({**PREFIXED, "static": ["10.10.0.192"]}) == [
        (BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE, "Static IP '10.10.0.255/32' is in network 'lab' reserved range")
    ]


def test_i8_a_prefix_shorter_than_the_range_is_refused() -> None:
    assert refused_subnets({**PREFIXED, "prefix": 23}) == [
        (BoshErrorKind.NETWORK_PREFIX_SIZE_TOO_BIG, "Prefix size '23' is larger than range prefix '24'")
    ]


@pytest.mark.parametrize("prefix", [-4, 0, 129, 1000])
def test_a_prefix_is_refused_that_no_range_of_the_cloud_could_have(prefix: int) -> None:
    """The cloud chooses the range of a managed subnet: of either family, so a length of either may be meant."""
    assert refused_subnets({"name": "first", "prefix": prefix}, managed=True) == [
        (
            BoshErrorKind.GENERIC,
            f"Property 'networks[0].subnets[0].prefix' must be from 1 to 128, not {prefix}",
        )
    ]


def test_a_prefix_longer_than_an_address_is_refused() -> None:
    assert refused_subnets({**PREFIXED, "prefix": 33}) == [
        (BoshErrorKind.NETWORK_INVALID_PROPERTY, "Network 'lab' must not specify a 'prefix' above '32'.")
    ]
    assert subnet({**SIX, "prefix": 128}).prefix == 128


def test_a_subnet_of_many_ranges_is_read_in_no_time() -> None:
    """What is listed is compared by search, never each with each, and never address by address."""
    pairs = [f"2001:db8:{number:x}::/64" for number in range(1, 1500)]
    found = subnet(
        {"range": "2001::/16", "gateway": "2001::1", "reserved": pairs[::2], "static": pairs[1::2]},
    )

    assert len(found.static) == 749
    assert format_address(found.restricted[-1].last) == "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff"


def test_all_faults_of_a_subnet_are_told_at_once_each_with_its_place() -> None:
    text = """\
networks:
- name: lab
  subnets:
  - range: 172.20.5.0/28
    gateway: 172.20.5.0
    dns: [8.8.0.0/16]
    reserved: [172.20.9.1]
    static:
    - 172.20.5.15
    azs: [z9]
    gatway: 172.20.5.1
"""

    assert [(fault.kind.title, fault.kind.value, str(fault.place)) for fault in faults(text)] == [
        ("DirectorError", 100, "config0.yml:11:13 (networks[0].subnets[0].gatway)"),
        ("NetworkInvalidGateway", 160003, "config0.yml:5:14 (networks[0].subnets[0].gateway)"),
        ("NetworkInvalidDns", 160004, "config0.yml:6:11 (networks[0].subnets[0].dns[0])"),
        ("NetworkReservedIpOutOfRange", 160005, "config0.yml:7:16 (networks[0].subnets[0].reserved[0])"),
        ("NetworkStaticIpOutOfRange", 160006, "config0.yml:9:7 (networks[0].subnets[0].static[0])"),
        ("NetworkSubnetUnknownAvailabilityZone", 160007, "config0.yml:10:11 (networks[0].subnets[0].azs[0])"),
    ]
