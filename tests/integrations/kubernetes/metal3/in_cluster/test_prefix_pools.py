"""Pools of prefixes: what lies inside of a prefix is no other one, whoever names it, and by whichever way (KD18).

The passes run over objects in memory; ``test_in_cluster_pools`` has the real server.
"""

import pytest

from tenure.integrations.kubernetes.metal3.objects.in_cluster_spec import read_prefix_pool
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import (
    CLUSTER_API_ADDRESS,
    CLUSTER_API_CLAIM,
    OWN_ADDRESS,
    PREFIX_POOL,
    WISHED_ADDRESS,
)
from tenure.integrations.kubernetes.metal3.objects.pool_kind import PoolId
from tenure.integrations.kubernetes.runtime.resource_types import Object, key_of
from tenure.kernel.addressing.addresses import parse_address
from tests.integrations.kubernetes.metal3.admission.admission_requests import View, an_object, errors
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_passes import InClusterStage
from tests.integrations.kubernetes.metal3.pass_stage import NAMESPACE

pytestmark = pytest.mark.usefixtures("skipped_time")


@pytest.mark.parametrize("mark", [WISHED_ADDRESS, OWN_ADDRESS])
@pytest.mark.parametrize("is_held", [True, False])
async def test_kd18_a_claim_that_names_an_address_inside_of_a_prefix_gets_none(mark: str, is_held: bool) -> None:
    """Held by another claim or not: what it would get has another name than the prefix, and is the same one."""
    stage = InClusterStage(PREFIX_POOL)
    stage.make_pool("fd00::/62")
    if is_held:
        stage.ask("first", **{WISHED_ADDRESS: "fd00:0:0:2::"})
        await stage.settle()
    stage.ask("second", **{mark: "fd00:0:0:2::5"})
    await stage.settle()

    assert stage.given() == ({"first": "fd00:0:0:2::"} if is_held else {})
    assert stage.said("second").endswith("fd00:0:0:2::5 is inside of fd00:0:0:2::/64, which is given as a whole")


async def test_kd18_the_same_prefix_is_never_given_while_an_address_inside_of_it_is_held() -> None:
    """Somebody made the object by hand, before there were webhooks."""
    stage = InClusterStage(PREFIX_POOL)
    stage.make_pool("fd00::/63")
    stage.by_hand("x", "fd00::5", "nobody", prefix=64)
    stage.ask("wishes", **{WISHED_ADDRESS: "fd00::"})
    stage.ask("any")
    stage.ask("late")
    await stage.settle()

    assert stage.given() == {"x": "fd00::5", "any": "fd00:0:0:1::"}
    assert stage.said("wishes") == "Requested IP not available"
    assert stage.said("late") == "Exhausted IP Pools"


async def test_kd18_webhooks_find_the_object_that_holds_the_prefix_around_an_address() -> None:
    stage = InClusterStage(PREFIX_POOL)
    stage.make_pool("fd00::/62")
    stage.by_hand("x", "fd00:0:0:1::5", "nobody", prefix=64)
    pool = PoolId(NAMESPACE, "p", PREFIX_POOL.kind)

    for asked, holders in (("fd00:0:0:1::", ["x"]), ("fd00:0:0:1:ffff::", ["x"]), ("fd00:0:0:2::", [])):
        found = stage.caches.records.addresses_at(pool, parse_address(asked))
        assert [key_of(each)[1] for each in found] == holders


async def test_kd18_a_claim_that_asks_for_an_address_inside_of_a_prefix_is_refused_by_the_webhook() -> None:
    """What it names as its own is not judged: a claim that is moved must arrive."""
    spec = read_prefix_pool({"prefixes": ["fd00::/62"]}).spec
    view = View(specs={PoolId(NAMESPACE, "p", PREFIX_POOL.kind): spec})
    reference = {"apiGroup": PREFIX_POOL.group, "kind": PREFIX_POOL.kind, "name": "p"}

    def asking(mark: str, address: str) -> Object:
        return an_object(CLUSTER_API_CLAIM, "c", {"poolRef": reference}, annotations={mark: address})

    refused = asking(WISHED_ADDRESS, "fd00:0:0:2::5")
    assert "metadata.annotations.ipAddress" in (said := await errors(refused, view=view))
    assert said.endswith("is inside of fd00:0:0:2::/64")
    assert await errors(refused, refused, view=view) == "", "it was there before, and may be cleaned up"
    for mark, address in ((WISHED_ADDRESS, "fd00:0:0:2::"), (OWN_ADDRESS, "fd00:0:0:2::5")):
        assert await errors(asking(mark, address), view=view) == ""


@pytest.mark.parametrize("length", [64, 128])
async def test_kd18_nothing_inside_of_a_larger_prefix_that_was_made_by_hand_is_given(length: int) -> None:
    """No webhook was asked: it refuses such an object."""
    stage = InClusterStage(PREFIX_POOL)
    stage.make_pool(f"fd00::/{length - 3}", allocationPrefixLength=length)
    stage.by_hand("wide", "fd00::", "nobody", prefix=length - 2)
    for number in range(5):
        stage.ask(f"c{number}")
    await stage.settle()
    given = {parse_address(each) for name, each in stage.given().items() if name != "wide"}
    first, unit = parse_address("fd00::"), 1 << (128 - length)
    assert given == {first + number * unit for number in range(4, 8)}
    assert stage.said("c4") == "Exhausted IP Pools"

    stage.remove(CLUSTER_API_ADDRESS, "wide")
    await stage.settle()
    assert stage.given()["c4"] == "fd00::"


@pytest.mark.parametrize("length", [64, 128])
async def test_kd18_a_prefix_whose_object_went_by_force_is_not_made_again_within_a_larger_one(length: int) -> None:
    stage = InClusterStage(PREFIX_POOL)
    stage.make_pool(f"fd00::/{length - 3}", allocationPrefixLength=length)
    for name in ("a", "b"):
        stage.ask(name)
    await stage.settle()
    lost = stage.given()["b"]
    stage.by_hand("wide", "fd00::", "nobody", prefix=length - 2)
    stage.remove(CLUSTER_API_ADDRESS, "b")
    await stage.settle()

    assert set(stage.given()) == {"wide", "a"}
    assert stage.said("b") == f"Address {lost} is held by IPAddressClaim nobody (IPAddress wide)"

    stage.remove(CLUSTER_API_ADDRESS, "wide")
    await stage.settle()
    assert stage.given()["b"] == lost


@pytest.mark.parametrize("length", [64, 128])
async def test_kd18_an_object_of_another_length_is_refused_also_where_a_claim_gets_a_single_address(
    length: int,
) -> None:
    spec = read_prefix_pool({"prefixes": [f"fd00::/{length - 3}"], "allocationPrefixLength": length}).spec
    view = View(specs={PoolId(NAMESPACE, "p", PREFIX_POOL.kind): spec})
    reference = {"apiGroup": PREFIX_POOL.group, "kind": PREFIX_POOL.kind, "name": "p"}

    async def said(prefix: int) -> str:
        by_hand = {"address": "fd00::", "prefix": prefix, "poolRef": reference, "claimRef": {"name": "x"}}
        return await errors(an_object(CLUSTER_API_ADDRESS, "x", by_hand), view=view)

    assert await said(length) == ""
    assert f"prefixes of length {length}, and no others" in await said(length - 2)
