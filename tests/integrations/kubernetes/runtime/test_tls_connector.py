"""No socket is left open by a request that is cancelled while its connection is made."""

import asyncio
import gc
import warnings

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tests.infrastructure.kube import KubeServer

TURNS = (*range(12), *range(12), 20, 40, 80, 160)
"""In some ten turns of the loop a connection to this machine is made; later the answer is waited for."""


async def cancelled_after(path: str, turns: int) -> None:
    """Cancel a request after so many turns of the loop."""
    async with ApiClient(from_kubeconfig(path)) as client:
        request = asyncio.create_task(client.get("/version"))
        for _ in range(turns):
            await asyncio.sleep(0)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)


def test_a_request_that_is_cancelled_in_any_turn_leaves_no_socket_open(kube: KubeServer) -> None:
    path = str(kube.kubeconfig())
    gc.collect()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for turns in TURNS:
            asyncio.run(cancelled_after(path, turns))
        gc.collect()

    assert [str(each.message) for each in seen if "unclosed" in str(each.message)] == []
