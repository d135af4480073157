"""The plan that the examples of the OpenAPI document speak of, laid afresh on a running server."""

from typing import Any
from urllib.parse import quote

from tenure.doors.rest.openapi_examples import PLAN
from tests.doors.rest.stage import Answer, Client

ANY = {"If-Match": "*"}


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
    """Remove all networks, and the papers of instances."""
    for network in (await client.get("/networks?limit=1000"))["items"]:
        path = at("/networks/{network}", network=network["name"])
        for connection in network["connections"]:
            await client.post(f"{path}:disconnect", {"group": connection["group"]})
        await good(client, "DELETE", f"{path}?cascade=true", headers=ANY)
    for paper in (await client.get("/papers/instance?limit=1000"))["items"]:
        gone = {"op": "remove_paper", "kind": "instance", "name": paper["name"], "revision": paper["revision"]}
        await client.post(":apply", {"operations": [gone]})


async def lay(client: Client) -> None:
    """Lay the plan of the examples on a server, in place of whatever was there."""
    await clear(client)
    await client.post(":apply", {"operations": PLAN})
