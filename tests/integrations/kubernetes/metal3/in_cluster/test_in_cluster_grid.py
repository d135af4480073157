"""KD17 for pools of the in-cluster provider's: every write of take, release, adopt and move fails, by number.

Nothing but the pool's reservation keeps two leaders from one address here, since objects have the names of claims.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from itertools import product

import pytest

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.claim_kinds import IN_CLUSTER
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IN_CLUSTER_POOL
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.claim_storms import come_and_go
from tests.integrations.kubernetes.metal3.crash_grid import beyond, cell_of, play_as, started_in
from tests.integrations.kubernetes.metal3.faulty_client import Moment
from tests.integrations.kubernetes.metal3.grid_stories import IN_CLUSTER_STORIES
from tests.integrations.kubernetes.metal3.ipam_user import IpamUser, user_of, witness
from tests.integrations.kubernetes.metal3.test_crash_grid import CONTINUATIONS, STATUS_WRITES, check_counts, grid_of

WRITES: Mapping[str, int] = {
    "in-take": 5, "in-take-kept": 5, "in-take-kept-and-go": 4, "in-release": 4, "in-release-cooling": 5,
    "in-adopt-foreign": 4, "in-adopt-moved": 5, "in-adopt-again": 3,
}  # fmt: skip
"""How many writes each story takes when nothing fails."""
FEW = ("in-take", "in-release", "in-adopt-foreign")
"""The stories that ``make test`` plays."""


@pytest.fixture
async def grid_user(
    all_kinds: KubeServer, controller: IpamController, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[IpamUser]:
    """Give a user of a namespace that the server's operator leaves to others; its webhooks judge there, too."""
    serves = controller._view.serves
    with fresh_namespace(all_kinds) as name:
        monkeypatch.setattr(controller._view, "serves", lambda place, labels: place != name and serves(place, labels))
        async with user_of(all_kinds, name, pools=IN_CLUSTER_POOL) as user:
            yield user


@CONTINUATIONS
async def test_kd17_every_write_about_an_in_cluster_pool_fails(
    all_kinds: KubeServer, grid_user: IpamUser, dies: bool
) -> None:
    cells = grid_of({story: WRITES[story] for story in FEW}, dies=dies)
    await play_as(grid_user, all_kinds, cells, dies=dies)


@pytest.mark.proof
async def test_kd17_writes_that_come_besides_fail_as_well(all_kinds: KubeServer, grid_user: IpamUser) -> None:
    assert WRITES.keys() == IN_CLUSTER_STORIES.keys()
    cells = beyond(WRITES, STATUS_WRITES)
    await play_as(grid_user, all_kinds, cells, dies=False, clears=True)

    check_counts(WRITES, cells)


@pytest.mark.proof
@CONTINUATIONS
@pytest.mark.parametrize("story", IN_CLUSTER_STORIES)
async def test_kd17_the_operator_dies_and_goes_on_at_every_write_about_an_in_cluster_pool(
    all_kinds: KubeServer, grid_user: IpamUser, story: str, dies: bool
) -> None:
    cells = [cell_of(story, *each) for each in product(range(1, WRITES[story] + 1), Moment)]
    await play_as(grid_user, all_kinds, cells, dies=dies, clears=True)


@pytest.mark.proof
async def test_kp4_two_leaders_at_once_give_no_address_of_an_in_cluster_pool_twice(
    all_kinds: KubeServer, grid_user: IpamUser
) -> None:
    """Both believe that they lead. An object's name is no lock here; the reservation in the pool is."""
    claims = 120
    async with AsyncExitStack() as stack:
        leaders = [await started_in(stack, all_kinds, grid_user) for _ in range(2)]
        await grid_user.pool("p", "10.0.0.1", f"10.0.0.{claims // 2}")
        async with witness(grid_user):
            await come_and_go(grid_user, claims, seed=1, kind=IN_CLUSTER)
            found = await grid_user.until_settled(*leaders)
        await grid_user.delete_all(IN_CLUSTER.claim, IN_CLUSTER_POOL)
        await grid_user.until_gone(*leaders)

    assert len(found.claims) == len(found.addresses) == claims // 2
