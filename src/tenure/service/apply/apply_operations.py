"""``apply``: edits, allocations, releases and transfers as one transaction, judged by the final state.

The operations run in the order they are written, each on what the ones before it left; then the final state is
judged. Either everything is committed, or nothing is. This code awaits nothing but the transaction.
"""

from collections.abc import Callable, Coroutine, Mapping, MutableMapping, Sequence
from itertools import takewhile
from typing import Any

from tenure.kernel.asking import Asker, asked_entry
from tenure.kernel.configuration import Network
from tenure.kernel.deadlines import ended_by_time
from tenure.kernel.edits import AddNetwork, Edit
from tenure.kernel.layout import Layout
from tenure.kernel.values import Entry, Paper, SpaceId
from tenure.ports import Chance, Guard, Transaction
from tenure.service import expect_work, holding_work, paper_work, plan_work
from tenure.service.claims import Granted
from tenure.service.exact import ExactViews
from tenure.service.ground import Ground
from tenure.service.operations import (
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
    ModifyHolding,
    Operation,
    Release,
    ReleaseOwner,
    RemovePaper,
    Transfer,
    WritePaper,
)
from tenure.service.queueing import leave_served

Result = Granted | Network | Paper | list[Granted] | None
Work = Callable[[Ground, Sequence[Any]], Coroutine[Any, Any, Sequence[Result | plan_work.Edited]]]

SINGLE: dict[type, Callable[[Ground, Any], Coroutine[Any, Any, Result]]] = {
    AllocateRun: holding_work.allocate_run,
    Cancel: holding_work.cancel,
    Confirm: holding_work.confirm,
    EndCooling: holding_work.end_cooling,
    Expect: expect_work.expect,
    ExpectHolding: expect_work.expect_holding,
    ExpectNoHoldings: expect_work.expect_no_holdings,
    ExpectNoPapers: expect_work.expect_no_papers,
}
"""What each operation does by itself."""

TOGETHER: dict[type, Work] = {
    AddNetwork: plan_work.add_networks,
    Allocate: holding_work.allocate,
    ExpectPaper: expect_work.expect_papers,
    ModifyHolding: holding_work.modify,
    Release: holding_work.release,
    ReleaseOwner: holding_work.release_owners,
    RemovePaper: paper_work.write_papers,
    Transfer: holding_work.transfer,
    WritePaper: paper_work.write_papers,
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
        await paper_work.open_papers(self.ground, operations)

    async def run(self, operations: Sequence[Operation]) -> list[Result]:
        """Do it all, then judge and write; what is to be logged is left to ``finish``."""
        results: list[Result | plan_work.Edited] = []
        while len(results) < len(operations):
            operation = operations[len(results)]
            together = _together(operation)
            if together is None:
                results.append(await SINGLE[type(operation)](self.ground, operation))
            else:
                rest = (operations[place] for place in range(len(results), len(operations)))
                alike = list(takewhile(lambda other, work=together: _together(other) is work, rest))  # type: ignore[misc]
                results.extend(await together(self.ground, alike))
        await plan_work.settle(self.ground)
        await self._leave_lines()
        return self._final(results)

    async def _leave_lines(self) -> None:
        """Let no claim wait on whose owner came to hold something."""
        ground = self.ground
        for space, configuration in ground.now.items():
            if configuration.queued:
                here = [entry for entry in ground.entries if entry.space == space]
                ground.entries.extend(await leave_served(ground.tx, space, here))

    def _final(self, results: Sequence[Result | plan_work.Edited]) -> list[Result]:
        """Return for each edit the network as it is at the end, one value for all edits of it; None if it is gone."""
        ground = self.ground
        changed = [network for space in ground.edited_spaces for network in ground.now[space].networks.values()]
        networks = {network.id: network for network in changed}
        return [networks.get(each.network) if isinstance(each, plan_work.Edited) else each for each in results]

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
    return TOGETHER.get(type(operation), plan_work.edit_plan)


def guard_for(operations: Sequence[Operation]) -> Guard:
    """Return how strongly the spaces must be held: where nobody may hold anything, not even a grant may pass."""
    if any(isinstance(operation, Edit | ExpectNoHoldings) for operation in operations):
        return Guard.EDIT
    return Guard.LANE
