"""The operator and ones before it, side by side on one cluster: each reads what the other wrote (KP15).

The versions before are commits, taken from the history of this repository and run in a process of their own: the last
one that landed, and the last one that knew nothing of ledgers. A clone without that history fails, and says what
fetches it.
"""

import io
import os
import secrets
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tenure
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    IN_CLUSTER_POOL,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    OWN_ADDRESS,
    annotations_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import LEASE
from tests.infrastructure.kube import OPERATOR, KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_stage import install_in_cluster, our_definitions
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import (
    NETWORK,
    ROOT,
    bound_pool,
    held,
    owner,
    planned_ledger,
    say_where,
)
from tests.integrations.kubernetes.metal3.serving import Namespace, operator_in, until

pytestmark = pytest.mark.proof

LANDED = "eadfd17ee118cc8b060d10bd11b8e256b82ff51d"
"""The commit that landed last: it knows ledgers, in-cluster pools, and addresses that cool off."""
WITHOUT_LEDGERS = "e96ae1e42e"
"""The last commit that knew nothing of ledgers."""
WITHIN_S = 60.0


def sources_of(commit: str, folder: Path) -> Path:
    """Return the sources of a commit, put into a folder."""
    command = ["git", "archive", commit, "src"]
    archived = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if archived.returncode != 0:
        said = archived.stderr.decode().strip()
        pytest.fail(f"this clone has no commit {commit} ({said}); git fetch --unshallow, or git fetch origin {commit}")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the sources of the version that landed last."""
    return sources_of(LANDED, tmp_path_factory.mktemp("landed"))


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the sources of the last version that knew nothing of ledgers."""
    return sources_of(WITHOUT_LEDGERS, tmp_path_factory.mktemp("oldest"))


@contextmanager
def operator(place: Namespace, sources: Path | None = None, *more: str) -> Iterator[None]:
    """Run the command as a replica for a namespace, of this version or from other sources; it leads before long."""
    words = [
        "operator", "--kubeconfig", str(place.server.kubeconfig(OPERATOR)), "--namespaces", place.name,
        "--own-namespace", place.name, "--port", "0", "--no-webhooks", "--orphan-grace", "2", *more,
    ]  # fmt: skip
    environment = {**os.environ, **({"PYTHONPATH": str(sources)} if sources else {})}
    with (place.server.folder / f"operator-{secrets.token_hex(4)}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tenure.doors.cli", *words], cwd=place.server.folder, env=environment, stdout=log,
            stderr=log,
        )  # fmt: skip
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def allow_lease(place: Namespace) -> None:
    """Let the operator keep its Lease in the namespace of the test, so that tests do not fight for one."""
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}]
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{place.name}"
    place.ask("POST", f"{path}/roles", {"metadata": {"name": "lease"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "tenure-operator", "namespace": "tenure-system"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lease"}
    place.ask(
        "POST", f"{path}/rolebindings", {"metadata": {"name": "lease"}, "roleRef": reference, "subjects": [subject]}
    )


def leader(place: Namespace) -> str:
    """Return who leads."""
    return str((place.get(LEASE, "tenure-operator") or {"spec": {}})["spec"].get("holderIdentity") or "")


@pytest.mark.parametrize("version", ["former", "oldest"])
def test_kp15_each_version_goes_on_where_the_other_stopped(
    kube: KubeServer, unserved: Namespace, version: str, request: pytest.FixtureRequest
) -> None:
    """Both run; whichever leads serves, adopts and releases what the other made."""
    place, former = unserved, request.getfixturevalue(version)
    allow_lease(place)
    place.pool("p", "10.0.0.1-10.0.0.9")
    with operator(place, former):
        place.claim("old")
        assert place.served("old", WITHIN_S)["spec"]["address"] == "10.0.0.1"
        first = leader(place)
        with operator(place):
            place.claim("beside")
            assert place.served("beside", WITHIN_S)["spec"]["address"] == "10.0.0.2"
            assert leader(place) == first
    with operator(place), operator(place, former):
        place.claim("new")
        assert place.served("new", WITHIN_S)["spec"]["address"] == "10.0.0.3"
        place.delete(IP_CLAIM, "old")
        until(lambda: place.get(IP_CLAIM, "old") is None, WITHIN_S)
    with operator(place, former):
        place.delete(IP_CLAIM, "new")
        until(lambda: place.get(IP_CLAIM, "new") is None, WITHIN_S)
        place.claim("last")
        assert place.served("last", WITHIN_S)["spec"]["address"] == "10.0.0.1"
        assert len(place.all(IP_ADDRESS)) == 2


def test_kp15_a_pool_on_a_ledger_gives_nothing_under_a_version_without_ledgers(
    kube: KubeServer, unserved: Namespace, oldest: Path
) -> None:
    """It names no range, so an operator that knows no ledgers has nothing to give; what it releases follows later."""
    place = unserved
    allow_lease(place)
    with planned_ledger() as url, tenure.open(url) as ledger:
        say_where(place, url)
        bound_pool(place, "east")
        with operator(place):
            place.claim("c1")
            address = place.served("c1", WITHIN_S)["spec"]["address"]
        with operator(place, oldest):
            place.claim("waits")
            until(lambda: place.message("waits", "Exhausted IP Pools"), WITHIN_S)
            assert place.ip("c1") == address
            place.delete(IP_CLAIM, "c1")
            until(lambda: place.get(IP_CLAIM, "c1") is None, WITHIN_S)
            assert held(ledger) == {owner("east", place, "c1"): address}
        with operator(place):
            place.served("waits", WITHIN_S)
            until(lambda: owner("east", place, "c1") not in held(ledger), WITHIN_S)
            assert place.get(IP_POOL, "p")


def test_kp15_what_a_version_without_ledgers_gives_of_a_bound_range_is_entered_or_reported(
    kube: KubeServer, unserved: Namespace, oldest: Path
) -> None:
    """It knows no ledgers and has ranges to give, also what others hold: that is why pools are bound last."""
    place = unserved
    allow_lease(place)
    with planned_ledger() as url, tenure.open(url) as ledger:
        say_where(place, url)
        bound_pool(place, "east", "10.9.0.10-10.9.0.12")
        ledger.allocate(NETWORK, owner="instance/web", address="10.9.0.10")
        with operator(place, oldest):
            for name in ("c1", "c2"):
                place.claim(name)
            given = {name: place.served(name, WITHIN_S)["spec"]["address"] for name in ("c1", "c2")}
        with operator(place):
            until(lambda: len(held(ledger)) == 2, WITHIN_S)
            until(lambda: "10.9.0.10 is held by instance/web" in str(place.status().get("conditions")), WITHIN_S)

        assert sorted(given.values()) == ["10.9.0.10", "10.9.0.11"]
        assert "10.9.0.11" in held(ledger).values()


def test_kp15_both_versions_know_ledgers_and_what_cools_off(
    kube: KubeServer, unserved: Namespace, former: Path
) -> None:
    """What one has granted, released or remembered counts for the other, in the ledger and in the pool."""
    place = unserved
    allow_lease(place)
    with planned_ledger() as url, tenure.open(url) as ledger:
        say_where(place, url)
        bound_pool(place, "east")
        place.pool("cools", "10.0.0.1-10.0.0.2", tenure={"coolingSeconds": 600})
        for number, sources in enumerate((former, None, former)):
            with operator(place, sources), operator(place, None if sources else former):
                place.claim(f"bound-{number}")
                address = place.served(f"bound-{number}", WITHIN_S)["spec"]["address"]
                if number:
                    release(place, f"bound-{number - 1}")
                until(lambda now=number, at=address: held(ledger) == {owner("east", place, f"bound-{now}"): at})  # type: ignore[misc]
                place.claim(f"cools-{number}", "cools")
                if number < 2:
                    assert place.served(f"cools-{number}", WITHIN_S)["spec"]["address"] == f"10.0.0.{number + 1}"
                    release(place, f"cools-{number}")
                else:
                    assert place.message(f"cools-{number}", "Exhausted IP Pools")


def release(place: Namespace, claim: str) -> None:
    """Delete a claim, and wait until it is gone."""
    place.delete(IP_CLAIM, claim)
    until(lambda: place.get(IP_CLAIM, claim) is None, WITHIN_S)


def test_kp15_both_versions_serve_in_cluster_pools(former: Path) -> None:
    """Each adopts and releases what the other gave."""
    with private_kube() as kube:
        install_in_cluster(kube, our_definitions())
        with fresh_namespace(kube) as name:
            place = Namespace(kube, name)
            allow_lease(place)
            place.create(IN_CLUSTER_POOL, "q", {"addresses": ["10.0.0.1-10.0.0.2"], "prefix": 24})
            only = ("--controllers", "in-cluster")
            with operator(place, former, *only), operator(place, None, *only):
                assert in_cluster_address(place, "a") == "10.0.0.1"
            with operator(place, None, *only), operator(place, former, *only):
                assert in_cluster_address(place, "b") == "10.0.0.2"
                place.delete(CLUSTER_API_CLAIM, "a")
                until(lambda: place.get(CLUSTER_API_ADDRESS, "a") is None, WITHIN_S)
            with operator(place, former, *only):
                place.delete(CLUSTER_API_CLAIM, "b")
                until(lambda: place.get(CLUSTER_API_ADDRESS, "b") is None, WITHIN_S)
                assert in_cluster_address(place, "c") == "10.0.0.1"


def in_cluster_address(place: Namespace, claim: str) -> str:
    """Claim an address of the in-cluster pool, and return it."""
    reference = {"apiGroup": IN_CLUSTER_POOL.group, "kind": IN_CLUSTER_POOL.kind, "name": "q"}
    place.create(CLUSTER_API_CLAIM, claim, {"poolRef": reference})
    return str(until(lambda: place.get(CLUSTER_API_ADDRESS, claim), WITHIN_S)["spec"]["address"])


def test_kp15_the_version_before_serves_what_our_webhooks_judge_and_mark(
    kube: KubeServer, unserved: Namespace, former: Path
) -> None:
    """Both lead for a while, each with a Lease of its own; no address is given twice, and no mark stays."""
    place = unserved
    allow_lease(place)
    place.pool("p", "10.0.0.1-10.0.0.9")
    with operator(place, former):
        place.claim("alone", annotations={BLOCK_MOVE: ""}, finalizers=["ipclaim.ipam.metal3.io"])
        given = {"alone": place.served("alone", WITHIN_S)["spec"]["address"]}
        until(lambda: OWN_ADDRESS in annotations_of(place.get(IP_CLAIM, "alone") or {}))
        with operator_in(kube, place.name):
            for number in range(6):
                place.claim(f"both-{number}")
            given |= {name: place.ip(name) for name in (f"both-{number}" for number in range(6))}
            until(lambda: not any(BLOCK_MOVE in annotations_of(each) for each in place.all(IP_CLAIM)))

    assert len({*given.values()}) == len(given) == 7
