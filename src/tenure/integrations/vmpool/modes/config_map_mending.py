"""What an operator mends in the ConfigMap of a pool: values that lie where none looks, and text that cannot be read.

What can be read is kept as it is. What cannot is copied to another ConfigMap first (VD5). Notes say where a pool was
moved to, so notes that cannot be read are replaced only where they cannot have said that: else a pool that is kept
elsewhere would begin here with every address free.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tenure.integrations.vmpool.config_map_swap import (
    NOTES_KEY,
    STATE_KEY,
    AnswerLost,
    ConfigMapSwap,
    StoredPool,
    SwapLost,
)
from tenure.integrations.vmpool.modes.pool_fillers import filler_of, is_filler
from tenure.integrations.vmpool.pool_changes import now
from tenure.integrations.vmpool.pool_decisions import RepairReport, misplaced_finding
from tenure.integrations.vmpool.pool_document import notes_of, read_document, written_values
from tenure.integrations.vmpool.pool_errors import (
    PoolStateMisplaced,
    PoolStateUnreadable,
    PoolSwapConflict,
    PoolUnavailable,
)
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.allocation_names import FILLER
from tenure.integrations.vmpool.state.pool_notes import HistoryLine, PoolNotes, read_notes, write_notes
from tenure.integrations.vmpool.state.pool_state import PoolState, VMAllocation, read_state
from tenure.integrations.vmpool.state.state_repair import PoolFinding
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings

LONGEST_COPIED_NAME = 220
"""So much of the name of a ConfigMap is in the name of its copy, which must not be longer than 253 characters."""
PLACEMENT = '"placement"'
"""What stands in the text of notes that say where a pool was moved to."""
MEND_BY_HAND = f"mend the text of {NOTES_KEY} by hand: nothing else says to which mode the pool was moved, and when"


@dataclass(frozen=True)
class _Replacement:
    """What is to stand in the place of what cannot be read."""

    reasons: dict[str, str]
    """Why ``state`` or ``notes`` cannot be read."""
    state: PoolState
    notes: PoolNotes


@dataclass(frozen=True)
class ConfigMapMending:
    """Mends the ConfigMap of one pool; each verb is a read and a swap, which is not tried again."""

    swap: ConfigMapSwap
    settings: VMPoolSettings

    async def put_in_place(self, node_name: str) -> tuple[PoolFinding, ...]:
        """Move state and notes from ``binaryData`` to ``data``, as they are; raise ``PoolStateUnreadable``."""
        async with self._in_time():
            stored = await self.swap.read()
            texts = {key: stored.misplaced_text(key) for key in stored.misplaced}
            if texts:
                await self.swap.write(stored, texts)
        for key in texts:
            audit(PoolEvent.REPAIRED, node=node_name, reason=f"{key} was in binaryData, and is in data now")
        return tuple(misplaced_finding(key) for key in texts)

    async def stored_notes(self) -> PoolNotes:
        """Return the notes, also where the list of addresses that they name is gone."""
        async with self._in_time():
            return notes_of(await self.swap.read())

    async def note_list(self, generation: int) -> None:
        """Note the generation of the list of addresses, and change nothing else; a state that is not there is not made.

        Notes that cannot be read are left as they are: without them every call reads the list.
        """
        async with self._in_time():
            while True:
                stored = await self.swap.read()
                notes = notes_of(stored)
                if notes.problem or notes.list_generation >= generation:
                    return
                with contextlib.suppress(SwapLost):
                    await self.swap.write(stored, {NOTES_KEY: write_notes(replace(notes, list_generation=generation))})
                    return

    async def replace_unreadable(self, node_name: str) -> RepairReport | None:
        """Replace what cannot be read, after a copy; return nothing if all can be read, wherever it lies."""
        at = now()
        copy = f"{self.settings.config_map_name[:LONGEST_COPIED_NAME]}-broken-{at:%Y%m%dt%H%M%S%fz}"
        async with self._in_time():
            stored = await self.swap.read()
            found = self._replacement(stored, at, node_name)
            if found is None:
                return None
            await self.swap.keep_copy(copy, stored)
            await self.swap.write(stored, written_values(found.state.written_at(at), found.notes))
        for part, reason in found.reasons.items():
            audit(PoolEvent.REPAIRED, node=node_name, part=part, reason=reason, copy=copy)
        return RepairReport(is_written=True, copy=copy, replaced=tuple(found.reasons))

    def _replacement(self, stored: StoredPool, at: datetime, node_name: str) -> _Replacement | None:
        notes, entries, reasons = _readable_notes(stored), [], {}
        try:
            state = _readable_state(stored, self.settings)
            entries = list(state.allocated.values())
        except PoolStateUnreadable as error:
            reasons["state"] = error.reason
            state = self._fresh(notes)
        if notes.problem:
            reasons["notes"] = notes.problem
            _check_here(stored, entries)
        if not reasons:
            return None
        kept = PoolNotes(list_generation=self.settings.line.generation) if notes.problem else notes
        # Both notes are about allocations, of which the fresh state has none.
        if "state" in reasons:
            kept = replace(kept, cleanup_failed={}, draining={})
        return _Replacement(reasons, state, kept.with_line(HistoryLine(at, "repair", "", "", node_name)))

    def _fresh(self, notes: PoolNotes) -> PoolState:
        """Return a state of which nothing is allocated; where the pool is kept elsewhere, nothing is free either."""
        state, placement = PoolState.fresh(self.settings.line.ips), notes.placement
        if placement is None or (placement.mode == "configmap" and not placement.moves_to):
            return state
        fillers = [filler_of(ip, placement.moves_to or placement.mode) for ip in state.available]
        return replace(state, allocated={each.allocation_id: each for each in fillers}, available=())

    @contextlib.asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self.settings.operation_timeout_s):
                yield
        except (AnswerLost, TimeoutError) as error:
            raise PoolUnavailable(str(error) or "the API server did not answer in time", outcome="unknown") from error
        except SwapLost as error:
            raise PoolSwapConflict("repair", str(error), attempts=1) from error


def _readable_state(stored: StoredPool, settings: VMPoolSettings) -> PoolState:
    """Return the state, wherever it lies; raise ``PoolStateUnreadable``."""
    try:
        return read_document(stored, settings.line).state
    except PoolStateMisplaced as error:
        return read_state(error.text)


def _readable_notes(stored: StoredPool) -> PoolNotes:
    """Return the notes, wherever they lie; ``problem`` says why they cannot be read."""
    if NOTES_KEY not in stored.misplaced:
        return notes_of(stored)
    try:
        return read_notes(stored.misplaced_text(NOTES_KEY))
    except PoolStateUnreadable as error:
        return PoolNotes(problem=error.reason)


def _check_here(stored: StoredPool, entries: Sequence[VMAllocation]) -> None:
    """Raise ``PoolStateUnreadable`` if notes that cannot be read may have said that the pool is kept elsewhere."""
    texts = f"{stored.state_text or ''}{stored.notes_text or ''}"
    if any(map(is_filler, entries)) or PLACEMENT in texts or f'"{FILLER}' in texts:
        raise PoolStateUnreadable(
            f"the notes cannot be read, and the pool was moved ({STATE_KEY} says so)", MEND_BY_HAND
        )
