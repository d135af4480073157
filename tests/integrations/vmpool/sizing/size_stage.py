"""Machines that a program makes and removes, as files of a folder, and deciders in processes of their own."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.credentials import from_kubeconfig
from tenure.integrations.kubernetes.runtime.leader_lease import LeaseTimes
from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.sizing.size_decider import DeciderSettings, SizeDecider
from tenure.integrations.vmpool.sizing.vm_programs import VMPrograms
from tenure.integrations.vmpool.state.size_policy import SizePolicy, Watermark
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.infrastructure.forks import FORKS
from tests.infrastructure.kube import KubeServer

QUICK = LeaseTimes(lasts_s=5.0, stops_s=3.0, every_s=0.5)
"""A decider that was killed is followed after five seconds."""
FOUR = tuple(f"10.9.0.{number}" for number in range(1, 5))


def policy(low: int = 2, high: int = 6, **words: Any) -> SizePolicy:
    """Return watermarks by which a pool shrinks at once."""
    return SizePolicy(low=Watermark(low), high=Watermark(high), **{"shrink_after_s": 0.0, "step": 4, **words})


@dataclass(frozen=True)
class Machines:
    """VMs that are there: a file each, named by its address. Programs make and remove them."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "vms").mkdir(parents=True, exist_ok=True)
        (self.folder / "log").touch()

    def start(self, *ips: str) -> None:
        """Let VMs be there already."""
        for ip in ips:
            (self.folder / "vms" / ip).touch()

    @property
    def ips(self) -> set[str]:
        """Return the VMs that are there."""
        return {path.name for path in (self.folder / "vms").iterdir()}

    def is_there(self, ip: str) -> bool:
        """Return whether a VM is there."""
        return (self.folder / "vms" / ip).exists()

    @property
    def log(self) -> list[str]:
        """Return what programs were called for, in their order."""
        return (self.folder / "log").read_text("utf-8").splitlines()

    @property
    def make(self) -> list[str]:
        """Return the program that makes the VM of a request: the same one, however often it is called."""
        text = (
            f'echo "make {{request}} {{ip}}" >> {self.folder}/log; sleep 0.2; number=$(echo {{request}} | '
            f'sed "s/.*-//"); ip={{ip}}; ip=${{ip:-10.9.1.$number}}; touch {self.folder}/vms/$ip; echo $ip'
        )
        return ["sh", "-c", text]

    @property
    def remove(self) -> list[str]:
        """Return the program that removes a VM."""
        return ["sh", "-c", f'echo "remove {{ip}}" >> {self.folder}/log; sleep 0.1; rm -f {self.folder}/vms/{{ip}}']

    @property
    def programs(self) -> VMPrograms:
        """Return both."""
        return VMPrograms(self.make, self.remove, timeout_s=30.0)


@asynccontextmanager
async def deciding(pool: AsyncVMPool, programs: VMPrograms | None = None, **words: Any) -> AsyncIterator[SizeDecider]:
    """Let a decider work beside the block."""
    settings = DeciderSettings(programs or VMPrograms(), **{"every_s": 0.2, "retry_s": 0.2, "lease": QUICK, **words})
    pool.places.lease = QUICK
    decider = SizeDecider(pool, settings)
    task = asyncio.create_task(decider.run())
    try:
        yield decider
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition: Any, within_s: float = 30.0) -> None:
    """Wait until something is so; a coroutine function is awaited."""
    end = time.monotonic() + within_s
    while True:
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return
        assert time.monotonic() < end, "it did not come to be so in time"
        await asyncio.sleep(0.05)


def decide_for_ever(kubeconfig: str, words: dict[str, Any], folder: str) -> None:
    """Be a decider in a process of its own, until it is killed."""
    asyncio.run(_decide(kubeconfig, words, Machines(Path(folder))))


async def _decide(kubeconfig: str, words: dict[str, Any], machines: Machines) -> None:
    async with ApiClient(from_kubeconfig(kubeconfig)) as client:
        pool = AsyncVMPool(client, VMPoolSettings(**words))
        async with deciding(pool, machines.programs):
            await asyncio.Event().wait()


@contextmanager
def candidates(kube: KubeServer, words: dict[str, Any], folder: Path, count: int) -> Iterator[list[Any]]:
    """Start so many processes that would decide; one of them does."""
    args = (str(kube.kubeconfig()), words, str(folder))
    started = [FORKS.Process(target=decide_for_ever, args=args, daemon=True) for _ in range(count)]
    for each in started:
        each.start()
    try:
        yield started
    finally:
        for each in started:
            each.kill()
            each.join()
            each.close()


def leader(kube: KubeServer, namespace: str, name: str = "byom-ip-pool-state-size") -> int:
    """Return the process that decides, as the Lease names it; 0 if there is none."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    found = [each for each in kube.ask("GET", path)["items"] if each["metadata"]["name"] == name]
    holder = found[0]["spec"].get("holderIdentity") if found else ""
    return int(holder.split("/")[1]) if holder else 0


def kill_leader(kube: KubeServer, namespace: str) -> int:
    """Kill the process that decides with -9; return which one it was."""
    pid = leader(kube, namespace)
    os.kill(pid, signal.SIGKILL)
    return pid
