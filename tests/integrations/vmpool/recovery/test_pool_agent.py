"""The agent of a node: it recovers once a boot, never because it was started again (VD3), and keeps at what failed."""

import asyncio
import json
import logging
import os
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tenure.integrations.vmpool import async_vm_pool
from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
from tenure.integrations.vmpool.machines.vm_cleanup import function_cleanup
from tenure.integrations.vmpool.machines.vm_return import FixedWait
from tenure.integrations.vmpool.node_identity import NodeIdentity
from tenure.integrations.vmpool.node_recovery import NodeNameTaken
from tenure.integrations.vmpool.pool_agent import AgentSettings, PoolAgent, started_agent
from tenure.integrations.vmpool.pool_errors import VMPoolExhausted
from tenure.integrations.vmpool.state.go_json import time_text
from tenure.integrations.vmpool.state.pool_state import VMAllocation
from tests.integrations.vmpool.recovery.recovery_stage import IPS, RecoveryStage, entry
from tests.integrations.vmpool.vms import until

NODE_INFO = (
    "machineID", "systemUUID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
    "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip
"""What the API server wants to know of a node beside its boot."""
BOOT_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def machine(boot: str = "boot-1", booted_at: datetime = BOOT_TIME, system: str = "") -> NodeIdentity:
    return NodeIdentity("node-1", boot, booted_at, system)


class Cleaned(list[str]):
    """A cleanup that notes the ids of VMs, and fails while it is told to."""

    fails = False

    async def __call__(self, allocation: VMAllocation) -> None:
        self.append(allocation.allocation_id)
        if self.fails:
            raise RuntimeError("no answer")

    def settings(self, **given: Any) -> AgentSettings:
        return AgentSettings(CleanupPlan(function_cleanup(self), FixedWait(0.0)), **given)


@asynccontextmanager
async def agent(
    stage: RecoveryStage, settings: AgentSettings, identity: NodeIdentity, client: type[ApiClient] = ApiClient
) -> AsyncIterator[PoolAgent]:
    """Start an agent that does a round when the test says so."""
    async with stage.pool(client=client, operation_timeout_s=5.0) as pool:
        yield PoolAgent(pool, settings, identity)


async def one_round(
    stage: RecoveryStage, settings: AgentSettings, identity: NodeIdentity, client: type[ApiClient] = ApiClient
) -> PoolAgent:
    """Let an agent that was started now do one round."""
    async with agent(stage, settings, identity, client) as started:
        await started.round(asyncio.Event())
        return started


async def test_vd3_a_node_is_recovered_once_a_boot_however_often_the_agent_is_started(stage: RecoveryStage) -> None:
    stage.put([entry("dead", "10.0.0.1")], IPS[1:])
    cleaned = Cleaned()
    first = await one_round(stage, cleaned.settings(), machine())
    stage.set_state({**stage.state(), "allocatedIPs": {"old": entry("old", "10.0.0.1")}, "availableIPs": IPS[1:]})
    for _ in range(3):
        later = await one_round(stage, cleaned.settings(), machine())
        assert (later.reports, later.not_ready) == ([], {})

    assert cleaned == ["dead"]
    assert [each.allocation_id for each in first.reports[0].released] == ["dead"]
    assert stage.notes()["nodes"]["node-1"]["recovered"] == "boot-1"
    assert list(stage.state()["allocatedIPs"]) == ["old"]


async def test_vd3_an_agent_that_comes_to_a_node_at_work_touches_no_living_vm(stage: RecoveryStage) -> None:
    """Nothing is noted of this boot yet, but what was allocated since cannot be dead because of it."""
    stage.put([entry("dead", "10.0.0.1"), entry("alive", "10.0.0.2", at="2026-01-01T00:00:00Z")], IPS[2:])
    cleaned = Cleaned()
    await one_round(stage, cleaned.settings(), machine())

    assert cleaned == ["dead"]
    assert list(stage.state()["allocatedIPs"]) == ["alive"]


async def test_vd3_the_next_boot_is_recovered_again(stage: RecoveryStage) -> None:
    stage.put([], IPS)
    cleaned = Cleaned()
    await one_round(stage, cleaned.settings(), machine(system="aa"))
    async with stage.pool() as pool:
        await pool.allocate("lived")
    await one_round(stage, cleaned.settings(), machine("boot-2", datetime.now(UTC) + timedelta(seconds=5), "aa"))

    assert cleaned == ["lived"]
    noted = stage.notes()["nodes"]["node-1"]
    assert (noted["bootID"], noted["earlierBoots"]) == ("boot-2", ["boot-1"])


async def test_vd3_an_agent_that_dies_in_the_middle_begins_again(stage: RecoveryStage) -> None:
    stage.put([entry("dead", "10.0.0.1")], IPS[1:])
    cleaned = Cleaned()
    plan = CleanupPlan(function_cleanup(cleaned), FixedWait(60))
    async with agent(stage, AgentSettings(plan), machine()) as dying:
        running = asyncio.create_task(dying.round(asyncio.Event()))
        await until(lambda: bool(cleaned))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert stage.fill() == (2, 1)
    await one_round(stage, cleaned.settings(), machine())

    assert cleaned == ["dead", "dead"]
    assert stage.fill() == (3, 0)


async def test_vd3_a_start_of_the_adaptor_counts_where_a_file_tells_of_it(stage: RecoveryStage, tmp_path: Path) -> None:
    stage.put([entry("dead", "10.0.0.1"), entry("alive", "10.0.0.2", at="2026-03-01T00:00:00Z")], IPS[2:])
    file, cleaned = tmp_path / "started", Cleaned()
    settings = cleaned.settings(adaptor_start_file=file)
    for at in (None, datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)):
        if at is not None:
            file.touch()
            os.utime(file, (at.timestamp(), at.timestamp()))
        await one_round(stage, settings, machine())
    assert cleaned == ["dead"]

    later = datetime(2026, 4, 1, tzinfo=UTC).timestamp()
    os.utime(file, (later, later))
    for _ in range(2):
        await one_round(stage, settings, machine())

    assert cleaned == ["dead", "alive"]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (machine(system="aa"), machine("boot-2", datetime(2030, 1, 1, tzinfo=UTC), "bb"), "the machine aa"),
        (machine(), machine("boot-2", BOOT_TIME), "is up since 2026-01-01"),
    ],
    ids=["hardware", "up all the time"],
)
async def test_vd3_two_nodes_of_one_name_are_refused_with_the_reason(
    stage: RecoveryStage, first: NodeIdentity, second: NodeIdentity, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    cleaned = Cleaned()
    await one_round(stage, cleaned.settings(), first)
    stage.set_state({**stage.state(), "allocatedIPs": {"a": entry("a", "10.0.0.1")}, "availableIPs": IPS[1:]})
    with caplog.at_level(logging.ERROR):
        refused = await one_round(stage, cleaned.settings(), second)

    assert reason in refused.not_ready["pool"]
    assert "node name 'node-1' is another machine's" in refused.not_ready["pool"]
    assert [each for each in caplog.messages if "IP allocation" in each and "node_name_taken" in each]
    assert (cleaned, list(stage.state()["allocatedIPs"])) == ([], ["a"])
    replaced = await one_round(stage, cleaned.settings(takes_over=True), second)
    assert (replaced.not_ready, cleaned) == ({}, ["a"])


async def test_vd3_a_machine_that_boots_under_the_name_of_one_that_runs_is_refused_before_it_touches_a_vm(
    stage: RecoveryStage,
) -> None:
    """Neither a node object nor the hardware tells them apart: the second asks, and the first objects."""
    cleaned, soon = Cleaned(), datetime.now(UTC) + timedelta(seconds=2)
    first, second = machine(), machine("boot-2", soon)
    await one_round(stage, cleaned.settings(), first)
    stage.set_state({**stage.state(), "allocatedIPs": {"alive": entry("alive", "10.0.0.1")}, "availableIPs": IPS[1:]})

    asking = await one_round(stage, cleaned.settings(), second)
    assert "it may object until" in asking.not_ready["node name"]
    running = await one_round(stage, cleaned.settings(), first)
    later = await one_round(stage, cleaned.settings(), second)

    assert running.not_ready == {}
    assert "runs (boot boot-1), and has objected to this one" in later.not_ready["pool"]
    assert (cleaned, list(stage.state()["allocatedIPs"])) == ([], ["alive"])
    taken = await one_round(stage, cleaned.settings(takes_over=True), second)
    assert (taken.not_ready, cleaned) == ({}, ["alive"])
    assert "is another machine's" in (await one_round(stage, cleaned.settings(), first)).not_ready["pool"]


async def test_vd3_a_machine_to_which_none_objects_has_the_name_after_a_while(stage: RecoveryStage) -> None:
    """Twice as long as the agent that was there before took from look to look, and a little more."""
    cleaned, soon = Cleaned(), datetime.now(UTC) + timedelta(seconds=2)
    await one_round(stage, cleaned.settings(every_s=7), machine())
    stage.set_state({**stage.state(), "allocatedIPs": {"dead": entry("dead", "10.0.0.1")}, "availableIPs": IPS[1:]})
    for _ in range(3):
        await one_round(stage, cleaned.settings(), machine("boot-2", soon))
    assert (cleaned, stage.notes()["nodes"]["node-1"]["claimant"]) == ([], "boot-2")
    asked = stage.notes()
    asked["nodes"]["node-1"]["claimedAt"] = time_text(datetime.now(UTC) - timedelta(seconds=2 * 7 + 10))
    patch = {"data": {"tenure-notes": json.dumps(asked)}}
    place = f"{stage.path}/byom-ip-pool-state"
    stage.kube.ask("PATCH", place, patch, content_type="application/merge-patch+json")
    served = await one_round(stage, cleaned.settings(), machine("boot-2", soon))

    assert (served.not_ready, cleaned) == ({}, ["dead"])
    noted = stage.notes()["nodes"]["node-1"]
    assert (noted["bootID"], "claimant" in noted, noted["earlierBoots"]) == ("boot-2", False, ["boot-1"])


async def test_vd3_the_first_of_two_notices_a_second_that_took_the_name_over(stage: RecoveryStage) -> None:
    cleaned, soon = Cleaned(), datetime.now(UTC) + timedelta(seconds=2)
    await one_round(stage, cleaned.settings(), machine())
    await one_round(stage, cleaned.settings(takes_over=True), machine("boot-2", soon))
    back = await one_round(stage, cleaned.settings(), machine("boot-1", soon + timedelta(days=1)))

    assert "both are running" in back.not_ready["pool"]


async def test_vd3_recover_itself_refuses_as_well(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1")], IPS[1:])
    await one_round(stage, AgentSettings(), machine("boot-of-another-machine", datetime.now(UTC)))
    async with stage.pool() as pool:
        with pytest.raises(NodeNameTaken):
            await pool.recover(mode="release")
        assert stage.fill() == (2, 1)
        await pool.recover(mode="release", node_name="node-1")

    assert stage.fill() == (3, 0)


async def test_vd3_recover_refuses_a_younger_machine_whose_name_an_agent_has(
    stage: RecoveryStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looks like that one, booted again; ``recover`` cannot wait for an objection, as an agent does."""
    younger = machine("boot-2", datetime.now(UTC) + timedelta(seconds=2))
    monkeypatch.setattr(async_vm_pool, "find_node_identity", lambda _: younger)
    await one_round(stage, AgentSettings(), machine())
    stage.set_state({**stage.state(), "allocatedIPs": {"alive": entry("alive", "10.0.0.1")}, "availableIPs": IPS[1:]})
    async with stage.pool() as pool:
        with pytest.raises(NodeNameTaken, match="an agent looked after it in another boot"):
            await pool.recover(mode="release")
        assert stage.fill() == (2, 1)
        await pool.recover(mode="release", takes_over=True)

    assert stage.fill() == (3, 0)


async def test_vd3_the_node_object_decides_who_has_the_name(stage: RecoveryStage) -> None:
    """The kubelet writes its boot there: another machine is refused, and one in new hardware is believed."""
    name, cleaned = f"node-{stage.namespace}", Cleaned()
    stage.put([entry("a", "10.0.0.1", node=name)], IPS[1:])
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    stage.kube.ask("POST", "/api/v1/nodes", node)
    status = {"status": {"nodeInfo": {**dict.fromkeys(NODE_INFO, "-"), "bootID": "boot-9"}}}
    kind = "application/merge-patch+json"
    stage.kube.ask("PATCH", f"/api/v1/nodes/{name}/status", status, content_type=kind)
    try:
        refused = await one_round(stage, cleaned.settings(), NodeIdentity(name, "boot-1", BOOT_TIME, "aa"))
        assert "NODE_NAME names another machine than this one" in refused.not_ready["pool"]
        assert cleaned == []
        await one_round(stage, AgentSettings(), NodeIdentity(name, "boot-9", BOOT_TIME, "aa"))
        patch = {"data": {"tenure-notes": json.dumps(stage.notes()).replace("boot-9", "boot-8").replace("aa", "bb")}}
        stage.kube.ask("PATCH", f"{stage.path}/byom-ip-pool-state", patch, content_type=kind)
        believed = await one_round(stage, cleaned.settings(), NodeIdentity(name, "boot-9", BOOT_TIME, "aa"))
    finally:
        stage.kube.ask("DELETE", f"/api/v1/nodes/{name}")

    assert (believed.not_ready, cleaned) == ({}, ["a"])


async def test_what_failed_is_tried_again_later_and_ever_more_rarely(stage: RecoveryStage) -> None:
    stage.put([entry("dead", "10.0.0.1")], IPS[1:])
    cleaned = Cleaned()
    cleaned.fails = True
    await one_round(stage, cleaned.settings(), machine())
    assert stage.notes()["cleanupFailed"]["10.0.0.1"]["tries"] == 1
    await one_round(stage, cleaned.settings(retry_s=3600), machine())
    assert len(cleaned) == 1, "it is not due yet"
    await one_round(stage, cleaned.settings(retry_s=0), machine())
    assert (len(cleaned), stage.notes()["cleanupFailed"]["10.0.0.1"]["tries"]) == (2, 2)
    cleaned.fails = False
    last = await one_round(stage, cleaned.settings(retry_s=0), machine())

    assert [each.allocation_id for each in last.reports[0].released] == ["dead"]
    assert stage.fill() == (3, 0)
    assert "cleanupFailed" not in stage.notes()


async def test_each_round_puts_the_state_right_and_writes_only_if_it_was_wrong(stage: RecoveryStage) -> None:
    stage.put([entry("a", "10.0.0.1", node="node-2")], ["10.0.0.2"])
    async with agent(stage, AgentSettings(), machine()) as looking:
        await looking.round(asyncio.Event())
        assert stage.fill() == (2, 1)
        before = stage.version()
        await looking.round(asyncio.Event())
        assert stage.version() == before
        stage.set_state({**stage.state(), "availableIPs": ["10.0.0.3", "10.0.0.3"]})
        await looking.round(asyncio.Event())

    assert sorted(stage.state()["availableIPs"]) == ["10.0.0.2", "10.0.0.3"]


async def test_notes_that_cannot_be_read_stop_the_agent_and_nobody_else(stage: RecoveryStage) -> None:
    state = {"allocatedIPs": {"dead": entry("dead", "10.0.0.1")}, "availableIPs": IPS[1:], "version": 1}
    stage.put_text(json.dumps(state), notes="{")
    cleaned = Cleaned()
    stopped = await one_round(stage, cleaned.settings(), machine())
    async with stage.pool() as pool:
        await pool.allocate("a")

    assert "notes cannot be read" in stopped.not_ready["pool"]
    assert (cleaned, stage.fill()) == ([], (1, 2))


@pytest.mark.parametrize("year", ["0001-01-02", "9999-12-31"])
async def test_a_time_of_another_age_in_the_notes_does_not_end_the_agent(stage: RecoveryStage, year: str) -> None:
    at = f"{year}T23:59:59Z"
    state = {"allocatedIPs": {"dead": entry("dead", "10.0.0.1", at=at)}, "availableIPs": IPS[1:], "version": 1}
    notes = {
        "history": [{"at": at, "did": "allocate", "id": "dead", "ip": "10.0.0.1", "node": "node-1"}],
        "cleanupFailed": {"10.0.0.1": {"id": "dead", "cause": "x", "at": at, "tries": 10**18}},
        "draining": {"10.9.9.9": at},
        "nodes": {
            "node-1": {"bootID": "boot-1", "seenAt": at, "recovered": "boot-1", "claimant": "b", "claimedAt": at}
        },
    }
    stage.put_text(json.dumps(state), notes=json.dumps(notes))
    cleaned = Cleaned()
    looked = await one_round(stage, cleaned.settings(), machine())

    assert looked.not_ready == {}
    assert cleaned == ["dead"], "a failure of the far future is due as well: the clock was wrong"


async def test_an_error_that_none_foresaw_is_said_and_the_next_round_comes(
    stage: RecoveryStage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with agent(stage, AgentSettings(), machine()) as looking:
        with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
            patched.setattr(looking.pool, "repair", lambda: 1 // 0)
            for _ in range(2):
                await looking.round(asyncio.Event())
            assert "ZeroDivisionError" in looking.not_ready["pool"]
            assert sum("ZeroDivisionError" in each for each in caplog.messages) == 1
        await looking.round(asyncio.Event())

        assert looking.not_ready == {}


async def test_a_start_file_that_tells_of_no_time_is_named(stage: RecoveryStage, tmp_path: Path) -> None:
    file = tmp_path / "started"
    file.touch()
    # Not a time that no calendar has: some file systems cut such times to one that it has.
    looked = await one_round(stage, AgentSettings(adaptor_start_file=file / "below-a-file"), machine())

    assert looked.not_ready["pool"].startswith("adaptor_start_file: ")


class Shaky(ApiClient):
    """A client that every other read fails for."""

    reads = 0

    async def _ask(self, method: str, path: str, *words: Any, **named: Any) -> Object:
        Shaky.reads += method == "GET"
        if method == "GET" and Shaky.reads % 2:
            raise ApiError(503, "ServiceUnavailable", "not now")
        return await super()._ask(method, path, *words, **named)


async def test_a_server_in_trouble_is_asked_again_and_nothing_is_lost(stage: RecoveryStage) -> None:
    stage.put([entry("dead", "10.0.0.1")], IPS[1:])
    cleaned = Cleaned()
    async with agent(stage, cleaned.settings(), machine(), Shaky) as patient:
        for _ in range(20):
            await patient.round(asyncio.Event())
            if stage.fill() == (3, 0):
                break

    assert cleaned.count("dead") >= 1
    assert stage.fill() == (3, 0)


def fetch(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_it_runs_until_it_is_stopped_and_serves_its_numbers(stage: RecoveryStage) -> None:
    stage.put([entry("dead", "10.0.0.1"), entry("other", "10.0.0.2", node="node-2")], IPS[2:])
    cleaned, stop = Cleaned(), asyncio.Event()
    settings = cleaned.settings(port=0, every_s=0.05)
    async with stage.pool() as pool, started_agent(pool, settings, stop, machine()) as running:
        await until(lambda: not running.agent.not_ready and bool(running.agent.reports))
        ready = await asyncio.to_thread(fetch, running.port, "/readyz")
        status, text = await asyncio.to_thread(fetch, running.port, "/metrics")
        stop.set()
        await asyncio.wait_for(running.ended, 10)

    assert (ready, status) == ((200, "ok\n"), 200)
    pool_label = 'pool="byom-ip-pool-state"'
    assert f'byom_pool_ips{{{pool_label},state="available"}} 2\n' in text
    assert f'byom_vm_cleanups_total{{{pool_label},result="ok"}} 1\n' in text
    assert f"byom_recovery_duration_seconds_count{{{pool_label}}} 1\n" in text
    assert 'operation="recover"' in text


async def test_what_is_wrong_stands_in_readyz(stage: RecoveryStage) -> None:
    stage.put_text("{")
    stop = asyncio.Event()
    async with stage.pool() as pool, started_agent(pool, AgentSettings(port=0), stop, machine()) as running:
        await until(lambda: "first round" not in running.agent.not_ready)
        status, text = await asyncio.to_thread(fetch, running.port, "/readyz")
        alive = await asyncio.to_thread(fetch, running.port, "/livez")

    assert (status, alive[0]) == (503, 200)
    assert "failed to retrieve pool state" in text


async def test_vs7_an_agent_serves_the_numbers_of_the_pool_whoever_allocates(stage: RecoveryStage) -> None:
    """Commands come and go, and Go managers count nothing: what they did is in the state and in the notes."""
    stage.put([entry("old", "10.0.0.1")], IPS[1:])
    stop = asyncio.Event()
    settings = AgentSettings(port=0, every_s=0.05)
    async with stage.pool() as pool, started_agent(pool, settings, stop, machine()) as running:
        await until(lambda: not running.agent.not_ready)
        async with stage.pool("node-2") as other:
            for id in ("a", "b"):
                await other.allocate(id)
            with pytest.raises(VMPoolExhausted):
                await other.allocate("c")
            await other.deallocate("a")
        text = ""
        while 'byom_pool_deallocations_total{pool="byom-ip-pool-state"} 1' not in text:
            await asyncio.sleep(0.05)
            text = (await asyncio.to_thread(fetch, running.port, "/metrics"))[1]
        stop.set()

    pool_label = 'pool="byom-ip-pool-state"'
    assert f'byom_pool_allocations_total{{{pool_label},result="new"}} 2\n' in text
    assert f'byom_pool_allocations_total{{{pool_label},result="exhausted"}} 1\n' in text
    assert f"byom_pool_allocation_duration_seconds_count{{{pool_label}}} 2\n" in text
    assert f'byom_node_allocations{{{pool_label},node="node-2"}} 1\n' in text
    seconds = float(text.split(f"byom_pool_allocation_duration_seconds_sum{{{pool_label}}} ")[1].split()[0])
    assert 0 < seconds < 30


async def test_one_agent_looks_after_several_pools(stage: RecoveryStage) -> None:
    stop, settings = asyncio.Event(), AgentSettings(port=0, every_s=0.05)
    stage.put_text("{")
    async with (
        stage.pool() as broken,
        stage.pool(config_map_name="spare", pool_ips=("10.2.0.1",)) as spare,
        started_agent([broken, spare], settings, stop, machine()) as running,
    ):
        await until(lambda: not running.agents[1].not_ready and "pool" in running.agents[0].not_ready)
        status, said = await asyncio.to_thread(fetch, running.port, "/readyz")
        _, text = await asyncio.to_thread(fetch, running.port, "/metrics")
        stop.set()

    assert (status, said.startswith("byom-ip-pool-state pool: failed to retrieve pool state")) == (503, True)
    assert 'byom_pool_ips{pool="spare",state="available"} 1\n' in text
    assert text.count("# TYPE byom_pool_ips gauge") == 1


async def test_vd8_an_allocation_of_a_process_that_has_ended_does_not_vanish_silently(
    stage: RecoveryStage, caplog: pytest.LogCaptureFixture
) -> None:
    """A command has made it, and a manager of today writes back what it had read before."""
    stage.put([], IPS)
    before = stage.state()
    async with stage.pool("node-2") as command:
        await command.allocate("lost")
        await command.allocate("given-back")
        await command.deallocate("given-back")
    stage.set_state(before)
    with caplog.at_level(logging.WARNING):
        async with agent(stage, AgentSettings(), machine()) as looking:
            for _ in range(3):
                await looking.round(asyncio.Event())

    said = [each for each in caplog.messages if "gone: released by another manager, or overwritten" in each]
    assert len(said) == 1
    assert "id=lost" in said[0]
    assert "node=node-2" in said[0]


async def test_vd8_a_release_that_was_overwritten_is_told_once_and_not_made_again(
    stage: RecoveryStage, caplog: pytest.LogCaptureFixture
) -> None:
    """A manager of today writes back what it had read before the release."""
    async with stage.pool("node-2") as pool:
        await pool.allocate("kept")
        await pool.allocate("given-back")
        before = stage.state()
        await pool.deallocate("given-back")
    stage.set_state(before)
    with caplog.at_level(logging.WARNING):
        async with agent(stage, AgentSettings(), machine()) as looking:
            for _ in range(3):
                await looking.round(asyncio.Event())

    [said] = [each for each in caplog.messages if "released by Tenure, and there again" in each]
    assert "id=given-back" in said
    assert sorted(stage.state()["allocatedIPs"]) == ["given-back", "kept"]
