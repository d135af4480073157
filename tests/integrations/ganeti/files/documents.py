"""Configurations as Ganeti writes them, in both forms, with fields that nobody knows at every level."""

import copy
import json
from typing import Any

import tenure
from tenure.integrations.ganeti.files.load.import_cluster import ImportPlan, plan_import, run_import
from tenure.integrations.ganeti.files.read.cluster_file import read_file
from tenure.service.read.verify import MACHINES

Json = dict[str, Any]

NET1, NET2, EMPTY = (
    "11111111-0000-4000-8000-000000000001",
    "22222222-0000-4000-8000-000000000002",
    "33333333-0000-4000-8000-000000000003",
)
DEFAULT, RACK = "aaaaaaaa-0000-4000-8000-00000000000a", "bbbbbbbb-0000-4000-8000-00000000000b"
NODE1, NODE2 = "cccccccc-0000-4000-8000-00000000000c", "dddddddd-0000-4000-8000-00000000000d"
WEB, DB = "eeeeeeee-0000-4000-8000-00000000000e", "ffffffff-0000-4000-8000-00000000000f"


def bits(size: int, *marked: int) -> str:
    """Write a bit string in which some positions are marked."""
    return "".join("1" if place in marked else "0" for place in range(size))


def nic(number: int, **said: Any) -> Json:
    """Write a NIC."""
    uuid = f"{number:08x}-0000-4000-9000-000000000000"
    wire = {"mode": "bridged", "link": "br0", "vlan": ""}
    return {"uuid": uuid, "mac": f"aa:00:00:00:00:{number:02x}", "nicparams": wire, **said}


def _times(serial: int) -> Json:
    return {"serial_no": serial, "ctime": 1412345678.25, "mtime": 1412349999.123457}


def old_document() -> Json:
    """Write a configuration of today's form: two groups, v4 and v6, every kind of NIC."""
    net1 = {
        "name": "net1", "uuid": NET1, "mac_prefix": "aa:00:55", "tags": ["prod", "a:b"],
        "network": "192.0.2.0/28", "gateway": "192.0.2.1", "network6": "2001:db8::/64", "gateway6": "2001:db8::1",
        "reservations": bits(16, 4, 5, 6), "ext_reservations": bits(16, 0, 1, 5, 9, 10, 15),
        "family": 4, "unknown": {"deep": [1, 2.5, None]}, **_times(7),
    }  # fmt: skip
    net2 = {
        "name": "net2", "uuid": NET2, "tags": [], "network": "10.0.0.0/24",
        "reservations": bits(256, 77), "ext_reservations": bits(256, 255), **_times(1),
    }  # fmt: skip
    web = {
        "name": "web.example.org", "uuid": WEB, "primary_node": NODE1, "os": "debootstrap", "hvparams": {"acpi": True},
        "nics": [
            nic(1, ip="192.0.2.4", network=NET1, name="front", extra="kept"),
            nic(2, ip="10.0.0.77", network=NET2, nicparams={"mode": "bridged", "link": "br9", "vlan": "", "odd": 3}),
            nic(3, ip="2001:db8::5", network=NET1),
        ],
        "beparams": {}, "tags": ["x"], **_times(3),
    }  # fmt: skip
    db = {
        "name": "db.example.org", "uuid": DB, "primary_node": NODE2,
        "nics": [
            nic(4, network=NET1),
            nic(5, ip="172.16.0.9"),
            nic(6, ip=None, nicparams={}),
            nic(7, ip="192.0.2.5", network=NET1),
            nic(8, mac="AA:00:00:00:00:08"),
        ],
        "disks": ["disk-1"], **_times(1),
    }  # fmt: skip
    return {
        "version": 3010000, "serial_no": 42, "ctime": 1400000000.5, "mtime": 1412349999.5,
        "cluster": {"cluster_name": "c.example.org", "nicparams": {"default": {"mode": "routed", "link": "rt0"}}},
        "networks": {NET1: net1, NET2: net2},
        "nodegroups": {
            DEFAULT: {
                "name": "default", "uuid": DEFAULT, "alloc_policy": "preferred", **_times(2),
                "networks": {
                    NET1: {"mode": "bridged", "link": "br0", "vlan": "", "later": True},
                    NET2: {"mode": "openvswitch", "link": "ovs1", "vlan": ".7"},
                },
            },
            RACK: {"name": "rack", "uuid": RACK, "networks": {NET1: {"mode": "routed", "link": "rt1"}}, **_times(1)},
        },
        "nodes": {
            NODE1: {"name": "node1", "uuid": NODE1, "group": DEFAULT, "primary_ip": "192.0.2.9", "ndparams": {}},
            NODE2: {"name": "node2", "uuid": NODE2, "group": RACK, "primary_ip": "198.51.100.7",
                    "secondary_ip": "10.9.0.7", "offline": False, **_times(5)},
        },
        "instances": {WEB: web, DB: db},
        "disks": {"disk-1": {"size": 1024, "uuid": "disk-1"}}, "filters": {},
    }  # fmt: skip


def range_of(start: str, size: int, end: str) -> Json:
    """Write a range as the revised form does."""
    return {"start": start, "size": size, "end": end}


def new_document() -> Json:
    """Write a configuration of the revised form: every spelling of a range, several pools, a list of IPs."""
    made = copy.deepcopy(old_document())
    subnets = [
        {"uuid": "5ub00001", "name": "subnet1", "cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "dhcp": True, "odd": 1,
         "pools": [{"range": range_of("192.0.2.10", 6, "192.0.2.15"), "reservations": "010000", "name": "pool1",
                    "colour": "red"}],
         "reserved": ["192.0.2.0", "192.0.2.1", "192.0.2.15", "192.0.2.255"]},
        {"uuid": "5ub00002", "name": "subnet2", "cidr": "10.0.0.0/24",
         "pools": [{"range": "10.0.0.8/29", "reservations": "00000000", "name": "pool3"},
                   {"range": "10.0.0.40-10.0.0.45", "reservations": "000001", "name": "pool3"}],
         "external": [range_of("10.0.0.8", 8, "10.0.0.15"), {"start": "10.0.0.99", "size": 1}]},
        {"uuid": "5ub00003", "cidr": "2001:db8::/64", "gateway": "fe80::1",
         "pools": [{"range": "2001:db8::/65", "reservations": [range_of("2001:db8::5", 1, "2001:db8::5")]}]},
    ]  # fmt: skip
    made["networks"] = {
        NET1: {"name": "net1", "uuid": NET1, "mac_prefix": "aa:00:55", "tags": ["prod"], "subnets": subnets,
               "unknown": 1, **_times(7)},
        NET2: {"name": "net2", "uuid": NET2, "tags": [], "subnets": []},
        EMPTY: {"name": "l2", "uuid": EMPTY, "mac_prefix": "aa:bb:cc"},
    }  # fmt: skip
    made["instances"][WEB]["nics"] = [
        nic(1, ip=["192.0.2.11", "2001:db8::5", "10.0.0.45"], network=NET1),
        nic(2, ip=[], network=NET2, extra=[1]),
        nic(3, ip=["172.16.0.1", "172.16.0.2"]),
        nic(9),
    ]
    made["instances"][DB]["nics"] = [nic(4, ip=["192.0.2.200"], network=NET1)]
    return made


async def breaches(ledger: tenure.AsyncLedger) -> list[tenure.Breach]:
    """Find what breaks the ledger's own invariants; a file may well put an instance on the address of a gateway."""
    return [breach for breach in await ledger.verify() if breach.invariant != MACHINES]


async def brought_in(ledger: tenure.AsyncLedger, document: Json) -> ImportPlan:
    """Import a document as the command line would: from its bytes."""
    plan = await plan_import(read_file(json.dumps(document).encode()), ledger)
    await run_import(ledger, plan)
    return plan
