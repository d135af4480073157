"""Webhooks' certificates in a Secret: the leader makes and replaces them, every replica shows what is there (KP1)."""

import asyncio
import base64
import datetime as dt
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tenure.integrations.kubernetes.runtime import serving_certificates
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.object_cache import Delta
from tenure.integrations.kubernetes.runtime.patches import guarded, pointer
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, ResourceType
from tenure.integrations.kubernetes.runtime.webhook_host import WebhookHost

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
    the leader dies between any two of these steps: the next one reads in the Secret how far they came.
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

    async def keep(self) -> None:
        """Keep certificate and configurations right until cancelled; for the leader."""
        while True:
            try:
                again_s = await self.step()
            except (ApiError, ApiUnreachable) as error:
                LOG.warning("webhook certificate: %s", error)
                again_s = min(2.0, self._times.looks_every_s)
            await asyncio.sleep(again_s)

    async def step(self) -> float:
        """Do what is to be done next, and return after how long to look again."""
        secret = await self._read()
        if secret is None:
            await self._create()
            return 0.0
        data = _readable(secret)
        if data is None:
            await self._replace(secret)
            return 0.0
        await self._trust(data[AUTHORITIES])
        if NEXT_CERTIFICATE in data:
            await asyncio.sleep(self._times.waits_s)
            await self._switch(secret)
            return 0.0
        if self._is_due(data):
            await self._prepare(secret, data)
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

    def _is_due(self, data: dict[str, bytes]) -> bool:
        now = dt.datetime.now(dt.UTC)
        ends = serving_certificates.ends(data[CERTIFICATE])
        named = serving_certificates.names_of(data[CERTIFICATE])
        return ends - now < self._times.renewed_before or not set(self._names) <= named

    async def _create(self) -> None:
        made = serving_certificates.make_certificate(self._names, self._times.lasts)
        data = {CERTIFICATE: made.certificate, KEY: made.key, AUTHORITIES: made.authority}
        await self._client.create(
            SECRET,
            {
                "apiVersion": SECRET.api_version,
                "kind": SECRET.kind,
                "metadata": {"namespace": self._namespace, "name": self._secret},
                "type": "kubernetes.io/tls",
                "data": _encoded(data),
            },
        )
        LOG.info("made a certificate for webhooks, for %s", ", ".join(self._names))

    async def _replace(self, secret: Object) -> None:
        """Make a certificate in place of what cannot be read: there is none that could go on being shown."""
        LOG.error("the Secret %s has no certificate that can be read; it gets a new one", self._secret)
        made = serving_certificates.make_certificate(self._names, self._times.lasts)
        data = {CERTIFICATE: made.certificate, KEY: made.key, AUTHORITIES: made.authority}
        step = {"op": "add", "path": "/data", "value": _encoded(data)}
        await self._client.patch(SECRET, secret, guarded(secret, step))

    async def _prepare(self, secret: Object, data: dict[str, bytes]) -> None:
        """Put the next certificate beside the one that is shown, and its CA beside those that are trusted."""
        made = serving_certificates.make_certificate(self._names, self._times.lasts)
        old = serving_certificates.living(data[AUTHORITIES], dt.datetime.now(dt.UTC))
        changed = {NEXT_CERTIFICATE: made.certificate, NEXT_KEY: made.key, AUTHORITIES: made.authority + old}
        steps = [
            {"op": "add", "path": pointer("data", name), "value": text} for name, text in _encoded(changed).items()
        ]
        await self._client.patch(SECRET, secret, guarded(secret, *steps))
        LOG.info("made the next certificate for webhooks")

    async def _switch(self, secret: Object) -> None:
        """Show the next certificate from now on."""
        steps = [
            {"op": "move", "from": pointer("data", new), "path": pointer("data", old)}
            for new, old in ((NEXT_CERTIFICATE, CERTIFICATE), (NEXT_KEY, KEY))
        ]
        await self._client.patch(SECRET, secret, guarded(secret, *steps))

    async def _trust(self, authorities: bytes) -> None:
        """Write the CAs into every webhook of the configurations that has others."""
        text = base64.b64encode(authorities).decode()
        for kind, name in self._configurations:
            try:
                configuration = await self._client.get(kind.path(name=name))
            except ObjectMissing:
                LOG.warning("%s %s is not installed", kind.kind, name)
                continue
            steps = [
                {"op": "add", "path": pointer("webhooks", number, "clientConfig", "caBundle"), "value": text}
                for number, webhook in enumerate(configuration.get("webhooks") or ())
                if webhook["clientConfig"].get("caBundle") != text
            ]
            if steps:
                await self._client.patch(kind, configuration, guarded(configuration, *steps))


def _use(host: WebhookHost, folder: Path, delta: Delta) -> None:
    if delta.after is None:
        return  # what was shown goes on; the leader makes another
    data = _readable(delta.after)
    if data is None:
        return  # likewise
    certificate, key = folder / CERTIFICATE, folder / KEY
    key.touch(mode=0o600)
    certificate.write_bytes(data[CERTIFICATE])
    key.write_bytes(data[KEY])
    host.use_certificate(certificate, key)


def _readable(secret: Object) -> dict[str, bytes] | None:
    """Return what a Secret has, or nothing if certificate, key or CAs are missing or are none."""
    try:
        data = {name: base64.b64decode(text) for name, text in (secret.get("data") or {}).items()}
        serving_certificates.check(data[CERTIFICATE], data[KEY], data[AUTHORITIES])
    except (KeyError, TypeError, ValueError):
        return None
    return data


def _encoded(data: dict[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in data.items()}
