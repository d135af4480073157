"""``python -m …render_replica KUBECONFIG NAMESPACE LEASE IDENTITY``: an operator that renders, with a short lease."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL, Popen

from tenure.integrations.kubernetes.operator import started
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tests.infrastructure.forked_tenure import ForkedModule
from tests.infrastructure.kube import OPERATOR, KubeServer
from tests.integrations.kubernetes.metal3.operator_replica import TIMES


async def run(kubeconfig: str, namespace: str, lease: str, identity: str) -> None:
    """Run until the process is ended; as shipped, but for the lease."""
    settings = OperatorSettings(
        kubeconfig, namespaces=(namespace,), controllers=("metal3", "render"), own_namespace="tenure-system",
        lease=lease, identity=identity, lease_times=TIMES, port=0, webhooks=False, claims_by_host=True,
    )  # fmt: skip
    async with started(settings) as running:
        await running.part_ended


@contextmanager
def render_replica(server: KubeServer, namespace: str, lease: str, identity: str) -> Iterator["Popen[bytes]"]:
    """Run a replica with the operator's rights; it is killed at the end, if nobody did so before."""
    words = [str(server.kubeconfig(OPERATOR)), namespace, lease, identity]
    process = ForkedModule[bytes](__name__, *words, stdout=DEVNULL, stderr=DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
