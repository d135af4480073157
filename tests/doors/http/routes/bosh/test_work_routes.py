"""Deployments over HTTP: how they differ and why, VMs made anew, cloud check, errands, compiles, managed networks."""

from typing import Any

import pytest
import yaml

from tenure.doors.http.openapi.openapi_examples import MANIFEST
from tenure.integrations.bosh.state.managed_records import MANAGED
from tests.doors.http.director import SHOP, WEB, config, faults, has, manifest, upload
from tests.doors.http.plan import lay, refused
from tests.doors.http.stage import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMOKE = "/deployments/shop/errands/smoke-test"


async def test_a_manifest_is_held_against_what_is_deployed(admin: Client) -> None:
    await lay(admin, deployed=True)
    same = await admin.post("/deployments:diff", {"manifest": MANIFEST})
    other = await admin.post("/deployments:diff", {"manifest": manifest(3)})
    await upload(admin, config(reserved=["10.44.16.40"]))
    later = await admin.post("/deployments:diff", {"manifest": MANIFEST})

    assert same == {"deployment": "shop", "same": True, "differences": [], "networks": []}
    assert not other["same"]
    [gone, more] = sorted(other["differences"], key=lambda each: each["path"])
    assert (gone["after"], gone["before"]["networks"].keys()) == (None, {"apps"})
    assert (more["path"], more["before"], more["after"]) == ("web.instances", 2, 3)
    assert (later["same"], later["networks"]) == (False, ["apps", "edge"])
    problem = await refused(admin, 422, "document_rejected", "POST", "/deployments:diff", {"manifest": "name: 3"})
    assert faults(problem)[0][:2] == ("DirectorError", 100)


async def test_an_instance_is_explained(admin: Client) -> None:
    await lay(admin, deployed=True)
    first = await admin.get(f"{WEB}/0/why")
    waits = await admin.get(f"{WEB}/1/why")
    rests = await admin.get("/deployments/shop/instances/smoke-test/0/why")
    [reason] = first["reasons"]

    assert (first["group"], first["index"], first["vm"], first["waiting"]) == ("web", 0, "vm-1", "nothing")
    assert (reason["address"], reason["origin"], reason["vm"]) == ("10.44.16.2", "picked", "vm-1")
    assert reason["why"] == "it was the lowest free address of subnet 10.44.16.0/26, which serves 'z1'"
    assert reason["changes"]
    assert (waits["waits_for"], waits["waiting"]) == ("vm", "a VM with its settings")
    assert (rests["waits_for"], rests["reasons"]) == (None, [])


async def test_vms_are_made_anew_without_a_deploy(admin: Client) -> None:
    await lay(admin, deployed=True)
    before, last = await has(admin), await admin.get("/changes/last")
    tried = await admin.post(f"{SHOP}:recreate", {"dry_run": True})
    assert await admin.get("/changes/last") == last
    done = await admin.post(f"{SHOP}:recreate")
    again = await admin.post(f"{WEB}/0:recreate")
    [step] = done["instances"]

    assert (tried["plan"], tried["applied"], tried["counts"]["recreated"]) == (None, False, 1)
    assert (step["instance"], step["action"], step["vm"], step["waits_for"]) == ("web/0", "recreated", "vm-1", "vm")
    assert step["settings"]["apps"]["ip"] == "10.44.16.2"
    assert (again["changes"], again["instances"]) == (False, [])
    other = await refused(admin, 409, "conflict", "POST", f"{WEB}/0:commit", {"vm": "vm-2", "plan": "another"})
    assert "does not wait for a VM of plan another" in other["detail"]
    assert (await admin.post(f"{WEB}/0:commit", {"vm": "vm-2", "plan": done["plan"]}))["vm"] == "vm-2"
    assert (await admin.post(f"{WEB}/0:recreate"))["counts"]["recreated"] == 1
    assert await has(admin) == before


async def test_vms_that_are_gone_are_found_and_made_anew_or_forgotten(admin: Client) -> None:
    await lay(admin, deployed=True)
    await admin.post(f"{WEB}/1:commit", {"vm": "vm-2"})
    last = await admin.get("/changes/last")
    found = (await admin.post(f"{SHOP}:check", {"vms": ["vm-9"]}))["items"]
    assert await admin.get("/changes/last") == last
    waits = await admin.post(f"{WEB}/0:recreate_missing", {"vm": "vm-1"})
    forgot = await admin.post(f"{WEB}/1:delete_reference", {"vm": "vm-2"})
    again = await admin.post(f"{WEB}/1:delete_reference", {"vm": "vm-2"})

    assert [(each["vm"], each["instance"]["index"], each["instance"]["vm"]) for each in found] == [
        ("vm-1", 0, "vm-1"),
        ("vm-2", 1, "vm-2"),
    ]
    assert found[0]["instance"]["settings"]["apps"]["ip"] == "10.44.16.2"
    assert (waits["vm"], waits["waits_for"], waits["plan"] is None) == (None, "vm", False)
    assert (forgot["vm"], forgot["plan"], forgot["addresses"][0]["address"]) == (None, None, "10.44.16.3")
    assert again == forgot
    assert (await admin.post(f"{SHOP}:check", {"vms": []}))["items"] == []
    await refused(admin, 422, "invalid", "POST", f"{SHOP}:check", {"vms": ["vm-1", " "]})


async def test_an_errand_is_run_ended_and_keeps_its_address(admin: Client) -> None:
    await lay(admin, deployed=True)
    tried = await admin.post(f"{SMOKE}:run", {"dry_run": True})
    ran = await admin.post(f"{SMOKE}:run")
    [step] = ran["instances"]
    path = f"/deployments/shop/instances/smoke-test/{step['uuid']}"
    await admin.post(f"{path}:commit", {"vm": "vm-9", "plan": ran["plan"]})
    running = await admin.post(f"{SMOKE}:run")
    [rests] = (await admin.post(f"{SMOKE}:end"))["items"]
    again = await admin.post(f"{SMOKE}:end")

    assert (tried["applied"], tried["instances"][0]["networks"][0]["after"]) == (False, "10.44.16.4")
    assert (step["waits_for"], step["settings"]["apps"]["ip"]) == ("vm", "10.44.16.4")
    assert running["changes"] is False
    assert (rests["vm"], rests["errand"], rests["waits_for"]) == (None, True, None)
    assert ([each["address"] for each in rests["addresses"]], rests["settings"]["apps"]["ip"]) == (
        ["10.44.16.4"],
        "10.44.16.4",
    )
    assert again["items"] == [rests]
    for verb in ("run", "end"):
        problem = await refused(admin, 409, "deployment_refused", "POST", f"/deployments/shop/errands/web:{verb}", {})
        assert "is not an errand" in problem["detail"]
        await refused(admin, 404, "not_found", "POST", f"/deployments/shop/errands/none:{verb}", {})


async def test_workers_compile_and_free_their_addresses(admin: Client) -> None:
    await lay(admin, deployed=True)
    one = await admin.post(f"{SHOP}:compile", {"workers": 1})
    both = await admin.post(f"{SHOP}:compile", {"plan": one["plan"]})
    told = await admin.post(f"{SHOP}:commit_worker", {"number": 1, "vm": "vm-21", "plan": one["plan"]})
    other = await admin.post(f"{SHOP}:end_compile", {"plan": "another"})
    ended = await admin.post(f"{SHOP}:end_compile")

    assert [each["settings"]["apps"]["ip"] for each in both["workers"]] == ["10.44.16.4", "10.44.16.5"]
    assert both["workers"][:1] == one["workers"]
    assert (both["network"], both["az"], both["orphan_workers"]) == ("apps", "z1", False)
    assert [(each["vm"], each["address"], each["settings"]) for each in told["workers"]] == [
        (None, "10.44.16.4", None),
        ("vm-21", "10.44.16.5", None),
    ]
    assert other == {"deployment": "shop", "ended": False, "compile": None}
    assert (ended["ended"], ended["compile"]) == (True, told)
    assert (await admin.post(f"{SHOP}:end_compile"))["ended"] is False
    held = (await admin.get("/networks/apps/holdings"))["items"]
    assert sorted(each["address"] for each in held) == ["10.44.16.2", "10.44.16.3"]


async def test_what_cannot_be_compiled_is_refused(admin: Client) -> None:
    await lay(admin, deployed=True)
    for field, body in (("workers", {"workers": 0}), ("plan", {"plan": ""}), ("cats", {"cats": 9})):
        assert (await refused(admin, 422, "invalid", "POST", f"{SHOP}:compile", body))["field"] == field
    without = {key: value for key, value in yaml.safe_load(config()).items() if key != "compilation"}
    await upload(admin, yaml.safe_dump(without))
    problem = await refused(admin, 409, "deployment_refused", "POST", f"{SHOP}:compile", {})

    assert faults(problem) == [("DirectorError", 100, None)]
    asked: dict[str, Any] = {"compile": {}, "commit_worker": {"number": 0, "vm": "vm-9"}, "end_compile": {}}
    for verb, said in asked.items():
        await refused(admin, 404, "not_found", "POST", f"/deployments/none:{verb}", said)


async def test_managed_networks_are_read(admin: Client) -> None:
    await lay(admin)
    assert (await admin.get("/managed-networks"))["items"] == []
    subnet = {
        "cid": "cid-1", "range": "10.60.1.0/28", "gateway": "10.60.1.1", "reserved": ["10.60.1.2"],
        "cloud_properties": {},
    }  # fmt: skip
    document = {"state": "ready", "by": "", "subnets": {"s1": subnet}, "deployments": ["shop"]}
    paper = {"op": "write_paper", "kind": MANAGED, "name": "made", "document": document}
    await admin.post(":apply", {"operations": [paper]})

    assert (await admin.get("/managed-networks"))["items"] == [
        {
            "name": "made", "state": "ready", "orphaned": False, "deployments": ["shop"],
            "subnets": [{"name": "s1", **subnet}],
        }
    ]  # fmt: skip
