"""The HTTPS server that an API server asks before it stores an object (admission v1)."""

import asyncio
import base64
import datetime as dt
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tenure.integrations.kubernetes.runtime.deep_json import read_deep_json
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates

LOG = logging.getLogger(__name__)

LARGEST_BODY = 8 * 1024 * 1024
"""An object and its old state have 1.5 MiB each at most in the store, and may be twice as long in JSON."""


@dataclass(frozen=True)
class AdmissionRequest:
    """What a user wants to do to an object."""

    uid: str
    operation: str
    group: str
    kind: str
    namespace: str
    name: str
    user: str
    object: Object | None
    before: Object | None
    dry_run: bool


@dataclass(frozen=True)
class Decision:
    """Whether it may be done; all errors in one text, and what is changed before."""

    errors: Sequence[str] = ()
    warnings: Sequence[str] = ()
    patch: Sequence[Object] = ()
    code: int = 422
    reason: str = "Invalid"


Admission = Callable[[AdmissionRequest], Awaitable[Decision]]


@dataclass
class WebhookHost:
    """Serves admissions by path. Stateless, on every replica; never waits for the leader (KP2)."""

    admissions: dict[str, Admission] = field(default_factory=dict)
    within_s: float = 4.0
    """Shorter than the 5 s after which the API server gives up, so that the refusal says why."""
    asked: int = 0
    took_s: float = 0.0
    """How long all decisions took together."""

    def __post_init__(self) -> None:
        self._listening = _context()
        self._listening.sni_callback = self._choose
        self._shown: ssl.SSLContext | None = None
        self._expires = dt.datetime.min.replace(tzinfo=dt.UTC)

    @property
    def has_certificate(self) -> bool:
        """Whether there is a certificate to show that has not expired."""
        return dt.datetime.now(dt.UTC) < self._expires

    def not_ready(self) -> dict[str, str]:
        """Return what is missing before the webhooks can be asked, for ``/readyz`` (KP14)."""
        return {} if self.has_certificate else {"webhook certificate": "missing or expired"}

    def use_certificate(self, certificate: Path, key: Path) -> None:
        """Show this certificate to all clients that connect from now on; open connections go on with the old one.

        Files that do not fit raise ``ssl.SSLError`` or ``ValueError``, and the old certificate goes on being shown.
        """
        context = _context()
        context.load_cert_chain(certificate, key)
        self._expires = serving_certificates.expiry_of(certificate.read_bytes())
        self._shown = context

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        """Give a new connection the certificate of the moment; OpenSSL asks also for clients that name no server."""
        if self._shown is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._shown
        return None

    async def start(self, host: str, port: int) -> tuple[web.AppRunner, int]:
        """Listen, and return what stops it, and the port."""
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post("/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, host, port, ssl_context=self._listening)
        await site.start()
        return runner, int(runner.addresses[0][1])

    async def _answer(self, asked: web.Request) -> web.Response:
        admission = self.admissions.get(asked.path)
        if admission is None:
            return web.Response(status=404, text=f"no admission under {asked.path}")
        try:
            request = _request(read_deep_json(await asked.read(), asked.path))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            return web.Response(status=400, text=f"not an AdmissionReview of admission.k8s.io/v1: {error!r}")
        began = time.monotonic()
        decision = await self._decide(admission, request)
        self.asked += 1
        self.took_s += time.monotonic() - began
        return web.Response(body=orjson.dumps(_review(request, decision)), content_type="application/json")

    async def _decide(self, admission: Admission, request: AdmissionRequest) -> Decision:
        try:
            async with asyncio.timeout(self.within_s):
                return await admission(request)
        except TimeoutError:
            message = f"no decision within {self.within_s:g} s; try again"
            return Decision([message], code=504, reason="Timeout")
        except Exception:
            # An error of ours must not look like an error of the object.
            LOG.exception("admission of %s %s/%s", request.kind, request.namespace, request.name)
            return Decision(["the webhook failed; its log says why"], code=500, reason="InternalError")


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _request(review: Object) -> AdmissionRequest:
    if review["apiVersion"] != "admission.k8s.io/v1":
        raise KeyError(review["apiVersion"])
    request: dict[str, Any] = review["request"]
    return AdmissionRequest(
        uid=request["uid"],
        operation=request["operation"],
        group=request["kind"].get("group", ""),
        kind=request["kind"]["kind"],
        namespace=request.get("namespace", ""),
        name=request.get("name", ""),
        user=(request.get("userInfo") or {}).get("username", ""),
        object=request.get("object"),
        before=request.get("oldObject"),
        dry_run=bool(request.get("dryRun")),
    )


def _review(request: AdmissionRequest, decision: Decision) -> Object:
    response: Object = {"uid": request.uid, "allowed": not decision.errors}
    if decision.warnings:
        response["warnings"] = list(decision.warnings)
    if decision.errors:
        message = "; ".join(decision.errors)
        response["status"] = {"message": message, "reason": decision.reason, "code": decision.code}
    elif decision.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(list(decision.patch))).decode()
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
