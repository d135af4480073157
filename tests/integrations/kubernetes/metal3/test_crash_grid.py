"""Nothing is lost at a crash (KD17): every write of take, release and adopt fails, by number, and everything agrees.

After each: one address for each living claim, never one address twice, statuses that say what is, no reservation left,
nothing stuck, the operator's book equal to a fresh list, and nothing left when everything is deleted.
"""

from collections.abc import Mapping
from itertools import cycle, islice

import pytest

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.crash_grid import STORIES, GridCell, play_cells, undisturbed
from tests.integrations.kubernetes.metal3.faulty_client import Moment

WRITES: Mapping[str, int] = {
    "take": 5, "take-batch": 12, "take-and-go": 5, "take-kept": 5, "take-batch-kept": 12, "take-kept-and-go": 4,
    "take-cluster-api": 5, "release-cluster-api": 4, "release": 4, "release-batch": 7, "release-pool": 7,
    "hand-over": 8, "adopt-foreign": 4, "adopt-moved": 5, "adopt-again": 3,
}  # fmt: skip
"""How many writes each story takes when nothing fails."""

STATUS_WRITES = 3
"""How many writes of a status a story may take besides."""

CONTINUATIONS = pytest.mark.parametrize("dies", [False, True], ids=["goes-on", "dies"])


def grid_of(story: str) -> list[GridCell]:
    """Return a cell for every write of a story at every moment."""
    return [_cell(story, number, moment) for number in range(1, WRITES[story] + 1) for moment in Moment]


def sample_of(first: int) -> list[GridCell]:
    """Return a cell for every write of every story; the moments take turns."""
    writes = [(story, number) for story in STORIES for number in range(1, WRITES[story] + 1)]
    moments = islice(cycle(Moment), first, None)
    return [_cell(story, number, moment) for (story, number), moment in zip(writes, moments, strict=False)]


def _cell(story: str, number: int, moment: Moment) -> GridCell:
    return GridCell(f"{story.replace('-', '')}{number}{moment.value}", number, moment, story=story)


@CONTINUATIONS
async def test_kd17_every_write_fails_once(kube: KubeServer, dies: bool) -> None:
    """Moments take turns, and so do dying and going on; ``make proof`` has every write in all ways."""
    counted = [] if dies else undisturbed()
    await play_cells(kube, sample_of(first=dies)[dies::2] + counted, dies=dies)

    # A busy server makes a pass wait, and a status is then written once more.
    odd = [each for each in counted if not 0 <= len(each.writes) - WRITES[each.story] <= STATUS_WRITES]
    assert [(each.story, len(each.writes)) for each in odd] == []


async def test_kd17_a_write_that_fails_again_and_again_is_tried_until_it_is_done(kube: KubeServer) -> None:
    """Its next try is later than the next look at the pool's status, which must not make it forgotten."""
    names = [(story, times) for story in ("take", "release") for times in (3, 4)]
    cells = [GridCell(f"{story}{times}", 3, times=times, story=story) for story, times in names]

    await play_cells(kube, cells, dies=False)


@pytest.mark.proof
@CONTINUATIONS
@pytest.mark.parametrize("story", STORIES)
async def test_kd17_every_write_fails_at_every_moment(kube: KubeServer, story: str, dies: bool) -> None:
    await play_cells(kube, grid_of(story), dies=dies)
