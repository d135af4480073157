"""Cooling addresses of a pool: released, and not given to another claim until a written change says so (I10).

The pool lists them in its status, or in an annotation where the definition of the kind has no room for ours. An entry
holds its address for as long as it stands there, whatever the time is; the leader removes it when its time is over.
"""

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tenure.integrations.kubernetes.metal3.objects.claim_kind import ClaimId
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import COOLING_LIST, text
from tenure.integrations.kubernetes.metal3.objects.listed_entries import listed_entries
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid

MOST_COOLING = 2_500
"""The most entries that a pool lists, some 300 KB; the oldest make room for new ones."""


class CoolingAddress(NamedTuple):
    """A released address. Two of them are in the order in which they are free again."""

    until: int
    """When it is free again, in seconds since 1970."""
    position: int
    claim: ClaimId
    """The claim that had it: made again under its name, it may have the address at once."""

    @property
    def until_text(self) -> str:
        """Return when it is free again, as Kubernetes writes a time."""
        return datetime.fromtimestamp(self.until, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def cooling_in(pool: Object) -> dict[int, CoolingAddress]:
    """Return the cooling addresses of a pool; what cannot be read is none."""
    read = (_read(entry) for entry in cooling_written(pool))
    return {each.position: each for each in read if each is not None}


def cooling_written(pool: Object) -> list[Any]:
    """Return the entries of both places as they are written."""
    return listed_entries(pool, "cooling", COOLING_LIST)


def cooling_entries(cooling: Iterable[CoolingAddress]) -> list[Object]:
    """Write cooling addresses down, those first that are free first."""
    return [
        {
            "address": format_address(each.position),
            "until": each.until_text,
            "kind": each.claim.kind,
            "claim": f"{each.claim.namespace}/{each.claim.name}",
        }
        for each in sorted(cooling)
    ]


def listed_addresses(entries: Iterable[object]) -> set[str]:
    """Return the addresses of entries, as they are written."""
    return {text(entry, "address") for entry in entries if isinstance(entry, dict)}


def _read(entry: object) -> CoolingAddress | None:
    match entry:
        case {"address": str(address), "until": str(until), **others}:
            kind, claim = others.get("kind"), others.get("claim")
            namespace, _, name = claim.partition("/") if isinstance(claim, str) else ("", "", "")
            try:
                at = math.ceil(datetime.fromisoformat(until).timestamp())
                return CoolingAddress(at, parse_address(address), ClaimId(str(kind or ""), namespace, name))
            except (Invalid, ValueError, OverflowError):
                return None
    return None
