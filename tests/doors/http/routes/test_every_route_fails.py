"""Every route in its typical failure: the right status, a stable code, the field that is wrong, nothing changed.

Every route in its good case is in ``test_openapi``: the examples of the document are asked of a server.
"""

from typing import Any

import pytest

from tenure.doors.http.openapi.openapi_examples import MANIFEST, PATH_EXAMPLES
from tenure.doors.http.routes.route_table import ENDPOINTS
from tenure.doors.http.routing.endpoint import Endpoint
from tests.doors.http.plan import ANY, at, lay_for, refused
from tests.doors.http.stage import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOWHERE = {"network": "nowhere"}
OLD = {"If-Match": '"no-such-uuid.1"'}
OTHER = {"owner": "instance/other"}
TOO_MANY = MANIFEST.replace("instances: 2", "instances: 99")

Failure = tuple[int, str, str | None, dict[str, Any]]
"""Status, code, field; and what is asked: ``path``, ``query``, ``body``, ``headers``."""

FAILURES: dict[str, Failure] = {
    "list_spaces": (422, "invalid", "limit", {"query": "limit=3"}),
    "get_space": (404, "not_found", "space", {"path": {"space": "none"}}),
    "list_networks": (422, "invalid", "limit", {"query": "limit=0"}),
    "add_network": (409, "already_exists", "network", {"body": {"name": "net1"}}),
    "get_network": (404, "not_found", "network", {"path": NOWHERE}),
    "modify_network": (412, "precondition_failed", "If-Match", {"body": {"kind": "vip"}, "headers": OLD}),
    "remove_network": (409, "still_in_use", None, {"path": {"network": "lab"}, "headers": ANY}),
    "connect_network": (422, "invalid", "group", {"body": {"group": ""}}),
    "disconnect_network": (404, "not_found", "group", {"body": {"group": "rack9"}}),
    "list_subnets": (404, "not_found", "network", {"path": NOWHERE}),
    "add_subnet": (422, "invalid", "cidr", {"body": {"cidr": "192.0.2.1/24"}}),
    "get_subnet": (404, "not_found", "subnet", {"path": {"subnet": "none"}}),
    "modify_subnet": (428, "precondition_required", "If-Match", {"body": {"dhcp": True}}),
    "remove_subnet": (409, "still_in_use", None, {"path": {"network": "lab", "subnet": "bench"}, "headers": ANY}),
    "list_pools": (404, "not_found", "network", {"path": NOWHERE}),
    "add_pool": (409, "overlap", "range", {"body": {"range": "192.0.2.100-192.0.2.110"}}),
    "get_pool": (404, "not_found", "pool", {"path": {"pool": "none"}}),
    "modify_pool": (422, "invalid", "policy", {"body": {"policy": "best"}, "headers": ANY}),
    "remove_pool": (404, "not_found", "pool", {"path": {"pool": "none"}, "headers": ANY}),
    "list_reserved": (404, "not_found", "network", {"path": NOWHERE}),
    "reserve": (404, "not_found", "range", {"body": {"range": "10.0.0.0/24"}}),
    "unreserve": (404, "not_found", "range", {"path": {"range": "192.0.2.200"}, "headers": ANY}),
    "list_preallocations": (404, "not_found", "network", {"path": NOWHERE}),
    "preallocate": (409, "already_exists", "address", {"body": {"owner": "instance/db-1", "address": "192.0.2.60"}}),
    "remove_preallocation": (404, "not_found", "owner", {"path": {"owner": "instance/none"}, "headers": ANY}),
    "allocate": (409, "address_in_use", "address", {"body": {**OTHER, "address": "192.0.2.10"}}),
    "allocate_many": (409, "address_reserved", "address", {"body": {"wishes": [{**OTHER, "address": "192.0.2.20"}]}}),
    "release": (409, "not_owner", "owner", {"body": {**OTHER, "address": "192.0.2.10"}}),
    "release_many": (409, "not_owner", "owner", {"body": {"releases": [{**OTHER, "address": "192.0.2.10"}]}}),
    "list_all_holdings": (422, "invalid", "after", {"query": "after=x"}),
    "list_holdings": (422, "invalid", "state", {"query": "state=lost"}),
    "get_holding": (404, "not_found", "address", {"path": {"address": "192.0.2.99"}}),
    "edit_holding": (
        412,
        "precondition_failed",
        "If-Match",
        {"body": {"plan": "p"}, "headers": {"If-Match": '"1.ab"'}},
    ),
    "modify_holding": (409, "not_owner", "owner", {"body": OTHER}),
    "confirm": (409, "not_owner", "owner", {"path": {"address": "192.0.2.11"}, "body": OTHER}),
    "transfer": (404, "not_found", "address", {"path": {"address": "192.0.2.99"}, "body": {**OTHER, "to": "vm/b"}}),
    "cancel": (409, "conflict", "address", {"body": {"owner": "instance/web-0"}}),
    "release_holding": (409, "conflict", "generation", {"body": {"owner": "instance/web-0", "generation": 0}}),
    "end_cooling": (422, "address_outside_subnet", "address", {"path": {"address": "10.0.0.1"}, "body": OTHER}),
    "get_owner": (404, "not_found", "network", {"query": "network=nowhere"}),
    "release_owner": (422, "invalid", "owner", {"path": {"owner": "nobody"}, "body": {}}),
    "list_claims": (422, "invalid", "network", {"query": "network=net1"}),
    "list_network_claims": (404, "not_found", "network", {"path": NOWHERE}),
    "claim": (422, "invalid", "wait_s", {"body": {**OTHER, "wait_s": 61}}),
    "withdraw": (404, "not_found", "network", {"path": NOWHERE, "body": OTHER}),
    "list_instances": (422, "invalid", "limit", {"query": "limit=-1"}),
    "get_instance": (404, "not_found", "instance", {"path": {"instance": "none"}}),
    "search": (422, "invalid", "kind", {"query": "kind=house"}),
    "why": (422, "invalid", "address", {"path": {"address": "here"}}),
    "history": (404, "not_found", "network", {"query": "network=nowhere"}),
    "list_changes": (422, "invalid", "range", {"query": "range=here"}),
    "follow_changes": (422, "invalid", "after", {"query": "after=999999999"}),
    "list_papers": (422, "invalid", "kind", {"path": {"kind": "rest.token"}}),
    "get_paper": (404, "not_found", "name", {"path": {"name": "none"}}),
    "get_self": (422, "invalid", "who", {"query": "who=me"}),
    "apply": (404, "not_found", "network", {"body": {"operations": [{"op": "allocate", **NOWHERE, **OTHER}]}}),
    "rehearse": (404, "not_found", "network", {"body": {"operations": [{"op": "allocate", **NOWHERE, **OTHER}]}}),
    "list_cloud_configs": (422, "invalid", "limit", {"query": "limit=3"}),
    "upload_cloud_config": (422, "document_rejected", None, {"body": {"text": "networks: [{name: a}]"}}),
    "delete_cloud_config": (404, "not_found", "config", {"path": {"config": "none"}, "body": {}}),
    "plan_deployment": (422, "document_rejected", None, {"body": {"manifest": "name: shop\ncats: 9"}}),
    "apply_deployment": (409, "deployment_refused", None, {"body": {"manifest": TOO_MANY}}),
    "list_deployments": (422, "invalid", "limit", {"query": "limit=3"}),
    "get_deployment": (404, "not_found", "deployment", {"path": {"deployment": "none"}}),
    "delete_deployment": (404, "not_found", "deployment", {"path": {"deployment": "none"}, "body": {}}),
    "abort_deployment": (422, "invalid", "plan", {"body": {}}),
    "diff_deployment": (404, "not_found", "deployment", {"body": {"manifest": MANIFEST.replace("shop", "none")}}),
    "recreate_deployment": (404, "not_found", "deployment", {"path": {"deployment": "none"}, "body": {}}),
    "check_deployment": (422, "invalid", "vms", {"body": {}}),
    "compile_deployment": (409, "conflict", None, {"body": {"plan": "0f8fad5bd9cb469f"}}),
    "commit_worker": (404, "not_found", "number", {"body": {"number": 9, "vm": "vm-9"}}),
    "end_compile": (404, "not_found", "deployment", {"path": {"deployment": "none"}, "body": {}}),
    "run_errand": (409, "deployment_refused", None, {"path": {"errand": "web"}, "body": {}}),
    "end_errand": (404, "not_found", "errand", {"path": {"errand": "no/ne"}, "body": {}}),
    "why_instance": (404, "not_found", "instance", {"path": {"ident": "9"}}),
    "recreate_instance": (404, "not_found", "instance", {"path": {"ident": "9"}, "body": {}}),
    "recreate_missing": (409, "conflict", "vm", {"body": {"vm": "vm-9"}}),
    "delete_reference": (422, "invalid", "vm", {"body": {"vm": ""}}),
    "list_managed_networks": (422, "invalid", "limit", {"query": "limit=3"}),
    "commit_instance": (404, "not_found", "instance", {"path": {"ident": "9"}, "body": {"vm": "vm-9"}}),
    "fail_instance": (404, "not_found", "instance", {"path": {"instance_group": "none"}, "body": {}}),
    "lose_instance": (404, "not_found", "deployment", {"path": {"deployment": "none"}, "body": {}}),
    "stop_instance": (422, "invalid", "hard", {"body": {"hard": "yes"}}),
    "start_instance": (404, "not_found", "deployment", {"path": {"deployment": "shop/web"}, "body": {}}),
    "ignore_instance": (404, "not_found", "instance_group", {"path": {"instance_group": "we/b"}, "body": {}}),
    "unignore_instance": (422, "invalid", "hard", {"body": {"hard": True}}),
    "list_orphans": (422, "invalid", "vm", {"query": "vm=vm-1"}),
    "clean_up_orphan": (422, "invalid", "vm", {"path": {"vm": " "}, "body": {}}),
    "verify": (422, "invalid", "deep", {"body": {"deep": True}}),
    "sweep": (422, "invalid", "deep", {"body": {"deep": True}}),
    "trim_changes": (422, "invalid", "before", {"body": {"before": 0}}),
    "archive_changes": (422, "invalid", "keep_days", {"body": {"keep_days": -1}}),
    "last_change": (422, "invalid", "network", {"query": "network=net1"}),
    "list_utilisation": (422, "invalid", "network", {"query": "network=net1"}),
    "get_utilisation": (404, "not_found", "network", {"path": NOWHERE}),
    "get_map": (404, "not_found", "network", {"path": NOWHERE}),
    "get_timeline": (404, "not_found", "network", {"path": NOWHERE}),
    "list_tokens": (422, "invalid", "revoked", {"query": "revoked=maybe"}),
    "add_token": (422, "invalid", "scopes", {"body": {"name": "shop", "scopes": ["everything"]}}),
    "get_token": (404, "not_found", "token", {"path": {"token": "none"}}),
    "revoke_token": (404, "not_found", "token", {"path": {"token": "none"}, "body": {}}),
    "login": (401, "unauthorised", None, {"body": {"token": "tnr_0_0"}}),
    "logout": (422, "invalid", "now", {"query": "now=1"}),
}


async def test_every_route_is_here() -> None:
    assert set(FAILURES) == {endpoint.name for endpoint in ENDPOINTS}


@pytest.mark.sampled
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_a_request_that_fails_is_told_why_and_changes_nothing(admin: Client, endpoint: Endpoint) -> None:
    status, code, field, asked = FAILURES[endpoint.name]
    await lay_for(admin, endpoint)
    path = at(endpoint.path, **{**PATH_EXAMPLES, **asked.get("path", {})})
    where = f"{path}?{asked['query']}" if "query" in asked else path
    headers = asked.get(
        "headers", ANY if code != "precondition_required" and endpoint.method in ("PATCH", "DELETE") else {}
    )
    problem = await refused(admin, status, code, endpoint.method, where, asked.get("body"), headers=headers)

    assert problem.get("field") == field, problem
    assert problem["type"] == f"urn:tenure:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
