"""The plan that the examples of the OpenAPI document speak of, laid afresh on a running server."""

from typing import Any
from urllib.parse import quote

from tenure.doors.http.openapi.openapi_examples import CLOUD_CONFIG, MANIFEST, PLAN
from tenure.doors.http.routing.endpoint import Endpoint
from tenure.integrations.bosh.cloud_config.legacy_deployments import MODE
from tenure.integrations.bosh.state.compile_workers import COMPILE
from tenure.integrations.bosh.state.instance_state import CONFIG, DEPLOYMENT, INSTANCE, ORPHAN, SNAPSHOT
from tenure.integrations.bosh.state.managed_records import MANAGED
from tenure.integrations.bosh.state.vm_holder import ALL_VMS
from tenure.integrations.bosh.state.vm_index import VM
from tests.doors.http.stage import Answer, Client

ANY = {"If-Match": "*"}
KINDS = ("instance", CONFIG, SNAPSHOT, DEPLOYMENT, INSTANCE, ORPHAN, COMPILE, MODE, MANAGED, VM, ALL_VMS)
"""Papers that examples and tests leave behind."""


def at(path: str, **params: str) -> str:
    """Fill a path in, encoding what it needs."""
    for name, value in params.items():
        written = value.replace(".", "%2E") if value in (".", "..") else quote(value, safe="")
        path = path.replace(f"{{{name}}}", written)
    return path


async def good(client: Client, method: str, path: str, body: object = None, **more: Any) -> Answer:
    """Ask for something that succeeds."""
    answer = await client.ask(method, path, body, **more)
    assert answer.status < 300, (method, path, body, answer.body)
    return answer


async def refused(
    client: Client, status: int, code: str, method: str, path: str, body: object = None, **more: Any
) -> Any:
    """Ask for something that is refused; return the problem. The ledger must be as it was."""
    before = await client.get("/changes/last")
    answer = await client.ask(method, path, body, **more)
    assert (answer.status, answer.code) == (status, code), (method, path, body, answer.body)
    assert answer.json["status"] == status
    assert await client.get("/changes/last") == before
    return answer.json


async def clear(client: Client) -> None:
    """Remove all networks, and the papers of instances and deployments."""
    for network in (await client.get("/networks?limit=1000"))["items"]:
        path = at("/networks/{network}", network=network["name"])
        for connection in network["connections"]:
            await client.post(f"{path}:disconnect", {"group": connection["group"]})
        await good(client, "DELETE", f"{path}?cascade=true", headers=ANY)
    papers = [paper for kind in KINDS for paper in (await client.get(f"/papers/{kind}?limit=1000"))["items"]]
    named = [{name: paper[name] for name in ("kind", "name", "revision")} for paper in papers]
    if named:
        await client.post(":apply", {"operations": [{"op": "remove_paper", **each} for each in named]})


async def lay(client: Client, *, deployed: bool = False) -> None:
    """Lay the plan of the examples on a server, in place of whatever was there; with their deployment, if wanted."""
    await clear(client)
    await client.post(":apply", {"operations": PLAN})
    if deployed:
        await good(client, "PUT", "/cloud-configs/default", {"text": CLOUD_CONFIG})
        await client.post("/deployments:apply", {"manifest": MANIFEST})
        await client.post("/deployments/shop/instances/web/0:commit", {"vm": "vm-1"})


async def lay_for(client: Client, endpoint: Endpoint) -> None:
    """Lay what the example of a route speaks of; where that is a deployment, packages are compiled for it as well."""
    deployed = endpoint.section == "deployments"
    await lay(client, deployed=deployed)
    if deployed:
        await client.post("/deployments/shop:compile", {"workers": 1})
        await good(client, "PUT", "/cloud-configs/spare", {"text": "networks: []"})
