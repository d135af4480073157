"""Deployments over HTTP where something is wrong: every fault by BOSH's name and number, with its place."""

import asyncio
import json
import subprocess
import sys

import pytest

from tenure.doors.http.openapi.openapi_examples import MANIFEST
from tenure.doors.http.routes.bosh import deployment_schemas
from tenure.doors.http.routes.route_table import ENDPOINTS
from tests.doors.http.director import SHOP, config, deploy, faults, manifest, upload
from tests.doors.http.plan import lay, refused
from tests.doors.http.stage import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_fault_of_a_config_is_told_at_once_with_its_place(admin: Client) -> None:
    await lay(admin)
    subnet = "{range: 10.0.0.0/24, gateway: 10.0.1.1, static: [10.9.9.9]}"
    text = f"networks:\n- name: a\n  type: manual\n  subnets: [{subnet}]\n- {{name: b, type: odd}}\n"
    problem = await refused(admin, 422, "document_rejected", "PUT", "/cloud-configs/default", {"text": text})
    [first, *_] = problem["data"]["faults"]

    assert faults(problem) == [
        ("NetworkInvalidGateway", 160003, "networks[0].subnets[0].gateway"),
        ("NetworkStaticIpOutOfRange", 160006, "networks[0].subnets[0].static[0]"),
        ("DeploymentInvalidNetworkType", 190010, "networks[1].type"),
    ]
    assert first["place"] == {"document": "default", "line": 4, "column": 43, "path": "networks[0].subnets[0].gateway"}
    assert first["message"] == "Invalid gateway for network 'a': must be inside the range"
    assert first["message"] in problem["detail"]
    assert problem["title"] == "The document has faults"


async def test_a_manifest_is_named_in_its_faults_as_it_was_sent(admin: Client) -> None:
    await lay(admin)
    await upload(admin, config())
    text = manifest(networks=[{"name": "none"}])
    body = {"manifest": text, "document": "shop.yml"}
    for verb in ("plan", "apply"):
        problem = await refused(admin, 422, "document_rejected", "POST", f"/deployments:{verb}", body)
        assert ("JobUnknownNetwork", 150001) in {each[:2] for each in faults(problem)}
        assert {each["place"]["document"] for each in problem["data"]["faults"]} == {"shop.yml"}


@pytest.mark.parametrize("text", ["a: [", "- a", "a: 1\na: 2", "\u0000", "a: !!python/name:os.system x", "a: \ud7ff"])
async def test_what_is_no_document_is_a_fault_of_it(admin: Client, text: str) -> None:
    await lay(admin)
    for method, path, body in (
        ("PUT", "/cloud-configs/default", {"text": text}),
        ("PUT", "/cloud-configs/default", {"text": text, "dry_run": True}),
    ):
        problem = await refused(admin, 422, "document_rejected", method, path, body)
        assert faults(problem)[0][0] == "DirectorError"


async def test_what_cannot_be_had_is_told_as_bosh_does(admin: Client) -> None:
    await lay(admin, deployed=True)
    await deploy(admin, manifest(1, name="other", networks=[{"name": "apps", "static_ips": ["10.44.16.10"]}]))
    for text, error in (
        (manifest(99), ("NetworkReservationNotEnoughCapacity", 130011, None)),
        (
            manifest(1, networks=[{"name": "apps", "static_ips": ["10.44.16.10"]}]),
            ("NetworkReservationAlreadyInUse", 130008, None),
        ),
    ):
        for verb in ("plan", "apply"):
            body = {"manifest": text}
            problem = await refused(admin, 409, "deployment_refused", "POST", f"/deployments:{verb}", body)
            assert faults(problem) == [error]
            assert problem["data"]["faults"][0]["message"] == problem["detail"]


async def test_nothing_is_deployed_without_networks(admin: Client) -> None:
    await lay(admin)
    problem = await refused(admin, 422, "document_rejected", "POST", "/deployments:apply", {"manifest": MANIFEST})

    assert ("DeploymentNoNetworks", 190008) in {each[:2] for each in faults(problem)}


async def test_what_vms_say_wrongly_is_told_with_its_place(admin: Client) -> None:
    await lay(admin, deployed=True)
    state = {"web/0": {"vm": "vm-1", "networks": {"apps": {"ip": "here"}}}, "web": None}
    body = {"manifest": MANIFEST, "vm_state": state}
    problem = await refused(admin, 422, "document_rejected", "POST", "/deployments:apply", body)

    assert {each["place"]["document"] for each in problem["data"]["faults"]} == {"vm_state"}
    assert "web/0.networks.apps.ip" in [each[2] for each in faults(problem)]


async def test_a_name_with_a_slash_never_reaches_into_another_deployment(admin: Client) -> None:
    await lay(admin, deployed=True)
    plan = (await admin.get(SHOP))["plan"]

    await refused(admin, 404, "not_found", "POST", "/deployments/shop%2Fweb:abort", {"plan": plan})
    await refused(admin, 404, "not_found", "POST", "/deployments/shop%2Fweb:delete", {})
    await refused(admin, 404, "not_found", "POST", "/deployments/shop/instances/web%2F0/0:lose", {})


async def test_a_text_that_is_too_long_is_refused_before_it_is_read(admin: Client) -> None:
    await lay(admin)
    text = "#" * (deployment_schemas.MOST_TEXT + 1)
    problem = await refused(admin, 422, "invalid", "PUT", "/cloud-configs/default", {"text": text})

    assert problem["field"] == "text"


WITHOUT_YAML = """
import asyncio, json, sys
sys.modules["yaml"] = None
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.endpoint import Call
from tenure.wire.problems import problem_of
path = {"deployment": "shop", "instance_group": "web", "ident": "0", "vm": "vm-1", "config": "default", "errand": "x"}
said = {**dict.fromkeys(("text", "manifest", "plan", "vm"), "x"), "vms": [], "number": 0}
told = {}
for endpoint in ENDPOINTS:
    if endpoint.section == "deployments":
        body = endpoint.body and endpoint.body(**{name: value for name, value in said.items()
                                                  if name in endpoint.body.__struct_fields__})
        try:
            asyncio.run(endpoint.handler(Call(None, None, None, path, body=body)))
        except Exception as error:
            problem = problem_of(error)
            told[endpoint.name] = [problem.status, problem.code, problem.detail]
print(json.dumps(told))
"""


async def test_a_server_without_what_reads_documents_says_so() -> None:
    script = [sys.executable, "-W", "error", "-c", WITHOUT_YAML]
    done = await asyncio.to_thread(subprocess.run, script, capture_output=True, check=True, encoding="utf-8")
    told = json.loads(done.stdout)

    assert set(told) == {endpoint.name for endpoint in ENDPOINTS if endpoint.section == "deployments"}
    assert {(status, code) for status, code, _ in told.values()} == {(501, "not_installed")}
    assert all("pip install 'tenure[deployments]'" in detail for _, _, detail in told.values())
