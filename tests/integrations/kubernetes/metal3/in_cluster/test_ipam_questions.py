"""``kubectl tenure why`` and ``free`` about pools of all kinds, and about pools that serve several namespaces."""

from pathlib import Path

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    GLOBAL_POOL,
    IP_CLAIM,
    PREFIX_POOL,
)
from tests.doors.cli.site import Site
from tests.infrastructure.kube import NOBODY, KubeServer
from tests.integrations.kubernetes.cluster import create
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_stage import PoolUser


@pytest.fixture
def site(all_kinds: KubeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a command line whose surroundings name the cluster."""
    monkeypatch.setenv("KUBECONFIG", str(all_kinds.kubeconfig()))
    return Site(tmp_path)


def why(site: Site, user: PoolUser, address: str) -> str:
    """Return the explanation of an address, asked for from the namespace of a user."""
    return site.text("ipam", "why", address, "--namespace", user.space.name)


def test_an_in_cluster_pool_is_explained_and_counted(site: Site, user: PoolUser) -> None:
    home = user.space.name
    user.pool(
        "machines", "10.61.0.0-10.61.0.9", gateway="10.61.0.1", excludedAddresses=["10.61.0.3"],
        addressReuseGracePeriodSeconds=3600,
    )  # fmt: skip
    for name in ("web-0", "web-1"):
        user.claim(name, "machines")
        user.served(name)
    user.release("web-1")
    found = site.json("ipam", "free", "machines", "--namespace", home)

    assert f"held by IPAddressClaim {home}/web-0, as IPAddress web-0 of InClusterIPPool" in why(site, user, "10.61.0.2")
    assert f"cooling in InClusterIPPool {home}/machines until" in why(site, user, "10.61.0.4")
    assert "kept back in InClusterIPPool" in why(site, user, "10.61.0.1")
    assert "the pool excludes it" in why(site, user, "10.61.0.3")
    assert "an address of the network itself" in why(site, user, "10.61.0.0")
    assert why(site, user, "10.61.0.5") == f"10.61.0.5: free in InClusterIPPool {home}/machines\n"
    assert why(site, user, "198.51.100.1") == "198.51.100.1: in no pool here\n"
    assert (found["kind"], found["total"], found["free"], found["used"], found["kept"]) == (
        "InClusterIPPool", 10, 5, 1, 4,
    )  # fmt: skip
    assert found["next"] == [f"10.61.0.{n}" for n in (5, 6, 7, 8, 9)]
    assert "kind     InClusterIPPool\n" in site.text("ipam", "free", "machines", "--namespace", home)


def test_a_pool_of_the_whole_cluster_counts_what_every_namespace_has(
    site: Site, user: PoolUser, neighbour: PoolUser
) -> None:
    name, home, other = f"all-{user.space.name}", user.space.name, neighbour.space.name
    user.pool(name, "10.62.0.1-10.62.0.9", type=GLOBAL_POOL)
    for each in (user, neighbour):
        each.claim("c", name, GLOBAL_POOL)
    given = {each.ip("c") for each in (user, neighbour)}
    found = site.json("ipam", "free", name, "--namespace", home)

    assert given == {"10.62.0.1", "10.62.0.2"}
    assert (found["pool"], found["kind"], found["used"], found["free"]) == (name, "GlobalInClusterIPPool", 2, 7)
    assert f"held by IPAddressClaim {other}/c" in why(site, user, neighbour.ip("c"))


def test_of_a_pool_of_prefixes_prefixes_are_counted_and_their_addresses_explained(site: Site, user: PoolUser) -> None:
    home, spec = user.space.name, {"prefixes": ["fd61::/62"], "excludedPrefixes": ["fd61:0:0:1::/64"]}
    user.create(PREFIX_POOL, "nets", spec)
    user.claim("c", "nets", PREFIX_POOL)
    user.served("c")
    found = site.json("ipam", "free", "nets", "--namespace", home)

    assert (found["total"], found["free"], found["used"], found["kept"]) == (4, 2, 1, 1)
    assert found["next"] == ["fd61:0:0:2::/64", "fd61:0:0:3::/64"]
    assert f"held by IPAddressClaim {home}/c" in why(site, user, "fd61::1234")
    assert "the pool excludes it" in why(site, user, "fd61:0:0:1::7")
    assert "free in InClusterPrefixPool" in why(site, user, "fd61:0:0:2::7")


def test_of_several_pools_of_one_name_the_kind_says_which(site: Site, user: PoolUser) -> None:
    home = user.space.name
    user.space.pool("p", "10.63.0.1-10.63.0.4")
    user.pool("p", "10.64.0.1-10.64.0.9")
    code, error = site.error("ipam", "free", "p", "--namespace", home)

    assert (code, error["message"]) == (2, "several pools have this name: name one of IPPool/p, InClusterIPPool/p")
    for words, total in (("ippool/p", 4), ("InClusterIPPool/p", 9), ("inclusterippools/p", 9)):
        assert site.json("ipam", "free", words, "--namespace", home)["total"] == total
    code, error = site.error("ipam", "free", "globalinclusterippool/p", "--namespace", home)
    assert (code, error["code"]) == (3, "not_found")
    code, error = site.error("ipam", "free", "configmap/p", "--namespace", home)
    assert (code, error["code"]) == (2, "invalid")


def test_6_4_a_shared_ip_pool_counts_what_other_namespaces_have(
    site: Site, user: PoolUser, neighbour: PoolUser
) -> None:
    home, other = user.space, neighbour.space
    home.pool("p", "10.65.0.1-10.65.0.9", tenure={"namespaces": [other.name]})
    other.create(IP_CLAIM, "c", {"pool": {"name": "p", "namespace": home.name}})
    assert other.ip("c") == "10.65.0.1"

    found = site.json("ipam", "free", "p", "--namespace", home.name)
    assert (found["used"], found["free"], found["next"][0]) == (1, 8, "10.65.0.2")
    assert f"held by IPClaim {other.name}/c" in why(site, user, "10.65.0.1")
    drained = site.json("ipam", "drain", "p", "10.65.0.1", "--namespace", home.name)
    assert drained["left"] == 1
    (step,) = drained["holders"]
    assert (step["claim"], step["name"]) == (f"{other.name}/c", f"{other.name}/p-10-65-0-1")


def test_a_user_of_one_namespace_is_answered_and_told_what_could_not_be_read(
    site: Site, user: PoolUser, all_kinds: KubeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a pool that serves other namespaces nothing is counted without the right to see these: it would be wrong."""
    home = user.space.name
    user.pool("p", "10.66.0.1-10.66.0.9")
    user.space.pool("shared", "10.67.0.1-10.67.0.9", tenure={"namespaces": ["*"]})
    _let_nobody_read(all_kinds, home)
    monkeypatch.setenv("KUBECONFIG", str(all_kinds.kubeconfig(NOBODY)))

    assert site.json("ipam", "free", "p", "--namespace", home)["free"] == 9
    assert why(site, user, "10.66.0.1") == f"10.66.0.1: free in InClusterIPPool {home}/p\n"
    unread = "GlobalInClusterIPPools, GlobalInClusterPrefixPools cannot be read with your rights"
    assert why(site, user, "198.51.100.1") == f"198.51.100.1: in no pool here; {unread}\n"
    code, error = site.error("ipam", "free", "elsewhere", "--namespace", home)
    assert (code, "cannot be read with your rights" in error["message"]) == (3, True)
    code, error = site.error("ipam", "free", "shared", "--namespace", home)
    assert (code, error["code"]) == (7, "forbidden")


def _let_nobody_read(server: KubeServer, namespace: str) -> None:
    """Give the user without rights those to read in one namespace."""
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader", "namespace": namespace}}
    groups = ["ipam.metal3.io", "ipam.cluster.x-k8s.io"]
    create(server, {**head, "kind": "Role", "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["list"]}]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}
    create(server, {**head, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]})
