"""The pool for callers who block: the same verbs, from many threads."""

import inspect
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.credentials import CredentialsMissing
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.integrations.vmpool.vm_pool import VMPool
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.kernel.errors import Conflict, Invalid
from tests.infrastructure.kube import KubeServer

TWO = ("10.0.0.1", "10.0.0.2")
ASYNC_ONLY = {"connect", "change", "read", "node_name", "request", "allocate_once", "count", "counted"}


def opened(kube: KubeServer, namespace: str, *ips: str, **words: Any) -> VMPool:
    settings = VMPoolSettings(pool_ips=ips or TWO, namespace=namespace, node_name="node-1", **words)
    return VMPool(settings, kubeconfig=str(kube.kubeconfig()))


def test_every_verb_of_a_pool(kube: KubeServer, namespace: str) -> None:
    with opened(kube, namespace) as pool:
        found = pool.allocate("a", "web-0", "shop")
        assert (pool.get("a"), pool.find_ip(found.ip), pool.list()) == (found, found, [found])
        assert (pool.status().in_use, pool.verify(), pool.repair().is_written) == (1, (), False)
        assert (pool.reassert(), pool.vanished) == ((), ())
        pool.allocate("b")
        with pytest.raises(VMPoolExhausted):
            pool.allocate("c")
        assert (pool.deallocate("a"), pool.deallocate("a")) == (True, False)
        [left] = pool.list()
        assert pool.deallocate_ip(left.ip) is True
        assert pool.settings.line.ips == TWO


def test_threads_share_a_pool(kube: KubeServer, namespace: str) -> None:
    ips = [f"10.0.0.{last}" for last in range(1, 33)]
    with opened(kube, namespace, *ips) as pool, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: pool.allocate(f"id-{number}"), range(32)))
        assert sorted(each.ip for each in found) == sorted(ips)
        assert pool.status().version < 34


def test_a_pool_that_is_closed_says_so(kube: KubeServer, namespace: str) -> None:
    before = threading.active_count()
    pool = opened(kube, namespace)
    pool.close()
    pool.close()
    with pytest.raises(Conflict, match="this pool is closed"):
        pool.status()

    assert threading.active_count() == before


def test_without_credentials_nothing_is_left_behind() -> None:
    before = threading.active_count()
    with pytest.raises(CredentialsMissing):
        VMPool(VMPoolSettings(pool_ips=TWO), kubeconfig="no-such-file")
    with pytest.raises(Invalid, match="configuration cannot be nil"):
        VMPool(None)  # type: ignore[arg-type]

    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("verb", "words", "said"),
    [
        ("recover", {"mode": "foo"}, "mode: 'keep' or 'release' is needed, not 'foo'"),
        ("recover", {"cleanup": print}, "cleanup: a CleanupPlan is needed"),
        ("repair", {"outside_pool": "foo"}, "outside_pool: 'keep' or 'drop' is needed, not 'foo'"),
        ("move", {"to": "foo"}, "to: 'configmap' or 'per-ip' or 'shards' or 'ledger' is needed, not 'foo'"),
        ("allocate", {"allocation_id": "a", "wait_s": float("nan")}, "wait_s: a duration"),
        ("allocate", {"allocation_id": "a", "probe": 22}, "probe: a ReadinessProbe is needed"),
    ],
)
def test_an_argument_that_is_wrong_is_a_value_error_that_names_it(
    kube: KubeServer, namespace: str, verb: str, words: dict[str, Any], said: str
) -> None:
    with opened(kube, namespace) as pool, pytest.raises(ValueError, match=f"^{re.escape(said)}") as caught:
        getattr(pool, verb)(**words)

    assert isinstance(caught.value, Invalid)


def test_settings_that_are_none_are_said_so() -> None:
    with pytest.raises(ValueError, match=r"^settings: VMPoolSettings are needed, not \{"):
        VMPool({"pool_ips": ["10.0.0.1"]})  # type: ignore[arg-type]  # that is the test


def test_both_pools_have_the_same_verbs_and_they_take_the_same() -> None:
    def verbs(kind: type) -> dict[str, Any]:
        return {name: each for name, each in inspect.getmembers(kind) if not name.startswith("_")}

    blocking, asynchronous = verbs(VMPool), verbs(AsyncVMPool)
    assert set(asynchronous) - ASYNC_ONLY <= {*blocking, "settings"}
    for name, verb in blocking.items():
        if callable(verb):
            assert inspect.signature(verb) == inspect.signature(asynchronous[name])
