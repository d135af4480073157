"""Deployments on the command line: cloud configs, plans, what is applied and taken back."""

import pytest
import yaml

from tenure.doors.cli.commands.deployment.plan_text import settings_lines
from tenure.doors.cli.output.deployment_json_keys import (
    CLOUD_CONFIG,
    CONFIG_UPLOAD,
    DEPLOYED_INSTANCE,
    DEPLOYMENT_PLAN,
    FAULT,
    PLAN_STEP,
)
from tests.doors.cli.deployment_site import CONFIG, MIXED, SHOP, addresses, config, group, manifest, write
from tests.doors.cli.site import Site

SETTINGS = (
    "  apps: type manual, ip 10.44.16.3, netmask 255.255.255.240, prefix 32, cloud_properties vlan=416, "
    "gateway 10.44.16.1, dns 10.44.0.53, default dns,gateway"
)
NET = {"type": "manual", "ip": "10.44.16.2", "netmask": "255.255.255.240", "prefix": "32"}


def test_a_config_begins_a_ledger_and_tells_which_networks_it_brings(site: Site) -> None:
    name = write(site, "cloud.yml", CONFIG)

    assert site.text("deployment", "upload-config", name, "--store", "sqlite:///new.db") == (
        "uploaded cloud config default; networks that change: apps, public\n"
    )
    again = site.json("deployment", "upload-config", name, "--store", "sqlite:///new.db")
    assert list(again) == list(CONFIG_UPLOAD)
    assert (again["name"], again["written"], again["networks"], again["moves"]) == ("default", True, [], [])


def test_a_dry_run_of_an_upload_changes_nothing_and_makes_no_file(deployed: Site) -> None:
    before = deployed.state()
    name = write(deployed, "new.yml", config(reserved=["10.44.16.2"]))
    tried = deployed.json("deployment", "upload-config", name, "--dry-run")

    assert (tried["written"], tried["networks"], len(tried["moves"])) == (False, ["apps"], 1)
    assert deployed.state() == before
    deployed.text("deployment", "upload-config", "new.yml", "--dry-run", "--store", "sqlite:///missing.db")
    assert not (deployed.folder / "missing.db").exists()


def test_an_upload_tells_whom_the_config_would_move_and_moves_nobody(deployed: Site) -> None:
    before = addresses(deployed, "shop")
    lines = deployed.text("deployment", "upload-config", write(deployed, "new.yml", config(gateway="10.44.16.2")))

    assert lines.splitlines() == [
        "uploaded cloud config default; networks that change: apps",
        "these addresses fit no more; the next deploy of their deployments gives others:",
        "  shop web/0: apps 10.44.16.2: it is the gateway of subnet 10.44.16.0/28 now",
        "`tenure deployment plan FILE` shows where they go",
    ]
    assert addresses(deployed, "shop") == before


def test_an_ignored_instance_that_would_be_moved_is_told_as_such(deployed: Site) -> None:
    deployed.text("deployment", "ignore", "shop", "web/0")
    told = deployed.text("deployment", "upload-config", write(deployed, "new.yml", config(reserved=["10.44.16.2"])))

    assert "it is reserved in subnet 10.44.16.0/28 now (ignored: the deploy would be refused)" in told


def test_warnings_are_told_with_their_places_in_the_file(deployed: Site) -> None:
    name = write(deployed, "new.yml", config(dns=["10.44.16.9"]))
    plain = deployed.call("deployment", "upload-config", name, "--dry-run")
    [warning] = deployed.json("deployment", "upload-config", name, "--dry-run")["warnings"]

    assert plain.stderr.startswith("tenure: warning: new.yml:")
    assert "10.44.16.9" in plain.stderr
    assert list(warning) == list(FAULT)
    assert warning["place"]["document"] == "new.yml"
    assert warning["place"]["path"] == "networks[0].subnets[0].dns[0]"


def test_faults_are_told_all_at_once_with_place_name_and_number(deployed: Site) -> None:
    bad = {**config(gateway="10.44.99.1"), "azs": [{"name": "z1"}]}
    name, before = write(deployed, "bad.yml", bad), deployed.state()
    plain = deployed.call("deployment", "upload-config", name)
    code, error = deployed.error("deployment", "upload-config", name)

    assert (plain.exit_code, plain.stdout, code, error["code"]) == (2, "", 2, "document_rejected")
    *lines, hint = plain.stderr.splitlines()
    assert [line.startswith("tenure: bad.yml:") for line in lines] == [True] * len(error["faults"])
    assert [fault["error"] for fault in error["faults"]] == [
        "NetworkInvalidGateway",
        "NetworkSubnetUnknownAvailabilityZone",
        "NetworkSubnetUnknownAvailabilityZone",
    ]
    assert [fault["number"] for fault in error["faults"]] == [160003, 160007, 160007]
    assert lines[0].endswith(
        "(networks[0].subnets[0].gateway): Invalid gateway for network 'apps': must be inside the range "
        "[NetworkInvalidGateway 160003]"
    )
    assert [list(fault) for fault in error["faults"]] == [list(FAULT)] * 3
    assert hint.strip() == error["hint"]
    assert deployed.state() == before


def test_faults_of_another_config_keep_its_name(deployed: Site) -> None:
    name = write(deployed, "more.yml", {"networks": [{"name": "Apps", "type": "dynamic"}, {"name": "x", "colour": 1}]})
    _, error = deployed.error("deployment", "upload-config", name, "--name", "more")

    assert {fault["place"]["document"] for fault in error["faults"]} == {"more.yml"}


def test_standard_input_is_read_for_a_dash(deployed: Site) -> None:
    good = deployed.call("deployment", "plan", "-", fed=yaml.safe_dump(SHOP))
    bad = deployed.call("deployment", "plan", "-", fed="name: shop\ninstance_groups: 3\n")
    torn = deployed.call("deployment", "plan", "-", fed=b"\xff\xfe")

    assert (good.exit_code, good.stdout.splitlines()[-1]) == (0, "nothing to do")
    assert (bad.exit_code, bad.stderr.startswith("tenure: standard input:2:")) == (2, True)
    assert (torn.exit_code, torn.stderr.splitlines()[0]) == (
        2,
        "tenure: standard input: not UTF-8 (invalid start byte at byte 0)",
    )


def test_a_plan_shows_who_is_created_and_changes_nothing(deployed: Site) -> None:
    before = deployed.state()
    name = write(deployed, "blog.yml", manifest("blog", group("page", 2)))

    assert deployed.text("deployment", "plan", name).splitlines() == [
        "plan of deployment blog; nothing is reserved yet",
        "WHAT       INSTANCE  AZ  ADDRESSES        VM",
        "+ created  page/0    z1  apps 10.44.16.3  make it",
        "+ created  page/1    z1  apps 10.44.16.4  make it",
        "2 instances: 2 created",
        "`tenure deployment apply blog.yml` does it",
    ]
    document = deployed.json("deployment", "plan", name)
    assert list(document) == list(DEPLOYMENT_PLAN)
    assert (document["plan"], document["applied"], document["changes"]) == (None, False, True)
    step = document["instances"][0]
    assert list(step) == list(PLAN_STEP)
    assert (step["instance"], step["uuid"], step["action"], step["waits_for"]) == ("page/0", None, "created", "vm")
    assert deployed.state() == before


def test_a_plan_shows_who_is_moved_from_where_to_where(deployed: Site) -> None:
    deployed.text("deployment", "upload-config", write(deployed, "new.yml", config(reserved=["10.44.16.2"])))

    assert deployed.text("deployment", "plan", "shop.yml").splitlines()[1:] == [
        "WHAT     INSTANCE  AZ  ADDRESSES                     VM",
        "= kept   db/0      z1  apps 10.44.16.10 (static)     vm-1",
        "~ moved  web/0     z1  apps 10.44.16.2 → 10.44.16.3  replace vm-2",
        "= kept   web/1     z2  apps 10.44.17.2               vm-3",
        "3 instances: 1 moved, 2 kept",
        "moved to another address: web/0",
        "`tenure deployment apply shop.yml` does it",
    ]
    [moved] = [
        step for step in deployed.json("deployment", "plan", "shop.yml")["instances"] if step["action"] == "moved"
    ]
    [network] = moved["networks"]
    assert (network["before"], network["after"], network["new"]) == (["10.44.16.2"], "10.44.16.3", True)


def test_without_unicode_the_arrow_is_ascii(deployed: Site) -> None:
    deployed.text("deployment", "upload-config", write(deployed, "new.yml", config(reserved=["10.44.16.2"])))
    told = deployed.call("deployment", "plan", "shop.yml", env={"LC_ALL": "C", "LANG": "C"}).stdout

    assert "10.44.16.2 -> 10.44.16.3" in told


def test_a_plan_shows_who_leaves_who_is_recreated_and_what_networks_come_and_go(deployed: Site) -> None:
    web = {"name": "web", "instances": 1, "azs": ["z1", "z2"]}
    deployed.text("deployment", "upload-config", write(deployed, "new.yml", config(dns=["10.44.0.54"])))
    first = write(deployed, "first.yml", manifest("shop", SHOP["instance_groups"][0], {**web, "networks": MIXED}))
    lines = deployed.text("deployment", "plan", first).splitlines()

    assert [line.split("  ")[0] for line in lines[2:5]] == ["* recreated", "~ changed", "- leaves"]
    assert "apps 10.44.16.2; edge by the IaaS; public none → 203.0.113.9 (static)" in lines[3]
    assert "apps 10.44.17.2" in lines[4]
    assert lines[4].endswith("delete vm-3")
    deployed.text("deployment", "apply", first)
    deployed.text("deployment", "commit", "shop", "web/0", "--vm", "vm-4", "--hint", "edge=192.168.7.7")
    second = write(deployed, "second.yml", manifest("shop", {**web, "networks": MIXED[:2]}))
    again = deployed.text("deployment", "plan", second)
    assert "apps 10.44.16.2; edge by the IaaS (192.168.7.7); public 203.0.113.9 → none" in again


def test_a_plan_leaves_out_who_is_kept_on_request_and_tells_scripts_by_its_exit_code(deployed: Site) -> None:
    same = deployed.text("deployment", "plan", "shop.yml", "--changes", "--exit-code")
    other = write(deployed, "less.yml", manifest("shop", SHOP["instance_groups"][0]))
    told = deployed.text("deployment", "plan", other, "--changes", "--exit-code", code=1)

    assert same.splitlines()[1:] == ["3 instances: 3 kept", "nothing to do"]
    assert "db/0" not in told
    assert deployed.json("deployment", "plan", other)["counts"]["leaves"] == 2


def test_what_is_applied_is_told_with_the_settings_of_every_vm_and_what_to_report(deployed: Site) -> None:
    name = write(deployed, "blog.yml", manifest("blog", group("page", networks=[{"name": "apps"}])))
    first, *lines = deployed.text("deployment", "apply", name).splitlines()
    document = deployed.json("deployment", "show", "blog")
    uuid = document["instances"][0]["uuid"]

    assert first == f"applied plan {document['plan']} of deployment blog"
    assert lines[3:] == [
        "",
        f"page/0 ({uuid}) in z1",
        SETTINGS,
        "",
        "next:",
        "  page/0: make its VM with the settings above, then `tenure deployment commit blog page/0 --vm VM`",
        "`tenure deployment fail blog INSTANCE` reports a VM that could not be made;",
        "`tenure deployment abort blog` takes back what no VM carries yet",
    ]


def test_apply_shows_what_plan_showed_and_again_does_nothing_more(deployed: Site) -> None:
    name = write(deployed, "shop2.yml", manifest("shop", *SHOP["instance_groups"], group("cache", 2)))
    planned = deployed.json("deployment", "plan", name)
    applied = deployed.json("deployment", "apply", name)

    nameless = {"uuid": None, "plan": None}
    told, done = ([{**each, **nameless} for each in plan["instances"]] for plan in (planned, applied))
    assert told == done
    assert (applied["applied"], applied["plan"] is None) == (True, False)
    assert applied["instances"][1]["settings"]["apps"].items() >= NET.items()
    before = addresses(deployed, "shop")
    deployed.text("deployment", "apply", name)
    assert addresses(deployed, "shop") == before
    for each in ("cache/0", "cache/1"):
        deployed.text("deployment", "commit", "shop", each, "--vm", f"vm-{each[-1]}0")
    assert deployed.text("deployment", "apply", name).splitlines()[-1] == (
        "nothing to report: all VMs are as they should be"
    )


def test_configs_are_listed_and_removed_but_for_the_last(deployed: Site) -> None:
    more = write(deployed, "more.yml", {"networks": [{"name": "more", "type": "vip"}]})
    deployed.text("deployment", "upload-config", more, "--name", "more")
    listed, documents = deployed.text("deployment", "configs").splitlines(), deployed.json("deployment", "configs")
    before = deployed.state()
    tried = deployed.text("deployment", "delete-config", "more", "--dry-run")
    assert deployed.state() == before
    moves = deployed.json("deployment", "delete-config", "default", "--dry-run")
    removed = deployed.text("deployment", "delete-config", "more")
    code, error = deployed.error("deployment", "delete-config", "default")
    missing, _ = deployed.error("deployment", "delete-config", "more")

    assert listed[0].split() == ["CONFIG", "REVISION", "BYTES"]
    assert [line.split()[:2] for line in listed[1:]] == [["default", "1"], ["more", "1"]]
    assert [list(each) for each in documents] == [list(CLOUD_CONFIG)] * 2
    assert yaml.safe_load(documents[0]["text"]) == CONFIG
    assert tried == "nothing is changed; would be deleted: cloud config more; networks that change: more\n"
    assert removed == "deleted cloud config more; networks that change: more\n"
    assert [each["instance"] for each in moves["moves"]] == ["web/0", "web/1"]
    assert (code, missing) == (4, 3)
    assert "To empty it, upload one that has no addresses: networks: [{name: none, type: dynamic}]" in error["message"]
    assert [each["name"] for each in deployed.json("deployment", "configs")] == ["default"]


def test_why_there_are_no_settings_yet_is_said_of_errands_and_others() -> None:
    said = {"settings": None, "waits_for": None}

    assert [*settings_lines(said), *settings_lines({**said, "errand": True})] == [
        "  no settings yet: its addresses are reserved when it runs"
    ] * 2
    assert [*settings_lines({**said, "errand": False}), *settings_lines({**said, "waits_for": "vm"})] == [
        "  no settings yet: addresses are missing, the next deploy reserves them"
    ] * 2


def test_abort_takes_the_last_plan_back(deployed: Site) -> None:
    before = addresses(deployed, "shop")
    deployed.text("deployment", "upload-config", write(deployed, "new.yml", config(reserved=["10.44.16.2"])))
    plan = deployed.json("deployment", "apply", "shop.yml")["plan"]
    both = addresses(deployed, "shop")

    assert both["web/0"] == ["(10.44.16.2)", "10.44.16.3"]
    assert deployed.text("deployment", "abort", "shop") == (
        f"took back plan {plan} of deployment shop; freed: apps 10.44.16.3\n"
    )
    assert addresses(deployed, "shop") == before
    again = deployed.json("deployment", "abort", "shop", "--plan", plan)
    assert again == {"deployment": "shop", "plan": plan, "taken_back": False, "freed": []}


def test_abort_says_of_which_plan_nothing_is_left(deployed: Site) -> None:
    before = deployed.state()
    done = deployed.json("deployment", "show", "shop")["plan"]

    for words, plan in ([], done), (["--plan", "zzz"], "zzz"):
        assert deployed.text("deployment", "abort", "shop", *words) == (
            f"nothing is left of plan {plan} of deployment shop to take back: it is done, was taken back before, or "
            "never was\n"
        )
    assert deployed.state() == before


def test_who_waits_for_a_first_vm_is_created_by_the_next_plan_too(deployed: Site) -> None:
    name = write(deployed, "blog.yml", manifest("blog", group("web", 2)))
    deployed.text("deployment", "apply", name)
    tried = deployed.json("deployment", "plan", name)
    deployed.text("deployment", "commit", "blog", "web/0", "--vm", "vm-10")
    deployed.text("deployment", "lose", "blog", "web/0")
    again = deployed.json("deployment", "apply", name)

    assert [each["action"] for each in tried["instances"]] == ["created", "created"]
    assert [each["action"] for each in again["instances"]] == ["recreated", "created"]


def test_a_deployment_goes_when_its_vms_are_gone(deployed: Site) -> None:
    lines = deployed.text("deployment", "delete", "shop").splitlines()
    document = deployed.json("deployment", "delete", "shop")

    assert lines[0] == "deployment shop goes when its VMs are deleted"
    assert "  db/0: delete its VM vm-1, then `tenure deployment lose shop db/0`" in lines
    assert lines[-1] == "then `tenure deployment delete shop` once more"
    assert (document["gone"], len(document["waiting"])) == (False, 3)
    assert list(document["waiting"][0]) == list(DEPLOYED_INSTANCE)
    for instance in ("db/0", "web/0", "web/1"):
        assert " is gone; freed: apps " in deployed.text("deployment", "lose", "shop", instance)
    assert deployed.text("deployment", "delete", "shop") == "deployment shop is gone, and its addresses are free\n"
    assert deployed.json("deployment", "list") == []
    assert deployed.json("holding", "list", "apps") == []


@pytest.mark.parametrize("verb", ["plan", "apply"])
def test_before_any_config_the_way_to_one_is_told(site: Site, verb: str) -> None:
    code, error = site.error("deployment", verb, write(site, "shop.yml", SHOP))

    assert (code, error["faults"][0]["error"]) == (2, "DeploymentNoNetworks")
    assert "tenure deployment upload-config" in error["hint"]


def test_a_deployment_whose_vms_are_perhaps_being_made_goes_when_that_is_over(deployed: Site) -> None:
    deployed.text("deployment", "apply", write(deployed, "new.yml", manifest("new", group("app"))))
    lines = deployed.text("deployment", "delete", "new").splitlines()
    why = deployed.text("deployment", "why", "new", "app/0")
    deployed.text("deployment", "lose", "new", "app/0")

    assert lines[2] == (
        "  app/0: a VM is perhaps being made for it: see that there is none, then `tenure deployment lose new app/0`"
    )
    assert "the deletion of a VM that is perhaps being made" in why
    assert deployed.json("deployment", "delete", "new")["gone"] is True


def test_a_deployment_that_is_gone_names_the_orphans_that_still_have_addresses(deployed: Site) -> None:
    swapping = manifest("new", group("app"), update={"vm_strategy": "create-swap-delete"})
    deployed.text("deployment", "apply", write(deployed, "new.yml", swapping))
    deployed.text("deployment", "commit", "new", "app/0", "--vm", "vm-10")
    deployed.text("deployment", "apply", "new.yml", "--recreate")
    deployed.text("deployment", "commit", "new", "app/0", "--vm", "vm-11")
    going = deployed.json("deployment", "delete", "new")
    deployed.text("deployment", "lose", "new", "app/0")
    lines = deployed.text("deployment", "delete", "new").splitlines()

    assert (going["gone"], going["orphans"]) == (False, ["vm-10"])
    assert lines == [
        "deployment new is gone, and its addresses are free, but for what its orphans have",
        "orphans: `tenure deployment cleanup-orphans vm-10` when they are deleted",
    ]
