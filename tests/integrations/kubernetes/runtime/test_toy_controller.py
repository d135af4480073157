"""A controller on the runtime stays right through what happens to API servers, replicas, credentials and versions."""

import asyncio
import base64
import json
import os
import random
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.infrastructure.kube import OPERATOR, KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.runtime.toy_controller import CONFIG_MAP, TIMES, ToyController, label

ROOT = Path(__file__).parents[4]
WITHIN_S = 60


@pytest.fixture(scope="module")
def fragile() -> Iterator[KubeServer]:
    """Give an API server that may be killed."""
    with private_kube() as server:
        install(server)
        yield server


@contextmanager
def replicas(server: KubeServer, namespace: str, *identities: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run replicas of the toy in processes of their own."""
    program = [sys.executable, "-m", "tests.integrations.kubernetes.runtime.toy_controller"]
    kubeconfig = str(server.kubeconfig(OPERATOR))
    started = [subprocess.Popen([*program, kubeconfig, namespace, identity], cwd=ROOT) for identity in identities]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait(10)


@asynccontextmanager
async def user(server: KubeServer) -> AsyncIterator[ApiClient]:
    async with ApiClient(from_kubeconfig(str(server.kubeconfig()))) as client:
        yield client


async def seed(client: ApiClient, namespace: str, name: str, text: str) -> Object:
    metadata = {"namespace": namespace, "name": name, "labels": {"toy": "seed"}}
    return await client.create(CONFIG_MAP, {"metadata": metadata, "data": {"text": text}})


async def state(client: ApiClient, namespace: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return seeds and echoes, by name of the seed."""
    objects, _ = await Informer(client, CONFIG_MAP, namespace=namespace, labels="toy").list_all()
    found: dict[str, dict[str, str]] = {"seed": {}, "echo": {}}
    for each in objects:
        found[label(each)][each["metadata"]["name"].removesuffix("-echo")] = each["data"]["text"]
    return found["seed"], found["echo"]


async def settled(client: ApiClient, namespace: str) -> None:
    """Wait until every seed has its echo, and nothing else has one."""
    last: object = None
    try:
        async with asyncio.timeout(WITHIN_S):
            while True:
                try:
                    seeds, echoes = last = await state(client, namespace)
                    if seeds == echoes:
                        return
                except (ApiError, ApiUnreachable):
                    pass
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not settled: {last}") from None


async def test_seeds_are_echoed_corrected_and_removed(fragile: KubeServer) -> None:
    with fresh_namespace(fragile) as namespace, replicas(fragile, namespace, "one"):
        async with user(fragile) as client:
            seeds = [await seed(client, namespace, f"s{number}", "first") for number in range(20)]
            await settled(client, namespace)
            await client.patch(CONFIG_MAP, seeds[0], [{"op": "replace", "path": "/data/text", "value": "second"}])
            await client.delete(CONFIG_MAP, seeds[1])
            echo = await client.get(CONFIG_MAP.path(namespace, "s2-echo"))
            await client.delete(CONFIG_MAP, echo)
            await settled(client, namespace)
            assert (await state(client, namespace))[1]["s0"] == "second"


async def test_an_api_server_that_is_killed_and_started_again_is_followed(fragile: KubeServer) -> None:
    with fresh_namespace(fragile) as namespace, replicas(fragile, namespace, "one", "two"):
        async with user(fragile) as client:
            await seed(client, namespace, "before", "x")
            await settled(client, namespace)
        fragile.kill("kube-apiserver")
        await asyncio.sleep(1)
        await asyncio.to_thread(fragile.start_api_server)
        async with user(fragile) as client:
            await seed(client, namespace, "after", "x")
            await settled(client, namespace)


async def test_what_was_compacted_away_is_listed_again(fragile: KubeServer) -> None:
    """The replica is frozen while the versions it has seen are forgotten: 410, a list, and what is gone is noticed."""
    with fresh_namespace(fragile) as namespace, replicas(fragile, namespace, "one") as [process]:
        async with user(fragile) as client:
            gone = await seed(client, namespace, "gone", "x")
            await settled(client, namespace)
            process.send_signal(signal.SIGSTOP)
            await client.delete(CONFIG_MAP, gone)
            for number in range(30):
                await seed(client, namespace, f"n{number}", "x")
            compact(fragile)
            fragile.kill("kube-apiserver")  # its watch cache remembers what etcd has forgotten
            await asyncio.to_thread(fragile.start_api_server)
            process.send_signal(signal.SIGCONT)
        async with user(fragile) as client:
            await settled(client, namespace)


async def test_a_frozen_leader_does_no_harm_when_it_wakes(fragile: KubeServer) -> None:
    """Another replica leads meanwhile; what the old leader has in hand is refused, since it names old versions."""
    with fresh_namespace(fragile) as namespace, replicas(fragile, namespace, "one") as [first]:
        async with user(fragile) as client:
            seeds = [await seed(client, namespace, f"s{number}", "first") for number in range(10)]
            await settled(client, namespace)
            first.send_signal(signal.SIGSTOP)
            with replicas(fragile, namespace, "two"):
                for each in seeds[:5]:
                    await client.patch(CONFIG_MAP, each, [{"op": "replace", "path": "/data/text", "value": "second"}])
                for each in seeds[5:]:
                    await client.delete(CONFIG_MAP, each)
                await settled(client, namespace)
                first.send_signal(signal.SIGCONT)
                await asyncio.sleep(2 * TIMES.every_s)
                await settled(client, namespace)
                assert set((await state(client, namespace))[1].values()) == {"second"}


async def test_a_write_of_a_former_leader_is_refused_by_what_it_names(fragile: KubeServer) -> None:
    """The fence: even a leader that does not check its lease cannot undo what its follower wrote."""
    with fresh_namespace(fragile) as namespace:
        async with user(fragile) as client:
            lease = LeaderLease(client, "tenure-system", f"toy-{namespace}", "old", TIMES)
            old = ToyController(client, lease, namespace, "old")
            await seed(client, namespace, "a", "first")
            task = asyncio.create_task(old.informer.run())
            await old.informer.synced.wait()
            await old._write("a", None, {"text": "first"})
            stale = old.informer.cache.get((namespace, "a-echo"))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert stale is not None
            newer = await client.get(CONFIG_MAP.path(namespace, "a-echo"))
            await client.patch(CONFIG_MAP, newer, [{"op": "replace", "path": "/data/text", "value": "newer"}])

            for wanted in ({"text": "older"}, None):
                with pytest.raises(ApiError, match=r"409|422"):
                    await old._write("a", stale, wanted)
            assert (await state(client, namespace))[1] == {"a": "newer"}


@pytest.mark.proof
async def test_random_kills_leave_seeds_and_echoes_in_agreement(fragile: KubeServer) -> None:
    chance = random.Random(int(os.environ.get("TENURE_SEED", "1")))
    with fresh_namespace(fragile) as namespace:
        async with user(fragile) as client:
            living: dict[str, Object] = {}
            for number in range(4):
                with replicas(fragile, namespace, f"a{number}", f"b{number}") as processes:
                    for _ in range(15):
                        name = f"s{chance.randrange(12)}"
                        if name in living:
                            await client.delete(CONFIG_MAP, living.pop(name))
                        else:
                            living[name] = await seed(client, namespace, name, str(chance.random()))
                        await asyncio.sleep(chance.random() * 0.1)
                    await asyncio.sleep(chance.random() * 3)
                    chance.choice(processes).kill()
                    await settled(client, namespace)


def compact(server: KubeServer) -> None:
    """Let etcd forget every version but the present one."""
    found = ask_etcd(server, "range", {"key": base64.b64encode(b"/").decode()})
    ask_etcd(server, "compaction", {"revision": found["header"]["revision"], "physical": True})


def ask_etcd(server: KubeServer, verb: str, body: Object) -> Object:
    """Ask the etcd under an API server, by its gateway for JSON."""
    request = urllib.request.Request(f"{server.etcd_url}/v3/kv/{verb}", json.dumps(body).encode())  # noqa: S310 - ours
    with urllib.request.urlopen(request) as response:  # noqa: S310
        answer: Object = json.load(response)
    return answer
