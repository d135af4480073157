"""Cloud check on the command line: VMs that are gone without a report."""

import pytest

from tenure.doors.cli.output.deployment_json_keys import DEPLOYED_INSTANCE, LOST_VM
from tests.doors.cli.deployment_site import addresses, group, manifest, write
from tests.doors.cli.site import Site

CHECK = ["deployment", "cck", "shop", "--vms", "vms.txt"]
"""Of the VMs vm-1, vm-2 and vm-3 the second is not in that file."""


def test_vms_that_are_gone_are_told_and_nothing_is_changed(deployed: Site) -> None:
    before = deployed.state()
    lines = deployed.text(*CHECK, "--exit-code", code=1).splitlines()
    document = deployed.json(*CHECK)
    [lost] = document["missing"]

    assert lines == [
        "deployment shop: these VMs are gone",
        "VM    INSTANCE  AZ  ADDRESSES",
        "vm-2  web/0     z1  apps 10.44.16.2",
        "`tenure deployment cck shop --vms vms.txt --recreate` lets them wait for new VMs, on what they have;",
        "--forget instead only forgets the VMs, and the next deploy makes others; INSTANCE does so for some of them",
    ]
    assert list(document) == ["deployment", "missing"]
    assert list(lost) == list(LOST_VM)
    assert list(lost["instance"]) == [*DEPLOYED_INSTANCE, "settings"]
    assert (lost["vm"], lost["resolution"], lost["instance"]["vm"]) == ("vm-2", None, "vm-2")
    assert deployed.state() == before


def test_who_lost_a_vm_waits_for_another_on_what_it_has(deployed: Site) -> None:
    before = addresses(deployed, "shop")
    lines = deployed.text(*CHECK, "--recreate").splitlines()
    again = deployed.text(*CHECK, "--recreate", "--exit-code")
    shown = deployed.json("deployment", "show", "shop", "web/0")

    assert lines[0] == "web/0 of deployment shop waits for a VM in place of vm-2: apps 10.44.16.2"
    assert lines[1].startswith("  apps: type manual, ip 10.44.16.2, ")
    assert lines[2:] == [
        "next:",
        "  web/0: make its VM with the settings above, then `tenure deployment commit shop web/0 --vm VM`",
    ]
    assert again == "deployment shop: no VM is missing\n"
    assert (shown["vm"], shown["waits_for"]) == (None, "vm")
    assert addresses(deployed, "shop") == before


def test_a_vm_can_be_forgotten_only(deployed: Site) -> None:
    document = deployed.json(*CHECK, "--forget")
    [lost] = document["missing"]

    assert (lost["vm"], lost["resolution"]) == ("vm-2", "forget")
    assert (lost["instance"]["vm"], lost["instance"]["plan"]) == (None, None)
    assert addresses(deployed, "shop")["web/0"] == ["10.44.16.2"]


def test_only_named_instances_are_looked_after(deployed: Site) -> None:
    (deployed.folder / "one.txt").write_text("vm-1\n", "utf-8")
    named = ["deployment", "cck", "shop", "web/1", "--vms", "one.txt", "--recreate"]
    [lost] = deployed.json(*named)["missing"]

    assert lost["vm"] == "vm-3"
    assert deployed.json(*named)["missing"] == []
    assert deployed.json("deployment", "show", "shop", "web/0")["vm"] == "vm-2"


def test_files_that_begin_with_a_mark_may_be_joined(deployed: Site) -> None:
    (deployed.folder / "joined.txt").write_text("\ufeffvm-1\n\ufeffvm-2\n\ufeffvm-3\n\ufeff\n", "utf-8")

    assert deployed.json("deployment", "cck", "shop", "--vms", "joined.txt")["missing"] == []


def test_no_vms_at_all_are_believed_only_for_instances_that_are_named(deployed: Site) -> None:
    before = deployed.state()
    refused = deployed.call("deployment", "cck", "shop", "--vms", "-", "--recreate", fed="\n")

    assert refused.exit_code == 2
    assert "vms: - names no VM, so all would be gone; if that is so, name the instances" in refused.stderr
    assert deployed.state() == before
    told = deployed.call("deployment", "cck", "shop", "--vms", "-", fed="")
    assert told.stdout.count("vm-") == 3
    done = deployed.call("deployment", "cck", "shop", "web/0", "web/1", "--vms", "-", "--recreate", fed="")
    assert (done.exit_code, done.stdout.count("waits for a VM in place of")) == (0, 2)
    assert deployed.json("deployment", "show", "shop", "db/0")["vm"] == "vm-1"


def test_ignored_instances_are_left_alone_and_who_leaves_goes_with_the_report(deployed: Site) -> None:
    deployed.text("deployment", "ignore", "shop", "db/0")
    (deployed.folder / "none.txt").write_text("vm-1\n", "utf-8")
    db = group("db", static_ips=["10.44.16.10"])
    deployed.text("deployment", "apply", write(deployed, "less.yml", manifest("shop", db, group("web"))))
    lines = deployed.text("deployment", "cck", "shop", "--vms", "none.txt", "--recreate").splitlines()

    assert lines[0] == "web/0 of deployment shop waits for a VM in place of vm-2: apps 10.44.16.2"
    assert "vm-3  web/1     z2  apps 10.44.17.2" in lines
    assert lines[-1] == "  web/1: delete its VM vm-3, then `tenure deployment lose shop web/1`"
    assert not any("--vms" in line for line in lines)


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (3, ["cck", "nowhere", "--vms", "vms.txt"], "nowhere"),
        (3, ["cck", "shop", "web/7", "--vms", "vms.txt"], "no instance 'web/7' of deployment shop"),
        (2, ["cck", "shop"], "--vms"),
        (2, ["cck", "shop", "--vms", "missing.txt"], "missing.txt"),
        (2, ["cck", "shop", "--vms", "torn.txt"], "torn.txt:2: vms"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_is_refused_says_why_and_changes_nothing(deployed: Site, code: int, words: list[str], said: str) -> None:
    (deployed.folder / "torn.txt").write_text("vm-1\nvm\x01\n", "utf-8")
    before = deployed.state()
    found, error = deployed.error("deployment", *words, "--recreate")

    assert found == code, error
    assert said in error["message"]
    assert error.get("hint") or error["code"] == "file"
    assert deployed.state() == before
