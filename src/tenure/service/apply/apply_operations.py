"""``apply``: edits, allocations, releases and transfers as one transaction, judged by the final state.

The operations run in the order they are written, each on what the ones before it left; then the final state is
judged. Either everything is committed, or nothing is. This code awaits nothing but the transaction.
"""

from collections.abc import Callable, Coroutine, Mapping, MutableMapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from tenure.kernel.holdings.actor import Asker, asked_entry
from tenure.kernel.holdings.deadlines import ended_by_time
from tenure.kernel.holdings.holding_model import Entry, Paper, SpaceId
from tenure.kernel.plan.edits import AddNetwork, Edit
from tenure.kernel.plan.layout import Layout
from tenure.kernel.plan.plan_model import Network
from tenure.ports import Chance, Guard, Transaction
from tenure.service.allocator.claim import Granted
from tenure.service.allocator.exact_view import ExactViews
from tenure.service.allocator.waiting_line import leave_served
from tenure.service.apply import holding_effects, paper_effects, plan_effects, preconditions
from tenure.service.apply.context import Ground
from tenure.service.apply.operations import (
    Allocate,
    AllocateRun,
    Cancel,
    Confirm,
    EndCooling,
    Expect,
    ExpectHolding,
    ExpectNoHoldings,
    ExpectNoPapers,
    ExpectPaper,
    IgnoreConflicts,
    ModifyHolding,
    Operation,
    Release,
    ReleaseOwner,
    RemovePaper,
    Transfer,
    WritePaper,
)

Result = Granted | Network | Paper | list[Granted] | None
Work = Callable[[Ground, Sequence[Any]], Coroutine[Any, Any, Sequence[Result | plan_effects.Edited]]]

SINGLE: dict[type, Callable[[Ground, Any], Coroutine[Any, Any, Result]]] = {
    AllocateRun: holding_effects.allocate_run,
    Cancel: holding_effects.cancel,
    Confirm: holding_effects.confirm,
    EndCooling: holding_effects.end_cooling,
    Expect: preconditions.expect,
    ExpectHolding: preconditions.expect_holding,
    ExpectNoHoldings: preconditions.expect_no_holdings,
    ExpectNoPapers: preconditions.expect_no_papers,
    IgnoreConflicts: preconditions.ignore_conflicts,
}
"""What each operation does by itself."""

TOGETHER: dict[type, Work] = {
    AddNetwork: plan_effects.add_networks,
    Allocate: holding_effects.allocate,
    ExpectPaper: preconditions.expect_papers,
    ModifyHolding: holding_effects.modify,
    Release: holding_effects.release,
    ReleaseOwner: holding_effects.release_owners,
    RemovePaper: paper_effects.write_papers,
    Transfer: holding_effects.transfer,
    WritePaper: paper_effects.write_papers,
}
"""What operations do together with their like that stand next to them; every edit that is not here is ``edit_plan``."""


class Applying:
    """One attempt at one ``apply``."""

    def __init__(
        self,
        tx: Transaction,
        chance: Chance,
        exact: MutableMapping[SpaceId, ExactViews],
        known: Mapping[SpaceId, Layout],
        asker: Asker | None = None,
        *,
        bounded: bool = True,
    ) -> None:
        """Begin; what cannot commit in between is not ``bounded`` in how much that is overdue it removes."""
        self.ground = Ground(tx, chance, exact, known, asker, bounded=bounded)

    async def open(self, operations: Sequence[Operation], spaces: Sequence[SpaceId]) -> None:
        """Hold the spaces that exist, as strongly as the operations ask for, then the papers that they name."""
        await self.ground.open(spaces, guard_for(operations))
        await paper_effects.open_papers(self.ground, operations)

    async def run(self, operations: Sequence[Operation]) -> list[Result]:
        """Do it all, then judge and write; what is to be logged is left to ``finish``."""
        results: list[Result | plan_effects.Edited] = []
        while len(results) < len(operations):
            operation = operations[len(results)]
            together = _together(operation)
            if together is None:
                results.append(await SINGLE[type(operation)](self.ground, operation))
            else:
                rest = (operations[place] for place in range(len(results), len(operations)))
                alike = list(takewhile(lambda other, work=together: _together(other) is work, rest))  # type: ignore[misc]
                results.extend(await together(self.ground, alike))
        await plan_effects.settle(self.ground)
        await self._leave_lines()
        return self._final(results)

    async def _leave_lines(self) -> None:
        """Let no claim wait on whose owner came to hold something."""
        ground = self.ground
        for space, configuration in ground.now.items():
            if configuration.queued:
                here = [entry for entry in ground.entries if entry.space == space]
                ground.entries.extend(await leave_served(ground.tx, space, here))

    def _final(self, results: Sequence[Result | plan_effects.Edited]) -> list[Result]:
        """Return for each edit the network as it is at the end, one value for all edits of it; None if it is gone."""
        ground = self.ground
        changed = [network for space in ground.edited_spaces for network in ground.now[space].networks.values()]
        told = {number: tuple(texts) for number, texts in ground.warnings.items()}
        networks = {
            network.id: replace(network, warnings=told[network.id]) if told.get(network.id) else network
            for network in changed
        }
        return [networks.get(each.network) if isinstance(each, plan_effects.Edited) else each for each in results]

    async def finish(self) -> tuple[list[Entry], int]:
        """Log what was done, which comes last; return the entries, and the number of the last one.

        They are in the caller's name, but for what time ended on the way.
        """
        asker = self.ground.asker
        entries = [entry if ended_by_time(entry) else asked_entry(entry, asker) for entry in self.ground.entries]
        return entries, await self.ground.tx.log(entries) if entries else 0


def _together(operation: Operation) -> Work | None:
    """Return what an operation does together with its like, if it does."""
    if type(operation) in SINGLE:
        return None
    return TOGETHER.get(type(operation), plan_effects.edit_plan)


def guard_for(operations: Sequence[Operation]) -> Guard:
    """Return how strongly the spaces must be held: where nobody may hold anything, not even a grant may pass."""
    if any(isinstance(operation, Edit | ExpectNoHoldings) for operation in operations):
        return Guard.EDIT
    return Guard.LANE
