"""Documents of deployments, and a director who deploys them over HTTP and makes the VMs."""

from typing import Any

import yaml

from tenure.doors.http.openapi.openapi_examples import CLOUD_CONFIG, MANIFEST
from tests.doors.http.plan import good
from tests.doors.http.stage import Client

SHOP, WEB = "/deployments/shop", "/deployments/shop/instances/web"
EDGE = {"name": "edge", "type": "dynamic", "subnets": [{"az": "z1", "dns": ["10.44.0.53"]}]}


def config(**subnet: Any) -> str:
    """Write the config of the examples with the dynamic network ``edge``, and something in its subnet changed."""
    document = yaml.safe_load(CLOUD_CONFIG)
    document["networks"][0]["subnets"][0].update(subnet)
    document["networks"].append(EDGE)
    return yaml.safe_dump(document)


def manifest(instances: int = 2, *, name: str = "shop", **group: Any) -> str:
    """Write the manifest of the examples with something in its group changed."""
    document = yaml.safe_load(MANIFEST)
    document["name"] = name
    del document["instance_groups"][1:]
    document["instance_groups"][0].update(instances=instances, **group)
    return yaml.safe_dump(document)


async def upload(admin: Client, text: str, **more: Any) -> Any:
    """Put a cloud config in force."""
    return (await good(admin, "PUT", "/cloud-configs/default", {"text": text, **more})).json


async def deploy(admin: Client, text: str, **more: Any) -> Any:
    """Reserve; make no VM yet."""
    return await admin.post("/deployments:apply", {"manifest": text, **more})


async def run(admin: Client, text: str, **more: Any) -> Any:
    """Deploy, and make and delete the VMs that the plan asks for; return the plan."""
    plan = await deploy(admin, text, **more)
    for number, each in enumerate(plan["instances"]):
        path = f"/deployments/{plan['deployment']}/instances/{each['group']}/{each['uuid']}"
        if each["waits_for"] == "vm":
            vm = f"vm-{plan['plan'][:6]}-{number}"
            await admin.post(f"{path}:commit", {"vm": vm, "plan": plan["plan"]})
        elif each["waits_for"] == "deletion":
            await admin.post(f"{path}:lose")
    return plan


async def has(admin: Client, deployment: str = "shop") -> dict[str, list[str]]:
    """Return the addresses of each instance of a deployment."""
    found = (await admin.get(f"/deployments/{deployment}"))["instances"]
    return {f"{each['group']}/{each['index']}": [held["address"] for held in each["addresses"]] for each in found}


def faults(problem: Any) -> list[tuple[str, int, str | None]]:
    """Return the faults of a problem: error, number, and the way to the place."""
    told = problem["data"]["faults"]
    assert all(each["message"] for each in told)
    return [(each["error"], each["number"], each["place"] and each["place"]["path"]) for each in told]


async def has_nothing(admin: Client) -> bool:
    """Tell whether there is no deployment, and nothing is held on its network."""
    listed = (await admin.get("/deployments"))["items"]
    held = (await admin.get("/networks/apps/holdings"))["items"]
    return (listed, held) == ([], [])


def two_groups(*tails: int) -> str:
    """Write a manifest of two groups with a static address each."""
    groups = [
        {
            "name": name,
            "instances": 1,
            "azs": ["z1"],
            "networks": [{"name": "apps", "static_ips": [f"10.44.16.{tail}"]}],
        }
        for name, tail in zip("ab", tails, strict=True)
    ]
    return yaml.safe_dump({"name": "shop", "instance_groups": groups})
