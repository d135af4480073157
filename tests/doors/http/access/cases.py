"""A request for every route, with a body that is right, and what the route must ask of whoever sends it.

``{network}`` stands for a network of the case's own, as ``prepare`` makes it.
"""

from dataclasses import dataclass, field
from typing import Any

import tenure
from tenure.doors.http.openapi.openapi_examples import CLOUD_CONFIG, MANIFEST
from tenure.doors.http.routing.principal import Need
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.kernel.plan.edits import Connect
from tenure.service.apply.operations import WritePaper

HELD, PENDING = "192.0.2.10", "192.0.2.11"
IF_MATCH = {"If-Match": "*"}
OWNER = {"owner": "instance/held"}


@dataclass(frozen=True)
class Case:
    """One route, by method and path as the catalogue has them, and a request for it."""

    method: str
    path: str
    need: Need
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""

    @property
    def name(self) -> str:
        """Name the case."""
        return f"{self.method} {self.path}"

    @property
    def of_network(self) -> bool:
        """Tell whether the route is about one network."""
        return "{network}" in self.path

    def where(self, network: str, token: str) -> str:
        """Return the path to ask for."""
        said = {
            "network": f"bare-{network}" if self.method == "DELETE" and self.path == NETWORK else network,
            "space": network,
            "subnet": "spare" if self.method == "DELETE" else "front",
            "pool": "pool1",
            "range": "192.0.2.50-192.0.2.59",
            "address": PENDING if self.path.endswith((":confirm", ":cancel")) else HELD,
            "owner": "instance%2Fwaits" if "preallocations" in self.path else "instance%2Fheld",
            "kind": "instance",
            "name": "held",
            "instance": "held",
            "token": token,
            "config": "spare" if self.path.endswith(":delete") else "default",
            "deployment": network,
            "instance_group": "web",
            "ident": "0",
            "errand": "smoke-test",
            "vm": "vm-1",
        }
        return self.path.format_map(said) + self.query

    def said(self, network: str) -> Any:
        """Return the body to send."""
        return _filled(self.body, network)


def _filled(value: Any, network: str) -> Any:
    if isinstance(value, str):
        return value.replace("{network}", network).replace("NAME", network)
    if isinstance(value, dict):
        return {name: _filled(each, network) for name, each in value.items()}
    return [_filled(each, network) for each in value] if isinstance(value, list) else value


PUBLIC, OPEN, READ, ALLOCATE, ADMIN = Need.PUBLIC, Need.OPEN, Need.READ, Need.ALLOCATE, Need.ADMIN
READ_OWN = Need.READ_OWN
NETWORK = "/networks/{network}"
INSTANCE = "/deployments/{deployment}/instances/{instance_group}/{ident}"
ERRAND = "/deployments/{deployment}/errands/{errand}"
DEPLOYED = MANIFEST.replace("name: shop", "name: NAME")
WIDE = CLOUD_CONFIG.replace("10.44.16.0/26", "10.44.0.0/16")
WISH = {"operations": [{"op": "allocate", "network": "{network}", "owner": "instance/new"}]}

CASES = [
    Case("GET", "/spaces", READ),
    Case("GET", "/spaces/{space}", READ),
    Case("GET", "/networks", READ_OWN),
    Case("POST", "/networks", ADMIN, {"name": "new-{network}"}),
    Case("GET", NETWORK, READ),
    Case("PATCH", NETWORK, ADMIN, {"description": "changed"}, IF_MATCH),
    Case("DELETE", NETWORK, ADMIN, headers=IF_MATCH, query="?cascade=true"),
    Case("POST", f"{NETWORK}:connect", ADMIN, {"group": "rack1", "link": "br0"}),
    Case("POST", f"{NETWORK}:disconnect", ADMIN, {"group": "rack0"}),
    Case("GET", f"{NETWORK}/subnets", READ),
    Case("POST", f"{NETWORK}/subnets", ADMIN, {"cidr": "198.51.100.0/24"}),
    Case("GET", f"{NETWORK}/subnets/{{subnet}}", READ),
    Case("PATCH", f"{NETWORK}/subnets/{{subnet}}", ADMIN, {"dhcp": True}, IF_MATCH),
    Case("DELETE", f"{NETWORK}/subnets/{{subnet}}", ADMIN, headers=IF_MATCH, query="?cascade=true"),
    Case("GET", f"{NETWORK}/pools", READ),
    Case("POST", f"{NETWORK}/pools", ADMIN, {"range": "192.0.2.100-192.0.2.110"}),
    Case("GET", f"{NETWORK}/pools/{{pool}}", READ),
    Case("PATCH", f"{NETWORK}/pools/{{pool}}", ADMIN, {"cooling_s": 5}, IF_MATCH),
    Case("DELETE", f"{NETWORK}/pools/{{pool}}", ADMIN, headers=IF_MATCH),
    Case("GET", f"{NETWORK}/reserved", READ),
    Case("POST", f"{NETWORK}/reserved", ADMIN, {"range": "192.0.2.60-192.0.2.69"}),
    Case("DELETE", f"{NETWORK}/reserved/{{range}}", ADMIN, headers=IF_MATCH),
    Case("GET", f"{NETWORK}/preallocations", READ),
    Case("POST", f"{NETWORK}/preallocations", ADMIN, {"owner": "instance/soon", "address": "192.0.2.21"}),
    Case("DELETE", f"{NETWORK}/preallocations/{{owner}}", ADMIN, headers=IF_MATCH),
    Case("POST", f"{NETWORK}:allocate", ALLOCATE, {"owner": "instance/new"}),
    Case("POST", f"{NETWORK}:allocate_many", ALLOCATE, {"wishes": [{"owner": "instance/new"}]}),
    Case("POST", f"{NETWORK}:release", ALLOCATE, {"address": HELD, **OWNER}),
    Case("POST", f"{NETWORK}:release_many", ALLOCATE, {"releases": [{"address": HELD, **OWNER}]}),
    Case("GET", "/holdings", READ_OWN),
    Case("GET", f"{NETWORK}/holdings", READ),
    Case("GET", f"{NETWORK}/holdings/{{address}}", READ),
    Case("PATCH", f"{NETWORK}/holdings/{{address}}", ALLOCATE, {"description": "changed"}, IF_MATCH),
    Case("POST", f"{NETWORK}/holdings/{{address}}:modify", ALLOCATE, {"description": "changed", **OWNER}),
    Case("POST", f"{NETWORK}/holdings/{{address}}:confirm", ALLOCATE, {"owner": "instance/pending"}),
    Case("POST", f"{NETWORK}/holdings/{{address}}:transfer", ALLOCATE, {"to": "instance/next", **OWNER}),
    Case("POST", f"{NETWORK}/holdings/{{address}}:cancel", ALLOCATE, {"owner": "instance/pending"}),
    Case("POST", f"{NETWORK}/holdings/{{address}}:release", ALLOCATE, OWNER),
    Case("POST", f"{NETWORK}/holdings/{{address}}:end_cooling", ALLOCATE, {"owner": "instance/gone"}),
    Case("GET", "/owners/{owner}", READ_OWN),
    Case("POST", "/owners/{owner}:release", ALLOCATE, {}),
    Case("GET", "/claims", READ_OWN),
    Case("GET", f"{NETWORK}/claims", READ),
    Case("POST", f"{NETWORK}:claim", ALLOCATE, {"owner": "instance/new"}),
    Case("POST", f"{NETWORK}:withdraw", ALLOCATE, {"owner": "instance/new"}),
    Case("GET", "/instances", READ),
    Case("GET", "/instances/{instance}", READ),
    Case("GET", "/search", READ_OWN, query="?text=held"),
    Case("GET", "/utilisation", READ),
    Case("GET", f"{NETWORK}/utilisation", READ),
    Case("GET", f"{NETWORK}/map", READ),
    Case("GET", f"{NETWORK}/timeline", READ),
    Case("GET", "/addresses/{address}/why", READ_OWN),
    Case("GET", "/addresses/{address}/history", READ_OWN),
    Case("GET", "/changes", READ_OWN),
    Case("GET", "/events", READ_OWN),
    Case("GET", "/papers/{kind}", READ),
    Case("GET", "/papers/{kind}/{name}", READ),
    Case("GET", "/cloud-configs", READ),
    Case("PUT", "/cloud-configs/{config}", ADMIN, {"text": WIDE}),
    Case("POST", "/cloud-configs/{config}:delete", ADMIN, {"dry_run": True}),
    Case("POST", "/deployments:plan", ADMIN, {"manifest": DEPLOYED}),
    Case("POST", "/deployments:apply", ADMIN, {"manifest": DEPLOYED}),
    Case("GET", "/deployments", READ),
    Case("GET", "/deployments/{deployment}", READ),
    Case("POST", "/deployments/{deployment}:delete", ADMIN, {}),
    Case("POST", "/deployments/{deployment}:abort", ADMIN, {"plan": "p"}),
    Case("POST", "/deployments:diff", READ, {"manifest": DEPLOYED}),
    Case("POST", "/deployments/{deployment}:recreate", ADMIN, {}),
    Case("POST", "/deployments/{deployment}:check", READ, {"vms": []}),
    Case("POST", "/deployments/{deployment}:compile", ADMIN, {}),
    Case("POST", "/deployments/{deployment}:commit_worker", ADMIN, {"number": 0, "vm": "vm-9"}),
    Case("POST", "/deployments/{deployment}:end_compile", ADMIN, {}),
    Case("POST", f"{ERRAND}:run", ADMIN, {}),
    Case("POST", f"{ERRAND}:end", ADMIN, {}),
    Case("GET", f"{INSTANCE}/why", READ),
    Case("POST", f"{INSTANCE}:recreate", ADMIN, {}),
    Case("POST", f"{INSTANCE}:recreate_missing", ADMIN, {"vm": "vm-1"}),
    Case("POST", f"{INSTANCE}:delete_reference", ADMIN, {"vm": "vm-1"}),
    Case("GET", "/managed-networks", READ),
    Case("POST", f"{INSTANCE}:commit", ADMIN, {"vm": "vm-1"}),
    Case("POST", f"{INSTANCE}:fail", ADMIN, {}),
    Case("POST", f"{INSTANCE}:lose", ADMIN, {}),
    Case("POST", f"{INSTANCE}:stop", ADMIN, {}),
    Case("POST", f"{INSTANCE}:start", ADMIN, {}),
    Case("POST", f"{INSTANCE}:ignore", ADMIN, {}),
    Case("POST", f"{INSTANCE}:unignore", ADMIN, {}),
    Case("GET", "/orphans", READ),
    Case("POST", "/orphans/{vm}:clean_up", ADMIN, {}),
    Case("GET", "/self", OPEN),
    Case("POST", ":apply", OPEN, WISH),
    Case("POST", ":rehearse", OPEN, WISH),
    Case("POST", ":verify", ADMIN, {}),
    Case("POST", ":sweep", ADMIN, {}),
    Case("POST", "/changes:trim", ADMIN, {"before": 1}),
    Case("POST", "/changes:archive", ADMIN, {"keep_days": 90}),
    Case("GET", "/changes/last", READ_OWN),
    Case("GET", "/tokens", ADMIN),
    Case("POST", "/tokens", ADMIN, {"name": "new-{network}", "scopes": ["read"]}),
    Case("GET", "/tokens/{token}", ADMIN),
    Case("POST", "/tokens/{token}:revoke", ADMIN, {}),
    Case("POST", "/logout", PUBLIC),
]
"""All but the login, whose answer depends on its body alone; it has tests of its own."""

LOGIN = "POST /login"


async def prepare(ledger: tenure.AsyncLedger, network: str) -> None:
    """Make a network with a little of everything, a bare one, and a deployment of the same name."""
    await ledger.add_network(f"bare-{network}")
    await ledger.add_network(network)
    await ledger.add_subnet(network, "203.0.113.0/24", name="spare")
    await ledger.add_subnet(network, "192.0.2.0/24", name="front")
    await ledger.add_pool(network, "192.0.2.10-192.0.2.40", name="pool1")
    await ledger.reserve(network, "192.0.2.50-192.0.2.59")
    await ledger.preallocate(network, "instance/waits", "192.0.2.20")
    await ledger.apply([Connect(network=network, group="rack0", link="br0")])
    await ledger.allocate(network, owner="instance/held", address=HELD)
    await ledger.hold(network, owner="instance/pending", address=PENDING)
    await Deployments(ledger).apply(DEPLOYED.replace("NAME", network))
    await Deployments(ledger).begin_compiling(network)


async def prepare_site(ledger: tenure.AsyncLedger) -> None:
    """Write the paper of one machine, and put two cloud configs in force."""
    await Deployments(ledger).upload_config(WIDE)
    await Deployments(ledger).upload_config("networks: []", name="spare")
    await ledger.apply([WritePaper(kind="instance", name="held", document={"name": "held"})])
