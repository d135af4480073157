"""A pool on a real API server: the published cases, by number."""

import asyncio
import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
from tenure.integrations.vmpool.config_map_swap import NOTES_KEY, STATE_KEY
from tenure.integrations.vmpool.pool_errors import (
    NodeNameUnknown,
    PoolStateUnreadable,
    PoolUnavailable,
    VMPoolExhausted,
)
from tenure.integrations.vmpool.state.pool_notes import read_notes
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tenure.integrations.vmpool.state.state_repair import RepairKind
from tenure.kernel.errors import Invalid
from tests.integrations.vmpool.pool_stage import SIX, TWO, PoolStage, entry, loses_answers, refuses, state_with

THREE = ("10.0.0.3", "10.0.0.1", "10.0.0.2")
FIVE = tuple(f"10.0.0.{last}" for last in range(1, 6))


async def counts(pool: AsyncVMPool) -> tuple[int, int, int]:
    status = await pool.status()
    return status.total, status.available, status.in_use


def stored_ips(stage: PoolStage) -> dict[str, str]:
    return {key: each["ip"] for key, each in stage.state()["allocatedIPs"].items()}


async def test_case_1_a_client_is_needed(stage: PoolStage) -> None:
    with pytest.raises(Invalid, match=r"^kubernetes client cannot be nil$"):
        AsyncVMPool(None, stage.settings())


async def test_case_2_settings_are_needed(stage: PoolStage) -> None:
    client = await stage.client()
    with pytest.raises(Invalid, match=r"^configuration cannot be nil$"):
        AsyncVMPool(client, None)


async def test_case_5_a_pool_is_opened_without_a_request(stage: PoolStage) -> None:
    client = await stage.client()
    AsyncVMPool(client, stage.settings())

    assert client.sent == []


async def test_case_7_the_first_allocation_creates_the_config_map(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    found = await pool.allocate("test-allocation-1", "pod", "ns")

    assert found.ip == "192.168.1.10"
    assert await counts(pool) == (2, 1, 1)


async def test_case_8_what_the_first_write_looks_like(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    before = datetime.now(UTC).replace(microsecond=0)
    found = await pool.allocate("test-allocation-1", "pod", "ns")
    object = stage.object()

    assert object["metadata"]["labels"] == {
        "app.kubernetes.io/name": "cloud-api-adaptor", "app.kubernetes.io/component": "byom-ip-pool-state",
    }  # fmt: skip
    written = found.allocated_at
    assert written is not None
    assert before <= written <= datetime.now(UTC)
    at = written.strftime("%Y-%m-%dT%H:%M:%SZ")
    updated = stage.state()["lastUpdated"]
    assert (
        object["data"][STATE_KEY]
        == f"""{{
  "allocatedIPs": {{
    "test-allocation-1": {{
      "allocationID": "test-allocation-1",
      "ip": "192.168.1.10",
      "nodeName": "node-1",
      "podName": "pod",
      "podNamespace": "ns",
      "allocatedAt": "{at}"
    }}
  }},
  "availableIPs": [
    "192.168.1.11"
  ],
  "lastUpdated": "{updated}",
  "version": 2
}}"""
    )


async def test_case_9_an_id_gets_its_vm_again_without_a_write(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    first = await pool.allocate("a", "pod")
    version = stage.version()
    again = await pool.allocate("a", "another-pod")

    assert (again, stage.version()) == (first, version)


async def test_case_11_the_sequence_of_the_go_run(stage: PoolStage) -> None:
    pool = await stage.pool(*SIX)
    ips = [(await pool.allocate(f"pod-{number}")).ip for number in range(1, 6)]

    assert [ip.rpartition(".")[2] for ip in ips] == ["13", "12", "11", "15", "10"]


async def test_case_12_the_second_sequence_of_the_go_run(stage: PoolStage) -> None:
    pool = await stage.pool(*THREE)
    ips = [(await pool.allocate(f"pod-{number}")).ip for number in range(1, 4)]
    version = stage.version()
    with pytest.raises(VMPoolExhausted, match=r"^no available IPs in pool$") as caught:
        await pool.allocate("pod-4")
    assert caught.value.in_use == 3
    assert stage.version() == version
    assert [await pool.deallocate("pod-2"), await pool.deallocate("pod-1")] == [True, True]

    assert ips == ["10.0.0.3", "10.0.0.2", "10.0.0.1"]
    assert stage.state()["availableIPs"] == ["10.0.0.2", "10.0.0.3"]
    assert stage.state()["version"] == 6


async def test_case_15_an_entry_says_who_where_and_when(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO, node_name="node-7")
    await pool.allocate("a", "web-0", "shop")
    [stored] = stage.state()["allocatedIPs"].values()

    at = stored.pop("allocatedAt")
    assert datetime.fromisoformat(at).tzinfo is not None
    assert at.endswith("Z")
    assert stored == {
        "allocationID": "a", "ip": stored["ip"], "nodeName": "node-7", "podName": "web-0", "podNamespace": "shop",
    }  # fmt: skip


async def test_case_16_every_write_counts_the_version_up(stage: PoolStage) -> None:
    stage.put(state_with(list(TWO), version=41))
    pool = await stage.pool(*TWO)
    await pool.allocate("a")
    first = stage.state()
    await pool.deallocate("a")

    assert (first["version"], stage.state()["version"]) == (42, 43)
    assert "2026-01-02T03:04:05Z" < first["lastUpdated"] <= stage.state()["lastUpdated"]


async def test_case_23_a_create_that_fails_allocates_nothing(stage: PoolStage) -> None:
    client = await stage.client()
    client.trouble = refuses(500, "InternalError", "etcdserver: no leader", on="create")
    pool = await stage.pool(*TWO, client=client, max_retries=2)
    with pytest.raises(PoolUnavailable, match="500 InternalError: etcdserver: no leader"):
        await pool.allocate("a")

    assert stage.object() is None


async def test_case_27_a_release_gives_the_address_back(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    await pool.allocate("a")

    assert await pool.deallocate("a") is True
    assert await counts(pool) == (2, 2, 0)


async def test_case_29_an_unknown_id_is_no_error_and_no_write(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    assert await pool.deallocate("a") is False
    assert stage.object() is None
    await pool.allocate("a")
    version = stage.version()
    assert await pool.deallocate("b") is False

    assert stage.version() == version


async def test_case_31_a_vm_is_released_by_its_ip(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    found = await pool.allocate("a")

    assert await pool.deallocate_ip(found.ip) is True
    assert await pool.get("a") is None


async def test_case_32_an_unknown_ip_is_no_error_and_no_write(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    await pool.allocate("a")
    version = stage.version()

    assert await pool.deallocate_ip("10.9.9.9") is False
    assert stage.version() == version


async def test_case_33_an_address_is_found_in_every_spelling(stage: PoolStage) -> None:
    pool = await stage.pool("2001:DB8::1")
    await pool.allocate("a")
    for spelling in ("2001:db8::1", "2001:DB8:0:0:0:0:0:1"):
        found = await pool.find_ip(spelling)
        assert found is not None
        assert found.allocation_id == "a"

    assert stored_ips(stage) == {"a": "2001:db8::1"}
    assert await pool.deallocate_ip("2001:DB8::0001") is True


async def test_case_33_what_a_go_manager_wrote_in_another_spelling_is_found_too(stage: PoolStage) -> None:
    stage.put(state_with(["2001:DB8::2"], entry("a", "2001:DB8::1")))
    pool = await stage.pool("2001:db8::1", "2001:db8::2")

    assert await pool.deallocate_ip("2001:db8::1") is True
    assert stage.state()["availableIPs"] == ["2001:db8::2", "2001:db8::1"]


async def test_case_35_without_a_config_map_everything_is_free_and_nothing_is_created(stage: PoolStage) -> None:
    pool = await stage.pool(*FIVE)
    status = await pool.status()

    assert (status.total, status.available, status.in_use, status.is_there) == (5, 5, 0, False)
    assert (await pool.list(), await pool.get("a"), await pool.find_ip("10.0.0.1")) == ([], None, None)
    assert stage.object() is None


async def test_case_36_status_counts_what_is_in_use(stage: PoolStage) -> None:
    pool = await stage.pool(*THREE)
    await pool.allocate("a")

    assert await counts(pool) == (3, 2, 1)


async def test_case_37_an_allocation_outside_the_pool_is_counted_and_shown(stage: PoolStage) -> None:
    stage.put(state_with(list(THREE), entry("x", "10.9.9.9")))
    pool = await stage.pool(*THREE)
    status = await pool.status()

    assert (status.total, status.available, status.in_use, status.pool_size) == (4, 3, 1, 3)
    assert status.draining == ("10.9.9.9",)


async def test_case_38_get_answers_by_id(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    found = await pool.allocate("a", "web-0", "shop")

    assert (await pool.get("a"), await pool.get("b")) == (found, None)


async def test_case_38_the_key_of_an_entry_counts_and_not_what_it_says(stage: PoolStage) -> None:
    state = state_with([TWO[1]], entry("a", TWO[0]))
    state["allocatedIPs"]["a"]["allocationID"] = "other"
    stage.put(state)
    pool = await stage.pool(*TWO)
    found = await pool.get("a")

    assert found is not None
    assert (found.allocation_id, [each.allocation_id for each in await pool.list()]) == ("a", ["a"])


async def test_case_39_a_list_is_a_copy(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    for id in ("b", "a"):
        await pool.allocate(id)
    found = await pool.list()
    assert [each.allocation_id for each in found] == ["a", "b"]
    found.clear()

    assert len(await pool.list()) == 2


@pytest.mark.usefixtures("nameless")
async def test_case_51_without_a_node_name_nothing_is_allocated(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO, node_name="")
    with pytest.raises(NodeNameUnknown, match=r"^unable to determine node name: "):
        await pool.allocate("a")

    assert stage.object() is None
    assert await pool.deallocate("a") is False


async def test_a_node_name_is_found_when_it_is_needed(stage: PoolStage) -> None:
    pool = AsyncVMPool(await stage.client(), stage.settings(node_name=""), find_node_name=lambda: "found-node")

    assert (await pool.allocate("a")).node_name == "found-node"


@pytest.mark.parametrize("text", ["{broken", "", '{"version": "3"}', "[]", '{"allocatedIPs": {"a": {"ip": 5}}}'])
async def test_case_60_a_state_that_cannot_be_read_is_refused_and_stays(stage: PoolStage, text: str) -> None:
    stage.put(text)
    pool = await stage.pool(*TWO)
    before = stage.object()
    for call in (pool.allocate("a"), pool.deallocate("a"), pool.status(), pool.repair(), pool.verify()):
        with pytest.raises(PoolStateUnreadable, match=r"^failed to retrieve pool state: failed to unmarshal"):
            await call

    assert stage.object() == before


async def test_case_61_vd5_an_operator_replaces_a_broken_state_and_a_copy_is_kept(stage: PoolStage) -> None:
    stage.put("{broken", other="kept")
    pool = await stage.pool(*TWO)
    report = await pool.repair(replace_unreadable=True)

    assert report.copy.startswith("byom-ip-pool-state-broken-20")
    assert stage.object(report.copy)["data"] == {STATE_KEY: "{broken"}
    assert stage.object()["data"]["other"] == "kept"
    assert stage.state()["availableIPs"] == list(TWO)
    assert (await pool.allocate("a")).ip in TWO


async def test_vd5_a_state_that_can_be_read_is_not_replaced(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    await pool.allocate("a")
    report = await pool.repair(replace_unreadable=True)

    assert (report.copy, report.is_written, len(await pool.list())) == ("", False, 1)


async def test_a_state_among_the_binary_values_is_refused(stage: PoolStage) -> None:
    """It would count as absent, and a write of ours would be refused by the server."""
    stage.put_object({"binaryData": {STATE_KEY: base64.b64encode(b"{}").decode()}})
    pool = await stage.pool(*TWO)
    with pytest.raises(PoolStateUnreadable, match="binaryData"):
        await pool.allocate("a")


async def test_a_read_that_fails_never_begins_a_state_anew(stage: PoolStage) -> None:
    """A Go manager wiped its pool when one read at its start failed."""
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client, max_retries=2)
    await pool.allocate("a")
    before = stage.object()
    client.trouble = refuses(504, "ServerTimeout", "the server is busy", on="get")
    for call in (pool.allocate("b"), pool.repair(), pool.status(), pool.deallocate("a")):
        with pytest.raises(PoolUnavailable, match="failed to retrieve the pool state configmap: 504 ServerTimeout"):
            await call

    assert stage.object() == before


async def test_a_read_that_fails_once_is_repeated(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    client.trouble = refuses(504, "ServerTimeout", "busy", on="get", times=1)
    assert (await pool.allocate("a")).ip in TWO
    client.trouble = refuses(504, "ServerTimeout", "busy", on="get", times=1)

    assert len(await pool.list()) == 1


async def test_a_404_that_is_not_the_api_servers_is_no_missing_config_map(stage: PoolStage) -> None:
    client = await stage.client()
    client.trouble = refuses(404, "", "page not found", on="get")
    pool = await stage.pool(*TWO, client=client)
    with pytest.raises(Exception, match="404") as caught:
        await pool.allocate("a")

    assert "page not found" in str(caught.value)
    assert stage.object() is None


async def test_case_64_a_config_map_without_data_works_and_all_else_in_it_stays(stage: PoolStage) -> None:
    stage.put_object({"metadata": {"labels": {"mine": "1"}, "annotations": {"note": "x"}}})
    pool = await stage.pool(*TWO)
    await pool.allocate("a")
    object = stage.object()

    assert object["metadata"]["labels"] == {"mine": "1"}
    assert object["metadata"]["annotations"] == {"note": "x"}
    assert sorted(object["data"]) == [STATE_KEY, NOTES_KEY]


async def test_case_64_other_values_stay(stage: PoolStage) -> None:
    binary = base64.b64encode(b"\x00\xff").decode()
    stage.put_object({"data": {"theirs": "text"}, "binaryData": {"blob": binary}})
    pool = await stage.pool(*TWO)
    await pool.allocate("a")

    assert stage.object()["data"]["theirs"] == "text"
    assert stage.object()["binaryData"] == {"blob": binary}


async def test_case_65_unknown_fields_survive_a_write(stage: PoolStage) -> None:
    strange = {**entry("a", TWO[0]), "rank": 1.5}
    del strange["podNamespace"]
    stage.put({**state_with([TWO[1]], strange), "extra": {"deep": [None, "x"]}})
    pool = await stage.pool(*TWO)
    await pool.allocate("b")

    assert stage.state()["extra"] == {"deep": [None, "x"]}
    assert stage.state()["allocatedIPs"]["a"]["rank"] == 1.5
    assert stage.state()["allocatedIPs"]["a"]["podNamespace"] == ""


async def test_case_65_another_case_of_names_is_read(stage: PoolStage) -> None:
    state = state_with([TWO[1]], entry("a", TWO[0]))
    stage.put({name.upper(): value for name, value in state.items()})
    pool = await stage.pool(*TWO)

    assert (await pool.allocate("a")).ip == TWO[0]
    assert await counts(pool) == (2, 1, 1)


async def test_allocated_null_is_nothing_allocated(stage: PoolStage) -> None:
    """The next allocation of a Go manager panics on it."""
    stage.put({"allocatedIPs": None, "availableIPs": list(TWO), "lastUpdated": None, "version": 1})
    pool = await stage.pool(*TWO)

    assert (await pool.allocate("a")).ip in TWO


REPAIRS: dict[str, tuple[dict[str, Any], tuple[int, int, int], list[RepairKind]]] = {
    "case 53": (
        state_with(["10.0.0.2", "10.0.0.2", "10.0.0.3"], entry("a", "10.0.0.1"), entry("x", "10.9.9.9")),
        (4, 2, 2),
        [RepairKind.OUTSIDE_POOL, RepairKind.DUPLICATE],
    ),
    "case 55": (state_with([], entry("a", "10.0.0.1")), (3, 2, 1), [RepairKind.MISSING] * 2),
    "case 57": (state_with(list(THREE), entry("a", "10.0.0.1")), (3, 2, 1), [RepairKind.DUPLICATE]),
    "one swapped for another": (
        state_with(["10.0.0.2", "10.9.9.9"], entry("a", "10.0.0.1")),
        (3, 2, 1),
        [RepairKind.UNKNOWN, RepairKind.MISSING],
    ),
    "two ids on one": (
        state_with(["10.0.0.2", "10.0.0.3"], entry("a", "10.0.0.1"), entry("b", "10.0.0.1", at="2025-01-01T00:00:00Z")),
        (3, 2, 1),
        [RepairKind.DOUBLE_ALLOCATED],
    ),
    "junk": (state_with(list(THREE), entry("a", "junk")), (3, 3, 0), [RepairKind.INVALID]),
}


@pytest.mark.parametrize("name", REPAIRS)
async def test_cases_53_to_57_a_repair_puts_a_state_right_once(stage: PoolStage, name: str) -> None:
    state, after, kinds = REPAIRS[name]
    stage.put(state)
    pool = await stage.pool(*THREE)
    assert [each.kind for each in await pool.verify()] == kinds
    report = await pool.repair()

    assert ([each.kind for each in report.findings], report.is_written) == (kinds, True)
    assert await counts(pool) == after
    version = stage.version()
    assert (await pool.repair()).is_written is False
    assert stage.version() == version


async def test_case_52_by_the_rules_of_the_seed_what_is_outside_the_pool_goes(stage: PoolStage) -> None:
    stage.put(REPAIRS["case 53"][0])
    pool = await stage.pool(*THREE)
    await pool.repair(outside_pool="drop")

    assert await counts(pool) == (3, 2, 1)
    assert list(stored_ips(stage)) == ["a"]


async def test_case_54_a_pool_that_got_smaller_keeps_its_allocations(stage: PoolStage) -> None:
    before = state_with(["10.0.0.3", "10.0.0.4"], entry("a", "10.0.0.1"), entry("b", "10.0.0.2"))
    stage.put(before)
    pool = await stage.pool("10.0.0.1", "10.0.0.3")
    await pool.repair()

    assert stage.state()["availableIPs"] == ["10.0.0.3"]
    assert sorted(stored_ips(stage)) == ["a", "b"]
    assert list(stage.notes()["draining"]) == ["10.0.0.2"]
    await pool.deallocate("b")
    assert stage.state()["availableIPs"] == ["10.0.0.3"]
    assert "draining" not in stage.notes()


async def test_case_59_a_consistent_state_is_never_written(stage: PoolStage) -> None:
    stage.put(state_with(["10.0.0.2", "10.0.0.3"], entry("a", "10.0.0.1")))
    pool = await stage.pool(*THREE)
    version = stage.version()
    for _ in range(2):
        report = await pool.repair()
        assert (report.findings, report.is_written) == ((), False)

    assert stage.version() == version


async def test_a_repair_names_its_rule(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    with pytest.raises(Invalid) as caught:
        await pool.repair(outside_pool="maybe")  # type: ignore[arg-type]

    assert caught.value.field == "outside_pool"


async def test_an_allocation_repairs_in_the_same_write(stage: PoolStage) -> None:
    """An address that two kinds of rubbish would have given out twice is not given out."""
    stage.put(state_with(["10.0.0.1", "10.9.9.9"], entry("a", "10.0.0.1")))
    pool = await stage.pool(*THREE)
    found = await pool.allocate("b")

    assert found.ip in ("10.0.0.2", "10.0.0.3")
    assert stage.state()["version"] == 6
    assert (await pool.repair()).is_written is False


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("",), "allocation_id"),
        (("x" * 600,), "allocation_id"),
        (("a\x00",), "allocation_id"),
        (("a", "Pod_1"), "pod_name"),
        (("a", "pod", "Name.Space"), "pod_namespace"),
        ((None,), "allocation_id"),
    ],
)
async def test_wrong_words_are_refused_before_anything_is_asked(
    stage: PoolStage, words: tuple[Any, ...], field: str
) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    with pytest.raises(Invalid) as caught:
        await pool.allocate(*words)

    assert (caught.value.field, client.sent) == (field, [])


async def test_an_entry_that_a_go_manager_made_under_the_empty_id_is_released_by_its_ip(stage: PoolStage) -> None:
    stage.put(state_with([TWO[1]], entry("", TWO[0])))
    pool = await stage.pool(*TWO)
    assert [each.ip for each in await pool.list()] == [TWO[0]]
    for call in (pool.get(""), pool.deallocate("")):
        with pytest.raises(Invalid, match="must not be empty"):
            await call

    assert await pool.deallocate_ip(TWO[0]) is True
    assert await counts(pool) == (2, 2, 0)


@pytest.mark.parametrize("id", ["α-pod-β", "日本 😀", "a/b", "x" * 512, "<&>", "e\u0301"])
async def test_unusual_ids_are_stored_and_found_as_they_are(stage: PoolStage, id: str) -> None:
    pool = await stage.pool(*TWO)
    found = await pool.allocate(id)

    assert list(stage.state()["allocatedIPs"]) == [id]
    assert await pool.get(id) == found
    assert await pool.deallocate(id) is True


async def test_ids_that_differ_in_case_or_composition_only_are_different(stage: PoolStage) -> None:
    pool = await stage.pool(*SIX)
    ips = {(await pool.allocate(id)).ip for id in ("pod", "POD", "Pod", "\xe9", "e\u0301")}

    assert len(ips) == 5


async def test_the_history_is_a_value_of_its_own_that_says_who_did_what(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO, history=3)
    for id in ("a", "b"):
        await pool.allocate(id)
        await pool.deallocate(id)
    history = read_notes(stage.object()["data"][NOTES_KEY]).history

    assert [(line.did, line.allocation_id) for line in history] == [
        ("deallocate", "a"), ("allocate", "b"), ("deallocate", "b"),
    ]  # fmt: skip
    assert {line.node_name for line in history} == {"node-1"}


async def test_notes_that_cannot_be_read_stop_nothing_and_stay(stage: PoolStage) -> None:
    stage.put(state_with(list(TWO)), **{NOTES_KEY: "{broken"})
    pool = await stage.pool(*TWO)
    await pool.allocate("a")
    assert stage.object()["data"][NOTES_KEY] == "{broken"
    assert any("notes cannot be read" in warning for warning in (await pool.status()).warnings)
    report = await pool.repair(replace_unreadable=True)

    assert stage.object(report.copy)["data"][NOTES_KEY] == "{broken"
    assert [line["did"] for line in stage.notes()["history"]] == ["repair"]
    assert list(stored_ips(stage)) == ["a"]


async def test_vs5_a_large_pool_is_a_warning_in_status(stage: PoolStage) -> None:
    pool = await stage.pool(*[f"10.0.{number >> 8}.{number & 255}" for number in range(1001)])

    assert any("1001 addresses" in warning for warning in (await pool.status()).warnings)


async def test_costs_of_every_operation_in_requests(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)

    async def cost(call: Any) -> list[str]:
        client.sent.clear()
        await call
        return list(client.sent)

    assert await cost(pool.allocate("a")) == ["get", "create"]
    assert await cost(pool.allocate("b")) == ["get", "replace"]
    assert await cost(pool.allocate("b")) == ["get"]
    assert await cost(pool.deallocate("b")) == ["get", "replace"]
    assert await cost(pool.deallocate("b")) == ["get"]
    for call in (pool.get("a"), pool.find_ip("10.0.0.1"), pool.list(), pool.status(), pool.verify(), pool.repair()):
        assert await cost(call) == ["get"]
    assert await cost(asyncio.gather(*[pool.allocate("c"), pool.deallocate("a"), pool.allocate("d")])) == [
        "get",
        "replace",
    ]


async def test_vs1_a_lost_answer_of_the_first_write_is_settled_by_reading_again(stage: PoolStage) -> None:
    client = await stage.client()
    pool = await stage.pool(*TWO, client=client)
    client.trouble = loses_answers(on="create")
    found = await pool.allocate("a")

    assert stored_ips(stage) == {"a": found.ip}
    assert client.sent == ["get", "create", "get"]


async def test_reading_does_not_depend_on_the_order_of_entries(stage: PoolStage) -> None:
    pool = await stage.pool(*TWO)
    stage.put(json.dumps(state_with([], entry("b", TWO[1]), entry("a", TWO[0])), indent=None))

    assert [type(each) for each in await pool.list()] == [VMAllocation, VMAllocation]
