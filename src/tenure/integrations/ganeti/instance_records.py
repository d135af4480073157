"""Instances as the ledger keeps them: papers read and put together with holdings, and the marks that find them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tenure.integrations.ganeti.machine_model import (
    IDENTITY,
    INSTANCE,
    MAC,
    NIC,
    PLACEMENT,
    Document,
    Instance,
    Nic,
    check_word,
    owner_of,
    read_instance,
)
from tenure.integrations.ganeti.network_lookup import NetworkLookup
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import Conflict, NotFound
from tenure.kernel.holdings.holding_model import Holding, Paper, State
from tenure.kernel.names import Owner
from tenure.kernel.plan.edits import Edit, Preallocate, RemovePreallocation
from tenure.kernel.plan.plan_model import Network, PreAllocation
from tenure.service.apply.cluster_rules import NO_NETWORK
from tenure.service.apply.operations import Operation, RemovePaper, Transfer, WritePaper
from tenure.service.ledger.async_ledger import AsyncLedger

Marks = Mapping[tuple[str, str], Document]
"""Index papers by kind and name."""

READINGS = 8
"""How often an instance that changes while it is read is read again."""


async def load_instance(ledger: AsyncLedger, name: str, atlas: NetworkLookup) -> Instance:
    """Read one instance. Costs its paper, its holdings and the networks it is on; more if it changes meanwhile."""
    paper = await ledger.paper(INSTANCE, check_word(name, field=INSTANCE))
    for _ in range(READINGS):
        holdings = await ledger.holdings(owner=owner_of(name))
        try:
            uuids = {holding.network: (await atlas.find(holding.network)).uuid for holding in holdings}
        except NotFound:  # it got another name meanwhile
            continue
        instance = read_instance(paper, _by_slot(holdings, uuids))
        if _is_whole(instance, paper):
            return instance
        again = await ledger.paper(INSTANCE, name)
        # The paper is unchanged, so the address is really gone: it was released behind the door's back.
        if again == paper:
            return instance
        paper = again
    # The instance changes faster than it can be read: the last reading is better than none.
    return read_instance(paper, _by_slot(holdings, {each.name: each.uuid for each in await ledger.networks()}))


async def load_instances(ledger: AsyncLedger, atlas: NetworkLookup) -> list[Instance]:
    """Read all instances, in order of name. Costs all holdings of the networks that instances are on."""
    papers = await ledger.papers(INSTANCE)
    wanted = {nic["network"] for paper in papers for nic in paper.document["nics"]}
    # By network, not by instance: a list of many instances costs one reading of each network.
    owners: dict[str, dict[tuple[str, str], str]] = {}
    for network in await atlas.every():
        if network.uuid in wanted:
            for holding in await _held_in(ledger, network.name):
                own = owners.setdefault(holding.owner, {})
                own.update(_by_slot([holding], {network.name: network.uuid}))
    found = [(paper, read_instance(paper, owners.get(owner_of(paper.name), {}))) for paper in papers]
    return [each if _is_whole(each, paper) else await _reread(ledger, each) for paper, each in found]


async def _held_in(ledger: AsyncLedger, network: str) -> list[Holding]:
    """Read what is held in a network; nothing if its name changed meanwhile: its instances are then read singly."""
    try:
        return await ledger.holdings(network)
    except NotFound:
        return []


async def _reread(ledger: AsyncLedger, instance: Instance) -> Instance:
    """Read an instance by itself of which an address was not found: it may have changed while others were read."""
    try:
        return await load_instance(ledger, instance.name, NetworkLookup(ledger))
    except NotFound:
        return instance


def _is_whole(instance: Instance, paper: Paper) -> bool:
    """Return whether every address was found that the paper speaks of."""
    return all(
        len(nic.ips) == len(told["ips"]) for nic, told in zip(instance.nics, paper.document["nics"], strict=True)
    )


def _by_slot(holdings: Sequence[Holding], uuids: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Find the addresses that an instance has by network and slot: pending ones show no holder yet."""
    unsettled = (State.PENDING, State.COOLING)
    settled = [each for each in holdings if each.network in uuids and each.state not in unsettled]
    return {(uuids[each.network], each.slot): each.address for each in settled}


def marks_of(instance: Instance | None) -> dict[tuple[str, str], Document]:
    """List the papers by which an instance is found: its node, itself, its MACs, and the networks of its NICs."""
    if instance is None:
        return {}
    marks: dict[tuple[str, str], Document] = {
        (PLACEMENT, f"{instance.node}/{instance.name}"): {},
        (IDENTITY, instance.uuid): {},
    }
    for nic in instance.nics:
        network = NO_NETWORK if nic.network is None else nic.network
        # In this order: commands look for the NICs of a network in a group by how the name begins. Eight characters
        # tell the NICs of an instance apart; with a whole uuid the name could become too long.
        marks[NIC, f"{network}/{instance.group}/{instance.name}/{nic.uuid[:8]}"] = {}
        marks[MAC, nic.mac] = {"instance": instance.name}
    return marks


def mark_changes(before: Instance | None, after: Instance | None) -> list[Operation]:
    """Return the operations that bring the marks up to date; no mark is ever written over."""
    old, new = marks_of(before), marks_of(after)
    # A mark whose document changes (a MAC's, when its instance gets another name) is removed and made again, so the
    # revision of every mark is always 1.
    gone = [RemovePaper(kind=kind, name=name, revision=1) for (kind, name), said in _missing(old, new)]
    made = [WritePaper(kind=kind, name=name, document=said) for (kind, name), said in _missing(new, old)]
    return [*gone, *made]


def _missing(marks: Marks, others: Marks) -> list[tuple[tuple[str, str], Document]]:
    """List the marks that others do not have, or have with another document."""
    return [(place, document) for place, document in marks.items() if others.get(place) != document]


def instance_papers(instance: Instance) -> list[Operation]:
    """Return the operations that write a new instance: its paper and its marks."""
    paper = Paper(INSTANCE, instance.name, 0, instance.document())
    return [WritePaper(kind=paper.kind, name=paper.name, document=paper.document), *mark_changes(None, instance)]


def transfers(holdings: Iterable[Holding], owners: Mapping[str, str]) -> list[Transfer]:
    """Return what hands holdings over to the new names of their owners, in the same slots."""
    return [
        Transfer(
            network=each.network, address=each.address, owner=each.owner, generation=each.generation,
            to=owners[each.owner], to_slot=each.slot,
        )
        for each in holdings
        if each.owner in owners and each.state in FOLLOWING
    ]  # fmt: skip


FOLLOWING = (State.HELD, State.DRAINING)
"""What belongs to a name: a pending holding is of a command that a new name makes void, a cooling one of nobody."""


def held_already(holdings: Iterable[Holding], owners: Mapping[str, str]) -> list[str]:
    """Say what the new names of owners hold already: handing over to them would mix two owners' addresses.

    A new name that is itself given up for another is free: what it holds leaves with its owner.
    """
    new = set(owners.values()) - set(owners)
    return [
        f"{each.owner} holds {each.address} in network {each.network!r} already; `tenure release {each.network} "
        f"{each.address} {each.owner}` lets it go"
        for each in holdings
        if each.owner in new and each.state in FOLLOWING
    ]


def waiting_for(network: Network, owners: Mapping[str, str]) -> list[Edit]:
    """Return what lets the pre-allocated addresses of a network wait for the new names of their owners.

    Conflict where an address waits for the new name already: an owner's slot has one, so the other would be lost.
    """
    moved = [each for each in network.preallocations if each.owner in owners]
    _refuse_two_for_one(network, moved, owners)
    # All go before any comes: two owners may have changed names.
    gone = [RemovePreallocation(network=network.name, owner=each.owner, slot=each.slot) for each in moved]
    return [*gone, *(_preallocated(network, each, owners[each.owner]) for each in moved)]


def _refuse_two_for_one(network: Network, moved: Iterable[PreAllocation], owners: Mapping[str, str]) -> None:
    staying = {(each.owner, each.slot): each for each in network.preallocations if each.owner not in owners}
    for wish in moved:
        other = staying.get((Owner(owners[wish.owner]), wish.slot))
        if other is not None:
            slot = f" --slot {other.slot}" if other.slot else ""
            raise Conflict(
                f"{format_address(wish.position)} waits for {wish.owner} in network {network.name!r}, and "
                f"{format_address(other.position)} for {other.owner}, its new name; "
                f"`tenure preallocation remove {network.name} {other.owner}{slot}` gives up the latter",
                field="name",
            )


def _preallocated(network: Network, wish: PreAllocation, owner: str) -> Preallocate:
    return Preallocate(
        network=network.name, owner=owner, address=format_address(wish.position), slot=wish.slot,
        labels=wish.notes.labels, description=wish.notes.description, request=wish.request,
    )  # fmt: skip


def rewired(nic: Nic, network: Network, group: str) -> Nic:
    """Return a NIC on a network, with the mode, link and VLAN by which the network reaches the group."""
    wires = network.connection(group)
    if wires is None:
        hint = f"`tenure network connect {network.name} {group}` connects it"
        raise Conflict(f"network {network.name!r} is not connected to group {group!r}; {hint}", field="network")
    return replace(nic, network=network.uuid, mode=wires.mode, link=wires.link, vlan=wires.vlan)
