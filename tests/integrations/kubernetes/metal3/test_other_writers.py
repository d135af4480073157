"""Another controller on the same kinds stops ours, and nothing else does (KD12)."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import ADDRESS_FINALIZER, IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3.other_writers import METAL3S_IPAM
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object, ResourceType
from tests.infrastructure.kube import ADMIN, KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import create, install
from tests.integrations.kubernetes.metal3.metal3_manager import cluster_api_definitions, install_beside, metal3_manager
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, operator_in, until


def write_as(
    place: Namespace, manager: str, kind: ResourceType, name: str, body: Any, part: str = "", token: str = ADMIN
) -> None:
    """Patch an object as a program of a name."""
    place.ask("PATCH", f"{kind.path(place.name, name, part)}?fieldManager={manager}", body, token=token)


def create_as(
    place: Namespace, manager: str, kind: ResourceType, name: str, spec: Object, token: str = ADMIN, **metadata: Any
) -> None:
    """Create an object as a program of a name."""
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    body = {**head, "metadata": {"name": name, "namespace": place.name, **metadata}, "spec": spec}
    place.ask("POST", f"{kind.path(place.name)}?fieldManager={manager}", body, token=token)


def stops(place: Namespace, controller: IpamController) -> str:
    """Wait until ours has stopped, show that it serves nothing more, and return the reason that readiness gives."""
    reason = until(lambda: controller.not_ready().get("another controller"))
    place.claim("late")
    time.sleep(0.5)
    claim = place.get(IP_CLAIM, "late")
    assert claim is not None
    assert "status" not in claim
    return reason


def test_kd12_a_status_by_metal3s_manager_stops_ours_with_an_event(kube: KubeServer, unserved: Namespace) -> None:
    with operator_in(kube, unserved.name) as controller:
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        claim = unserved.claim("c1")
        unserved.served("c1")
        write_as(unserved, "manager", IP_CLAIM, "c1", {"status": {"errorMessage": "theirs"}}, "status")

        reason = stops(unserved, controller)
        assert reason.startswith(f"Metal3's manager wrote the status of IPClaim {unserved.name}/c1 at ")
        assert reason.endswith("stop the other controller, then restart this operator")
        (event,) = until(lambda: [e for e in unserved.events(claim) if e["reason"] == "OtherController"])
        assert event["note"] == reason
        assert (unserved.get(IP_CLAIM, "c1") or {})["status"]["errorMessage"] == "theirs"


def test_kd12_a_status_of_a_pool_by_metal3s_manager_stops_ours(kube: KubeServer, unserved: Namespace) -> None:
    """Also where Metal3's manager is said to write some day in the future, which would hide what it writes today."""
    with operator_in(kube, unserved.name) as controller:
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        until(unserved.status)  # it has begun
        forge_status_entry(unserved, IP_POOL, "p", ADMIN, "2099-01-01T00:00:00Z")
        write_as(unserved, "manager", IP_POOL, "p", {"status": {"indexes": {"x": "10.0.0.5"}}}, "status")

        assert "wrote the status of IPPool" in stops(unserved, controller)


EDITORS_ROLES = ("system:aggregate-to-view", "system:aggregate-to-edit", "tenure-ipam-view", "tenure-ipam-edit")
"""What Kubernetes' role ``edit`` is made of, where our roles are installed; here no controller puts it together."""


def editor_of(place: Namespace) -> str:
    """Return the token of an account that may edit a namespace, by the roles that are shipped, and no more."""
    metadata = {"name": "editor", "namespace": place.name}
    create(place.server, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    for role in EDITORS_ROLES:
        name = f"editor-{role.replace(':', '-')}"
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        account = {"kind": "ServiceAccount", "name": "editor", "namespace": place.name}
        binding = {"metadata": {"name": name, "namespace": place.name}, "roleRef": reference, "subjects": [account]}
        create(place.server, {"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", **binding})
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    path = f"/api/v1/namespaces/{place.name}/serviceaccounts/editor/token"
    token: str = place.ask("POST", path, asked)["status"]["token"]
    return token


def forge_status_entry(place: Namespace, kind: ResourceType, name: str, token: str, time: str = "") -> None:
    """Write among the managers of an object's fields that Metal3's manager has written its status."""
    found = place.ask("GET", kind.path(place.name, name), token=token)
    forged = {
        "manager": "manager", "operation": "Update", "apiVersion": kind.api_version, "time": time or now_text(),
        "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:errorMessage": {}}}, "subresource": "status",
    }  # fmt: skip
    body = {"metadata": {"managedFields": [*found["metadata"]["managedFields"], forged]}}
    place.ask("PATCH", kind.path(place.name, name), body, token=token)
    kept = place.get(kind, name) or {}
    assert any(each.get("subresource") == "status" and each["manager"] == "manager" for each in _managers(kept))


def _managers(object: Object) -> list[Object]:
    managers: list[Object] = object["metadata"]["managedFields"]
    return managers


def test_kd12_whoever_may_edit_a_namespace_cannot_stop_ours(kube: KubeServer, unserved: Namespace) -> None:
    """Whatever name they write under, and whatever they write about other writers; a status they may not write."""
    token = editor_of(unserved)
    with operator_in(kube, unserved.name) as controller:
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        unserved.claim("c1")
        unserved.served("c1")
        spec = {"address": "10.0.0.5", "pool": {"name": "p"}, "claim": {"name": "x"}}
        create_as(unserved, "manager", IP_ADDRESS, "p-10-0-0-5", spec, token, finalizers=[ADDRESS_FINALIZER])
        marked = {"metadata": {"finalizers": [ADDRESS_FINALIZER], "labels": {"a": "b"}}}
        write_as(unserved, "manager", IP_ADDRESS, "p-10-0-0-5", marked, token=token)
        for number in range(3):
            forge_status_entry(unserved, IP_CLAIM, "c1", token, f"2026-01-01T00:00:0{number}Z")
            forge_status_entry(unserved, IP_POOL, "p", token, f"2026-01-01T00:00:0{number}Z")
            unserved.claim(f"meanwhile-{number}")  # so that a status does change, by ours
            unserved.served(f"meanwhile-{number}")
        for kind, name in ((IP_CLAIM, "c1"), (IP_POOL, "p")):
            with pytest.raises(RefusedByServer) as refused:
                write_as(unserved, "manager", kind, name, {"status": {}}, "status", token)
            assert refused.value.code == 403
        assert not controller.not_ready()
        assert unserved.ip("c1") == "10.0.0.1"


@pytest.mark.one_worker("private-kube")
def test_kd12_a_lease_of_metal3s_name_in_the_namespace_of_users_does_not_stop_ours(
    metal3_like_kube: KubeServer,
) -> None:
    """Kubernetes' role ``edit`` allows it."""
    server = metal3_like_kube
    with fresh_namespace(server) as name:
        place = Namespace(server, name)
        token = editor_of(place)
        place.ask("POST", LEASE.path(name), lease_of_metal3("forged", now_text()), token=token)
        place.pool("p", "10.0.0.1-10.0.0.9")
        with operator_in(server, name, webhooks=False) as controller:
            for number in range(3):
                time.sleep(0.4)
                body = {"spec": {"renewTime": now_text()}}
                place.ask("PATCH", LEASE.path(name, METAL3S_IPAM.lease), body, token=token)
                place.claim(f"c{number}")
                place.served(f"c{number}")
            assert not controller.not_ready()


def test_kd12_what_was_written_before_a_takeover_does_not_stop_ours(kube: KubeServer, unserved: Namespace) -> None:
    unserved.pool("p", "10.0.0.1-10.0.0.9")
    unserved.claim("c1")
    spec = {"address": "10.0.0.1", "pool": {"name": "p"}, "claim": {"name": "c1"}}
    create_as(unserved, "manager", IP_ADDRESS, "p-10-0-0-1", spec, finalizers=[ADDRESS_FINALIZER])
    status = {"address": {"name": "p-10-0-0-1", "namespace": unserved.name}}
    write_as(unserved, "manager", IP_CLAIM, "c1", {"status": status}, "status")
    write_as(unserved, "manager", IP_POOL, "p", {"status": {"indexes": {"c1": "10.0.0.1"}}}, "status")
    with operator_in(kube, unserved.name) as controller:
        unserved.claim("c2")
        assert unserved.ip("c2") == "10.0.0.2"
        unserved.delete(IP_CLAIM, "c1")
        unserved.gone(IP_CLAIM, "c1")

        assert not controller.not_ready()


def test_kd12_users_and_other_programs_do_not_stop_ours(kube: KubeServer, unserved: Namespace) -> None:
    """A status that kubectl forges; claims, finalizers and addresses of other programs of the same name."""
    with operator_in(kube, unserved.name) as controller:
        unserved.pool("p", "10.0.0.1-10.0.0.9")
        create_as(unserved, "manager", IP_CLAIM, "c1", {"pool": {"name": "p"}}, finalizers=["x.io/metal3data"])
        unserved.served("c1")
        labels = {"metadata": {"labels": {"a": "b"}, "finalizers": ["ipclaim.ipam.metal3.io"]}}
        write_as(unserved, "manager", IP_CLAIM, "c1", labels)
        for client in ("kubectl-edit", "curl", "argocd"):
            write_as(unserved, client, IP_CLAIM, "c1", {"status": {"errorMessage": "forged"}}, "status")
            write_as(unserved, client, IP_POOL, "p", {"status": {"indexes": {"x": "10.0.0.9"}}}, "status")
        spec = {"address": "10.0.0.2", "pool": {"name": "p"}, "claim": {"name": "c2"}}
        create_as(unserved, "manager", IP_ADDRESS, "made-elsewhere", spec)
        unserved.claim("c2")

        assert unserved.ip("c2") == "10.0.0.2"
        until(lambda: "errorMessage" not in (unserved.get(IP_CLAIM, "c1") or {})["status"])
        assert not controller.not_ready()


def lease_of_metal3(holder: str, renewed: str) -> Object:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 1, "renewTime": renewed}
    head = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": METAL3S_IPAM.lease}}
    return {**head, "spec": spec}


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@pytest.mark.one_worker("private-kube")
def test_kd12_a_lease_that_nobody_renews_any_more_delays_ours_and_no_more(metal3_like_kube: KubeServer) -> None:
    """One that is renewed stops ours before its first pick."""
    server = metal3_like_kube  # every operator of the run's own server would see the Lease
    theirs = METAL3S_IPAM.namespaces[0]
    create(server, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": theirs}})
    path = LEASE.path(theirs)
    with fresh_namespace(server) as name:
        place = Namespace(server, name)
        server.ask("POST", path, lease_of_metal3("gone", now_text()))
        place.pool("p", "10.0.0.1-10.0.0.9")
        place.claim("c1")
        with operator_in(server, name, webhooks=False) as controller:
            assert place.ip("c1") == "10.0.0.1"
            assert not controller.not_ready()
        with operator_in(server, name, webhooks=False) as controller:
            for _ in range(4):
                time.sleep(0.4)
                place.ask("PATCH", f"{path}/{METAL3S_IPAM.lease}", {"spec": {"renewTime": now_text()}})

            reason = stops(place, controller)
            assert reason.startswith(f"gone renews Lease {theirs}/{METAL3S_IPAM.lease} of Metal3's manager")
        server.ask("DELETE", f"{path}/{METAL3S_IPAM.lease}")


@pytest.mark.proof
def test_kd12_metal3s_real_manager_stops_ours() -> None:
    """Claims that both see are served once, by one of them; afterwards Metal3's manager has all to itself."""
    with private_kube() as server:
        install(server)
        install_beside(server, cluster_api_definitions())
        with fresh_namespace(server) as name:
            place = Namespace(server, name)
            with operator_in(server, name, webhooks=False) as controller:
                place.pool("p", "10.0.0.1-10.0.0.99")
                place.claim("c0")
                place.served("c0")
                with metal3_manager(server):
                    for number in range(1, 20):
                        place.claim(f"c{number}")
                    until(lambda: controller.not_ready().get("another controller"))
                    given = [place.ip(f"c{number}") for number in range(20)]
            assert len(set(given)) == 20
