"""A configuration with many instances: a network whose gateway a NIC has, marks without NIC, and IPv6."""

from tests.integrations.ganeti.files.documents import DEFAULT, NET1, NET2, NODE1, Json, bits

ORPHANS = (7, 900, 901)
"""Places in the first network that are marked and that no NIC has."""


def crowd_document(instances: int) -> Json:
    """Write a configuration of today's form; NIC 0 has an address of each network, and every third one IPv6 too."""
    machines = [_machine(number) for number in range(instances)]
    used = [1, *(number + 20 for number in range(1, instances)), *ORPHANS]
    wire = {"mode": "bridged", "link": "br0", "vlan": ""}
    return {
        "version": 3010000, "serial_no": 1, "cluster": {},
        "nodegroups": {DEFAULT: {"name": "default", "uuid": DEFAULT, "networks": {NET1: wire, NET2: wire}}},
        "nodes": {NODE1: {"name": "node1", "uuid": NODE1, "group": DEFAULT, "primary_ip": "198.51.100.7"}},
        "networks": {
            NET1: {"name": "net1", "uuid": NET1, "tags": [], "network": "10.0.0.0/22", "gateway": "10.0.0.1",
                   "network6": "2001:db8::/64", "reservations": bits(1024, *used),
                   "ext_reservations": bits(1024, 0, 1, 9, 1023)},
            NET2: {"name": "net2", "uuid": NET2, "tags": [], "network": "10.8.0.0/22",
                   "reservations": bits(1024, *(number + 5 for number in range(instances))),
                   "ext_reservations": bits(1024, 0, 1023)},
        },
        "instances": {machine["uuid"]: machine for machine in machines},
    }  # fmt: skip


def _machine(number: int) -> Json:
    place = number + 20 if number else 1  # the first one has the gateway
    ips = [(NET1, f"10.0.{place // 256}.{place % 256}"), (NET2, f"10.8.{(number + 5) // 256}.{(number + 5) % 256}")]
    if number % 3 == 0:
        ips.append((NET1, f"2001:db8::{number + 1:x}"))
    nics = [_nic(number * 4 + index, network, ip) for index, (network, ip) in enumerate(ips)]
    uuid = f"ee{number:06x}-0000-4000-8000-000000000000"
    return {"name": f"vm-{number}", "uuid": uuid, "primary_node": NODE1, "serial_no": 1, "nics": nics}


def _nic(number: int, network: str, ip: str) -> Json:
    mac = f"aa:00:{number >> 24 & 255:02x}:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
    wire = {"mode": "bridged", "link": "br0", "vlan": ""}
    return {
        "uuid": f"{number:08x}-0000-4000-9000-000000000000", "mac": mac, "ip": ip, "network": network, "nicparams": wire
    }  # fmt: skip


def addresses_of(document: Json) -> dict[str, set[str]]:
    """List the addresses in use that a crowd's configuration tells of, by the names of the networks."""
    found: dict[str, set[str]] = {"net1": {f"10.0.{place // 256}.{place % 256}" for place in ORPHANS}, "net2": set()}
    for machine in document["instances"].values():
        for nic in machine["nics"]:
            found["net1" if nic["network"] == NET1 else "net2"].add(nic["ip"])
    return found
