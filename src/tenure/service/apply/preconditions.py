"""What ``apply`` makes sure of before it goes on: it holds what it looked at until everything is done."""

from collections.abc import Sequence

from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import parse_range
from tenure.kernel.errors import Conflict, NotFound, StillInUse, nobody_holds
from tenure.kernel.holdings.fingerprint import mark_of
from tenure.kernel.holdings.holding_model import State
from tenure.kernel.names import Owner, check_name, check_number
from tenure.kernel.plan.edit_fields import read_member
from tenure.service.allocator.revocable_grants import reported
from tenure.service.apply.context import Ground
from tenure.service.apply.operations import (
    Expect,
    ExpectHolding,
    ExpectNoHoldings,
    ExpectNoPapers,
    ExpectPaper,
    IgnoreConflicts,
)
from tenure.service.apply.plan_effects import standing, told_addresses, told_holders

SHOWN = 4
"""How many of what stands in the way are looked for: more than a message names."""


async def expect(ground: Ground, operation: Expect) -> None:
    """Make sure that a network is as it was read."""
    serial = check_number(operation.serial, field="serial")
    network = ground.now[ground.space_of(check_name(operation.network, field="network"))].network(operation.network)
    if operation.uuid is not None and network.uuid != operation.uuid:
        raise Conflict(f"network {network.name!r} was replaced meanwhile by another of that name", field="serial")
    if network.serial != serial:
        raise Conflict(
            f"network {network.name!r} was changed meanwhile (serial {network.serial}, not {serial})", field="serial"
        )


async def expect_holding(ground: Ground, operation: ExpectHolding) -> None:
    """Make sure that a holding is as it was read."""
    mark = None if operation.mark is None else check_name(operation.mark, field="mark")
    row = await ground.look(operation.network, operation.address, Owner(operation.owner), operation.generation)
    if row is None:
        raise nobody_holds(operation.address, operation.network, hint="it was released meanwhile")
    # Marks are made of rows as answers show them.
    if mark is not None and mark_of(reported(row)) != mark:
        raise Conflict(f"the holding of {format_address(row.first)} was changed meanwhile", field="mark")


async def expect_papers(ground: Ground, operations: Sequence[ExpectPaper]) -> list[None]:
    """Make sure that papers are as they were read; they were all found, and held, when the transaction began."""
    for operation in operations:
        known = ground.papers[operation.kind, operation.name]
        revision = check_number(operation.revision, field="revision")
        if known is None:
            raise NotFound(operation.kind, operation.name, field="name")
        if known.revision != revision:
            raise Conflict(
                f"{known.kind} {known.name!r} was changed meanwhile (revision {known.revision}, not {revision})",
                field="revision",
            )
    return [None] * len(operations)


async def ignore_conflicts(ground: Ground, operation: IgnoreConflicts) -> None:
    """Note that the edits of a network are not to be checked against the cluster."""
    name = check_name(operation.network, field="network")
    ground.unchecked.add(ground.now[ground.space_of(name)].network(name).id)


async def expect_no_papers(ground: Ground, operation: ExpectNoPapers) -> None:
    """Make sure that there is no paper of a kind whose name begins so."""
    kind, prefix = check_name(operation.kind, field="kind"), check_name(operation.prefix, field="prefix")
    found = await ground.tx.papers(kind, prefix=prefix, limit=SHOWN)
    if found:
        names = [paper.name for paper in found]
        raise StillInUse(kind, prefix, names, hint="remove them first", field="prefix")


async def expect_no_holdings(ground: Ground, operation: ExpectNoHoldings) -> None:
    """Make sure that nobody holds anything of a network in a range."""
    where = parse_range(operation.range)
    state = None if operation.state is None else read_member(State, operation.state, "state")
    space = ground.space_of(check_name(operation.network, field="network"))
    number = ground.now[space].network(operation.network).id
    rows = await standing(ground, space, where, number, state)
    if rows:
        told, places = told_holders(rows[:SHOWN]), told_addresses(rows[:SHOWN])
        raise StillInUse("range", str(where), told, hint="release them first", addresses=places, field="range")
