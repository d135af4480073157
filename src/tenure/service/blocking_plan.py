"""The ledger's verbs on the plan, for callers who block. Written by tools/make_blocking.py."""

from collections.abc import Sequence

from tenure.kernel.addresses import AddressLike
from tenure.kernel.configuration import Network, Subnet
from tenure.kernel.edits import KEEP, Keep, Labels, RangeLike
from tenure.kernel.ranges import NetworkLike
from tenure.service.ledger import AsyncLedger
from tenure.service.portal import Portal


class BlockingPlanVerbs:
    """Every verb on the plan, run to its end."""

    def __init__(self, ledger: AsyncLedger, portal: Portal) -> None:
        self._ledger = ledger
        self._portal = portal

    def add_network(
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
        return self._portal.run(
            self._ledger.add_network(
                name, space=space, kind=kind, mac_prefix=mac_prefix, tags=tags, labels=labels, description=description
            )
        )

    def modify_network(
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
        return self._portal.run(
            self._ledger.modify_network(
                network,
                name=name,
                kind=kind,
                mac_prefix=mac_prefix,
                tags=tags,
                retired=retired,
                labels=labels,
                description=description,
            )
        )

    def retire_network(self, network: str) -> Network:
        """Stop picking in a network; what is held stays and is released as usual."""
        return self._portal.run(self._ledger.retire_network(network))

    def remove_network(self, network: str, *, cascade: bool = False) -> None:
        """Remove a network that nobody uses; with ``cascade`` all its holdings end with it."""
        return self._portal.run(self._ledger.remove_network(network, cascade=cascade))

    def add_subnet(
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
        return self._portal.run(
            self._ledger.add_subnet(
                network,
                cidr,
                gateway=gateway,
                name=name,
                dns=dns,
                dhcp=dhcp,
                zones=zones,
                unit=unit,
                keep_back=keep_back,
                labels=labels,
                description=description,
            )
        )

    def modify_subnet(
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
        return self._portal.run(
            self._ledger.modify_subnet(
                network,
                subnet,
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

    def retire_subnet(self, network: str, subnet: str) -> Network:
        """Stop picking in a subnet; what is held stays and is released as usual."""
        return self._portal.run(self._ledger.retire_subnet(network, subnet))

    def remove_subnet(self, network: str, subnet: str, *, cascade: bool = False) -> None:
        """Remove a subnet with its pools and reserved ranges; with ``cascade`` its holdings end with it."""
        return self._portal.run(self._ledger.remove_subnet(network, subnet, cascade=cascade))

    def add_pool(
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
        return self._portal.run(
            self._ledger.add_pool(
                network, range, name=name, policy=policy, cooling_s=cooling_s, labels=labels, description=description
            )
        )

    def modify_pool(
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
        return self._portal.run(
            self._ledger.modify_pool(
                network,
                pool,
                name=name,
                policy=policy,
                cooling_s=cooling_s,
                retired=retired,
                labels=labels,
                description=description,
            )
        )

    def retire_pool(self, network: str, pool: str) -> Network:
        """Stop picking from a pool; what is held stays and is released as usual."""
        return self._portal.run(self._ledger.retire_pool(network, pool))

    def remove_pool(self, network: str, pool: str) -> Network:
        """Remove a pool by name, or a range from all pools it touches; holdings stay, what is left keeps its name."""
        return self._portal.run(self._ledger.remove_pool(network, pool))

    def reserve(
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
        return self._portal.run(
            self._ledger.reserve(network, range, reason=reason, labels=labels, description=description, request=request)
        )

    def unreserve(self, network: str, range: RangeLike) -> Network:
        """Lift a reservation, wholly or in part."""
        return self._portal.run(self._ledger.unreserve(network, range))

    def preallocate(
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
        return self._portal.run(
            self._ledger.preallocate(
                network, owner, address, slot=slot, labels=labels, description=description, request=request
            )
        )

    def remove_preallocation(self, network: str, owner: str, *, slot: str = "") -> Network:
        """Forget that an address waits for an owner."""
        return self._portal.run(self._ledger.remove_preallocation(network, owner, slot=slot))
