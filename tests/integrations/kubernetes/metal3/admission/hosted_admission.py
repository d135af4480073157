"""The webhooks as a server asks them: hosted on a thread of their own, for one namespace, with the shipped rules."""

import asyncio
import base64
import datetime as dt
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from aiohttp import web

from tenure.integrations.kubernetes.metal3.admission.ipam_admission import IpamAdmission
from tenure.integrations.kubernetes.metal3.objects.address_objects import claim_id_of, pool_of, position_of
from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId, ClaimKind
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.metal3.objects.pool_spec import PoolSpec
from tenure.integrations.kubernetes.runtime.resource_types import Object, uid_of
from tenure.integrations.kubernetes.runtime.webhooks.serving_certificates import make_certificate
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import WebhookHost
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import ADMIN, KubeServer
from tests.integrations.kubernetes.cluster import PLACES, create

KINDS = {
    (each.api_version, each.kind): each
    for each in (IP_POOL, IP_CLAIM, IP_ADDRESS, CLUSTER_API_CLAIM, CLUSTER_API_ADDRESS)
}
"""Kinds that users apply."""


@dataclass
class LiveView:
    """What the operator would know, asked of the server each time."""

    server: KubeServer
    synced: bool = True
    default_strategy: str = "sequential"
    allow_outside: bool = False

    def serves(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return True

    def serves_kind(self, kind: ClaimKind) -> bool:
        return True

    def addresses_of(self, pool: PoolId) -> Iterable[Object]:
        found = self.server.ask("GET", IP_ADDRESS.path(pool.namespace))["items"]
        # Items of a list do not say of which kind they are.
        items = ({"apiVersion": IP_ADDRESS.api_version, **each} for each in found)
        return [each for each in items if pool_of(each) == pool]

    def addresses_at(self, pool: PoolId, position: int) -> Iterable[Object]:
        return [each for each in self.addresses_of(pool) if position_of(each) == position]

    def claims_at(self, pool: PoolId, position: int) -> Iterable[ClaimId]:
        return []

    def spec_of(self, pool: PoolId) -> PoolSpec:
        return PoolSpec()

    def is_open_to(self, pool: PoolId, namespace: str) -> bool:
        return pool.namespace in ("", namespace)

    def overlap_of(self, pool: PoolId, spec: PoolSpec) -> str:
        return ""

    def addresses_for(self, claim: ClaimId) -> Iterable[Object]:
        found = self.server.ask("GET", IP_ADDRESS.path(claim.namespace))["items"]
        return [each for each in found if claim_id_of({"apiVersion": IP_ADDRESS.api_version, **each}) == claim]

    def claim(self, id: ClaimId) -> Object | None:
        return None

    def claim_of_uid(self, uid: str) -> Object | None:
        found: list[Object] = self.server.ask("GET", IP_CLAIM.path())["items"]
        return next((each for each in found if uid_of(each) == uid), None)


@dataclass
class Answer:
    """What a server answers: the object as it is stored, or why it is not; and the warnings that a user sees."""

    status: int
    object: Any
    warnings: list[str]

    @property
    def message(self) -> str:
        return str(self.object["message"])


@dataclass
class Applier:
    """A user of one namespace."""

    server: KubeServer
    namespace: str

    def create(self, object: Object, query: str = "fieldValidation=Strict") -> Answer:
        metadata = {**object["metadata"], "namespace": self.namespace}
        return self._send(
            "POST", f"{self._place(object)}?{query}", {**object, "metadata": metadata}, "application/json"
        )

    def patch(self, object: Object, query: str = "", **parts: Any) -> Answer:
        """Merge parts into a stored object."""
        path = self._place(object, object["metadata"]["name"])
        return self._send("PATCH", f"{path}?{query}", parts, "application/merge-patch+json")

    def _place(self, object: Object, name: str = "") -> str:
        return KINDS[object["apiVersion"], object["kind"]].path(self.namespace, name)

    def _send(self, method: str, path: str, body: Any, content_type: str) -> Answer:
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": content_type}
        request = urllib.request.Request(  # noqa: S310 - ours
            self.server.url + path, json.dumps(body).encode(), headers, method=method
        )
        context = ssl.create_default_context(cafile=self.server.authority)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310
                return Answer(answer.status, json.loads(answer.read()), _warnings(answer.headers))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.loads(error.read()), _warnings(error.headers))


def _warnings(headers: Message) -> list[str]:
    """Return the warnings of the webhooks, without the server's own about the names of Metal3's finalizers."""
    return [each for each in headers.get_all("Warning") or [] if "prefer a domain-qualified finalizer" not in each]


@contextmanager
def hosted_admission(server: KubeServer, namespace: str, view: LiveView) -> Iterator[None]:
    """Let the server ask the webhooks about what is written in a namespace."""
    made = make_certificate(["127.0.0.1"], dt.timedelta(hours=1))
    host = WebhookHost(IpamAdmission(view).admissions)
    with TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(made.certificate)
        key.write_bytes(made.key)
        host.use_certificate(certificate, key)
    with _listening(host) as port:
        configurations = [
            _limited(document, namespace, port, made.authority) for document in documents_of(["webhooks"])
        ]
        for document in configurations:
            create(server, document)
        try:
            yield
        finally:
            for document in configurations:
                server.ask("DELETE", f"{PLACES[document['kind']]}/{namespace}")


def _limited(configuration: Object, namespace: str, port: int, authority: bytes) -> Object:
    """Return a shipped configuration for one namespace: all tests share a server, which reaches no Service (KP2)."""
    for hook in configuration["webhooks"]:
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        url = f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}"
        hook["clientConfig"] = {"url": url, "caBundle": base64.b64encode(authority).decode()}
    return {**configuration, "metadata": {"name": namespace}}


@contextmanager
def _listening(host: WebhookHost) -> Iterator[int]:
    """Serve on a thread, so that a test may wait for the server while the server waits for the webhook."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        runner, port = asyncio.run_coroutine_threadsafe(host.start("127.0.0.1", 0), loop).result(10)
        try:
            yield port
        finally:
            asyncio.run_coroutine_threadsafe(_ended(runner, loop), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _ended(runner: web.AppRunner, loop: asyncio.AbstractEventLoop) -> None:
    await runner.cleanup()
    # A connection over TLS is closed when the other end has agreed, which ``cleanup`` does not wait for.
    # The pipe that wakes the loop stays.
    while len(cast(Any, loop)._selector.get_map()) > 1:  # noqa: ASYNC110 - there is nothing to wait on
        await asyncio.sleep(0.01)
