"""Nothing of a machine is lost or left at a crash: every write of the controller fails, by number, and all agrees."""

from collections.abc import Mapping

import pytest

from tests.integrations.kubernetes.metal3.faulty_client import Moment
from tests.integrations.kubernetes.metal3_data.machine_park import MachinePark
from tests.integrations.kubernetes.metal3_data.render_grid import STORIES, cell_of, grid_of, play_cells
from tests.scale import in_proof

WRITES: Mapping[str, int] = {"render": 10, "goes": 8, "allgo": 9, "short": 8}
"""How many writes each story takes at least when nothing fails; a story that goes may need fewer."""

CONTINUATIONS = pytest.mark.parametrize(
    "dies", [pytest.param(False, id="goes-on", marks=pytest.mark.proof), pytest.param(True, id="dies")]
)


def test_the_grid_has_every_write() -> None:
    cells = grid_of(WRITES, whole=True)

    assert {cell.story for cell in cells} == set(STORIES)
    assert len(cells) == sum(WRITES.values()) * len(Moment)


@CONTINUATIONS
async def test_kd17_every_write_of_the_render_controller_fails(bare_park: MachinePark, dies: bool) -> None:
    """At one moment each; ``make proof`` has them all."""
    bare_park.cluster()
    await play_cells(bare_park, grid_of(WRITES, whole=False)[dies::2], dies=dies)


@pytest.mark.proof
@CONTINUATIONS
@pytest.mark.parametrize("story", STORIES)
async def test_kd17_every_write_of_the_render_controller_fails_at_every_moment(
    bare_park: MachinePark, story: str, dies: bool
) -> None:
    bare_park.cluster()
    await play_cells(bare_park, grid_of({story: WRITES[story]}, whole=True), dies=dies)


@pytest.mark.parametrize("story", [in_proof("render"), in_proof("goes"), in_proof("allgo"), "short"])
async def test_kd17_every_write_of_the_render_controller_arrives_when_all_is_settled(
    bare_park: MachinePark, story: str
) -> None:
    """What it makes then has nobody left who would let it go."""
    bare_park.cluster()
    cells = [cell_of(story, number, Moment.LOST) for number in range(1, WRITES[story] + 1)]
    await play_cells(bare_park, cells, dies=True, late=True)
