"""What ``network info`` prints."""

from dataclasses import replace

from tenure.integrations.ganeti.query.info_text import info_lines
from tenure.integrations.ganeti.query.network_fields import FIELDS, NetworkFacts
from tenure.kernel.plan import edits
from tenure.kernel.plan.plan_model import Notes
from tests.integrations.ganeti.plans import holding, instance, nic, of_cases
from tests.kernel.plans import planned


def test_n01_info_prints_a_network_without_addresses() -> None:
    lines = info_lines(NetworkFacts(planned(edits.AddNetwork(network="net0")).network("net0")))

    assert lines[0] == "Network name: net0"
    assert "  Free: 0 (0.00%)" in lines
    assert "  Subnets: none" in lines


def test_info_counts_families_apart() -> None:
    network = planned(
        edits.AddNetwork(network="dual"),
        edits.AddSubnet(network="dual", cidr="192.0.2.0/29", uuid="s1"),
        edits.AddPool(network="dual", range="192.0.2.2-192.0.2.3"),
        edits.AddSubnet(network="dual", cidr="2001:db8::/64", uuid="s2"),
        edits.AddPool(network="dual", range="2001:db8::10-2001:db8::ffff:ffff"),
    ).network("dual")
    held = [holding(network, address) for address in ("192.0.2.2", "192.0.2.3", "2001:db8::10")]
    facts = NetworkFacts(network, held)

    six = (1 << 32) - 16
    assert info_lines(facts)[7:11] == [
        "  Size of IPv4 pools: 2",
        "  Free IPv4: 0 (0.00%)",
        f"  Size of IPv6 pools: {six}",
        f"  Free IPv6: {six - 1} (>99.99%)",
    ]
    assert FIELDS["families"].read(facts) == {
        "ipv4": {"size": 2, "free_count": 0, "reserved_count": 2},
        "ipv6": {"size": six, "free_count": six - 1, "reserved_count": 1},
    }
    assert FIELDS["families"].write(FIELDS["families"].read(facts)).startswith("ipv4 0 of 2 free, ipv6 ")


def test_info_prints_maps_64_to_a_line_with_the_number_at_both_ends() -> None:
    network = replace(of_cases(), tags=("dmz", "web"))
    web = instance("web", nic(network, "192.0.2.10", "10.0.0.8"), nic(None, "192.0.2.77"), nic(network, number=2))
    held = [holding(network, "192.0.2.10"), holding(network, "10.0.0.8")]

    lines = info_lines(NetworkFacts(network, held, [web]))

    assert lines == [
        "Network name: net1",
        "  UUID: uuid-1",
        f"  Serial number: {network.serial}",
        "  Created: 1970-01-01 00:00:00 UTC",
        "  Modified: 1970-01-01 00:00:00 UTC",
        "  MAC prefix: none",
        "  Tags: dmz, web",
        "  Size of pools: 105",
        "  Free: 103 (98.10%)",
        "  Subnet 192.0.2.0/24 (subnet1):",
        "    UUID: s1",
        "    Gateway: 192.0.2.1",
        "    DHCP: no",
        "    Externally reserved: 192.0.2.0-192.0.2.1, 192.0.2.255",
        "    Pool 192.0.2.10-192.0.2.100 (pool1): size 91, used 1 (1.10%)",
        "          0 X" + "." * 63 + " 63",
        "         64 " + "." * 27 + " 90",
        "            (X) used    (.) free",
        "  Subnet 10.0.0.0/24 (subnet2):",
        "    UUID: s2",
        "    Gateway: none",
        "    DHCP: no",
        "    Externally reserved: 10.0.0.0, 10.0.0.255",
        "    Pool 10.0.0.8-10.0.0.15 (pool3): size 8, used 1 (12.50%)",
        "          0 X....... 7",
        "            (X) used    (.) free",
        "    Pool 10.0.0.40-10.0.0.45 (pool3): size 6, used 0 (0.00%)",
        "          0 ...... 5",
        "            (X) used    (.) free",
        "  Subnet 2001:db8::/64 (six):",
        "    UUID: s3",
        "    Gateway: 2001:db8::1",
        "    DHCP: no",
        "    Externally reserved: 2001:db8::-2001:db8::1",
        "    Pools: none",
        "  Connected to node groups:",
        "    default (bridged, br100)",
        "  Used by 1 instance:",
        "    web: 0:192.0.2.10+10.0.0.8, 2:no IP",
    ]


def test_info_shows_labels_and_description_where_there_are_any() -> None:
    network = replace(of_cases(), notes=Notes({"team": "shop", "tier": "web"}, "for the shop"))
    facts = NetworkFacts(network)

    assert "  Labels: team=shop, tier=web" in info_lines(facts)
    assert "  Description: for the shop" in info_lines(facts)
    assert FIELDS["labels"].read(facts) == {"team": "shop", "tier": "web"}
    assert FIELDS["labels"].write(FIELDS["labels"].read(facts)) == "team=shop, tier=web"
    assert FIELDS["description"].read(facts) == "for the shop"
