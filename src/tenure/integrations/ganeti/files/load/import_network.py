"""A network brought in so that nobody is given an address of the file's, however often the import is broken off.

All its addresses are granted with it, in one step. Where they are too many for one, or where a gateway is held, which
the ledger allows only afterwards, it is *half made* in between: without pools and connections, and wholly reserved.
"""

from collections.abc import Iterator, Sequence

from tenure.integrations.ganeti.files.file_model import GANETI, Json, NetworkFile
from tenure.integrations.ganeti.files.load.address_owners import Grant
from tenure.integrations.ganeti.files.load.import_operations import (
    allocations,
    kept_gateways,
    network_filling,
    network_frame,
    shut,
    unshut,
)
from tenure.integrations.ganeti.files.unknown_fields_papers import HALF
from tenure.service.apply.operations import Operation, WritePaper

PAGE = 5000
"""Addresses a step: half a second's work."""

Step = tuple[int, list[Operation]]
"""How many things are made, and by which operations."""


class NetworkSteps:
    """What makes one network, with its paper: the paper's name, the revision that was read, the final document."""

    def __init__(self, network: NetworkFile, grants: Sequence[Grant], paper: str, revision: int, kept: Json) -> None:
        self._network = network
        self._grants = grants
        self._paper = paper
        self._revision = revision
        self._kept = kept

    def steps(self, *, opened: bool) -> Iterator[Step]:
        """Yield them; of a network that is half made (``opened``) those that are left."""
        if opened:
            yield from self._half_made(self._grants, self._revision)
            return
        gateways = kept_gateways(self._network)
        early = [grant for grant in self._grants if grant.position not in gateways]
        first, later = early[:PAGE], early[PAGE:] + [grant for grant in self._grants if grant.position in gateways]
        frame, held = list(network_frame(self._network)), allocations(self._network.name, first)
        if not later:
            paper = self._written(self._kept, self._revision)
            yield 1 + len(first), [paper, *frame, *network_filling(self._network), *held]
            return
        yield len(first), [self._written(HALF, self._revision), *frame, *shut(self._network), *held]
        # The step before has written the paper once more.
        yield from self._half_made(later, self._revision + 1)

    def _half_made(self, grants: Sequence[Grant], revision: int) -> Iterator[Step]:
        for start in range(0, len(grants), PAGE):
            page = grants[start : start + PAGE]
            yield len(page), allocations(self._network.name, page)
        # Last, and in one apply: pools and connections come when every address of the file is held.
        filled = [*unshut(self._network), *network_filling(self._network)]
        yield 1, [self._written(self._kept, revision), *filled]

    def _written(self, document: Json, revision: int) -> WritePaper:
        return WritePaper(kind=GANETI, name=self._paper, document=document, revision=revision)
