"""How a pool's entries are read: which addresses each has, and what an address is handed out with."""

import time
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.pool_spec import read_pool_spec
from tenure.kernel.addressing.addresses import format_address, parse_address

ENTRIES: list[tuple[dict[str, Any], str, str]] = [
    ({"start": "10.0.0.1", "end": "10.0.0.1"}, "10.0.0.1", "10.0.0.1"),
    ({"start": "10.0.0.1"}, "10.0.0.1", "255.255.255.255"),
    ({"start": "10.0.0.250", "subnet": "10.0.0.0/24"}, "10.0.0.250", "10.0.0.255"),
    ({"start": "10.0.0.250", "end": "10.0.1.9", "subnet": "10.0.0.0/24"}, "10.0.0.250", "10.0.0.255"),
    ({"start": "9.0.0.1", "end": "10.0.0.9", "subnet": "10.0.0.0/24"}, "10.0.0.0", "10.0.0.9"),
    ({"subnet": "192.168.1.0/26"}, "192.168.1.1", "192.168.1.62"),
    ({"subnet": "192.168.1.1/26"}, "192.168.1.2", "192.168.1.62"),
    ({"subnet": "192.168.1.0/26", "end": "192.168.1.63"}, "192.168.1.1", "192.168.1.63"),
    ({"subnet": "192.168.1.0/31"}, "192.168.1.1", "192.168.1.1"),
    ({"subnet": "fd00::/126"}, "fd00::1", "fd00::3"),
    ({"subnet": "192.168.1.7/32"}, "", ""),
    ({"subnet": "192.168.1.62/26"}, "", ""),
    ({"start": "10.0.1.1", "subnet": "10.0.0.0/24"}, "", ""),
]


@pytest.mark.parametrize(("entry", "first", "last"), ENTRIES)
def test_the_addresses_of_an_entry(entry: dict[str, Any], first: str, last: str) -> None:
    """C7, C8, KD9, KS5."""
    reading = read_pool_spec({"namePrefix": "p", "pools": [entry]})
    assert reading.faults == []
    given = reading.spec.entries[0].range
    shown = ("", "") if given is None else (format_address(given.first), format_address(given.last))
    assert shown == (first, last)


def test_ipv4_addresses_in_ipv6_spelling_are_not_handed_out() -> None:
    """Nobody can ask for one, and an object that has one holds the IPv4 address."""
    spec = read_pool_spec({"namePrefix": "p", "pools": [{"start": "::fffe:0:0", "end": "::1:0:0:0"}]}).spec

    assert [[str(given) for given in of_entry] for of_entry in spec.runs()] == [
        ["::fffe:0:0-::fffe:ffff:ffff", "::1:0:0:0"],
    ]


def test_ks4_prefix_gateway_and_dns_servers_override_each_other_one_by_one() -> None:
    spec = read_pool_spec(
        {
            "namePrefix": "p", "prefix": 24, "gateway": "10.0.0.1", "dnsServers": ["10.0.0.53"],
            "pools": [
                {"subnet": "10.0.1.0/26", "gateway": "10.0.1.1"},
                {"subnet": "10.0.2.0/26", "prefix": 26, "dnsServers": ["10.0.2.53", "10.0.2.54"]},
            ],
        }
    ).spec  # fmt: skip
    first, second, outside = (spec.options_at(parse_address(each)) for each in ("10.0.1.5", "10.0.2.5", "10.9.9.9"))
    assert (first.prefix, first.gateway, first.dns_servers) == (24, "10.0.1.1", ("10.0.0.53",))
    assert (second.prefix, second.gateway, second.dns_servers) == (26, "10.0.0.1", ("10.0.2.53", "10.0.2.54"))
    assert outside == spec.options
    plain = read_pool_spec({"namePrefix": "p", "pools": [{"subnet": "10.0.1.0/26"}]}).spec
    assert plain.options_at(parse_address("10.0.1.5")).prefix == 26


@pytest.mark.parametrize(
    "spec",
    [
        None, [], "text", 7, {"pools": "x"}, {"pools": [None, 7, "x", []]},
        {"pools": [{"start": 7, "end": [], "subnet": {}}]},
        {"preAllocations": []}, {"preAllocations": {"a": None, "b": 7}}, {"tenure": 3},
        {"tenure": {"drain": [None, "x-y"]}},
        {"gateway": 7, "prefix": "x", "dnsServers": [None]}, {"pools": [{"subnet": "10.0.0.0/99"}, {"subnet": "/"}]},
        {"pools": {"start": "10.0.0.1"}}, {"dnsServers": 7}, {"tenure": {"drain": "10.0.0.1"}}, {"prefix": -1},
    ],
)  # fmt: skip
def test_whatever_stands_in_a_spec_it_is_read(spec: object) -> None:
    read_pool_spec(spec)


def test_thousands_of_entries_are_read_in_a_moment() -> None:
    entries = [{"start": f"10.{n >> 8}.{n & 255}.1", "end": f"10.{n >> 8}.{n & 255}.200"} for n in range(10_000)]
    began = time.process_time()
    spec = read_pool_spec({"namePrefix": "p", "pools": entries}).spec
    assert sum(len(runs) for runs in spec.runs()) == 10_000
    assert spec.options_at(parse_address("10.39.15.7")) == spec.options
    assert time.process_time() - began < 2
