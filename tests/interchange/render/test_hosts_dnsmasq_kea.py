"""A network as a hosts file, for dnsmasq, for Kea: the same every time, and what cannot be written is told."""

import ipaddress
import json
from typing import Any

import pytest

import tenure
from tenure.interchange.render.dnsmasq import render_dnsmasq
from tenure.interchange.render.hosts_file import render_hosts
from tenure.interchange.render.kea import render_kea
from tests.interchange.render.rendered import furnish

UNUSABLE = {
    "192.0.2.13": "owner",
    "192.0.2.14": "owner",
    "192.0.2.16": "hostname",
    "192.0.2.18": "owner",
}


async def test_a_hosts_file_has_a_line_for_every_usable_name() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)

        rendering = await render_hosts(ledger, "n", domain="example.com")

    assert rendering.text.splitlines() == [
        "# Tenure: network n",
        "192.0.2.10\tweb-0.example.com web-0",
        "192.0.2.11\tweb-1-nic0-ip1.lab.example.net web-1-nic0-ip1",
        "192.0.2.12\ta-b.example.com a-b",
        "192.0.2.15\tmail.example.org mail",
        "192.0.2.17\tz.example.com z",
        "198.51.100.70\tdb.example.com db",
        "2001:db8::10\tweb-0-v6.example.com web-0-v6",
        "2001:db8::11\tweb-0-v6b.example.com web-0-v6b",
    ]
    left_out = {odd.place.path: odd.field for odd in rendering.left_out}
    assert left_out == {**UNUSABLE, "2001:db8:1:100::/56": "address", "2001:db8:1:200::/56": "address"}


async def test_dnsmasq_gets_a_record_for_every_name_and_a_host_for_every_mac() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)

        rendering = await render_dnsmasq(ledger, "n")

    assert rendering.text.splitlines() == [
        "# Tenure: network n",
        "dhcp-host=aa:bb:cc:00:00:01,192.0.2.10,web-0",
        "host-record=web-0,192.0.2.10",
        "dhcp-host=aa:bb:cc:00:00:02,192.0.2.11,web-1-nic0-ip1",
        "host-record=web-1-nic0-ip1.lab.example.net,web-1-nic0-ip1,192.0.2.11",
        "host-record=a-b,192.0.2.12",
        "host-record=mail.example.org,mail,192.0.2.15",
        "host-record=z,192.0.2.17",
        "host-record=db,198.51.100.70",
        "dhcp-host=aa:bb:cc:00:00:01,[2001:db8::10],web-0-v6",
        "host-record=web-0-v6,2001:db8::10",
        "dhcp-host=aa:bb:cc:00:00:01,[2001:db8::11],web-0-v6b",
        "host-record=web-0-v6b,2001:db8::11",
    ]
    noted = {odd.place.path: odd.reason for odd in rendering.left_out if odd.code == "noted"}
    assert noted == {
        "192.0.2.15": "'aa:bb' is not a MAC address (pod/x)",
        "192.0.2.17": "aa:bb:cc:00:00:01 has 192.0.2.10 in 192.0.2.0/24 already; written without a dhcp-host (pod/z)",
    }


async def test_kea_gets_subnets_pools_and_reservations_of_ipv4() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)

        rendering = await render_kea(ledger, "n", domain="example.com")

    first, second = json.loads(rendering.text)["Dhcp4"]["subnet4"]
    assert (first["subnet"], second["subnet"]) == ("192.0.2.0/24", "198.51.100.64/26")
    assert first["pools"] == [
        {"pool": "192.0.2.2 - 192.0.2.11"},
        {"pool": "192.0.2.19 - 192.0.2.49"},
        {"pool": "192.0.2.60 - 192.0.2.100"},
    ]
    assert first["option-data"] == [
        {"name": "routers", "data": "192.0.2.1"},
        {"name": "domain-name-servers", "data": "192.0.2.2"},
    ]
    assert first["reservations"] == [
        {"hw-address": "aa:bb:cc:00:00:01", "ip-address": "192.0.2.10", "hostname": "web-0.example.com"},
        {"hw-address": "aa:bb:cc:00:00:02", "ip-address": "192.0.2.11", "hostname": "web-1-nic0-ip1.lab.example.net"},
    ]
    assert (second["pools"], second["reservations"]) == ([], [])
    told = {odd.place.path for odd in rendering.left_out}
    assert {"192.0.2.12", "192.0.2.17", "198.51.100.70"} <= told


async def test_kea_gets_one_reservation_a_machine_of_ipv6_with_all_it_holds() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)

        rendering = await render_kea(ledger, "n", family=6)

    first, second = json.loads(rendering.text)["Dhcp6"]["subnet6"]
    assert first["reservations"] == [
        {"hw-address": "aa:bb:cc:00:00:01", "hostname": "web-0-v6", "ip-addresses": ["2001:db8::10", "2001:db8::11"]}
    ]
    assert first["option-data"] == [{"name": "dns-servers", "data": "2001:db8::2"}]
    assert second["reservations"] == [
        {"duid": "00:03:00:01:aa", "hostname": "branch", "prefixes": ["2001:db8:1:100::/56"]}
    ]
    assert ("2001:db8:1:200::/56", "duid") in {(odd.place.path, odd.field) for odd in rendering.left_out}


async def test_kea_leases_nothing_to_anybody_that_somebody_has() -> None:
    async with await tenure.open_async("memory:") as ledger:
        for network in ("n", "neighbour"):
            await ledger.add_network(network, space="site")
            await ledger.add_subnet(network, "192.0.2.0/24", dhcp=True)
        await ledger.add_pool("n", "192.0.2.10-192.0.2.29", cooling_s=600)
        mac = {"mac": "aa:bb:cc:00:00:01"}
        await ledger.allocate("n", owner="pod/ü", address="192.0.2.11", labels=mac)
        await ledger.allocate("n", owner="pod/no-mac", address="192.0.2.13")
        await ledger.hold("n", owner="pod/pending", address="192.0.2.15")
        await ledger.allocate("n", owner="pod/cooling", address="192.0.2.17")
        await ledger.release("n", "192.0.2.17", owner="pod/cooling")
        await ledger.allocate("n", owner="pod/draining", address="192.0.2.19")
        await ledger.modify_holding("n", "192.0.2.19", owner="pod/draining", state="draining")
        await ledger.allocate("neighbour", owner="pod/next-door", address="192.0.2.21")
        await ledger.preallocate("neighbour", "pod/later", "192.0.2.23")

        rendering = await render_kea(ledger, "n")

    [subnet] = json.loads(rendering.text)["Dhcp4"]["subnet4"]
    ends = [each["pool"].replace("192.0.2.", "") for each in subnet["pools"]]
    assert ends == ["10 - 12", "14 - 14", "16 - 16", "18 - 18", "20 - 20", "22 - 22", "24 - 29"]
    assert subnet["reservations"] == [{"hw-address": "aa:bb:cc:00:00:01", "ip-address": "192.0.2.11"}]
    told = {odd.place.path: (odd.field, odd.code) for odd in rendering.left_out}
    assert told == {
        "192.0.2.11": ("owner", "noted"),
        "192.0.2.13": ("mac", "left_out"),
        "192.0.2.15": ("state", "left_out"),
        "192.0.2.17": ("state", "left_out"),
        "192.0.2.19": ("mac", "left_out"),
    }


async def test_the_id_of_a_subnet_stays_when_others_come_and_go() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)
        before = {each["subnet"]: each["id"] for each in await kea_subnets(ledger)}
        await ledger.add_subnet("n", "10.0.0.0/24")
        await ledger.remove_subnet("n", "192.0.2.0/24", cascade=True)

        after = {each["subnet"]: each["id"] for each in await kea_subnets(ledger)}

    assert after["198.51.100.64/26"] == before["198.51.100.64/26"]
    assert all(0 < number < 2**32 - 1 for number in after.values())
    assert len(set(after.values())) == len(after)


async def kea_subnets(ledger: tenure.AsyncLedger) -> list[dict[str, Any]]:
    """Read the subnets of a rendering."""
    found: list[dict[str, Any]] = json.loads((await render_kea(ledger, "n")).text)["Dhcp4"]["subnet4"]
    return found


async def test_reservations_lie_in_their_subnets() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)

        subnets = json.loads((await render_kea(ledger, "n")).text)["Dhcp4"]["subnet4"]

    for subnet in subnets:
        block = ipaddress.ip_network(subnet["subnet"])
        assert all(ipaddress.ip_address(each["ip-address"]) in block for each in subnet["reservations"])


async def test_the_same_network_is_rendered_the_same_every_time() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)

        first = [await render_hosts(ledger, "n"), await render_dnsmasq(ledger, "n"), await render_kea(ledger, "n")]
        second = [await render_hosts(ledger, "n"), await render_dnsmasq(ledger, "n"), await render_kea(ledger, "n")]

    assert first == second


async def test_a_domain_that_is_none_is_refused() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)

        with pytest.raises(tenure.Invalid, match="domain: 'a b' is not a name that DNS takes"):
            await render_hosts(ledger, "n", domain="a b")
        with pytest.raises(tenure.Invalid, match="family"):
            await render_kea(ledger, "n", family=5)


async def test_a_draining_holding_keeps_its_name() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await furnish(ledger)
        await ledger.modify_holding("n", "192.0.2.10", owner="instance/web-0", state="draining")

        rendering = await render_hosts(ledger, "n")

    assert "192.0.2.10\tweb-0" in rendering.text


async def test_what_is_pending_or_cooling_is_told_and_not_written() -> None:
    async with await tenure.open_async("memory:") as ledger:
        await ledger.add_network("n")
        await ledger.add_subnet("n", "192.0.2.0/24")
        await ledger.add_pool("n", "192.0.2.10-192.0.2.20", cooling_s=600)
        await ledger.hold("n", owner="pod/1")
        await ledger.release("n", (await ledger.allocate("n", owner="pod/2")).address, owner="pod/2")

        rendering = await render_hosts(ledger, "n")

    assert rendering.text == "# Tenure: network n\n"
    assert [odd.place.path for odd in rendering.left_out] == ["192.0.2.10", "192.0.2.11"]
