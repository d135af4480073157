"""A site with deployments: a cloud config, a manifest, and what was deployed of it."""

from typing import Any

import yaml

from tests.doors.cli.site import Site

Document = dict[str, Any]

CONFIG: Document = {
    "azs": [{"name": "z1"}, {"name": "z2"}],
    "networks": [
        {
            "name": "apps",
            "subnets": [
                {
                    "range": "10.44.16.0/28",
                    "gateway": "10.44.16.1",
                    "dns": ["10.44.0.53"],
                    "az": "z1",
                    "static": ["10.44.16.10-10.44.16.12"],
                    "cloud_properties": {"vlan": 416},
                },
                {"range": "10.44.17.0/28", "gateway": "10.44.17.1", "az": "z2"},
            ],
        },
        {"name": "edge", "type": "dynamic", "subnets": [{"azs": ["z1", "z2"]}]},
        {"name": "public", "type": "vip"},
    ],
}

SHOP: Document = {
    "name": "shop",
    "instance_groups": [
        {
            "name": "db",
            "instances": 1,
            "azs": ["z1"],
            "networks": [{"name": "apps", "static_ips": ["10.44.16.10"]}],
        },
        {"name": "web", "instances": 2, "azs": ["z1", "z2"], "networks": [{"name": "apps"}]},
    ],
}

MIXED: list[Document] = [
    {"name": "apps", "default": ["dns", "gateway"]},
    {"name": "edge"},
    {"name": "public", "static_ips": ["203.0.113.9"]},
]
"""A network of each kind."""

VMS = {"db/0": "vm-1", "web/0": "vm-2", "web/1": "vm-3"}


SMOKE: Document = {"name": "smoke-test", "instances": 1, "azs": ["z1"], "networks": [{"name": "apps"}]}
COMPILING: Document = {**CONFIG, "compilation": {"workers": 2, "network": "apps", "az": "z1"}}
TESTED: Document = {**SHOP, "instance_groups": [*SHOP["instance_groups"], {**SMOKE, "lifecycle": "errand"}]}
"""The shop with an errand, on a site where packages can be compiled."""


def write(site: Site, name: str, document: Document) -> str:
    """Write a document into the site's folder, and return its name."""
    (site.folder / name).write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return name


def config(**apps: Any) -> Document:
    """Write the cloud config with something changed in the first subnet of ``apps``."""
    network, *others = CONFIG["networks"]
    first, second = network["subnets"]
    return {**CONFIG, "networks": [{**network, "subnets": [{**first, **apps}, second]}, *others]}


def group(name: str, instances: int = 1, network: str = "apps", **more: Any) -> Document:
    """Write a group in z1; ``static_ips`` go to its network."""
    on: Document = {"name": network}
    if "static_ips" in more:
        on["static_ips"] = more.pop("static_ips")
    return {"name": name, "instances": instances, "azs": ["z1"], "networks": more.pop("networks", [on]), **more}


def manifest(name: str, *groups: Document, **more: Any) -> Document:
    """Write a manifest."""
    return {"name": name, **more, "instance_groups": list(groups)}


def build_deployments(site: Site) -> None:
    """Put a cloud config in force and deploy a shop, with all its VMs; one of them the IaaS does not list."""
    write(site, "cloud.yml", CONFIG)
    write(site, "shop.yml", SHOP)
    write(site, "compiling.yml", COMPILING)
    write(site, "tested.yml", TESTED)
    (site.folder / "vms.txt").write_text("vm-1\nvm-3\nof-somebody-else\n", "utf-8")
    site.text("deployment", "upload-config", str(site.folder / "cloud.yml"))
    site.text("deployment", "apply", str(site.folder / "shop.yml"))
    for instance, vm in VMS.items():
        site.text("deployment", "commit", "shop", instance, "--vm", vm)


def build_work(site: Site) -> None:
    """Deploy the shop with an errand, begin to compile packages for it, have a VM made anew; a second config comes."""
    site.text("deployment", "upload-config", str(site.folder / "compiling.yml"))
    site.text("deployment", "apply", str(site.folder / "tested.yml"))
    site.text("deployment", "compile", "shop")
    site.text("deployment", "recreate", "shop", "web/0")
    more = write(site, "more.yml", {"networks": [{"name": "more", "type": "vip"}]})
    site.text("deployment", "upload-config", str(site.folder / more), "--name", "more")


def addresses(site: Site, deployment: str) -> dict[str, list[str]]:
    """Return what the instances of a deployment hold; what drains is in brackets."""
    return {
        f"{each['group']}/{each['index']}": [
            f"({held['address']})" if held["state"] == "draining" else held["address"] for held in each["addresses"]
        ]
        for each in site.json("deployment", "show", deployment)["instances"]
    }
