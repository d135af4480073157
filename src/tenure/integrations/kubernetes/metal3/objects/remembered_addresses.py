"""Which address a claim had that is gone: a sticky pool gives it back to a claim of the same kind and name.

The pool lists them in its status, the claim that went first at the beginning. It is a preference and never a right:
whatever is wrong or forged in the list gives nobody an address that another has.
"""

from collections.abc import Iterable, Iterator

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import field
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid

MOST_REMEMBERED = 2_500
"""So many claims that are gone are remembered; the ones that went first are forgotten."""


class RememberedAddresses:
    """One address for each claim, and one claim for each address; the last that was noted counts."""

    def __init__(self, noted: Iterable[tuple[ClaimId, int]] = ()) -> None:
        self._of: dict[ClaimId, int] = {}
        self._at: dict[int, ClaimId] = {}
        for claim, position in noted:
            self.note(claim, position)

    def note(self, claim: ClaimId, position: int) -> None:
        """Remember which address a claim had."""
        # Forgotten first, so that it stands at the end: of too many, the beginning is cut off.
        self.forget(claim)
        self._of.pop(self._at.pop(position, claim), None)
        self._of[claim], self._at[position] = position, claim

    def forget(self, claim: ClaimId) -> None:
        """Forget which address a claim had."""
        if (position := self._of.pop(claim, None)) is not None:
            del self._at[position]

    def of(self, claim: ClaimId) -> int | None:
        """Return the address that a claim had."""
        return self._of.get(claim)

    def __contains__(self, position: int) -> bool:
        return position in self._at

    def __iter__(self) -> Iterator[tuple[ClaimId, int]]:
        return iter(self._of.items())

    def __len__(self) -> int:
        return len(self._of)

    @property
    def positions(self) -> set[int]:
        """Return all addresses."""
        return set(self._at)


def remembered_in(pool: Object) -> RememberedAddresses:
    """Return what a pool remembers; what cannot be read is not remembered."""
    return RememberedAddresses(_read(remembered_written(pool)))


def remembered_written(pool: Object) -> list[object]:
    """Return the entries as they are written."""
    written = field(pool, "status", "tenure", "remembered")
    return written if isinstance(written, list) else []


def remembered_entries(remembered: Iterable[tuple[ClaimId, int]]) -> list[Object]:
    """Write down which claim had which address."""
    return [
        {"address": format_address(position), "claim": f"{claim.namespace}/{claim.name}", "kind": claim.kind}
        for claim, position in remembered
    ]


def _read(entries: list[object]) -> Iterator[tuple[ClaimId, int]]:
    for entry in entries:
        match entry:
            case {"address": str(address), "claim": str(claim), "kind": str(kind)}:
                namespace, _, name = claim.partition("/")
                try:
                    yield ClaimId(kind, namespace, name), parse_address(address)
                except Invalid:
                    continue
