"""The database of a small Neutron for the examples: the tables that are read, one subnet, two ports, all in order."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tenure.kernel.addressing.addresses import key, parse_address

CONFIGURATION = "[database]\nconnection = sqlite:///neutron.sqlite\n[tenure]\nmode = database\n"

TABLES = """
CREATE TABLE subnets (id TEXT, project_id TEXT, cidr TEXT, gateway_ip TEXT, network_id TEXT, subnetpool_id TEXT);
CREATE TABLE subnetpools (id TEXT, address_scope_id TEXT);
CREATE TABLE ipallocationpools (subnet_id TEXT, first_ip TEXT, last_ip TEXT);
CREATE TABLE ports (id TEXT);
CREATE TABLE ipallocations (port_id TEXT, ip_address TEXT, subnet_id TEXT, network_id TEXT);
CREATE TABLE tenure_subnets (id TEXT PRIMARY KEY, neutron_subnet_id TEXT, project_id TEXT, cidr TEXT, gateway_ip TEXT,
    pools TEXT, space TEXT, mark TEXT);
CREATE TABLE tenure_allocations (subnet_id TEXT, address TEXT, owner TEXT, generation INTEGER DEFAULT 0,
    since_s INTEGER, PRIMARY KEY (subnet_id, address));
CREATE TABLE tenure_deployment (id INTEGER PRIMARY KEY, mode TEXT, realm TEXT, ledger TEXT DEFAULT '');
INSERT INTO subnets VALUES ('s', 'project', '192.0.2.0/24', '192.0.2.1', 'n', NULL);
INSERT INTO ipallocationpools VALUES ('s', '192.0.2.2', '192.0.2.254');
INSERT INTO tenure_subnets VALUES ('s', 's', 'project', '192.0.2.0/24', '192.0.2.1', '[["192.0.2.2", "192.0.2.254"]]',
    NULL, 'm');
INSERT INTO tenure_deployment VALUES (1, 'database', 'neutron', '');
"""


def build_neutron(folder: Path) -> None:
    """Make the database and the configuration that names it."""
    (folder / "neutron.conf").write_text(CONFIGURATION, "utf-8")
    with closing(sqlite3.connect(folder / "neutron.sqlite")) as connection, connection:
        connection.executescript(TABLES)
        for port, address in (("p1", "192.0.2.7"), ("p2", "192.0.2.8")):
            connection.execute("INSERT INTO ipallocations VALUES (?, ?, 's', 'n')", (port, address))
            row = (key(parse_address(address)).hex(), f"port/{port}")
            connection.execute("INSERT INTO tenure_allocations VALUES ('s', ?, ?, 0, NULL)", row)
