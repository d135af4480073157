"""The operator and the one before it, side by side on one cluster: each reads what the other wrote (KP15).

The version before is the last commit that knew nothing of ledgers, taken from the history of this repository and run in
a process of its own. A clone without that history cannot run it, and says so.
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
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import LEASE
from tests.infrastructure.kube import OPERATOR, KubeServer
from tests.integrations.kubernetes.metal3.ledger.ledger_stage import (
    NETWORK,
    ROOT,
    bound_pool,
    held,
    owner,
    planned_ledger,
    say_where,
)
from tests.integrations.kubernetes.metal3.serving import Namespace, until

pytestmark = pytest.mark.proof

BEFORE = "e96ae1e42e"
"""The commit."""
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the sources of the version before."""
    command = ["git", "archive", BEFORE, "src"]
    archived = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if archived.returncode != 0:
        pytest.skip(f"this clone has no commit {BEFORE}: {archived.stderr.decode()}")
    folder = tmp_path_factory.mktemp("former")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


@contextmanager
def operator(place: Namespace, sources: Path | None = None) -> Iterator[None]:
    """Run the command as a replica for a namespace, of this version or from other sources; it leads before long."""
    words = [
        "operator", "--kubeconfig", str(place.server.kubeconfig(OPERATOR)), "--namespaces", place.name,
        "--own-namespace", place.name, "--port", "0", "--no-webhooks", "--orphan-grace", "2",
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


def test_kp15_each_version_goes_on_where_the_other_stopped(kube: KubeServer, unserved: Namespace, former: Path) -> None:
    """Both run; whichever leads serves, adopts and releases what the other made."""
    place = unserved
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


def test_kp15_a_pool_on_a_ledger_gives_nothing_under_the_version_before(
    kube: KubeServer, unserved: Namespace, former: Path
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
        with operator(place, former):
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


def test_kp15_what_the_version_before_gives_of_a_bound_range_is_entered_or_reported(
    kube: KubeServer, unserved: Namespace, former: Path
) -> None:
    """It knows no ledgers and has ranges to give, also what others hold: that is why pools are bound last."""
    place = unserved
    allow_lease(place)
    with planned_ledger() as url, tenure.open(url) as ledger:
        say_where(place, url)
        bound_pool(place, "east", "10.9.0.10-10.9.0.12")
        ledger.allocate(NETWORK, owner="instance/web", address="10.9.0.10")
        with operator(place, former):
            for name in ("c1", "c2"):
                place.claim(name)
            given = {name: place.served(name, WITHIN_S)["spec"]["address"] for name in ("c1", "c2")}
        with operator(place):
            until(lambda: len(held(ledger)) == 2, WITHIN_S)
            until(lambda: "10.9.0.10 is held by instance/web" in str(place.status().get("conditions")), WITHIN_S)

        assert sorted(given.values()) == ["10.9.0.10", "10.9.0.11"]
        assert "10.9.0.11" in held(ledger).values()
