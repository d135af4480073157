"""Which space a subnet shares with others: by its network, its address scope or its subnet pool, in this order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SubnetLocation:
    """Where a new subnet is: what a configuration may map to a space."""

    network: str | None = None
    address_scope: str | None = None
    subnet_pool: str | None = None


@dataclass(frozen=True, slots=True)
class Spaces:
    """What a configuration maps to spaces."""

    by_network: Mapping[str, str]
    by_address_scope: Mapping[str, str]
    by_subnet_pool: Mapping[str, str]

    def __bool__(self) -> bool:
        """Tell whether anything is mapped."""
        return bool(self.by_network or self.by_address_scope or self.by_subnet_pool)

    def names(self) -> set[str]:
        """Name all spaces that something is mapped to."""
        return {*self.by_network.values(), *self.by_address_scope.values(), *self.by_subnet_pool.values()}

    def at(self, site: SubnetLocation) -> str | None:
        """Name the space of a subnet; None: it is a space of its own."""
        mapped = (
            self.by_network.get(site.network or ""),
            self.by_address_scope.get(site.address_scope or ""),
            self.by_subnet_pool.get(site.subnet_pool or ""),
        )
        return next((space for space in mapped if space), None)


NOTHING_SHARED = Spaces({}, {}, {})


def mapped_spaces(section: Any) -> Spaces:
    """Read the mapping from the section of the driver's options."""
    return Spaces(section.space_of_network, section.space_of_address_scope, section.space_of_subnet_pool)
