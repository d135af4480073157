"""What a file says beyond the ledger's words, kept apart so that it can be put back.

Of each object there are two documents: the *original*, as the file has it, and the *plain* one, as the ledger's state
alone would be written. The rest is what must be done to the plain document to have the original: fields that the
ledger has no word for, and fields that are spelled otherwise. A field spelled otherwise gets its spelling back only
while it still means what it meant.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenure.integrations.ganeti.files.file_model import GROUPS, INSTANCES, NETWORKS, NODES, Json


@dataclass(frozen=True, slots=True)
class Nest:
    """A field that holds objects: a list of them told apart by a field, or (without ``told_by``) a mapping.

    ``single``: the field is itself one object.
    """

    told_by: str | None = None
    single: bool = False
    nests: "Nests" = field(default_factory=dict)
    alias: tuple[str, str] | None = None
    """A field of the objects, and the other name that a file may give it."""


Nests = Mapping[str, Nest]

NESTS: Mapping[str, Nests] = {
    NETWORKS: {"subnets": Nest("uuid", nests={"pools": Nest("range")}, alias=("external", "reserved"))},
    GROUPS: {"networks": Nest()},
    NODES: {},
    INSTANCES: {"nics": Nest("uuid", nests={"nicparams": Nest(single=True)})},
}
"""The objects inside objects, by section."""


def digest(value: object) -> str:
    """Stand for a value: two that differ have different digests."""
    # Sorted, since the order of keys makes no difference in JSON.
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:24]


def rest_of(original: Json, plain: Json, nests: Nests) -> Json:
    """Return what is to be done to the plain document to have the original one."""
    kept = {key: value for key, value in original.items() if key not in plain}
    spelled: Json = {}
    inner: Json = {}
    for key, value in plain.items():
        if key in nests and (rests := _inner_rests(original.get(key), value, nests[key])) is not None:
            inner[key] = rests
        # The file leaves the field out: ``restored`` does so again as long as the field means the same.
        elif key not in original:
            spelled[key] = {"means": digest(value)}
        elif not _same(original[key], value):
            spelled[key] = {"means": digest(value), "as": original[key]}
    rest = {"kept": kept, "spelled": spelled, "inner": inner}
    return {word: said for word, said in rest.items() if said}


def _inner_rests(original: Any, plain: Any, nest: Nest) -> Json | None:
    """Return the rests of the objects inside; None if the original has not the same ones."""
    if nest.single:
        return rest_of(original, plain, nest.nests) if isinstance(original, dict) else None
    if nest.told_by is None:
        if not isinstance(original, dict) or original.keys() != plain.keys():
            return None
        pairs = [(key, original[key], plain[key]) for key in plain]
    else:
        # Members can be paired only if both have as many; otherwise the whole field is kept as it is spelled.
        if not isinstance(original, list) or len(original) != len(plain):
            return None
        pairs = [(_told(each, nest), old, each) for old, each in zip(original, plain, strict=True)]
    rests = {key: _aliased_rest(old, each, nest) for key, old, each in pairs}
    return {key: rest for key, rest in rests.items() if rest}


def _aliased_rest(original: Json, plain: Json, nest: Nest) -> Json:
    if nest.alias is None or original.get(nest.alias[1]) is None:
        return rest_of(original, plain, nest.nests)
    word, other = nest.alias
    renamed = {key: value for key, value in original.items() if key not in nest.alias}
    return {**rest_of({**renamed, word: original[other]}, plain, nest.nests), "alias": True}


def _told(plain: Json, nest: Nest) -> str:
    mark = plain[nest.told_by or ""]
    # A pool is told by its range, which is an object and cannot be a key.
    return mark if isinstance(mark, str) else digest(mark)


def _same(value: Any, other: Any) -> bool:
    """Compare as JSON does: to Python 1, 1.0 and true are the same."""
    return value == other and digest(value) == digest(other)


def restored(rest: Json, plain: Json, nests: Nests) -> Json:
    """Put the rest of an original back onto a plain document, as far as it still fits."""
    made: Json = {**rest.get("kept", {}), **plain}
    for key, inner in rest.get("inner", {}).items():
        if key in plain:
            made[key] = _restored_inner(inner, plain[key], nests[key])
    for key, spelling in rest.get("spelled", {}).items():
        if key in plain and digest(plain[key]) == spelling["means"]:
            if "as" in spelling:
                made[key] = spelling["as"]
            else:
                del made[key]
    return made


def _restored_inner(rests: Json, plain: Any, nest: Nest) -> Any:
    if nest.single:
        return restored(rests, plain, nest.nests)
    if nest.told_by is None:
        return {key: restored(rests.get(key, {}), each, nest.nests) for key, each in plain.items()}
    members: Sequence[Json] = plain
    return [_restored_member(rests.get(_told(each, nest), {}), each, nest) for each in members]


def _restored_member(rest: Json, plain: Json, nest: Nest) -> Json:
    made = restored(rest, plain, nest.nests)
    if rest.get("alias") and nest.alias is not None and nest.alias[0] in made:
        word, other = nest.alias
        made[other] = made.pop(word)
    return made
