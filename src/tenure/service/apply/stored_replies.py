"""Answers of whole requests, written out under an idempotency key and read back as they were."""

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from tenure.kernel.errors import KeyReused
from tenure.kernel.holdings.holding_model import Holding, Paper, Reply
from tenure.kernel.holdings.idempotency import body_of, read_row_document, row_document
from tenure.kernel.plan.document import network_document, read_network
from tenure.kernel.plan.edits import KEEP, AddPool
from tenure.kernel.plan.plan_model import Network
from tenure.ports import Transaction
from tenure.service.apply.operations import Allocate, Operation, Shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

AT = "network_at"
"""Where the place of an answer stands that has the network whole: the last one about it."""

LATER = frozenset({"add_labels", "remove_labels", "rank", "zone", "family"})
"""Fields that operations have since version 0.1.0. Stores keep marks of requests, so a field that came later is part
of a mark only where it is used: requests that do not use it keep their marks."""

FORMER_DEFAULTS: Mapping[tuple[type, str], object] = {(AddPool, "cooling_s"): 0}
"""What a field said in version 0.1.0 where nothing was said of it, if that was not None."""


def body_of_operations(operations: Sequence[Operation], key: str) -> bytes:
    """Return a short mark of what a list of operations says; none of them may have the key of the whole."""
    if any(isinstance(operation, Allocate) and operation.key == key for operation in operations):
        raise KeyReused(key)
    return body_of("apply", *(_said(operation) for operation in operations))


def _said(value: object) -> object:
    """Write what a value says, the same in every process and whatever the order of what has none."""
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *_fields_said(value))
    if isinstance(value, Mapping):
        return sorted((repr(name), repr(_said(text))) for name, text in value.items())
    if isinstance(value, Set):
        return sorted(repr(_said(each)) for each in value)
    if isinstance(value, list | tuple):
        return [_said(each) for each in value]
    # A member of an enumeration equals its text, but ``repr`` writes it otherwise.
    return str(value) if isinstance(value, str | IPv4Address | IPv6Address) else value


def _fields_said(value: "DataclassInstance") -> Iterator[tuple[str, object]]:
    """Yield what each field of an operation says, as version 0.1.0 did where it had the field."""
    for each in fields(value):
        said = getattr(value, each.name)
        if each.name in LATER and said in (None, KEEP):
            continue
        yield each.name, _said(FORMER_DEFAULTS.get((type(value), each.name)) if said is None else said)


async def known_answer(tx: Transaction, key: str, body: bytes) -> list[Shown] | None:
    """Return what a request was answered before under its key, if it was; KeyReused if another was."""
    [reply] = await tx.replies([key])
    if reply is None:
        return None
    # Without an answer in words, the key stands for a plain grant, which was another request.
    if reply.body != body or reply.answer is None:
        raise KeyReused(key)
    return _read_all(json.loads(reply.answer))


def reply_of(key: str, body: bytes, answers: Sequence[Shown]) -> Reply:
    """Return what is to be kept of a request's answers."""
    # By identity: all edits of one network have one and the same answer.
    last = {id(answer): place for place, answer in enumerate(answers) if isinstance(answer, Network)}
    written = (
        _written(answer) if last.get(id(answer), place) == place else {AT: last[id(answer)]}
        for place, answer in enumerate(answers)
    )
    return Reply(key, body, answer=json.dumps(list(written)))


def _written(answer: Shown) -> Any:
    if isinstance(answer, list):
        return [_written(each) for each in answer]
    if isinstance(answer, Holding):
        written = {"holding": [answer.network, row_document(answer.row), answer.prefix, answer.gateway]}
        return written | ({"warnings": answer.warnings} if answer.warnings else {})
    if isinstance(answer, Paper):
        return {"paper": list(answer)}
    if isinstance(answer, Network):
        return {"network": [answer.id, answer.name, network_document(answer)], "warnings": answer.warnings}
    return None


def _read_all(written: Sequence[Any]) -> list[Shown]:
    """Read answers back; edits of one network have one answer, which is written once."""
    found = [None if _is_elsewhere(each) else _read(each) for each in written]
    return [found[each[AT]] if _is_elsewhere(each) else answer for each, answer in zip(written, found, strict=True)]


def _is_elsewhere(written: Any) -> bool:
    return isinstance(written, dict) and AT in written


def _read(written: Any) -> Shown:
    if written is None:
        return None
    if isinstance(written, list):
        return [_holding(each) for each in written]
    if "paper" in written:
        return Paper(*written["paper"])
    if "holding" in written:
        return _holding(written)
    # Replies of older ledgers have no warnings.
    return replace(read_network(*written["network"]), warnings=tuple(written.get("warnings", ())))


def _holding(written: Any) -> Holding:
    network, row, prefix, gateway = written["holding"]
    return Holding(network, read_row_document(row), prefix, gateway, tuple(written.get("warnings", ())))
