"""The definitions of Metal3's kinds, on a server without webhooks: what is kept, what is refused, what is shown."""

import copy
import urllib.error
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3.objects.pool_kinds import IN_CLUSTER_POOLS
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer

TIME = "2026-11-17T12:00:00Z"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

POOL_SPEC: Object = {
    "namePrefix": "p",
    "clusterName": "c",
    "allocationStrategy": "random",
    "pools": [{"start": "10.0.0.10", "end": "10.0.0.20", "subnet": "10.0.0.0/24", "dnsServers": ["10.0.0.2"]}],
    "tenure": {
        "outsidePreAllocations": "allow",
        "external": False,
        "reservedAddresses": "give",
        "drain": ["10.0.0.11", "10.0.0.12-10.0.0.13", "10.0.0.16/30"],
        "coolingSeconds": 31536000,
        "sticky": True,
        "network": "vlan-7",
        "outlivesCluster": True,
        "namespaces": ["team-a", "*"],
        "ledger": {"network": "n", "realm": "east", "secretName": "s", "server": "https://ledger.example.org"},
    },
}
CONDITION = {"type": "Ready", "status": "False", "reason": "Full", "message": "m", "lastTransitionTime": TIME}
COUNTS = {"total": 11, "free": 4, "used": 2, "kept": 5, "usedPercent": 33, "outside": 1, "waiting": 1}
POOL_STATUS: Object = {
    "indexes": {"c1": "10.0.0.10", "c2": "10.0.0.14"},
    "lastUpdated": TIME,
    "tenure": {
        "observedGeneration": 1,
        "addresses": {**COUNTS, "total": 2**63 - 1},
        "families": [
            {"family": "IPv4", "total": 11, "free": 4, "used": 2, "kept": 5, "usedPercent": 33},
            {"family": "IPv6", "total": 0, "free": 0},
        ],
        "reserving": [{"address": "10.0.0.15", "uid": "u", "kind": "IPClaim"}],
        "cooling": [{"address": "10.0.0.16", "until": TIME, "claim": "n/c1", "kind": "IPClaim"}],
        "remembered": [{"address": "10.0.0.16", "claim": "n/c1", "kind": "IPClaim"}],
        "foreign": [{"address": "10.0.0.14", "name": "by-hand", "claim": "c2"}],
        "orphans": [{"address": "10.0.0.17", "name": "p-10-0-0-17", "since": TIME}],
        "ledger": {"network": "n", "observedAt": TIME},
        "conditions": [CONDITION],
    },
}
CLAIM_SPEC: Object = {"pool": {"name": "p"}, "tenure": {"address": "10.0.0.10", "ranges": ["10.0.0.0/25"]}}
CLAIM_STATUS: Object = {
    "address": {"name": "p-10-0-0-10", "namespace": "n"},
    "errorMessage": "",
    "tenure": {"address": "10.0.0.10", "since": TIME, "conditions": [CONDITION]},
}
ADDRESS_SPEC: Object = {
    "address": "10.0.0.10",
    "prefix": 24,
    "gateway": "10.0.0.1",
    "pool": {"name": "p", "namespace": "n"},
    "claim": {"name": "c1", "namespace": "n"},
}


def made(kind: ResourceType, namespace: str, name: str, **parts: Any) -> Object:
    metadata = {"namespace": namespace, "name": name, **parts.pop("metadata", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **copy.deepcopy(parts)}


def stored(kube: KubeServer, kind: ResourceType, document: Object) -> Object:
    """Create an object as the administrator, with every field checked."""
    path = kind.path(document["metadata"]["namespace"]) + "?fieldValidation=Strict"
    answer: Object = kube.ask("POST", path, document)
    return answer


def refusal(kube: KubeServer, kind: ResourceType, document: Object) -> str:
    with pytest.raises(urllib.error.HTTPError) as caught:
        stored(kube, kind, document)
    assert caught.value.code == 422
    return str(caught.value.read().decode())


async def test_a_server_keeps_every_field_that_is_ours(kube: KubeServer, client: ApiClient, namespace: str) -> None:
    """KD3: all fields are in the first definition, also those that nothing serves yet."""
    pool = stored(kube, IP_POOL, made(IP_POOL, namespace, "p", spec=POOL_SPEC))
    claim = stored(kube, IP_CLAIM, made(IP_CLAIM, namespace, "c1", spec=CLAIM_SPEC))
    words: dict[str, Any] = {"content_type": MERGE_PATCH, "subresource": "status"}
    pool = await client.patch(IP_POOL, pool, {"status": POOL_STATUS}, **words)
    claim = await client.patch(IP_CLAIM, claim, {"status": CLAIM_STATUS}, **words)

    assert (pool["spec"], pool["status"]) == (POOL_SPEC, POOL_STATUS)
    assert (claim["spec"], claim["status"]) == (CLAIM_SPEC, CLAIM_STATUS)


async def test_a_map_of_thousands_of_addresses_has_one_record_of_its_writer(
    kube: KubeServer, client: ApiClient, namespace: str
) -> None:
    """KP10: ``status.indexes`` is atomic, and the field manager is the operator."""
    pool = stored(kube, IP_POOL, made(IP_POOL, namespace, "p", spec=POOL_SPEC))
    indexes = {f"claim-{number}": f"10.0.{number // 250}.{number % 250}" for number in range(2000)}
    status = {"status": {"indexes": indexes}}
    pool = await client.patch(IP_POOL, pool, status, content_type=MERGE_PATCH, subresource="status")

    [record] = [each for each in pool["metadata"]["managedFields"] if each.get("subresource") == "status"]
    assert record["manager"] == "tenure-operator"
    assert record["fieldsV1"] == {"f:status": {".": {}, "f:indexes": {}}}


def seeds_pool(namespace: str) -> Object:
    """Write the seed's pool, with its names in lower case and without invented owners (KD1)."""
    fixed = {"rendereddata-10": "192.168.0.9", "rendereddata-9": "192.168.0.8"}
    ranges = [
        {
            "start": f"192.168.{net}.10", "end": f"192.168.{net}.15", "subnet": f"192.168.{net}.0/24",
            "gateway": f"192.168.{net}.1", "prefix": 24,
        }
        for net in (0, 1)
    ]  # fmt: skip
    spec = {
        "clusterName": "cluster-1", "pools": ranges, "gateway": "192.168.1.1", "prefix": 24, "preAllocations": fixed,
        "namePrefix": "provisioning",
    }  # fmt: skip
    status = {"lastUpdated": "2020-04-02T06:36:09Z", "allocations": {"rendereddata-1": "192.168.0.11", **fixed}}
    return made(IP_POOL, namespace, "pool-1", spec=spec, status={**status, "addresses": {"rendereddata-1": "pool-1-a"}})


def seeds_claim(namespace: str) -> Object:
    """Write the seed's claim."""
    spec = {"owner": {"name": "rendereddata-1"}, "pool": {"name": "pool-1"}}
    status = {"ipAddress": {"name": "pool-1-192-168-0-11"}, "errorMessage": ""}
    return made(IP_CLAIM, namespace, "rendereddata-1", spec=spec, status=status)


def seeds_address(namespace: str) -> Object:
    """Write the seed's address."""
    spec = {
        "claim": {"Name": "rendereddata-1"}, "Address": "192.168.0.11", "prefix": 24, "gateway": "192.168.0.1",
        "pool": {"Name": "pool-1"},
    }  # fmt: skip
    return made(IP_ADDRESS, namespace, "pool-1-192-168-0-11", spec=spec, status={"ready": True})


def test_former_spellings_reach_the_webhook(kube: KubeServer, namespace: str) -> None:
    """KD2: a field that is not listed would be refused here, and dropped before admission where nobody is strict."""
    stored(kube, IP_POOL, seeds_pool(namespace))
    claim = stored(kube, IP_CLAIM, seeds_claim(namespace))
    address = seeds_address(namespace)
    without_webhook = refusal(kube, IP_ADDRESS, address)
    translated = copy.deepcopy(address)
    translated["spec"]["address"] = "192.168.0.11"
    kept = stored(kube, IP_ADDRESS, translated)

    assert claim["spec"]["owner"] == {"name": "rendereddata-1"}
    assert "spec.address: Required value" in without_webhook
    assert "unknown" not in without_webhook
    assert (kept["spec"], kept["status"]) == (translated["spec"], address["status"])


def test_what_a_deprecated_spelling_is_called_today_stands_in_its_description() -> None:
    """KD2: ``kubectl explain`` prints it."""
    pool, claim, address = (
        each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] for each in documents_of(["crds"])
    )
    spec = address["spec"]["properties"]
    fields = [
        pool["status"]["properties"]["allocations"], pool["status"]["properties"]["addresses"],
        claim["spec"]["properties"]["owner"], claim["status"]["properties"]["ipAddress"],
        spec["Address"], spec["claim"]["properties"]["Name"], spec["pool"]["properties"]["Name"], address["status"],
    ]  # fmt: skip

    assert [field["description"].split(":")[0] for field in fields] == ["Deprecated"] * len(fields)


@pytest.mark.parametrize("field", ["address", "claim", "pool"])
def test_an_address_its_pool_and_its_claim_cannot_be_modified(kube: KubeServer, namespace: str, field: str) -> None:
    """B5 and KP2: by the definition itself, with the path and reason that the webhook has; also for administrators."""
    address = stored(kube, IP_ADDRESS, made(IP_ADDRESS, namespace, "a", spec=ADDRESS_SPEC))
    address["spec"][field] = "10.0.0.11" if field == "address" else {**ADDRESS_SPEC[field], "name": "other"}

    with pytest.raises(urllib.error.HTTPError) as caught:
        kube.ask("PUT", IP_ADDRESS.path_of(address), address)
    message = caught.value.read().decode()
    assert caught.value.code == 422
    assert f"spec.{field}: Invalid value: " in message
    assert message.count("cannot be modified") == 2  # in the message, and in its one cause


def test_references_are_compared_by_name_namespace_and_kind_alone(kube: KubeServer, namespace: str) -> None:
    """B5, B6: an apiVersion may be added, and prefix, gateway and name servers may change."""
    address = stored(kube, IP_ADDRESS, made(IP_ADDRESS, namespace, "a", spec=ADDRESS_SPEC))
    address["spec"]["pool"]["apiVersion"] = IP_POOL.api_version
    address["spec"] |= {"prefix": 25, "gateway": "10.0.0.2", "dnsServers": ["10.0.0.3"]}
    changed = kube.ask("PUT", IP_ADDRESS.path_of(address), address)
    assert changed["spec"] == address["spec"]

    del changed["spec"]["claim"]["namespace"]
    with pytest.raises(OSError, match="422"):
        kube.ask("PUT", IP_ADDRESS.path_of(changed), changed)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"allocationStrategy": "lifo"}, "spec.allocationStrategy"),
        ({"tenure": {"coolingSeconds": 31536001}}, "spec.tenure.coolingSeconds"),
        ({"tenure": {"namespaces": ["Team"]}}, "spec.tenure.namespaces[0]"),
        ({"tenure": {"ledger": {"network": "n"}}}, "spec.tenure.ledger.secretName"),
        ({"tenure": {"outsidePreAllocations": "perhaps"}}, "spec.tenure.outsidePreAllocations"),
    ],
)
def test_a_value_that_no_version_knows_is_refused_with_its_place(
    kube: KubeServer, namespace: str, spec: Object, field: str
) -> None:
    """A3 and KD3."""
    assert f"{field}: " in refusal(kube, IP_POOL, made(IP_POOL, namespace, "p", spec={"namePrefix": "p", **spec}))


async def rows(client: ApiClient, kind: ResourceType, namespace: str) -> list[dict[str, Any]]:
    """Ask for objects as ``kubectl get`` does."""
    table = await client.get(kind.path(namespace), accept=TABLE)
    names = [each["name"] for each in table["columnDefinitions"]]
    return [dict(zip(names, each["cells"], strict=True)) for each in table["rows"]]


async def test_a_list_shows_addresses_and_what_is_free(kube: KubeServer, client: ApiClient, namespace: str) -> None:
    """``kubectl get``: pools with free and total, claims with address or message, addresses with pool and claim."""
    labels = {"labels": {"cluster.x-k8s.io/cluster-name": "c"}}
    pool = stored(kube, IP_POOL, made(IP_POOL, namespace, "p", spec=POOL_SPEC, metadata=labels))
    has = stored(kube, IP_CLAIM, made(IP_CLAIM, namespace, "c1", spec=CLAIM_SPEC))
    waiting = stored(kube, IP_CLAIM, made(IP_CLAIM, namespace, "c2", spec={"pool": {"name": "p"}}))
    stored(kube, IP_ADDRESS, made(IP_ADDRESS, namespace, "p-10-0-0-10", spec=ADDRESS_SPEC))
    words: dict[str, Any] = {"content_type": MERGE_PATCH, "subresource": "status"}
    await client.patch(IP_POOL, pool, {"status": {"tenure": {"addresses": COUNTS}}}, **words)
    await client.patch(IP_CLAIM, has, {"status": {"tenure": {"address": "10.0.0.10"}}}, **words)
    await client.patch(IP_CLAIM, waiting, {"status": {"errorMessage": "Exhausted IP Pools"}}, **words)
    [pools], claims, [address] = [await rows(client, kind, namespace) for kind in (IP_POOL, IP_CLAIM, IP_ADDRESS)]

    assert {key: value for key, value in pools.items() if key != "Age"} == {
        "Name": "p", "Cluster": "c", "Free": 4, "Used": 2, "Total": 11, "Used%": 33, "Waiting": 1, "Strategy": "random",
    }  # fmt: skip
    assert [(each["Name"], each["Address"], each["Pool"], each["Message"]) for each in claims] == [
        ("c1", "10.0.0.10", "p", None), ("c2", None, "p", "Exhausted IP Pools"),
    ]  # fmt: skip
    assert (address["Address"], address["Prefix"], address["Pool"], address["Claim"]) == ("10.0.0.10", 24, "p", "c1")
    assert address["Gateway"] == "10.0.0.1"


def test_an_address_has_no_status_to_be_written_apart(kube: KubeServer, namespace: str) -> None:
    """KD2: ``status`` of an address is listed for the seed's sake alone."""
    address = stored(kube, IP_ADDRESS, made(IP_ADDRESS, namespace, "a", spec=ADDRESS_SPEC))

    with pytest.raises(OSError, match="404"):
        kube.ask("GET", IP_ADDRESS.path_of(address, "status"))


async def test_the_operator_may_give_an_address_its_owners_and_a_pool_its_cluster(
    kube: KubeServer, client: ApiClient, namespace: str
) -> None:
    """KP7: the server enforces permissions on owner references, also on those that block a deletion."""
    pool = stored(kube, IP_POOL, made(IP_POOL, namespace, "p", spec=POOL_SPEC))
    claim = stored(kube, IP_CLAIM, made(IP_CLAIM, namespace, "c1", spec=CLAIM_SPEC))
    owners = [
        {
            "apiVersion": IP_POOL.api_version, "kind": each["kind"], "name": each["metadata"]["name"],
            "uid": each["metadata"]["uid"], "blockOwnerDeletion": True,
        }
        for each in (pool, claim)
    ]  # fmt: skip
    document = made(IP_ADDRESS, namespace, "p-10-0-0-10", spec=ADDRESS_SPEC, metadata={"ownerReferences": owners})
    address = await client.create(IP_ADDRESS, document)
    cluster = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "u"}
    step = {"op": "add", "path": "/metadata/ownerReferences", "value": [cluster]}
    pool = await client.patch(IP_POOL, pool, [step])

    assert address["metadata"]["ownerReferences"] == owners
    assert pool["metadata"]["ownerReferences"] == [cluster]


def test_clusterctl_finds_the_kinds_and_moves_pools_and_claims() -> None:
    """KD6."""
    labels = {each["spec"]["names"]["kind"]: each["metadata"]["labels"] for each in documents_of(["crds"])}
    moved = "clusterctl.cluster.x-k8s.io"

    assert all(each["cluster.x-k8s.io/provider"] == "ipam-metal3" and moved in each for each in labels.values())
    assert {kind: [each for each in found if each.startswith(f"{moved}/")] for kind, found in labels.items()} == {
        "IPPool": [f"{moved}/move-hierarchy"],
        "IPClaim": [f"{moved}/move"],
        "IPAddress": [],
    }


def test_3_3_clusterctl_finds_the_in_cluster_pools_and_moves_them_with_all_that_they_own() -> None:
    """KP16: as the provider's own definitions say it."""
    labels = {each["spec"]["names"]["kind"]: each["metadata"]["labels"] for each in documents_of(["in-cluster-crds"])}
    moved = "clusterctl.cluster.x-k8s.io"

    assert labels.keys() == {each.type.kind for each in IN_CLUSTER_POOLS}
    for each in labels.values():
        assert each["cluster.x-k8s.io/provider"] == "ipam-in-cluster"
        assert [name for name in each if name.startswith(moved)] == [moved, f"{moved}/move-hierarchy"]
