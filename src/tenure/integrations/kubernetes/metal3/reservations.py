"""Reservations in a pool: addresses that a leader is about to create objects for, each for one claim (KD4)."""

from collections.abc import Iterable
from typing import Any

import orjson

from tenure.integrations.kubernetes.metal3.ipam_kinds import IP_CLAIM, RESERVING, annotations_of, field
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.errors import Invalid


def reserved_in(pool: Object) -> dict[str, int]:
    """Return the reserved addresses of a pool by the uid of the claim; what cannot be read reserves nothing.

    They are in the status, or in an annotation where the definition of the kind is Metal3's and has no room for ours.
    """
    found = {}
    for entry in _entries(pool):
        match entry:
            case {"address": str(address), "uid": str(uid)}:
                try:
                    found[uid] = parse_address(address)
                except Invalid:
                    continue
    return found


def reserving(reserved: Iterable[tuple[str, int]]) -> list[Object]:
    """Write reservations down."""
    return [{"address": format_address(place), "uid": uid, "kind": IP_CLAIM.kind} for uid, place in sorted(reserved)]


def as_annotation(entries: list[Object]) -> str:
    """Write reservations as the text of an annotation."""
    return orjson.dumps(entries).decode()


def _entries(pool: Object) -> list[Any]:
    in_status = field(pool, "status", "tenure", "reserving")
    entries = list(in_status) if isinstance(in_status, list) else []
    try:
        in_annotation = orjson.loads(annotations_of(pool).get(RESERVING, "[]"))
    except orjson.JSONDecodeError:
        return entries
    return entries + (in_annotation if isinstance(in_annotation, list) else [])
