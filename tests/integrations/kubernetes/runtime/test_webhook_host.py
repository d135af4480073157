"""Webhooks that a real API server asks: decisions, faults, and certificates that are replaced while it asks."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime import serving_certificates
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, ResourceType
from tenure.integrations.kubernetes.runtime.webhook_certificates import CertificateTimes, WebhookCertificates
from tenure.integrations.kubernetes.runtime.webhook_host import Admission, AdmissionRequest, Decision, WebhookHost
from tests.infrastructure.kube import OPERATOR, KubeServer, private_kube
from tests.integrations.kubernetes.cluster import PLACES, create, install

CONFIG_MAP = ResourceType("", "v1", "configmaps", "ConfigMap")
ADMISSION = "admissionregistration.k8s.io"
VALIDATING = ResourceType(
    ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
MUTATING = ResourceType(
    ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
SOON = CertificateTimes(lasts=dt.timedelta(days=1), renewed_before=dt.timedelta(0), waits_s=2.0, looks_every_s=0.2)


async def judge(request: AdmissionRequest) -> Decision:
    """Refuse what is called bad, warn of what is odd, mark what is plain, be slow with what is slow."""
    text = ((request.object or {}).get("data") or {}).get("text", "")
    match text:
        case "bad":
            return Decision(["data.text: is bad", "metadata.name: is bad, too"])
        case "odd":
            return Decision(warnings=["data.text: is odd"])
        case "slow":
            await asyncio.sleep(10)
        case "broken":
            raise RuntimeError("broken on purpose")
    if (request.object or {}).get("metadata", {}).get("labels", {}).get("seen"):
        return Decision()
    return Decision(
        patch=[{"op": "add", "path": "/metadata/labels", "value": {"seen": request.operation, "hooked": "yes"}}]
    )


def configurations(port: int, namespace: str) -> list[dict[str, Any]]:
    """Write the configurations of both webhooks; they ask by URL, since nothing routes Services here (KP2)."""
    hooks = [("ValidatingWebhookConfiguration", "/validate"), ("MutatingWebhookConfiguration", "/mutate")]
    return [
        {
            "apiVersion": f"{ADMISSION}/v1",
            "kind": kind,
            "metadata": {"name": "tenure-operator"},
            "webhooks": [
                {
                    "name": "toys.tenure.dev",
                    "clientConfig": {"url": f"https://127.0.0.1:{port}{path}"},
                    "rules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["configmaps"],
                            "operations": ["CREATE", "UPDATE"],
                        }
                    ],
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "sideEffects": "None",
                    "timeoutSeconds": 5,
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }
        for kind, path in hooks
    ]


async def only_validate(request: AdmissionRequest) -> Decision:
    decision = await judge(request)
    return Decision(decision.faults, decision.warnings)


@asynccontextmanager
async def hosted(
    server: KubeServer, secret: str, times: CertificateTimes
) -> AsyncIterator[tuple[WebhookHost, WebhookCertificates, ApiClient]]:
    """Run a webhook host with the operator's rights, as a leader does."""
    admissions: dict[str, Admission] = {"/validate": only_validate, "/mutate": judge}
    host = WebhookHost(admissions, within_s=1.0)
    async with ApiClient(from_kubeconfig(str(server.kubeconfig(OPERATOR)))) as client:
        runner, port = await host.start("127.0.0.1", 0)
        for document in configurations(port, "hooked"):
            create(server, document)
        kinds = [(VALIDATING, "tenure-operator"), (MUTATING, "tenure-operator")]
        certificates = WebhookCertificates(client, "tenure-system", secret, ["127.0.0.1"], kinds, times)
        tasks = [asyncio.create_task(certificates.show(host)), asyncio.create_task(certificates.keep())]
        try:
            async with asyncio.timeout(20):
                while not host.has_certificate:  # noqa: ASYNC110 - a host is polled
                    await asyncio.sleep(0.05)
            yield host, certificates, client
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await runner.cleanup()
            for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
                server.ask("DELETE", f"{PLACES[kind]}/tenure-operator")


@pytest.fixture(scope="module")
def server() -> Any:
    with private_kube() as started:
        install(started)
        create(started, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hooked"}})
        yield started


def config_map(name: str, text: str) -> Object:
    return {"metadata": {"namespace": "hooked", "name": name}, "data": {"text": text}}


async def served(client: ApiClient, name: str, text: str = "plain") -> Object:
    """Create an object; until the API server has heard of the webhooks' CA, it is tried again."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await client.create(CONFIG_MAP, config_map(name, text))
            except ApiError as error:
                if "failed calling webhook" not in error.message or "x509" not in error.message:
                    raise
                await asyncio.sleep(0.1)


async def test_objects_are_judged_before_they_are_stored(server: KubeServer) -> None:
    async with hosted(server, "judged", CertificateTimes()) as (host, _, client):
        plain = await served(client, "plain")
        assert plain["metadata"]["labels"] == {"seen": "CREATE", "hooked": "yes"}
        with pytest.raises(ApiError, match=r"data.text: is bad; metadata.name: is bad, too") as refused:
            await client.create(CONFIG_MAP, config_map("bad", "bad"))
        assert (refused.value.status, refused.value.reason) == (422, "Invalid")
        with pytest.raises(ApiError, match="no decision within 1 s"):
            await client.create(CONFIG_MAP, config_map("slow", "slow"))
        with pytest.raises(ApiError, match="the webhook failed"):
            await client.create(CONFIG_MAP, config_map("broken", "broken"))
        assert (await client.create(CONFIG_MAP, config_map("odd", "odd")))["data"] == {"text": "odd"}
        assert host.asked > 5
        assert host.took_s > 1.0  # the slow decision alone


async def test_a_certificate_is_replaced_while_the_server_asks_and_no_request_fails(server: KubeServer) -> None:
    """KP1: expiry under load."""
    async with hosted(server, "replaced", SOON) as (_, certificates, client):
        await served(client, "first")
        before = await client.get(SECRET.path("tenure-system", "replaced"))
        certificates._times = CertificateTimes(**{**SOON.__dict__, "renewed_before": dt.timedelta(days=2)})
        failures: list[ApiError] = []
        asked = 0
        async with asyncio.timeout(30):
            while True:
                asked += 1
                try:
                    await client.create(CONFIG_MAP, config_map(f"load-{asked}", "plain"))
                except ApiError as error:
                    failures.append(error)
                now = await client.get(SECRET.path("tenure-system", "replaced"))
                if now["data"]["tls.crt"] != before["data"]["tls.crt"]:
                    break
        certificates._times = SOON
        for _ in range(50):  # on connections that are opened with the new one
            asked += 1
            await client.create(CONFIG_MAP, config_map(f"load-{asked}", "plain"))
            await asyncio.sleep(0.02)

        assert failures == []
        assert asked > 50


async def test_a_secret_that_was_removed_is_made_again(server: KubeServer) -> None:
    async with hosted(server, "removed", SOON) as (_, _, client):
        await served(client, "before-removal")
        server.ask("DELETE", SECRET.path("tenure-system", "removed"))
        async with asyncio.timeout(20):
            while True:
                try:
                    await client.get(SECRET.path("tenure-system", "removed"))
                    break
                except ApiError:
                    await asyncio.sleep(0.05)
        await served(client, "after-removal")


@pytest.mark.parametrize("damage", [{"tls.crt": "bm9uZQ=="}, {"tls.key": "bm9uZQ=="}, {"ca.crt": ""}])
async def test_a_secret_that_cannot_be_read_gets_a_new_certificate(server: KubeServer, damage: dict[str, str]) -> None:
    name = f"damaged-{next(iter(damage)).replace('.', '-')}"
    async with hosted(server, name, SOON) as (_, _, client):
        await served(client, f"before-{name}")
        secret = await client.get(SECRET.path("tenure-system", name))
        steps = [{"op": "replace", "path": f"/data/{key}", "value": text} for key, text in damage.items()]
        await client.patch(SECRET, secret, steps)
        async with asyncio.timeout(20):
            read = secret
            while read["data"].items() & damage.items() or read is secret:
                read = await client.get(SECRET.path("tenure-system", name))
        await served(client, f"after-{name}")


def test_a_certificate_has_its_names_and_its_end() -> None:
    made = serving_certificates.make_certificate(["a.example.org", "192.0.2.1"], dt.timedelta(days=3))
    now = dt.datetime.now(dt.UTC)

    assert serving_certificates.names_of(made.certificate) == {"a.example.org", "192.0.2.1"}
    assert dt.timedelta(days=2) < serving_certificates.ends(made.certificate) - now < dt.timedelta(days=4)
    assert serving_certificates.living(made.authority, now) == made.authority
    assert serving_certificates.living(made.authority, now + dt.timedelta(days=9)) == b""
