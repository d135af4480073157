"""Reservations in a pool: addresses that a leader is about to create objects for, each for one claim (KD4)."""

from collections.abc import Mapping
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import RESERVING, text
from tenure.integrations.kubernetes.metal3.objects.listed_entries import listed_entries
from tenure.integrations.kubernetes.metal3.objects.pool_spec import position_in
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import format_address


def reserved_in(pool: Object) -> dict[str, int]:
    """Return the reserved addresses of a pool by the uid of the claim; what cannot be read reserves nothing."""
    found = {}
    for entry in _entries(pool):
        match entry:
            case {"address": str(address), "uid": str(uid)} if (position := position_in(address)) is not None:
                found[uid] = position
    return found


def kinds_in(pool: Object) -> dict[str, str]:
    """Return the kinds of the claims of a pool's reservations, by the uid of the claim."""
    return {text(entry, "uid"): text(entry, "kind") for entry in _entries(pool) if isinstance(entry, dict)}


def reserving(reserved: Mapping[str, int], kinds: Mapping[str, str]) -> list[Object]:
    """Write reservations down; the uid is what counts, the kind of the claim is for people."""
    return [
        {"address": format_address(position), "uid": uid, "kind": kinds[uid]}
        # In one order: the same reservations in another order would be another status, and be written.
        for uid, position in sorted(reserved.items())
    ]


def _entries(pool: Object) -> list[Any]:
    return listed_entries(pool, "reserving", RESERVING)
