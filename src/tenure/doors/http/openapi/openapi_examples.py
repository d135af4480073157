"""Examples of the OpenAPI document. Each is true: a test asks all of them of a server with the plan below."""

from typing import Any

Json = dict[str, Any]

PLAN: list[Json] = [
    {"op": "network.add", "network": "net1"},
    {"op": "subnet.add", "network": "net1", "cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "name": "subnet1"},
    {"op": "pool.add", "network": "net1", "range": "192.0.2.10-192.0.2.100", "name": "pool1"},
    {"op": "reserve", "network": "net1", "range": "192.0.2.20-192.0.2.50", "reason": "printers"},
    {"op": "preallocation.add", "network": "net1", "owner": "instance/db-0", "address": "192.0.2.60"},
    {"op": "network.connect", "network": "net1", "group": "rack1", "link": "br0"},
    {"op": "allocate", "network": "net1", "owner": "instance/web-0", "address": "192.0.2.10"},
    {"op": "allocate", "network": "net1", "owner": "instance/web-1", "address": "192.0.2.11", "pending": True},
    {"op": "allocate", "network": "net1", "owner": "instance/old", "address": "192.0.2.12"},
    {"op": "release", "network": "net1", "address": "192.0.2.12", "owner": "instance/old", "lingers_s": 3600},
    {"op": "network.add", "network": "lab", "space": "site", "kind": "dynamic"},
    {"op": "subnet.add", "network": "lab", "cidr": "198.51.100.0/24", "name": "bench"},
    {"op": "allocate", "network": "lab", "owner": "instance/try-0", "address": "198.51.100.7"},
    {"op": "write_paper", "kind": "instance", "name": "web-0", "document": {"memory": "4G"}},
]
"""The plan that the examples speak of, as ``:apply`` takes it."""

CLOUD_CONFIG = """\
azs: [{name: z1}]
networks:
- name: apps
  type: manual
  subnets:
  - range: 10.44.16.0/26
    gateway: 10.44.16.1
    az: z1
    static: [10.44.16.10-10.44.16.13]
compilation: {workers: 2, network: apps, az: z1}
"""

MANIFEST = """\
name: shop
instance_groups:
- name: web
  instances: 2
  azs: [z1]
  networks: [{name: apps}]
- name: smoke-test
  lifecycle: errand
  instances: 1
  azs: [z1]
  networks: [{name: apps}]
"""
"""Where examples are of deployments, this cloud config is in force as well, this manifest deployed, and compiled."""

PATH_EXAMPLES: Json = {
    "address": "192.0.2.10",
    "config": "default",
    "deployment": "shop",
    "errand": "smoke-test",
    "ident": "0",
    "instance": "web-0",
    "instance_group": "web",
    "kind": "instance",
    "name": "web-0",
    "network": "net1",
    "owner": "instance/web-0",
    "pool": "pool1",
    "range": "192.0.2.20-192.0.2.50",
    "space": "net1",
    "subnet": "subnet1",
    "token": "ops",
    "vm": "vm-9",
}

SOME_OPERATIONS: Json = {
    "operations": [
        {"op": "allocate", "network": "net1", "owner": "instance/web-4", "zone": "z1"},
        {"op": "release", "network": "net1", "address": "192.0.2.10", "owner": "instance/web-0"},
        {"op": "reserve", "network": "net1", "range": "192.0.2.240/28", "reason": "lab"},
    ]
}

OF_WEB_0: Json = {"address": "192.0.2.10", "owner": "instance/web-0"}

A_HOLDING: Json = {
    "address": "192.0.2.10",
    "last_address": "192.0.2.10",
    "unit": 32,
    "family": "ipv4",
    "network": "net1",
    "prefix": 24,
    "gateway": "192.0.2.1",
    "owner": "instance/web-0",
    "slot": "",
    "state": "held",
    "generation": 17,
    "since": "2026-02-03T04:05:06.789012Z",
    "until": None,
    "request": "ticket-4711",
    "labels": {"team": "shop"},
    "description": "",
    "carrier": "vm-17",
    "plan": None,
    "actor": "token/ops",
    "request_id": "deploy-42",
    "space": 1,
    "network_number": 1,
    "warnings": ["instance/web-0 has held 192.0.2.10 since 2026-02-03 04:05:06 UTC; unchanged: deadline, none"],
}

A_CHANGE: Json = {
    "seq": 1042,
    "at": "2026-02-03T04:05:06.789012Z",
    "verb": "grant",
    "space": 1,
    "network": "net1",
    "network_number": 1,
    "address": "192.0.2.10",
    "last_address": "192.0.2.10",
    "owner": "instance/web-0",
    "slot": "",
    "generation": 17,
    "request": "ticket-4711",
    "actor": "token/ops",
    "request_id": "deploy-42",
    "details": {"labels": {"team": "shop"}},
}

SHAPES: dict[str, Json] = {"Holding": A_HOLDING, "Change": A_CHANGE}
"""Examples of what is answered."""

EXAMPLES: dict[str, Json] = {
    "list_spaces": {},
    "get_space": {},
    "list_networks": {"query": {"limit": 50, "text": "net"}},
    "add_network": {"body": {"name": "net2", "tags": ["lab"], "labels": {"team": "shop"}, "description": "The lab"}},
    "get_network": {},
    "modify_network": {"body": {"description": "Front of house", "labels": {"team": "shop"}}},
    "remove_network": {"path": {"network": "lab"}, "query": {"cascade": True}},
    "connect_network": {"body": {"group": "rack2", "mode": "bridged", "link": "br0", "vlan": "100"}},
    "disconnect_network": {"body": {"group": "rack1"}},
    "list_subnets": {},
    "add_subnet": {"body": {"cidr": "2001:db8::/64", "gateway": "2001:db8::1", "name": "six"}},
    "get_subnet": {},
    "modify_subnet": {"body": {"dns": ["192.0.2.2", "192.0.2.3"], "zones": ["z1"]}},
    "remove_subnet": {"path": {"network": "lab", "subnet": "bench"}, "query": {"cascade": True}},
    "list_pools": {},
    "add_pool": {"body": {"range": "192.0.2.110-192.0.2.120", "name": "spare", "policy": "random", "cooling_s": 300}},
    "get_pool": {},
    "modify_pool": {"body": {"policy": "sticky", "cooling_s": 300}},
    "remove_pool": {},
    "list_reserved": {},
    "reserve": {"body": {"range": "192.0.2.200-192.0.2.210", "reason": "printers", "request": "ticket-4711"}},
    "unreserve": {},
    "list_preallocations": {},
    "preallocate": {"body": {"owner": "instance/db-1", "address": "192.0.2.61"}},
    "remove_preallocation": {"path": {"owner": "instance/db-0"}},
    "allocate": {"body": {"owner": "instance/web-2", "pool": "pool1", "labels": {"team": "shop"}}},
    "allocate_many": {
        "body": {"wishes": [{"owner": "pod/a"}, {"owner": "pod/b", "address": "192.0.2.70"}], "all_or_none": True}
    },
    "release": {"body": OF_WEB_0},
    "release_many": {"body": {"releases": [OF_WEB_0], "all_or_none": False}},
    "list_all_holdings": {"query": {"limit": 100, "state": "held"}},
    "list_holdings": {"query": {"kind": "instance", "limit": 100}},
    "get_holding": {},
    "edit_holding": {"body": {"labels": {"team": "shop"}, "carrier": "vm-17"}},
    "modify_holding": {"body": {"owner": "instance/web-0", "state": "draining"}},
    "confirm": {"path": {"address": "192.0.2.11"}, "body": {"owner": "instance/web-1"}},
    "transfer": {"body": {"owner": "instance/web-0", "to": "instance/web-9"}},
    "cancel": {"path": {"address": "192.0.2.11"}, "body": {"owner": "instance/web-1"}},
    "release_holding": {"body": {"owner": "instance/web-0", "lingers_s": 60}},
    "end_cooling": {"path": {"address": "192.0.2.12"}, "body": {"owner": "instance/old"}},
    "get_owner": {"query": {"network": "net1"}},
    "release_owner": {"body": {"request": "ticket-4711"}},
    "list_claims": {},
    "list_network_claims": {},
    "claim": {"body": {"owner": "instance/web-3", "patience_s": 60, "wait_s": 1}},
    "withdraw": {"body": {"owner": "instance/web-3"}},
    "list_instances": {"query": {"prefix": "web"}},
    "get_instance": {},
    "search": {"query": {"text": "192.0.2.0/28", "limit": 20}},
    "why": {},
    "history": {"query": {"network": "net1"}},
    "list_changes": {"query": {"after": 0, "limit": 100, "verb": "grant"}},
    "follow_changes": {"query": {"after": 0}},
    "list_papers": {"query": {"prefix": "web"}},
    "get_paper": {},
    "list_cloud_configs": {},
    "upload_cloud_config": {"body": {"text": CLOUD_CONFIG, "dry_run": True}},
    "delete_cloud_config": {"path": {"config": "spare"}, "body": {"dry_run": True}},
    "plan_deployment": {"body": {"manifest": MANIFEST, "recreate": True}},
    "apply_deployment": {"body": {"manifest": MANIFEST, "document": "shop.yml"}},
    "list_deployments": {},
    "get_deployment": {},
    "delete_deployment": {"body": {}},
    "abort_deployment": {"body": {"plan": "0f8fad5bd9cb469f"}},
    "diff_deployment": {"body": {"manifest": MANIFEST}},
    "recreate_deployment": {"body": {"dry_run": True}},
    "check_deployment": {"body": {"vms": ["vm-1", "vm-20"]}},
    "compile_deployment": {"body": {"workers": 2}},
    "commit_worker": {"body": {"number": 0, "vm": "vm-20"}},
    "end_compile": {"body": {}},
    "run_errand": {"body": {"dry_run": True}},
    "end_errand": {"body": {}},
    "why_instance": {},
    "recreate_instance": {"body": {"dry_run": True}},
    "recreate_missing": {"body": {"vm": "vm-1"}},
    "delete_reference": {"body": {"vm": "vm-1"}},
    "list_managed_networks": {},
    "commit_instance": {"path": {"ident": "1"}, "body": {"vm": "vm-17"}},
    "fail_instance": {"path": {"ident": "1"}, "body": {}},
    "lose_instance": {"body": {}},
    "stop_instance": {"body": {"hard": True}},
    "start_instance": {"body": {}},
    "ignore_instance": {"body": {}},
    "unignore_instance": {"body": {}},
    "list_orphans": {},
    "clean_up_orphan": {"body": {}},
    "get_self": {},
    "apply": {"body": SOME_OPERATIONS},
    "rehearse": {"body": SOME_OPERATIONS},
    "verify": {"body": {}},
    "sweep": {"body": {}},
    "trim_changes": {"body": {"before": 1}},
    "archive_changes": {"body": {"keep_days": 90.0}},
    "last_change": {},
    "list_utilisation": {},
    "get_utilisation": {},
    "get_map": {"query": {"subnet": "subnet1", "cells": 64}},
    "get_timeline": {"query": {"hours": 24, "points": 48}},
    "list_tokens": {"query": {"revoked": True}},
    "add_token": {"body": {"name": "shop", "scopes": ["read", "allocate:net1"], "expires": "2040-01-01T00:00:00Z"}},
    "get_token": {},
    "revoke_token": {"body": {}},
    "login": {"body": {"token": "tnr_…"}},
    "logout": {},
}
"""By route: what the path, the query and the body say."""
