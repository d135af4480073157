"""What users ask for and no other operator has, by the numbers of section 6 of the conformance list.

One operator with its webhooks serves two namespaces of a real API server; every test has a pool of its own. Corners are
tried without a server, in ``test_cooling_pools``, ``test_sticky_pools`` and ``test_claim_ranges``.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL, WISHED_ADDRESS
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in, until


class Site(NamedTuple):
    """Two namespaces, and the operator that serves both."""

    home: Namespace
    other: Namespace
    controller: IpamController

    def take(self, pool: str, *claims: str) -> list[str]:
        """Create claims, and return their addresses."""
        for name in claims:
            self.home.claim(name, pool)
        return [self.home.ip(name) for name in claims]

    def release(self, *claims: str) -> None:
        """Delete claims, and wait until they are gone."""
        for name in claims:
            self.home.delete(IP_CLAIM, name)
        for name in claims:
            self.home.gone(IP_CLAIM, name)

    def condition(self, pool: str, type: str) -> Object:
        """Return a condition of a pool; nothing in it, if the pool does not have it."""
        known = self.home.status(pool).get("conditions") or []
        return next((each for each in known if each["type"] == type), {})


@pytest.fixture(scope="module")
def site(kube: KubeServer) -> Iterator[Site]:
    with fresh_namespace(kube) as home, fresh_namespace(kube) as other, operator_in(kube, home, other) as controller:
        yield Site(Namespace(kube, home), Namespace(kube, other), controller)


def asking(site: Site, name: str, pool: str, **tenure: Any) -> Object:
    return site.home.create(IP_CLAIM, name, {"pool": {"name": pool}, "tenure": tenure})


def test_6_5_pools_of_one_network_are_compared_across_namespaces_and_others_may_overlap(site: Site) -> None:
    site.home.pool("o-lan", "10.5.0.1-10.5.0.9", tenure={"network": "lan"})
    site.home.pool("o-dmz", "10.5.0.1-10.5.0.9", tenure={"network": "dmz"})
    site.other.pool("o-far", "10.5.0.5-10.5.0.20", tenure={"network": "lan"})

    said = until(lambda: site.condition("o-lan", "Overlapping").get("message"))
    assert said.startswith(f"it shares 10.5.0.5-10.5.0.9 with IPPool {site.other.name}/o-far: ")
    assert until(lambda: site.condition("o-dmz", "Ready"))["status"] == "True"
    assert site.condition("o-dmz", "Overlapping") == {}
    site.other.patch(IP_POOL, "o-far", {"spec": {"tenure": {"network": "wan"}}})
    until(lambda: not site.condition("o-lan", "Overlapping"))


def test_6_6_counts_and_utilisation_are_told_for_each_family(site: Site) -> None:
    site.home.pool("counts", "10.6.0.1-10.6.0.4", "fd06::1-fd06::10", gateway="10.6.0.1")
    site.take("counts", "counts-a", "counts-b")

    until(lambda: site.home.status("counts").get("addresses", {}).get("used") == 2)
    status = site.home.status("counts")
    assert status["addresses"] == {
        "total": 20, "free": 17, "used": 2, "kept": 1, "usedPercent": 10, "outside": 0, "waiting": 0,
    }  # fmt: skip
    assert status["families"] == [
        {"family": "IPv4", "total": 4, "free": 1, "used": 2, "kept": 1, "usedPercent": 66},
        {"family": "IPv6", "total": 16, "free": 16, "used": 0, "kept": 0, "usedPercent": 0},
    ]
    samples = {
        (each.name, (each.labels or {}).get("family")): each.value
        for each in site.controller.samples()
        if (each.labels or {}).get("pool") == "counts"
    }
    of_v4 = {name: samples[f"tenure_operator_pool_{name}", "IPv4"] for name in ("total", "free", "used", "kept")}
    assert of_v4 == {"total": 4, "free": 1, "used": 2, "kept": 1}
    assert round(samples["tenure_operator_pool_used_ratio", "IPv4"], 2) == 0.67


def test_6_8_a_released_address_cools_off_and_neither_its_claim_nor_the_line_waits_for_ever(site: Site) -> None:
    site.home.pool("cool", "10.8.0.1-10.8.0.1", tenure={"coolingSeconds": 2})
    site.take("cool", "cool-a")
    site.home.delete(IP_CLAIM, "cool-a")
    site.home.claim("cool-b", "cool")
    began = time.time()
    site.home.gone(IP_CLAIM, "cool-a")
    (entry,) = site.home.status("cool")["cooling"]
    assert (entry["address"], entry["claim"]) == ("10.8.0.1", f"{site.home.name}/cool-a")
    assert site.home.all(IP_ADDRESS) == [each for each in site.home.all(IP_ADDRESS) if "cool" not in str(each["spec"])]

    assert site.home.ip("cool-b") == "10.8.0.1"
    assert time.time() - began > 1.5
    assert "cooling" not in site.home.status("cool")


def test_6_9_a_claim_made_again_under_its_name_gets_its_former_address(site: Site) -> None:
    site.home.pool("sticky", "10.9.0.1-10.9.0.3", tenure={"sticky": True, "coolingSeconds": 3600})
    assert site.take("sticky", "host-0", "host-1") == ["10.9.0.1", "10.9.0.2"]
    site.release("host-0", "host-1")

    assert site.take("sticky", "stranger", "host-1") == ["10.9.0.3", "10.9.0.2"]
    until(lambda: [each["address"] for each in site.home.status("sticky").get("remembered") or []] == ["10.9.0.1"])
    assert [each["address"] for each in site.home.status("sticky")["cooling"]] == ["10.9.0.1"]
    assert site.take("sticky", "host-0") == ["10.9.0.1"]


def test_6_10_a_claim_gets_an_address_of_its_ranges_and_waits_while_there_is_none(site: Site) -> None:
    site.home.pool("ranged", "10.10.0.1-10.10.0.200", "fd10::1-fd10::ff")
    wishes: list[tuple[str, Object, str]] = [
        ("r-one", {"address": "10.10.0.77"}, "10.10.0.77"),
        ("r-two", {"ranges": ["10.10.0.100/31", "10.10.0.50"]}, "10.10.0.100"),
        ("r-three", {"ranges": ["10.10.0.100-10.10.0.101"]}, "10.10.0.101"),
        ("r-six", {"ranges": ["fd10::80/121"]}, "fd10::80"),
    ]
    for name, tenure, given in wishes:
        asking(site, name, "ranged", **tenure)
        assert site.home.ip(name) == given
    asking(site, "r-late", "ranged", ranges=["10.10.0.100-10.10.0.101"])
    assert site.take("ranged", "r-any") == ["10.10.0.1"]
    assert site.home.message("r-late", "No address of 10.10.0.100-10.10.0.101 is free in IPPool ranged")
    site.release("r-three")
    assert site.home.ip("r-late") == "10.10.0.101"


def test_6_10_what_contradicts_itself_is_refused_with_its_place(site: Site) -> None:
    wishes: list[tuple[str, Object, dict[str, str]]] = [
        ("spec.tenure.ranges[1]: ", {"ranges": ["10.0.0.1", "10.0.0.9-10.0.0.1"]}, {}),
        ("spec.tenure.address: ", {"address": "10.0.0.9", "ranges": ["10.0.0.1"]}, {}),
        ("metadata.annotations.ipAddress: ", {"ranges": ["10.0.0.1"]}, {WISHED_ADDRESS: "10.0.0.9"}),
        ("spec.tenure.address: ", {"address": "10.0.0.1"}, {WISHED_ADDRESS: "10.0.0.9"}),
    ]
    for place, tenure, annotations in wishes:
        with pytest.raises(RefusedByServer, match="is invalid") as refused:
            site.home.create(IP_CLAIM, "wrong", {"pool": {"name": "q"}, "tenure": tenure}, annotations=annotations)
        assert (refused.value.code, place in str(refused.value)) == (422, True), str(refused.value)
    asking(site, "r-fixed", "nowhere", ranges=["10.0.0.1"])
    with pytest.raises(RefusedByServer, match=r"spec\.tenure: .*cannot be modified"):
        site.home.patch(IP_CLAIM, "r-fixed", {"spec": {"tenure": {"ranges": ["10.0.0.2"]}}})


def test_6_11_a_drain_has_a_plan_and_an_end(site: Site) -> None:
    pool = site.home.pool("drained", "10.11.0.1-10.11.0.2", "10.11.1.1-10.11.1.9")
    owner = {"apiVersion": "example.org/v1", "kind": "Metal3Data", "name": "data-0", "uid": "1", "controller": True}
    site.home.claim("d-a", "drained", ownerReferences=[owner])
    assert [site.home.ip("d-a"), *site.take("drained", "d-b")] == ["10.11.0.1", "10.11.0.2"]
    site.home.patch(IP_POOL, "drained", {"spec": {"tenure": {"drain": ["10.11.0.0/24"]}}})

    assert until(lambda: site.condition("drained", "Drained"))["status"] == "False"
    plan = site.home.status("drained")["drain"]
    assert (plan["left"], plan["holders"][0]) == (2, {
        "address": "10.11.0.1", "name": "drained-10-11-0-1", "kind": "IPClaim", "claim": "d-a",
        "owner": "Metal3Data/data-0",
    })  # fmt: skip
    with pytest.raises(RefusedByServer, match="in use but out of bounds"):
        site.home.patch(IP_POOL, "drained", {"spec": {"pools": [{"start": "10.11.1.1", "end": "10.11.1.9"}]}})
    assert site.take("drained", "d-c") == ["10.11.1.1"]
    site.release("d-a", "d-b")
    until(lambda: site.condition("drained", "Drained")["status"] == "True")
    assert site.home.status("drained")["drain"]["left"] == 0
    assert until(lambda: [each for each in site.home.events(pool) if each["reason"] == "Drained"])
    site.home.patch(
        IP_POOL, "drained", {"spec": {"pools": [{"start": "10.11.1.1", "end": "10.11.1.9"}], "tenure": None}}
    )
    until(lambda: not site.condition("drained", "Drained"))
