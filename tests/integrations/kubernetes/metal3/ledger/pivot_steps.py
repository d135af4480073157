"""A move of a namespace's objects to another API server, step by step as clusterctl documents it: of pools and claims.

Wait until nothing blocks it; create in the target, owners first, with new uids and without status; then in the source,
in reverse order: mark with ``delete-for-move``, delete, and strip the finalizers, or strip them first, as some versions
do (KD6).
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    BLOCK_MOVE,
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    DELETE_FOR_MOVE,
    IP_ADDRESS,
    IP_CLAIM,
    IP_POOL,
    annotations_of,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType, key_of, uid_of
from tests.integrations.kubernetes.metal3.serving import Namespace, RefusedByServer, until

KINDS = (IP_POOL, IP_CLAIM, CLUSTER_API_CLAIM, IP_ADDRESS, CLUSTER_API_ADDRESS)
"""Owners first: pools and claims own addresses."""
KEPT = ("annotations", "labels", "finalizers")


class Order(enum.Enum):
    """When finalizers are stripped in the source."""

    AFTER = "delete, then strip"
    BEFORE = "strip, then delete"


class MoveKilled(Exception):
    """The move has ended where it was to be killed."""


@dataclass
class Move:
    """A move between two servers, which may be killed after so many writes, and be repeated."""

    source: Namespace
    target: Namespace
    order: Order = Order.AFTER
    writes_left: int | None = None
    """After so many writes it is killed; nothing: it goes to its end."""
    kinds: Sequence[ResourceType] = KINDS
    """What is moved, owners first."""

    def run(self) -> None:
        """Move everything; a move that was killed is simply run again."""
        until(lambda: not any(self._blocks(kind) for kind in self.kinds))
        found = [(kind, each) for kind in self.kinds for each in self._exported(kind)]
        uids: dict[str, str] = {}
        for kind, object in found:
            uids[uid_of(object)] = self._create(kind, object, uids)
        for kind, object in reversed(found):
            self._remove(kind, key_of(object)[1])

    def _blocks(self, kind: ResourceType) -> bool:
        return any(BLOCK_MOVE in annotations_of(each) for each in self.source.all(kind))

    def _exported(self, kind: ResourceType) -> Iterator[Object]:
        for each in self.source.all(kind):
            yield {"apiVersion": kind.api_version, "kind": kind.kind, **each}

    def _create(self, kind: ResourceType, object: Object, uids: dict[str, str]) -> str:
        """Create an object in the target, with references to the owners that are there; return its uid.

        One that is there already stays as it is: an earlier try made it, or the operator there, for a claim that came.
        """
        name, metadata = key_of(object)[1], object["metadata"]
        owners = [
            {**owner, "uid": uids.get(owner["uid"], owner["uid"])} for owner in metadata.get("ownerReferences") or ()
        ]
        kept = {field: metadata[field] for field in KEPT if metadata.get(field)}
        marks = kept.get("annotations", {}).items()
        kept["annotations"] = {mark: text for mark, text in marks if mark != DELETE_FOR_MOVE}
        stored = {field: value for field, value in object.items() if field != "status"}
        head = {"name": name, "namespace": self.target.name, "ownerReferences": owners, **kept}
        self._count()
        try:
            return uid_of(self.target.ask("POST", kind.path(self.target.name), {**stored, "metadata": head}))
        except RefusedByServer as error:
            there = self.target.get(kind, name)
            if error.code != 409 or there is None:
                raise
            return uid_of(there)

    def _remove(self, kind: ResourceType, name: str) -> None:
        self._try("PATCH", kind.path(self.source.name, name), {"metadata": {"annotations": {DELETE_FOR_MOVE: ""}}})
        strip = ("PATCH", kind.path(self.source.name, name), {"metadata": {"finalizers": None}})
        delete = ("DELETE", kind.path(self.source.name, name), None)
        for step in (delete, strip) if self.order is Order.AFTER else (strip, delete):
            self._try(*step)

    def _try(self, method: str, path: str, body: Any) -> None:
        """Write; what is gone already needs nothing."""
        self._count()
        try:
            self.source.ask(method, path, body)
        except RefusedByServer as error:
            if error.code != 404:
                raise

    def _count(self) -> None:
        if self.writes_left == 0:
            raise MoveKilled
        if self.writes_left is not None:
            self.writes_left -= 1
