"""The ledger's verbs on the address plan: each one edit, applied by itself."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from tenure.kernel import edits
from tenure.kernel.addresses import AddressLike
from tenure.kernel.asking import Asker, check_asker
from tenure.kernel.configuration import Network, Subnet
from tenure.kernel.edits import KEEP, Keep, Labels, RangeLike
from tenure.kernel.names import check_key
from tenure.kernel.ranges import NetworkLike
from tenure.service.operations import Operation, Shown, check_operations
from tenure.service.replaying import body_of_operations
from tenure.service.server import Server


class PlanVerbs:
    """Add, modify, retire and remove networks, subnets, pools, reserved ranges and pre-allocations."""

    def __init__(self, server: Server, asker: Asker | None = None) -> None:
        self._server = server
        self._asker = asker

    def asked_by(self, actor: str, *, request_id: str | None = None) -> Self:
        """Return the same ledger, of which every change tells on whose word it was made, and by which request."""
        return type(self)(self._server, check_asker(actor, request_id))

    async def _apply(self, operations: Sequence[Operation], key: str | None = None) -> list[Shown]:
        check_operations(operations)
        body = b"" if key is None else body_of_operations(operations, check_key(key))
        return await self._server.apply(with_uuids(operations), key, body, self._asker)

    async def _edit(self, edit: edits.Edit) -> Network:
        [result] = await self._apply([edit])
        assert isinstance(result, Network)
        return result

    async def add_network(
        self,
        name: str,
        *,
        space: str | None = None,
        kind: str = "manual",
        mac_prefix: str | None = None,
        tags: Sequence[str] = (),
        labels: Labels | None = None,
        description: str = "",
    ) -> Network:
        """Add a network, in a space of its own unless one is named."""
        return await self._edit(
            edits.AddNetwork(
                network=name,
                space=space,
                kind=kind,
                mac_prefix=mac_prefix,
                tags=tags,
                labels={} if labels is None else labels,
                description=description,
            )
        )

    async def modify_network(
        self,
        network: str,
        *,
        name: str | Keep = KEEP,
        kind: str | Keep = KEEP,
        mac_prefix: str | Keep | None = KEEP,
        tags: Sequence[str] | Keep = KEEP,
        retired: bool | Keep = KEEP,
        labels: Labels | Keep = KEEP,
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a network; ``name`` renames it, holdings and uuid stay."""
        return await self._edit(
            edits.ModifyNetwork(
                network=network,
                name=name,
                kind=kind,
                mac_prefix=mac_prefix,
                tags=tags,
                retired=retired,
                labels=labels,
                description=description,
            )
        )

    async def retire_network(self, network: str) -> Network:
        """Stop picking in a network; what is held stays and is released as usual."""
        return await self._edit(edits.ModifyNetwork(network=network, retired=True))

    async def remove_network(self, network: str, *, cascade: bool = False) -> None:
        """Remove a network that nobody uses; with ``cascade`` all its holdings end with it."""
        await self._apply([edits.RemoveNetwork(network=network, cascade=cascade)])

    async def add_subnet(
        self,
        network: str,
        cidr: NetworkLike,
        *,
        gateway: AddressLike | None = None,
        name: str | None = None,
        dns: Sequence[AddressLike] = (),
        dhcp: bool = False,
        zones: Sequence[str] = (),
        unit: int | None = None,
        keep_back: Sequence[str] | None = None,
        labels: Labels | None = None,
        description: str = "",
    ) -> Subnet:
        """Add a block to a network. ``unit`` is the prefix length it hands out; a single address by default."""
        changed = await self._edit(
            edits.AddSubnet(
                network=network,
                cidr=cidr,
                gateway=gateway,
                name=name,
                dns=dns,
                dhcp=dhcp,
                zones=zones,
                unit=unit,
                keep_back=keep_back,
                labels={} if labels is None else labels,
                description=description,
            )
        )
        return changed.subnets[-1]

    async def modify_subnet(
        self,
        network: str,
        subnet: str,
        *,
        cidr: NetworkLike | Keep = KEEP,
        gateway: AddressLike | Keep | None = KEEP,
        name: str | Keep | None = KEEP,
        dns: Sequence[AddressLike] | Keep = KEEP,
        dhcp: bool | Keep = KEEP,
        zones: Sequence[str] | Keep = KEEP,
        keep_back: Sequence[str] | Keep = KEEP,
        retired: bool | Keep = KEEP,
        labels: Labels | Keep = KEEP,
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a subnet, found by name, block or uuid; ``cidr`` grows, shrinks or moves it."""
        return await self._edit(
            edits.ModifySubnet(
                network=network,
                subnet=subnet,
                cidr=cidr,
                gateway=gateway,
                name=name,
                dns=dns,
                dhcp=dhcp,
                zones=zones,
                keep_back=keep_back,
                retired=retired,
                labels=labels,
                description=description,
            )
        )

    async def retire_subnet(self, network: str, subnet: str) -> Network:
        """Stop picking in a subnet; what is held stays and is released as usual."""
        return await self._edit(edits.ModifySubnet(network=network, subnet=subnet, retired=True))

    async def remove_subnet(self, network: str, subnet: str, *, cascade: bool = False) -> None:
        """Remove a subnet with its pools and reserved ranges; with ``cascade`` its holdings end with it."""
        await self._apply([edits.RemoveSubnet(network=network, subnet=subnet, cascade=cascade)])

    async def add_pool(
        self,
        network: str,
        range: RangeLike,
        *,
        name: str | None = None,
        policy: str | None = None,
        cooling_s: int = 0,
        labels: Labels | None = None,
        description: str = "",
    ) -> Network:
        """Add a range to pick from; a name that exists gains a range."""
        return await self._edit(
            edits.AddPool(
                network=network,
                range=range,
                name=name,
                policy=policy,
                cooling_s=cooling_s,
                labels={} if labels is None else labels,
                description=description,
            )
        )

    async def modify_pool(
        self,
        network: str,
        pool: str,
        *,
        name: str | Keep | None = KEEP,
        policy: str | Keep = KEEP,
        cooling_s: int | Keep = KEEP,
        retired: bool | Keep = KEEP,
        labels: Labels | Keep = KEEP,
        description: str | Keep = KEEP,
    ) -> Network:
        """Change a pool, found by its name or its exact range."""
        return await self._edit(
            edits.ModifyPool(
                network=network,
                pool=pool,
                name=name,
                policy=policy,
                cooling_s=cooling_s,
                retired=retired,
                labels=labels,
                description=description,
            )
        )

    async def retire_pool(self, network: str, pool: str) -> Network:
        """Stop picking from a pool; what is held stays and is released as usual."""
        return await self._edit(edits.ModifyPool(network=network, pool=pool, retired=True))

    async def remove_pool(self, network: str, pool: str) -> Network:
        """Remove a pool by name, or a range from all pools it touches; holdings stay, what is left keeps its name."""
        return await self._edit(edits.RemovePool(network=network, pool=pool))

    async def reserve(
        self,
        network: str,
        range: RangeLike,
        *,
        reason: str = "",
        labels: Labels | None = None,
        description: str = "",
        request: str | None = None,
    ) -> Network:
        """Keep a range away from picking. Held addresses in it stay held."""
        return await self._edit(
            edits.Reserve(
                network=network,
                range=range,
                reason=reason,
                labels={} if labels is None else labels,
                description=description,
                request=request,
            )
        )

    async def unreserve(self, network: str, range: RangeLike) -> Network:
        """Lift a reservation, wholly or in part."""
        return await self._edit(edits.Unreserve(network=network, range=range))

    async def preallocate(
        self,
        network: str,
        owner: str,
        address: AddressLike,
        *,
        slot: str = "",
        labels: Labels | None = None,
        description: str = "",
        request: str | None = None,
    ) -> Network:
        """Let an address wait for one owner: it gets this one, and nobody else does."""
        return await self._edit(
            edits.Preallocate(
                network=network,
                owner=owner,
                address=address,
                slot=slot,
                labels={} if labels is None else labels,
                description=description,
                request=request,
            )
        )

    async def remove_preallocation(self, network: str, owner: str, *, slot: str = "") -> Network:
        """Forget that an address waits for an owner."""
        return await self._edit(edits.RemovePreallocation(network=network, owner=owner, slot=slot))


def with_uuids(operations: Sequence[Operation]) -> list[Operation]:
    """Give new networks and subnets their uuids, before anything is tried: a second try makes the same."""
    return [_with_uuid(operation) for operation in operations]


def _with_uuid(operation: Operation) -> Operation:
    """Give new networks and subnets their uuid: chance belongs out here, not in the rules."""
    if isinstance(operation, edits.AddNetwork | edits.AddSubnet) and operation.uuid is None:
        return replace(operation, uuid=str(uuid.uuid4()))
    return operation
