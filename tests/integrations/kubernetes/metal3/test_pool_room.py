"""A pool stays as small as a server stores it, however long the names of its claims are; passes over objects."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from tenure.integrations.kubernetes.metal3.objects.cooling_addresses import MOST_COOLING
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_CLAIM, IP_POOL, POOL_FINALIZER, STORED_INDEXES
from tenure.integrations.kubernetes.metal3.objects.remembered_addresses import MOST_REMEMBERED
from tenure.integrations.kubernetes.metal3.pool_room import STORED_BYTES, bytes_of, bytes_of_indexes, room_of
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.kernel.addressing.addresses import format_address, parse_address
from tests.integrations.kubernetes.metal3.pass_stage import POOL, Stage

pytestmark = pytest.mark.usefixtures("skipped_time")

SERVER_STORES = 1536 * 1024
SPEC: dict[str, Any] = {
    "namePrefix": "p", "pools": [{"subnet": "10.0.0.0/16"}], "tenure": {"coolingSeconds": 31_536_000, "sticky": True},
}  # fmt: skip


def entries(count: int, first: str, letters: int, **more: str) -> list[Object]:
    """Return entries of a list, with names of claims of so many letters."""
    addresses = (format_address(parse_address(first) + number) for number in range(count))
    names = (f"{number:x<{letters}}" for number in range(count))
    return [
        {"address": each, "claim": f"team/{name}", "kind": "IPClaim", **more}
        for each, name in zip(addresses, names, strict=True)
    ]


def full_pool(stage: Stage, letters: int, **spec: Any) -> None:
    """Make a pool that lists as much as it may by number, and sees a claim come and another one go."""
    soon = datetime.now(UTC) + timedelta(days=1)
    cooling = entries(MOST_COOLING, "10.0.64.0", letters, until=soon.isoformat(timespec="seconds"))
    remembered = entries(MOST_REMEMBERED, "10.0.128.0", letters)
    stage.put(IP_POOL, "p", {**SPEC, **spec}, finalizers=[POOL_FINALIZER])
    stage.change(IP_POOL, "p", lambda pool: pool.update(status={"tenure": {"cooling": cooling}}))
    stage.change(IP_POOL, "p", lambda pool: pool["status"]["tenure"].update(remembered=remembered))
    shown = {f"{number:y<{letters}}": "10.0.255.255" for number in range(STORED_INDEXES - 2)}
    stage.caches.records.of(POOL).indexes.update(shown)


@pytest.mark.parametrize(("letters", "are_shown"), [(40, True), (120, True), (253, False)])
async def test_a_pool_of_long_names_gives_and_releases(letters: int, are_shown: bool) -> None:
    """What claims had that are gone is forgotten first, the oldest of it; what cools off goes on doing so."""
    stage = Stage()
    full_pool(stage, letters)
    stage.claim("a")
    await stage.settle()
    assert stage.status("a")["address"]["name"] == "p-10-0-0-1"
    stage.change(IP_CLAIM, "a", lambda claim: claim["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await stage.settle()

    status = stage.objects["ippools", "p"]["status"]
    assert stage.given() == {}
    assert len(orjson.dumps(stage.objects["ippools", "p"])) < STORED_BYTES + 10_000 < SERVER_STORES
    assert len(status.get("indexes") or ()) == (STORED_INDEXES - 2 if are_shown else 0)
    cooling, remembered = (status["tenure"][name] for name in ("cooling", "remembered"))
    assert (len(cooling), cooling[-1]["address"]) == (MOST_COOLING, "10.0.0.1")
    assert len(remembered) == MOST_REMEMBERED if letters == 40 else 300 < len(remembered) < MOST_REMEMBERED
    assert remembered[-1] == {"address": "10.0.0.1", "claim": "m3/a", "kind": "IPClaim"}


async def test_a_pool_that_its_users_have_filled_still_gives_and_releases() -> None:
    """Then what cools off is cut, and an event says so."""
    stage = Stage()
    full_pool(stage, 120, allocations={"x": "y" * 900_000})
    stage.claim("a")
    await stage.settle()
    stage.change(IP_CLAIM, "a", lambda claim: claim["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    await stage.settle()

    pool = stage.objects["ippools", "p"]
    assert stage.given() == {}
    assert len(orjson.dumps(pool)) < SERVER_STORES
    assert pool["status"].get("indexes", {}) == {}
    assert 1_000 < len(pool["status"]["tenure"]["cooling"]) < MOST_COOLING
    assert "CoolingCutShort" in stage.events


def test_of_a_definition_that_is_not_ours_indexes_take_room_twice_and_annotations_what_they_may() -> None:
    indexes, pool = {"c": "10.0.0.1"}, {"metadata": {"annotations": {"a": "b"}}, "spec": {"c": "d"}}

    assert bytes_of_indexes(indexes, is_cramped=False) == len('{"c":"10.0.0.1"}')
    assert bytes_of_indexes(indexes, is_cramped=True) == len('{"c":"10.0.0.1"}{"f:c":{}}')
    assert room_of(pool) == STORED_BYTES - 18
    assert room_of(pool, is_cramped=True) == STORED_BYTES - 256 * 1024 - 9


def test_what_is_too_deep_to_be_measured_leaves_no_room() -> None:
    deep: object = 1
    for _ in range(300):
        deep = [deep]

    assert (bytes_of(deep), room_of({"metadata": {}, "spec": deep}) <= 0) == (STORED_BYTES, True)
