"""A controller without any subject: for each ConfigMap with the label ``toy=seed`` it keeps one with ``toy=echo``.

Run as a program it is a replica: ``python -m … KUBECONFIG NAMESPACE IDENTITY FOLDER``. It notes each write in a file of
the folder, and at SIGUSR1 what is in its cache. While the folder has a file ``freeze-IDENTITY``, it stops itself like
SIGSTOP does when it has a write in hand that it was allowed to send.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectExists, WriteConflict
from tenure.integrations.kubernetes.runtime.credentials import Loader, from_kubeconfig
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease, LeaseTimes
from tenure.integrations.kubernetes.runtime.patches import guarded
from tenure.integrations.kubernetes.runtime.resource_types import Key, Object, ResourceType, key_of, version_of
from tenure.integrations.kubernetes.runtime.runtime_meter import RuntimeMeter
from tenure.integrations.kubernetes.runtime.work_queue import WorkQueue

CONFIG_MAP = ResourceType("", "v1", "configmaps", "ConfigMap")
TIMES = LeaseTimes(lasts_s=3.0, stops_s=2.0, every_s=0.3)
WORKERS = 8


class ToyWrite(NamedTuple):
    """A write that the server has done: under which leadership, on which object, as which version.

    The answer to a deletion has no version. The object had the one that the deletion named, and it had no other after
    that, so half a version more is in order.
    """

    since: float
    """When the leadership began, by the machine's monotonic clock: a later one has a greater number."""
    name: str
    version: float
    names_version: bool = True
    """Whether the write was conditional on what was read; a create cannot be."""


def label(object: Object) -> str:
    return str((object["metadata"].get("labels") or {}).get("toy", ""))


class ToyController:
    """Echoes seeds: creates, corrects and deletes echoes, as long as it leads."""

    def __init__(
        self, client: ApiClient, lease: LeaderLease, namespace: str, identity: str, folder: Path | None = None
    ) -> None:
        self.namespace = namespace
        self.identity = identity
        self.meter = RuntimeMeter()
        self.informer = Informer(client, CONFIG_MAP, namespace=namespace, labels="toy", silent_s=5, meter=self.meter)
        self.refused = 0
        self.queue: WorkQueue[str] = WorkQueue(longest_delay_s=1.0)
        self.writes: list[ToyWrite] = []
        self._since = 0.0
        self._freeze = folder / f"freeze-{identity}" if folder is not None else None
        self._client, self._lease = client, lease
        self.informer.on_change(lambda delta: self.queue.add(delta.key[1].removesuffix("-echo")))

    async def lead(self) -> None:
        """Compare with a consistent list first (KP5), then work."""
        self._since = time.monotonic()
        await self.informer.synced.wait()
        await self.informer.compare()
        for object in self.informer.cache:
            self.queue.add(key_of(object)[1].removesuffix("-echo"))
        await self.queue.work(self._settle, WORKERS, lambda key, error, delay_s: None)

    async def _settle(self, name: str) -> None:
        seed, echo = (self.informer.cache.get(self._key(each)) for each in (name, f"{name}-echo"))
        wanted = seed["data"] if seed is not None and label(seed) == "seed" else None
        if (echo["data"] if echo is not None else None) == wanted:
            return
        self._lease.check()
        writing = self._write_or_compare(name, echo, wanted)
        # The write of a leader that was frozen is not taken back when it wakes, like one that is on its way.
        await (asyncio.shield(asyncio.create_task(writing)) if self._froze() else writing)

    def _froze(self) -> bool:
        if self._freeze is None or not self._freeze.exists():
            return False
        self._freeze.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
        return True

    async def _write_or_compare(self, name: str, echo: Object | None, wanted: Any) -> None:
        try:
            await self._write(name, echo, wanted)
        except (ObjectExists, WriteConflict):
            self.refused += 1
            await self.informer.compare()  # another process wrote: look before the next try
            raise

    async def _write(self, name: str, echo: Object | None, wanted: Any) -> None:
        metadata = {"namespace": self.namespace, "name": f"{name}-echo", "labels": {"toy": "echo"}}
        if echo is None:
            made = await self._client.create(CONFIG_MAP, {"metadata": metadata, "data": wanted})
            self._wrote(made, names_version=False)
        elif wanted is None:
            self.informer.deleted(echo, await self._client.delete(CONFIG_MAP, echo))
            self.writes.append(ToyWrite(self._since, key_of(echo)[1], version_of(echo) + 0.5))
        else:
            step = {"op": "replace", "path": "/data", "value": wanted}
            self._wrote(await self._client.patch(CONFIG_MAP, echo, guarded(echo, step)))

    def _wrote(self, object: Object, *, names_version: bool = True) -> None:
        self.informer.wrote(object)
        self.writes.append(ToyWrite(self._since, key_of(object)[1], version_of(object), names_version))

    def _key(self, name: str) -> Key:
        return self.namespace, name


async def replica(load: Loader, namespace: str, identity: str, folder: Path) -> None:
    """Run a replica until cancelled; an API server that is away at the start is waited for."""
    while True:
        try:
            async with (
                ApiClient(load, timeout_s=5) as client,
                ApiClient(load, in_flight=2, timeout_s=1) as lease_client,
            ):
                lease = LeaderLease(lease_client, "tenure-system", f"toy-{namespace}", identity, TIMES)
                toy = ToyController(client, lease, namespace, identity, folder)
                asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, dump, toy, folder)
                dump(toy, folder)  # the file says that the signal is heard
                async with asyncio.TaskGroup() as group:
                    group.create_task(toy.informer.run())
                    group.create_task(lease.run(toy.lead))
        except* (ApiError, ApiUnreachable):
            await asyncio.sleep(0.5)


def dump(toy: ToyController, folder: Path) -> None:
    """Write down what a replica has in its cache, and every write that it was answered; whole, or not at all."""
    versions = {key_of(object)[1]: version_of(object) for object in toy.informer.cache}
    unfinished = folder / f".{toy.identity}"
    found = {
        "cache": versions,
        "writes": toy.writes,
        "refused": toy.refused,
        "relists": sum(toy.meter.relists.values()),
    }
    unfinished.write_text(json.dumps(found), "utf-8")
    unfinished.rename(folder / toy.identity)


if __name__ == "__main__":
    asyncio.run(replica(from_kubeconfig(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])))
