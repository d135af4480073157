"""JSON documents of the command line: one a kind, with stable keys. Times are ISO 8601 in UTC."""

from datetime import UTC, datetime
from typing import Any

from tenure.kernel.holdings.holding_model import Change, Holding
from tenure.kernel.holdings.tenures import History, Tenure
from tenure.kernel.plan.document import network_document, pool_document, subnet_document
from tenure.kernel.plan.plan_model import Network, Pool, Subnet
from tenure.service.read.explain import Explanation, Finding
from tenure.service.read.presenter import WaitingClaim
from tenure.service.read.search import Found
from tenure.service.read.verify import Breach

Document = dict[str, Any]


def time_text(moment: datetime | None) -> str | None:
    """Write a time: ISO 8601, UTC, microseconds only where there are some."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def holding_document(holding: Holding) -> Document:
    """Write a holding."""
    return {
        "address": holding.address,
        "last_address": holding.last_address,
        "unit": holding.unit,
        "family": str(holding.family),
        "network": holding.network,
        "prefix": holding.prefix,
        "gateway": holding.gateway,
        "owner": str(holding.owner),
        "slot": holding.slot,
        "state": str(holding.state),
        "generation": holding.generation,
        "since": time_text(holding.since),
        "until": time_text(holding.until),
        "request": holding.request,
        "labels": holding.labels,
        "description": holding.description,
        "carrier": holding.carrier,
        "plan": holding.plan,
        "actor": holding.actor,
        "request_id": holding.request_id,
    }


def change_document(change: Change) -> Document:
    """Write an entry of the log."""
    return {
        "seq": change.seq,
        "at": time_text(change.at),
        "verb": change.verb,
        "network": change.network_name,
        "address": change.address,
        "owner": change.owner,
        "slot": change.slot,
        "generation": change.generation,
        "request": change.request,
        "actor": change.actor,
        "request_id": change.request_id,
        "details": dict(change.details),
    }


def network_entry(network: Network, space: str | None = None) -> Document:
    """Write a network whole, with the space it is in where that is known."""
    return {"name": network.name, "space": space, **network_document(network)}


def subnet_entry(network: str, subnet: Subnet) -> Document:
    """Write a subnet and the network it belongs to."""
    return {"network": network, **subnet_document(subnet)}


def pool_entry(network: str, subnet: Subnet, pool: Pool) -> Document:
    """Write a range of a pool, with the subnet it lies in."""
    return {"network": network, "subnet": str(subnet.cidr), **pool_document(pool)}


def explanation_document(explanation: Explanation) -> Document:
    """Write why an address is what it is."""
    return {"address": explanation.address, "findings": [_finding(finding) for finding in explanation.findings]}


def _finding(finding: Finding) -> Document:
    return {
        "network": finding.network,
        "status": finding.status,
        "text": finding.text,
        "owner": None if finding.owner is None else str(finding.owner),
        "since": time_text(finding.since),
        "until": time_text(finding.until),
        "request": finding.request,
        "reason": finding.reason,
        "labels": dict(finding.labels),
        "description": finding.description,
        "holding": None if finding.holding is None else holding_document(finding.holding),
    }


def found_document(found: Found) -> Document:
    """Write an object that a search found."""
    return {
        "kind": str(found.kind),
        "network": found.network,
        "name": str(found.name),
        "address": found.address,
        "labels": dict(found.labels),
        "description": found.description,
        "holding": None if found.holding is None else holding_document(found.holding),
    }


def breach_document(breach: Breach) -> Document:
    """Write a breach of an invariant."""
    return {"invariant": breach.invariant, "text": breach.text}


def waiting_document(claim: WaitingClaim) -> Document:
    """Write a claim that waits."""
    return {
        "network": claim.network,
        "owner": str(claim.owner),
        "slot": claim.slot,
        "place": claim.place,
        "since": time_text(claim.since),
        "until": time_text(claim.until),
        "pool": claim.pool,
        "subnet": claim.subnet,
        "zone": claim.zone,
        "family": claim.family,
    }


def tenure_document(tenure: Tenure) -> Document:
    """Write one owner's time with an address."""
    return {
        "address": tenure.address,
        "last_address": tenure.last_address,
        "network": tenure.network,
        "owner": str(tenure.owner),
        "slot": tenure.slot,
        "generation": tenure.generation,
        "since": time_text(tenure.since),
        "until": time_text(tenure.until),
        "ending": str(tenure.ending),
        "state": None if tenure.state is None else str(tenure.state),
        "request": tenure.request,
        "actor": tenure.actor,
        "request_id": tenure.request_id,
        "ended_by": tenure.ended_by,
        "ended_actor": tenure.ended_actor,
        "ended_request_id": tenure.ended_request_id,
        "to": None if tenure.to is None else str(tenure.to),
        "to_slot": tenure.to_slot,
        "confirmed": time_text(tenure.confirmed),
        "deadline": time_text(tenure.deadline),
    }


def history_document(history: History) -> Document:
    """Write who held an address."""
    return {
        "address": history.address,
        "tenures": [tenure_document(tenure) for tenure in history],
        "trimmed": history.trimmed,
        "complete_since": time_text(history.complete_since),
    }
