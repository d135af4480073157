"""What the ledger has of the names that a file brings."""

from collections.abc import Iterator, Mapping, Sequence

from tenure.integrations.ganeti.files.file_model import GROUPS, INSTANCES, NETWORKS, NODES
from tenure.integrations.ganeti.files.unknown_fields_papers import Plain
from tenure.integrations.ganeti.machine_model import GROUP, INSTANCE, NODE
from tenure.kernel.plan.plan_model import Configuration
from tenure.service.ledger.async_ledger import AsyncLedger

KINDS = {GROUPS: GROUP, NODES: NODE, NETWORKS: "network", INSTANCES: INSTANCE}
"""What one object of a section is called."""


class Standing:
    """The names and uuids that the ledger has, and its plan."""

    def __init__(self, uuids: Mapping[str, Mapping[str, str]], spaces: Sequence[Configuration]) -> None:
        self._uuids = uuids
        self._names = {section: {uuid: name for name, uuid in known.items()} for section, known in uuids.items()}
        self._spaces = {space.name for space in spaces}
        self._space_of = {name: space for space in spaces for name in space.networks}

    @classmethod
    async def read(cls, ledger: AsyncLedger) -> "Standing":
        """Read them."""
        spaces = await ledger.spaces()
        uuids = {NETWORKS: {network.name: network.uuid for space in spaces for network in space.networks.values()}}
        for section, kind in ((GROUPS, GROUP), (NODES, NODE), (INSTANCES, INSTANCE)):
            uuids[section] = {paper.name: paper.document["uuid"] for paper in await ledger.papers(kind)}
        return cls(uuids, spaces)

    def has(self, plain: Plain) -> bool:
        """Tell whether the ledger has this object, by name and uuid."""
        return self._uuids[plain.section].get(plain.name) == plain.uuid

    def space_of(self, network: str) -> Configuration:
        """Return the space that a network of the ledger lies in."""
        return self._space_of[network]

    def conflicts(self, plain: Plain) -> Iterator[str]:
        """Tell what of the ledger is in the way of an object."""
        kind = KINDS[plain.section]
        if plain.name in self._uuids[plain.section]:
            yield f"{kind} {plain.name!r} exists already"
        elif plain.uuid in self._names[plain.section]:
            other = self._names[plain.section][plain.uuid]
            yield f"{kind} {plain.name!r} has the uuid of {kind} {other!r}, {plain.uuid}"
        elif plain.section == NETWORKS and plain.name in self._spaces:
            yield f"space {plain.name!r} exists already, and network {plain.name!r} needs one of its own"
