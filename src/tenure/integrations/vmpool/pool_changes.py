"""From decisions to one compare-and-swap: callers of one process share a write, and lose or win together.

A round reads the ConfigMap, lets every caller that waits decide on what the one before it has left, and writes once
if anything has changed. If another writer was faster, all decide again on what is there then. There is no timer: what
is asked for while a round runs is the next round's. Cost: a read and at most one write a round, whose size is that of
the whole state; a caller alone pays both, n callers at once pay them together.

A write whose answer is lost is settled by reading again: every write carries a mark into the notes. As long as such a
write could still arrive, nothing is answered from the version that it was made for: another write goes first, after
which it cannot arrive any more (VS1).
"""

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from tenure.integrations.vmpool.config_map_swap import AnswerLost, ConfigMapSwap, StoredPool, SwapLost
from tenure.integrations.vmpool.metering.operation_count import OperationCount, count_try, under_way
from tenure.integrations.vmpool.metering.result_tally import CONFLICTS, MILLISECONDS, NEW, ResultTally
from tenure.integrations.vmpool.pool_document import (
    Decide,
    DecideAgain,
    PoolChange,
    PoolDocument,
    read_document,
    written_values,
)
from tenure.integrations.vmpool.pool_errors import (
    PoolSwapConflict,
    PoolUnavailable,
    VMPoolExhausted,
)
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.retry_schedule import RetrySchedule
from tenure.integrations.vmpool.state.go_json import whole_seconds
from tenure.integrations.vmpool.state.pool_notes import PoolNotes
from tenure.integrations.vmpool.vanished_writes import OwnAllocations, Reassertion
from tenure.integrations.vmpool.vm_pool_settings import LARGEST_CONFIG_MAP, NEARLY_FULL, VMPoolSettings
from tenure.kernel.errors import TenureError

T = TypeVar("T")
R = TypeVar("R")

REQUEST_SHARE = 3
"""A request may take this part of the operation's time: a lost answer must leave time to read again."""


FollowList = Callable[[PoolNotes], Awaitable[bool]]
"""Read the list of addresses again if notes say that there is a newer one; return whether it has changed."""


async def no_list(notes: PoolNotes) -> bool:
    """Follow no list: there is none but the settings'."""
    return False


class PoolObserver(Protocol):
    """Whoever counts what happens; ``pool_metrics.PoolMeter`` is one."""

    def operation(self, operation: str, result: str, seconds: float, attempts: int) -> None:
        """Count an operation that has ended."""

    def conflict(self, operation: str) -> None:
        """Count a write that another writer was faster than."""

    def repaired(self, kind: str, count: int = 1) -> None:
        """Count what was put right, by its kind (``RepairKind``)."""

    def read(self, document: PoolDocument) -> None:
        """See what was read."""


class NoObserver:
    """Nobody counts."""

    def operation(self, operation: str, result: str, seconds: float, attempts: int) -> None:
        """Count nothing."""

    def conflict(self, operation: str) -> None:
        """Count nothing."""

    def repaired(self, kind: str, count: int = 1) -> None:
        """Count nothing."""

    def read(self, document: PoolDocument) -> None:
        """See nothing."""


@dataclass(eq=False)
class PoolCall:
    """A caller in line: what it decides, until when it waits, and what has become of it so far."""

    operation: str
    decide: Decide[Any]
    deadline: float
    answer: "asyncio.Future[Any]"
    about: Mapping[str, object]
    attempts: int = 0
    conflicts: int = 0
    is_in_doubt: bool = False
    """Whether a write that carries its change may be done without our knowing."""
    problem: Exception | None = None
    """Why it has no answer yet."""
    word: str = ""
    """How it ended, for the metrics."""
    count: OperationCount | None = field(default_factory=under_way)
    """The operation that it is a part of, if it is one of several tries."""
    began: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class CallOutcome:
    """What a caller decided in a round: an answer, or an error of its own."""

    call: PoolCall
    change: PoolChange[Any] | None = None
    error: Exception | None = None


@dataclass(frozen=True)
class DoubtfulWrite:
    """A write whose answer was lost: for which version it was made, how it is known again, and whose it was."""

    version: str
    mark: str
    outcomes: Sequence[CallOutcome]
    document: PoolDocument
    vanished: Reassertion
    tallied: Mapping[str, int]
    """What it would have noted of earlier operations."""
    is_refused: bool = False
    """Whether it was answered with a conflict: then it is done only if it was sent twice."""


@dataclass(frozen=True)
class Draft:
    """What a round would write: the document after all decisions, and what each caller is to be answered."""

    document: PoolDocument
    outcomes: list[CallOutcome] = field(default_factory=list)
    is_changed: bool = False


class PoolChanges:
    """The queue of one pool in one process."""

    def __init__(
        self,
        swap: ConfigMapSwap,
        settings: VMPoolSettings,
        own: OwnAllocations,
        *,
        observer: PoolObserver | None = None,
        schedule: RetrySchedule | None = None,
        tally: ResultTally | None = None,
        follow: FollowList = no_list,
    ) -> None:
        self._swap = swap
        self._follow = follow
        self._settings = settings
        self._own = own
        self._observer = observer or NoObserver()
        self._schedule = schedule or settings.schedule
        self._tally = tally or ResultTally()
        self._waiting: list[PoolCall] = []
        self._doubts: list[DoubtfulWrite] = []
        self._worker: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._round_began = 0.0

    async def change(
        self, operation: str, decide: Decide[T], about: Mapping[str, object], timeout_s: float | None = None
    ) -> T:
        """Decide and write; return the decision's answer, or raise its error. See ``AsyncVMPool.change``."""
        loop = asyncio.get_running_loop()
        limit_s = self._settings.operation_timeout_s if timeout_s is None else timeout_s
        call = PoolCall(operation, decide, loop.time() + limit_s, loop.create_future(), about)
        # The worker may be in a pause for callers that are gone, which this caller need not keep.
        if not self._take_turn():
            self._wake.set()
        self._waiting.append(call)
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        try:
            async with asyncio.timeout_at(call.deadline):
                answer: T = await call.answer
            return answer
        except TimeoutError:
            # The answer came in the very moment of the time-out: what is done must not be reported as an error.
            if call.answer.done() and not call.answer.cancelled():
                return call.answer.result()  # type: ignore[no-any-return]
            error = given_up(call, f"no answer within {limit_s:g} s")
            audit(PoolEvent.FAILED, operation=operation, **about, attempt=call.attempts, error=error)
            raise error from call.problem
        finally:
            # A caller that leaves is passed over by the rounds to come; what a round has begun for it is finished.
            call.answer.cancel()
            seconds = time.monotonic() - call.began
            count_try(self._observer, operation, word_of(call), seconds, max(call.attempts, 1))

    async def read(self) -> PoolDocument:
        """Read the pool, and note what of this process's allocations has vanished."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.operation_timeout_s
        failed = 0
        while True:
            try:
                document = await self._bounded(self._fetch(), deadline)
                break
            except AnswerLost as error:
                failed += 1
                delay_s = self._schedule.delay_s(failed)
                if delay_s is None or loop.time() + delay_s >= deadline:
                    raise PoolUnavailable(str(error), outcome="none") from error
                await asyncio.sleep(delay_s)
        found = self._own.look(document, now())
        self._own.seen(document.state, found.vanished)
        return document

    async def close(self) -> None:
        """Wait until nothing is under way."""
        while self._worker is not None:
            await asyncio.wait([self._worker])

    async def _work(self) -> None:
        try:
            while self._take_turn():
                batch, self._waiting = self._waiting, []
                await self._pause(await self._round(batch))
        finally:
            # Nothing was awaited since the line was found empty: the next caller finds no worker, and starts one.
            self._worker = None

    async def _pause(self, delay_s: float) -> None:
        """Wait before the next round; not for callers that are gone, if others come."""
        if not delay_s:
            return
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._wake.wait()

    def _take_turn(self) -> bool:
        self._waiting = [call for call in self._waiting if not call.answer.done()]
        return bool(self._waiting)

    async def _round(self, batch: Sequence[PoolCall]) -> float:
        """Serve callers once, and return how long to wait before the next round."""
        self._round_began = asyncio.get_running_loop().time()
        deadline = max(call.deadline for call in batch)
        for call in batch:
            call.attempts += 1
            audit(PoolEvent.ATTEMPT, operation=call.operation, **call.about, attempt=call.attempts)
        try:
            document = await self._bounded(self._fetch(), deadline)
        except AnswerLost as error:
            return self._again(batch, error)
        except Exception as error:
            return self._refuse(batch, error)
        left = self._settle(document, batch)
        if not left:
            return 0.0
        return await self._decide(document, left, deadline)

    async def _decide(self, document: PoolDocument, batch: Sequence[PoolCall], deadline: float) -> float:
        """Let callers decide on what was read, write what has changed, and answer them."""
        # Entries that vanished come back first, so that no caller of this round gets a VM that this process gave out.
        again = self._own.look(document, now())
        draft = self._draft(again, batch)
        is_doubtful = any(doubt.version == document.stored.version and not doubt.is_refused for doubt in self._doubts)
        if not draft.is_changed and not is_doubtful:
            self._own.seen(document.state, again.vanished)
            self._answer(draft.outcomes)
            return 0.0
        mark = secrets.token_hex(4)
        tallied = self._tally.take()
        written = self._marked(draft.document, document, mark)
        written = replace(written, notes=written.notes.with_counts(tallied).with_counts(_results(draft.outcomes)))
        # Before the write: a caller whose time ends meanwhile has to say that the outcome is not known.
        for call in batch:
            call.is_in_doubt = True
        doubt = DoubtfulWrite(document.stored.version, mark, draft.outcomes, written, again, tallied)
        try:
            await self._bounded(self._write(written), deadline)
        except AnswerLost as error:
            self._doubts.append(doubt)
            return self._again(batch, error)
        except SwapLost as error:
            self._update_doubt(batch)
            # Perhaps lost to itself: a client that finds its connection closed sends a PUT again of its own accord.
            self._doubts.append(replace(doubt, is_refused=True))
            return self._again(batch, error)
        except Exception as error:
            self._tally.give_back(tallied)
            self._update_doubt(batch)
            if len(batch) == 1:
                return self._refuse(batch, error)
            # One of them may be at fault for all, and some need no write: each has a round of its own.
            return max([await self._round([call]) for call in batch if not call.answer.done()], default=0.0)
        # This write replaces the version that the doubtful writes named, so none of them can be done any more.
        self._forget(self._doubts)
        self._done(written, again, draft.outcomes)
        return 0.0

    def _forget(self, doubts: Sequence[DoubtfulWrite]) -> None:
        """Forget writes that cannot be done any more; what they would have noted is noted by another one."""
        for doubt in list(doubts):
            self._tally.give_back(doubt.tallied)
            self._doubts.remove(doubt)

    def _marked(self, draft: PoolDocument, read: PoolDocument, mark: str) -> PoolDocument:
        """Return a document as it is written: a version more, but for a fresh state that is only made to be there."""
        is_first = not read.is_there and draft.state is read.state
        state = replace(draft.state, last_updated=whole_seconds(now())) if is_first else draft.state.written_at(now())
        notes = draft.notes.with_write(mark, history=self._settings.history)
        # Whoever knows an older list of addresses reads the list again before it decides on what this one leaves.
        generation = max(notes.list_generation, self._settings.line.generation)
        return replace(draft, state=state, notes=replace(notes, list_generation=generation))

    def _draft(self, again: Reassertion, batch: Sequence[PoolCall]) -> Draft:
        """Let every caller decide on what the one before it has left."""
        document, outcomes, is_changed = again.document, [], again.is_changed
        for call in batch:
            try:
                change = call.decide(document)
            except Exception as error:
                # It is the caller's own error: the callers that share the write go on.
                outcomes.append(CallOutcome(call, error=error))
                continue
            outcomes.append(CallOutcome(call, change))
            if change.state is not None or change.notes is not None:
                is_changed = True
                document = replace(
                    document,
                    state=document.state if change.state is None else change.state,
                    notes=document.notes if change.notes is None else change.notes,
                )
        return Draft(document, outcomes, is_changed)

    def _settle(self, document: PoolDocument, batch: Sequence[PoolCall]) -> list[PoolCall]:
        """Settle writes whose answers were lost by what was read; return the callers that have no answer yet."""
        for doubt in [each for each in self._doubts if each.mark in document.notes.writes]:
            self._doubts.remove(doubt)
            for outcome in doubt.outcomes:
                call = outcome.call
                audit(PoolEvent.SETTLED, operation=call.operation, **call.about, attempt=call.attempts)
            self._done(doubt.document, doubt.vanished, doubt.outcomes)
        # One that was made for another version cannot be done any more.
        self._forget([each for each in self._doubts if each.version != document.stored.version])
        self._update_doubt(batch)
        return [call for call in batch if not call.answer.done()]

    async def _fetch(self) -> PoolDocument:
        stored, line = await self._swap.read(), self._settings.line
        document = read_document(stored, line)
        if await self._follow(document.notes):
            # Without a state, the list says what is free.
            document = read_document(stored, line)
        placement = document.notes.placement
        # A pool that is elsewhere is counted by the place where it is.
        if (self._settings.pool_mode if placement is None else placement.mode) == "configmap":
            self._observer.read(document)
        return document

    async def _write(self, document: PoolDocument) -> StoredPool:
        values = written_values(document.state, document.notes)
        size = document.stored.size(values)
        if size > LARGEST_CONFIG_MAP:
            # What is noted for people must not stop an allocation.
            values = written_values(document.state, document.notes.lightest)
            size = document.stored.size(values)
        if size > LARGEST_CONFIG_MAP * NEARLY_FULL:
            said = f"the ConfigMap is nearly full: {size} of {LARGEST_CONFIG_MAP} bytes"
            audit(PoolEvent.WARNING, pool=self._settings.config_map_name, warning=said)
        return await self._swap.write(document.stored, values)

    async def _bounded(self, work: Awaitable[R], deadline: float) -> R:
        """Wait for a request no longer than a part of the time, and no longer than anybody waits."""
        most = asyncio.get_running_loop().time() + self._settings.operation_timeout_s / REQUEST_SHARE
        try:
            async with asyncio.timeout_at(min(deadline, most)):
                return await work
        except TimeoutError:
            raise AnswerLost("the API server did not answer in time") from None

    def _again(self, batch: Sequence[PoolCall], problem: AnswerLost | SwapLost) -> float:
        """Put callers in line again that may try once more; return how long to wait before they do."""
        delays = []
        now_s = asyncio.get_running_loop().time()
        took_s = now_s - self._round_began
        for call in batch:
            if call.answer.done():
                continue
            call.problem = problem
            if isinstance(problem, SwapLost):
                call.conflicts += 1
                self._observer.conflict(call.operation)
                self._tally.add(CONFLICTS)
                audit(
                    PoolEvent.CONFLICT, operation=call.operation, **call.about, attempt=call.attempts,
                    cause=problem,
                )  # fmt: skip
            delay_s = self._schedule.delay_s(call.attempts, took_s)
            if delay_s is None:
                self._refuse([call], given_up(call, "no attempts are left"))
            elif (left_s := call.deadline - now_s) > 0:
                # There is time for one more attempt, if it begins so early; where there is none, its time-out answers
                # the caller. Rounds without a pause would keep the loop from it, where requests fail at once.
                latest_s = left_s - took_s
                delays.append(min(delay_s, latest_s) if latest_s > 0 else left_s)
                self._waiting.append(call)
        # Those that came last have waited least, and must not make the others hurry.
        return max(delays, default=0.0)

    def _refuse(self, batch: Sequence[PoolCall], error: Exception) -> float:
        for call in batch:
            audit(PoolEvent.FAILED, operation=call.operation, **call.about, attempt=call.attempts, error=error)
            if not call.answer.done():
                call.answer.set_exception(error)
        return 0.0

    def _done(self, written: PoolDocument, again: Reassertion, outcomes: Sequence[CallOutcome]) -> None:
        self._own.written(written.state, again.vanished)
        for outcome in outcomes:
            if is_noted(outcome) and outcome.call.count is not None:
                # Its result went with the write, and is not to be counted for another one.
                outcome.call.count.is_noted = True
        self._answer(outcomes)

    def _answer(self, outcomes: Sequence[CallOutcome]) -> None:
        for outcome in outcomes:
            call, change, error = outcome.call, outcome.change, outcome.error
            call.is_in_doubt = False
            about = {"operation": call.operation, **call.about, "attempt": call.attempts}
            if change is not None:
                if call.conflicts:
                    audit(PoolEvent.RESOLVED, **about)
                self._report(call, change)
                # A caller whose time is over was counted by the error that was raised, even if its write was done.
                if not call.answer.done():
                    call.word = change.word
                    call.answer.set_result(change.result)
            elif error is not None:
                # A full pool may be asked again; whoever gives up says so.
                if not isinstance(error, DecideAgain | VMPoolExhausted):
                    audit(PoolEvent.FAILED, **about, error=error)
                if not call.answer.done():
                    call.answer.set_exception(error)

    def _report(self, call: PoolCall, change: PoolChange[Any]) -> None:
        """Write the lines of a change that is done, also if nobody waits for its answer any more."""
        for found in change.findings:
            if found.is_change:
                self._observer.repaired(found.kind.value)
                audit(
                    PoolEvent.REPAIRED, node=call.about.get("node"), id=found.allocation_id, ip=found.ip,
                    kind=found.kind.value, reason=found.message,
                )  # fmt: skip
        if change.report is not None:
            change.report(call.attempts)

    def _update_doubt(self, batch: Sequence[PoolCall]) -> None:
        doubtful = {outcome.call for each in self._doubts if not each.is_refused for outcome in each.outcomes}
        for call in batch:
            call.is_in_doubt = call in doubtful


def is_noted(outcome: CallOutcome) -> bool:
    """Return whether a write carries the result of a caller into the notes."""
    return outcome.call.operation == "allocate" and outcome.change is not None and outcome.change.state is not None


def _results(outcomes: Sequence[CallOutcome]) -> Mapping[str, int]:
    """Return how the allocations ended that a write carries, and how long they have taken until now."""
    found: Counter[str] = Counter()
    for outcome in filter(is_noted, outcomes):
        assert outcome.change is not None
        found[outcome.change.word] += 1
        if outcome.change.word == NEW:
            began = outcome.call.began if outcome.call.count is None else outcome.call.count.began
            found[MILLISECONDS] += round(1000 * (time.monotonic() - began))
    return found


def given_up(call: PoolCall, why: str) -> TenureError:
    """Return the error of a caller whose time or attempts are used up."""
    if call.is_in_doubt:
        return PoolUnavailable(f"{call.problem or why}: {why}", outcome="unknown")
    if isinstance(call.problem, SwapLost):
        return PoolSwapConflict(call.operation, f"{call.problem} ({why})", attempts=call.attempts)
    return PoolUnavailable(f"{call.problem or 'other calls of this process were served'}: {why}", outcome="none")


def word_of(call: PoolCall) -> str:
    """Return how an operation ended, in a word for the metrics."""
    if call.word:
        return call.word
    answer = call.answer
    error = answer.exception() if answer.done() and not answer.cancelled() else None
    if isinstance(error, VMPoolExhausted):
        return "exhausted"
    return "conflict" if isinstance(error or call.problem, PoolSwapConflict | SwapLost) else "error"


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)
