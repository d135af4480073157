"""What the groups of a manifest may refer to, and what is known of one while its networks are read."""

from dataclasses import dataclass

from tenure.integrations.bosh.model.document_model import CloudConfig, CloudNetwork


@dataclass(frozen=True, slots=True)
class ReadingContext:
    """The AZs and networks that there are.

    A manifest with networks of its own may describe some of them wrongly. That is told where they are described;
    that groups use them is no fault besides. ``spoilt`` and ``spoilt_azs`` are the networks and AZs of which nothing
    more is to be said, and where not even all their names can be read, ``complete`` is false: then none is unknown for
    sure.
    """

    config: CloudConfig
    spoilt: frozenset[str] = frozenset()
    spoilt_azs: frozenset[str] = frozenset()
    complete: bool = True

    def network(self, name: str) -> CloudNetwork | None:
        """Return a network of which all is known."""
        return None if name in self.spoilt else self.config.networks.get(name)

    def lacks_network(self, name: str) -> bool:
        """Tell whether no network has this name."""
        return self.complete and name not in self.spoilt and name not in self.config.networks

    def lacks_az(self, name: str) -> bool:
        """Tell whether no AZ has this name."""
        return self.complete and name not in self.spoilt_azs and name not in self.config.azs


@dataclass(frozen=True, slots=True)
class GroupContext:
    """A group, as far as it is known. ``instances`` is None if the number is wrong.

    ``azs`` is None if the group names none, and empty if none that it names is right.
    """

    name: str
    instances: int | None
    azs: tuple[str, ...] | None
