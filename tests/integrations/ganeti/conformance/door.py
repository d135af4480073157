"""The cluster that the cases of the conformance file start from, and the command line to try them with."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner, Result

import tenure
from tenure.doors.cli.main import main
from tenure.integrations.ganeti import machine_model

CLUSTER = (
    "group add default",
    "node add node1",
    (
        "network add net1"
        " --subnet add:cidr=192.0.2.0/24,gateway=192.0.2.1,name=subnet1"
        " --subnet add:cidr=10.0.0.0/24,name=subnet2"
        " --subnet add:cidr=2001:db8::/64,gateway=2001:db8::1,name=six"
        " --pool add:192.0.2.10-192.0.2.100,name=pool1"
        " --pool add:10.0.0.8/29,name=pool3"
        " --pool add:10.0.0.40-10.0.0.45,name=pool3"
    ),
    "network connect net1 default -N mode=bridged,link=br100",
)
"""The fixture of the conformance file: one group with one node, and one network of three subnets."""

REFUSALS = (2, 3, 4, 5)
PAPERS = (
    machine_model.GROUP,
    machine_model.NODE,
    machine_model.INSTANCE,
    machine_model.NIC,
    machine_model.MAC,
    machine_model.PLACEMENT,
    machine_model.IDENTITY,
    machine_model.CLUSTER,
    machine_model.MASTER,
)


@dataclass(frozen=True, slots=True)
class Door:
    """A ledger, and the command line called on it in this process."""

    url: str

    def call(self, line: str, *more: str) -> Result:
        """Run one command line, without ``tenure`` before it."""
        around = {"TENURE_STORE": self.url, "TENURE_HOOKS": None, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
        return CliRunner().invoke(main, [*shlex.split(line), *more], env=around)

    def do(self, *lines: str) -> Result:
        """Run command lines that must succeed; return what became of the last."""
        for line in lines:
            result = self.call(line)
            assert result.exit_code == 0, f"{line}\n{result.output}"
        return result

    def ask(self, line: str) -> Any:
        """Run a command line with --json and return its document."""
        return json.loads(self.do(f"{line} --json").stdout)

    def refuse(self, line: str, *words: str) -> str:
        """Run a command line that must be refused with these words, and change nothing; return the message."""
        before = self.state()
        result = self.call(line)
        assert result.exit_code in REFUSALS, f"{line}\n{result.exit_code} {result.output}"
        message = result.stderr
        assert "Traceback" not in message
        for word in words:
            assert word in message, f"{line}\n{message}"
        assert self.state() == before
        return message

    def unchanged(self, line: str) -> Result:
        """Run a command line that succeeds and changes nothing."""
        before = self.state()
        result = self.do(line)
        assert self.state() == before
        return result

    def modify(self, options: str, network: str = "net1") -> Result:
        """Run ``network modify`` with these options."""
        return self.do(f"network modify {options} {network}")

    def refuse_modify(self, options: str, *words: str, network: str = "net1") -> str:
        """Run ``network modify`` with options that must be refused."""
        return self.refuse(f"network modify {options} {network}", *words)

    def add(self, name: str, nic: str, more: str = "") -> list[str]:
        """Add an instance with one NIC in net1, unless the NIC names another network; return its addresses."""
        wired = nic if "network=" in nic else f"{nic},network=net1"
        self.do(f"instance add --net 0:{wired} {more} {name}")
        [first, *_] = self.ips(name)
        return list(first)

    def refuse_add(self, nic: str, *words: str, more: str = "") -> str:
        """Try to add an instance with one NIC in net1, which must be refused."""
        wired = nic if "network=" in nic else f"{nic},network=net1"
        return self.refuse(f"instance add --net 0:{wired} {more} refused1", *words)

    def ips(self, instance: str) -> Any:
        """List an instance's addresses, NIC by NIC."""
        [found] = self.ask(f"instance list -o ips {instance}")
        return found["ips"]

    def mac(self, instance: str) -> str:
        """Return the MAC of an instance that has one NIC."""
        [found] = self.ask(f"instance list -o macs {instance}")
        [mac] = found["macs"]
        return str(mac)

    def field(self, name: str, network: str = "net1") -> Any:
        """Return one query field of a network."""
        [found] = self.ask(f"network list -o {name} {network}")
        return found[name]

    def subnet(self, ident: str, network: str = "net1") -> Any:
        """Return one subnet of a network as queries show it, by name or block."""
        [found] = [each for each in self.field("subnets", network) if ident in (each["name"], each["cidr"])]
        return found

    def pools(self, ident: str, network: str = "net1") -> list[str]:
        """List the ranges of a subnet's pools."""
        return [f"{pool['start']}-{pool['end']}" for pool in self.subnet(ident, network)["pools"]]

    def external(self, ident: str, network: str = "net1") -> list[str]:
        """List a subnet's external ranges."""
        external: list[str] = self.subnet(ident, network)["external"]
        return external

    def state(self) -> tuple[object, ...]:
        """Return all that a command could have changed."""
        with tenure.open(self.url) as ledger:
            networks = ledger.networks()
            holdings = [each.row for network in networks for each in ledger.holdings(network.name)]
            papers = [ledger.papers(kind) for kind in PAPERS]
            return ledger.last_change(), networks, holdings, papers
