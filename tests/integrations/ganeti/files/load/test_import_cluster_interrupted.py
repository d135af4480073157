"""What others may do to an import while it is half done, what the dry run then tells, and two imports at once."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

import tenure
from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.load import import_cluster, import_network
from tenure.integrations.ganeti.files.load.import_cluster import ImportPlan, plan_import, run_import
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster, read_file
from tenure.ports import LedgerStore
from tenure.service.apply.operations import Operation, WritePaper
from tests.contract.providers import Provider, ledger_providers
from tests.integrations.ganeti.files.crowds import addresses_of, crowd_document
from tests.integrations.ganeti.files.documents import Json, breaches, brought_in, new_document, old_document

CROWD = 12
LASTING = [provider for provider in ledger_providers() if provider.abilities.survives_restart]


class BrokenOff(Exception):
    """The import was stopped by a test."""


def stop_after(steps: int) -> Callable[[int, int], None]:
    """Make a progress that stops an import after so many steps."""
    made = 0

    def stop(done: int, total: int) -> None:
        nonlocal made
        made += 1
        if made == steps:
            raise BrokenOff

    return stop


async def planned(ledger: tenure.AsyncLedger, document: Json) -> ImportPlan:
    """Plan the import of a document, from its bytes."""
    return await plan_import(read_file(json.dumps(document).encode()), ledger)


async def half_done(ledger: tenure.AsyncLedger, document: Json, steps: int) -> None:
    """Bring a document in as far as a number of steps."""
    with pytest.raises(BrokenOff):
        await run_import(ledger, await planned(ledger, document), stop_after(steps))


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let imports go in steps of a few."""
    monkeypatch.setattr(import_network, "PAGE", 5)
    monkeypatch.setattr(import_cluster, "CHUNK", 5)


async def test_all_addresses_are_held_before_there_is_any_instance(ledger: tenure.AsyncLedger) -> None:
    await half_done(ledger, old_document(), steps=4)

    assert await ledger.papers("instance") == []
    held = {h.address: h.owner for network in ("net1", "net2") for h in await ledger.holdings(network)}
    assert held == {
        "192.0.2.4": "instance/web.example.org", "10.0.0.77": "instance/web.example.org",
        "2001:db8::5": "instance/web.example.org", "192.0.2.5": "instance/db.example.org",
        "192.0.2.6": "ganeti/orphan",
    }  # fmt: skip
    plan = await planned(ledger, old_document())
    assert plan.counts == {"nodegroups": 0, "nodes": 0, "networks": 0, "instances": 2, "addresses": 0, "orphans": 0}


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", [3, 4, 5])
async def test_a_half_made_network_gives_nothing_to_anybody(ledger: tenure.AsyncLedger, steps: int) -> None:
    document = crowd_document(CROWD)
    await half_done(ledger, document, steps)

    with pytest.raises(tenure.NotFound, match="pool"):
        await ledger.allocate("net1", owner="instance/thief")
    for address in addresses_of(document)["net1"] | {"10.0.2.90"}:
        with pytest.raises(tenure.Conflict):
            await ledger.allocate("net1", owner="instance/thief", address=address)
    assert (await ledger.network("net1")).connections == ()


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("steps", range(1, 13))
async def test_a_half_made_network_is_made_whole(steps: int) -> None:
    document = crowd_document(CROWD)
    async with await tenure.open_async("memory:") as ledger, await tenure.open_async("memory:") as whole:
        await half_done(ledger, document, steps)
        before = {h.address for n in await ledger.networks() for h in await ledger.holdings(n.name)}
        again = await planned(ledger, document)
        told: list[tuple[int, int]] = []
        await run_import(ledger, again, lambda done, total: told.append((done, total)))
        await brought_in(whole, document)

        granted = [h.address for name in ("net1", "net2") for h in await ledger.holdings(name)]
        assert again.counts["addresses"] + again.counts["orphans"] == len(granted) - len(before)
        assert told == [] or told[-1] == (told[-1][1], sum(again.counts.values()))
        assert await export_cluster(ledger, "today") == document
        for name in ("net1", "net2"):
            ours, theirs = await ledger.network(name), await whole.network(name)
            assert (ours.subnets, ours.connections, ours.serial) == (theirs.subnets, theirs.connections, theirs.serial)
        assert await ledger.papers("ganeti") == await whole.papers("ganeti")
        assert await breaches(ledger) == []


async def test_an_address_that_somebody_took_by_force_is_told_by_the_dry_run(ledger: tenure.AsyncLedger) -> None:
    await half_done(ledger, old_document(), steps=4)
    await ledger.release("net1", "192.0.2.4", owner="instance/web.example.org")
    await ledger.allocate("net1", owner="instance/thief", address="192.0.2.4")
    plan, before = await planned(ledger, old_document()), await ledger.last_change()
    with pytest.raises(tenure.Conflict, match=r"nothing was written: address 192\.0\.2\.4"):
        await run_import(ledger, plan)

    said = "address 192.0.2.4 of instance 'web.example.org' in network 'net1' is held by instance/thief"
    assert plan.conflicts == [said]
    assert await ledger.last_change() == before


@pytest.mark.usefixtures("small_steps")
async def test_a_mark_without_nic_that_somebody_took_by_force_is_told(ledger: tenure.AsyncLedger) -> None:
    await half_done(ledger, crowd_document(CROWD), steps=3)
    await ledger.allocate("net1", owner="instance/thief", address="10.0.3.132", reserved="force")
    plan = await planned(ledger, crowd_document(CROWD))

    assert plan.conflicts == ["address 10.0.3.132 marked as used in network 'net1' is held by instance/thief"]


async def test_an_address_held_in_another_network_of_the_space_is_told(ledger: tenure.AsyncLedger) -> None:
    await half_done(ledger, old_document(), steps=4)
    await ledger.release("net2", "10.0.0.77", owner="instance/web.example.org")
    await ledger.add_network("over", space="net2")
    await ledger.add_subnet("over", "10.0.0.64/26", unit=31)
    await ledger.allocate("over", owner="instance/thief", address="10.0.0.76")

    said = "address 10.0.0.77 of instance 'web.example.org' in network 'net2' is held by instance/thief"
    assert (await planned(ledger, old_document())).conflicts == [said]


async def test_a_slot_that_has_another_address_is_told(ledger: tenure.AsyncLedger) -> None:
    await half_done(ledger, old_document(), steps=4)
    await ledger.release("net1", "192.0.2.4", owner="instance/web.example.org")
    await ledger.allocate("net1", owner="instance/web.example.org", slot="00000001/0", address="192.0.2.11")

    said = (
        "address 192.0.2.4 of instance 'web.example.org' in network 'net1': instance/web.example.org holds 192.0.2.11"
    )
    assert (await planned(ledger, old_document())).conflicts == [f"{said} instead"]


async def test_an_address_that_no_longer_lies_in_a_subnet_is_told(ledger: tenure.AsyncLedger) -> None:
    await half_done(ledger, old_document(), steps=4)
    await ledger.remove_subnet("net2", "10.0.0.0/24", cascade=True)

    said = "address 10.0.0.77 of instance 'web.example.org' in network 'net2' cannot be had"
    why = "address 10.0.0.77 lies in no subnet of network 'net2'"
    assert (await planned(ledger, old_document())).conflicts == [f"{said}: {why}"]


@pytest.mark.parametrize(("lingers_s", "told"), [(3600, 1), (0.001, 0)])
async def test_an_address_that_cools_is_told_until_it_is_overdue(
    ledger: tenure.AsyncLedger, lingers_s: float, told: int
) -> None:
    await half_done(ledger, old_document(), steps=4)
    owner = "instance/web.example.org"
    await ledger.apply([tenure.Release(network="net1", address="192.0.2.4", owner=owner, lingers_s=lingers_s)])
    await asyncio.sleep(0.01)
    plan = await planned(ledger, old_document())

    assert len(plan.conflicts) == told
    if told:
        assert plan.conflicts[0].endswith("in network 'net1' is held by instance/web.example.org (cooling)")
    else:
        await run_import(ledger, plan)
        assert await export_cluster(ledger, "today") == old_document()


async def test_an_address_that_was_given_back_meanwhile_is_granted_with_its_instance(
    ledger: tenure.AsyncLedger,
) -> None:
    await half_done(ledger, old_document(), steps=4)
    await ledger.release("net1", "192.0.2.4", owner="instance/web.example.org")
    plan, told = await planned(ledger, old_document()), list[tuple[int, int]]()
    await run_import(ledger, plan, lambda done, total: told.append((done, total)))

    assert plan.counts["addresses"] == 1
    assert told == [(3, 3)]
    assert await export_cluster(ledger, "today") == old_document()


async def test_what_stands_in_the_way_since_the_plan_was_made_is_told(ledger: tenure.AsyncLedger) -> None:
    plan = await planned(ledger, old_document())
    await ledger.add_network("net2")

    with pytest.raises(tenure.Conflict, match="the import was broken off: network 'net2' exists already"):
        await run_import(ledger, plan)


async def test_a_second_import_of_the_same_file_finds_the_first_under_way(ledger: tenure.AsyncLedger) -> None:
    second = await planned(ledger, old_document())
    await half_done(ledger, old_document(), steps=4)
    before = await ledger.last_change()
    with pytest.raises(tenure.Conflict, match="another import of this file is under way"):
        await run_import(ledger, second)

    assert await ledger.last_change() == before


async def test_a_second_import_of_the_same_file_finds_the_first_done(ledger: tenure.AsyncLedger) -> None:
    second = await planned(ledger, old_document())
    await brought_in(ledger, old_document())
    before = await ledger.last_change()
    await run_import(ledger, second)

    assert await ledger.last_change() == before


async def test_a_second_import_of_another_file_is_told_so(ledger: tenure.AsyncLedger) -> None:
    second = await planned(ledger, new_document())
    await half_done(ledger, old_document(), steps=2)

    with pytest.raises(tenure.Conflict, match="another Ganeti file was brought in before, though not wholly"):
        await run_import(ledger, second)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("provider", LASTING, ids=lambda provider: provider.name)
async def test_of_imports_at_once_one_comes_to_its_end_and_the_others_say_why_not(
    provider: Provider[LedgerStore],
) -> None:
    document = crowd_document(CROWD)

    async def one(url: str, wait: int) -> str:
        async with await tenure.open_async(url) as ledger:
            for _ in range(wait):
                await ledger.last_change()
            try:
                await run_import(ledger, await planned(ledger, document))
            except tenure.Conflict as error:
                return error.message.partition(";")[0]
            return "done"

    async with provider.place() as url:
        answers = await asyncio.gather(*(one(url, wait) for wait in (0, 0, 3, 30, 100)))
        async with await tenure.open_async(url) as ledger:
            assert set(answers) <= {"done", "another import of this file is under way"}
            assert "done" in answers
            assert await export_cluster(ledger, "today") == document
            assert await breaches(ledger) == []


async def test_the_former_name_of_a_network_is_free_for_one_of_the_file(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("net1")
    await ledger.modify_network("net1", name="front")
    plan = await plan_import(read_cluster(old_document()), ledger)
    await run_import(ledger, plan)

    assert plan.conflicts == []
    assert {network.name for network in await ledger.networks()} == {"front", "net1", "net2"}


@dataclass(slots=True)
class Interfered:
    """A ledger on which something happens just before the instances of a file are written."""

    ledger: tenure.AsyncLedger
    meanwhile: Callable[[], Awaitable[object]]
    happened: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)

    async def apply(self, operations: Sequence[Operation]) -> object:
        """Let it happen once, before the first instance is written; then apply."""
        coming = any(isinstance(each, WritePaper) and each.kind == "instance" for each in operations)
        if coming and not self.happened:
            self.happened = True
            await self.meanwhile()
        return await self.ledger.apply(operations)


async def test_a_node_that_is_removed_and_added_again_in_another_group_meanwhile_breaks_the_import_off(
    ledger: tenure.AsyncLedger,
) -> None:
    async def replace_the_node() -> None:
        await Cluster(ledger).remove_node("node1")
        await Cluster(ledger).add_node("node1", group="rack")

    outrun = cast("tenure.AsyncLedger", Interfered(ledger, replace_the_node))
    with pytest.raises(tenure.Conflict, match="node 'node1' exists already"):
        await run_import(outrun, await planned(ledger, old_document()))

    assert await ledger.papers("instance") == []


async def test_a_node_that_changes_its_group_or_goes_meanwhile_is_named(ledger: tenure.AsyncLedger) -> None:
    gone = cast("tenure.AsyncLedger", Interfered(ledger, lambda: Cluster(ledger).remove_node("node1")))
    with pytest.raises(tenure.Conflict, match="node 'node1'"):
        await run_import(gone, await planned(ledger, old_document()))

    assert await ledger.papers("instance") == []
    await run_import(ledger, await planned(ledger, old_document()))
    assert [paper.name for paper in await ledger.papers("instance")] == ["db.example.org", "web.example.org"]
