"""A small site to try the command line on: one network, a pool, a few holdings, and files to move in."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import tenure
from tenure.doors.cli.main import main

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

    def call(self, *words: str, env: Mapping[str, str] | None = None) -> Result:
        """Run the command line in this process."""
        around = {"TENURE_STORE": self.url, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "NO_COLOR": None, **(env or {})}
        return CliRunner().invoke(main, list(words), env=around)

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
        """Return all that could have changed: the log's end, the plan, who holds and who waits."""
        with tenure.open(self.url) as ledger:
            holdings = [str(each) for network in ledger.networks() for each in ledger.holdings(network.name)]
            return ledger.last_change(), ledger.networks(), holdings, ledger.waiting()


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


def build_full(site: Site) -> None:
    """Add a network whose pool of two addresses is taken."""
    with tenure.open(site.url) as ledger:
        ledger.add_network("full")
        ledger.add_subnet("full", "198.51.100.0/28")
        ledger.add_pool("full", "198.51.100.2-198.51.100.3", name="two")
        ledger.allocate_many("full", owners=["instance/a", "instance/b"])
