"""What ``network info`` prints."""

from dataclasses import replace

from tenure.integrations.ganeti.query.info_text import info_lines
from tenure.integrations.ganeti.query.network_fields import NetworkFacts
from tenure.kernel.plan import edits
from tests.integrations.ganeti.plans import holding, instance, nic, of_cases
from tests.kernel.plans import planned


def test_n01_info_prints_a_network_without_addresses() -> None:
    lines = info_lines(NetworkFacts(planned(edits.AddNetwork(network="net0")).network("net0")))

    assert lines[0] == "Network name: net0"
    assert "  Free: 0 (0.00%)" in lines
    assert "  Subnets: none" in lines


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
