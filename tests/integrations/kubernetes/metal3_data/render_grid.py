"""The crash grid of machines' data: every write of a story fails in every way, and the operator dies of it, or goes on.

A cell is a template of its own with its pool and machine, all of whose names begin with the cell's. Cells do not depend
on each other, so many of them share an operator that renders, beside one that serves claims and meets no faults.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, is_terminating
from tenure.integrations.kubernetes.metal3_data.data_kinds import owner_uids
from tenure.integrations.kubernetes.operator import MakeClient, plain_client, started
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object, key_of, uid_of
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.conditional_writes import SentWrite, unconditional
from tests.integrations.kubernetes.metal3.faulty_client import Cell, Moment, WriteFaults
from tests.integrations.kubernetes.metal3.serving import settings_for
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark, content_of

GRACE_S = 0.3
"""After so long an operator that follows releases what nobody owns any more."""
MEETS_S = 60.0
"""So long it may take on a busy machine until all cells have met their faults, or have settled."""

Step = Callable[[MachinePark, str], None]


def nothing(park: MachinePark, cell: str) -> None:
    """Do nothing."""


def template_and_pool(park: MachinePark, cell: str) -> None:
    """Create a pool of two addresses and a template that takes one of them, in both secrets."""
    park.pool(cell, "10.0.0.1-10.0.0.2", prefix=24)
    entry = {"id": "n", "link": "e", "ipAddressFromIPPool": cell}
    item = {"key": "ip", "name": cell, "apiGroup": "ipam.metal3.io", "kind": "IPPool"}
    lists = "ipAddressesFromPool" if park.version == "v1beta2" else "ipAddressesFromIPPool"
    park.template(cell, metaData={lists: [item]}, networkData={"networks": {"ipv4": [entry]}})


def machine_too(park: MachinePark, cell: str) -> None:
    """Create a template and a machine of it."""
    template_and_pool(park, cell)
    machine(park, cell)


def machine(park: MachinePark, cell: str) -> None:
    """Create a machine."""
    park.machine(f"{cell}-m", template=cell)


def remove(park: MachinePark, cell: str) -> None:
    """Delete the machine."""
    park.remove_machine(f"{cell}-m")


def remove_all(park: MachinePark, cell: str) -> None:
    """Delete the template, and its machine."""
    park.delete(park.templates, cell)
    park.remove_machine(f"{cell}-m")


@dataclass(frozen=True)
class Story:
    """What happens in a cell before writes fail, while they fail, and as soon as one has failed."""

    begin: Step
    act: Step
    then: Step = nothing
    is_rendered: bool = True
    """Whether the machine is there in the end, rendered; else nothing of it is left."""


STORIES = {
    "render": Story(nothing, machine_too),
    "goes": Story(machine_too, remove, is_rendered=False),
    "allgo": Story(machine_too, remove_all, is_rendered=False),
    "short": Story(template_and_pool, machine, remove, is_rendered=False),
}


@dataclass
class RenderCell(Cell):
    """A cell with its story."""

    story: str = ""


def cell_of(story: str, number: int, *moments: Moment) -> RenderCell:
    """Return the cell in which a write of a story fails, at a moment, and again at each further one."""
    words = "".join(moment.value for moment in moments)
    return RenderCell(f"{story}{number}{words}", number, moments, story=story)


def grid_of(writes: Mapping[str, int], *, whole: bool) -> list[RenderCell]:
    """Return a cell for each write, at one moment after the other in turn; the whole grid has each at all moments."""
    moments = list(Moment)
    cells = [(story, number) for story, count in writes.items() for number in range(1, count + 1)]
    if whole:
        return [cell_of(*write, moment) for write, moment in product(cells, moments)]
    return [cell_of(*write, moments[place % len(moments)]) for place, write in enumerate(cells)]


@contextlib.asynccontextmanager
async def rendering(
    server: KubeServer, namespace: str, controllers: tuple[str, ...], make_client: MakeClient = plain_client,
    **words: Any,
) -> AsyncIterator[None]:  # fmt: skip
    """Run an operator in this loop, until it leads and has read everything; then for as long as the block."""
    async with started(settings_for(server, namespace, controllers=controllers, **words), make_client) as running:
        while not running.context.lease.leads or any(each.not_ready() for each in running.controllers):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        yield


async def play_cells(park: MachinePark, cells: list[RenderCell], *, dies: bool, late: bool = False) -> None:
    """Play all cells, let an operator follow one that died, and judge what is there in the end.

    ``late``: writes that were on their way arrive when all has been settled without them, and not as the next begins.
    """
    sent: list[SentWrite] = []
    faults = WriteFaults(cells, dies=dies, sent=sent)
    server, namespace = park.server, park.name
    async with (
        rendering(server, namespace, ("metal3",)),
        rendering(server, namespace, ("render",), faults.make_client),
    ):
        await _each(cells, lambda cell: STORIES[cell.story].begin(park, cell.name))
        begun = [cell for cell in cells if STORIES[cell.story].begin is machine_too]
        await _until(lambda: _all_rendered(park, begun), "begin")
        faults.is_armed = True
        await _each(cells, lambda cell: STORIES[cell.story].act(park, cell.name))
        await _until(lambda: all(cell.is_met for cell in cells), lambda: str([c for c in cells if not c.is_met]))
        await _each(cells, lambda cell: STORIES[cell.story].then(park, cell.name))
        if not dies:
            await _settled(park, cells)
            _check_writes(sent)
            return
        # The dead operator goes on trying, and none of its writes reaches the server but those that were on their way.
        after = WriteFaults([], dies=False, sent=sent)
        async with rendering(server, namespace, ("render",), after.make_client, orphan_grace_s=GRACE_S):
            if late:
                await _settled(park, cells)
            await asyncio.to_thread(faults.land)
            if late:
                await asyncio.to_thread(collect_secrets, park)
            await _settled(park, cells)
    _check_writes(sent)


def collect_secrets(park: MachinePark) -> None:
    """Delete secrets whose owners are gone, as the garbage collector does, which does not run here."""
    living = {uid_of(each) for each in park.all(park.datas)}
    for secret in park.all(SECRET):
        if not living.intersection(owner_uids(secret)):
            park.delete(SECRET, key_of(secret)[1])


def _all_rendered(park: MachinePark, cells: list[RenderCell]) -> bool:
    found = Found(park)
    return all(found.is_rendered(cell.name) for cell in cells)


def _check_writes(sent: list[SentWrite]) -> None:
    """Check that every write names what it was decided on (KP4)."""
    assert unconditional(sent) == []


async def _each(cells: list[RenderCell], act: Callable[[RenderCell], None]) -> None:
    await asyncio.gather(*(asyncio.to_thread(act, cell) for cell in cells))


async def _settled(park: MachinePark, cells: list[RenderCell]) -> None:
    def faults() -> list[str]:
        found = Found(park)
        return [fault for cell in cells for fault in faults_of(found, cell)]

    await _until(lambda: not faults(), lambda: "\n".join(faults()))
    await asyncio.sleep(0.5)
    assert not faults()


class Found:
    """All objects of a namespace, listed once: a look at each cell by itself would cost more than the work."""

    def __init__(self, park: MachinePark) -> None:
        self.datas, self.data_claims, self.templates = (
            _by_name(park.all(kind)) for kind in (park.datas, park.data_claims, park.templates)
        )
        self.claims, self.addresses, self.secrets = (
            _by_name(park.all(kind)) for kind in (IP_CLAIM, IP_ADDRESS, SECRET)
        )

    def left_of(self, cell: str) -> list[str]:
        """Return what is there of a machine."""
        kinds = (self.datas, self.data_claims, self.claims, self.addresses, self.secrets)
        return [name for kind in kinds for name in kind if name.startswith(f"{cell}-")]

    def is_rendered(self, cell: str) -> bool:
        """Return whether a machine is rendered whole, and all of its objects say the same."""
        data, claim = self.datas.get(f"{cell}-0") or {}, self.data_claims.get(f"{cell}-m") or {}
        status = data.get("status") or {}
        addresses = [
            each["spec"]["address"] for each in self.addresses.values() if each["spec"]["pool"]["name"] == cell
        ]
        claims = [each for name, each in self.claims.items() if name.startswith(f"{cell}-")]
        named = ((claim.get("status") or {}).get("renderedData") or {}).get("name")
        return (
            bool(status.get("ready"))
            and not status.get("errorMessage")
            and named == f"{cell}-0"
            and bool(((self.templates.get(cell) or {}).get("status") or {}).get("indexes"))
            and len(addresses) == len(claims) == 1
            and not is_terminating(claims[0])
            and self._shown(cell) == addresses * 2
        )

    def _shown(self, cell: str) -> list[str]:
        """Return the address of a machine as each of its secrets has it."""
        names = (f"{cell}-m-metadata", f"{cell}-m-networkdata")
        if not all(name in self.secrets for name in names):
            return []
        meta_data, network_data = (content_of(self.secrets[name]) for name in names)
        return [meta_data["ip"], network_data["networks"][0]["ip_address"]]


def _by_name(objects: list[Object]) -> dict[str, Object]:
    return {key_of(each)[1]: each for each in objects}


def faults_of(found: Found, cell: RenderCell) -> list[str]:
    """Return what is not as it should be at the end of a cell."""
    if STORIES[cell.story].is_rendered:
        data = found.datas.get(f"{cell.name}-0")
        return [] if found.is_rendered(cell.name) else [f"{cell} is not rendered: {data}"]
    return [f"{cell}: {each} is left" for each in found.left_of(cell.name)]


async def _until(holds: Callable[[], bool], why: str | Callable[[], str]) -> None:
    deadline = time.monotonic() + MEETS_S
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < deadline, why if isinstance(why, str) else await asyncio.to_thread(why)
        await asyncio.sleep(0.3)
