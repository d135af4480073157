"""Shapes that travelled, as values of the ledger again: exactly what ``encode`` was given."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import UNSET

from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.holdings import holding_model, tenures
from tenure.kernel.holdings.actor import BY
from tenure.kernel.names import Owner
from tenure.kernel.plan import plan_model as plan
from tenure.kernel.plan.document import read_network
from tenure.service.apply.operations import Shown
from tenure.service.read import explain, presenter, search, verify
from tenure.wire import responses

EPOCH = datetime.fromtimestamp(0, UTC)
MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Turn a time into the store's microseconds."""
    # In whole numbers: a float of seconds would have to be rounded back to microseconds.
    return (time - EPOCH) // MICROSECOND


def holding(shape: responses.Holding) -> holding_model.Holding:
    """Read a holding."""
    first = parse_address(shape.address)
    row = holding_model.Row(
        space=shape.space,
        network=shape.network_number,
        first=first,
        # Nearly every holding is one address, whose text need not be read twice.
        last=first if shape.last_address == shape.address else parse_address(shape.last_address),
        owner=Owner.trusted(shape.owner),
        slot=shape.slot,
        state=holding_model.State(shape.state),
        generation=shape.generation,
        since_us=microseconds(shape.since),
        until_us=None if shape.until is None else microseconds(shape.until),
        request=shape.request,
        details=_details(shape),
    )
    warnings = () if shape.warnings is UNSET else tuple(shape.warnings)
    return holding_model.Holding(shape.network, row, shape.prefix, shape.gateway, warnings)


def _details(shape: responses.Holding) -> dict[str, Any]:
    said = {
        "labels": shape.labels,
        "description": shape.description,
        "carrier": shape.carrier,
        "plan": shape.plan,
        BY: None if shape.actor is None else [shape.actor, shape.request_id],
    }
    # The encoder writes an empty value for a detail that is absent, so an empty value is none.
    return {name: value for name, value in said.items() if value}


def optional_holding(shape: responses.Holding | None) -> holding_model.Holding | None:
    """Read a holding, if there is one."""
    return None if shape is None else holding(shape)


def network(shape: responses.Network) -> plan.Network:
    """Read a network whole."""
    # The shape has the keys of the stored document, so one reader serves both.
    document = msgspec.to_builtins(shape)
    document["created_us"] = microseconds(shape.created)
    document["modified_us"] = microseconds(shape.modified)
    return replace(read_network(shape.number, shape.name, document), warnings=tuple(shape.warnings))


def space(shape: responses.Space) -> plan.Configuration:
    """Read a space with its networks."""
    networks = {each.name: network(each) for each in shape.networks}
    return plan.Configuration(shape.number, shape.name, shape.version, networks, shape.queued)


def change(shape: responses.Change) -> holding_model.Change:
    """Read an entry of the log."""
    return holding_model.Change(
        seq=shape.seq,
        at_us=microseconds(shape.at),
        verb=shape.verb,
        space=shape.space,
        network=shape.network_number,
        first=None if shape.address is None else parse_address(shape.address),
        last=None if shape.last_address is None else parse_address(shape.last_address),
        owner=shape.owner,
        slot=shape.slot,
        generation=shape.generation,
        request=shape.request,
        details=shape.details,
        network_name=shape.network,
        actor=shape.actor,
        request_id=shape.request_id,
    )


def explanation(shape: responses.Explanation) -> explain.Explanation:
    """Read why an address is what it is."""
    return explain.Explanation(shape.address, tuple(_finding(each) for each in shape.findings))


def _finding(shape: responses.Finding) -> explain.Finding:
    return explain.Finding(
        network=shape.network,
        status=shape.status,
        text=shape.text,
        holding=optional_holding(shape.holding),
        owner=_owner(shape.owner),
        since=shape.since,
        until=shape.until,
        request=shape.request,
        reason=shape.reason,
        labels=shape.labels,
        description=shape.description,
    )


def _owner(text: str | None) -> Owner | None:
    return None if text is None else Owner.trusted(text)


def history(shape: responses.History) -> tenures.History:
    """Read who held an address."""
    told = tuple(_tenure(each) for each in shape.tenures)
    return tenures.History(shape.address, told, shape.trimmed, shape.complete_since)


def _tenure(shape: responses.Tenure) -> tenures.Tenure:
    return tenures.Tenure(
        space=shape.space,
        network_id=shape.network_number,
        network=shape.network,
        first=parse_address(shape.address),
        last=parse_address(shape.last_address),
        owner=Owner.trusted(shape.owner),
        slot=shape.slot,
        generation=shape.generation,
        since=shape.since,
        until=shape.until,
        ending=tenures.Ending(shape.ending),
        state=None if shape.state is None else holding_model.State(shape.state),
        request=shape.request,
        actor=shape.actor,
        request_id=shape.request_id,
        ended_by=shape.ended_by,
        ended_actor=shape.ended_actor,
        ended_request_id=shape.ended_request_id,
        to=_owner(shape.to),
        to_slot=shape.to_slot,
        confirmed=shape.confirmed,
        deadline=shape.deadline,
    )


def found(shape: responses.Found) -> search.Found:
    """Read an object that a search found."""
    return search.Found(
        kind=search.ObjectKind(shape.kind),
        network=shape.network,
        name=shape.name,
        address=shape.address,
        labels=shape.labels,
        description=shape.description,
        holding=optional_holding(shape.holding),
    )


def breach(shape: responses.Breach) -> verify.Breach:
    """Read a breach of an invariant."""
    return verify.Breach(shape.invariant, shape.text)


def waiting_claim(shape: responses.WaitingClaim) -> presenter.WaitingClaim:
    """Read a claim that waits."""
    return presenter.WaitingClaim(
        network=shape.network,
        owner=Owner.trusted(shape.owner),
        slot=shape.slot,
        place=shape.place,
        since=shape.since,
        until=shape.until,
        pool=shape.pool,
        subnet=shape.subnet,
        zone=shape.zone,
        family=shape.family,
    )


def claim_status(shape: responses.ClaimStatus) -> presenter.ClaimStatus:
    """Read what became of a claim."""
    return presenter.ClaimStatus(shape.state, optional_holding(shape.holding), shape.place)


def paper(shape: responses.Paper) -> holding_model.Paper:
    """Read a paper."""
    return holding_model.Paper(shape.kind, shape.name, shape.revision, shape.document)


def answer(shape: responses.Answer) -> Shown:
    """Read the answer to one operation."""
    if shape.holding is not None:
        return holding(shape.holding)
    if shape.holdings is not None:
        return [holding(each) for each in shape.holdings]
    if shape.network is not None:
        return network(shape.network)
    return None if shape.paper is None else paper(shape.paper)


def answers(items: Sequence[responses.Answer]) -> list[Shown]:
    """Read the answers to operations: edits of one network have one answer, wherever it stands."""
    # Read once: edits of one network are answered with one and the same value, as the ledger answers them.
    networks = {place: network(shape.network) for place, shape in enumerate(items) if shape.network is not None}
    found: list[Shown] = []
    for place, shape in enumerate(items):
        at = place if shape.network_at is None else shape.network_at
        found.append(networks[at] if at in networks else answer(shape))
    return found
