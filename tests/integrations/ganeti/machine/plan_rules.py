"""Rules that change networks, groups and nodes, and the one that writes everything to a file and reads it back."""

import json
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import tenure
from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.file_model import Form
from tenure.integrations.ganeti.files.load.import_cluster import plan_import, run_import
from tenure.integrations.ganeti.files.read.cluster_file import read_file
from tenure.integrations.ganeti.machine_model import GROUP, NODE
from tenure.integrations.ganeti.networks import NetworkOptions, Networks
from tenure.kernel.plan.edits import AddNetwork
from tenure.kernel.plan.plan_model import Network
from tests.integrations.ganeti.files.documents import breaches
from tests.integrations.ganeti.machine.bench import MEMORY, Bench
from tests.integrations.ganeti.machine.effects import check_effects
from tests.integrations.ganeti.machine.judged import ALWAYS
from tests.integrations.ganeti.machine.sight import look
from tests.integrations.ganeti.machine.wishes import (
    NODES,
    addresses,
    mostly,
    often,
    old_options,
    pool_options,
    reserved_options,
    seldom,
    subnet_options,
)

NAMES, GROUPS = ["net1", "net2", "net3"], ["default", "rack"]
some_network, some_group = st.sampled_from(NAMES), st.sampled_from(GROUPS)
some_node = st.sampled_from(NODES)
some_groups = st.sampled_from([[], ["default"], ["rack"], ["default", "rack"]])


class PlanRules(Bench):
    """Change the plan."""

    def a_network(self, data: st.DataObject) -> Network | None:
        """Draw a network, mostly one that is there."""
        names = [network.name for network in self.sight.networks]
        return self.sight.network(data.draw(often(names, some_network), label="network"))

    def check_or_not(self, data: st.DataObject) -> bool:
        """Draw whether conflicts are looked for."""
        return self.careful or data.draw(seldom(), label="unchecked") is False

    def modify(self, data: st.DataObject, **words: Any) -> None:
        """Draw a network and change it."""
        network = self.a_network(data)
        drawn = {word: data.draw(strategy(network), label=word) for word, strategy in words.items()}
        options = NetworkOptions(check=self.check_or_not(data), **drawn)
        name = "net9" if network is None else data.draw(st.sampled_from([network.name, network.uuid]))
        answer = self.do(f"modify {name} {options}", Networks(self.ledger).modify(name, options))
        if answer.value is not None and network is not None:
            check_effects(network, answer.value.network, options)

    @rule(data=st.data(), what=st.integers(0, 3))
    def change_networks(self, data: st.DataObject, what: int) -> None:
        """Make, rename or remove a network."""
        [self.add_network, self.add_network, self.rename_network, self.remove_network][what](data)

    def add_network(self, data: st.DataObject) -> None:
        """Make a network."""
        names = [name for name in NAMES if self.sight.network(name) is None]
        name = data.draw(often(names, some_network), label="name")
        subnets = data.draw(st.lists(subnet_options(None), max_size=2), label="subnets")
        there = [text.removeprefix("add:cidr=").partition(",")[0] for text in subnets if text.startswith("add:cidr=")]
        pools = data.draw(st.lists(pool_options(None, there), max_size=1), label="pools")
        old = data.draw(old_options(None), label="old")
        options = NetworkOptions(subnets=subnets, pools=pools, old=old, check=self.check_or_not(data))
        self.do(f"add {name} {options}", Networks(self.ledger).add(AddNetwork(network=name), options))

    @rule(data=st.data())
    def change_subnets(self, data: st.DataObject) -> None:
        self.modify(data, subnets=lambda network: st.lists(subnet_options(network), min_size=1, max_size=2))

    @rule(data=st.data())
    def change_pools(self, data: st.DataObject) -> None:
        self.modify(data, pools=lambda network: st.lists(pool_options(network), min_size=1, max_size=2))

    @rule(data=st.data())
    def change_reserved(self, data: st.DataObject) -> None:
        word = data.draw(st.sampled_from(["add_reserved", "remove_reserved"]))
        self.modify(data, **{word: reserved_options})

    @rule(data=st.data())
    def change_much(self, data: st.DataObject) -> None:
        self.modify(
            data,
            subnets=lambda network: st.lists(subnet_options(network), max_size=2),
            pools=lambda network: st.lists(pool_options(network), max_size=2),
            add_reserved=lambda network: st.none() | reserved_options(network),
            remove_reserved=lambda network: st.none() | reserved_options(network),
            old=old_options,
        )

    def rename_network(self, data: st.DataObject) -> None:
        """Rename a network; everything else stays."""
        network, new = self.a_network(data), data.draw(some_network, label="new")
        name, before = ("net9", None) if network is None else (network.name, network)
        answer = self.do(f"rename {name} {new}", Networks(self.ledger).modify(name, NetworkOptions(), {"name": new}))
        if answer.value is not None and before is not None:
            after = answer.value.network
            assert (after.uuid, after.subnets, after.connections) == (before.uuid, before.subnets, before.connections)

    def remove_network(self, data: st.DataObject) -> None:
        """Remove a network, disconnected before or not."""
        network, cascade = self.a_network(data), data.draw(st.booleans(), label="cascade")
        name = "net9" if network is None else network.name
        if data.draw(st.booleans(), label="off"):
            self.do(f"disconnect {name}", Networks(self.ledger).disconnect(name))
        answer = self.do(f"remove {name} {cascade=}", Networks(self.ledger).remove(name, cascade=cascade))
        if answer.value is not None:
            self.told.forget_network(answer.value.network.uuid)

    def groups(self, data: st.DataObject) -> list[str]:
        """Draw groups, mostly those that are there."""
        there = [[], [], *([name] for name in self.sight.names(GROUP))]
        return data.draw(seldom(9).flatmap(lambda odd: some_groups if odd else st.sampled_from(there)), label="groups")

    @rule(data=st.data(), on=st.booleans(), link=st.sampled_from(["br1", "br2"]))
    def change_wires(self, data: st.DataObject, on: bool, link: str) -> None:
        """Connect a network, or disconnect it."""
        groups, network = self.groups(data), self.a_network(data)
        name = "net9" if network is None else network.name
        if not on:
            self.do(f"disconnect {name} {groups}", Networks(self.ledger).disconnect(name, groups))
            return
        check = self.check_or_not(data)
        self.do(f"connect {name} {groups}", Networks(self.ledger).connect(name, groups, link=link, check=check))

    @rule(data=st.data(), what=st.integers(0, 3))
    def change_cluster(self, data: st.DataObject, what: int) -> None:
        """Make or remove a group or a node."""
        [self.add_node, self.add_node, self.remove_node, self.change_groups][what](data)

    def change_groups(self, data: st.DataObject) -> None:
        """Make the second group, or remove it."""
        cluster, there = Cluster(self.ledger), "rack" in self.sight.names(GROUP)
        group = data.draw(mostly(st.just("rack"), some_group), label="group")
        gone = there is not data.draw(seldom(5), label="other")
        self.do(f"group {group} {gone=}", cluster.remove_group(group) if gone else cluster.add_group(group))

    def add_node(self, data: st.DataObject) -> None:
        """Make a node with some addresses."""
        name = data.draw(often([each for each in NODES if each not in self.sight.names(NODE)], some_node), label="node")
        ips = data.draw(st.lists(addresses, max_size=2), label="ips")
        group = data.draw(often(self.sight.names(GROUP), some_group), label="group")
        first, second, *_ = [*ips, None, None]
        check = self.check_or_not(data)
        command = Cluster(self.ledger).add_node(name, group=group, primary_ip=first, secondary_ip=second, check=check)
        self.do(f"add node {name} in {group} {ips}", command)

    def remove_node(self, data: st.DataObject) -> None:
        """Remove a node."""
        name = data.draw(often(self.sight.names(NODE), some_node), label="node")
        self.do(f"remove node {name}", Cluster(self.ledger).remove_node(name))

    @precondition(lambda self: self.url == MEMORY)
    @rule(form=st.sampled_from(["revised", "revised", "today"]))
    def write_and_read_back(self, form: Form) -> None:
        self.wait_for(self._write_and_read_back(form))

    async def _write_and_read_back(self, form: Form) -> None:
        try:
            written = await export_cluster(self.ledger, form)
        except tenure.Conflict:
            assert form == "today"
            return
        note(f"written and read back as {form}")
        data = json.dumps(written, sort_keys=True).encode()
        async with await tenure.open_async("memory:") as other:
            await run_import(other, await plan_import(read_file(data), other))
            again = await export_cluster(other, form)
            assert json.dumps(again, sort_keys=True).encode() == data
            sight = await look(other)
            assert await breaches(other) == []
        for check in ALWAYS:
            check(sight)
        assert [each.name for each in sight.instances] == [each.name for each in self.sight.instances]
