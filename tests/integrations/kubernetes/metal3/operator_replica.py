"""``python -m …operator_replica KUBECONFIG NAMESPACES LEASE IDENTITY PORT``: an operator with a short lease.

Namespaces are separated by commas; none: the whole cluster. Port 0: without webhooks.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL, Popen

from tenure.integrations.kubernetes.operator import started
from tenure.integrations.kubernetes.operator_settings import OperatorSettings
from tenure.integrations.kubernetes.runtime.leader_lease import LeaseTimes
from tests.infrastructure.forked_tenure import ForkedModule
from tests.infrastructure.kube import OPERATOR, KubeServer

TIMES = LeaseTimes(lasts_s=2.0, stops_s=1.2, every_s=0.3)
"""Short, so that a replica that is killed is followed soon; all else is as shipped."""
GRACE_S = 2.0
"""After this time an address without a claim is released, in tests."""


async def run(kubeconfig: str, namespaces: str, lease: str, identity: str, port: str) -> None:
    """Run until the process is ended; as shipped, but for the lease."""
    settings = OperatorSettings(
        kubeconfig, namespaces=tuple(filter(None, namespaces.split(","))), controllers=("metal3", "capi"),
        own_namespace="tenure-system", lease=lease, identity=identity, lease_times=TIMES, port=0,
        webhooks=port != "0", webhook_port=int(port), orphan_grace_s=GRACE_S,
    )  # fmt: skip
    async with started(settings) as running:
        await running.part_ended


def start_replica(server: KubeServer, namespaces: str, lease: str, identity: str, port: int = 0) -> "Popen[bytes]":
    """Start a replica with the operator's rights."""
    words = [str(server.kubeconfig(OPERATOR)), namespaces, lease, identity, str(port)]
    return ForkedModule[bytes](__name__, *words, stdout=DEVNULL, stderr=DEVNULL)


@contextmanager
def replica(server: KubeServer, namespaces: str, lease: str, identity: str) -> Iterator["Popen[bytes]"]:
    """Run a replica for as long as the block; it is killed at the end."""
    process = start_replica(server, namespaces, lease, identity)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
