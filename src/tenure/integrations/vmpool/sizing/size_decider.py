"""The one process that grows and shrinks a pool by its watermarks, among all that could: a Lease says which (VS9).

What it does is noted in the list before it is done, so whoever follows a decider that was killed goes on where that
one was. A VM that is being made has a request, which its program is called with until it has ended well. A VM that
leaves is out of the list first; when no pod has it any more it is held back, so that no process can give it out,
however old its list is; only then its program removes it.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from tenure.integrations.kubernetes.runtime.leader_lease import LeaderLease, LeaseTimes
from tenure.integrations.vmpool.modes.pool_lease import process_identity
from tenure.integrations.vmpool.pool_changes import now
from tenure.integrations.vmpool.pool_decisions import PoolFilling
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.sizing.resize_pool import NEEDS_CLUSTER, SizablePool, change_list, hold_back
from tenure.integrations.vmpool.sizing.vm_programs import ProgramFailed, VMPrograms, free_addresses
from tenure.integrations.vmpool.state.argument_checks import check_seconds
from tenure.integrations.vmpool.state.size_policy import SizePolicy
from tenure.integrations.vmpool.state.sized_list import SizedList, VMWork
from tenure.integrations.vmpool.vm_pool_settings import ENTRY_BYTES, LARGEST_CONFIG_MAP, object_beside
from tenure.kernel.errors import Invalid, TenureError

T = TypeVar("T")

LONGEST_PAUSE_S = 3600.0
AT_ONCE_S = 0.2
"""How soon a decider looks again after it has changed something."""
NO_PROGRAM = "VMs were requested, and no program of this decider makes them: start it with the one that does"
NO_SOURCE = "the pool is to grow, and nothing says from where: a prefix, or a program that makes VMs"


NotedWork = Callable[[SizedList], SizedList]
"""Note in the list what became of a VM."""


@dataclass(frozen=True, slots=True)
class DeciderSettings:
    """What a decider is started with."""

    programs: VMPrograms = field(default_factory=VMPrograms)
    every_s: float = 10.0
    """How often it looks."""
    retry_s: float = 30.0
    """After how long a program that failed is called again; after each further failure twice as long, to an hour."""
    lease: LeaseTimes = field(default_factory=LeaseTimes)

    def __post_init__(self) -> None:
        check_seconds(self.every_s, "every_s")
        check_seconds(self.retry_s, "retry_s", may_be_zero=True)


@dataclass
class SizeDecider:
    """A process that decides how large a pool is, or waits until it may."""

    pool: SizablePool
    settings: DeciderSettings
    _above_since: float | None = None
    """Since when more VMs are free than the high watermark says, by this process's clock."""
    _reported: str = ""

    def __post_init__(self) -> None:
        client, pool = self.pool.client, self.pool.settings
        if client is None:
            raise Invalid(NEEDS_CLUSTER, field="client")
        name = object_beside(pool.config_map_name, "size")
        self._lease = LeaderLease(client, pool.namespace, name, process_identity(), self.settings.lease)

    async def run(self) -> None:
        """Decide for as long as this process holds the Lease, until it is cancelled."""
        await self._lease.run(self._lead)

    async def _lead(self) -> None:
        # Another process may have led since, so the time begins again.
        self._above_since = None
        while True:
            is_changed = False
            try:
                is_changed = await self.round()
            # except*: work on several VMs raises its errors as a group.
            except* TenureError as errors:
                self._report(str(errors.exceptions[0]))
            await asyncio.sleep(AT_ONCE_S if is_changed else self.settings.every_s)

    async def round(self) -> bool:
        """Do all that is due now; return whether anything has changed. Cost: two reads where nothing is to be done."""
        sized = await self._known()
        if sized is None:
            return False
        before = sized.generation
        # A decider that was killed may have written the list, and not the note of it.
        await self.pool.places.home.note_list(sized.generation)
        filling = await self._hold_back(sized)
        sized = await self._make(await self._remove(sized, filling.held_back))
        if sized.policy is not None:
            if sized.generation != before:
                filling = await self._hold_back(sized)  # what was made meanwhile is free as well
            sized = await self._resize(sized, sized.policy, filling)
            sized = await self._make(sized)
        self._report(sized.problem)
        return sized.generation != before

    async def _known(self) -> SizedList | None:
        follower = self.pool.places.follower
        assert follower is not None
        sized = (await follower.lists.read()).sized
        if sized is not None:
            follower.line.follow(sized.ips, sized.generation)
        return sized

    async def _hold_back(self, sized: SizedList) -> PoolFilling:
        self._check()
        return await hold_back(self.pool, sized)

    async def _remove(self, sized: SizedList, held_back: Collection[str]) -> SizedList:
        """Remove VMs that are held back."""
        due = {ip: each for ip, each in sized.retiring.items() if ip in held_back and self._is_due(each)}
        if not due:
            return sized
        pool, programs = self.pool.settings.config_map_name, self.settings.programs
        if not programs.remove:
            self._count("removed", due)
            return await self._change(lambda found: found.removed(due))
        # From here on an address does not come back into the pool before its program has ended well.
        sized = await self._change(lambda found: found.begun(due))

        async def remove(ip: str) -> NotedWork:
            await programs.remove_vm(pool, ip)
            self._count("removed", [ip])
            return lambda found: found.removed([ip])

        # An address may have come back into the pool before its removal was marked.
        return await self._each([ip for ip in due if ip in sized.retiring], remove) or sized

    async def _make(self, sized: SizedList) -> SizedList:
        """Make the VMs that were requested."""
        due = {name: each for name, each in sized.making.items() if self._is_due(each)}
        pool, programs = self.pool.settings.config_map_name, self.settings.programs
        if not programs.make:
            return sized

        async def make(request: str) -> NotedWork:
            ip = await programs.make_vm(pool, request, due[request].ip)
            self._count("added", [ip])
            return _made(request, ip, is_named=bool(due[request].ip))

        return await self._each(due, make) or sized

    async def _each(self, names: Collection[str], work: Callable[[str], Awaitable[NotedWork]]) -> SizedList | None:
        """Do a piece of work for each VM, some at once, and note each as soon as it has ended."""
        turns = asyncio.Semaphore(self.settings.programs.at_once)

        async def one(name: str) -> SizedList:
            async with turns:
                # By now the Lease may be another decider's, which calls the same programs.
                self._check()
                try:
                    noted = await work(name)
                except ProgramFailed as error:
                    self._failed(name, str(error))
                    noted = _failure(name, str(error), now())
                return await self._change(noted)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(name)) for name in names]
        # Each task has written the list again, and the newest has what all of them noted.
        return max((task.result() for task in tasks), key=lambda each: each.generation, default=None)

    async def _resize(self, sized: SizedList, policy: SizePolicy, filling: PoolFilling) -> SizedList:
        """Request VMs, or let some retire, as the watermarks say."""
        free = [ip for ip in filling.free if ip in sized.ips]
        policy, limit = self._that_fits(policy)
        growth = policy.growth(sized.size, len(free) + len(sized.making))
        if growth:
            self._above_since = None
            return await self._grow(sized, policy, growth)
        shrinkage = policy.shrinkage(len(sized.ips), len(free))
        if not shrinkage:
            self._above_since = None
        elif self._is_long_enough(policy):
            leaving = _leaving(sized, free, shrinkage, is_too_large=len(sized.ips) > policy.most)
            return await self._shrink(leaving)
        is_short = len(free) + len(sized.making) < policy.low.of(sized.size)
        problem = NO_PROGRAM if sized.making and not self.settings.programs.make else limit if is_short else ""
        return await self._note(sized, problem)

    def _that_fits(self, policy: SizePolicy) -> tuple[SizePolicy, str]:
        """Return a policy that keeps a pool within one ConfigMap, where it is in one, and why it does not grow."""
        most = LARGEST_CONFIG_MAP // ENTRY_BYTES
        if self.pool.places.mode != "configmap" or policy.most <= most:
            return policy, f"the pool is as large as it may be ({policy.most})"
        limited = replace(policy, most=most, least=min(policy.least, most))
        return limited, f"the pool is as large as one ConfigMap bears ({most} VMs allocated): move it to another mode"

    async def _grow(self, sized: SizedList, policy: SizePolicy, growth: int) -> SizedList:
        """Bring back what retires and whose removal has not begun; request the rest."""
        make, pool = self.settings.programs.make, self.pool.settings.config_map_name

        def grown(found: SizedList) -> SizedList:
            back = [ip for ip, each in found.retiring.items() if not each.is_begun][-growth:]
            found, missing = found.added(back), growth - len(back)
            if not missing:
                return replace(found, problem="")
            named = list(itertools.islice(free_addresses(policy.prefix, found), missing)) if policy.prefix else []
            if policy.prefix and not named:
                return replace(found, problem=f"the pool is to grow, and {policy.prefix} has no more addresses")
            if not make:
                return replace(found.added(named), problem="" if named else NO_SOURCE)
            return replace(found.requested(pool, missing, named, now()), problem="")

        changed = await self._change(grown)
        self._count("added", [ip for ip in changed.ips if ip not in sized.ips])
        return changed

    async def _shrink(self, leaving: Collection[str]) -> SizedList:
        self._above_since = None
        changed = await self._change(lambda found: replace(found.retired(leaving, now()), problem=""))
        self._count("retired", leaving)
        return changed

    def _is_long_enough(self, policy: SizePolicy) -> bool:
        if self._above_since is None:
            self._above_since = time.monotonic()
        return time.monotonic() - self._above_since >= policy.shrink_after_s

    async def _note(self, sized: SizedList, problem: str) -> SizedList:
        """Note why a pool is not as large as it should be, if that has changed."""
        if sized.problem == problem:
            return sized
        return await self._change(lambda found: replace(found, problem=problem))

    async def _change(self, decide: Callable[[SizedList], SizedList]) -> SizedList:
        def on_list(found: SizedList | None) -> SizedList:
            if found is None:
                raise Invalid("the list of the pool was deleted while it was changed", field="list")
            return decide(found)

        return await change_list(self.pool.places, on_list, self._check)

    def _check(self) -> None:
        self._lease.check()

    def _is_due(self, work: VMWork) -> bool:
        if work.tried_at is None:
            return True
        # The exponent is bounded: tries are read from the list, in which any number may stand.
        pause_s = min(self.settings.retry_s * 2 ** min(max(work.tries - 1, 0), 20), LONGEST_PAUSE_S)
        return now() >= work.tried_at + timedelta(seconds=pause_s)

    def _count(self, change: str, ips: Collection[str]) -> None:
        for ip in ips:
            audit(PoolEvent.RESIZED, pool=self.pool.settings.config_map_name, change=change, ip=ip)
        if self.pool.meter is not None:
            self.pool.meter.resized(change, len(ips))

    def _failed(self, name: str, cause: str) -> None:
        audit(PoolEvent.RESIZE_FAILED, pool=self.pool.settings.config_map_name, vm=name, cause=cause)
        if self.pool.meter is not None:
            self.pool.meter.resized("failed")

    def _report(self, problem: str) -> None:
        """Write why the pool is not as large as it should be, once until there is another reason."""
        if problem and problem != self._reported:
            audit(PoolEvent.WARNING, pool=self.pool.settings.config_map_name, warning=problem)
        self._reported = problem


def _failure(name: str, cause: str, at: datetime) -> NotedWork:
    return lambda found: found.failed(name, cause, at)


def _made(request: str, ip: str, *, is_named: bool) -> NotedWork:
    """Note a VM that was made; one whose program has named an address that is another VM's has failed."""
    at = now()

    def noted(found: SizedList) -> SizedList:
        if not is_named and request in found.making and found.knows(ip):
            return found.failed(request, f"the program has printed {ip}, which is an address of the pool already", at)
        return found.made(request, ip)

    return noted


def _leaving(sized: SizedList, free: Collection[str], count: int, *, is_too_large: bool) -> list[str]:
    """Return which addresses retire: those that are free, the last of the list first; used ones only if it must be."""
    spare = [ip for ip in reversed(sized.ips) if ip in free]
    if is_too_large:
        spare += [ip for ip in reversed(sized.ips) if ip not in free]
    return spare[:count]
