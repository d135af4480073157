"""PTR zones, proved by a real parser: cut where DNS can cut, each record at the reverse name of its address."""

import ipaddress
from typing import Any

import dns.rdatatype
import dns.reversename
import dns.zone
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.interchange.render.ptr_zones import Zones, render_ptr_zones
from tenure.interchange.render.reverse_zones import owner_label, zones_of
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import Cidr, parse_cidr
from tests.interchange.render.rendered import furnish
from tests.kernel.strategies import cidrs

Options = dict[str, Any]
USUAL: Options = {"serial": 2026010101, "nameservers": ["ns1.example.com"], "domain": "example.com"}


async def rendered(**options: Any) -> Zones:
    """Render the furnished network."""
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)
        return await render_ptr_zones(ledger, "n", **{**USUAL, **options})


def parsed(text: str, name: str) -> Any:
    """Read a zone as a nameserver would."""
    return dns.zone.from_text(text, origin=f"{name}.", relativize=False)


def pointers(zones: Zones) -> dict[str, str]:
    """Return every PTR of all zones, by its full name."""
    return {
        str(name): str(record.target)
        for zone in zones.zones
        for name, _, record in parsed(zone.text, zone.name).iterate_rdatas(dns.rdatatype.PTR)
    }


async def test_zones_are_read_by_a_real_parser_and_point_to_the_names() -> None:
    zones = await rendered()

    assert [zone.name for zone in zones.zones] == [
        "2.0.192.in-addr.arpa",
        "64/26.100.51.198.in-addr.arpa",
        "0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
        "1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
    ]
    found = pointers(zones)
    assert found[str(dns.reversename.from_address("192.0.2.10"))] == "web-0.example.com."
    assert found[str(dns.reversename.from_address("192.0.2.15"))] == "mail.example.org."
    assert found[str(dns.reversename.from_address("2001:db8::10"))] == "web-0-v6.example.com."
    assert found["70.64/26.100.51.198.in-addr.arpa."] == "db.example.com."
    assert len(found) == 8


async def test_each_zone_has_its_serial_its_contact_and_its_nameservers() -> None:
    zones = await rendered(nameservers=["ns1.example.com", "ns2.example.net."], contact="dns.example.com", ttl_s=60)

    for zone in zones.zones:
        read = parsed(zone.text, zone.name)
        [soa] = read.get_rdataset(read.origin, dns.rdatatype.SOA)
        assert (soa.serial, str(soa.mname), str(soa.rname)) == (2026010101, "ns1.example.com.", "dns.example.com.")
        servers = read.get_rdataset(read.origin, dns.rdatatype.NS)
        assert (sorted(str(each.target) for each in servers), servers.ttl) == (
            ["ns1.example.com.", "ns2.example.net."], 60,
        )  # fmt: skip


async def test_a_block_below_an_octet_tells_what_the_zone_above_must_hold() -> None:
    zones = await rendered()

    text = next(zone.text for zone in zones.zones if zone.name.startswith("64/26"))
    parent = "\n".join(line.removeprefix(";   ") for line in text.splitlines() if line.startswith(";   "))
    above = parsed(f"@ 60 IN SOA a. b. 1 1 1 1 1\n@ 60 IN NS a.\n$TTL 60\n{parent}\n", "100.51.198.in-addr.arpa")
    aliases = {str(name): str(each.target) for name, _, each in above.iterate_rdatas(dns.rdatatype.CNAME)}

    assert len(aliases) == 64
    reverse = str(dns.reversename.from_address("198.51.100.70"))
    assert pointers(zones)[aliases[reverse]] == "db.example.com."


async def test_names_without_a_domain_are_told_and_not_written() -> None:
    zones = await rendered(domain=None)

    assert set(pointers(zones).values()) == {"web-1-nic0-ip1.lab.example.net.", "mail.example.org."}
    assert "192.0.2.10" in {odd.place.path for odd in zones.left_out if odd.field == "domain"}


@pytest.mark.parametrize(
    ("block", "names"),
    [
        ("10.0.0.0/8", ["10.in-addr.arpa"]),
        ("10.16.0.0/15", ["16.10.in-addr.arpa", "17.10.in-addr.arpa"]),
        ("10.1.4.0/23", ["4.1.10.in-addr.arpa", "5.1.10.in-addr.arpa"]),
        ("192.0.2.0/24", ["2.0.192.in-addr.arpa"]),
        ("192.0.2.128/25", ["128/25.2.0.192.in-addr.arpa"]),
        ("192.0.2.7/32", ["7/32.2.0.192.in-addr.arpa"]),
        ("2001:db8::/32", ["8.b.d.0.1.0.0.2.ip6.arpa"]),
        ("2001:db8:8000::/34", [f"{nibble}.8.b.d.0.1.0.0.2.ip6.arpa" for nibble in "89ab"]),
        ("0.0.0.0/0", ["in-addr.arpa"]),
    ],
)
def test_a_block_is_cut_where_zones_can_begin(block: str, names: list[str]) -> None:
    assert [name for name, _ in zones_of(parse_cidr(block))] == names


@given(cidrs(), st.data())
def test_every_address_of_a_block_has_its_reverse_name_in_exactly_one_zone(cidr: Cidr, data: st.DataObject) -> None:
    position = data.draw(st.integers(cidr.first, cidr.last))

    around = [name for name, block in zones_of(cidr) if position in block.range]

    [zone] = around
    name = f"{owner_label(position, zone)}.{zone}"
    if "/" in zone:
        assert name.partition(".")[0] == format_address(position).rpartition(".")[2]
    else:
        assert name == ipaddress.ip_address(format_address(position)).reverse_pointer


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"serial": -1}, "serial"),
        ({"serial": 2**32}, "serial"),
        ({"nameservers": []}, "nameservers"),
        ({"nameservers": "ns1.example.com"}, "nameservers"),
        ({"nameservers": ["-"]}, "nameservers"),
        ({"contact": "a@b"}, "contact"),
        ({"ttl_s": True}, "ttl_s"),
    ],
)
async def test_what_no_zone_could_have_is_refused(wrong: Options, field: str) -> None:
    with pytest.raises(tenure.Invalid, match=field):
        await rendered(**wrong)
