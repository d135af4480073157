"""A list of pools for callers who block."""

import inspect
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.vmpool.lists.async_vm_pool_list import AsyncVMPoolList
from tenure.integrations.vmpool.lists.named_pools import named_settings
from tenure.integrations.vmpool.lists.vm_pool_list import VMPoolList
from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tests.infrastructure.kube import KubeServer


def test_vd7_every_verb_blocks_and_does_the_same(kube: KubeServer, namespace: str) -> None:
    surroundings = {"VM_POOLS": "gpu=10.1.0.1;spare=10.2.0.1", "NODE_NAME": "n", "POOL_NAMESPACE": namespace}
    load = from_kubeconfig(str(kube.kubeconfig()))
    with VMPoolList(named_settings((), surroundings), load=load) as pools:
        given = [pools.allocate(id, "web", "shop") for id in "ab"]
        with pytest.raises(VMPoolExhausted):
            pools.allocate("c", wait_s=0.1)

        assert [each.pool for each in given] == ["gpu", "spare"]
        assert pools.get("b") == pools.find_ip("10.2.0.1") == given[1]
        assert pools.list() == given
        assert {name: each.in_use for name, each in pools.status().items()} == {"gpu": 1, "spare": 1}
        assert (pools.deallocate("a"), pools.deallocate_ip("10.2.0.1"), pools.list(pools=["gpu"])) == (True, True, [])


def test_a_list_that_cannot_be_opened_leaves_nothing_open(kube: KubeServer, namespace: str) -> None:
    settings = named_settings(("gpu=10.1.0.1",), {"NODE_NAME": "n", "POOL_NAMESPACE": namespace})

    with pytest.raises(ValueError, match="one name"):
        VMPoolList([*settings, *settings], load=from_kubeconfig(str(kube.kubeconfig())))


def test_both_lists_have_the_same_verbs_and_they_take_the_same() -> None:
    def verbs(kind: type) -> dict[str, Any]:
        return {name: each for name, each in inspect.getmembers(kind) if not name.startswith("_")}

    blocking, asynchronous = verbs(VMPoolList), verbs(AsyncVMPoolList)
    assert set(asynchronous) == {*blocking} - {"close"}
    for name, verb in asynchronous.items():
        assert inspect.signature(verb) == inspect.signature(blocking[name])
