"""Which addresses a machine needs by its template: one from each pool, or one for each network (R6)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3_data.template.machine_facts import MachineFacts
from tenure.integrations.kubernetes.metal3_data.template.template_fields import TemplateRefused
from tenure.integrations.kubernetes.metal3_data.template.template_model import (
    AnnotatedPool,
    DataTemplate,
    FromPool,
    MachineRoute,
    PoolReference,
    PoolSource,
)
from tenure.kernel.names import shown

DATA_LABEL = "infrastructure.cluster.x-k8s.io/data-name"
POOL_LABEL = "infrastructure.cluster.x-k8s.io/pool-name"
"""Labels of claims that are named by the host (KS7): whose they are, and from which pool."""
LONGEST_NAME = 253
"""So many characters the name of an object may have."""


@dataclass(frozen=True, slots=True)
class NeededAddress:
    """An address that a machine needs: the first from a pool, or a further one for a network of its own."""

    pool: PoolReference
    number: int = 1

    @property
    def suffix(self) -> str:
        """Return what ends the name of the claim for it."""
        return self.pool.name if self.number == 1 else f"{self.pool.name}-{self.number}"


class NeededAddresses:
    """All addresses of a machine, and which of them each part of the template means."""

    def __init__(self, template: DataTemplate, facts: MachineFacts | None) -> None:
        """Find them; raise ``TemplateRefused`` if the template contradicts itself, or an annotation is not there.

        Without facts, pools that stand in annotations are left out: a template is judged by itself.
        """
        self._facts = facts
        self._pools: dict[str, PoolReference] = {}
        self._of_network: dict[str, NeededAddress] = {}
        """The address of each static network, by the network's path."""
        faults: list[tuple[str, str]] = []
        for source in _sources(template):
            self._note(source, faults)
        # After a fault an annotation may be missing, and ``pool_of`` would raise before all faults are reported.
        if not faults:
            self._count(template, faults)
        if faults:
            raise TemplateRefused(faults)

    def __iter__(self) -> Iterator[NeededAddress]:
        """Yield each address once, in the order in which the template needs them."""
        found = dict.fromkeys(NeededAddress(pool) for pool in self._pools.values())
        return iter(found | dict.fromkeys(self._of_network.values()))

    def pool_of(self, source: PoolSource) -> PoolReference:
        """Return the pool that is meant."""
        if isinstance(source, PoolReference):
            return source
        assert self._facts is not None, "only a machine has annotations"
        return _annotated(source, self._facts)

    def of_pool(self, source: PoolSource, network: str = "") -> NeededAddress:
        """Return the address that a reference to a pool means, in a network: the network's own, if it has it there."""
        pool, own = self.pool_of(source), self._of_network.get(network)
        return own if own is not None and own.pool == pool else NeededAddress(pool)

    def _note(self, source: PoolSource, faults: list[tuple[str, str]]) -> None:
        if self._facts is None and isinstance(source, AnnotatedPool):
            return
        try:
            pool = self.pool_of(source)
        except TemplateRefused as error:
            faults += error.faults
            return
        known = self._pools.setdefault(pool.name, pool)
        if known != pool:
            others = f"{_title(known)} (at {known.path})"
            faults.append((pool.path, f"{_title(pool)} has the name of {others}: {shown(pool.name)}"))

    def _count(self, template: DataTemplate, faults: list[tuple[str, str]]) -> None:
        """Give networks their addresses; with one for each network, the second of a pool needs a claim of its own."""
        counts: dict[PoolReference, int] = {}
        suffixes = {name: pool.path for name, pool in self._pools.items()}
        for network in template.network_data.networks if template.network_data else ():
            if network.pool is None or (self._facts is None and isinstance(network.pool, AnnotatedPool)):
                continue
            pool = self.pool_of(network.pool)
            number = counts[pool] = counts.get(pool, 0) + 1 if template.address_per_network else 1
            needed = self._of_network[network.path] = NeededAddress(pool, number)
            if number > 1 and (other := suffixes.setdefault(needed.suffix, network.path)) != network.path:
                faults.append((network.path, f"its claim would have the name of that of {other}: rename a pool"))


def claim_names(needed: NeededAddress, data: str, host: str, *, by_host: bool) -> list[str]:
    """Return how a machine's claim may be called, first how a new one is: claims keep their names (KS7).

    Only Metal3's own claims find fixed addresses by their names.
    """
    by_data, of_host = f"{data}-{needed.suffix}", f"{host}-{needed.suffix}"
    return [of_host, by_data] if by_host and needed.pool.is_ip_pool else [by_data, of_host]


def check_claim_names(needed: Mapping[str, NeededAddress]) -> None:
    """Raise ``TemplateRefused`` for a claim whose name is too long; ``needed``: addresses by the claim's name."""
    faults = [
        (each.pool.path, f"the name of its claim, {name[:40]}…, has {len(name)} characters, at most {LONGEST_NAME}")
        for name, each in needed.items()
        if len(name) > LONGEST_NAME
    ]
    if faults:
        raise TemplateRefused(faults)


def _title(pool: PoolReference) -> str:
    """Return what a pool is, for people; a template may say anything, of any length."""
    return f"{pool.kind:.40} of {pool.group:.60}"


def _annotated(source: AnnotatedPool, facts: MachineFacts) -> PoolReference:
    object = facts.objects[source.object]
    name = object.annotations.get(source.annotation, "")
    if not name:
        raise TemplateRefused(
            [(source.path, f"annotation {source.annotation:.80} is missing or empty on {source.object} {object.name}")]
        )
    return PoolReference(name, path=source.path)


def _sources(template: DataTemplate) -> Iterator[PoolSource]:
    for item in template.meta_data or ():
        if isinstance(item.value, FromPool):
            yield item.value.pool
    if template.network_data is None:
        return
    for network in template.network_data.networks:
        if network.pool is not None:
            yield network.pool
        for route in network.routes:
            yield from _sources_of_route(route)
    if template.network_data.services.pool is not None:
        yield template.network_data.services.pool


def _sources_of_route(route: MachineRoute) -> Iterator[PoolSource]:
    if isinstance(route.gateway, PoolReference | AnnotatedPool):
        yield route.gateway
    if route.services.pool is not None:
        yield route.services.pool
