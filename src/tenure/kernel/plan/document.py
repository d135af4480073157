"""Networks as JSON documents: how stores keep them and how they travel."""

from typing import Any

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import parse_cidr, parse_range
from tenure.kernel.names import Owner
from tenure.kernel.plan.plan_model import (
    Connection,
    KeepBack,
    Network,
    NetworkKind,
    Notes,
    Policy,
    Pool,
    PreAllocation,
    Reserved,
    Subnet,
    address_text,
)

Document = dict[str, Any]


def network_document(network: Network) -> Document:
    """Write a network whole."""
    return {
        "uuid": network.uuid,
        "kind": str(network.kind),
        "mac_prefix": network.mac_prefix,
        "tags": list(network.tags),
        "subnets": [subnet_document(subnet) for subnet in network.subnets],
        "preallocations": [_preallocation_document(wish) for wish in network.preallocations],
        "retired": network.retired,
        **_notes_document(network.notes),
        "connections": [
            {"group": each.group, "mode": each.mode, "link": each.link, "vlan": each.vlan}
            for each in network.connections
        ],
        "serial": network.serial,
        "created_us": network.created_us,
        "modified_us": network.modified_us,
    }


def subnet_document(subnet: Subnet) -> Document:
    """Write a subnet with its pools and reserved ranges."""
    return {
        "cidr": str(subnet.cidr),
        "uuid": subnet.uuid,
        "name": subnet.name,
        "gateway": address_text(subnet.gateway),
        "dns": list(subnet.dns),
        "dhcp": subnet.dhcp,
        "zones": list(subnet.zones),
        "unit": subnet.unit,
        # Sorted, because ledgers are compared by the text of their documents, and a set has no order.
        "keep_back": sorted(subnet.keep_back),
        "pools": [pool_document(pool) for pool in subnet.pools],
        "reserved": [_reserved_document(kept) for kept in subnet.reserved],
        "retired": subnet.retired,
        **_notes_document(subnet.notes),
    }


def pool_document(pool: Pool) -> Document:
    """Write a pool."""
    return {
        "range": str(pool.range),
        "name": pool.name,
        "policy": str(pool.policy),
        "cooling_s": pool.cooling_s,
        "retired": pool.retired,
        "rank": pool.rank,
        **_notes_document(pool.notes),
    }


def _reserved_document(kept: Reserved) -> Document:
    return {
        "range": str(kept.range),
        "reason": kept.reason,
        "request": kept.request,
        **_notes_document(kept.notes),
    }


def _preallocation_document(wish: PreAllocation) -> Document:
    return {
        "owner": str(wish.owner),
        "slot": wish.slot,
        "address": format_address(wish.position),
        "request": wish.request,
        **_notes_document(wish.notes),
    }


def read_network(number: int, name: str, document: Document) -> Network:
    """Read back what ``network_document`` wrote."""
    return Network(
        id=number,
        name=name,
        uuid=document["uuid"],
        kind=NetworkKind(document["kind"]),
        mac_prefix=document["mac_prefix"],
        tags=tuple(document["tags"]),
        subnets=tuple(_read_subnet(piece) for piece in document["subnets"]),
        preallocations=tuple(_read_preallocation(wish) for wish in document["preallocations"]),
        retired=document["retired"],
        notes=_read_notes(document),
        # Documents of older ledgers lack these four.
        connections=tuple(Connection(**each) for each in document.get("connections", ())),
        serial=document.get("serial", 1),
        created_us=document.get("created_us", 0),
        modified_us=document.get("modified_us", 0),
    )


def _read_subnet(document: Document) -> Subnet:
    gateway = document["gateway"]
    return Subnet(
        cidr=parse_cidr(document["cidr"]),
        uuid=document["uuid"],
        name=document["name"],
        gateway=None if gateway is None else parse_address(gateway),
        dns=tuple(document["dns"]),
        dhcp=document["dhcp"],
        zones=tuple(document["zones"]),
        unit=document["unit"],
        keep_back=frozenset(KeepBack(word) for word in document["keep_back"]),
        pools=tuple(_read_pool(pool) for pool in document["pools"]),
        reserved=tuple(_read_reserved(kept) for kept in document["reserved"]),
        retired=document["retired"],
        notes=_read_notes(document),
    )


def _read_pool(document: Document) -> Pool:
    return Pool(
        range=parse_range(document["range"]),
        name=document["name"],
        policy=Policy(document["policy"]),
        cooling_s=document["cooling_s"],
        retired=document["retired"],
        rank=document.get("rank", 0),  # documents of before have none
        notes=_read_notes(document),
    )


def _read_reserved(document: Document) -> Reserved:
    return Reserved(parse_range(document["range"]), document["reason"], document.get("request"), _read_notes(document))


def _read_preallocation(document: Document) -> PreAllocation:
    position = parse_address(document["address"])
    return PreAllocation(
        Owner(document["owner"]), position, document["slot"], document.get("request"), _read_notes(document)
    )


def _notes_document(notes: Notes) -> Document:
    return {"labels": dict(notes.labels), "description": notes.description}


def _read_notes(document: Document) -> Notes:
    # Reserved ranges and pre-allocations of older documents had nothing written on them.
    return Notes(document.get("labels", {}), document.get("description", ""))
