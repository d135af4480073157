"""What an operator says of itself when something is missing (KP14)."""

import asyncio
import datetime as dt
import json
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from tenure.integrations.kubernetes import operator as shell
from tenure.integrations.kubernetes.metal3 import ipam_controller
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.webhooks.mounted_certificate import show_mounted
from tenure.integrations.kubernetes.runtime.webhooks.serving_certificates import make_certificate
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import OPERATOR, KubeServer

WITHIN_S = 30.0
NO_CERTIFICATE = "webhook certificate: missing or expired\n"


def settings(kubeconfig: Path, folder: Path, *namespaces: str) -> OperatorSettings:
    """Return settings of an operator that has a lease, ports and a certificate of its own."""
    return OperatorSettings(
        str(kubeconfig), namespaces=namespaces, controllers=("metal3", "capi"), own_namespace="tenure-system",
        lease=f"readiness-{folder.name.lower()}", port=0, webhook_port=0, webhook_certificates=str(folder),
    )  # fmt: skip


async def answer(running: shell.Running, path: str) -> tuple[int, str]:
    return await asyncio.to_thread(_answer, f"http://127.0.0.1:{running.port}{path}")


def _answer(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as found:  # noqa: S310 - our own server
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def until_ready(running: shell.Running, expected: tuple[int, str]) -> None:
    """Wait until ``/readyz`` answers so."""
    deadline = time.monotonic() + WITHIN_S
    while (found := await answer(running, "/readyz")) != expected:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.05)


async def test_kp14_an_operator_lives_without_an_api_server_and_is_not_ready(tmp_path: Path) -> None:
    cluster = {"name": "c", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    head = {"apiVersion": "v1", "kind": "Config", "current-context": "c"}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({**head, "clusters": [cluster], "contexts": [context], "users": [user]}), "utf-8")
    async with shell.started(settings(kubeconfig, tmp_path)) as running:
        status, missing = await answer(running, "/readyz")

        assert await answer(running, "/livez") == (200, "ok\n")
        assert status == 503
        kinds = ("ippools", "ipclaims", "ipaddresses", "cluster-api claims", "cluster-api addresses", "clusters")
        assert [kind for kind in kinds if f"\n{kind} in the cluster: not listed yet" not in f"\n{missing}"] == []
        assert NO_CERTIFICATE in missing


async def test_kp14_an_operator_is_ready_with_its_caches_and_a_certificate_that_is_valid(
    kube: KubeServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ipam_controller, "show_mounted", partial(show_mounted, every_s=0.05))
    async with shell.started(settings(kube.kubeconfig(OPERATOR), tmp_path, namespace)) as running:
        await until_ready(running, (503, NO_CERTIFICATE))
        for lasts_s, expected in ((3600, (200, "ok\n")), (1, (503, NO_CERTIFICATE)), (3600, (200, "ok\n"))):
            made = make_certificate(["127.0.0.1"], dt.timedelta(seconds=lasts_s))
            (tmp_path / "tls.key").write_bytes(made.key)
            (tmp_path / "tls.crt").write_bytes(made.certificate)
            await until_ready(running, expected)
