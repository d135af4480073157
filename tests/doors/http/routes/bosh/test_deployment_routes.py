"""Deployments over HTTP: a whole life of one, from the cloud config to the end of its last VM."""

import asyncio
import json

import pytest
import yaml

import tenure
from tenure.doors.http.openapi.openapi_examples import CLOUD_CONFIG
from tenure.doors.http.routes.bosh import deployment_schemas
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.views.result_documents import instance_document, moved_document, plan_document
from tests.doors.http.director import (
    SHOP,
    WEB,
    config,
    deploy,
    faults,
    has,
    has_nothing,
    manifest,
    run,
    two_groups,
    upload,
)
from tests.doors.http.plan import good, lay, refused
from tests.doors.http.stage import Client, Server

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_manifest_is_planned_applied_and_its_vms_reported(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    tried = await admin.post("/deployments:plan", {"manifest": manifest()})
    before = await has_nothing(admin)
    plan = await deploy(admin, manifest())

    assert before
    assert (tried["plan"], tried["applied"], [each["uuid"] for each in tried["instances"]]) == (None, False, [None] * 2)
    assert (plan["applied"], plan["changes"], plan["counts"]["created"]) == (True, True, 2)
    assert [each["networks"] for each in plan["instances"]] == [each["networks"] for each in tried["instances"]]
    assert [each["settings"]["apps"]["ip"] for each in plan["instances"]] == ["10.44.16.2", "10.44.16.3"]
    for each in plan["instances"]:
        assert each["waits_for"] == "vm"
        done = await admin.post(f"{WEB}/{each['index']}:commit", {"vm": f"vm-{each['index']}"})
        assert (done["vm"], done["waits_for"], done["gone"]) == (f"vm-{each['index']}", None, False)
    again = await deploy(admin, manifest())

    assert (again["changes"], again["counts"]["kept"]) == (False, 2)


async def test_a_deployment_is_read_with_addresses_states_and_settings(admin: Client) -> None:
    await lay(admin, deployed=True)
    shop = await admin.get(SHOP)
    errand, first, second = shop["instances"]
    [held] = first["addresses"]

    assert (shop["name"], shop["config"], len(shop["plan"])) == ("shop", "current", 16)
    assert (first["group"], first["index"], first["az"], first["state"], first["vm"]) == (
        "web", 0, "z1", "started", "vm-1",
    )  # fmt: skip
    assert (second["vm"], second["waits_for"], second["plan"]) == (None, "vm", shop["plan"])
    assert (errand["errand"], errand["waits_for"], errand["addresses"], errand["settings"]) == (True, None, [], None)
    assert (held["network"], held["address"], held["state"], held["vm"]) == ("apps", "10.44.16.2", "held", "vm-1")
    assert first["settings"]["apps"] == {
        "type": "manual", "ip": "10.44.16.2", "netmask": "255.255.255.192", "prefix": "32", "gateway": "10.44.16.1",
        "default": ["dns", "gateway"], "cloud_properties": {},
    }  # fmt: skip
    [listed] = (await admin.get("/deployments"))["items"]
    assert listed == {
        "name": "shop", "plan": shop["plan"], "config": "current", "groups": ["smoke-test", "web"], "instances": 3,
        "waiting": 1, "leaving": 0, "ignored": 0, "addresses": 2,
    }  # fmt: skip


async def test_cloud_configs_are_listed_as_they_were_uploaded(admin: Client) -> None:
    await lay(admin)
    assert (await admin.get("/cloud-configs"))["items"] == []
    as_json = json.dumps(yaml.safe_load(CLOUD_CONFIG))
    for text in (CLOUD_CONFIG, as_json):
        await upload(admin, text)
    more = "networks: [{name: more, type: vip}]"
    told = (await good(admin, "PUT", "/cloud-configs/more%2Fof", {"text": more})).json

    assert (told["name"], told["written"], told["networks"]) == ("more/of", True, ["more"])
    assert (await admin.get("/cloud-configs"))["items"] == [
        {"name": "default", "revision": 2, "text": as_json},
        {"name": "more/of", "revision": 1, "text": more},
    ]


async def test_a_cloud_config_is_taken_out_of_force_but_for_the_last(admin: Client) -> None:
    await lay(admin, deployed=True)
    await good(admin, "PUT", "/cloud-configs/more", {"text": "networks: [{name: more, type: vip}]"})
    tried = await admin.post("/cloud-configs/default:delete", {"dry_run": True})
    removed = await admin.post("/cloud-configs/more:delete", {})

    assert (tried["written"], {each["deployment"] for each in tried["moves"]}) == (False, {"shop"})
    assert removed == {"name": "more", "written": True, "networks": ["more"], "moves": [], "warnings": []}
    assert [each["name"] for each in (await admin.get("/cloud-configs"))["items"]] == ["default"]
    await refused(admin, 409, "deployment_refused", "POST", "/cloud-configs/default:delete", {})
    await refused(admin, 404, "not_found", "POST", "/cloud-configs/more:delete", {})


async def test_a_dry_run_tells_who_would_be_moved_and_changes_nothing(admin: Client) -> None:
    await lay(admin, deployed=True)
    before = await admin.get("/changes/last")
    text = config(reserved=["10.44.16.2-10.44.16.9"], dns=["10.44.16.60"])
    told = await upload(admin, text, dry_run=True)
    [first, _] = told["moves"]

    assert (told["written"], told["networks"]) == (False, ["apps"])
    assert (first["deployment"], first["instance"], first["address"]) == ("shop", "web/0", "10.44.16.2")
    assert "reserved in subnet 10.44.16.0/26" in first["reason"]
    assert told["warnings"][0]["place"]["document"] == "default"
    assert await admin.get("/changes/last") == before
    assert (await upload(admin, text))["moves"] == told["moves"]
    assert (await admin.get(SHOP))["config"] == "older"
    assert (await run(admin, manifest()))["counts"]["moved"] == 2


async def test_a_vm_tells_the_addresses_that_the_iaas_picked(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    networks = [{"name": "apps", "default": ["dns", "gateway"]}, {"name": "edge"}]
    await deploy(admin, manifest(1, networks=networks))
    done = await admin.post(f"{WEB}/0:commit", {"vm": "vm-1", "hints": {"edge": "198.51.100.9"}})

    assert done["hints"] == {"edge": "198.51.100.9"}
    assert done["settings"]["edge"]["ip"] == "198.51.100.9"
    assert [each["network"] for each in done["addresses"]] == ["apps"]


async def test_an_instance_keeps_its_address_through_stop_start_loss_and_failure(admin: Client) -> None:
    await lay(admin, deployed=True)
    told = []
    for verb, body in (
        ("stop", {}),
        ("start", {}),
        ("stop", {"hard": True}),
        ("stop", {"hard": True}),
        ("start", {}),
        ("fail", {}),
        ("commit", {"vm": "vm-2"}),
        ("lose", {}),
    ):
        done = await admin.post(f"{WEB}/0:{verb}", body)
        told.append((done["state"], done["vm"], done["failed"], done["waits_for"]))
        assert ([each["address"] for each in done["addresses"]], done["gone"]) == (["10.44.16.2"], False)

    assert told == [
        ("stopped", "vm-1", False, None),
        ("started", "vm-1", False, None),
        ("detached", None, False, "start"),
        ("detached", None, False, "start"),
        ("started", None, False, "vm"),
        ("started", None, True, "vm"),
        ("started", "vm-2", False, None),
        ("started", None, False, "vm"),
    ]


async def test_a_report_that_names_another_vm_or_plan_comes_late(admin: Client) -> None:
    await lay(admin, deployed=True)
    for verb, body in (
        ("lose", {"vm": "vm-0"}),
        ("stop", {"hard": True, "vm": "vm-0"}),
        ("fail", {"plan": "other"}),
        ("fail", {}),
    ):
        await refused(admin, 409, "conflict", "POST", f"{WEB}/0:{verb}", body)

    assert (await admin.post(f"{WEB}/0:lose", {"vm": "vm-1"}))["vm"] is None
    assert (await admin.post(f"{WEB}/0:fail", {}))["failed"]


async def test_an_ignored_instance_is_not_changed_until_it_is_taken_in_again(admin: Client) -> None:
    await lay(admin, deployed=True)
    assert (await admin.post(f"{WEB}/1:ignore"))["ignored"]
    problem = await refused(admin, 409, "deployment_refused", "POST", f"{SHOP}:delete", {})

    assert faults(problem) == [("DeploymentIgnoredInstancesDeletion", 190021, None)]
    assert not (await admin.post(f"{WEB}/1:unignore"))["ignored"]
    await admin.post(f"{SHOP}:delete")


async def test_who_leaves_is_gone_when_its_vm_is(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    await run(admin, manifest(2))
    plan = await deploy(admin, manifest(1))
    [leaves] = [each for each in plan["instances"] if each["action"] == "leaves"]
    assert (leaves["waits_for"], leaves["settings"]) == ("deletion", None)
    assert len(await has(admin)) == 2
    done = await admin.post(f"{WEB}/{leaves['uuid']}:lose")

    assert (done["gone"], done["leaving"], done["settings"]) == (True, True, None)
    assert await has(admin) == {"web/0": ["10.44.16.2"]}
    await refused(admin, 404, "not_found", "POST", f"{WEB}/{leaves['uuid']}:lose", {})


async def test_a_swapped_vm_is_an_orphan_until_it_is_cleaned_up(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    swapping = manifest(1, update={"vm_strategy": "create-swap-delete"})
    await run(admin, swapping)
    plan = await run(admin, swapping, recreate=True)
    [orphan] = (await admin.get("/orphans"))["items"]

    assert [each["swaps"] for each in plan["instances"]] == [True]
    assert (orphan["deployment"], [each["address"] for each in orphan["addresses"]]) == ("shop", ["10.44.16.2"])
    freed = await admin.post(f"/orphans/{orphan['vm']}:clean_up")
    assert [each["address"] for each in freed["items"]] == ["10.44.16.2"]
    assert (await admin.get("/orphans"))["items"] == []
    assert (await admin.post(f"/orphans/{orphan['vm']}:clean_up"))["items"] == []


async def test_addresses_change_hands_in_one_plan_where_that_is_asked_for(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    await run(admin, two_groups(10, 11))
    await refused(admin, 409, "deployment_refused", "POST", "/deployments:plan", {"manifest": two_groups(11, 10)})
    plan = await deploy(admin, two_groups(11, 10), hand_over=True)
    path = "/deployments/shop/instances"
    waiting = plan["instances"][0]["hand_overs"]

    assert [(each["network"], each["address"]) for each in waiting] == [("apps", "10.44.16.11")]
    await refused(admin, 409, "deployment_refused", "POST", f"{path}/a/0:commit", {"vm": "vm-a"})
    await admin.post(f"{path}/a/0:lose")
    await admin.post(f"{path}/b/0:commit", {"vm": "vm-b"})
    done = await admin.post(f"{path}/a/0:commit", {"vm": "vm-a"})
    assert (done["hand_overs"], done["waits_for"]) == ([], None)
    assert await has(admin) == {"a/0": ["10.44.16.11"], "b/0": ["10.44.16.10"]}


async def test_without_a_cloud_config_running_vms_tell_their_addresses(admin: Client) -> None:
    await lay(admin)
    own = yaml.safe_dump({**yaml.safe_load(config()), **yaml.safe_load(manifest(1))})
    plan = await run(admin, own)
    vm = f"vm-{plan['plan'][:6]}-0"
    more = yaml.safe_dump({**yaml.safe_load(config()), **yaml.safe_load(manifest(2))})
    said = {"web/0": {"vm": vm, "networks": {"apps": {"ip": "10.44.16.2"}}}}

    assert (await admin.get(SHOP))["config"] == "own"
    await refused(admin, 409, "deployment_refused", "POST", "/deployments:apply", {"manifest": more})
    told = await deploy(admin, more, vm_state=said)
    assert told["counts"] == {**told["counts"], "kept": 1, "created": 1}
    silent = {"manifest": more, "vm_state": {"web/0": None, "web/1": None}}
    await refused(admin, 409, "deployment_refused", "POST", "/deployments:plan", silent)
    fixed = await admin.post("/deployments:plan", {**silent, "fix": True})
    assert fixed["changes"]


async def test_a_plan_that_is_taken_back_frees_what_it_reserved(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    await run(admin, manifest(1))
    plan = await deploy(admin, manifest(3))
    freed = await admin.post(f"{SHOP}:abort", {"plan": plan["plan"]})

    assert sorted(each["address"] for each in freed["items"]) == ["10.44.16.3", "10.44.16.4"]
    assert freed["taken_back"]
    assert await has(admin) == {"web/0": ["10.44.16.2"]}
    for gone in (plan["plan"], "zzz"):
        assert await admin.post(f"{SHOP}:abort", {"plan": gone}) == {"taken_back": False, "items": []}


async def test_a_deployment_goes_when_its_vms_are_deleted(admin: Client) -> None:
    await lay(admin, deployed=True)
    left = (await admin.post(f"{SHOP}:delete"))["items"]
    assert [(each["vm"], each["leaving"], each["waits_for"]) for each in left] == [
        ("vm-1", True, "deletion"),
        (None, True, "deletion"),
    ]
    for number in range(2):
        assert (await admin.post(f"{WEB}/{number}:lose"))["gone"]

    assert (await admin.post(f"{SHOP}:delete"))["items"] == []
    assert await has_nothing(admin)
    await refused(admin, 404, "not_found", "POST", f"{SHOP}:delete", {})
    await refused(admin, 404, "not_found", "GET", SHOP)


async def test_a_deploy_is_written_down_on_the_word_of_who_asked(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    body, headers = {"manifest": manifest(1)}, {"X-Request-Id": "deploy-42"}
    await good(admin, "POST", "/deployments:apply", body, headers=headers)
    page = await admin.get("/changes?network=apps&verb=grant&limit=1000")
    last = page["items"][-1]

    assert (last["request_id"], last["actor"].startswith("token/stage-")) == ("deploy-42", True)


async def test_deployments_at_once_never_share_an_address(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    names = [f"shop-{number}" for number in range(6)]
    await asyncio.gather(*(deploy(admin, manifest(3, name=name)) for name in names))
    found = [address for name in names for held in (await has(admin, name)).values() for address in held]

    assert len(found) == len(set(found)) == 18


async def test_the_same_deploy_at_once_reserves_once(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    await asyncio.gather(*(deploy(admin, manifest(3)) for _ in range(5)))

    assert await has(admin) == {f"web/{number}": [f"10.44.16.{number + 2}"] for number in range(3)}
    assert len((await admin.get("/networks/apps/holdings"))["items"]) == 3


async def test_the_door_itself_works_over_a_server(shared_server: Server, admin: Client) -> None:
    await lay(admin)
    async with await tenure.open_async(shared_server.url, token=shared_server.admin) as ledger:
        door = Deployments(ledger)
        await door.upload_config(config())
        tried = await door.plan(manifest())
        done = await door.apply(manifest())
        await door.commit("shop", "web/0", vm="vm-1")

    assert {held.address for held in tried.granted.values()} == {held.address for held in done.granted.values()}
    assert await has(admin) == {"web/0": ["10.44.16.2"], "web/1": ["10.44.16.3"]}


async def test_the_api_tells_all_that_the_doors_own_documents_tell(shared_server: Server, admin: Client) -> None:
    await lay(admin)
    async with await tenure.open_async(shared_server.store) as ledger:
        door = Deployments(ledger)
        await door.upload_config(config())
        plan = plan_document(await door.apply(manifest()), applied=True)
        instance = instance_document(await door.instance("shop", "web/0"))
        [moved, *_] = await door.moved_by(config(reserved=["10.44.16.2-10.44.16.9"]))

    for document, shape in (
        (plan, deployment_schemas.DeploymentPlan),
        (plan["instances"][0], deployment_schemas.PlannedInstance),
        (plan["instances"][0]["networks"][0], deployment_schemas.PlannedNetwork),
        ({**instance, "settings": {}}, deployment_schemas.DeployedInstance),
        (instance["addresses"][0], deployment_schemas.HeldAddress),
        (instance["networks"][0], deployment_schemas.InstanceNetwork),
        (moved_document(moved), deployment_schemas.MovedAddress),
    ):
        assert set(document) == set(shape.__struct_fields__)
