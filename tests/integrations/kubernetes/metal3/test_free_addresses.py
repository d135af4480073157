"""What people are told of a pool by one reading of the server; no server is needed."""

from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.explain_address import explain_address
from tenure.integrations.kubernetes.metal3.free_addresses import count_free, drain_document
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import id_of
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, OWN_ADDRESS
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.read_pools import ReadPools
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.kernel.addressing.addresses import parse_address

KEY = PoolId("metal", "p")


def made(kind: ResourceType, name: str, spec: Object, namespace: str = "metal", **metadata: Any) -> Object:
    """Return an object as a server has it."""
    head = {"namespace": namespace, "name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-01-01", **metadata}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": head, "spec": spec}


def pool(**fields: Any) -> Object:
    """Return a pool of two addresses."""
    entries = [{"start": "10.0.0.1", "end": "10.0.0.2"}]
    return made(IP_POOL, "p", {"namePrefix": "p", "pools": entries, "tenure": fields})


def claim(name: str, address: str, namespace: str = "metal") -> Object:
    """Return a claim that names an address as its own."""
    reference = {"pool": {"name": "p", "namespace": "metal"}}
    owner = {"kind": "Machine", "name": f"m-{name}"}
    marks = {"annotations": {OWN_ADDRESS: address}, "ownerReferences": [owner]}
    return made(IP_CLAIM, name, reference, namespace, **marks)


def address(name: str, address: str, claim: str, namespace: str = "metal") -> Object:
    """Return the object of an address."""
    spec = {"address": address, "pool": {"name": "p", "namespace": "metal"}, "claim": {"name": claim}}
    return made(IP_ADDRESS, name, spec, namespace)


def read(pool: Object, claims: tuple[Object, ...] = (), addresses: tuple[Object, ...] = ()) -> ReadPools:
    """Return what the server has."""
    return ReadPools({KEY: pool}, list(addresses), {id_of(claim): claim for claim in claims})


def holders(found: ReadPools) -> list[tuple[str, str, str]]:
    """Return who is named in the plan of a drain: the address, the claim and its owner."""
    return [(each["address"], each["claim"], each["owner"]) for each in drain_document(found, KEY, ())["holders"]]


def test_6_11_a_claim_whose_object_is_gone_keeps_its_address_as_long_as_it_is_there() -> None:
    """It is Terminating while the ledger of its pool does not answer, and has the address in the ledger still."""
    found = read(pool(drain=["10.0.0.1"]), (claim("web-2", "10.0.0.1"), claim("other", "10.0.0.2")))
    plan = drain_document(found, KEY, ())

    assert plan["left"] == 1
    assert holders(found) == [("10.0.0.1", "web-2", "Machine/m-web-2")]


def test_6_11_a_claim_is_named_once_whether_by_its_object_or_by_itself() -> None:
    objects = (address("p-10-0-0-1", "10.0.0.1", "a"),)
    found = read(pool(drain=["10.0.0.0/30"]), (claim("a", "10.0.0.1"), claim("b", "10.0.0.2")), objects)

    assert [each for _, each, _ in holders(found)] == ["a", "b"]


@pytest.mark.parametrize(("namespaces", "named"), [([], []), (["team-b"], ["team-b/c"])])
def test_6_11_a_claim_that_the_pool_does_not_serve_keeps_nothing(namespaces: list[str], named: list[str]) -> None:
    found = read(pool(drain=["10.0.0.1"], namespaces=namespaces), (claim("c", "10.0.0.1", "team-b"),))

    assert [each for _, each, _ in holders(found)] == named


async def test_an_address_whose_object_name_another_has_is_not_free_for_people_either() -> None:
    """The operator cannot create its object, and counts it as used."""
    found = read(pool(), addresses=(address("p-10-0-0-1", "10.0.0.2", "nobody"),))
    counted = await count_free(found, KEY, None, 5)
    (finding,) = explain_address(found, parse_address("10.0.0.1"))

    assert (counted["total"], counted["free"], counted["used"], counted["kept"]) == (2, 0, 2, 0)
    assert counted["next"] == []
    assert counted["names_taken"] == ["10.0.0.1 (IPAddress p-10-0-0-1 is there, for 10.0.0.2)"]
    reason = "its object would be IPAddress p-10-0-0-1, which is there, for 10.0.0.2"
    assert (finding.status, finding.text) == ("kept back", f"kept back in IPPool metal/p: {reason}")


def test_a_pre_allocation_whose_object_name_another_has_says_so() -> None:
    waiting = pool()
    waiting["spec"]["preAllocations"] = {"w": "10.0.0.1"}
    (finding,) = explain_address(
        read(waiting, addresses=(address("p-10-0-0-1", "10.0.0.2", "nobody"),)), parse_address("10.0.0.1")
    )

    assert finding.status == "pre-allocated"
    assert finding.text.endswith("its object would be IPAddress p-10-0-0-1, which is there, for 10.0.0.2")


@pytest.mark.parametrize(
    ("name", "namespace"),
    [("p-10-0-0-1", "team-c"), ("q-10-0-0-1", "metal"), ("p-10-0-0-7", "metal"), ("p", "metal"), ("p-web", "metal")],
)
async def test_other_names_are_in_nobodys_way(name: str, namespace: str) -> None:
    """Of a namespace that the pool does not serve, of another prefix, of no address of the pool."""
    counted = await count_free(read(pool(), addresses=(address(name, "10.0.0.2", "nobody", namespace),)), KEY, None, 5)

    assert (counted["next"], counted["names_taken"]) == (["10.0.0.1"], [])
