"""The operator as a process, killed in the middle of its work and started again: nothing is lost, nothing is left."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import LEASE
from tests.infrastructure.forked_tenure import ForkedTenure
from tests.infrastructure.kube import OPERATOR, KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.claim_storms import come_and_go
from tests.integrations.kubernetes.metal3.ipam_user import AddressWitness, IpamUser, user_of, witness
from tests.scale import runs

CLAIMS = runs(60, soak=120, proof=120)
STARTS_WITHIN_S = 30


@contextmanager
def operator_process(server: KubeServer, namespace: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the command for one namespace; it is killed at the end (``kill -9``)."""
    words = ["--kubeconfig", str(server.kubeconfig(OPERATOR)), "--own-namespace", "tenure-system", "--port", "0"]
    words += ["--webhook-port", "0", "--controllers", "metal3", "--namespaces", namespace]
    process = ForkedTenure[bytes](["operator", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


async def until_seen(seen: AddressWitness, changes: int) -> None:
    """Wait until so many changes of addresses were seen."""
    async with asyncio.timeout(STARTS_WITHIN_S):
        while seen.seen < changes:  # noqa: ASYNC110 - other processes write
            await asyncio.sleep(0.01)


async def end_lease(user: IpamUser) -> None:
    """End the lease of an operator that is dead: nobody need wait until it is over, the next test neither."""
    await user.client.delete_any(LEASE.path("tenure-system", "tenure-operator"))


@pytest.mark.one_worker("the operator's lease")
async def test_kd17_an_operator_that_is_killed_under_load_loses_nothing(kube: KubeServer) -> None:
    with fresh_namespace(kube) as namespace:
        async with user_of(kube, namespace) as user:
            await user.pool("p", "10.0.0.1", "10.0.0.100")
            async with witness(user) as seen:
                with operator_process(kube, namespace):
                    await user.claim("first", "p")
                    await until_seen(seen, changes=1)
                    users = asyncio.create_task(come_and_go(user, CLAIMS, seed=1))
                    await until_seen(seen, changes=CLAIMS // 3)
                await end_lease(user)
                with operator_process(kube, namespace):
                    await users
                    found = await user.until_settled(within_s=STARTS_WITHIN_S)
                    await user.delete_all(IP_CLAIM, IP_POOL)
                    await user.until_gone()
                await end_lease(user)

    assert len(found.claims) == len(found.addresses) == 1 + CLAIMS // 2
