"""Webhooks that a real API server asks: decisions, errors, and certificates that are replaced while it asks."""

import asyncio
import base64
import datetime as dt
import secrets
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tenure.integrations.kubernetes.runtime.api_client import MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, WriteConflict
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, ResourceType
from tenure.integrations.kubernetes.runtime.webhooks import serving_certificates
from tenure.integrations.kubernetes.runtime.webhooks.webhook_certificates import (
    CertificateTimes,
    WebhookCertificates,
)
from tenure.integrations.kubernetes.runtime.webhooks.webhook_host import (
    Admission,
    AdmissionRequest,
    Decision,
    WebhookHost,
)
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


def configurations(port: int, namespace: str, host: str = "127.0.0.1") -> list[dict[str, Any]]:
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
                    "clientConfig": {"url": f"https://{host}:{port}{path}"},
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
    return Decision(decision.errors, decision.warnings)


@asynccontextmanager
async def hosted(
    server: KubeServer, secret: str, times: CertificateTimes, place: str = "127.0.0.1"
) -> AsyncIterator[tuple[WebhookHost, WebhookCertificates, ApiClient]]:
    """Run a webhook host with the operator's rights, as a leader does."""
    admissions: dict[str, Admission] = {"/validate": only_validate, "/mutate": judge}
    host = WebhookHost(admissions, within_s=1.0)
    async with ApiClient(from_kubeconfig(str(server.kubeconfig(OPERATOR)))) as client:
        runner, port = await host.start(place, 0)
        for document in configurations(port, "hooked", place):
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


async def test_kp1_the_certificate_is_for_the_host_by_which_the_server_calls(server: KubeServer) -> None:
    """Nobody names it to the operator: it is in the URL of the configurations, which the operator reads."""
    async with hosted(server, "elsewhere", SOON, "127.0.0.2") as (_, _, client):
        assert (await served(client, "by-another-host"))["metadata"]["labels"]["hooked"] == "yes"


async def test_kp1_a_host_that_configurations_name_later_gets_into_the_certificate(
    server: KubeServer, operator_client: ApiClient
) -> None:
    with configured(server):
        keeper = Keeper(operator_client, "named-later")
        first = await keeper.settle()
        for kind, url in (
            (VALIDATING, "https://[fd00:0::7]:9443/validate"),
            (MUTATING, "https://Hooks.example.org./m"),
        ):
            found = await operator_client.get(kind.path(name="tenure-operator"))
            step = {"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": url}
            await operator_client.patch(kind, found, [step])
        second = await keeper.settle()

        names = [serving_certificates.names_of(base64.b64decode(each["tls.crt"])) for each in (first, second)]
        assert names == [{"127.0.0.1"}, {"127.0.0.1", "fd00::7", "hooks.example.org"}]
        assert await keeper.settle() == second


async def test_a_certificate_expires_while_the_server_asks_and_no_request_fails(server: KubeServer) -> None:
    """KP1: expiry under load. The first certificate lasts for some seconds and has really expired at the end."""
    short = CertificateTimes(dt.timedelta(seconds=6), dt.timedelta(seconds=4.5), waits_s=1.5, looks_every_s=0.1)
    async with hosted(server, "expires", short) as (host, _, client):
        await served(client, "first")
        before = await client.get(SECRET.path("tenure-system", "expires"))
        expiry = serving_certificates.expiry_of(base64.b64decode(before["data"]["tls.crt"]))
        failures: list[ApiError] = []
        asked = 0
        while dt.datetime.now(dt.UTC) < expiry + dt.timedelta(seconds=0.5):
            asked += 1
            try:
                await client.create(CONFIG_MAP, config_map(f"load-{asked}", "plain"))
            except ApiError as error:
                failures.append(error)
            await asyncio.sleep(0.01)
        now = await client.get(SECRET.path("tenure-system", "expires"))

        assert failures == []
        assert asked > 50
        assert now["data"]["tls.crt"] != before["data"]["tls.crt"]
        assert host.not_ready() == {}


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


OTHER = serving_certificates.make_certificate(["127.0.0.1"], dt.timedelta(days=1))


@pytest.mark.parametrize(
    "damage",
    [
        {"tls.crt": "bm9uZQ=="},
        {"tls.key": "bm9uZQ=="},
        {"ca.crt": ""},
        {"ca.crt": base64.b64encode(OTHER.authority).decode()},  # a CA that has not signed the certificate
    ],
)
async def test_a_secret_that_cannot_be_read_gets_a_new_certificate(server: KubeServer, damage: dict[str, str]) -> None:
    name = f"damaged-{secrets.token_hex(4)}"
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


@contextmanager
def configured(server: KubeServer) -> Iterator[None]:
    """Install configurations of webhooks that no process serves."""
    for document in configurations(9, "not-there"):
        create(server, document)
    try:
        yield
    finally:
        for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
            server.ask("DELETE", f"{PLACES[kind]}/tenure-operator")


class Keeper:
    """A leader's certificates, step by step."""

    def __init__(self, client: ApiClient, secret: str, waits_s: float = 0.0) -> None:
        times = CertificateTimes(dt.timedelta(days=1), dt.timedelta(0), waits_s, looks_every_s=60)
        kinds = [(VALIDATING, "tenure-operator"), (MUTATING, "tenure-operator")]
        self.certificates = WebhookCertificates(client, "tenure-system", secret, ["127.0.0.1"], kinds, times)
        self.client, self.path = client, SECRET.path("tenure-system", secret)

    async def settle(self) -> dict[str, str]:
        """Step until there is nothing to do, and return what is in the Secret."""
        async with asyncio.timeout(10):
            while (again_s := await self.certificates.step()) < 60:  # noqa: ASYNC110 - as ``keep`` does
                await asyncio.sleep(again_s)
        return await self.secret()

    async def secret(self) -> dict[str, str]:
        found: dict[str, str] = (await self.client.get(self.path))["data"]
        return found

    async def bundle(self) -> bytes:
        """Return the CAs in the configurations, which are the same in all."""
        found = [await self.client.get(kind.path(name="tenure-operator")) for kind in (VALIDATING, MUTATING)]
        (text,) = {each["webhooks"][0]["clientConfig"].get("caBundle", "") for each in found}
        return base64.b64decode(text)

    def renew(self) -> None:
        """Let the certificate be due."""
        self.certificates._names = (*self.certificates._names, f"{len(self.certificates._names)}.example.org")


@pytest.fixture
async def operator_client(server: KubeServer) -> AsyncIterator[ApiClient]:
    async with ApiClient(from_kubeconfig(str(server.kubeconfig(OPERATOR)))) as client:
        yield client


async def test_a_certificate_in_place_of_a_lost_one_is_shown_when_its_ca_is_trusted(
    server: KubeServer, operator_client: ApiClient
) -> None:
    """Replicas show the lost certificate meanwhile, so its CA is trusted on."""
    with configured(server):
        keeper = Keeper(operator_client, "lost", waits_s=0.3)
        old_ca = base64.b64decode((await keeper.settle())["ca.crt"])
        server.ask("DELETE", keeper.path)

        await keeper.certificates.step()
        made = await keeper.secret()
        assert made["tls.crt"] == ""
        assert old_ca in base64.b64decode(made["ca.crt"])
        await keeper.certificates.step()
        assert await keeper.bundle() == base64.b64decode(made["ca.crt"])
        assert (await keeper.secret())["tls.crt"] == ""
        assert (await keeper.settle())["tls.crt"] == made["next.crt"]


async def test_configurations_that_are_applied_again_are_trusted_again_before_the_certificate_is_replaced(
    server: KubeServer, operator_client: ApiClient
) -> None:
    with configured(server):
        keeper = Keeper(operator_client, "applied", waits_s=0.3)
        await keeper.settle()
        keeper.renew()
        await keeper.certificates.step()  # makes the next certificate
        await keeper.certificates.step()  # writes its CA
        made = await keeper.secret()
        await asyncio.sleep(0.35)
        for kind in (VALIDATING, MUTATING):
            configuration = await operator_client.get(kind.path(name="tenure-operator"))
            path = "/webhooks/0/clientConfig/caBundle"
            steps = [{"op": "replace", "path": path, "value": base64.b64encode(OTHER.authority).decode()}]
            await operator_client.patch(kind, configuration, steps)

        assert await keeper.certificates.step() > 0
        assert (await keeper.secret())["tls.crt"] == made["tls.crt"]
        assert await keeper.bundle() == base64.b64decode(made["ca.crt"])
        assert (await keeper.settle())["tls.crt"] == made["next.crt"]


@pytest.mark.parametrize("damage", [{"next.crt": "bm9uZQ=="}, {"next.key": None}, {"next.crt": None}])
async def test_a_next_certificate_that_is_damaged_is_made_again(
    server: KubeServer, operator_client: ApiClient, damage: dict[str, str | None]
) -> None:
    with configured(server):
        keeper = Keeper(operator_client, f"next-{secrets.token_hex(4)}")
        before = await keeper.settle()
        keeper.renew()
        await keeper.certificates.step()
        secret = await operator_client.get(keeper.path)
        await operator_client.patch(SECRET, secret, {"data": damage}, content_type=MERGE_PATCH)

        after = await keeper.settle()
        assert after["tls.crt"] != before["tls.crt"]
        assert set(after) == {"tls.crt", "tls.key", "ca.crt"}


async def test_a_former_leader_that_wakes_writes_no_old_ca(
    server: KubeServer, operator_client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is frozen after it has read the Secret; meanwhile its follower replaces the certificate."""
    with configured(server):
        former, follower = Keeper(operator_client, "former"), Keeper(operator_client, "former")
        await former.settle()
        former.renew()
        await former.certificates.step()
        follower.certificates._names = former.certificates._names
        read = former.certificates._read

        async def read_and_freeze() -> Object | None:
            secret = await read()
            await follower.settle()
            follower.renew()
            await follower.settle()
            return secret

        monkeypatch.setattr(former.certificates, "_read", read_and_freeze)
        with pytest.raises(WriteConflict):
            await former.certificates.step()
        assert await follower.bundle() == base64.b64decode((await follower.secret())["ca.crt"])


def test_a_host_shows_no_certificate_that_does_not_fit_its_key(tmp_path: Path) -> None:
    host, good = WebhookHost(), serving_certificates.make_certificate(["a.example.org"], dt.timedelta(seconds=60))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(good.certificate)
    key.write_bytes(OTHER.key)
    assert host.not_ready() == {"webhook certificate": "missing or expired"}
    with pytest.raises(ssl.SSLError):
        host.use_certificate(certificate, key)
    assert not host.has_certificate
    key.write_bytes(good.key)
    host.use_certificate(certificate, key)
    assert host.not_ready() == {}


def test_a_host_whose_certificate_has_expired_is_not_ready(tmp_path: Path) -> None:
    """KP14."""
    host, past = WebhookHost(), serving_certificates.make_certificate(["a.example.org"], dt.timedelta(seconds=-60))
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(past.certificate)
    key.write_bytes(past.key)
    host.use_certificate(certificate, key)

    assert not host.has_certificate


def test_a_certificate_without_names_is_for_none() -> None:
    """Such as an administrator may have put into the Secret."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "by hand")])
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(days=1))
    signed = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    assert serving_certificates.names_of(signed) == set()


def test_a_certificate_has_its_names_and_its_end() -> None:
    made = serving_certificates.make_certificate(["a.example.org", "192.0.2.1"], dt.timedelta(days=3))
    now = dt.datetime.now(dt.UTC)

    assert serving_certificates.names_of(made.certificate) == {"a.example.org", "192.0.2.1"}
    assert dt.timedelta(days=2) < serving_certificates.expiry_of(made.certificate) - now < dt.timedelta(days=4)
    assert serving_certificates.unexpired(made.authority, now) == made.authority
    assert serving_certificates.unexpired(made.authority, now + dt.timedelta(days=9)) == b""
