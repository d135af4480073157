"""Deployments on the command line: listed, shown, compared, explained; and loaded only when they are wanted."""

import subprocess
import sys

import pytest

from tenure.doors.cli.output.deployment_json_keys import ADDRESS_REASON, DEPLOYED_INSTANCE, DEPLOYMENT
from tests.doors.cli.deployment_site import MIXED, SHOP, config, group, manifest, write
from tests.doors.cli.processes import TENURE, surroundings
from tests.doors.cli.site import Site

DB, WEB = SHOP["instance_groups"]


def moved(site: Site) -> None:
    """Reserve the address of web/0."""
    site.text("deployment", "upload-config", write(site, "new.yml", config(reserved=["10.44.16.2"])))


def test_deployments_are_listed_with_what_they_wait_for(deployed: Site) -> None:
    [entry] = deployed.json("deployment", "list")
    assert list(entry) == list(DEPLOYMENT)
    assert (entry["groups"], entry["instances"], entry["waiting"], entry["config"]) == (["db", "web"], 3, 0, "current")
    moved(deployed)
    deployed.text("deployment", "lose", "shop", "web/1")

    head, row = deployed.text("deployment", "list").splitlines()
    assert head.split() == ["DEPLOYMENT", "GROUPS", "INSTANCES", "WAITING", "LEAVING", "IGNORED", "CONFIG"]
    assert row.split() == ["shop", "db,web", "3", "1", "0", "0", "older"]


def test_without_deployments_the_way_to_one_is_told(site: Site) -> None:
    assert site.text("deployment", "list") == "no deployments; `tenure deployment apply FILE` makes one\n"


def test_a_deployment_is_shown_with_its_instances(deployed: Site) -> None:
    document = deployed.json("deployment", "show", "shop")
    lines = deployed.text("deployment", "show", "shop").splitlines()

    assert list(document) == ["name", "plan", "config", "instances"]
    assert [list(each) for each in document["instances"]] == [list(DEPLOYED_INSTANCE)] * 3
    assert lines == [
        f"deployment shop, deployed with the cloud config in force; last plan {document['plan']}",
        "INSTANCE  AZ  STATE    VM    ADDRESSES         WAITS FOR",
        "db/0      z1  started  vm-1  apps 10.44.16.10  -",
        "web/0     z1  started  vm-2  apps 10.44.16.2   -",
        "web/1     z2  started  vm-3  apps 10.44.17.2   -",
    ]
    moved(deployed)
    assert "deployed with an older cloud config;" in deployed.text("deployment", "show", "shop")


def test_an_instance_is_shown_with_the_settings_it_was_deployed_with(deployed: Site) -> None:
    moved(deployed)
    document = deployed.json("deployment", "show", "shop", "web/0")
    lines = deployed.text("deployment", "show", "shop", "web/0").splitlines()

    assert list(document) == [*DEPLOYED_INSTANCE, "settings"]
    assert document["settings"]["apps"]["ip"] == "10.44.16.2"
    assert "settings:" in lines
    assert lines[-1].startswith("  apps: type manual, ip 10.44.16.2, ")


def test_a_manifest_is_compared_with_what_is_deployed(deployed: Site) -> None:
    other = manifest(
        "shop",
        {**DB, "networks": [{"name": "apps", "static_ips": ["10.44.16.11"], "nic_group": 1}]},
        {**WEB, "instances": 3, "networks": [*WEB["networks"]]},
        group("cache", networks=[MIXED[0], MIXED[2]]),
    )
    name = write(deployed, "other.yml", other)
    moved(deployed)

    assert deployed.text("deployment", "diff", name).splitlines() == [
        "~ db.networks.apps.static_ips: 10.44.16.10 → 10.44.16.11",
        "~ db.networks.apps.nic_group: - → 1",
        "~ web.instances: 2 → 3",
        "+ cache: instances 1, azs z1, lifecycle service, vm_strategy delete-create, networks apps,public",
        "~ cloud config: network apps changed since the last deploy",
    ]
    document = deployed.json("deployment", "diff", name)
    assert (document["deployment"], document["same"], document["networks"]) == ("shop", False, ["apps"])
    assert document["differences"][0] == {
        "path": "db.networks.apps.static_ips",
        "before": ["10.44.16.10"],
        "after": ["10.44.16.11"],
    }


def test_what_is_the_same_is_told_so_and_scripts_may_ask(deployed: Site) -> None:
    assert deployed.text("deployment", "diff", "shop.yml", "--exit-code") == (
        "deployment shop is deployed as the manifest and the cloud config say\n"
    )
    less = write(deployed, "less.yml", manifest("shop", DB, {**WEB, "networks": [*WEB["networks"], {"name": "edge"}]}))
    deployed.text("deployment", "diff", less, "--exit-code", code=2)  # it must say which network is the default
    less = write(deployed, "less.yml", manifest("shop", DB))
    assert deployed.text("deployment", "diff", less, "--exit-code", code=1).startswith("- web: instances 2, azs z1,z2")


def test_why_tells_pool_subnet_zone_time_plan_carrier_and_what_would_change_it(deployed: Site) -> None:
    document = deployed.json("deployment", "why", "shop", "web/0")
    [reason] = document["reasons"]
    lines = deployed.text("deployment", "why", "shop", "web/0").splitlines()
    plan = deployed.json("deployment", "show", "shop")["plan"]

    assert list(reason) == list(ADDRESS_REASON)
    assert (reason["address"], reason["origin"], reason["subnet"]) == ("10.44.16.2", "picked", "10.44.16.0/28")
    assert (reason["azs"], reason["plan"], reason["vm"], reason["moves"]) == (["z1"], plan, "vm-2", None)
    assert lines[1] == ("apps 10.44.16.2: it was the lowest free address of subnet 10.44.16.0/28, which serves 'z1'")
    assert lines[2].startswith("  since 2")
    assert lines[2].endswith(f"Z, by plan {plan}; vm-2 carries it")
    assert lines[3] == "  it changes if"
    assert "    - the group asks for static_ips" in lines
    assert lines[-1] == "it waits for nothing"


def test_why_tells_static_addresses_from_picked_ones(deployed: Site) -> None:
    [reason] = deployed.json("deployment", "why", "shop", "db/0")["reasons"]

    assert reason["origin"] == "static"
    assert reason["why"].startswith("static_ips names it; it is among the static addresses of subnet 10.44.16.0/28")
    assert "static_ips lists it no more" in reason["changes"]


def test_why_tells_that_the_next_deploy_moves_it_and_then_what_it_waits_for(deployed: Site) -> None:
    moved(deployed)
    lines = deployed.text("deployment", "why", "shop", "web/0").splitlines()
    assert "  the next deploy gives another one: it is reserved in subnet 10.44.16.0/28 now" in lines
    plan = deployed.json("deployment", "apply", "shop.yml")["plan"]

    document = deployed.json("deployment", "why", "shop", "web/0")
    new, old = document["reasons"]
    assert (new["address"], new["vm"], new["plan"]) == ("10.44.16.3", None, plan)
    assert (old["address"], old["state"], old["vm"]) == ("10.44.16.2", "draining", "vm-2")
    assert old["why"] == f"it is not wanted any more since plan {plan}; freed once the VM is another"
    assert (document["waits_for"], document["waiting"]) == ("vm", "a VM in place of vm-2, with its settings")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fail", "shop", "web/0"], "a VM with its settings; the last one could not be made"),
        (["stop", "shop", "web/0", "--hard"], "being started: it was stopped hard, and keeps its addresses"),
        (["delete", "shop"], "the deletion of its VM vm-2; its addresses are freed then"),
    ],
)
def test_why_tells_what_an_instance_waits_for(deployed: Site, words: list[str], said: str) -> None:
    if words[0] == "fail":
        deployed.text("deployment", "lose", "shop", "web/0")
        deployed.text("deployment", "apply", "shop.yml")
    deployed.text("deployment", *words)

    assert deployed.text("deployment", "why", "shop", "web/0").splitlines()[-1] == f"it waits for {said}"


def test_why_tells_of_vips_and_of_what_the_iaas_picked(deployed: Site) -> None:
    name = write(deployed, "edge.yml", manifest("edgy", group("lb", networks=MIXED)))
    deployed.text("deployment", "apply", name)
    before = deployed.text("deployment", "why", "edgy", "lb/0")
    deployed.text("deployment", "commit", "edgy", "lb/0", "--vm", "vm-7", "--hint", "edge=192.168.7.7")
    origins = {
        each["network"]: each["origin"] for each in deployed.json("deployment", "why", "edgy", "lb/0")["reasons"]
    }

    assert "edge without address: the network is dynamic: the IaaS picks, and told none yet" in before
    assert "public 203.0.113.9: static_ips names it" in before
    assert origins == {"apps": "picked", "public": "static", "edge": "iaas"}
    assert "edge 192.168.7.7: the IaaS picked it" in deployed.text("deployment", "why", "edgy", "lb/0")


def test_names_are_completed(deployed: Site) -> None:
    def offered(line: str, *, word: int) -> list[str]:
        variables = {"_TENURE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(word)}
        around = surroundings(deployed.url, variables)
        done = subprocess.run(TENURE, env=around, capture_output=True, text=True, check=False)
        return [each.removeprefix("plain,") for each in done.stdout.splitlines()]

    assert offered("tenure deployment show s", word=3) == ["shop"]
    assert len(offered("tenure deployment commit shop web/", word=4)) == 2


def python(site: Site, code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], env=surroundings(site.url), capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [["--help"], ["deployment", "--help"], ["network", "list"], ["show"]], ids=" ".join)
def test_yaml_is_loaded_by_nothing_but_deployments(deployed: Site, words: list[str]) -> None:
    code = f"import sys\nfrom tenure.doors.cli.main import main\ntry:\n    main({words!r})\nfinally:\n    "
    done = python(deployed, code + "print('yaml' in sys.modules)")

    assert done.stdout.splitlines()[-1] == "False"


def test_without_yaml_it_says_what_to_install(deployed: Site) -> None:
    code = "import sys\nsys.modules['yaml'] = None\nfrom tenure.doors.cli.main import main\n"
    done = python(deployed, code + "main(['deployment', 'list'])")

    assert (done.returncode, "pip install 'tenure[deployments]'" in done.stderr) == (2, True)
