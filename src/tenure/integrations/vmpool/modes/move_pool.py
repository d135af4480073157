"""Move a live pool from one mode to another: nothing is lost or doubled, whoever is at work or killed meanwhile (VD4).

1. The note says that the pool is being moved, and callers that find nothing wait. It is in the ConfigMap of the pool's
   name. No address is free there while the pool is in another mode, so Go managers never find one.
2. At the source, a filler takes every address and says for which allocation it stands. From then on no process, Go
   managers included, can allocate or release there.
3. The target, which no process reads yet, takes the allocations in.
4. The note says where the pool is. A ledger says so, too, for processes that see nothing else.

Known obstacles (no room, an address that the mode cannot have, another pool of this name in the ledger) are refused
before the first step.

Every step can be repeated: a mover that was killed is followed by another one, which begins at the first step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tenure.integrations.vmpool.modes.pool_lease import while_alone
from tenure.integrations.vmpool.modes.pool_places import PoolPlaces
from tenure.integrations.vmpool.pool_log import PoolEvent, audit
from tenure.integrations.vmpool.state.argument_checks import check_choice
from tenure.integrations.vmpool.state.held_back import is_held_back
from tenure.integrations.vmpool.state.pool_notes import PoolPlacement
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.vm_pool_settings import MODES
from tenure.kernel.errors import Conflict, Invalid, StoreUnavailable


@dataclass(frozen=True, slots=True)
class MoveReport:
    """From where to where a pool was moved, with how many allocations."""

    moved_from: str
    moved_to: str
    allocations: int = 0
    is_moved: bool = True
    """False if it was there already."""


async def move_alone(places: PoolPlaces, to: str) -> MoveReport:
    """Move a pool, and no other process at the same time: the second one waits until the first has ended or is dead."""
    check_choice(to, "to", MODES)
    if places.client is None:
        raise Invalid("to: a pool is moved by a process that reaches the cluster: name a kubeconfig", field="to")
    return await while_alone(places, lambda: move_pool(places, to))


async def move_pool(places: PoolPlaces, to: str) -> MoveReport:
    """Move a pool; one whose move was broken off is moved on, or back. Only one process may do so at a time."""
    home = places.home
    if places.follower is not None:
        # An address that this process did not know would stay open where the pool leaves.
        await places.follower.look()
    document = await home.read_home()
    seen = document.notes.placement
    here = seen or PoolPlacement("configmap" if document.is_there else places.settings.pool_mode)
    await places.check_ledger(here)
    is_back = bool(here.moves_to) and here.mode == to
    if here.moves_to not in ("", to) and not is_back:
        raise Conflict(
            f"to: the pool is being moved to {here.moves_to!r}; that has to end first, or to be taken back "
            f"(`tenure vmpool move --to {here.mode}`)",
            field="to",
        )
    if here.mode == to and not here.moves_to:
        await _say_where(places, here)  # the process that moved it may have died before it said so
        return MoveReport(here.mode, to, is_moved=False)
    with places.as_mover():
        is_home = is_back and to == "configmap"
        entries = await home.come_back(here) if is_home else await _carried(places, here, to, seen)
    count = sum(not is_held_back(entry) for entry in entries)
    audit(PoolEvent.MOVED, pool=places.settings.config_map_name, mode=to, allocations=count)
    # The ledger says that the pool is coming: nodes that see nothing else would wait for it.
    if is_back and here.moves_to == "ledger":
        await _say_where(places, PoolPlacement(to, "", here.epoch + 1))
    return MoveReport(here.mode, to, count)


async def _say_where(places: PoolPlaces, placement: PoolPlacement) -> None:
    """Say where the pool is; a ledger that is dead, as when a move is taken back for that, must not be in the way."""
    try:
        await places.say_where(placement)
    except StoreUnavailable as error:
        if placement.mode == "ledger":
            raise
        warning = f"the ledger does not know yet that the pool is elsewhere; move again when it is back: {error}"
        audit(PoolEvent.WARNING, pool=places.settings.config_map_name, warning=warning)


async def _carried(
    places: PoolPlaces, here: PoolPlacement, to: str, seen: PoolPlacement | None
) -> Sequence[VMAllocation]:
    """Carry a pool to a place that was never used; return its allocations.

    One whose move is taken back is carried to a new place of the mode that it was leaving.
    """
    source, target = places.at(here.mode, here.epoch), places.at(to, here.epoch + 1)
    moving = replace(here, moves_to=to)
    if not here.moves_to:
        await target.prepare(moving, await source.check_leave(moving))
    elif here.moves_to != to:
        await target.prepare(moving, ())
    await places.home.place(moving, seen)
    entries = await source.leave(moving)
    await target.enter(entries, await source.read_notes(), moving)
    # The notes decide where the pool is: a mover that slept until here must not write them.
    places.check()
    await places.home.place(await places.identified(moving.arrived), moving)
    await target.arrive()
    return entries
