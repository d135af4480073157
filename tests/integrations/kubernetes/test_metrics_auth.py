"""Who may read ``/metrics`` where the operator asks the API server for that (KP14)."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tenure.integrations.kubernetes import operator as shell
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tests.infrastructure.kube import ADMIN, NOBODY, OPERATOR, KubeServer
from tests.integrations.kubernetes.cluster import create


def asked(port: int, path: str, *headers: str) -> tuple[int, str]:
    """Ask an operator something, with a header ``Authorization`` or without."""
    sent = {"Authorization": headers[0]} if headers else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=sent)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def ask(port: int, path: str, *headers: str) -> tuple[int, str]:
    return await asyncio.to_thread(asked, port, path, *headers)


def settings(server: KubeServer, lease: str, **words: Any) -> OperatorSettings:
    return OperatorSettings(
        str(server.kubeconfig(OPERATOR)), own_namespace="tenure-system", lease=lease, port=0, **words
    )


def account_token(server: KubeServer, namespace: str) -> str:
    """Make an account that is bound to the shipped role of readers, and return a token of it."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prometheus", "namespace": namespace}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tenure-metrics-reader"}
    subject = {"kind": "ServiceAccount", "name": "prometheus", "namespace": namespace}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": f"metrics-{namespace}"}, "roleRef": role, "subjects": [subject],
    }  # fmt: skip
    create(server, account)
    create(server, binding)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/prometheus/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = server.ask("POST", path, request)["status"]["token"]
    return token


@pytest.fixture
async def guarded(kube: KubeServer, namespace: str) -> AsyncIterator[int]:
    """Give the port of an operator that guards its metrics, and does not lead: reviews are no writes of a leader."""
    async with shell.started(settings(kube, namespace)) as leader:
        # Before the other one begins, or that one may lead.
        while not leader.context.lease.leads:  # noqa: ASYNC110 - a lease is taken
            await asyncio.sleep(0.02)
        async with shell.started(settings(kube, namespace, metrics_auth=True)) as running:
            assert not running.context.lease.leads
            yield running.port


async def test_kp14_metrics_are_for_those_whose_token_may_get_them(
    kube: KubeServer, namespace: str, guarded: int
) -> None:
    reader = await asyncio.to_thread(account_token, kube, namespace)

    status, text = await ask(guarded, "/metrics", f"Bearer {reader}")
    assert status == 200
    assert "tenure_operator_leader 0\n" in text
    assert (await ask(guarded, "/metrics", f"bearer {ADMIN}"))[0] == 200
    assert (await ask(guarded, "/metrics", f"Bearer {NOBODY}"))[0] == 403
    assert (await ask(guarded, "/metrics", f"Bearer {OPERATOR}"))[0] == 403


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer rubbish", f"Basic {ADMIN}", ADMIN])
async def test_kp14_without_a_token_that_is_known_there_is_nothing_to_read(guarded: int, header: str) -> None:
    assert await ask(guarded, "/metrics", *filter(None, [header])) == (401, "unknown\n")


async def test_kp14_probes_have_no_token_and_need_none(guarded: int) -> None:
    assert await ask(guarded, "/livez") == (200, "ok\n")
    assert await ask(guarded, "/readyz") == (200, "ok\n")


async def test_without_the_option_everybody_may_read(kube: KubeServer, namespace: str) -> None:
    async with shell.started(settings(kube, namespace)) as running:
        assert (await ask(running.port, "/metrics"))[0] == 200
        assert (await ask(running.port, "/metrics", "Bearer rubbish"))[0] == 200
