"""Moving in: the dry run, and the import, one transaction a batch.

An import that was killed is simply run again: its dry run finds what is there already, and the rest is written.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from tenure.interchange.formats.source_items import Item, Progress, Source
from tenure.interchange.importer.dry_run import CheckedHolding, Examination
from tenure.interchange.importer.dry_run_report import DryRunReport
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import Conflict, Invalid, StoreUnavailable, TenureError
from tenure.kernel.holdings.holding_model import State
from tenure.kernel.names import shown
from tenure.service.apply.operations import Allocate, ModifyHolding, Operation
from tenure.service.ledger.async_ledger import AsyncLedger

BATCH = 1000
LARGEST_BATCH = 10_000

T = TypeVar("T")


async def plan_import(
    ledger: AsyncLedger,
    source: Source | Sequence[Item],
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> DryRunReport:
    """Try an import and write nothing: tell every fault and oddity, and what would be new.

    ``force`` lets reserved, kept-back and pre-allocated addresses be held; they are oddities then. Cost: O(n log n)
    of the source, and one reading of the holdings in the spaces it touches.
    """
    return (await _examined(ledger, source, force, progress)).report


async def run_import(
    ledger: AsyncLedger,
    source: Source | Sequence[Item],
    *,
    batch: int = BATCH,
    force: bool = False,
    progress: Progress | None = None,
) -> DryRunReport:
    """Write what the dry run calls new: the plan, then the holdings, one transaction a batch.

    Raises Invalid, and writes nothing, while the dry run has faults. May be killed and run again at any time.
    """
    if not isinstance(batch, int) or isinstance(batch, bool) or not 1 <= batch <= LARGEST_BATCH:
        raise Invalid(f"batch: a number from 1 to {LARGEST_BATCH} is needed, not {shown(batch)}", field="batch")
    # Without progress: the caller's bar shows what the import has written.
    done = await _examined(ledger, source, force, None)
    report = done.report
    if not report.ok:
        more = f" (and {len(report.faults) - 1} more)" if len(report.faults) > 1 else ""
        raise Invalid(f"source: nothing was written: {report.faults[0]}{more}", field="source")
    already, total = report.already.total(), report.already.total() + report.new.total()
    if progress is not None:
        progress(already, total)
    for written, operations in _batches(done, _request(source), batch):
        await _write(ledger, operations)
        if progress is not None:
            progress(already + written, total)
    return report


async def _examined(
    ledger: AsyncLedger, source: Source | Sequence[Item], force: bool, progress: Progress | None
) -> Examination:
    if not isinstance(source, Source):
        source = Source(source[0].place.source if source else "items", list(source))
    examination = Examination(source, force=force)
    await examination.run(ledger, progress)
    return examination


def _request(source: Source | Sequence[Item]) -> str:
    return source.request if isinstance(source, Source) else Source(source[0].place.source if source else "").request


def _batches(done: Examination, request: str, batch: int) -> Iterator[tuple[int, list[Operation]]]:
    """Yield each transaction with the number of things written when it is over."""
    written = 0
    # What is draining comes before what took its slot; what is retired is retired when its holdings are in.
    sought = sorted(done.sought, key=lambda one: (one.state is not State.DRAINING, one.number))
    edits: Sequence[Operation] = done.plan.edits
    for piece in _cut(edits, batch):
        written += len(piece)
        yield written, list(piece)
    for holdings in _cut(sought, batch):
        written += len(holdings)
        yield written, [operation for one in holdings for operation in _operations(one, request)]
    retirements: Sequence[Operation] = done.plan.retirements
    for piece in _cut(retirements, batch):
        written += len(piece)
        yield written, list(piece)


def _cut(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (things[start : start + size] for start in range(0, len(things), size))


def _operations(one: CheckedHolding, request: str) -> Iterator[Operation]:
    held, address = one.held, format_address(one.first)
    yield Allocate(
        network=held.network,
        owner=one.owner,
        slot=held.slot,
        address=address,
        reserved=one.reach,
        labels=held.labels,
        description=held.description,
        carrier=held.carrier,
        plan=held.plan,
        request=request,
        pending=one.state is State.PENDING,
    )
    # No allocation makes a draining holding, so it is held first, in the same transaction.
    if one.state is State.DRAINING:
        yield ModifyHolding(network=held.network, address=address, owner=one.owner, state="draining", request=request)


async def _write(ledger: AsyncLedger, operations: Sequence[Operation]) -> None:
    try:
        await ledger.apply(operations)
    except StoreUnavailable:
        # Its outcome says what became of the batch; only a refusal means that the ledger changed since the dry run.
        raise
    except TenureError as error:
        hint = "run the import again: its dry run will name the line"
        raise Conflict(f"the ledger changed during the import ({error}); {hint}") from error
