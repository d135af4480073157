"""Deployments on the command line: VMs made anew, errands, workers that compile, managed networks."""

import pytest

import tenure
from tenure.doors.cli.output.deployment_json_keys import COMPILE, DEPLOYED_INSTANCE, DEPLOYMENT_PLAN, MANAGED_NETWORK
from tenure.integrations.bosh.state.managed_records import CREATING, CreatedSubnet, Managed
from tests.doors.cli.commands.deployment.test_plan_apply_abort_modes import OWN
from tests.doors.cli.deployment_site import COMPILING, addresses, group, manifest, write
from tests.doors.cli.site import Site

SETTINGS = "netmask 255.255.255.240, prefix 32, cloud_properties vlan=416, gateway 10.44.16.1, dns 10.44.0.53"


@pytest.fixture
def tested(deployed: Site) -> Site:
    """Give the site with an errand in the shop, where packages can be compiled."""
    deployed.text("deployment", "upload-config", "compiling.yml")
    deployed.text("deployment", "apply", "tested.yml")
    return deployed


def test_an_instance_is_made_anew_on_its_addresses_without_a_deploy(deployed: Site) -> None:
    before, state = addresses(deployed, "shop"), deployed.state()
    tried = deployed.text("deployment", "recreate", "shop", "web/0", "--dry-run").splitlines()
    assert deployed.state() == state
    lines = deployed.text("deployment", "recreate", "shop", "web/0").splitlines()
    shown = deployed.json("deployment", "show", "shop", "web/0")
    plan = shown["plan"]

    assert tried == [
        "plan of deployment shop; nothing is reserved yet",
        "WHAT         INSTANCE  AZ  ADDRESSES        VM",
        "* recreated  web/0     z1  apps 10.44.16.2  replace vm-2",
        "1 instance: 1 recreated",
        "`tenure deployment recreate shop web/0` does it",
    ]
    assert lines[0] == f"applied plan {plan} of deployment shop"
    assert lines[5:7] == [
        f"web/0 ({shown['uuid']}) in z1",
        f"  apps: type manual, ip 10.44.16.2, {SETTINGS}, default dns,gateway",
    ]
    assert lines[-3] == (
        "  web/0: replace its VM vm-2, with the settings above, then `tenure deployment commit shop web/0 --vm VM`"
    )
    assert lines[-1] == f"`tenure deployment abort shop --plan {plan}` takes back what no VM carries yet"
    assert addresses(deployed, "shop") == before


def test_a_whole_deployment_is_made_anew_and_who_waits_already_stays_as_it_is(deployed: Site) -> None:
    deployed.text("deployment", "stop", "shop", "db/0", "--hard")
    deployed.text("deployment", "ignore", "shop", "web/1")
    document = deployed.json("deployment", "recreate", "shop")
    again = deployed.text("deployment", "recreate", "shop")

    assert list(document) == list(DEPLOYMENT_PLAN)
    assert [(each["instance"], each["action"], each["waits_for"]) for each in document["instances"]] == [
        ("web/0", "recreated", "vm")
    ]
    assert document["instances"][0]["settings"]["apps"]["ip"] == "10.44.16.2"
    assert again.startswith("no VM is to be made anew: who waits for one already, is stopped hard, ")
    assert deployed.json("deployment", "recreate", "shop")["changes"] is False


def test_what_was_to_be_made_anew_is_taken_back_by_its_own_plan(deployed: Site) -> None:
    plan = deployed.json("deployment", "recreate", "shop", "web/0")["plan"]
    failed = deployed.text("deployment", "fail", "shop", "web/0").splitlines()
    deployed.text("deployment", "abort", "shop", "--plan", plan)

    assert failed[-1] == (
        f"`tenure deployment apply FILE` tries again; `tenure deployment abort shop --plan {plan}` takes the plan back"
    )
    shown = deployed.json("deployment", "show", "shop", "web/0")
    assert (shown["vm"], shown["waits_for"], shown["plan"]) == ("vm-2", None, None)


def test_an_ignored_instance_is_not_made_anew(deployed: Site) -> None:
    deployed.text("deployment", "ignore", "shop", "web/0")
    before = deployed.state()
    code, error = deployed.error("deployment", "recreate", "shop", "web/0")

    assert (code, error["faults"][0]["number"]) == (4, 190020)
    assert "tenure deployment unignore" in error["hint"]
    assert deployed.state() == before


def test_a_vm_of_another_plan_is_not_taken_for_the_one_that_is_waited_for(deployed: Site) -> None:
    plan = deployed.json("deployment", "recreate", "shop", "web/0")["plan"]
    code, error = deployed.error("deployment", "commit", "shop", "web/0", "--vm", "vm-9", "--plan", "another")
    done = deployed.json("deployment", "commit", "shop", "web/0", "--vm", "vm-9", "--plan", plan)

    assert (code, error["code"]) == (4, "conflict")
    assert (done["vm"], done["waits_for"]) == ("vm-9", None)


def test_an_errand_rests_until_it_is_run_and_keeps_its_address_afterwards(tested: Site) -> None:
    rests = tested.json("deployment", "show", "shop", "smoke-test/0")
    why = tested.text("deployment", "why", "shop", "smoke-test/0").splitlines()
    tried = tested.text("deployment", "run-errand", "shop", "smoke-test", "--dry-run").splitlines()
    lines = tested.text("deployment", "run-errand", "shop", "smoke-test").splitlines()
    tested.text("deployment", "commit", "shop", "smoke-test/0", "--vm", "vm-9")
    there = tested.text("deployment", "run-errand", "shop", "smoke-test").splitlines()
    ended = tested.text("deployment", "end-errand", "shop", "smoke-test").splitlines()
    again = tested.json("deployment", "end-errand", "shop", "smoke-test")
    plan = tested.json("deployment", "run-errand", "shop", "smoke-test")

    assert (rests["errand"], rests["waits_for"], rests["addresses"]) == (True, None, [])
    assert why[-1] == "it waits for nothing: it rests until errand smoke-test is run"
    assert tried[-1] == "`tenure deployment run-errand shop smoke-test` does it"
    assert "~ changed  smoke-test/0  z1  apps none → 10.44.16.3  make it" in lines
    assert lines[-1] == "`tenure deployment end-errand shop smoke-test` when its VMs are deleted again"
    assert there == ["nothing to report: the VMs of errand smoke-test are there", lines[-1]]
    assert ended == ["errand smoke-test of deployment shop rests", "  smoke-test/0 keeps: apps 10.44.16.3"]
    assert list(again) == ["deployment", "errand", "instances"]
    assert [list(each) for each in again["instances"]] == [list(DEPLOYED_INSTANCE)]
    assert list(plan) == list(DEPLOYMENT_PLAN)
    assert plan["instances"][0]["settings"]["apps"]["ip"] == "10.44.16.3"


def test_a_deploy_asks_for_no_vm_of_an_errand(tested: Site) -> None:
    lines = tested.text("deployment", "apply", "tested.yml", "--recreate").splitlines()

    assert any(line.startswith("= kept       smoke-test/0") for line in lines)
    assert not any("commit shop smoke-test/0" in line for line in lines)
    assert "  no settings yet: its addresses are reserved when it runs" in lines


def test_an_errand_whose_vm_could_not_be_made_is_run_again(tested: Site) -> None:
    plan = tested.json("deployment", "run-errand", "shop", "smoke-test")["plan"]
    failed = tested.text("deployment", "fail", "shop", "smoke-test/0").splitlines()
    tested.text("deployment", "abort", "shop", "--plan", plan)

    assert failed[-1] == (
        "`tenure deployment run-errand shop smoke-test` tries again; "
        f"`tenure deployment abort shop --plan {plan}` takes the plan back"
    )
    assert "smoke-test/0" not in addresses(tested, "shop")


def test_workers_compile_are_reported_and_free_their_addresses(tested: Site) -> None:
    first, *lines = tested.text("deployment", "compile", "shop").splitlines()
    again = tested.json("deployment", "compile", "shop", "--workers", "1")
    told = tested.text("deployment", "commit-worker", "shop", "1", "--vm", "vm-20")
    document = tested.json("deployment", "commit-worker", "shop", "1", "--vm", "vm-20")
    later = tested.text("deployment", "compile", "shop").splitlines()
    ended = tested.text("deployment", "end-compile", "shop", "--plan", again["plan"])

    assert first == f"2 workers for plan {again['plan']} of deployment shop"
    assert lines[:2] == [
        "worker 0: no VM yet",
        f"  apps: type manual, ip 10.44.16.3, {SETTINGS}, default dns,gateway",
    ]
    assert lines[4:] == [
        "next:",
        "  worker 0: make its VM with the settings above, then `tenure deployment commit-worker shop 0 --vm VM`",
        "  worker 1: make its VM with the settings above, then `tenure deployment commit-worker shop 1 --vm VM`",
        "`tenure deployment end-compile shop` when all is compiled and the VMs are deleted",
    ]
    assert list(again) == list(COMPILE)
    assert [(each["number"], each["vm"], each["address"]) for each in again["workers"]] == [
        (0, None, "10.44.16.3"),
        (1, None, "10.44.16.4"),
    ]
    assert told == "worker 1 of deployment shop runs on vm-20\n"
    assert [each["vm"] for each in document["workers"]] == [None, "vm-20"]
    assert "worker 1: runs on vm-20" in later
    assert not any("commit-worker shop 1" in line for line in later)
    assert ended == (
        f"the compile for plan {again['plan']} of deployment shop is over; freed: apps 10.44.16.3, apps 10.44.16.4\n"
    )
    assert tested.text("deployment", "end-compile", "shop") == (
        "no compile goes on for deployment shop, or it was ended before\n"
    )
    assert tested.json("deployment", "end-compile", "shop") == {"deployment": "shop", "ended": False, "compile": None}


def test_workers_that_become_orphans_are_named(tested: Site) -> None:
    compilation = {**COMPILING["compilation"], "orphan_workers": True}
    tested.text("deployment", "upload-config", write(tested, "keep.yml", {**COMPILING, "compilation": compilation}))
    tested.text("deployment", "compile", "shop")
    tested.text("deployment", "commit-worker", "shop", "0", "--vm", "vm-20")
    ended = tested.text("deployment", "end-compile", "shop").splitlines()

    assert ended[0].endswith("is over; freed: apps 10.44.16.4")
    assert ended[1] == "orphans now: `tenure deployment cleanup-orphans vm-20` when they are deleted"
    assert tested.text("deployment", "cleanup-orphans", "vm-20").startswith("vm-20 is gone; freed: apps 10.44.16.3")


def test_managed_networks_are_listed_with_what_the_cloud_made(deployed: Site) -> None:
    none = deployed.text("deployment", "networks")
    there = Managed("made", subnets={"s1": CreatedSubnet("cid-s1", range="10.60.1.0/28")}, deployments=("shop",))
    with tenure.open(deployed.url) as ledger:
        left, begun = Managed("left", subnets={"s2": CreatedSubnet("cid-s2")}), Managed("begun", CREATING, "somebody")
        ledger.apply([each.written() for each in (there, left, begun)])
    lines = deployed.text("deployment", "networks").splitlines()
    documents = deployed.json("deployment", "networks")

    assert none == "no managed networks were made; a program that brings the cloud along makes them\n"
    assert lines == [
        "NETWORK  STATE     SUBNET  RANGE         CID     DEPLOYMENTS",
        "begun    creating  -       -             -       -",
        "left     orphan    s2      -             cid-s2  -",
        "made     ready     s1      10.60.1.0/28  cid-s1  shop",
    ]
    assert [list(each) for each in documents] == [list(MANAGED_NETWORK)] * 3
    assert [(each["name"], each["orphaned"]) for each in documents] == [
        ("begun", True), ("left", True), ("made", False),
    ]  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (3, ["recreate", "nowhere"], "nowhere"),
        (3, ["recreate", "shop", "web/7"], "no instance 'web/7' of deployment shop"),
        (3, ["run-errand", "shop", "none"], "no errand 'none' of deployment shop"),
        (4, ["run-errand", "shop", "web"], "Instance group 'web' is not an errand."),
        (3, ["end-errand", "shop", "none"], "no errand 'none' of deployment shop"),
        (4, ["end-errand", "shop", "web"], "Instance group 'web' is not an errand."),
        (3, ["compile", "nowhere"], "nowhere"),
        (4, ["compile", "shop"], "Required property 'compilation' was not specified in a cloud config"),
        (4, ["compile", "shop", "--plan", "another"], "plan another is not the last one of deployment 'shop'"),
        (2, ["compile", "shop", "--plan", " "], "plan"),
        (2, ["compile", "shop", "--workers", "0"], "--workers"),
        (3, ["commit-worker", "shop", "0", "--vm", "vm-20"], "no compile worker '0' of deployment shop"),
        (3, ["commit-worker", "nowhere", "0", "--vm", "vm-20"], "nowhere"),
        (2, ["commit-worker", "shop", "0", "--vm", " "], "vm"),
        (2, ["commit-worker", "shop", "first", "--vm", "vm-20"], "first"),
        (3, ["end-compile", "nowhere"], "nowhere"),
        (2, ["commit", "shop", "web/0", "--vm", "vm-9", "--plan", ""], "plan"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_is_refused_says_why_and_changes_nothing(deployed: Site, code: int, words: list[str], said: str) -> None:
    before = deployed.state()
    found, error = deployed.error("deployment", *words)

    assert found == code, error
    assert said in error["message"]
    assert error["hint"]
    assert deployed.state() == before


@pytest.mark.parametrize("words", [["recreate", "alone"], ["compile", "alone"], ["run-errand", "alone", "app"]])
def test_what_needs_a_cloud_config_says_so(site: Site, words: list[str]) -> None:
    new = ["--store", "sqlite:///new.db"]
    site.text("deployment", "apply", write(site, "own.yml", OWN), *new)
    code, error = site.error("deployment", *words, *new)

    assert (code, error["code"]) == (4, "deployment_refused")
    assert "Deployment 'alone' was deployed without a cloud config" in error["message"]
    assert error["hint"]


def test_a_plan_with_kept_instances_left_out_shows_only_what_changes(deployed: Site) -> None:
    name = write(deployed, "more.yml", manifest("shop", group("web"), group("cache")))
    planned = deployed.json("deployment", "plan", name, "--changes")
    text = deployed.text("deployment", "apply", name, "--changes")

    assert [each["action"] for each in planned["instances"]] == ["created", "leaves", "leaves"]
    assert planned["counts"]["kept"] == 1
    assert "web/0" not in text
    assert "\ncache/0 (" in text


def test_a_deploy_tells_that_it_ends_a_compile_and_whose_vms_are_orphans_then(tested: Site) -> None:
    begun = tested.json("deployment", "compile", "shop")
    tested.text("deployment", "commit-worker", "shop", "0", "--vm", "vm-20")
    told = (
        f"ends the compile for plan {begun['plan']} (2 workers); orphans then: "
        "`tenure deployment cleanup-orphans vm-20` when they are deleted"
    )
    tried = tested.text("deployment", "plan", "tested.yml").splitlines()
    planned = tested.json("deployment", "plan", "tested.yml")
    lines = tested.text("deployment", "apply", "tested.yml").splitlines()
    again = tested.json("deployment", "apply", "tested.yml")

    assert tried[-2:] == [told, "`tenure deployment apply tested.yml` does it"]
    assert list(planned["ends_compile"]) == list(COMPILE)
    assert [each["vm"] for each in planned["ends_compile"]["workers"]] == ["vm-20", None]
    assert told in lines
    assert again["ends_compile"] is None
    assert tested.text("deployment", "plan", "tested.yml").splitlines()[-1] == "nothing to do"
    assert [each["vm"] for each in tested.json("deployment", "cleanup-orphans")] == ["vm-20"]
