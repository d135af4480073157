"""Several named pools, tried in order, for asyncio; ``vm_pool_list`` has its twin for everybody else (VD7).

An id has one VM, in one of the pools, also if processes ask for it at the same time, are killed, or a pool that was
full has VMs again. No two pools can be changed in one write, so the first one of a list decides:

1. The first pool is read, and then the others are asked for the id. What is found there is returned.
2. The first pool is asked for a VM. Its swap fails if the id was passed on to another pool since step 1.
3. If it has none, the others are asked in their order. Before a VM of theirs is answered, a swap of the first pool
   notes that the id was passed on; it fails if the id has a VM of the first pool by then, or was passed on by another
   process. Then the VM is given back, and all begins again.

So the ids of one list are to be asked for by that list: a caller who names another first pool, or none, is not seen.
The first pool has to be in the mode ``configmap``, where the note and the allocations are one object.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, TypeVar

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool, about_request, check_probe, free_within
from tenure.integrations.vmpool.lists.named_pools import check_apart
from tenure.integrations.vmpool.machines.vm_port import ReadinessProbe
from tenure.integrations.vmpool.metering.operation_count import OperationCount, one_operation
from tenure.integrations.vmpool.pool_changes import now
from tenure.integrations.vmpool.pool_decisions import decide_allocation
from tenure.integrations.vmpool.pool_document import DecideAgain, PoolChange, PoolDocument, PoolElsewhere
from tenure.integrations.vmpool.pool_errors import BadArgument, PoolUnavailable, VMNotReady, VMPoolExhausted
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.ready_allocation import allocate_ready
from tenure.integrations.vmpool.state.allocation_names import check_allocation_id
from tenure.integrations.vmpool.state.argument_checks import check_seconds
from tenure.integrations.vmpool.state.ip_list import IPLike, check_ip
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.state.state_rules import AllocationRequest
from tenure.integrations.vmpool.vm_pool_status import VMPoolStatus
from tenure.kernel.errors import Conflict

T = TypeVar("T")
_Place = tuple[AsyncVMPool, AllocationRequest]
"""A pool, and what is asked of it."""


class PooledVM(NamedTuple):
    """A VM that is allocated, and the name of the pool that it is of."""

    pool: str
    allocation: VMAllocation


class LookAgain(DecideAgain):
    """The id may have got a VM of another pool meanwhile: the pools are asked again."""


class HasFirst(DecideAgain):
    """The id has a VM of the first pool by now."""


class AsyncVMPoolList:
    """Named pools in an order. It opens and closes nothing: the pools are their owner's."""

    def __init__(self, pools: Sequence[AsyncVMPool]) -> None:
        self.pools = {pool.settings.config_map_name: pool for pool in pools}
        """By name, in their order."""
        if not pools:
            raise BadArgument("pools: a list of pools has one at least", field="pools")
        if len(self.pools) < len(pools):
            raise BadArgument("pools: two pools of a list have one name", field="pools")
        check_apart([pool.settings for pool in pools])

    async def allocate(
        self,
        allocation_id: str,
        pod_name: str = "",
        pod_namespace: str = "",
        *,
        pools: Sequence[str] | None = None,
        wait_s: float = 0.0,
        probe: ReadinessProbe | None = None,
    ) -> PooledVM:
        """Give an id its VM: the one it has already, else one of the first pool that has one free.

        ``pools`` names which of the pools are tried, and in which order. Cost: a read of each pool, and what an
        allocation costs; two more reads and writes where the first pool is full.
        """
        chosen = self._chosen(pools)
        _check_first(chosen)
        requests = [pool.request(allocation_id, pod_name, pod_namespace) for pool in chosen]
        wait, about = check_seconds(wait_s, "wait_s", may_be_zero=True), about_request(requests[0])
        check_probe(probe)
        trial = _Trial(list(zip(chosen, requests, strict=True)), probe)
        with _counted(trial) as count:
            try:
                await free_within(wait, trial.once, about)
            except VMPoolExhausted:
                names = " ".join(pool.settings.config_map_name for pool in chosen)
                audit(PoolEvent.EXHAUSTED, operation="allocate", **about, pools=names, attempt=count.attempts)
                raise
        assert trial.found is not None
        return trial.found

    async def deallocate(self, allocation_id: str, *, pools: Sequence[str] | None = None) -> bool:
        """Take the VM of an id back, of whichever pool; return whether the id had one."""
        wanted = check_allocation_id(allocation_id)
        return await self._released(pools, lambda pool: pool.deallocate(wanted))

    async def deallocate_ip(self, ip: IPLike, *, pools: Sequence[str] | None = None) -> bool:
        """Take a VM back by its IP, of whichever pool; return whether an id had it."""
        wanted = check_ip(ip)
        return await self._released(pools, lambda pool: pool.deallocate_ip(wanted))

    async def get(self, allocation_id: str, *, pools: Sequence[str] | None = None) -> PooledVM | None:
        """Return the VM that an id has, of the first pool that says so. Cost: one read of each pool."""
        wanted = check_allocation_id(allocation_id)
        return await self._found(pools, lambda pool: pool.get(wanted))

    async def find_ip(self, ip: IPLike, *, pools: Sequence[str] | None = None) -> PooledVM | None:
        """Return the allocation of an IP. Cost: one read of each pool."""
        wanted = check_ip(ip)
        return await self._found(pools, lambda pool: pool.find_ip(wanted))

    async def list(self, *, pools: Sequence[str] | None = None) -> list[PooledVM]:
        """Return all allocations, pool by pool. Cost: one read of each pool."""
        chosen = self._chosen(pools)
        found = await _each(chosen, lambda pool: pool.list())
        pairs = zip(chosen, found, strict=True)
        return [PooledVM(pool.settings.config_map_name, each) for pool, entries in pairs for each in entries]

    async def status(self, *, pools: Sequence[str] | None = None) -> dict[str, VMPoolStatus]:
        """Return how the pools stand, by name. Cost: one read of each pool."""
        chosen = self._chosen(pools)
        found = await _each(chosen, lambda pool: pool.status())
        return {pool.settings.config_map_name: each for pool, each in zip(chosen, found, strict=True)}

    async def _released(self, pools: Sequence[str] | None, work: Callable[[AsyncVMPool], Awaitable[bool]]) -> bool:
        """Take a VM back from whichever pool; it is counted once, with the pool that had it."""
        chosen = self._chosen(pools)
        count, ended = OperationCount("deallocate"), chosen[0]
        try:
            with one_operation(count):
                found = await _each(chosen, work)
            count.result = "released" if any(found) else "not_found"
            ended = next((pool for pool, was_there in zip(chosen, found, strict=True) if was_there), ended)
        finally:
            ended.count(count)
        return any(found)

    async def _found(
        self, pools: Sequence[str] | None, look: Callable[[AsyncVMPool], Awaitable[VMAllocation | None]]
    ) -> PooledVM | None:
        chosen = self._chosen(pools)
        found = zip(chosen, await _each(chosen, look), strict=True)
        return next((PooledVM(pool.settings.config_map_name, each) for pool, each in found if each is not None), None)

    def _chosen(self, names: Sequence[str] | None) -> Sequence[AsyncVMPool]:
        if names is None:
            chosen = [*self.pools.values()]
        elif isinstance(names, str) or not names:
            raise BadArgument("pools: a list of names of pools is needed", field="pools")
        elif unknown := [name for name in names if name not in self.pools]:
            there = ", ".join(self.pools)
            raise BadArgument(f"pools: there is no pool {unknown[0]!r}; there are {there}", field="pools")
        elif len(set(names)) < len(names):
            raise BadArgument("pools: a pool is named twice", field="pools")
        else:
            chosen = [self.pools[name] for name in names]
        return chosen


class _Trial:
    """An allocation from some pools: each with what is asked of it."""

    def __init__(self, places: Sequence[_Place], probe: ReadinessProbe | None) -> None:
        self._first, self._others = places[0], places[1:]
        self._id = places[0][1].allocation_id
        self._probe = probe
        self.found: PooledVM | None = None
        self.pool = places[0][0]
        """Where it ended."""

    async def once(self) -> VMAllocation:
        """Give the id a VM, or raise ``VMPoolExhausted``; within the time that an operation of the first pool has."""
        limit_s = self._first[0].settings.operation_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                self.found = await self._tried()
        except TimeoutError:
            raise PoolUnavailable(f"the pools gave no answer within {limit_s:g} s", outcome="unknown") from None
        except PoolElsewhere:
            raise Conflict(_not_first(self._first[0]), field="pools") from None
        self.pool = next(pool for pool, _ in (self._first, *self._others) if _name(pool) == self.found.pool)
        return self.found.allocation

    async def _tried(self) -> PooledVM:
        first, request = self._first
        for _ in itertools.count():
            document = _guarded(await first.places.home.read(), first) if self._others else None
            if document is None or self._id in document.state.allocated:
                return PooledVM(_name(first), await first.allocate_once(request, self._probe))
            # Counted before the others are asked: an id that is passed on meanwhile may be missing in their answers.
            seen = document.notes.passed.count
            settled = document.notes.passed.pool_of(self._id, seen)
            try:
                return await self._decided(seen, settled, await self._elsewhere())
            except LookAgain:
                continue
        raise AssertionError("it is tried for ever")

    async def _elsewhere(self) -> list[_Place]:
        """Return the other pools that have a VM of the id; one, unless processes ask for it at the same time."""
        found = await asyncio.gather(*(pool.get(self._id) for pool, _ in self._others))
        return [place for place, entry in zip(self._others, found, strict=True) if entry is not None]

    async def _decided(self, seen: int, settled: str, elsewhere: list[_Place]) -> PooledVM:
        place = next((each for each in elsewhere if _name(each[0]) == settled), None)
        if place is not None:
            for pool, _ in elsewhere:
                if pool is not place[0]:
                    await pool.deallocate(self._id)  # of a process that did not come to answer it
            return await self._answered(place)
        # Not noted yet, or so long ago that the note is gone: the VM is noted first, and answered then.
        if elsewhere:
            await self._pass_on(elsewhere[0], seen)
            return await self._answered(elsewhere[0])
        try:
            return PooledVM(_name(self._first[0]), await self._of_first(seen))
        except (VMPoolExhausted, VMNotReady) as error:
            return await self._of_others(seen, self._passed_over(error))

    def _passed_over(self, error: VMPoolExhausted | VMNotReady) -> VMPoolExhausted | VMNotReady:
        """Return why a pool is passed over: it is full, or none of its VMs answers and another may be tried."""
        if isinstance(error, VMNotReady) and not (self._probe is not None and self._probe.tries_next):
            raise error
        return error

    async def _of_first(self, seen: int) -> VMAllocation:
        """Take a VM of the first pool, unless the id was passed on since the others were asked."""
        (first, request), home = self._first, self._first[0].places.home

        def decide(document: PoolDocument, request: AllocationRequest) -> PoolChange[VMAllocation]:
            if self._id not in document.state.allocated:
                self._check_not_passed(document, seen)
            return decide_allocation(document, first.settings.line, request, now())

        if self._probe is not None:
            return home.remember(await allocate_ready(_FirstPool(first), request, self._probe, decide))
        about = about_request(request)
        return home.remember(await home.change("allocate", lambda document: decide(document, request), about))

    async def _of_others(self, seen: int, problem: VMPoolExhausted | VMNotReady) -> PooledVM:
        """Take a VM of the first of the other pools that has one, and note in the first pool that it was taken."""
        for place in self._others:
            try:
                given = await place[0].allocate_once(place[1], self._probe)
            except (VMPoolExhausted, VMNotReady) as error:
                problem = self._passed_over(error)
                continue
            await self._pass_on(place, seen)
            return PooledVM(_name(place[0]), given)
        raise problem

    async def _pass_on(self, place: _Place, seen: int) -> None:
        """Note that the id is another pool's from now on; raise ``LookAgain`` if it is not, after all."""
        pool, first = place[0], self._first[0]

        def decide(document: PoolDocument) -> PoolChange[None]:
            if self._id in document.state.allocated:
                raise HasFirst
            self._check_not_passed(document, seen)
            passed = document.notes.passed.with_id(self._id, _name(pool))
            return PoolChange(None, notes=replace(document.notes, passed=passed))

        try:
            await first.places.home.change("pass on", decide, {**about_request(place[1]), "pool": _name(pool)})
        except HasFirst:
            await pool.deallocate(self._id)
            raise LookAgain from None

    async def _answered(self, place: _Place) -> PooledVM:
        """Return the VM that the id has in another pool; raise ``LookAgain`` if it was released meanwhile."""
        try:
            return PooledVM(_name(place[0]), await place[0].allocate_once(place[1], self._probe))
        except VMPoolExhausted:
            raise LookAgain from None

    def _check_not_passed(self, document: PoolDocument, seen: int) -> None:
        if _guarded(document, self._first[0]).notes.passed.is_passed_since(self._id, seen):
            raise LookAgain


class _FirstPool:
    """The first pool, where it is decided on in its ConfigMap and nowhere else."""

    def __init__(self, pool: AsyncVMPool) -> None:
        self.settings = pool.settings
        self._home = pool.places.home

    async def read(self) -> PoolDocument:
        """Read the pool."""
        return await self._home.read()

    async def change(
        self,
        operation: str,
        decide: Callable[[PoolDocument], PoolChange[T]],
        *,
        about: Mapping[str, object] | None = None,
    ) -> T:
        """Decide on the pool, and swap it."""
        return await self._home.change(operation, decide, about or {})


@contextmanager
def _counted(trial: _Trial) -> Iterator[OperationCount]:
    """Count an allocation once, where it ended."""
    count = OperationCount("allocate")
    try:
        with one_operation(count):
            yield count
    finally:
        trial.pool.count(count)


def _guarded(document: PoolDocument, first: AsyncVMPool) -> PoolDocument:
    """Raise ``Conflict`` where the notes cannot say which ids were passed on."""
    if document.notes.problem:
        needed = "a list of pools needs the notes of its first one"
        remedy = "`tenure vmpool repair --replace-unreadable` begins new ones"
        raise Conflict(f"pools: {needed}, {_name(first)!r}: {document.notes.problem}; {remedy}", field="pools")
    return document


def _check_first(chosen: Sequence[AsyncVMPool]) -> None:
    if len(chosen) > 1 and chosen[0].settings.pool_mode != "configmap":
        raise BadArgument(_not_first(chosen[0]), field="pools")


def _not_first(pool: AsyncVMPool) -> str:
    return (
        f"pools: the first of a list of pools has to be in mode configmap, and {_name(pool)!r} is in another: name one "
        "that is before it. A pool in another mode may be as large as it likes, and needs no second one beside it"
    )


def _name(pool: AsyncVMPool) -> str:
    return pool.settings.config_map_name


async def _each(pools: Sequence[AsyncVMPool], work: Callable[[AsyncVMPool], Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*(work(pool) for pool in pools)))
