"""Nothing is lost at a crash (KD17): every write of take, release, adopt and move fails, by number.

After each, everything agrees: one address for each living claim, never one address twice, statuses that say what is,
no reservation left, no move held up, no mark of a killed one, nothing stuck, the operator's book equal to a fresh list,
and nothing left when everything is deleted. And every write that was sent names what it was decided on (KP4).
"""

from collections.abc import Mapping
from itertools import product

import pytest

from tenure.integrations.kubernetes.runtime.api_client import JSON_PATCH, MERGE_PATCH
from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.metal3.conditional_writes import SentWrite, unconditional
from tests.integrations.kubernetes.metal3.crash_grid import GridCell, beyond, cell_of, cells_of, play_cells
from tests.integrations.kubernetes.metal3.faulty_client import Moment
from tests.integrations.kubernetes.metal3.grid_stories import STORIES
from tests.integrations.kubernetes.metal3.old_clusters import install_clusters
from tests.scale import in_proof

WRITES: Mapping[str, int] = {
    "take": 5, "take-batch": 9, "take-and-go": 5, "take-kept": 5, "take-batch-kept": 9, "take-kept-and-go": 4,
    "take-cluster-api": 5, "take-of-cluster": 6, "release-cluster-api": 4, "release": 4, "release-batch": 7,
    "release-pool": 7, "release-cooling": 5, "hand-over": 8, "adopt-foreign": 4, "adopt-moved": 5, "adopt-again": 3,
    "move-let": 6, "move-named": 1, "move-killed-pool": 1, "move-killed-claim": 1, "move-killed-address": 1,
}  # fmt: skip
"""How many writes each story takes when nothing fails."""

FOREIGN_WRITES: Mapping[str, int] = {"take-kept": 7, "release": 4}
"""The same on Metal3's definitions, which drop a reservation in the status: it is written again, in an annotation."""

STATUS_WRITES = 3
"""How many writes of a status a story may take besides; they fail, too."""

CONTINUATIONS = pytest.mark.parametrize("dies", [False, True], ids=["goes-on", "dies"])
GOES_ON_ALONE = pytest.mark.parametrize("dies", [pytest.param(False, id="goes-on"), in_proof(True)])


def grid_of(writes: Mapping[str, int], *, dies: bool) -> list[GridCell]:
    """Return half of the grid: the operator dies of every other fault, and goes on after the others."""
    numbered = [(story, number) for story, count in writes.items() for number in range(1, count + 1)]
    cells = [each for place, write in enumerate(numbered) for each in cells_of(*write)[:: -1 if place % 2 else 1]]
    return cells[dies::2]


def part_of(half: list[GridCell], part: int) -> list[GridCell]:
    """Return the cells of every other write."""
    places = {write: place for place, write in enumerate(dict.fromkeys((cell.story, cell.number) for cell in half))}
    return [cell for cell in half if places[cell.story, cell.number] % 2 == part]


def check_counts(writes: Mapping[str, int], counted: list[GridCell]) -> None:
    """Check that the table is right: a write that it lacks would never fail."""
    # A busy server makes a pass wait, and a status is then written once more.
    found = [(each, len(each.writes) - each.failed - writes[each.story]) for each in counted]
    assert [(each.story, each.writes) for each, more in found if not 0 <= more <= STATUS_WRITES] == []


def test_kd17_the_grid_has_every_write_at_every_moment() -> None:
    """And of each write the operator dies, and goes on after it."""
    halves = [grid_of(WRITES, dies=dies) for dies in (False, True)]
    met = [(cell.story, cell.number, moment) for half in halves for cell in half for moment in cell.moments]

    writes = [(story, number) for story in STORIES for number in range(1, WRITES[story] + 1)]
    assert sorted(met, key=str) == sorted(((*write, moment) for write, moment in product(writes, Moment)), key=str)
    assert all({(cell.story, cell.number) for cell in half} == {*writes} for half in halves)


@CONTINUATIONS
@pytest.mark.parametrize("part", range(2))
async def test_kd17_every_write_fails_at_every_moment(kube: KubeServer, part: int, dies: bool) -> None:
    """``make proof`` lets the operator both die and go on at each of them."""
    install_clusters(kube)
    await play_cells(kube, part_of(grid_of(WRITES, dies=dies), part), dies=dies)


async def test_kd17_writes_that_come_besides_fail_as_well_and_nothing_is_left_at_the_end(kube: KubeServer) -> None:
    install_clusters(kube)
    cells = beyond(WRITES, STATUS_WRITES)
    await play_cells(kube, cells, dies=False, clears=True)

    check_counts(WRITES, cells)


@pytest.mark.one_worker("private-kube")
@GOES_ON_ALONE
async def test_kd17_every_write_fails_on_metal3s_definitions(foreign_kube: KubeServer, dies: bool) -> None:
    """A reservation is written twice there (KD4), and each operator finds that out by itself."""
    counted = [] if dies else beyond(FOREIGN_WRITES, STATUS_WRITES)
    await play_cells(foreign_kube, grid_of(FOREIGN_WRITES, dies=dies) + counted, dies=dies, is_foreign=True)

    check_counts(FOREIGN_WRITES, counted)


async def test_kd17_a_write_that_fails_again_and_again_is_tried_until_it_is_done(kube: KubeServer) -> None:
    """Its next try is later than the next look at the pool's status, which must not make it forgotten."""
    names = [(story, times) for story in ("take", "release") for times in (3, 4)]
    cells = [GridCell(f"{story}{times}", 3, (Moment.BEFORE,) * times, story=story) for story, times in names]

    await play_cells(kube, cells, dies=False, clears=True)


@pytest.mark.proof
@CONTINUATIONS
@pytest.mark.parametrize("story", STORIES)
async def test_kd17_the_operator_dies_and_goes_on_at_every_write(kube: KubeServer, story: str, dies: bool) -> None:
    install_clusters(kube)
    numbers = range(1, WRITES[story] + 1)
    await play_cells(kube, [cell_of(story, *each) for each in product(numbers, Moment)], dies=dies, clears=True)


UID, VERSION = ({"op": "test", "path": f"/metadata/{name}", "value": "7"} for name in ("uid", "resourceVersion"))
PLACE = {"op": "test", "path": "/metadata/finalizers/0", "value": "a"}
REMOVAL = {"op": "remove", "path": "/metadata/finalizers/0"}
LABEL = {"op": "add", "path": "/metadata/labels", "value": {}}
SEEN = {"uid": "7", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("sent", "is_good"),
    [
        (SentWrite("PUT", "p", {"metadata": {**SEEN, "name": "a"}}), False),
        (SentWrite("POST", "p/ipaddresses", {"metadata": {"name": "a"}}), True),
        (SentWrite("POST", "p/ipaddresses", {"metadata": {"generateName": "a-"}}), False),
        (SentWrite("DELETE", "p", {"preconditions": SEEN}), True),
        (SentWrite("DELETE", "p", {"preconditions": {"uid": "7"}}), False),
        (SentWrite("DELETE", "p", None), False),
        (SentWrite("PATCH", "p", {"metadata": SEEN, "status": {}}, MERGE_PATCH), True),
        (SentWrite("PATCH", "p", {"metadata": {"uid": "7"}, "status": {}}, MERGE_PATCH), False),
        (SentWrite("PATCH", "p", [UID, VERSION, LABEL], JSON_PATCH), True),
        (SentWrite("PATCH", "p", [UID, PLACE, REMOVAL], JSON_PATCH), True),
        (SentWrite("PATCH", "p", [UID, LABEL], JSON_PATCH), False),
        (SentWrite("PATCH", "p", [UID, PLACE, REMOVAL, LABEL], JSON_PATCH), False),
        (SentWrite("PATCH", "p", [VERSION, LABEL], JSON_PATCH), False),
        (SentWrite("PATCH", "p", [LABEL, UID, VERSION], JSON_PATCH), False),
        (SentWrite("PATCH", "p", {"metadata": SEEN}, "application/apply-patch+yaml"), False),
    ],
)
def test_kp4_a_write_without_a_condition_would_be_seen(sent: SentWrite, is_good: bool) -> None:
    assert unconditional([sent]) == ([] if is_good else [sent])
