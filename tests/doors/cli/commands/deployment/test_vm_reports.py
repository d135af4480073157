"""Deployments on the command line: what is reported of VMs, and what is told of it."""

import pytest

from tenure.doors.cli.output.deployment_json_keys import DEPLOYED_INSTANCE, ORPHAN
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tests.doors.cli.deployment_site import addresses, config, group, manifest, write
from tests.doors.cli.site import Site

SWAPPING = {"update": {"vm_strategy": "create-swap-delete"}}


def moving(site: Site) -> None:
    """Have web/0 wait for a VM on another address."""
    site.text("deployment", "upload-config", write(site, "new.yml", config(reserved=["10.44.16.2"])))
    site.text("deployment", "apply", "shop.yml")


def test_a_vm_that_is_up_frees_what_it_does_not_carry(deployed: Site) -> None:
    moving(deployed)

    assert deployed.text("deployment", "commit", "shop", "web/0", "--vm", "vm-9") == (
        "web/0 of deployment shop runs on vm-9: apps 10.44.16.3\n"
    )
    document = deployed.json("deployment", "commit", "shop", "web/0", "--vm", "vm-9")
    assert list(document) == [*DEPLOYED_INSTANCE, "gone", "settings"]
    assert (document["vm"], document["waits_for"], document["plan"]) == ("vm-9", None, None)
    assert [(each["address"], each["vm"]) for each in document["addresses"]] == [("10.44.16.3", "vm-9")]


def test_where_an_earlier_plan_wanted_other_addresses_a_vm_is_reported_with_its_plan(deployed: Site) -> None:
    moving(deployed)
    deployed.text(
        "deployment", "upload-config", write(deployed, "newer.yml", config(reserved=["10.44.16.2-10.44.16.3"]))
    )
    lines = deployed.text("deployment", "apply", "shop.yml").splitlines()
    shown = deployed.json("deployment", "show", "shop", "web/0")
    code, error = deployed.error("deployment", "commit", "shop", "web/0", "--vm", "vm-9")
    done = deployed.json("deployment", "commit", "shop", "web/0", "--vm", "vm-9", "--plan", shown["plan"])

    assert shown["needs_plan"] is True
    [told] = [line for line in lines if line.startswith("  web/0: ")]
    assert told.endswith(f"then `tenure deployment commit shop web/0 --vm VM --plan {shown['plan']}`")
    assert (code, error["code"], error["field"]) == (4, "conflict", "plan")
    assert "`--plan` says which one you mean" in error["hint"]
    assert (done["vm"], done["needs_plan"]) == ("vm-9", False)


def test_a_vm_that_could_not_be_made_leaves_both_addresses(deployed: Site) -> None:
    moving(deployed)

    assert deployed.text("deployment", "fail", "shop", "web/0").splitlines() == [
        "web/0 of deployment shop has no new VM: apps 10.44.16.2 (draining); apps 10.44.16.3",
        "`tenure deployment apply FILE` tries again; `tenure deployment abort shop` takes the plan back",
    ]
    assert deployed.json("deployment", "show", "shop", "web/0")["failed"] is True


def test_a_vm_that_is_lost_leaves_the_addresses_and_the_way_to_a_new_one_is_told(deployed: Site) -> None:
    lines = deployed.text("deployment", "lose", "shop", "web/0").splitlines()

    assert lines[0] == "web/0 of deployment shop lost its VM: apps 10.44.16.2"
    assert lines[1].startswith("  apps: type manual, ip 10.44.16.2, ")
    assert lines[2:] == [
        "next:",
        "  web/0: make its VM with the settings above, then `tenure deployment commit shop web/0 --vm VM`",
    ]


def test_who_leaves_is_told_as_gone_only_when_it_is(deployed: Site) -> None:
    deployed.text("deployment", "recreate", "shop", "web/0")
    deployed.text("deployment", "delete", "shop")
    lines = deployed.text("deployment", "lose", "shop", "web/0", "--vm", "vm-2").splitlines()
    plan = deployed.json("deployment", "show", "shop", "web/0")["plan"]
    failed = deployed.json("deployment", "fail", "shop", "web/0", "--plan", plan)

    assert lines == [
        "web/0 of deployment shop lost its VM: apps 10.44.16.2",
        "next:",
        "  web/0: a VM is perhaps being made for it: see that there is none, then `tenure deployment lose shop web/0`",
    ]
    assert failed["gone"] is True


def test_reports_that_come_late_name_their_vm_or_plan_and_are_refused(deployed: Site) -> None:
    moving(deployed)
    late = [
        deployed.error("deployment", "lose", "shop", "web/0", "--vm", "vm-7"),
        deployed.error("deployment", "stop", "shop", "web/0", "--hard", "--vm", "vm-7"),
        deployed.error("deployment", "fail", "shop", "web/0", "--plan", "other"),
        deployed.error("deployment", "fail", "shop", "web/1"),
    ]

    assert [(code, error["code"], error["field"]) for code, error in late] == [
        (4, "conflict", "vm"),
        (4, "conflict", "vm"),
        (4, "conflict", "plan"),
        (4, "conflict", None),
    ]
    plan = deployed.json("deployment", "show", "shop", "web/0")["plan"]
    assert deployed.json("deployment", "fail", "shop", "web/0", "--plan", plan)["failed"] is True
    assert deployed.json("deployment", "lose", "shop", "web/0", "--vm", "vm-2")["vm"] is None


def test_an_effect_is_told_also_where_no_vm_could_be_made(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is called unchanged that was changed."""
    monkeypatch.setattr("tenure.integrations.bosh.views.result_documents.settings_of", unmakeable)
    lost = deployed.json("deployment", "lose", "shop", "web/0")
    (deployed.folder / "vms.txt").write_text("vm-3\n", "utf-8")
    checked = deployed.json("deployment", "cck", "shop", "db/0", "--vms", "vms.txt", "--recreate")

    assert (lost["vm"], lost["settings"]) == (None, None)
    [missing] = checked["missing"]
    assert (missing["resolution"], missing["instance"]["settings"]) == ("recreate", None)


def unmakeable(*_: object) -> None:
    """Refuse to tell settings, as for an address outside of its network."""
    raise Refused(BoshErrorKind.NETWORK_RESERVATION_INVALID_IP, "Provided IP '10.0.0.1' does not belong to any subnet")


def test_stopped_hard_an_instance_waits_to_be_started(deployed: Site) -> None:
    soft = deployed.json("deployment", "stop", "shop", "web/0")
    hard = deployed.text("deployment", "stop", "shop", "web/0", "--hard").splitlines()
    started = deployed.text("deployment", "start", "shop", "web/0").splitlines()

    assert (soft["state"], soft["vm"], soft["waits_for"]) == ("stopped", "vm-2", None)
    assert hard == [
        "web/0 of deployment shop is stopped, and has no VM: apps 10.44.16.2",
        "next:",
        "  web/0: it is stopped hard: `tenure deployment start shop web/0` when it is to run again",
    ]
    assert started[0] == "web/0 of deployment shop is started: apps 10.44.16.2"
    assert started[-1].startswith("  web/0: make its VM with the settings above")


def test_an_ignored_instance_stops_a_deploy_until_it_is_taken_in_again(deployed: Site) -> None:
    ignored = deployed.text("deployment", "ignore", "shop", "web/0")
    deployed.text("deployment", "upload-config", write(deployed, "new.yml", config(reserved=["10.44.16.2"])))
    code, error = deployed.error("deployment", "apply", "shop.yml")
    taken_in = deployed.json("deployment", "unignore", "shop", "web/0")

    assert ignored == "web/0 of deployment shop is ignored by deploys: apps 10.44.16.2\n"
    assert (code, error["faults"][0]["number"]) == (4, 190020)
    assert "tenure deployment unignore" in error["hint"]
    assert taken_in["ignored"] is False
    deployed.text("deployment", "apply", "shop.yml")


def test_orphans_are_listed_and_freed_when_they_are_deleted(deployed: Site) -> None:
    name = write(deployed, "swap.yml", manifest("swap", group("app"), **SWAPPING))
    deployed.text("deployment", "apply", name)
    deployed.text("deployment", "commit", "swap", "app/0", "--vm", "old")
    planned = deployed.text("deployment", "apply", name, "--recreate").splitlines()
    deployed.text("deployment", "commit", "swap", "app/0", "--vm", "new")
    [orphan] = deployed.json("deployment", "cleanup-orphans")

    assert planned[2].endswith("beside old")
    assert any("make a VM beside old, with the settings above" in line for line in planned)
    assert list(orphan) == list(ORPHAN)
    assert (orphan["vm"], orphan["deployment"], orphan["addresses"][0]["address"]) == ("old", "swap", "10.44.16.3")
    assert "old  swap        app/" in deployed.text("deployment", "cleanup-orphans")
    assert deployed.text("deployment", "cleanup-orphans", "old", "nobody").splitlines() == [
        "old is gone; freed: apps 10.44.16.3 (draining)",
        "nobody is no orphan, or was cleaned up before",
    ]
    assert deployed.text("deployment", "cleanup-orphans") == "no orphaned VMs\n"
    assert addresses(deployed, "swap") == {"app/0": ["10.44.16.4"]}


def test_a_new_instance_never_goes_by_the_index_of_one_that_leaves(deployed: Site) -> None:
    for instances in (1, 2):  # web/0 leaves z1, and before its VM is gone there is one more
        other = write(deployed, "other.yml", manifest("shop", {**group("web", instances), "azs": ["z2"]}))
        applied = deployed.json("deployment", "apply", other)
    names = [(each["instance"], each["action"]) for each in applied["instances"] if each["group"] == "web"]

    assert names == [("web/1", "kept"), ("web/2", "created"), ("web/0", "leaves")]
    assert " is gone; freed: apps 10.44.16.2" in deployed.text("deployment", "lose", "shop", "web/0")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (2, ["commit", "shop", "web/0"], "--vm"),
        (2, ["commit", "shop", "web/0", "--vm", "x", "--hint", "edge"], "NETWORK=ADDRESS"),
        (2, ["commit", "shop", "web/0", "--vm", " "], "vm"),
        (3, ["commit", "shop", "web/7", "--vm", "x"], "no instance 'web/7' of deployment shop"),
        (3, ["lose", "nowhere", "web/0"], "nowhere"),
        (3, ["show", "nowhere"], "nowhere"),
        (3, ["why", "shop", "web"], "no instance 'web' of deployment shop"),
        (3, ["abort", "nowhere"], "nowhere"),
        (3, ["delete", "nowhere"], "nowhere"),
        (3, ["diff", "blog.yml"], "blog"),
        (2, ["plan", "nowhere.yml"], "nowhere.yml"),
        (2, ["plan", "cloud.yml"], "[DirectorError 100]"),
        (2, ["upload-config", "shop.yml"], "Unknown property 'instance_groups'"),
        (4, ["plan", "taken.yml"], "already reserved by instance 'db/"),
        (5, ["plan", "many.yml"], "no more available [NetworkReservationNotEnoughCapacity 130011]"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_is_refused_says_why_and_changes_nothing(deployed: Site, code: int, words: list[str], said: str) -> None:
    write(deployed, "blog.yml", manifest("blog", group("page")))
    write(deployed, "taken.yml", manifest("blog", group("page", static_ips=["10.44.16.10"])))
    write(deployed, "many.yml", manifest("blog", group("page", 40)))
    before = deployed.state()
    found, error = deployed.error("deployment", *words)

    assert found == code, error
    assert said in error["message"]
    assert error.get("hint") or error["code"] == "file"
    assert deployed.state() == before


def test_one_that_failed_and_is_stopped_hard_is_to_be_started_before_it_is_tried_again(deployed: Site) -> None:
    deployed.text("deployment", "apply", write(deployed, "new.yml", manifest("new", group("app"))))
    deployed.text("deployment", "fail", "new", "app/0")

    again = "`tenure deployment apply FILE` tries again; `tenure deployment abort new` takes the plan back"

    stopped = deployed.text("deployment", "stop", "new", "app/0", "--hard").splitlines()
    assert stopped[1:] == [f"`tenure deployment start new app/0`, then {again}"]
    assert deployed.text("deployment", "start", "new", "app/0").splitlines()[1:] == [again]
    [step] = deployed.json("deployment", "apply", "new.yml")["instances"]
    assert (step["waits_for"], step["settings"] is None) == ("vm", False)
