"""The shipped webhooks on a real server: for which requests they are asked, and what stays possible without them."""

import asyncio
import base64
import datetime as dt
import time
import urllib.error
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import (
    Admission,
    AdmissionRequest,
    Decision,
    WebhookHost,
)
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import PLACES, create
from tests.integrations.kubernetes.test_custom_resources import made, stored


class Asked:
    """A host that notes what it is asked about, and can be stopped."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[tuple[str, str, str]] = []
        certificate = serving_certificates.make_certificate(["127.0.0.1"], dt.timedelta(days=1))
        self.authority = base64.b64encode(certificate.authority).decode()
        (folder / "crt").write_bytes(certificate.certificate)
        (folder / "key").write_bytes(certificate.key)
        self._host = WebhookHost({"/mutate": self._note("mutate"), "/validate": self._note("validate")})
        self._host.use_certificate(folder / "crt", folder / "key")

    def _note(self, path: str) -> Admission:
        async def noted(request: AdmissionRequest) -> Decision:
            self.requests.append((path, request.operation, request.kind))
            return Decision()

        return noted

    async def start(self) -> int:
        self._runner, port = await self._host.start("127.0.0.1", 0)
        return port

    async def stop(self) -> None:
        await self._runner.cleanup()


@pytest.fixture
async def asked(kube: KubeServer, namespace: str, tmp_path: Path) -> AsyncIterator[Asked]:
    """Register the shipped webhooks for one namespace, under a name of their own: all tests share the server."""
    host = Asked(tmp_path)
    url = f"https://127.0.0.1:{await host.start()}"
    documents = documents_of(["webhooks"], namespaces=[namespace], webhook_url=url)
    for document in documents:
        document["metadata"]["name"] = namespace
        for webhook in document["webhooks"]:
            webhook["clientConfig"]["caBundle"] = host.authority
        create(kube, document)
    try:
        yield host
    finally:
        for document in documents:
            kube.ask("DELETE", f"{PLACES[document['kind']]}/{namespace}")
        await host.stop()


async def heard(kube: KubeServer, host: Asked, namespace: str) -> None:
    """Wait until the server has heard of both webhooks, which it asks in turn."""
    deadline = time.monotonic() + 20
    while {path for path, _, _ in host.requests} != {"mutate", "validate"}:
        assert time.monotonic() < deadline
        probe = made(IP_CLAIM, namespace, f"probe-{time.monotonic_ns()}", spec={"pool": {"name": "none"}})
        await asyncio.to_thread(stored, kube, IP_CLAIM, probe)
    host.requests.clear()


async def test_webhooks_are_asked_for_what_others_create_and_update_and_their_absence_blocks_nothing_else(
    kube: KubeServer, client: ApiClient, namespace: str, asked: Asked
) -> None:
    """KP2: not for our own writes, for status and for deletions, which work without any operator."""
    await heard(kube, asked, namespace)
    document = made(IP_POOL, namespace, "p", spec={"namePrefix": "p"})
    pool = await asyncio.to_thread(stored, kube, IP_POOL, document)
    assert asked.requests == [("mutate", "CREATE", "IPPool"), ("validate", "CREATE", "IPPool")]

    asked.requests.clear()
    pool = await client.patch(IP_POOL, pool, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE_PATCH)
    assert asked.requests == []

    pool["metadata"]["labels"] = {"a": "c"}
    pool = await asyncio.to_thread(kube.ask, "PUT", IP_POOL.path_of(pool), pool)
    assert asked.requests == [("mutate", "UPDATE", "IPPool"), ("validate", "UPDATE", "IPPool")]

    asked.requests.clear()
    await asked.stop()
    with pytest.raises(urllib.error.HTTPError, match="500"):
        await asyncio.to_thread(stored, kube, IP_POOL, made(IP_POOL, namespace, "q", spec={"namePrefix": "q"}))
    pool["status"] = {"lastUpdated": "2026-11-17T12:00:00Z"}
    await asyncio.to_thread(kube.ask, "PUT", IP_POOL.path_of(pool, "status"), pool)
    await asyncio.to_thread(kube.ask, "DELETE", IP_POOL.path_of(pool))
    with pytest.raises(urllib.error.HTTPError, match="404"):
        await asyncio.to_thread(kube.ask, "GET", IP_POOL.path_of(pool))
    assert asked.requests == []
