"""Our definitions against those of Metal3's v1.13.1, and our objects read by Metal3's own types. In ``make proof``."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.build_kube import find_go, run

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.kubernetes.shipped_manifests import documents_of, written
from tests.infrastructure.kube import KubeServer, private_kube
from tests.integrations.kubernetes.cluster import PLACES, await_kind, create
from tests.integrations.kubernetes.metal3.metal3_manager import own_definitions
from tests.integrations.kubernetes.test_custom_resources import (
    ADDRESS_SPEC,
    CLAIM_SPEC,
    CLAIM_STATUS,
    POOL_SPEC,
    POOL_STATUS,
    made,
    stored,
)
from tests.integrations.kubernetes.test_shipped_manifests import run_kubectl

pytestmark = pytest.mark.proof

OURS = {
    "IPPool": {
        "spec.allocationStrategy", "spec.tenure", "status.tenure",  # KD3
        "spec.allocations", "status.allocations", "status.addresses",  # KD2
        "status.indexes[x-kubernetes-map-type]",  # KP10
    },
    "IPClaim": {
        "spec.tenure", "status.tenure",  # KD3
        "spec.owner", "status.ipAddress",  # KD2
    },
    "IPAddress": {
        "spec.Address", "spec.claim.Name", "spec.pool.Name", "status",  # KD2
        *(f"spec.{name}[x-kubernetes-validations]" for name in ("address", "claim", "pool")),  # KP2
    },
}  # fmt: skip
"""All that our definitions have besides Metal3's."""


@pytest.fixture(scope="module")
def theirs() -> dict[str, Object]:
    """Give Metal3's definitions by kind, from the module that the manager is built from."""
    return {each["spec"]["names"]["kind"]: each for each in own_definitions()}


@pytest.fixture(scope="module")
def ours() -> dict[str, Object]:
    return {each["spec"]["names"]["kind"]: each for each in documents_of(["crds"])}


def schema_of(definition: Object) -> Object:
    schema: Object = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def besides(theirs: Object, ours: Object, place: str = "") -> Iterator[str]:
    """Yield what our schema has besides theirs; fail where it lacks something, or says something else."""
    for name, value in theirs.items():
        if name in ("description", "properties", "items", "additionalProperties"):
            continue
        same = sorted(value) == sorted(ours[name]) if name == "required" else value == ours[name]
        assert same, f"{place}[{name}]"
    for name in ("items", "additionalProperties"):
        if name in theirs:
            yield from besides(theirs[name], ours[name], f"{place}[]")
    yield from (f"{place}[{name}]" for name in ours if name not in theirs)
    fields = theirs.get("properties") or {}
    for name, field in (ours.get("properties") or {}).items():
        below = f"{place}.{name}".lstrip(".")
        if name in fields:
            yield from besides(fields[name], field, below)
        else:
            yield below
    assert set(fields) <= set(ours.get("properties") or {}), place


@pytest.mark.parametrize("kind", OURS)
def test_our_definition_has_all_of_metal3s_and_what_is_named_here(
    theirs: dict[str, Object], ours: dict[str, Object], kind: str
) -> None:
    """KD3 and KD2: patterns, required fields and types are the same."""
    assert set(besides(schema_of(theirs[kind]), schema_of(ours[kind]))) == OURS[kind]


@pytest.mark.parametrize("kind", OURS)
def test_a_kind_has_metal3s_names_subresources_and_columns(
    theirs: dict[str, Object], ours: dict[str, Object], kind: str
) -> None:
    """1.1: ``kubectl get m3ipc`` and lists by category stay."""
    their_version, our_version = (each[kind]["spec"]["versions"][0] for each in (theirs, ours))
    columns = {each["name"]: (each["jsonPath"], each["type"]) for each in our_version["additionalPrinterColumns"]}

    for part in ("group", "names", "scope"):
        assert theirs[kind]["spec"][part] == ours[kind]["spec"][part]
    for part in ("name", "served", "storage", "subresources"):
        assert their_version[part] == our_version[part]
    for column in their_version["additionalPrinterColumns"]:
        assert columns[column["name"]] == (column["jsonPath"], column["type"])


@pytest.fixture(scope="module")
def strict_decode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program that decodes with Metal3's types; sums of its modules are written in a copy."""
    folder = tmp_path_factory.mktemp("strict") / "strict_decode"
    shutil.copytree(Path(__file__).parent / "strict_decode", folder)
    run([find_go(), "mod", "tidy"], folder)
    run([find_go(), "build", "-o", "decode", "."], folder)
    return folder / "decode"


def decoded(program: Path, objects: list[Object]) -> tuple[int, str]:
    done = subprocess.run([program], input=json.dumps(objects), capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout + done.stderr


async def test_metal3s_types_read_our_objects_without_the_three_keys(
    kube: KubeServer, client: ApiClient, namespace: str, strict_decode: Path
) -> None:
    """KD3: objects as they are stored, with every field of ours."""
    pool = stored(kube, IP_POOL, made(IP_POOL, namespace, "p", spec=POOL_SPEC))
    claim = stored(kube, IP_CLAIM, made(IP_CLAIM, namespace, "c1", spec=CLAIM_SPEC))
    address = stored(kube, IP_ADDRESS, made(IP_ADDRESS, namespace, "a", spec=ADDRESS_SPEC))
    words: dict[str, Any] = {"content_type": MERGE_PATCH, "subresource": "status"}
    pool = await client.patch(IP_POOL, pool, {"status": POOL_STATUS}, **words)
    claim = await client.patch(IP_CLAIM, claim, {"status": CLAIM_STATUS}, **words)

    assert decoded(strict_decode, [pool, claim, address]) == (0, "")


def test_metal3s_types_refuse_a_fourth_key(strict_decode: Path) -> None:
    """The proof above would see a field too many, also one that differs from a known field by its case only."""
    code, printed = decoded(strict_decode, [made(IP_ADDRESS, "n", "a", spec={**ADDRESS_SPEC, "Address": "10.0.0.10"})])

    assert code == 1
    assert 'unknown field "spec.Address"' in printed


def installed_by_metal3(definition: Object) -> Object:
    """Return a definition as Metal3's installation has it: with a webhook for conversion, which nothing asks."""
    service = {"namespace": "metal3-ipam-system", "name": "ipam-webhook-service", "path": "/convert"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}
    spec = {**definition["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}
    return {**definition, "spec": spec}


def specs(server: KubeServer) -> list[Object]:
    """Return what every object says, without our key."""
    found = [server.ask("GET", kind.path("default"))["items"] for kind in (IP_POOL, IP_CLAIM, IP_ADDRESS)]
    return [{key: value for key, value in each["spec"].items() if key != "tenure"} for items in found for each in items]


def test_our_definitions_take_the_place_of_metal3s_and_the_other_way_round(theirs: dict[str, Object]) -> None:
    """KP15 and KS10: by ``kubectl apply``, under living objects, of which none changes."""
    pool = {"namePrefix": "p", "pools": [{"start": "10.0.0.10", "end": "10.0.0.20"}]}
    claim = {"pool": {"name": "p"}}
    with private_kube() as server:
        for definition in theirs.values():
            create(server, installed_by_metal3(definition))
        for definition in theirs.values():
            await_kind(server, definition)
        stored(server, IP_POOL, made(IP_POOL, "default", "p", spec=pool))
        stored(server, IP_CLAIM, made(IP_CLAIM, "default", "c1", spec=claim))
        stored(server, IP_ADDRESS, made(IP_ADDRESS, "default", "p-10-0-0-10", spec=ADDRESS_SPEC))
        before = specs(server)

        apply(server, documents_of(["crds"]))
        asked = {"address": "10.0.0.11"}
        stored(server, IP_CLAIM, made(IP_CLAIM, "default", "c2", spec={**claim, "tenure": asked}))
        assert specs(server) == [before[0], claim, claim, before[2]]
        server.ask("DELETE", IP_CLAIM.path("default", "c2"))

        apply(server, list(theirs.values()))
        assert specs(server) == before
        kept = [server.ask("GET", f"{PLACES['CustomResourceDefinition']}/{name}") for name in names(theirs)]
        assert [list(besides(schema_of(theirs[each["spec"]["names"]["kind"]]), schema_of(each))) for each in kept] == [
            [], [], [],
        ]  # fmt: skip


def names(definitions: dict[str, Object]) -> list[str]:
    return [each["metadata"]["name"] for each in definitions.values()]


def apply(server: KubeServer, documents: list[Object]) -> None:
    """Apply definitions, and wait until the server judges by them."""
    done = run_kubectl(server, "apply", "-f", "-", fed=written(documents).encode())
    assert done.returncode == 0, done.stderr
    time.sleep(1)  # a definition that was changed shows no sign of being in use
    for document in documents:
        await_kind(server, document)
