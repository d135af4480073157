"""A namespace of a real API server that an operator serves, as a user sees it: objects are applied and read as JSON."""

import asyncio
import base64
import contextlib
import json
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import yaml

from tenure.integrations.kubernetes import operator as shell
from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.metal3_data.render_controller import RenderController
from tenure.integrations.kubernetes.operator_context import Controller
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, uid_of
from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates
from tenure.integrations.kubernetes.shipped_manifests import documents_of
from tests.infrastructure.kube import ADMIN, OPERATOR, KubeServer
from tests.integrations.kubernetes.cluster import PLACES

T = TypeVar("T")
KINDS = {kind.kind: kind for kind in (IP_POOL, IP_CLAIM, IP_ADDRESS)}
WITHIN_S = 20.0


class RefusedByServer(Exception):
    """The API server refused a request; the text is its message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def until(look: Callable[[], T | None], within_s: float = WITHIN_S) -> T:
    """Return what ``look`` gives as soon as it gives something true."""
    deadline = time.monotonic() + within_s
    pause = 0.02
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(pause)
        pause = min(pause * 1.2, 0.2)  # what takes long is not looked at all the time, which the server would pay for
    return found


class Namespace:
    """A namespace, with the words of a user."""

    def __init__(self, server: KubeServer, name: str) -> None:
        self.server = server
        self.name = name

    def ask(self, method: str, path: str, body: Any = None, *, token: str = ADMIN, patch: str = "merge") -> Any:
        """Ask the server something."""
        kind = {"PATCH": f"application/{patch}-patch+json"}.get(method, "application/json")
        try:
            return self.server.ask(method, path, body, token=token, content_type=kind)
        except urllib.error.HTTPError as error:
            document = json.loads(error.read() or b"{}")
            raise RefusedByServer(error.code, str(document.get("message"))) from None

    def create(self, kind: ResourceType, name: str, spec: Object, **metadata: Any) -> Object:
        """Create an object."""
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        body = {**head, "metadata": {"name": name, "namespace": self.name, **metadata}, "spec": spec}
        made: Object = self.ask("POST", kind.path(self.name), body)
        return made

    def apply(self, text: str) -> list[Object]:
        """Create the objects of a YAML text."""
        return [
            self.ask("POST", KINDS[each["kind"]].path(self.name) + "?fieldValidation=Strict", each)
            for each in yaml.safe_load_all(text)
        ]

    def pool(self, name: str = "p", *ranges: str, **spec: Any) -> Object:
        """Create a pool; a range is ``first-last``, or a subnet."""
        entries = [
            {"subnet": each} if "/" in each else dict(zip(("start", "end"), each.split("-"), strict=False))
            for each in ranges
        ]
        return self.create(IP_POOL, name, {"namePrefix": name, "pools": entries, **spec})

    def claim(self, name: str, pool: str = "p", **metadata: Any) -> Object:
        """Create a claim."""
        return self.create(IP_CLAIM, name, {"pool": {"name": pool}}, **metadata)

    def address(self, name: str, address: str, claim: str, pool: str = "p", **metadata: Any) -> Object:
        """Create an address by hand."""
        spec = {"address": address, "pool": {"name": pool}, "claim": {"name": claim}}
        return self.create(IP_ADDRESS, name, spec, **metadata)

    def get(self, kind: ResourceType, name: str) -> Object | None:
        """Read an object, or nothing."""
        try:
            found: Object = self.ask("GET", kind.path(self.name, name))
        except RefusedByServer as error:
            if error.code == 404:
                return None
            raise
        return found

    def all(self, kind: ResourceType) -> list[Object]:
        """Read all objects of a kind."""
        items: list[Object] = self.ask("GET", kind.path(self.name))["items"]
        return items

    def patch(self, kind: ResourceType, name: str, body: Any, subresource: str = "", patch: str = "merge") -> Object:
        """Patch an object."""
        patched: Object = self.ask("PATCH", kind.path(self.name, name, subresource), body, patch=patch)
        return patched

    def delete(self, kind: ResourceType, name: str) -> None:
        """Delete an object, without waiting until it is gone."""
        self.ask("DELETE", kind.path(self.name, name))

    def served(self, claim: str, within_s: float = WITHIN_S) -> Object:
        """Wait until a claim has an address, and return the address object."""

        def look() -> Object | None:
            found = self.get(IP_CLAIM, claim) or {}
            name = (found.get("status") or {}).get("address", {}).get("name")
            return self.get(IP_ADDRESS, name) if name else None

        return until(look, within_s)

    def ip(self, claim: str) -> str:
        """Wait until a claim has an address, and return the text."""
        text: str = self.served(claim)["spec"]["address"]
        return text

    def message(self, claim: str, begins: str = "") -> str:
        """Wait until a claim has a message that begins so, and return it."""

        def look() -> str | None:
            text = ((self.get(IP_CLAIM, claim) or {}).get("status") or {}).get("errorMessage") or ""
            return text if text.startswith(begins) else None

        return until(look)

    def gone(self, kind: ResourceType, name: str) -> None:
        """Wait until an object is gone."""
        until(lambda: self.get(kind, name) is None)

    def indexes(self, pool: str = "p") -> dict[str, str]:
        """Return what the status of a pool lists."""
        return ((self.get(IP_POOL, pool) or {}).get("status") or {}).get("indexes") or {}

    def status(self, pool: str = "p") -> Object:
        """Return our part of the status of a pool."""
        return ((self.get(IP_POOL, pool) or {}).get("status") or {}).get("tenure") or {}

    def events(self, object: Object) -> list[Object]:
        """Return the events of an object."""
        found = self.ask("GET", f"/apis/events.k8s.io/v1/namespaces/{self.name}/events")["items"]
        return [each for each in found if each["regarding"].get("uid") == uid_of(object)]


class OperatorThread:
    """An operator in a thread of its own, with its webhooks; the tests' own requests do not wait for it."""

    def __init__(
        self,
        server: KubeServer,
        settings: OperatorSettings,
        webhooks: bool = False,
        make_client: shell.MakeClient = shell.plain_client,
    ) -> None:
        self._server, self._settings, self._webhooks = server, settings, webhooks
        self._make_client = make_client
        self._ready: Future[IpamController] = Future()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0
        """Where it answers probes."""

    def start(self) -> IpamController:
        """Start it, and wait until it leads and has read everything."""
        self._thread.start()
        return self._ready.result(30)

    def readiness(self) -> str:
        """Return what it says of its readiness."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def stop(self) -> None:
        """Stop it, and wait."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._work())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                raise
        finally:
            self._loop.close()

    async def _work(self) -> None:
        async with shell.started(self._settings, self._make_client) as running:
            (controller,) = (each for each in running.controllers if isinstance(each, IpamController))
            self.port = running.port
            with contextlib.ExitStack() as stack:
                runner = None
                if self._webhooks:
                    runner, port = await controller.host.start("127.0.0.1", 0)
                    stack.enter_context(registered(self._server, controller, port, self._settings))
                while any(_unread(each) for each in running.controllers) or not running.context.lease.leads:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                self._ready.set_result(controller)
                await self._stopped.wait()
                if runner is not None:
                    await runner.cleanup()


def _unread(controller: Controller) -> bool:
    """Return whether a controller has not read everything yet."""
    assert isinstance(controller, IpamController | RenderController)
    caches = controller.caches.objects if isinstance(controller, IpamController) else controller.caches
    return bool(caches.not_ready())


@contextlib.contextmanager
def registered(server: KubeServer, controller: IpamController, port: int, settings: OperatorSettings) -> Iterator[None]:
    """Register the webhooks of a controller for its namespaces, by URL: nothing routes Services here (KP2)."""
    made = serving_certificates.make_certificate(["127.0.0.1"], timedelta(days=1))
    with TemporaryDirectory(prefix="webhook-") as folder:
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(made.certificate)
        key.write_bytes(made.key)
        controller.host.use_certificate(certificate, key)
    documents = documents_of(
        ["webhooks", *(["in-cluster"] if "in-cluster" in settings.controllers else [])],
        own_namespace=settings.own_namespace,
        namespaces=settings.namespaces,
        webhook_url=f"https://127.0.0.1:{port}",
    )
    paths = []
    for document in (each for each in documents if "webhooks" in each):
        document["metadata"]["name"] = f"{document['metadata']['name']}-{(*settings.namespaces, 'all')[0]}"
        for hook in document["webhooks"]:
            hook["clientConfig"]["caBundle"] = base64.b64encode(made.authority).decode()
        server.ask("POST", PLACES[document["kind"]], document)
        paths.append(f"{PLACES[document['kind']]}/{document['metadata']['name']}")
    try:
        yield
    finally:
        for path in paths:
            server.ask("DELETE", path)


def settings_for(server: KubeServer, *namespaces: str, **words: Any) -> OperatorSettings:
    """Return settings of an operator for namespaces, with the rights that are shipped (KP7)."""
    place = OperatorSettings(
        str(server.kubeconfig(OPERATOR)), namespaces=namespaces, controllers=("metal3", "capi"),
        own_namespace="tenure-system", lease=f"m3-{secrets.token_hex(5)}", port=0, webhooks=False,
    )  # fmt: skip
    return replace(place, **words)


@contextlib.contextmanager
def operator_in(server: KubeServer, *namespaces: str, webhooks: bool = True, **words: Any) -> Iterator[IpamController]:
    """Run an operator for some namespaces."""
    thread = OperatorThread(server, settings_for(server, *namespaces, **words), webhooks)
    controller = thread.start()
    try:
        yield controller
    finally:
        thread.stop()


def let_go(server: KubeServer, *kinds: ResourceType) -> None:
    """Take the finalizers off what other tests have left: nobody serves it any more, and a definition waits for it."""
    for kind in kinds:
        for each in server.ask("GET", kind.path())["items"]:
            path = kind.path(each["metadata"]["namespace"], each["metadata"]["name"])
            body = {"metadata": {"finalizers": None}}
            server.ask("PATCH", path, body, content_type="application/merge-patch+json")
