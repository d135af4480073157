"""Two replicas of the command, as a cluster runs them (KP2, KP7).

They have the account's own token, the certificate that they make, and the roles and webhooks that are shipped. Nothing
routes Services here, so the webhooks have a URL.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLAIM_FINALIZER,
    IP_CLAIM,
    IP_POOL,
    POOL_FINALIZER,
    finalizers_of,
)
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import OPERATOR, KubeServer
from tests.integrations.kubernetes.cluster import PLACES, create
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, until
from tests.integrations.kubernetes.test_operator import ONE_LEASE, Replica, operator

CONFIGURATIONS = [
    f"{PLACES[kind]}/tenure-operator" for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
]


def kubeconfig_of_account(server: KubeServer, folder: Path) -> Path:
    """Write a kubeconfig with a token that the server makes for the operator's ServiceAccount."""
    path = "/api/v1/namespaces/tenure-system/serviceaccounts/tenure-operator/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    document = json.loads(server.kubeconfig(OPERATOR).read_text("utf-8"))
    document["users"][0]["user"]["token"] = server.ask("POST", path, request)["status"]["token"]
    written = folder / "kubeconfig"
    written.write_text(json.dumps(document), "utf-8")
    return written


@contextmanager
def webhooks_at(server: KubeServer, namespace: str, port: int) -> Iterator[None]:
    """Register the shipped webhooks for a namespace, for as long as the block; the operator writes its CA into them."""
    for document in documents_of(["webhooks"], namespaces=[namespace], webhook_url=f"https://127.0.0.1:{port}"):
        create(server, document)
    try:
        yield
    finally:
        for path in CONFIGURATIONS:
            server.ask("DELETE", path)


def direct(server: KubeServer, replica: Replica) -> None:
    """Let the server ask another replica from now on."""
    for path in CONFIGURATIONS:
        hooks = [each["clientConfig"]["url"].rpartition("/")[2] for each in server.ask("GET", path)["webhooks"]]
        url = f"https://127.0.0.1:{replica.said['webhook_port']}"
        steps = [
            {"op": "replace", "path": f"/webhooks/{number}/clientConfig/url", "value": f"{url}/{word}"}
            for number, word in enumerate(hooks)
        ]
        server.ask("PATCH", path, steps, content_type="application/json-patch+json")


def asked(replica: Replica) -> float:
    """Return how often the webhooks of a replica were asked."""
    lines = replica.get("/metrics")[1].splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith("tenure_operator_webhook_requests_total{"))


def until_asked(space: Namespace, replica: Replica) -> None:
    """Wait until the server asks a replica, and trusts it: it hears of a changed URL or CA some time later."""
    before = asked(replica)

    def is_asked() -> bool:
        body = {"apiVersion": IP_CLAIM.api_version, "kind": "IPClaim", "metadata": {"generateName": "dry-"}}
        try:
            space.ask("POST", f"{IP_CLAIM.path(space.name)}?dryRun=All", {**body, "spec": {"pool": {"name": "none"}}})
        except RefusedByServer as error:
            if "failed to verify certificate" not in str(error):
                raise
        return asked(replica) >= before + 2  # both webhooks

    until(is_asked)


@pytest.fixture
def replicas(kube: KubeServer, namespace: str, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    """Give the replica that leads, and the other one, both ready."""
    config, ports = kubeconfig_of_account(kube, tmp_path), [free_port(), free_port()]
    words = [("--namespaces", namespace, "--webhook-port", str(port)) for port in ports]
    with (
        webhooks_at(kube, namespace, ports[0]),
        operator(config, *words[0]) as first,
        operator(config, *words[1]) as second,
    ):
        for each in (first, second):
            until(lambda each=each: each.get("/readyz") == (200, "ok\n"), within_s=40)  # type: ignore[misc]
        until(lambda: first.leads() or second.leads(), within_s=40)
        yield (first, second) if first.leads() else (second, first)


@ONE_LEASE
def test_kp2_kp7_each_of_two_replicas_judges_by_its_own_caches_and_one_of_them_serves(
    kube: KubeServer, namespace: str, replicas: tuple[Replica, Replica]
) -> None:
    """The server asks the replica that does not lead first, then the leader, and the other one is not asked."""
    space = Namespace(kube, namespace)
    leader, follower = replicas
    for name, replica, other in (("f", follower, leader), ("l", leader, follower)):
        direct(kube, replica)
        until_asked(space, replica)
        before = asked(other)
        pool = space.pool(name, "10.0.0.1-10.0.0.9")
        claim = space.claim(f"{name}-c", name)
        assert pool["spec"]["allocationStrategy"] == "sequential"
        assert (finalizers_of(pool), finalizers_of(claim)) == ([POOL_FINALIZER], [CLAIM_FINALIZER])
        assert space.ip(f"{name}-c") == "10.0.0.1"
        until(lambda name=name, replica=replica: holds(replica, name))  # type: ignore[misc]

        with pytest.raises(RefusedByServer, match="in use but out of bounds") as refused:
            space.patch(IP_POOL, name, {"spec": {"pools": [{"start": "10.0.0.2", "end": "10.0.0.9"}]}})
        assert refused.value.code == 422
        assert f'10.0.0.1": is in use but out of bounds of the pools given: IPAddress {name}-10-0-0-1' in str(
            refused.value
        )
        assert asked(other) == before


def holds(replica: Replica, pool: str) -> bool:
    """Return whether a replica knows that an address of a pool of nine is in use."""
    return f'pool="{pool}",family="IPv4"}} 8\n' in replica.get("/metrics")[1]
