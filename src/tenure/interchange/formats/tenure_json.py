"""Our own document of everything: spaces, networks with their plan, and holdings."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tenure.interchange.formats.source_items import Fault, Item, SourceHolding, SourcePlace
from tenure.interchange.formats.tenure_csv import address_text
from tenure.kernel.holdings.holding_model import Holding
from tenure.kernel.plan.document import network_document
from tenure.kernel.plan.edits import (
    AddNetwork,
    AddPool,
    AddSubnet,
    Connect,
    Edit,
    ModifyNetwork,
    ModifyPool,
    ModifySubnet,
    Preallocate,
    Reserve,
)
from tenure.kernel.plan.plan_model import Network

FORMAT = "tenure"
VERSION = 1

TOP = {"format", "version", "spaces", "holdings"}
SPACE = {"name", "networks"}
NETWORK = {"kind", "mac_prefix", "tags", "labels", "description", "uuid"}
SUBNET = {"cidr", "gateway", "name", "dns", "dhcp", "zones", "unit", "keep_back", "labels", "description", "uuid"}
POOL = {"range", "name", "policy", "cooling_s", "rank", "labels", "description"}
RESERVED = {"range", "reason", "labels", "description", "request"}
WAITING = {"owner", "address", "slot", "labels", "description", "request"}
CONNECTION = {"group", "mode", "link", "vlan"}
HOLDING = {"network", "address", "owner", "slot", "state", "until", "labels", "description", "carrier", "plan"}
TOLD = {"since", "generation", "request"}
COUNTED = {"serial", "created_us", "modified_us"}
"""What is told of a network and counted anew where it is read."""

Document = dict[str, Any]


class NotListed(NamedTuple):
    """What stands where a list should."""

    kind: str


class _Reader:
    """Walks a document; what is not as it should be becomes a fault with its path."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _fault(self, path: str, field: str, reason: str) -> Item:
        place = SourcePlace(self._name, path=path)
        return Item(place, Fault(place, field, "invalid", reason))

    def _edit(self, path: str, edit: Edit) -> Item:
        return Item(SourcePlace(self._name, path=path), edit)

    def _each(self, parent: Document, key: str, path: str) -> Iterator[tuple[str, Any]]:
        listed = parent.get(key, [])
        if not isinstance(listed, list):
            yield f"{path}.{key}".lstrip("."), NotListed(type(listed).__name__)
            return
        for index, document in enumerate(listed):
            yield f"{path}.{key}[{index}]".lstrip("."), document

    def _problem(self, document: Any, path: str, known: set[str], needed: set[str]) -> Item | None:
        if isinstance(document, NotListed):
            return self._fault(path, "", f"a list is needed, not {document.kind}")
        if not isinstance(document, dict):
            return self._fault(path, "", f"an object is needed, not {type(document).__name__}")
        if unknown := sorted(set(document) - known):
            return self._fault(path, unknown[0], f"{unknown[0]!r} is no field of this object")
        if missing := sorted(needed - set(document)):
            return self._fault(path, missing[0], f"the field {missing[0]!r} is missing")
        return None

    def read(self, document: Document) -> Iterator[Item]:
        if problem := self._problem(document, "", TOP, {"format", "version"}):
            yield problem
            return
        if document["version"] != VERSION:
            reason = f"version {document['version']!r} is not known here; this Tenure reads version {VERSION}"
            yield self._fault("", "version", reason)
            return
        for path, space in self._each(document, "spaces", ""):
            if problem := self._problem(space, path, SPACE, {"name"}):
                yield problem
                continue
            for inner, network in self._each(space, "networks", path):
                yield from self._network(network, space["name"], inner)
        for path, holding in self._each(document, "holdings", ""):
            yield self._holding(holding, path)

    def _network(self, document: Any, space: Any, path: str) -> Iterator[Item]:
        known = {*NETWORK, "name", "subnets", "preallocations", "connections", "retired", *COUNTED}
        if problem := self._problem(document, path, known, {"name"}):
            yield problem
            return
        name = document["name"]
        yield self._edit(path, AddNetwork(network=name, space=space, **_only(document, NETWORK)))
        for inner, subnet in self._each(document, "subnets", path):
            yield from self._subnet(subnet, name, inner)
        for inner, waiting in self._each(document, "preallocations", path):
            problem = self._problem(waiting, inner, WAITING, {"owner", "address"})
            yield problem or self._edit(inner, Preallocate(network=name, **waiting))
        for inner, connection in self._each(document, "connections", path):
            problem = self._problem(connection, inner, CONNECTION, {"group"})
            yield problem or self._edit(inner, Connect(network=name, **connection))
        if document.get("retired"):
            yield self._edit(path, ModifyNetwork(network=name, retired=document["retired"]))

    def _subnet(self, document: Any, network: str, path: str) -> Iterator[Item]:
        if problem := self._problem(document, path, {*SUBNET, "pools", "reserved", "retired"}, {"cidr"}):
            yield problem
            return
        yield self._edit(path, AddSubnet(network=network, **_only(document, SUBNET)))
        for inner, pool in self._each(document, "pools", path):
            yield from self._pool(pool, network, inner)
        for inner, kept in self._each(document, "reserved", path):
            problem = self._problem(kept, inner, RESERVED, {"range"})
            yield problem or self._edit(inner, Reserve(network=network, **kept))
        if document.get("retired"):
            yield self._edit(path, ModifySubnet(network=network, subnet=document["cidr"], retired=document["retired"]))

    def _pool(self, document: Any, network: str, path: str) -> Iterator[Item]:
        if problem := self._problem(document, path, {*POOL, "retired"}, {"range"}):
            yield problem
            return
        yield self._edit(path, AddPool(network=network, **_only(document, POOL)))
        if document.get("retired"):
            yield self._edit(path, ModifyPool(network=network, pool=document["range"], retired=document["retired"]))

    def _holding(self, document: Any, path: str) -> Item:
        problem = self._problem(document, path, HOLDING | TOLD, {"network", "address", "owner"})
        # It was held where it was: a ledger that let it be held there may have it back.
        return problem or Item(
            SourcePlace(self._name, path=path), SourceHolding(**_only(document, HOLDING), reserved="force")
        )


def _only(document: Document, names: set[str]) -> Document:
    return {name: value for name, value in document.items() if name in names}


def is_own_json(document: object) -> bool:
    """Tell whether a document says that it is ours."""
    return isinstance(document, dict) and document.get("format") == FORMAT


def read_own_json(document: Document, name: str) -> Iterator[Item]:
    """Read a whole export."""
    return _Reader(name).read(document)


def network_text(network: Network) -> str:
    """Write a network with its plan, on one line."""
    return _line({"name": network.name, **network_document(network)})


def holding_text(holding: Holding) -> str:
    """Write a holding, on one line; what says nothing is left out."""
    document = {
        "network": holding.network,
        "address": address_text(holding),
        "owner": holding.owner,
        "slot": holding.slot,
        "state": holding.state,
        "labels": holding.labels,
        "description": holding.description,
        "carrier": holding.carrier,
        "plan": holding.plan,
        "since": holding.since.isoformat(),
        "until": None if holding.until is None else holding.until.isoformat(),
        "generation": holding.generation,
        "request": holding.request,
    }
    return _line({name: value for name, value in document.items() if value not in (None, "", {})})


def _line(document: Document) -> str:
    return json.dumps(document, ensure_ascii=False)
