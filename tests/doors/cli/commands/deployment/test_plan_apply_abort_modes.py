"""Deployments on the command line: hand-overs, and manifests that bring their own networks."""

import json

import pytest

from tests.doors.cli.deployment_site import addresses, group, manifest, write
from tests.doors.cli.site import Site

OWN = {
    "name": "alone",
    "networks": [{"name": "lab", "subnets": [{"range": "172.20.5.0/28", "gateway": "172.20.5.1"}]}],
    "instance_groups": [{"name": "app", "instances": 2, "networks": [{"name": "lab"}]}],
}


def said(address: str, vm: str) -> dict[str, object]:
    """Write what a running VM says."""
    return {"vm": vm, "networks": {"lab": {"ip": address}}}


def alone(site: Site, **vms: object) -> list[str]:
    """Deploy a manifest with networks of its own, make its VMs, and return words that tell what these say."""
    site.text("deployment", "apply", write(site, "own.yml", OWN))
    for number in (0, 1):
        site.text("deployment", "commit", "alone", f"app/{number}", "--vm", f"vm-{number}")
    heard = {"app/0": said("172.20.5.2", "vm-0"), "app/1": said("172.20.5.3", "vm-1"), **vms}
    (site.folder / "vms.json").write_text(json.dumps(heard), "utf-8")
    return ["own.yml", "--vm-state", "vms.json"]


def test_two_groups_swap_their_addresses_in_one_deploy_if_they_may_hand_over(deployed: Site) -> None:
    one, other = ["10.44.16.11"], ["10.44.16.12"]
    first = write(deployed, "first.yml", manifest("pair", group("a", static_ips=one), group("b", static_ips=other)))
    swapped = write(deployed, "swap.yml", manifest("pair", group("a", static_ips=other), group("b", static_ips=one)))
    deployed.text("deployment", "apply", first)
    for instance in ("a/0", "b/0"):
        deployed.text("deployment", "commit", "pair", instance, "--vm", f"vm-{instance[0]}")
    code, _ = deployed.error("deployment", "plan", swapped)
    plan = deployed.text("deployment", "plan", swapped, "--hand-over").splitlines()
    lines = deployed.text("deployment", "apply", swapped, "--hand-over").splitlines()
    waiting = deployed.json("deployment", "show", "pair", "a/0")

    assert code == 4
    assert plan[-1] == "`tenure deployment apply swap.yml --hand-over` does it"
    assert "apps 10.44.16.11 → 10.44.16.12 (static)" in plan[2]
    [wait] = waiting["hand_overs"]
    assert (wait["network"], wait["address"], wait["of"].startswith("b/")) == ("apps", "10.44.16.12", True)
    [told] = [line for line in lines if line.startswith("  a/0: ")]
    assert told.startswith(f"  a/0: it waits for 10.44.16.12 of {wait['of']}; `tenure deployment show pair a/0`")
    assert told.endswith("delete its VM vm-a first, then `tenure deployment lose pair a/0`")

    deployed.text("deployment", "lose", "pair", "a/0")
    second = deployed.text("deployment", "show", "pair", "b/0").splitlines()
    assert second[-1].startswith("  b/0: replace its VM vm-b, with the settings above")
    deployed.text("deployment", "commit", "pair", "b/0", "--vm", "vm-b2")
    assert deployed.json("deployment", "show", "pair", "a/0")["waits_for"] == "vm"
    deployed.text("deployment", "commit", "pair", "a/0", "--vm", "vm-a2")
    assert addresses(deployed, "pair") == {"a/0": other, "b/0": one}


def test_a_manifest_with_networks_of_its_own_begins_a_ledger_and_holds_nothing(site: Site) -> None:
    name, new = write(site, "own.yml", OWN), ["--store", "sqlite:///new.db"]
    planned = site.text("deployment", "plan", name, *new)
    assert "app/0     -   lab 172.20.5.2  make it" in planned
    assert not (site.folder / "new.db").exists()

    applied = site.json("deployment", "apply", name, *new)
    assert [each["settings"]["lab"]["ip"] for each in applied["instances"]] == ["172.20.5.2", "172.20.5.3"]
    assert site.json("network", "list", *new) == []
    [entry] = site.json("deployment", "list", *new)
    assert (entry["config"], entry["addresses"]) == ("own", 0)
    shown = site.json("deployment", "show", "alone", "app/0", *new)
    [told] = shown["addresses"]
    assert (told["address"], told["state"], told["since"]) == ("172.20.5.2", "remembered", None)
    assert shown["settings"]["lab"]["ip"] == "172.20.5.2"
    assert "networks of its own" in site.text("deployment", "show", "alone", *new)


def test_what_cannot_be_applied_begins_no_ledger(site: Site) -> None:
    name = write(site, "shop.yml", {key: value for key, value in OWN.items() if key != "networks"})
    code, error = site.error("deployment", "apply", name, "--store", "sqlite:///new.db")

    assert (code, error["faults"][0]["error"]) == (2, "DeploymentNoNetworks")
    assert not (site.folder / "new.db").exists()


def test_running_vms_are_asked_where_the_ledger_does_not_know(site: Site) -> None:
    words = alone(site)
    unasked, error = site.error("deployment", "plan", "own.yml")
    from_command = site.text("deployment", "plan", "own.yml", "--vm-state-from", "cat vms.json")

    assert (unasked, error["code"]) == (4, "deployment_refused")
    assert site.text("deployment", "plan", *words).splitlines()[-1] == "nothing to do"
    assert from_command == site.text("deployment", "plan", *words)
    assert site.error("deployment", "plan", *words, "--vm-state-from", "cat vms.json")[0] == 2
    assert site.text("deployment", "diff", "own.yml").startswith("deployment alone is deployed as the manifest")


def test_a_plan_says_how_it_is_applied_with_what_vms_say(site: Site) -> None:
    words = alone(site, **{"app/1": None})
    asked = "cat vms.json"

    assert site.text("deployment", "plan", *words, "--fix").splitlines()[-1] == (
        "`tenure deployment apply own.yml --fix --vm-state vms.json` does it"
    )
    assert site.text("deployment", "plan", "own.yml", "--vm-state-from", asked, "--fix").splitlines()[-1] == (
        "`tenure deployment apply own.yml --fix --vm-state-from 'cat vms.json'` does it"
    )


def test_a_vm_that_did_not_answer_is_fixed_on_request(site: Site) -> None:
    words = alone(site, **{"app/1": None})
    code, error = site.error("deployment", "apply", *words)
    fixed = site.json("deployment", "apply", *words, "--fix")

    assert (code, "did not answer" in error["message"]) == (4, True)
    assert [(each["instance"], each["waits_for"]) for each in fixed["instances"]] == [("app/0", None), ("app/1", "vm")]


def test_reports_of_vms_that_are_wrong_are_told_with_their_places(site: Site) -> None:
    words = alone(site, **{"app/1": {"vm": "vm-1", "colour": "red"}})
    _, error = site.error("deployment", "plan", *words)

    assert error["code"] == "document_rejected"
    assert {fault["place"]["document"] for fault in error["faults"]} == {"vms.json"}


def test_why_says_that_the_vm_knows(site: Site) -> None:
    alone(site)
    [reason] = site.json("deployment", "why", "alone", "app/0")["reasons"]

    assert (reason["address"], reason["origin"], reason["state"], reason["vm"]) == ("172.20.5.2", "vm", None, "vm-0")
    assert addresses(site, "alone") == {"app/0": ["172.20.5.2"], "app/1": ["172.20.5.3"]}


def test_a_vm_that_speaks_for_two_instances_is_refused(site: Site) -> None:
    words = alone(site, **{"app/1": said("172.20.5.3", "vm-0")})
    before = site.json("deployment", "show", "alone")
    code, error = site.error("deployment", "apply", *words)

    assert code == 2
    assert [each["message"] for each in error["faults"]] == [
        "VM 'vm-0' is told of as that of 'app/0' and of 'app/1': a VM is one instance's"
    ]
    assert error["faults"][0]["place"]["path"] == "app/1"
    assert site.json("deployment", "show", "alone") == before


@pytest.mark.parametrize("verb", ["lose", "start"])
def test_who_has_no_settings_is_to_be_deployed_before_its_vm_is_made(site: Site, verb: str) -> None:
    alone(site)
    if verb == "start":
        site.text("deployment", "stop", "alone", "app/0", "--hard")

    assert site.text("deployment", verb, "alone", "app/0").splitlines()[1:] == [
        "  no settings yet: addresses are missing, the next deploy reserves them",
        "next:",
        "  app/0: `tenure deployment apply FILE` reserves its addresses; then its VM can be made",
    ]
