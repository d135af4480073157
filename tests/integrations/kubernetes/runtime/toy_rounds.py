"""Rounds of faults around two replicas of the toy: after each, seeds and echoes agree, and caches with the server."""

import asyncio
import base64
import json
import random
import signal
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.resource_types import LEASE, Object, version_of
from tests.infrastructure.forked_tenure import ForkedModule
from tests.infrastructure.kube import OPERATOR, KubeServer, fresh_namespace, private_kube
from tests.integrations.kubernetes.cluster import install
from tests.integrations.kubernetes.runtime.toy_controller import CONFIG_MAP, TIMES, ToyWrite, label

ROOT = Path(__file__).parents[4]
WITHIN_S = 60
SEEDS = 12
LOAD_S = 1.0


@asynccontextmanager
async def user(server: KubeServer) -> AsyncIterator[ApiClient]:
    """Give a client with all rights."""
    async with ApiClient(from_kubeconfig(str(server.kubeconfig()))) as client:
        yield client


async def seed(client: ApiClient, namespace: str, name: str, text: str) -> Object:
    """Create a seed."""
    metadata = {"namespace": namespace, "name": name, "labels": {"toy": "seed"}}
    return await client.create(CONFIG_MAP, {"metadata": metadata, "data": {"text": text}})


async def objects(client: ApiClient, namespace: str) -> list[Object]:
    """Return seeds and echoes, freshly listed."""
    found, _ = await Informer(client, CONFIG_MAP, namespace=namespace, labels="toy").list_all()
    return found


async def state(client: ApiClient, namespace: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return seeds and echoes, by name of the seed."""
    found: dict[str, dict[str, str]] = {"seed": {}, "echo": {}}
    for each in await objects(client, namespace):
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


def start_replica(server: KubeServer, namespace: str, identity: str, folder: Path) -> "subprocess.Popen[bytes]":
    """Start a replica with the operator's rights."""
    module = "tests.integrations.kubernetes.runtime.toy_controller"
    words = [str(server.kubeconfig(OPERATOR)), namespace, identity, str(folder)]
    return ForkedModule[bytes](module, *words)


@contextmanager
def replicas(server: KubeServer, namespace: str, *identities: str) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Run replicas of the toy in processes of their own."""
    with TemporaryDirectory(prefix="tenure-toy-") as folder:
        started = [start_replica(server, namespace, identity, Path(folder)) for identity in identities]
        try:
            yield started
        finally:
            for process in started:
                process.kill()
                process.wait(10)


@dataclass
class ToyStage:
    """A server, a namespace, and two replicas; every replica that was ever started has a name of its own."""

    server: KubeServer
    namespace: str
    folder: Path
    chance: random.Random
    living: "dict[str, subprocess.Popen[bytes]]" = field(default_factory=dict)
    started: int = 0
    writes: dict[str, list[ToyWrite]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    relists: dict[str, int] = field(default_factory=dict)
    victims: int = 0

    async def fill(self) -> None:
        """Start replicas until there are two that hear signals."""
        while len(self.living) < 2:
            self.started += 1
            name = f"r{self.started}"
            self.living[name] = start_replica(self.server, self.namespace, name, self.folder)
            await self._written(name)

    def leader(self) -> str:
        """Return the living replica that holds the Lease; none as long as the server does not know of one."""
        try:
            lease = self.server.ask("GET", LEASE.path("tenure-system", f"toy-{self.namespace}"))
        except urllib.error.HTTPError:
            return ""
        holder = str(lease["spec"].get("holderIdentity"))
        return holder if holder in self.living else ""

    async def until_led(self) -> str:
        """Wait until a living replica leads, and return which."""
        async with asyncio.timeout(WITHIN_S):
            while not (name := await asyncio.to_thread(self.leader)):  # noqa: ASYNC110 - a server is polled
                await asyncio.sleep(0.05)
        return name

    async def victim(self) -> str:
        """Choose a replica: every other time the leader."""
        self.victims += 1
        return await self.until_led() if self.victims % 2 else self.chance.choice(sorted(self.living))

    def end(self) -> None:
        """End all replicas."""
        for process in self.living.values():
            process.kill()
            process.wait(10)

    async def snapshot(self, name: str) -> Mapping[str, int]:
        """Return the versions in a replica's cache, and note what it has written."""
        place = self.folder / name
        place.unlink(missing_ok=True)
        self.living[name].send_signal(signal.SIGUSR1)
        await self._written(name)
        noted = json.loads(place.read_text("utf-8"))
        self.writes[name] = [ToyWrite(*each) for each in noted["writes"]]
        self.refused[name], self.relists[name] = noted["refused"], noted["relists"]
        found: Mapping[str, int] = noted["cache"]
        return found

    async def _written(self, name: str) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not (self.folder / name).exists():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.02)


async def kill_replica(stage: ToyStage) -> None:
    """Kill a replica; another is started in its place."""
    name = await stage.victim()
    await stage.snapshot(name)  # what it has written would be forgotten with it
    process = stage.living.pop(name)
    process.kill()
    process.wait(10)


async def freeze_replica(stage: ToyStage) -> None:
    """Freeze a replica past its lease, and wake it."""
    process = stage.living[await stage.victim()]
    process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(TIMES.lasts_s + stage.chance.random())
    process.send_signal(signal.SIGCONT)


async def kill_api_server(stage: ToyStage) -> None:
    """Kill the API server and start it again."""
    stage.server.kill("kube-apiserver")
    await asyncio.sleep(stage.chance.random())
    await asyncio.to_thread(stage.server.start_api_server)


async def kill_etcd(stage: ToyStage) -> None:
    """Kill the store under the API server, which lives on, and start it again."""
    stage.server.kill("etcd")
    await asyncio.sleep(stage.chance.random())
    stage.server.start_etcd()


async def forget_versions(stage: ToyStage) -> None:
    """Freeze a replica, remove objects, and forget every version that it has seen, also in the API server's cache.

    It cannot resume its watch then: only a list can say what is gone.
    """
    name = await stage.victim()
    await stage.snapshot(name)
    before, process = stage.relists[name], stage.living[name]
    process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(0.5)
    stage.server.kill("kube-apiserver")  # with it ends the connection in which events would wait for the replica
    erase_behind(stage.server, f"/registry/configmaps/{stage.namespace}/s1")
    compact(stage.server)
    await asyncio.to_thread(stage.server.start_api_server)
    process.send_signal(signal.SIGCONT)
    async with asyncio.timeout(WITHIN_S):
        while stage.relists[name] == before:
            await asyncio.sleep(0.1)
            await stage.snapshot(name)


async def expire_credentials(stage: ToyStage) -> None:
    """Give the operator another token; replicas meet 401 until the new one is in the file that they read."""
    stage.server.renew_operator_token()
    await kill_api_server(stage)
    await asyncio.sleep(stage.chance.random())
    stage.server.kubeconfig(OPERATOR)


FAULTS: Mapping[str, Callable[[ToyStage], Awaitable[None]]] = {
    "kill-replica": kill_replica,
    "freeze-replica": freeze_replica,
    "kill-api-server": kill_api_server,
    "kill-etcd": kill_etcd,
    "forget-versions": forget_versions,
    "expire-credentials": expire_credentials,
}


async def trouble(stage: ToyStage, client: ApiClient, done: asyncio.Event) -> None:
    """Make, change and remove seeds until ``done`` is set; a server that is away is asked again later."""
    while not done.is_set():
        name = f"s{stage.chance.randrange(SEEDS)}"
        try:
            living = {each["metadata"]["name"]: each for each in await objects(client, stage.namespace)}
            if name not in living:
                await seed(client, stage.namespace, name, str(stage.chance.random()))
            elif stage.chance.random() < 0.5:
                await client.delete(CONFIG_MAP, living[name])
            else:
                step = {"op": "replace", "path": "/data/text", "value": str(stage.chance.random())}
                await client.patch(CONFIG_MAP, living[name], [step])
        except (ApiError, ApiUnreachable):
            await asyncio.sleep(0.2)
        await asyncio.sleep(stage.chance.random() * 0.05)


async def play_round(stage: ToyStage, fault: str) -> Counter[str]:
    """Let a fault happen in the middle of writes; return what was found afterwards."""
    figures: Counter[str] = Counter({fault: 1, "lost": 0})
    await stage.fill()
    async with user(stage.server) as client:
        done = asyncio.Event()
        users = asyncio.create_task(trouble(stage, client, done))
        await asyncio.sleep(LOAD_S)
        await FAULTS[fault](stage)
        await stage.fill()
        await asyncio.sleep(LOAD_S)
        done.set()
        await users
        await settled(client, stage.namespace)
        for name in stage.living:
            figures["lost"] += await differing(stage, client, name)
    return figures


async def differing(stage: ToyStage, client: ApiClient, name: str) -> int:
    """Return in how many objects a replica's cache differs from a fresh list, for as long as it may lag."""
    for _ in range(100):
        listed = {each["metadata"]["name"]: version_of(each) for each in await objects(client, stage.namespace)}
        apart = dict(await stage.snapshot(name)).items() ^ listed.items()
        if not apart:
            return 0
        await asyncio.sleep(0.1)
    return len(apart)


def handled_twice(writes: Iterable[ToyWrite]) -> list[str]:
    """Return the objects that a former leader wrote after its follower had.

    A create that comes late is passed over: nothing can refuse it if the follower has deleted the object meanwhile. The
    follower then sees an object that it does not want, and deletes it again.
    """
    newest: dict[str, float] = {}
    found = []
    for write in sorted(writes, key=lambda write: write.version):
        if write.since < newest.setdefault(write.name, write.since) and write.names_version:
            found.append(write.name)
        newest[write.name] = max(newest[write.name], write.since)
    return found


@asynccontextmanager
async def toy_stage(server: KubeServer, number: int) -> AsyncIterator[ToyStage]:
    """Give a stage in a namespace of its own."""
    with TemporaryDirectory(prefix="tenure-toy-") as folder, fresh_namespace(server) as namespace:
        stage = ToyStage(server, namespace, Path(folder), random.Random(number))
        try:
            yield stage
        finally:
            stage.end()


async def toy_rounds(number: int, rounds: int) -> Counter[str]:
    """Play rounds on one server, each fault in turn in an order of the seed, and print a line of each."""
    total: Counter[str] = Counter()
    with private_kube() as server:
        install(server)
        async with toy_stage(server, number) as stage:
            order = [name for _ in range(rounds) for name in stage.chance.sample(sorted(FAULTS), len(FAULTS))]
            for played, fault in enumerate(order[:rounds], start=1):
                figures = await play_round(stage, fault)
                print(f"  round {played}/{rounds} (seed {number}): {dict(figures)}", flush=True)
                total.update(figures)
    total.update(written(stage))
    return total


def written(stage: ToyStage) -> Counter[str]:
    """Return how many writes all replicas were answered, and how many of them came after another leader's."""
    writes = [write for each in stage.writes.values() for write in each]
    return Counter(writes=len(writes), doubled=len(handled_twice(writes)))


def erase_behind(server: KubeServer, prefix: str) -> None:
    """Remove objects from etcd without the API server, and some versions on."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    ask_etcd(server, "deleterange", {"key": encoded(prefix), "range_end": encoded(end)})
    for _ in range(3):
        ask_etcd(server, "put", {"key": encoded("/tests"), "value": ""})


def encoded(text: str) -> str:
    """Write a text as the gateway of etcd wants it."""
    return base64.b64encode(text.encode()).decode()


def compact(server: KubeServer) -> None:
    """Let etcd forget every version but the present one."""
    found = ask_etcd(server, "range", {"key": encoded("/")})
    ask_etcd(server, "compaction", {"revision": found["header"]["revision"], "physical": True})


def ask_etcd(server: KubeServer, verb: str, body: Object) -> Object:
    """Ask the etcd under an API server, by its gateway for JSON."""
    request = urllib.request.Request(f"{server.etcd_url}/v3/kv/{verb}", json.dumps(body).encode())  # noqa: S310 - ours
    with urllib.request.urlopen(request) as response:  # noqa: S310
        answer: Object = json.load(response)
    return answer
