"""The cloud config's networks as networks of the ledger, all in one space.

A manual network has its subnets there, with pools of what may be picked; a VIP network takes any address. What a subnet
reserves is in no pool, and binds nobody else: two networks may share a block, each with its own part. Only its gateway
is reserved in the ledger, for all networks over it.

What is still held where no subnet is any more lies in a *remnant* (``remnants``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tenure.integrations.bosh.model.document_model import DYNAMIC, VIP, CloudConfig, CloudNetwork, CloudSubnet
from tenure.integrations.bosh.model.pool_ranges import dynamic_ranges
from tenure.kernel.addressing.addresses import format_address, width
from tenure.kernel.addressing.ranges import AddressRange, Cidr, parse_cidr
from tenure.kernel.plan import plan_model as ledgers
from tenure.kernel.plan.edits import (
    AddNetwork,
    AddPool,
    AddSubnet,
    Edit,
    ModifyPool,
    ModifySubnet,
    RemoveNetwork,
    RemoveSubnet,
    Reserve,
)

SPACE = "site"
"""The space that deployments share, unless another is chosen."""

DOOR = {"door": "deployments"}
"""How networks of this door are marked."""

GATEWAY = "gateway of the cloud config"
"""The reason of what a cloud config keeps back in all networks."""

KEPT_FOR = "deployment"
"""The label of what is kept back for a deployment that has no cloud config."""

ANY = (parse_cidr("0.0.0.0/0"), parse_cidr("::/0"))


@dataclass(frozen=True, slots=True)
class Block:
    """A subnet as the ledger has it, or is to have it.

    ``legacy``: what is kept for whom that has no cloud config. ``by_hand``: what others than this door reserved.
    """

    cidr: Cidr
    gateway: int | None = None
    dns: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    unit: int = 32
    pools: tuple[AddressRange, ...] = ()
    # Not compared: a block that is read from the ledger has none, so lay would find a difference every time.
    restricted: tuple[AddressRange, ...] = field(default=(), compare=False)
    """What the cloud config gives to nobody; the ledger knows only that it is in no pool."""
    retired: bool = False
    legacy: tuple[tuple[AddressRange, str], ...] = ()
    by_hand: tuple[ledgers.Reserved, ...] = ()

    def legacy_reserves(self, network: str) -> list[Edit]:
        """Return the edits that keep back for deployments without a cloud config."""
        return [
            Reserve(
                network=network, range=each, reason=f"deployment '{name}' has no cloud config", labels={KEPT_FOR: name}
            )
            for each, name in self.legacy
        ]  # fmt: skip


def blocks_of(network: CloudNetwork) -> list[Block]:
    """Return the subnets that a network of the config has in the ledger; a dynamic one has none."""
    if network.kind == DYNAMIC:
        return []
    if network.kind == VIP:
        return [Block(cidr, unit=width(cidr.first)) for cidr in ANY]
    return [_block(subnet) for subnet in network.subnets if subnet.range is not None]


def _block(subnet: CloudSubnet) -> Block:
    assert subnet.range is not None
    return Block(
        subnet.range,
        subnet.gateway,
        subnet.dns,
        subnet.azs or (),
        subnet.prefix,
        tuple(dynamic_ranges(subnet)),
        subnet.restricted,
    )


def blocks_in(network: ledgers.Network) -> list[Block]:
    """Return the subnets that a network has in the ledger now."""
    return [_block_in(subnet) for subnet in network.subnets]


def _block_in(subnet: ledgers.Subnet) -> Block:
    legacy = [(each.range, each.notes.labels[KEPT_FOR]) for each in subnet.reserved if KEPT_FOR in each.notes.labels]
    own = [each for each in subnet.reserved if KEPT_FOR not in each.notes.labels]
    return Block(
        subnet.cidr, subnet.gateway, subnet.dns, subnet.zones, subnet.unit, tuple(pool.range for pool in subnet.pools),
        retired=subnet.retired, legacy=tuple(legacy),
        by_hand=tuple(each for each in own if each.reason != GATEWAY),
    )  # fmt: skip


def is_ours(network: ledgers.Network) -> bool:
    """Tell whether a network of the ledger is of a cloud config."""
    return DOOR.items() <= network.notes.labels.items()


def lay(name: str, kind: str, wanted: Sequence[Block], present: ledgers.Network | None, space: str) -> list[Edit]:
    """Return the edits that give a network of the ledger these blocks, in this order; none if it has them.

    Blocks are taken out and put back in one ``apply``, which is judged by how it ends: nobody loses his address.
    """
    if present is None:
        added: list[Edit] = [AddNetwork(network=name, space=space, kind=kind, labels=DOOR)]
        return added + [edit for block in wanted for edit in _add(name, block, None)]
    if blocks_in(present) == list(wanted):
        return []
    before = {subnet.cidr: subnet for subnet in present.subnets}
    # All subnets are removed even if only one changes: they are picked from in the order in which they are added.
    gone: list[Edit] = [RemoveSubnet(network=name, subnet=subnet.uuid) for subnet in present.subnets]
    return gone + [edit for block in wanted for edit in _add(name, block, before.get(block.cidr))]


def _add(name: str, block: Block, before: ledgers.Subnet | None) -> list[Edit]:
    """Return the edits that add a subnet; if it was there, with what people wrote on it and on its pools."""
    gateway = None if block.gateway is None else format_address(block.gateway)
    cidr = str(block.cidr)
    said = ledgers.Subnet(block.cidr, "") if before is None else before
    edits: list[Edit] = [
        AddSubnet(
            # keep_back=(): the pools leave out what is restricted, and with point_to_point both ends are given.
            network=name, cidr=cidr, gateway=gateway, dns=block.dns, zones=block.zones, unit=block.unit, keep_back=(),
            uuid=said.uuid or None, name=said.name, dhcp=said.dhcp, labels=said.notes.labels,
            description=said.notes.description,
        )
    ]  # fmt: skip
    set_by_hand = [pool for pool in said.pools if pool != ledgers.Pool(pool.range)]
    edits += [edit for each in block.pools for edit in _add_pool(name, each, set_by_hand)]
    edits += [
        Reserve(
            network=name, range=each.range, reason=each.reason, labels=each.notes.labels,
            description=each.notes.description, request=each.request,
        )
        for each in block.by_hand
    ]  # fmt: skip
    edits += [] if gateway is None else [Reserve(network=name, range=gateway, reason=GATEWAY)]
    edits += block.legacy_reserves(name)
    if block.retired:
        edits.append(ModifySubnet(network=name, subnet=cidr, retired=True))
    return edits


def _add_pool(name: str, wanted: AddressRange, set_by_hand: Iterable[ledgers.Pool]) -> list[Edit]:
    """Return the edits that add a pool: as people set the first one that was there, or else the lowest is picked."""
    said = next((pool for pool in set_by_hand if pool.range.overlaps(wanted)), ledgers.Pool(wanted))
    added = AddPool(
        network=name, range=wanted, name=said.name, policy=str(said.policy), cooling_s=said.cooling_s,
        rank=said.rank,        labels=said.notes.labels, description=said.notes.description,
    )  # fmt: skip
    return [added, ModifyPool(network=name, pool=str(wanted), retired=True)] if said.retired else [added]


def renamed(config: CloudConfig, present: Mapping[str, ledgers.Network]) -> dict[str, str]:
    """Find networks that only changed their name: old name to new.

    One that is no longer in the config, and one that is new in it, with the same blocks: D12.
    """
    gone = {name: blocks_in(network) for name, network in present.items() if name not in config.networks}
    found: dict[str, str] = {}
    for name, network in config.networks.items():
        blocks = blocks_of(network)
        # All VIP networks have the same blocks, so blocks do not show which one was renamed.
        if name in present or not blocks or network.kind == VIP:
            continue
        twin = next((old for old, had in gone.items() if old not in found and _alike(had, blocks)), None)
        if twin is not None:
            found[twin] = name
    return found


def _alike(one: Sequence[Block], other: Sequence[Block]) -> bool:
    return {(block.cidr, block.unit) for block in one if not block.retired} == {
        (block.cidr, block.unit) for block in other
    }


def removal(network: ledgers.Network) -> Edit:
    """Return the edit that removes a network which nobody wants and where nothing is held."""
    return RemoveNetwork(network=network.name)
