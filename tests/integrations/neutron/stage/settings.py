"""What is said to a server before it starts, and how it answers; Neutron itself is not needed to say it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

PROJECT = "project"
ROLES = ["admin", "member", "reader"]
UNBOUNDED = ("port", "network", "subnet", "security_group", "security_group_rule", "subnetpool", "address_scope")


class Answer(NamedTuple):
    """What Neutron answers to a request."""

    status: int
    body: Any


@dataclass(frozen=True)
class Settings:
    """How one server is configured."""

    database: str
    mode: str
    ledger: str = ""
    tenure: dict[str, str] = field(default_factory=dict)
    core_plugin: str = "ml2"
    service_plugins: str = "router"
    makes_tables: bool = False

    def sections(self) -> dict[str, dict[str, str]]:
        """Return the sections of the configuration file."""
        ours = {"mode": self.mode, **({"ledger": self.ledger} if self.ledger else {}), **self.tenure}
        return {
            "DEFAULT": {
                "core_plugin": self.core_plugin,
                "service_plugins": self.service_plugins,
                "ipam_driver": "tenure",
                "transport_url": "fake:/",
                "dhcp_agent_notification": "false",
                "notify_nova_on_port_status_changes": "false",
                "notify_nova_on_port_data_changes": "false",
            },
            "database": {"connection": self.database},
            "ml2": {"type_drivers": "local", "project_network_types": "local", "mechanism_drivers": "logger"},
            "quotas": {f"quota_{name}": "-1" for name in UNBOUNDED},
            "tenure": ours,
        }


READY, DONE, FAILED, REACHED = "ready", "done", "failed", "reached"
"""What a server says through its pipe."""


def port_of(network: str, *addresses: str, **fields: Any) -> dict[str, Any]:
    """Describe a port as a client does."""
    port: dict[str, Any] = {"network_id": network, "tenant_id": PROJECT, **fields}
    if addresses:
        port["fixed_ips"] = [{"ip_address": address} for address in addresses]
    return port
