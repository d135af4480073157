"""Cases C: operations that are under way, through the library of the door; and what the command line sees of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import tenure
from tenure.integrations.ganeti.instance.job import Job
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions, plan_add, plan_modify, plan_remove
from tenure.integrations.ganeti.instances import Instances
from tests.integrations.ganeti.conformance.door import Door

pytestmark = pytest.mark.every_store

ANY = InstanceOptions()


@asynccontextmanager
async def opened(door: Door) -> AsyncIterator[tenure.AsyncLedger]:
    """Open the door's ledger."""
    async with await tenure.open_async(door.url) as ledger:
        yield ledger


async def held(ledger: tenure.AsyncLedger, name: str, nic: str = "ip=pool", *, lasts_s: float = 600) -> Job:
    """Begin to add an instance: its address is taken and not committed."""
    job = await plan_add(ledger, name, [f"0:{nic},network=net1"], ANY)
    await job.hold(lasts_s=lasts_s)
    return job


def begun(door: Door, *names: str, nic: str = "ip=pool") -> None:
    """Leave operations behind whose processes are gone, and whose deadline has not passed."""

    async def begin() -> None:
        async with opened(door) as ledger:
            for name in names:
                await held(ledger, name, nic)

    asyncio.run(begin())


def test_c01_another_operation_gets_the_next_address(door: Door) -> None:
    """C01."""
    begun(door, "job1")

    assert door.add("inst2", "ip=pool") == ["192.0.2.11"]


def test_c02_a_pending_address_is_not_given_by_name(door: Door) -> None:
    """C02."""
    begun(door, "job1")

    door.refuse_add("ip=192.0.2.10", "--net", "192.0.2.10")
    door.refuse_add("ip=192.0.2.10", "--net", "192.0.2.10", more="--force")


def test_c03_a_failed_operation_frees_what_it_took(door: Door) -> None:
    """C03."""

    async def fail() -> None:
        async with opened(door) as ledger:
            await (await held(ledger, "job1")).fail()

    asyncio.run(fail())

    assert door.add("inst2", "ip=pool") == ["192.0.2.10"]


def test_c04_a_committed_address_is_used_and_seen_only_then(door: Door) -> None:
    """C04: pending shows X without holder."""

    async def commit() -> tuple[object, ...]:
        async with opened(door) as ledger:
            job = await held(ledger, "job1")
            seen = [instance.name for instance in await Instances(ledger).every()]
            shown = await asyncio.to_thread(lambda: (door.field("inst_list"), door.field("map")[0]))
            await job.commit()
            return seen, *shown

    assert asyncio.run(commit()) == ([], [], "X")
    assert door.field("inst_list") == ["job1"]
    assert door.ips("job1") == [["192.0.2.10"]]


def test_c06_c07_what_is_given_back_waits_for_the_end_of_the_operation(door: Door) -> None:
    """C06, C07."""
    door.add("inst1", "ip=pool")

    async def give_back() -> list[list[str]]:
        async with opened(door) as ledger:
            job = await plan_modify(ledger, "inst1", ["0:modify,ip=192.0.2.50"], ANY)
            assert job is not None
            await job.hold()
            await job.commit(lingers_s=600)
            during = await asyncio.to_thread(door.add, "inst2", "ip=pool")
            await job.end()
            after = await asyncio.to_thread(door.add, "inst3", "ip=pool")
            return [during, after]

    assert asyncio.run(give_back()) == [["192.0.2.11"], ["192.0.2.10"]]


def test_c10_what_a_dead_process_took_is_free_when_its_time_has_passed(door: Door) -> None:
    """C10: after the deadline, without anybody's help."""

    async def die() -> None:
        async with opened(door) as ledger:
            await held(ledger, "job1", lasts_s=0.05)
            await asyncio.sleep(0.1)

    asyncio.run(die())
    door.modify("--pool remove:192.0.2.11-192.0.2.100 --pool pool3:remove")

    assert door.add("inst2", "ip=pool") == ["192.0.2.10"]


def test_a_late_commit_is_refused_and_does_nothing(door: Door) -> None:
    """I10: confirm succeeds exactly while the row exists."""

    async def late() -> None:
        async with opened(door) as ledger:
            job = await held(ledger, "job1", lasts_s=0.05)
            await asyncio.sleep(0.1)
            await ledger.sweep()
            await job.commit()

    with pytest.raises(tenure.NotFound):
        asyncio.run(late())

    assert door.ask("instance list") == []


def test_c11_s34_u34_plans_stay_while_an_operation_needs_them(door: Door) -> None:
    """C11, S34, U34."""
    begun(door, "job1")
    begun(door, "job2", nic="ip=pool3")

    door.refuse_modify("--pool pool1:remove", "192.0.2.10", "pending")
    door.refuse_modify("--pool remove:192.0.2.5-192.0.2.10", "192.0.2.10", "pending")
    door.refuse_modify("--subnet subnet1:modify,cidr=192.0.2.128/25,gateway=none", "192.0.2.10")
    door.refuse_modify("--subnet subnet2:remove", "10.0.0.8")
    door.modify("--pool remove:192.0.2.11-192.0.2.100")


def test_of_two_operations_on_one_instance_none_is_lost(door: Door) -> None:
    """The lost-update defect: both read the instance, the second to commit is refused and lets go."""
    door.add("inst1", "ip=pool")

    async def both() -> None:
        async with opened(door) as ledger:
            jobs = [await plan_modify(ledger, "inst1", ["0:modify,ip1=pool"], ANY) for _ in range(2)]
            for job in jobs:
                assert job is not None
                await job.hold()
            assert jobs[0] is not None
            assert jobs[1] is not None
            await jobs[0].commit()
            with pytest.raises(tenure.Conflict):
                await jobs[1].commit()
            await jobs[1].fail()

    asyncio.run(both())

    assert door.ips("inst1") == [["192.0.2.10", "192.0.2.11"]]
    assert door.field("map").count("X") == 2


def test_commands_at_the_same_time_on_one_instance_all_count(door: Door) -> None:
    """Without hooks, whoever comes second decides afresh."""
    door.add("inst1", "ip=pool")

    async def together() -> None:
        async with opened(door) as ledger:
            adds = [f"-1:add,ip=pool,network=net1,name=n{number}" for number in range(6)]
            await asyncio.gather(*(Instances(ledger).modify("inst1", [net], ANY) for net in adds))

    asyncio.run(together())

    ips = door.ips("inst1")
    assert len(ips) == 7
    assert sorted(ip for nic in ips for ip in nic) == [f"192.0.2.{last}" for last in range(10, 17)]


def test_a_network_is_not_disconnected_under_an_operation(door: Door) -> None:
    """The commit looks again: a cut wire refuses it."""

    async def cut() -> None:
        async with opened(door) as ledger:
            job = await plan_add(ledger, "inst1", ["0:network=net1"], ANY)
            await asyncio.to_thread(door.do, "network disconnect net1")
            await job.commit()

    with pytest.raises(tenure.Conflict, match="not connected"):
        asyncio.run(cut())

    assert door.ask("instance list") == []


def test_an_operation_goes_on_when_its_network_is_renamed(door: Door) -> None:
    """Whatever else changes in the network is no business of the operation."""

    async def rename() -> None:
        async with opened(door) as ledger:
            job = await held(ledger, "inst1")
            await asyncio.to_thread(door.do, "network rename net1 shop")
            await job.commit()
            gone = await plan_remove(ledger, "inst1")
            await asyncio.to_thread(door.do, "network rename shop net1")
            await gone.commit(lingers_s=600)
            await asyncio.to_thread(door.do, "network rename net1 shop")
            await gone.end()

    asyncio.run(rename())

    assert door.field("reserved_count", "shop") == 0


def test_a_job_on_an_instance_that_was_replaced_is_void(door: Door) -> None:
    """A new instance of the same name, in the same revision, is another one."""

    async def replaced() -> None:
        async with opened(door) as ledger:
            instances = Instances(ledger)
            await instances.add("inst1", [], ANY)
            job = await plan_modify(ledger, "inst1", ["-1:add,ip=pool,network=net1"], ANY)
            assert job is not None
            await job.hold()
            await instances.remove("inst1")
            await instances.add("inst1", ["0:ip=192.0.2.9,network=net1"], ANY)
            with pytest.raises(tenure.Conflict, match="replaced"):
                await job.commit()
            await job.fail()

    asyncio.run(replaced())

    assert door.ips("inst1") == [["192.0.2.9"]]
    assert door.field("reserved_count") == 0


def test_a_job_on_a_node_that_was_replaced_is_void(door: Door) -> None:
    """A node of the same name in another group is another one."""
    door.do("group add far", "node add node2 --group far", "network connect net1 far")

    async def replaced() -> None:
        async with opened(door) as ledger:
            job = await plan_add(ledger, "inst1", ["0:ip=pool,network=net1"], InstanceOptions(node="node2"))
            await asyncio.to_thread(door.do, "node remove node2", "node add node2 --group default")
            with pytest.raises(tenure.Conflict, match="replaced"):
                await job.commit()

    asyncio.run(replaced())

    assert door.ask("instance list") == []


def test_u34_a_pool_stays_under_a_job_whatever_way_it_would_go(door: Door) -> None:
    """Removing the subnet and adding it again, or shrinking and growing it, would take the pool away as well."""
    begun(door, "job1")

    again = "--subnet subnet1:remove --subnet add:cidr=192.0.2.0/24,gateway=192.0.2.1,name=subnet1"
    door.refuse_modify(again, "--subnet 'subnet1:remove'", "192.0.2.10", "pending")
    door.modify(f"{again} --pool add:192.0.2.10-192.0.2.20")
