"""Rules that change networks, groups and nodes, and the one that writes everything to a file and reads it back."""

import json
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

import tenure
from tenure.doors.networks.cluster import Cluster
from tenure.doors.networks.ganeti.moving_in import plan_import, run_import
from tenure.doors.networks.ganeti.moving_out import export_cluster
from tenure.doors.networks.ganeti.reading import read_file
from tenure.doors.networks.ganeti.values import Form
from tenure.doors.networks.model import GROUP
from tenure.doors.networks.network_verbs import NetworkOptions, Networks
from tenure.kernel.configuration import Network
from tenure.kernel.edits import AddNetwork
from tests.doors.networks.machine.bench import MEMORY, Bench
from tests.doors.networks.machine.judged import ALWAYS
from tests.doors.networks.machine.sight import look
from tests.doors.networks.machine.wishes import (
    NODES,
    addresses,
    often,
    old_options,
    pool_options,
    reserved_options,
    subnet_options,
)

NAMES, GROUPS = ["net1", "net2", "net3"], ["default", "rack"]
some_network, some_group = st.sampled_from(NAMES), st.sampled_from(GROUPS)


class PlanRules(Bench):
    """Change the plan."""

    def a_network(self, data: st.DataObject) -> Network | None:
        """Draw a network, mostly one that is there."""
        names = [network.name for network in self.sight.networks]
        return self.sight.network(data.draw(often(names, some_network), label="network"))

    def check_or_not(self, data: st.DataObject) -> bool:
        """Draw whether conflicts are looked for."""
        return self.careful or data.draw(st.sampled_from([True, True, True, False]), label="check")

    def modify(self, data: st.DataObject, **words: Any) -> None:
        """Draw a network and change it."""
        network = self.a_network(data)
        drawn = {word: data.draw(strategy(network), label=word) for word, strategy in words.items()}
        options = NetworkOptions(check=self.check_or_not(data), **drawn)
        name = "net9" if network is None else data.draw(st.sampled_from([network.name, network.uuid]))
        self.do(f"modify {name} {options}", Networks(self.ledger).modify(name, options))

    @rule(data=st.data(), name=some_network)
    def add_network(self, data: st.DataObject, name: str) -> None:
        subnets = data.draw(st.lists(subnet_options(None), max_size=2), label="subnets")
        pools = data.draw(st.lists(pool_options(None), max_size=1), label="pools")
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

    @rule(data=st.data(), new=some_network)
    def rename_network(self, data: st.DataObject, new: str) -> None:
        network = self.a_network(data)
        name, before = ("net9", None) if network is None else (network.name, network)
        answer = self.do(f"rename {name} {new}", Networks(self.ledger).modify(name, NetworkOptions(), {"name": new}))
        if answer.value is not None and before is not None:
            after = answer.value.network
            assert (after.uuid, after.subnets, after.connections) == (before.uuid, before.subnets, before.connections)

    @rule(data=st.data(), cascade=st.booleans(), off=st.booleans())
    def remove_network(self, data: st.DataObject, cascade: bool, off: bool) -> None:
        network = self.a_network(data)
        name = "net9" if network is None else network.name
        if off:
            self.do(f"disconnect {name}", Networks(self.ledger).disconnect(name))
        answer = self.do(f"remove {name} {cascade=}", Networks(self.ledger).remove(name, cascade=cascade))
        if answer.value is not None:
            self.told.forget_network(answer.value.uuid)

    @rule(data=st.data(), groups=st.lists(some_group, max_size=2), link=st.sampled_from(["br1", "br2"]))
    def connect(self, data: st.DataObject, groups: list[str], link: str) -> None:
        network = self.a_network(data)
        name = "net9" if network is None else network.name
        check = self.check_or_not(data)
        self.do(f"connect {name} {groups}", Networks(self.ledger).connect(name, groups, link=link, check=check))

    @rule(data=st.data(), groups=st.lists(some_group, max_size=2))
    def disconnect(self, data: st.DataObject, groups: list[str]) -> None:
        network = self.a_network(data)
        name = "net9" if network is None else network.name
        self.do(f"disconnect {name} {groups}", Networks(self.ledger).disconnect(name, groups))

    @rule(group=some_group, gone=st.sampled_from([False, False, True]))
    def change_groups(self, group: str, gone: bool) -> None:
        cluster = Cluster(self.ledger)
        self.do(f"group {group} {gone=}", cluster.remove_group(group) if gone else cluster.add_group(group))

    @rule(data=st.data(), name=st.sampled_from(NODES), ips=st.lists(addresses, max_size=2))
    def add_node(self, data: st.DataObject, name: str, ips: list[str]) -> None:
        group = data.draw(often(self.sight.names(GROUP), some_group), label="group")
        first, second, *_ = [*ips, None, None]
        check = self.check_or_not(data)
        command = Cluster(self.ledger).add_node(name, group=group, primary_ip=first, secondary_ip=second, check=check)
        self.do(f"add node {name} in {group} {ips}", command)

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
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
            assert await other.verify() == []
        for check in ALWAYS:
            check(sight)
        assert [each.name for each in sight.instances] == [each.name for each in self.sight.instances]
