"""What a mode can do for a pool: the few verbs behind which the places for allocations differ."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from tenure.integrations.vmpool.pool_decisions import RepairReport
from tenure.integrations.vmpool.pool_document import Decide, PoolDocument
from tenure.integrations.vmpool.state.pool_notes import PoolNotes, PoolPlacement
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.state.state_repair import PoolFinding
from tenure.integrations.vmpool.state.state_rules import AllocationRequest
from tenure.integrations.vmpool.vanished_writes import VanishedWrite

T = TypeVar("T")


class PoolPlace(Protocol):
    """Where the allocations of one pool are."""

    async def allocate(self, request: AllocationRequest) -> VMAllocation:
        """Give an id its VM: the one it has, else one that is free. Raise ``VMPoolExhausted``."""

    async def release(self, node_name: str, *, allocation_id: str = "", ip: str = "") -> tuple[VMAllocation, ...]:
        """Take back the VM of an id, or by its IP; return what was released."""

    async def get(self, allocation_id: str) -> VMAllocation | None:
        """Return the VM that an id has."""

    async def find_ip(self, ip: str) -> VMAllocation | None:
        """Return the allocation of an IP."""

    async def read(self) -> PoolDocument:
        """Read the pool, whole."""

    async def change(
        self, operation: str, decide: Decide[T], about: Mapping[str, object], timeout_s: float | None = None
    ) -> T:
        """Decide on the pool as it is, write what has changed, and return the decision's result."""

    async def read_notes(self) -> PoolNotes:
        """Read what is noted, wherever the pool is."""

    async def heal(self) -> int:
        """Remove what writers that were killed have left beside the allocations; return how much that was."""

    async def put_in_place(self, node_name: str) -> tuple[PoolFinding, ...]:
        """Move what lies where no manager looks to its place; return what that was."""

    async def replace_unreadable(self, node_name: str) -> RepairReport | None:
        """Replace what cannot be read, after a copy; return nothing if all can be read."""

    async def reassert(self, node_name: str) -> tuple[VanishedWrite, ...]:
        """Assert again what other managers overwrote, where the mode has such."""

    @property
    def vanished(self) -> tuple[VanishedWrite, ...]:
        """Return the reports of allocations that vanished."""

    async def leave(self, placement: PoolPlacement) -> Sequence[VMAllocation]:
        """Give every address to a filler that names the mode to which the pool moves; return what was allocated.

        Whoever allocates here afterwards finds nothing free, and what is not found may be there (VD4). May be called
        again, by another process, where the first one was killed.
        """

    async def check_leave(self, placement: PoolPlacement) -> Sequence[VMAllocation]:
        """Return what would leave this place; raise if that cannot be, as far as it can be known."""

    async def prepare(self, placement: PoolPlacement, entries: Sequence[VMAllocation]) -> None:
        """Make ready for a pool that is to be moved here with its allocations; raise if it cannot come.

        Nothing is changed where it is.
        """

    async def arrive(self) -> None:
        """Say that the pool is here, for those who cannot read where it is."""

    async def enter(self, entries: Sequence[VMAllocation], notes: PoolNotes, placement: PoolPlacement) -> None:
        """Take these allocations and notes in, where none looks yet; may be called again."""

    async def close(self) -> None:
        """Wait until nothing is under way."""
