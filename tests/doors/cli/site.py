"""A small site to try the command line on: one network, a pool, a few holdings, and files to move in."""

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import tenure
from tenure.doors.cli.main import main
from tenure.integrations.ganeti.machine_model import CLUSTER, GROUP, IDENTITY, INSTANCE, MAC, NIC, NODE, PLACEMENT

PAPERS = (GROUP, NODE, INSTANCE, NIC, MAC, PLACEMENT, IDENTITY, CLUSTER, "ganeti")
PLAN_CSV = "network,address,owner,labels\nnet1,192.0.2.60,instance/new-0,team=shop\nnet1,192.0.2.61,instance/new-1,\n"
NETBOX_CSV = "address,vrf,status,dns_name,description\n192.0.2.60/24,net1,active,new-0.example.org,\n"


@dataclass(frozen=True, slots=True)
class Site:
    """A folder with a ledger in it, and the command line called there."""

    folder: Path

    @property
    def url(self) -> str:
        """Return the ledger's URL."""
        return f"sqlite:///{self.folder / 'tenure.db'}"

    def call(self, *words: str, env: Mapping[str, str] | None = None, fed: str | bytes | None = None) -> Result:
        """Run the command line in this process; ``fed`` is its standard input."""
        around = {
            "TENURE_STORE": self.url,
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": None,
            "TENURE_HOOKS": None,
            **(env or {}),
        }
        return CliRunner().invoke(main, list(words), env=around, input=fed)

    def text(self, *words: str, code: int = 0) -> str:
        """Run a command that ends as expected, and return what it prints."""
        result = self.call(*words)
        assert result.exit_code == code, result.output
        return result.stdout

    def json(self, *words: str, code: int = 0) -> Any:
        """Run a command with --json and return its document."""
        return json.loads(self.text(*words, "--json", code=code))

    def error(self, *words: str) -> tuple[int, Any]:
        """Run a command that fails; return its exit code and error document."""
        result = self.call(*words, "--json")
        assert result.stdout == ""
        return result.exit_code, json.loads(result.stderr)["error"]

    def state(self) -> tuple[object, ...]:
        """Return all that could have changed: the log's end, the plan, who holds and who waits, papers."""
        with tenure.open(self.url) as ledger:
            holdings = [str(each) for network in ledger.networks() for each in ledger.holdings(network.name)]
            papers = [ledger.papers(kind) for kind in PAPERS]
            return ledger.last_change(), ledger.networks(), holdings, ledger.waiting(), papers


def build(folder: Path) -> None:
    """Make the site's ledger and files."""
    with tenure.open(f"sqlite:///{folder / 'tenure.db'}") as ledger:
        ledger.add_network("net1", labels={"team": "shop"})
        ledger.add_subnet("net1", "192.0.2.0/24", gateway="192.0.2.1")
        ledger.add_pool("net1", "192.0.2.10-192.0.2.100", name="pool1")
        ledger.reserve("net1", "192.0.2.20-192.0.2.50", reason="switches")
        ledger.preallocate("net1", "instance/db-9", "192.0.2.90")
        ledger.allocate("net1", owner="instance/web-0", request="first", labels={"team": "shop"})
        ledger.allocate("net1", owner="instance/db-0", address="192.0.2.12")
        ledger.add_subnet("net1", "203.0.113.0/28", name="old")
        ledger.allocate("net1", owner="instance/old-0", address="203.0.113.5")
        ledger.hold("net1", owner="instance/web-9", address="192.0.2.13")
    (folder / "plan.csv").write_text(PLAN_CSV, "utf-8")
    (folder / "netbox.csv").write_text(NETBOX_CSV, "utf-8")
    shutil.copy(folder / "tenure.db", folder / "friday.db")


MACHINES = (
    "group add default",
    "group add spare",
    "group add empty",
    "node add node1 --group default",
    "node add node9 --group spare --primary-ip 198.51.100.250",
    "network add lan --subnet add:cidr=198.51.100.0/24,gateway=198.51.100.1",
    "network modify lan --pool add:198.51.100.10-198.51.100.60,name=web",
    "network connect lan default spare -N mode=bridged,link=br100",
    "instance add web --net 0:ip=pool,network=lan --node node1",
)
"""Commands that put groups, nodes, a connected network and an instance beside the site's plan."""

GROUP7, NODE7 = "77777777-0000-4000-8000-000000000001", "77777777-0000-4000-8000-000000000002"
NETWORK7, INSTANCE7, NIC7 = (
    "77777777-0000-4000-8000-000000000003",
    "77777777-0000-4000-8000-000000000004",
    "77777777-0000-4000-8000-000000000005",
)


def ganeti_nic(ip: object) -> dict[str, Any]:
    """Write the NIC of the instance that moves in."""
    wire = {"mode": "bridged", "link": "br7", "vlan": ""}
    return {"uuid": NIC7, "mac": "aa:00:00:07:07:07", "ip": ip, "network": NETWORK7, "nicparams": wire}


def ganeti_document() -> dict[str, Any]:
    """Write a configuration as today's Ganeti has it: one network, one instance."""
    marks = {"reservations": "0000100000000000", "ext_reservations": "1100000000000001"}
    network = {"name": "net7", "uuid": NETWORK7, "network": "10.7.0.0/28", "gateway": "10.7.0.1", "tags": [], **marks}
    wires = {NETWORK7: {"mode": "bridged", "link": "br7", "vlan": ""}}
    instance = {"name": "web-7", "uuid": INSTANCE7, "primary_node": NODE7, "nics": [ganeti_nic("10.7.0.4")]}
    return {
        "version": 3010000,
        "serial_no": 3,
        "networks": {NETWORK7: network},
        "nodegroups": {GROUP7: {"name": "rack7", "uuid": GROUP7, "networks": wires}},
        "nodes": {NODE7: {"name": "node7", "uuid": NODE7, "group": GROUP7, "primary_ip": "10.7.1.1"}},
        "instances": {INSTANCE7: instance},
    }


def build_machines(site: Site) -> None:
    """Add machines to a site, and Ganeti's files."""
    for line in MACHINES:
        site.text(*shlex.split(line))
    site.text("network", "add-tags", "lan", "prod")
    site.text("token", "add", "old-laptop", "--scope", "read")
    (site.folder / "config.data").write_text(json.dumps(ganeti_document()), "utf-8")
    (site.folder / "web-7.runtime").write_text(json.dumps([[], [ganeti_nic("10.7.0.4")], {}, []]), "utf-8")


def build_full(site: Site) -> None:
    """Add a network whose pool of two addresses is taken."""
    with tenure.open(site.url) as ledger:
        ledger.add_network("full")
        ledger.add_subnet("full", "198.51.100.0/28")
        ledger.add_pool("full", "198.51.100.2-198.51.100.3", name="two")
        ledger.allocate_many("full", owners=["instance/a", "instance/b"])
