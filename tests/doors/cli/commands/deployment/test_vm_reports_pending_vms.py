"""Deployments on the command line: VMs that are perhaps being made, though something else is wanted by now."""

import pytest

from tenure.doors.cli.commands.deployment.plan_text import next_lines
from tenure.integrations.bosh.planning.explain_instance import waiting_text
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.integrations.bosh.state.pending_vms import Making
from tests.doors.cli.deployment_site import SHOP, group, manifest, write
from tests.doors.cli.site import Site

FAILS = "see that there is none, then `tenure deployment fail shop"
NO_PLAN = "no plan (in place of one that was lost, or one that was forgotten)"


def recreated(site: Site) -> str:
    """Have the VM of web/0 made anew, and return the plan."""
    plan: str = site.json("deployment", "recreate", "shop", "web/0")["plan"]
    return plan


def called_off(site: Site) -> str:
    """Have the VM of web/0 made anew, then want none any more; return the plan whose VM is perhaps being made."""
    plan = recreated(site)
    site.text("deployment", "apply", "shop.yml")
    return plan


def forgotten(site: Site) -> None:
    """Run an errand, and forget its VM."""
    site.text("deployment", "apply", "tested.yml")
    site.text("deployment", "run-errand", "shop", "smoke-test")
    site.text("deployment", "commit", "shop", "smoke-test/0", "--vm", "vm-9")
    (site.folder / "vms.txt").write_text("vm-1\nvm-2\nvm-3\n", "utf-8")
    site.text("deployment", "cck", "shop", "--vms", "vms.txt", "--forget")


def test_an_ignored_instance_is_reported_with_the_older_plan_that_it_waits_for(deployed: Site) -> None:
    called_off(deployed)
    deployed.text("deployment", "lose", "shop", "web/0")
    older = deployed.json("deployment", "apply", "shop.yml")["plan"]
    deployed.text("deployment", "ignore", "shop", "web/0")
    name = write(deployed, "more.yml", manifest("shop", *SHOP["instance_groups"], group("cache")))
    newer, *lines = deployed.text("deployment", "apply", name, "--changes").splitlines()

    assert older not in newer
    assert (
        "  web/0: make its VM with the settings above, then `tenure deployment commit shop web/0 --vm VM "
        f"--plan {older}`"
    ) in lines
    assert (
        "  cache/0: make its VM with the settings above, then `tenure deployment commit shop cache/0 --vm VM`" in lines
    )
    assert lines[-2:] == [
        "`tenure deployment fail shop INSTANCE --plan PLAN` reports a VM that could not be made;",
        "`tenure deployment abort shop` takes back what no VM carries yet",
    ]


def test_a_plan_tells_which_vms_it_calls_off(deployed: Site) -> None:
    plan = recreated(deployed)

    assert deployed.text("deployment", "plan", "shop.yml", "--changes", "--exit-code", code=1).splitlines()[1:] == [
        "WHAT    INSTANCE  AZ  ADDRESSES        VM",
        "= kept  web/0     z1  apps 10.44.16.2  vm-2",
        "3 instances: 3 kept",
        f"called off: the VM that web/0 waited for, of plan {plan}",
        "`tenure deployment apply shop.yml` does it",
    ]


def test_a_vm_that_is_called_off_is_to_be_reported_and_there_is_nothing_to_take_back(deployed: Site) -> None:
    plan = recreated(deployed)
    lines = deployed.text("deployment", "apply", "shop.yml", "--changes").splitlines()
    again = deployed.text("deployment", "apply", "shop.yml").splitlines()
    untold = f"  web/0: a VM of an earlier plan is perhaps being made for it: {FAILS} web/0 --plan {plan}`"

    assert f"called off: the VM that web/0 waited for, of plan {plan}" in lines
    assert lines[-3:] == again[-3:]
    assert lines[-3:] == [
        "next:",
        untold,
        "`tenure deployment fail shop INSTANCE --plan PLAN` reports a VM that could not be made",
    ]
    deployed.text("deployment", "fail", "shop", "web/0", "--plan", plan)
    assert deployed.text("deployment", "apply", "shop.yml").splitlines()[-1].startswith("nothing to report")


def test_who_needs_no_vm_waits_for_word_of_an_earlier_one(deployed: Site) -> None:
    plan = called_off(deployed)
    line = f"earlier VM of plan {plan}: nobody told what became of it; it may come up on 10.44.16.2"
    shown = deployed.text("deployment", "show", "shop", "web/0").splitlines()
    why = deployed.text("deployment", "why", "shop", "web/0").splitlines()

    assert "web/0     z1  started  vm-2  apps 10.44.16.2   report" in deployed.text("deployment", "show", "shop")
    assert deployed.json("deployment", "list")[0]["waiting"] == 1
    assert line in shown
    assert why[-2:] == [
        line,
        f"it waits for nothing but word of what became of a VM that is perhaps being made for plan {plan}",
    ]
    deployed.text("deployment", "fail", "shop", "web/0", "--plan", plan)
    assert "report" not in deployed.text("deployment", "show", "shop")
    assert deployed.json("deployment", "list")[0]["waiting"] == 0


def test_a_vm_of_no_plan_ends_by_a_failure_that_names_none(deployed: Site) -> None:
    forgotten(deployed)
    shown = deployed.text("deployment", "show", "shop", "smoke-test/0").splitlines()
    why = deployed.text("deployment", "why", "shop", "smoke-test/0").splitlines()

    assert f"earlier VM of {NO_PLAN}: nobody told what became of it; it may come up on 10.44.16.3" in shown
    assert shown[-1] == (
        f"  smoke-test/0: an earlier VM of no plan is perhaps there, or being made for it: {FAILS} smoke-test/0`"
    )
    assert why[-1] == (
        "it waits for nothing but word of what became of a VM that is perhaps being made: it rests until errand "
        "smoke-test is run"
    )
    assert deployed.json("deployment", "fail", "shop", "smoke-test/0")["earlier"] == []


def test_so_does_one_of_who_was_stopped_hard(deployed: Site) -> None:
    deployed.text("deployment", "lose", "shop", "web/0")
    lines = deployed.text("deployment", "stop", "shop", "web/0", "--hard").splitlines()

    assert lines[-1].endswith(f"{FAILS} web/0`")
    assert deployed.json("deployment", "fail", "shop", "web/0")["earlier"] == []


def test_beside_others_one_of_no_plan_is_not_told_to_be_reported_yet() -> None:
    earlier = [{"plan": None, "addresses": []}, {"plan": "p1", "addresses": []}]
    said = {
        "instance": "web/0", "waits_for": None, "needs_plan": True, "plan": None, "vm": "vm-2", "hand_overs": [],
        "earlier": earlier,
    }  # fmt: skip

    assert list(next_lines("shop", [said])) == [
        f"  web/0: a VM of an earlier plan is perhaps being made for it: {FAILS} web/0 --plan p1`"
    ]


def test_where_no_plan_can_be_named_the_hint_does_not_ask_for_one(deployed: Site) -> None:
    called_off(deployed)
    deployed.text("deployment", "lose", "shop", "web/0")
    code, error = deployed.error("deployment", "commit", "shop", "web/0", "--vm", "vm-9")

    assert (code, error["field"]) == (4, "plan")
    assert "deploy again" in error["message"]
    assert "`tenure deployment apply FILE` gives the VM that it waits for a plan" in error["hint"]
    assert "--plan" not in error["hint"]


@pytest.mark.parametrize(
    ("vm", "earlier", "said"),
    [
        (None, (), "nothing but the report that it is gone (`lose`): no VM of it is there or being made"),
        (None, (Making("p1", ()),), "the deletion of a VM that is perhaps being made for plan p1"),
        ("vm-2", (), "the deletion of its VM vm-2"),
        ("vm-2", (Making(None, ()),), "the deletion of its VM vm-2 and of a VM that is perhaps being made"),
    ],
)
def test_what_one_that_leaves_waits_for_is_a_sentence(vm: str | None, earlier: tuple[Making, ...], said: str) -> None:
    leaving = DeploymentInstance("shop", "web", "u", 0, vm=vm, leaving=True, earlier=earlier)

    assert waiting_text(leaving) == f"{said}; its addresses are freed then"


def test_who_leaves_and_has_no_vm_is_only_to_be_let_go() -> None:
    said = {"instance": "web/0", "waits_for": "deletion", "needs_plan": False, "plan": None, "vm": None,
            "hand_overs": [], "earlier": []}  # fmt: skip

    assert list(next_lines("shop", [said])) == [
        "  web/0: no VM of it is there or being made: `tenure deployment lose shop web/0` lets it go"
    ]


def test_no_short_help_of_a_verb_is_cut(site: Site) -> None:
    assert "..." not in site.text("deployment", "--help").partition("Configs and plans:")[2]
