"""Credentials from a kubeconfig, an exec plug-in and a service account; what expires is read again."""

import asyncio
import base64
import datetime as dt
import json
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio.config import incluster_config

from tenure.integrations.kubernetes.runtime import credentials
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.credentials import CredentialsMissing, from_kubeconfig, from_service_account
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.webhooks.serving_certificates import make_certificate
from tests.infrastructure.kube import ADMIN, KubeServer


def kubeconfig(folder: Path, server: KubeServer, user: dict[str, Any], **cluster: Any) -> str:
    written = json.loads(server.kubeconfig().read_text("utf-8"))
    written["users"][0]["user"] = user
    written["clusters"][0]["cluster"].update(cluster)
    path = folder / "config"
    path.write_text(json.dumps(written), "utf-8")
    return str(path)


async def version(load: credentials.Loader, meter: RuntimeMeter | None = None) -> str:
    async with ApiClient(load, meter=meter) as client:
        return str((await client.get("/version"))["gitVersion"])


async def test_a_certificate_may_stand_in_the_file_itself(kube: KubeServer, tmp_path: Path) -> None:
    text = base64.b64encode(kube.authority.read_bytes()).decode()
    path = kubeconfig(tmp_path, kube, {"token": ADMIN}, **{"certificate-authority-data": text})

    assert (await version(from_kubeconfig(path))).startswith("v1.")


async def test_a_server_that_is_not_trusted_is_not_asked(kube: KubeServer, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(make_certificate(["127.0.0.1"], dt.timedelta(days=1)).authority)
    path = kubeconfig(tmp_path, kube, {"token": ADMIN}, **{"certificate-authority": str(other)})

    with pytest.raises(Exception, match="certificate verify failed"):
        await version(from_kubeconfig(path))


async def test_an_exec_plug_in_is_asked_again_when_its_token_has_expired(kube: KubeServer, tmp_path: Path) -> None:
    count, plugin = tmp_path / "count", tmp_path / "plugin.py"
    plugin.write_text(
        f"""#!{sys.executable}
import json, pathlib
count = pathlib.Path({str(count)!r})
asked = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(asked))
token = "expired" if asked == 1 else {ADMIN!r}
kind = {{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}}
print(json.dumps({{**kind, "status": {{"token": token}}}}))
""",
        "utf-8",
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    }
    meter = RuntimeMeter()

    assert (await version(from_kubeconfig(kubeconfig(tmp_path, kube, user)), meter)).startswith("v1.")
    assert (count.read_text("utf-8"), meter.renewed) == ("2", 1)


async def test_the_token_of_a_service_account_is_read_again_when_it_has_expired(
    kube: KubeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KP17."""
    token = tmp_path / "token"
    token.write_text("expired", "utf-8")
    host, port = kube.url.removeprefix("https://").split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    files = {"token_filename": str(token), "cert_filename": str(kube.authority)}
    monkeypatch.setattr(credentials, "load_incluster_config", partial(incluster_config.load_incluster_config, **files))
    async with ApiClient(from_service_account()) as client:
        with pytest.raises(ApiError, match="401"):
            await client.get("/api/v1/nodes")
        token.write_text(ADMIN, "utf-8")
        assert (await client.get("/api/v1/nodes"))["items"] == []


async def test_credentials_that_are_away_when_they_are_read_again_may_come_back(
    kube: KubeServer, tmp_path: Path
) -> None:
    path = Path(kubeconfig(tmp_path, kube, {"token": "expired"}))
    async with ApiClient(from_kubeconfig(str(path))) as client:
        await asyncio.to_thread(path.unlink)
        with pytest.raises(ApiUnreachable, match="expired"):
            await client.get("/api/v1/nodes")
        kubeconfig(tmp_path, kube, {"token": ADMIN})
        assert (await client.get("/api/v1/nodes"))["items"] == []


async def test_credentials_that_expire_under_load_cost_no_request(kube: KubeServer, tmp_path: Path) -> None:
    path = Path(kubeconfig(tmp_path, kube, {"token": "expired"}))
    async with ApiClient(from_kubeconfig(str(path))) as client:
        kubeconfig(tmp_path, kube, {"token": ADMIN})
        answers = await asyncio.gather(*(client.get("/api/v1/nodes") for _ in range(100)))

    assert all(answer["items"] == [] for answer in answers)


async def test_a_ca_that_is_replaced_is_read_again(kube: KubeServer, tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(make_certificate(["127.0.0.1"], dt.timedelta(days=1)).authority)
    path = kubeconfig(tmp_path, kube, {"token": ADMIN}, **{"certificate-authority": str(authority)})
    meter = RuntimeMeter()
    async with ApiClient(from_kubeconfig(path), meter=meter) as client:
        with pytest.raises(ApiUnreachable, match="certificate verify failed"):
            await client.get("/version")
        authority.write_bytes(kube.authority.read_bytes())
        answers = await asyncio.gather(*(client.get("/version") for _ in range(10)))

    assert all(answer["gitVersion"].startswith("v1.") for answer in answers)
    assert meter.renewed == 2


async def test_a_plug_in_that_hangs_is_not_waited_for(kube: KubeServer, tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["0.5"]}}

    with pytest.raises(CredentialsMissing, match=r"plug-in did not answer within 0.1 s"):
        await from_kubeconfig(kubeconfig(tmp_path, kube, user), within_s=0.1)()
    await asyncio.sleep(0.6)  # the process ends by itself


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority-data": "%"}, {}),
        ({"certificate-authority-data": base64.b64encode(b"none").decode()}, {}),
        ({"certificate-authority": "/nowhere/ca.crt"}, {}),
        ({}, {"client-certificate": "/nowhere/tls.crt", "client-key": "/nowhere/tls.key"}),
        ({}, {"client-certificate-data": "bm9uZQ==", "client-key-data": "bm9uZQ=="}),
        ({}, {"exec": {"apiVersion": "v1", "command": "/nowhere/plug-in"}}),
        ({}, {"exec": {"apiVersion": "v1", "command": "false"}}),
        ({}, {"exec": {"apiVersion": "v1", "command": "echo", "args": ["none"]}}),
        ({}, {"exec": {"apiVersion": "v1", "command": "sh", "env": [{"name": "A"}]}}),
    ],
)
async def test_a_kubeconfig_with_wrong_parts_is_refused_with_a_reason(
    kube: KubeServer, tmp_path: Path, cluster: dict[str, str], user: dict[str, Any]
) -> None:
    path = kubeconfig(tmp_path, kube, user, **cluster)
    with pytest.raises(CredentialsMissing, match=r"cannot be used: .+; correct it, or name another") as refused:
        await from_kubeconfig(path)()
    assert str(refused.value).startswith(f"{path} cannot be used: ")
    assert "\n" not in str(refused.value)


NO_MAP = "is no kubeconfig: it has no clusters, users and contexts; correct it, or name another kubeconfig"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", NO_MAP),
        ("[]", NO_MAP),
        ("some words", NO_MAP),
        ("a: 1\nb: {", "is no YAML: line 2, column 5: "),
        ("a: \x00", "is no YAML: "),
        ("a: " + "1" * 5000, "is no YAML: "),
        ("a: 2026-02-30", "is no YAML: "),
        ('{"kind": "Config"}', "cannot be used: "),
        ('{"contexts": [], "current-context": "c"}', "cannot be used: "),
    ],
)
async def test_a_kubeconfig_that_says_nothing_useful_is_refused_with_a_reason(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text, "utf-8")

    with pytest.raises(CredentialsMissing) as refused:
        await from_kubeconfig(str(path))()
    assert str(refused.value).startswith(f"{path} {said}")
    assert str(refused.value).endswith("; correct it, or name another kubeconfig")
    assert "\n" not in str(refused.value)


async def test_a_kubeconfig_that_is_not_there_is_named_with_where_its_name_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refusal(path: str | None) -> str:
        with pytest.raises(CredentialsMissing) as refused:
            await from_kubeconfig(path)()
        return str(refused.value)

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{tmp_path}/b")
    advice = "name a kubeconfig that is there"
    assert await refusal("/nowhere/x") == f"there is no file /nowhere/x; {advice}"
    assert await refusal(None) == f"there is no file {tmp_path}/a:{tmp_path}/b (named by $KUBECONFIG); {advice}"
    monkeypatch.delenv("KUBECONFIG")
    assert await refusal(None) == f"there is no file ~/.kube/config; {advice}"
    (tmp_path / "folder").mkdir()
    said = f"{tmp_path}/folder cannot be read: Is a directory; allow it, or name another kubeconfig"
    assert await refusal(f"{tmp_path}/folder") == said


async def test_a_process_outside_of_a_cluster_has_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(CredentialsMissing, match="service account of this pod: "):
        await from_service_account()()
