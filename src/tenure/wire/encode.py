"""Values of the ledger as the shapes that travel."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any

import msgspec
from msgspec import UNSET

from tenure.kernel.addressing.addresses import family_of, format_address, width
from tenure.kernel.holdings import holding_model, tenures
from tenure.kernel.holdings.actor import BY
from tenure.kernel.holdings.holding_model import State, moment
from tenure.kernel.plan import plan_model as plan
from tenure.kernel.plan.plan_model import address_text
from tenure.service.allocator.claim import Granted
from tenure.service.apply.operations import Shown
from tenure.service.read import explain, presenter, search, verify
from tenure.wire import responses

_encode = msgspec.json.Encoder().encode

_moment = lru_cache(64)(moment)
"""Those who were granted something in one transaction hold it since one moment."""


def holding(held: holding_model.Holding) -> responses.Holding:
    """Write a holding. Cost: a few µs; every allocation does it."""
    row, address = held.row, held.address
    details = row.details
    by = details.get(BY)
    return responses.Holding(
        address=address,
        last_address=address if row.first == row.last else held.last_address,
        unit=held.unit,
        family=held.family.value,
        network=held.network,
        prefix=held.prefix,
        gateway=held.gateway,
        owner=str(row.owner),  # the encoder knows no subclasses of str
        slot=row.slot,
        state=row.state.value,
        generation=row.generation,
        since=_moment(row.since_us),
        until=None if row.until_us is None else moment(row.until_us),
        request=row.request,
        labels=details.get("labels", {}),
        description=details.get("description", ""),
        carrier=details.get("carrier"),
        plan=details.get("plan"),
        actor=None if by is None else by[0],
        request_id=None if by is None else by[1],
        space=row.space,
        network_number=row.network,
        warnings=[*held.warnings] if held.warnings else UNSET,
    )


def granted_json(granted: Granted) -> bytes:
    """Write what was granted as JSON: the same bytes as ``holding`` encoded, which a test of generated holdings holds.

    Plain holdings, which nearly every allocation is answered with, are written by hand in some 2 µs: on the usual way
    two objects are made of a row before it is encoded, which takes twice as long.
    """
    row, layout, warnings = granted
    by = row.details.get(BY)
    # With `by` alone the details have one entry; a holding with more on it is written on the usual way.
    if warnings or row.state is not State.HELD or row.until_us is not None or by is None or len(row.details) > 1:
        return _encode(holding(presenter.holding_of(row, layout, warnings)))
    network = layout.name_of(row.network)
    prefix, gateway = layout.shown(network, row.first)
    first = format_address(row.first)
    last = first if row.first == row.last else format_address(row.last)
    unit = width(row.first) - (row.last - row.first).bit_length()
    # encode_basestring leaves letters beyond ASCII as they are, as the encoder does.
    return (
        f'{{"address":"{first}","last_address":"{last}","unit":{unit},"family":"{family_of(row.first)}",'
        f'"network":{quoted(network)},"prefix":{prefix},"gateway":{_optional(gateway)},'
        f'"owner":{quoted(row.owner)},"slot":{quoted(row.slot)},"state":"held",'
        f'"generation":{row.generation},"since":{_moment_json(row.since_us)},"until":null,'
        f'"request":{_optional(row.request)},"labels":{{}},"description":"","carrier":null,"plan":null,'
        f'"actor":{quoted(by[0])},"request_id":{_optional(by[1])},"space":{row.space},'
        f'"network_number":{row.network}}}'
    ).encode()


@lru_cache(64)
def _moment_json(at_us: int) -> str:
    """Write a moment as JSON; those who were granted something in one transaction hold it since the same."""
    return _encode(moment(at_us)).decode()


def _optional(text: str | None) -> str:
    return "null" if text is None else quoted(text)


def optional_holding(held: holding_model.Holding | None) -> responses.Holding | None:
    """Write a holding, if there is one."""
    return None if held is None else holding(held)


def pool(written: plan.Pool) -> responses.Pool:
    """Write a range of a pool."""
    return responses.Pool(
        range=str(written.range),
        name=written.name,
        policy=str(written.policy),
        cooling_s=written.cooling_s,
        retired=written.retired,
        rank=written.rank,
        labels=dict(written.notes.labels),
        description=written.notes.description,
    )


def reserved(kept: plan.Reserved) -> responses.Reserved:
    """Write a reserved range."""
    return responses.Reserved(
        range=str(kept.range),
        reason=kept.reason,
        request=kept.request,
        labels=dict(kept.notes.labels),
        description=kept.notes.description,
    )


def preallocation(wish: plan.PreAllocation) -> responses.Preallocation:
    """Write a pre-allocation."""
    return responses.Preallocation(
        owner=str(wish.owner),
        slot=wish.slot,
        address=format_address(wish.position),
        request=wish.request,
        labels=dict(wish.notes.labels),
        description=wish.notes.description,
    )


def subnet(block: plan.Subnet) -> responses.Subnet:
    """Write a subnet with its pools and reserved ranges."""
    return responses.Subnet(
        cidr=str(block.cidr),
        uuid=block.uuid,
        name=block.name,
        gateway=address_text(block.gateway),
        dns=list(block.dns),
        dhcp=block.dhcp,
        zones=list(block.zones),
        unit=block.unit,
        keep_back=sorted(block.keep_back),
        pools=[pool(each) for each in block.pools],
        reserved=[reserved(each) for each in block.reserved],
        retired=block.retired,
        labels=dict(block.notes.labels),
        description=block.notes.description,
    )


def network(whole: plan.Network) -> responses.Network:
    """Write a network whole."""
    return responses.Network(
        name=whole.name,
        number=whole.id,
        uuid=whole.uuid,
        kind=str(whole.kind),
        mac_prefix=whole.mac_prefix,
        tags=list(whole.tags),
        subnets=[subnet(each) for each in whole.subnets],
        preallocations=[preallocation(each) for each in whole.preallocations],
        connections=[
            responses.Connection(group=each.group, mode=each.mode, link=each.link, vlan=each.vlan)
            for each in whole.connections
        ],
        retired=whole.retired,
        labels=dict(whole.notes.labels),
        description=whole.notes.description,
        serial=whole.serial,
        created=moment(whole.created_us),
        modified=moment(whole.modified_us),
        warnings=list(whole.warnings),
    )


def space(configuration: plan.Configuration) -> responses.Space:
    """Write a space with its networks."""
    return responses.Space(
        name=configuration.name,
        number=configuration.space,
        version=configuration.version,
        queued=configuration.queued,
        networks=[network(each) for each in configuration.networks.values()],
    )


def change(entry: holding_model.Change) -> responses.Change:
    """Write an entry of the log."""
    return responses.Change(
        seq=entry.seq,
        at=entry.at,
        verb=entry.verb,
        space=entry.space,
        network=entry.network_name,
        network_number=entry.network,
        address=entry.address,
        last_address=None if entry.last is None else format_address(entry.last),
        owner=None if entry.owner is None else str(entry.owner),
        slot=entry.slot,
        generation=entry.generation,
        request=entry.request,
        actor=entry.actor,
        request_id=entry.request_id,
        details={name: _plain(value) for name, value in entry.details.items()},
    )


def _plain(value: Any) -> Any:
    """Write what a log tells; one in memory has owners in it, which the encoder does not know."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def explanation(found: explain.Explanation) -> responses.Explanation:
    """Write why an address is what it is."""
    return responses.Explanation(address=found.address, findings=[_finding(each) for each in found.findings])


def _finding(finding: explain.Finding) -> responses.Finding:
    return responses.Finding(
        network=finding.network,
        status=finding.status,
        text=finding.text,
        owner=None if finding.owner is None else str(finding.owner),
        since=finding.since,
        until=finding.until,
        request=finding.request,
        reason=finding.reason,
        labels=dict(finding.labels),
        description=finding.description,
        holding=optional_holding(finding.holding),
    )


def history(told: tenures.History) -> responses.History:
    """Write who held an address."""
    return responses.History(
        address=told.address,
        tenures=[_tenure(each) for each in told],
        trimmed=told.trimmed,
        complete_since=told.complete_since,
    )


def _tenure(each: tenures.Tenure) -> responses.Tenure:
    return responses.Tenure(
        address=each.address,
        last_address=each.last_address,
        space=each.space,
        network=each.network,
        network_number=each.network_id,
        owner=str(each.owner),
        slot=each.slot,
        generation=each.generation,
        since=each.since,
        until=each.until,
        ending=str(each.ending),
        state=None if each.state is None else str(each.state),
        request=each.request,
        actor=each.actor,
        request_id=each.request_id,
        ended_by=each.ended_by,
        ended_actor=each.ended_actor,
        ended_request_id=each.ended_request_id,
        to=None if each.to is None else str(each.to),
        to_slot=each.to_slot,
        confirmed=each.confirmed,
        deadline=each.deadline,
    )


def found(each: search.Found) -> responses.Found:
    """Write an object that a search found."""
    return responses.Found(
        kind=str(each.kind),
        network=each.network,
        name=str(each.name),
        address=each.address,
        labels=dict(each.labels),
        description=each.description,
        holding=optional_holding(each.holding),
    )


def breach(each: verify.Breach) -> responses.Breach:
    """Write a breach of an invariant."""
    return responses.Breach(invariant=each.invariant, text=each.text)


def waiting_claim(claim: presenter.WaitingClaim) -> responses.WaitingClaim:
    """Write a claim that waits."""
    return responses.WaitingClaim(
        network=claim.network,
        owner=str(claim.owner),
        slot=claim.slot,
        place=claim.place,
        since=claim.since,
        until=claim.until,
        pool=claim.pool,
        subnet=claim.subnet,
        zone=claim.zone,
        family=claim.family,
    )


def claim_status(status: presenter.ClaimStatus) -> responses.ClaimStatus:
    """Write what became of a claim."""
    return responses.ClaimStatus(state=status.state, holding=optional_holding(status.holding), place=status.place)


def paper(written: holding_model.Paper) -> responses.Paper:
    """Write a paper."""
    return responses.Paper(
        kind=written.kind, name=written.name, revision=written.revision, document=dict(written.document)
    )


def answer(shown: Shown) -> responses.Answer:
    """Write the answer to one operation."""
    if shown is None:
        return responses.Answer()
    if isinstance(shown, list):
        return responses.Answer(holdings=[holding(each) for each in shown])
    if isinstance(shown, holding_model.Holding):
        return responses.Answer(holding=holding(shown))
    if isinstance(shown, holding_model.Paper):
        return responses.Answer(paper=paper(shown))
    return responses.Answer(network=network(shown))


def answers(every: Sequence[Shown]) -> Iterator[responses.Answer]:
    """Yield the answers to operations, in their order; a network that several have stands in the last of them alone."""
    # By identity: all edits of a network in one apply are answered with one and the same value.
    last = {id(shown): place for place, shown in enumerate(every) if isinstance(shown, plan.Network)}
    for place, shown in enumerate(every):
        whole = last.get(id(shown), place)
        yield answer(shown) if whole == place else responses.Answer(network_at=whole)


def time_text(time: datetime) -> str:
    """Write a time as RFC 3339."""
    return time.isoformat().replace("+00:00", "Z")
