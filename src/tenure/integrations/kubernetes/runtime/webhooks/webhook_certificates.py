"""Webhooks' certificates in a Secret: the leader makes and replaces them, every replica shows what is there (KP1)."""

import asyncio
import base64
import contextlib
import datetime as dt
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.patches import guarded, pointer
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, ResourceType
from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import WebhookHost

LOG = logging.getLogger(__name__)

CERTIFICATE, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"


@dataclass(frozen=True)
class CertificateTimes:
    """How long a certificate lasts, how long before its end the next one is made, and how long it then waits."""

    lasts: dt.timedelta = dt.timedelta(days=90)
    renewed_before: dt.timedelta = dt.timedelta(days=30)
    waits_s: float = 10.0
    """API servers need a moment until they trust a new CA; until then the old certificate is shown."""
    looks_every_s: float = 60.0


class WebhookCertificates:
    """The certificate of webhooks, without anything else installed in the cluster.

    A new certificate is made beside the old one. First both CAs are written to the webhooks' configurations, then,
    after a while, the new certificate takes the old one's place. So at every moment what is shown is trusted, also if
    the leader dies between any two of these steps: the next one reads in the Secret how far they came. A certificate
    in place of one that was lost comes the same way, since replicas go on showing the lost one.

    It is for ``names`` and for every name by which the configurations call the webhooks: the host of a URL, a Service.
    """

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        secret: str,
        names: Sequence[str],
        configurations: Sequence[tuple[ResourceType, str]],
        times: CertificateTimes | None = None,
    ) -> None:
        self._client = client
        self._namespace, self._secret = namespace, secret
        self._names = tuple(names)
        self._configurations = tuple(configurations)
        self._times = times or CertificateTimes()
        self._trusted_at: float | None = None
        """Since when the configurations have had the CAs of the Secret, as far as this process knows."""

    async def keep(self) -> None:
        """Keep certificate and configurations right until cancelled; for the leader."""
        while True:
            try:
                again_s = await self.step()
            except (ApiError, ApiUnreachable) as error:
                LOG.warning("webhook certificate: %s", error)
                again_s = min(2.0, self._times.looks_every_s)
            except Exception:
                # A Secret or configuration that is written by hand in a way that is not foreseen must not end the rest
                # of the leader's work.
                LOG.exception("webhook certificate")
                again_s = self._times.looks_every_s
            await asyncio.sleep(again_s)

    async def step(self) -> float:
        """Do what is to be done next, and return after how long to look again."""
        # The configurations are read before the Secret and changed on these versions: a former leader that wakes after
        # it has read the Secret cannot write old CAs into a configuration that has new ones by now.
        configurations = await self._read_configurations()
        secret = await self._read()
        data = _data(secret)
        names = [*self._names, *(each for each in _called(configurations) if each not in self._names)]
        has_next = _is_usable(data, NEXT_CERTIFICATE, NEXT_KEY)
        if not has_next and not _is_usable(data, CERTIFICATE, KEY):
            await self._make(secret, _bundles(configurations), names)
            return 0.0
        assert secret is not None
        await self._trust(configurations, data[AUTHORITIES])
        if has_next:
            return await self._switch_when_trusted(secret)
        if NEXT_CERTIFICATE in data or NEXT_KEY in data or self._is_due(data, names):
            await self._prepare(secret, data, names)
            return 0.0
        return self._times.looks_every_s

    async def show(self, host: WebhookHost) -> None:
        """Show the certificate of the Secret, also when it is replaced, until cancelled; for every replica."""
        fields = f"metadata.name={self._secret}"
        informer = Informer(self._client, SECRET, namespace=self._namespace, fields=fields)
        with TemporaryDirectory(prefix="webhook-") as folder:
            informer.on_change(lambda delta: _use(host, Path(folder), delta))
            await informer.run()

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(SECRET.path(self._namespace, self._secret))
        except ObjectMissing:
            return None

    async def _read_configurations(self) -> list[tuple[ResourceType, Object]]:
        found = []
        for kind, name in self._configurations:
            try:
                found.append((kind, await self._client.get(kind.path(name=name))))
            except ObjectMissing:
                LOG.warning("%s %s is not installed", kind.kind, name)
        return found

    def _is_due(self, data: dict[str, bytes], names: Sequence[str]) -> bool:
        left = serving_certificates.expiry_of(data[CERTIFICATE]) - dt.datetime.now(dt.UTC)
        named = serving_certificates.names_of(data[CERTIFICATE])
        return left < self._times.renewed_before or not set(names) <= named

    def _next(self, trusted: bytes, names: Sequence[str]) -> dict[str, bytes]:
        """Make the next certificate, with a CA beside those that are trusted."""
        made = serving_certificates.make_certificate(names, self._times.lasts)
        old = serving_certificates.unexpired(trusted, dt.datetime.now(dt.UTC))
        return {NEXT_CERTIFICATE: made.certificate, NEXT_KEY: made.key, AUTHORITIES: made.authority + old}

    async def _make(self, secret: Object | None, trusted: bytes, names: Sequence[str]) -> None:
        """Make a certificate where there is none that can be read; replicas show it when its CA is trusted."""
        # A server wants both fields in a Secret of this type; they are filled when the new CA is trusted.
        data = _encoded({CERTIFICATE: b"", KEY: b"", **self._next(trusted, names)})
        if secret is not None:
            LOG.error("the Secret %s has no certificate that can be read; it gets a new one", self._secret)
            await self._client.patch(SECRET, secret, guarded(secret, {"op": "add", "path": "/data", "value": data}))
            return
        head = {"apiVersion": SECRET.api_version, "kind": SECRET.kind, "type": "kubernetes.io/tls"}
        metadata = {"namespace": self._namespace, "name": self._secret}
        await self._client.create(SECRET, {**head, "metadata": metadata, "data": data})
        LOG.info("made a certificate for webhooks, for %s", ", ".join(names))

    async def _prepare(self, secret: Object, data: dict[str, bytes], names: Sequence[str]) -> None:
        """Put the next certificate beside the one that is shown."""
        steps = [
            {"op": "add", "path": pointer("data", name), "value": text}
            for name, text in _encoded(self._next(data[AUTHORITIES], names)).items()
        ]
        await self._client.patch(SECRET, secret, guarded(secret, *steps))
        LOG.info("made the next certificate for webhooks, for %s", ", ".join(names))

    async def _switch_when_trusted(self, secret: Object) -> float:
        """Show the next certificate once its CA has been in the configurations for a while."""
        assert self._trusted_at is not None
        left_s = self._trusted_at + self._times.waits_s - time.monotonic()
        if left_s > 0:
            return min(left_s, self._times.looks_every_s)
        # Both in one write: a certificate never stands beside the key of another.
        steps = [
            {"op": "move", "from": pointer("data", new), "path": pointer("data", old)}
            for new, old in ((NEXT_CERTIFICATE, CERTIFICATE), (NEXT_KEY, KEY))
        ]
        await self._client.patch(SECRET, secret, guarded(secret, *steps))
        return 0.0

    async def _trust(self, configurations: list[tuple[ResourceType, Object]], authorities: bytes) -> None:
        """Write the CAs into every webhook of the configurations that has others."""
        text = base64.b64encode(authorities).decode()
        is_first = not _bundles(configurations)
        changed = False
        for kind, configuration in configurations:
            steps = [
                {"op": "add", "path": pointer("webhooks", number, "clientConfig", "caBundle"), "value": text}
                for number, webhook in enumerate(configuration.get("webhooks") or ())
                if webhook["clientConfig"].get("caBundle") != text
            ]
            if steps:
                await self._client.patch(kind, configuration, guarded(configuration, *steps))
                changed = True
        if is_first:
            self._trusted_at = float("-inf")  # no certificate was trusted before, so none can be shown too early
        elif changed or self._trusted_at is None:
            self._trusted_at = time.monotonic()


def _use(host: WebhookHost, folder: Path, delta: Delta) -> None:
    data = _data(delta.after)
    if not _is_usable(data, CERTIFICATE, KEY):
        return  # what was shown goes on; the leader makes another
    certificate, key = folder / CERTIFICATE, folder / KEY
    # Before anything is in it: the key must be readable for no other user, not even for a moment.
    key.touch(mode=0o600)
    certificate.write_bytes(data[CERTIFICATE])
    key.write_bytes(data[KEY])
    host.use_certificate(certificate, key)


def _data(secret: Object | None) -> dict[str, bytes]:
    """Return what a Secret has, without what cannot be read."""
    found = {}
    for name, text in ((secret or {}).get("data") or {}).items():
        with contextlib.suppress(TypeError, ValueError):
            found[name] = base64.b64decode(text)
    return found


def _is_usable(data: dict[str, bytes], certificate: str, key: str) -> bool:
    """Return whether there is a certificate with its key, and the CA that has signed it."""
    try:
        serving_certificates.check(data[certificate], data[key], data[AUTHORITIES])
    except (KeyError, ValueError):
        return False
    return True


def _called(configurations: list[tuple[ResourceType, Object]]) -> list[str]:
    """Return the names by which configurations call their webhooks, each once; what is no name is logged."""
    found: dict[str, None] = {}
    for webhook in (webhook for _, each in configurations for webhook in each.get("webhooks") or ()):
        client = webhook["clientConfig"]
        service = client.get("service") or {}
        try:
            host = urlsplit(client.get("url") or "").hostname or f"{service.get('name')}.{service.get('namespace')}.svc"
            found[serving_certificates.certificate_name(host)] = None
        except ValueError as error:
            LOG.warning("webhook certificate: the webhook %s cannot be called: %s", webhook.get("name"), error)
    return list(found)


def _bundles(configurations: list[tuple[ResourceType, Object]]) -> bytes:
    """Return all CAs that the webhooks of configurations trust."""
    webhooks = [webhook for _, each in configurations for webhook in each.get("webhooks") or ()]
    return b"\n".join(base64.b64decode(webhook["clientConfig"].get("caBundle") or "") for webhook in webhooks).strip()


def _encoded(data: dict[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in data.items()}
