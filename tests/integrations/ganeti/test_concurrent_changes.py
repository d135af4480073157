"""What happens when somebody else is quicker: between a command's reading and its writing, another one is done.

Each test has the two commands that could miss each other; the first must notice, and decide afresh.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

import tenure
from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.cluster_edits import ClusterEdits, NodeWords
from tenure.integrations.ganeti.hooks import Hooking
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions, MoveTarget, plan_add, plan_modify
from tenure.integrations.ganeti.instances import Instances
from tenure.integrations.ganeti.networks import NetworkOptions, Networks
from tenure.integrations.ganeti.query.verify_machines import verify_machines
from tenure.kernel.plan.edits import AddNetwork
from tenure.service.apply.operations import Operation
from tests.infrastructure.postgres import emptied_schema
from tests.scale import second_store

ANY = InstanceOptions()
BLOCK = NetworkOptions(subnets=["add:cidr=192.0.2.0/24,gateway=192.0.2.1,name=a"], pools=["add:192.0.2.10-192.0.2.20"])

Meanwhile = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class Between:
    """A ledger that lets something happen before its first ``apply``."""

    ledger: tenure.AsyncLedger
    meanwhile: Meanwhile
    happened: bool = field(default=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)

    async def apply(self, operations: Sequence[Operation]) -> object:
        """Let it happen, once, then apply."""
        if not self.happened:
            self.happened = True
            await self.meanwhile()
        return await self.ledger.apply(operations)


@dataclass(frozen=True, slots=True)
class Site:
    """A small cluster, and how to do something while a command is between reading and writing."""

    ledger: tenure.AsyncLedger

    @property
    def cluster(self) -> Cluster:
        """Speak of groups and nodes."""
        return Cluster(self.ledger)

    @property
    def networks(self) -> Networks:
        """Speak of networks."""
        return Networks(self.ledger)

    @property
    def instances(self) -> Instances:
        """Speak of instances."""
        return Instances(self.ledger)

    def outrun_by(self, meanwhile: Meanwhile) -> tenure.AsyncLedger:
        """Give a ledger on which somebody else is quicker."""
        return cast("tenure.AsyncLedger", Between(self.ledger, meanwhile))

    async def reserved(self, address: str, network: str = "net1") -> bool:
        """Tell whether an address is reserved."""
        return "reserved" in str(await self.ledger.why(address, network=network))


@asynccontextmanager
async def _url(store: str, folder: Path) -> AsyncIterator[str]:
    if store == "postgres":
        async with emptied_schema() as url:
            yield url
    else:
        yield "memory:" if store == "memory" else f"sqlite:///{folder / 'tenure.db'}"


@pytest.fixture(params=["memory", "sqlite", second_store("postgres")])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with _url(request.param, tmp_path) as url, await tenure.open_async(url) as ledger:
        site = Site(ledger)
        await site.cluster.add_group("default")
        await site.cluster.add_node("node1")
        await site.networks.add(AddNetwork(network="net1"), BLOCK)
        await site.networks.connect("net1", link="br1")
        yield site


async def test_a_block_laid_meanwhile_keeps_out_a_new_nodes_address(site: Site) -> None:
    block = NetworkOptions(subnets=["add:cidr=198.51.100.0/24"])
    ledger = site.outrun_by(lambda: site.networks.modify("net1", block))

    await Cluster(ledger).add_node("node2", primary_ip="198.51.100.9")

    assert await site.reserved("198.51.100.9")


async def test_a_node_that_came_meanwhile_is_kept_out_of_a_new_block(site: Site) -> None:
    ledger = site.outrun_by(lambda: site.cluster.add_node("node2", primary_ip="198.51.100.9"))

    await Networks(ledger).modify("net1", NetworkOptions(subnets=["add:cidr=198.51.100.0/24"]))

    assert await site.reserved("198.51.100.9")


async def test_a_group_that_is_connected_meanwhile_stays(site: Site) -> None:
    await site.cluster.add_group("far")
    ledger = site.outrun_by(lambda: site.networks.connect("net1", ["far"]))

    with pytest.raises(tenure.StillInUse, match="network net1"):
        await Cluster(ledger).remove_group("far")


async def test_a_group_that_gets_a_node_meanwhile_stays(site: Site) -> None:
    await site.cluster.add_group("far")
    ledger = site.outrun_by(lambda: site.cluster.add_node("node2", group="far"))

    with pytest.raises(tenure.StillInUse, match="node node2"):
        await Cluster(ledger).remove_group("far")


async def test_a_loose_address_that_came_meanwhile_refuses_a_connection(site: Site) -> None:
    await site.networks.add(AddNetwork(network="net2"), NetworkOptions(subnets=["add:cidr=203.0.113.0/24"]))
    ledger = site.outrun_by(lambda: site.instances.add("loose", ["0:ip=203.0.113.7"], ANY))

    with pytest.raises(tenure.Conflict, match="loose"):
        await Networks(ledger).connect("net2")


async def test_a_connection_made_meanwhile_refuses_a_loose_address(site: Site) -> None:
    await site.networks.add(AddNetwork(network="net2"), NetworkOptions(subnets=["add:cidr=203.0.113.0/24"]))
    ledger = site.outrun_by(lambda: site.networks.connect("net2"))

    with pytest.raises(tenure.Conflict, match="net2"):
        await Instances(ledger).add("loose", ["0:ip=203.0.113.7"], ANY)


async def test_tags_put_on_meanwhile_are_kept(site: Site) -> None:
    ledger = site.outrun_by(lambda: site.networks.tag("net1", add=["theirs"]))

    changed = await Networks(ledger).tag("net1", add=["ours"])

    assert changed.network.tags == ("theirs", "ours")


async def test_an_admins_reservation_made_meanwhile_stays_when_a_node_goes(site: Site) -> None:
    await site.cluster.add_node("node2", primary_ip="192.0.2.15")
    ledger = site.outrun_by(lambda: site.networks.modify("net1", NetworkOptions(add_reserved="192.0.2.14-192.0.2.16")))

    await Cluster(ledger).remove_node("node2")

    assert await site.reserved("192.0.2.15")


async def test_a_node_that_went_meanwhile_carries_nobody(site: Site) -> None:
    await site.cluster.add_node("node2")
    ledger = site.outrun_by(lambda: site.cluster.remove_node("node1"))

    done = await Instances(ledger).add("web", ["0:ip=pool,network=net1"], ANY)

    assert done.instance.node == "node2"


async def test_a_node_that_got_an_instance_meanwhile_stays(site: Site) -> None:
    ledger = site.outrun_by(lambda: site.instances.add("web", ["0:network=net1"], ANY))

    with pytest.raises(tenure.StillInUse, match="web"):
        await Cluster(ledger).remove_node("node1")


async def test_a_nic_gets_the_wires_that_there_are_when_it_is_committed(site: Site) -> None:
    async def rewire() -> None:
        await site.networks.disconnect("net1")
        await site.networks.connect("net1", mode="routed", link="rt9")

    await Instances(site.outrun_by(rewire)).add("web", ["0:ip=pool,network=net1"], ANY)

    [nic] = (await site.instances.find("web")).nics
    assert (nic.mode, nic.link) == ("routed", "rt9")


async def test_an_instance_that_comes_while_a_connection_is_replaced_is_wired_in_the_new_way(site: Site) -> None:
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    ledger = site.outrun_by(lambda: site.instances.add("late", ["0:ip=pool,network=net1"], ANY))

    await Networks(ledger).connect("net1", mode="routed", link="rt9", replaces=True)

    assert await _wires(site) == {"web": [("routed", "rt9")], "late": [("routed", "rt9")]}
    assert await verify_machines(site.ledger) == []


async def test_a_nic_that_comes_while_a_connection_is_replaced_is_wired_in_the_new_way(site: Site) -> None:
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    ledger = site.outrun_by(lambda: site.instances.modify("web", ["-1:add,network=net1"], ANY))

    await Networks(ledger).connect("net1", mode="routed", link="rt9", replaces=True)

    assert await _wires(site) == {"web": [("routed", "rt9"), ("routed", "rt9")]}


async def test_an_instance_that_goes_while_a_connection_is_replaced_does_not_keep_it(site: Site) -> None:
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    await site.instances.add("db", ["0:ip=pool,network=net1"], ANY)
    ledger = site.outrun_by(lambda: site.instances.remove("db"))

    await Networks(ledger).connect("net1", mode="routed", link="rt9", replaces=True)

    assert await _wires(site) == {"web": [("routed", "rt9")]}
    assert await verify_machines(site.ledger) == []


async def test_an_instance_that_comes_behind_the_hooks_of_a_replaced_connection_refuses_it(
    site: Site, tmp_path: Path
) -> None:
    ledger = site.outrun_by(lambda: site.instances.add("late", ["0:ip=pool,network=net1"], ANY))
    hooks = _hooks(tmp_path, "network-connect-pre.d")

    with pytest.raises(tenure.Conflict, match="instance late came to network net1 in group default meanwhile"):
        await Networks(ledger, hooks).connect("net1", mode="routed", link="rt9", replaces=True)

    assert await _wires(site) == {"late": [("bridged", "br1")]}


async def _wires(site: Site) -> dict[str, list[tuple[str, str]]]:
    return {each.name: [(nic.mode, nic.link) for nic in each.nics] for each in await site.instances.every()}


async def test_a_network_that_was_replaced_is_another_one(site: Site) -> None:
    job = await plan_add(site.ledger, "web", ["0:ip=pool,network=net1"], ANY)
    await site.networks.disconnect("net1")
    await site.networks.remove("net1")
    await site.networks.add(AddNetwork(network="net1"), BLOCK)
    await site.networks.connect("net1", link="br1")

    with pytest.raises(tenure.NotFound, match="network"):
        await job.commit()

    assert await site.ledger.holdings("net1") == []


async def test_two_changes_of_one_instance_both_count(site: Site) -> None:
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    ledger = site.outrun_by(lambda: site.instances.modify("web", ["-1:add,ip=pool,network=net1,name=theirs"], ANY))

    await Instances(ledger).modify("web", ["-1:add,ip=pool,network=net1,name=ours"], ANY)

    names = [nic.name for nic in (await site.instances.find("web")).nics]
    assert names == [None, "theirs", "ours"]


async def test_a_moved_address_is_kept_for_the_nic_while_hooks_run(site: Site) -> None:
    """In another space the same address is another one: it is held before hooks run."""
    await site.networks.add(AddNetwork(network="net2"), BLOCK)
    await site.networks.connect("net2")
    await site.instances.add("web", ["0:ip=192.0.2.10,network=net1"], ANY)
    job = await plan_modify(site.ledger, "web", ["0:modify,network=net2"], ANY)
    assert job is not None
    await job.hold()

    with pytest.raises(tenure.AddressInUse):
        await site.instances.add("thief", ["0:ip=192.0.2.10,network=net2"], ANY)
    await job.commit(lingers_s=600)

    [left] = await site.ledger.holdings("net1")
    assert (left.address, left.state) == ("192.0.2.10", "cooling")


async def test_an_instance_outlives_its_network_and_can_be_removed(site: Site) -> None:
    """Whoever removes a network by the library takes the addresses away; the instance can still be put right."""
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    await site.ledger.apply([tenure.Disconnect(network="net1", group="default")])
    await site.ledger.remove_network("net1", cascade=True)

    done = await site.instances.modify("web", ["0:remove"], ANY)

    assert done.instance.nics == ()
    await site.instances.remove("web")
    assert await site.instances.every() == []


async def test_hooks_run_on_an_instance_that_outlived_its_network(site: Site, tmp_path: Path) -> None:
    """They are told of the NIC without its network."""
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    await site.ledger.apply([tenure.Disconnect(network="net1", group="default")])
    await site.ledger.remove_network("net1", cascade=True)
    hooks = _hooks(tmp_path, "instance-remove-pre.d")

    done = await Instances(site.ledger, hooks).remove("web")

    assert [result.outcome for result in done.hooks] == ["success"]
    assert await site.instances.every() == []


async def test_what_fails_behind_the_commit_does_not_make_it_undone(site: Site, tmp_path: Path) -> None:
    """The hooks behind an operation need nothing of the ledger any more."""
    ledger = cast("tenure.AsyncLedger", Deaf(site.ledger))

    done = await Instances(ledger, _hooks(tmp_path, "instance-add-post.d")).add("web", ["0:ip=pool,network=net1"], ANY)

    assert [result.outcome for result in done.hooks] == ["success"]
    assert (await site.instances.find("web")).nics[0].addresses == ["192.0.2.10"]


async def test_instances_are_listed_while_their_network_is_renamed(site: Site) -> None:
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    ledger = cast("tenure.AsyncLedger", Renaming(site.ledger, site.networks))

    [instance] = await Instances(ledger).every()

    assert instance.nics[0].addresses == ["192.0.2.10"]


@dataclass(slots=True)
class Deaf:
    """A ledger that answers nothing any more once it has committed."""

    ledger: tenure.AsyncLedger
    committed: bool = field(default=False)

    def __getattr__(self, name: str) -> Any:
        if self.committed:
            raise tenure.StoreUnavailable("it went away", outcome="none")
        return getattr(self.ledger, name)

    async def apply(self, operations: Sequence[Operation]) -> object:
        """Commit, and be gone."""
        answers = await self.ledger.apply(operations)
        self.committed = True
        return answers


@dataclass(slots=True)
class Renaming:
    """A ledger whose network gets another name between the reading of the plan and that of the holdings."""

    ledger: tenure.AsyncLedger
    door: Networks
    happened: bool = field(default=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)

    async def holdings(self, *args: Any, **named: Any) -> object:
        """Rename once, then read."""
        if not self.happened:
            self.happened = True
            await self.door.modify("net1", NetworkOptions(), {"name": "shop"})
        return await self.ledger.holdings(*args, **named)


def _hooks(folder: Path, phase: str) -> Hooking:
    hook = folder / "hooks" / phase / "nothing"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\n", "utf-8")
    hook.chmod(0o755)
    return Hooking(folder / "hooks")


async def _second_group(site: Site) -> None:
    await site.cluster.add_group("far")
    await site.networks.connect("net1", ["far"], link="br2")


async def test_an_instance_that_comes_meanwhile_follows_its_node_into_another_group(site: Site) -> None:
    await _second_group(site)
    ledger = site.outrun_by(lambda: site.instances.add("web", ["0:ip=pool,network=net1"], ANY))

    assert await ClusterEdits(ledger).modify_node("node1", NodeWords(group="far"))

    web = await site.instances.find("web")
    assert (web.group, web.nics[0].link) == ("far", "br2")
    assert await verify_machines(site.ledger) == []


async def test_an_instance_that_comes_meanwhile_follows_its_node_and_its_group_to_other_names(site: Site) -> None:
    renamed = site.outrun_by(lambda: site.instances.add("web", ["0:ip=pool,network=net1"], ANY))
    await ClusterEdits(renamed).rename_group("default", "rack1")
    renamed = site.outrun_by(lambda: site.instances.add("db", ["0:ip=pool,network=net1"], ANY))
    await ClusterEdits(renamed).rename_node("node1", "first")

    places = {(each.name, each.node, each.group) for each in await site.instances.every()}
    assert places == {("web", "first", "rack1"), ("db", "first", "rack1")}
    assert await verify_machines(site.ledger) == []


async def test_a_new_instance_comes_to_the_group_that_its_node_got_meanwhile(site: Site) -> None:
    await _second_group(site)
    ledger = site.outrun_by(lambda: ClusterEdits(site.ledger).modify_node("node1", NodeWords(group="far")))

    await Instances(ledger).add("web", ["0:ip=pool,network=net1"], InstanceOptions(node="node1"))

    web = await site.instances.find("web")
    assert (web.group, web.nics[0].link) == ("far", "br2")
    assert await verify_machines(site.ledger) == []


async def test_a_new_instance_comes_to_the_group_by_the_name_that_it_got_meanwhile(site: Site) -> None:
    ledger = site.outrun_by(lambda: ClusterEdits(site.ledger).rename_group("default", "rack1"))

    await Instances(ledger).add("web", ["0:ip=pool,network=net1"], ANY)

    assert (await site.instances.find("web")).group == "rack1"
    assert await verify_machines(site.ledger) == []


async def test_an_instance_moves_to_the_group_that_its_target_got_meanwhile(site: Site) -> None:
    await _second_group(site)
    await site.cluster.add_node("node2", group="default")
    await site.instances.add("web", ["0:ip=pool,network=net1"], InstanceOptions(node="node1"))
    ledger = site.outrun_by(lambda: ClusterEdits(site.ledger).assign_nodes("far", ["node2"]))

    await Instances(ledger).move("web", MoveTarget(node="node2"))

    web = await site.instances.find("web")
    assert (web.node, web.group, web.nics[0].link) == ("node2", "far", "br2")
    assert await verify_machines(site.ledger) == []


async def test_an_address_that_a_renamed_instance_gets_meanwhile_goes_with_it(site: Site) -> None:
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    ledger = site.outrun_by(lambda: site.instances.modify("web", ["0:modify,ip1=pool"], ANY))

    await Instances(ledger).rename("web", "shop")

    assert (await site.instances.find("shop")).nics[0].addresses == ["192.0.2.10", "192.0.2.11"]
    assert await site.ledger.holdings(owner="instance/web") == []
    assert await verify_machines(site.ledger) == []


async def test_a_change_of_an_instance_that_is_renamed_meanwhile_finds_it_gone(site: Site) -> None:
    await site.instances.add("web", ["0:ip=pool,network=net1"], ANY)
    ledger = site.outrun_by(lambda: site.instances.rename("web", "shop"))

    with pytest.raises(tenure.NotFound, match="no instance 'web'"):
        await Instances(ledger).modify("web", ["0:modify,ip1=pool"], ANY)

    assert (await site.instances.find("shop")).nics[0].addresses == ["192.0.2.10"]
    assert await verify_machines(site.ledger) == []


async def test_a_network_that_comes_meanwhile_keeps_the_new_masters_address_out(site: Site) -> None:
    block = NetworkOptions(subnets=["add:cidr=198.51.100.0/24"])
    ledger = site.outrun_by(lambda: site.networks.modify("net1", block))

    await ClusterEdits(ledger).set_master("198.51.100.9")

    assert await site.reserved("198.51.100.9")
