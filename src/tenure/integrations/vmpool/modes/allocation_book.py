"""What a place that is not the seed's has to bring: allocations one by one, and notes, each changed by itself."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tenure.integrations.vmpool.state.pool_state import VMAllocation

GENERATION = "generation"
"""The field of an entry that sets it apart from every other one, also of the same id on the same VM."""


@dataclass(frozen=True, slots=True)
class TakenVM:
    """The VM that an id has now, whether that is new, and how many VMs were tried."""

    entry: VMAllocation
    is_new: bool
    tries: int = 1


@dataclass(frozen=True, slots=True)
class StoredNotes:
    """The text of the notes as it was read, and what names this very text when it is written again."""

    text: str | None
    seen: Any = None


class AllocationBook(Protocol):
    """Allocations of one pool; two writers meet only where they are about the same id or the same VM."""

    async def take(self, entry: VMAllocation, offers: AsyncGenerator[Sequence[str], None]) -> TakenVM | None:
        """Give an id the first of the offered VMs that is free, unless it has one; none if all are others'.

        VMs come a few at a time, in the order in which they are to be tried. Raise ``PoolElsewhere`` if what the id had
        was exchanged, and so is elsewhere.
        """

    async def drop(self, entry: VMAllocation) -> bool:
        """End an allocation as it was read; return whether it was still there."""

    async def exchange(self, entry: VMAllocation, new: VMAllocation) -> bool:
        """Give the VM of an allocation to another id, so that it is free at no moment; return whether it was there.

        The id that had it gets no other one here from then on.
        """

    async def check_room(self, entries: Sequence[VMAllocation]) -> None:
        """Raise ``PoolTooLarge`` if these allocations, in the place of those of their VMs, had no room here."""

    async def prepare(self, is_from_here: bool, entries: Sequence[VMAllocation]) -> None:
        """Make ready for a pool that comes with allocations; raise if it, or one of them, cannot come.

        ``is_from_here``: it comes from another place of the same mode.
        """

    async def arrive(self) -> None:
        """Say that the pool has arrived, where any process sees nothing else."""

    async def seal(self) -> bool:
        """Let nobody take a VM here from now on, where that is one write; return whether this is so.

        Where it is not, whoever leaves the place gives every free VM to a filler.
        """

    async def of_id(self, allocation_id: str) -> VMAllocation | None:
        """Return what an id has."""

    async def of_ip(self, ip: str) -> VMAllocation | None:
        """Return which id has a VM."""

    async def entries(self) -> list[VMAllocation]:
        """Return all allocations."""

    async def held_ips(self) -> frozenset[str]:
        """Return the VMs that cannot be had now; as cheap as it can be."""

    def nearest(self, allocation_id: str, ips: list[str]) -> list[str]:
        """Return those VMs that an id gets for less than the others; all of them if there is no difference."""

    async def read_notes(self) -> StoredNotes:
        """Return the notes."""

    async def write_notes(self, text: str, seen: StoredNotes) -> None:
        """Write the notes; raise ``SwapLost`` if they have changed since they were read."""

    async def keep_copy(self, name: str, text: str) -> str:
        """Keep a text that cannot be read under a name of its own; return where it is."""

    async def heal(self) -> int:
        """Remove what writers that were killed have left; return how much."""

    async def close(self) -> None:
        """Let go of what it has open."""
