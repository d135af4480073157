"""Rules that change instances, at once or as jobs that are left pending, committed, failed, ended or forgotten."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tenure.integrations.ganeti.cluster import Cluster
from tenure.integrations.ganeti.instance.job import Job
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions, plan_add, plan_modify, plan_remove
from tenure.integrations.ganeti.instances import Done, Instances
from tenure.integrations.ganeti.machine_model import NODE, Instance
from tenure.integrations.ganeti.networks import Networks
from tests.integrations.ganeti.machine.bench import LATE_S, MEMORY, SOON_S, Answer, Bench
from tests.integrations.ganeti.machine.picks import check_picks, check_refusal, picks_of_change, picks_of_new
from tests.integrations.ganeti.machine.sight import Sight
from tests.integrations.ganeti.machine.wishes import (
    INSTANCES,
    NODES,
    NicText,
    changes,
    nic_texts,
    often,
    pick_words,
    plain_changes,
    seldom,
    shuffles,
)

some_instance = st.sampled_from(INSTANCES)
rarely = seldom(5)
deadlines = st.sampled_from([SOON_S, LATE_S])


@dataclass(frozen=True)
class Wish:
    """A command on an instance: its options, and what they say of NICs."""

    name: str
    nets: Sequence[str]
    said: Sequence[NicText]
    options: InstanceOptions


class InstanceRules(Bench):
    """Change instances."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.committed: list[Job] = []

    def new_wish(self, data: st.DataObject, name: str) -> Wish:
        """Draw a new instance."""
        count = data.draw(st.integers(0, 3), label="nics")
        said = [data.draw(nic_texts(self.networks(), data.draw(pick_words))) for _ in range(count)]
        node = data.draw(
            st.one_of(st.none(), st.none(), often(self.sight.names(NODE), st.sampled_from(NODES))), label="node"
        )
        options = self.options(data.draw(rarely, label="force"), not data.draw(rarely, label="unchecked"), node)
        return Wish(name, [f"{place}:{text.words}" for place, text in enumerate(said)], said, options)

    def change_wish(self, data: st.DataObject, name: str) -> Wish:
        """Draw a change of an instance."""
        instance, word = self.sight.instance(name), data.draw(pick_words)
        drawn = data.draw(st.lists(changes(instance, self.networks(), word), min_size=1, max_size=3), label="nets")
        options = self.options(data.draw(rarely, label="force"), not data.draw(rarely, label="unchecked"))
        return Wish(name, [net for net, _ in drawn], [said for _, said in drawn], options)

    def present(self, data: st.DataObject) -> str:
        """Draw an instance, mostly one that is there."""
        return data.draw(often([each.name for each in self.sight.instances], some_instance), label="instance")

    def absent(self, data: st.DataObject) -> str:
        """Draw a name, mostly one that no instance has."""
        known = [each.name for each in self.sight.instances]
        return data.draw(often([name for name in INSTANCES if name not in known], some_instance), label="instance")

    def settle(self, before: Sight, wish: Wish, answer: Answer[Done]) -> None:
        """Note what came of a command, and hold its picks against the maps before."""
        if answer.error is not None:
            check_refusal(before, answer.error, wish.said)
        elif answer.value is not None:
            self.check_picked(before, wish, answer.value.instance)
            self.told.instance(wish.name, answer.value.instance)

    def check_picked(self, before: Sight, wish: Wish, after: Instance) -> None:
        """Hold picks against the maps that were read before."""
        known = before.instance(wish.name)
        picks = picks_of_new(after, wish.said) if known is None else picks_of_change(known, after, wish.said)
        late = {(n.uuid, h.address) for n, h in before.rows if self.overdue(until_us=h.row.until_us)}
        check_picks(before, picks, after, late)

    @precondition(lambda self: len(self.sight.instances) < len(INSTANCES))
    @rule(data=st.data())
    def add_instance(self, data: st.DataObject) -> None:
        name = self.absent(data)
        before, wish = self.sight, self.new_wish(data, name)
        command = Instances(self.ledger).add(name, wish.nets, wish.options)
        self.settle(before, wish, self.do(f"add instance {wish}", command))

    @precondition(lambda self: self.sight.networks and len(self.sight.instances) < len(INSTANCES))
    @rule(data=st.data(), force=seldom())
    def add_plain_instance(self, data: st.DataObject, force: bool) -> None:
        name = self.absent(data)
        said = data.draw(nic_texts(self.networks(), data.draw(pick_words)), label="nic")
        before, wish = self.sight, Wish(name, [f"0:{said.words}"], [said], self.options(force, True))
        command = Instances(self.ledger).add(name, wish.nets, wish.options)
        self.settle(before, wish, self.do(f"add instance {wish}", command))

    @precondition(lambda self: self.sight.instances)
    @rule(data=st.data())
    def modify_instance(self, data: st.DataObject) -> None:
        name = self.present(data)
        before, wish = self.sight, self.change_wish(data, name)
        command = Instances(self.ledger).modify(name, wish.nets, wish.options)
        self.settle(before, wish, self.do(f"modify instance {wish}", command))

    @precondition(lambda self: any(nic.ips for each in self.sight.instances for nic in each.nics))
    @rule(data=st.data())
    def hand_addresses_around(self, data: st.DataObject) -> None:
        instance = data.draw(st.sampled_from([each for each in self.sight.instances if any(n.ips for n in each.nics)]))
        nets = data.draw(shuffles(instance))
        before, wish = self.sight, Wish(instance.name, nets, [], InstanceOptions())
        command = Instances(self.ledger).modify(instance.name, nets, wish.options)
        answer = self.do(f"shuffle {instance.name} {nets}", command)
        networks = {nic.network for nic in instance.nics if nic.ips}
        if len(networks) == 1 and None not in networks:
            assert answer.done, f"addresses that stay in one network can be handed around: {answer.error}"
        self.settle(before, wish, answer)

    @precondition(lambda self: self.sight.instances)
    @rule(data=st.data())
    def remove_instance(self, data: st.DataObject) -> None:
        name = self.present(data)
        if self.do(f"remove instance {name}", Instances(self.ledger).remove(name)).done:
            self.told.instance(name, None)

    @rule(data=st.data(), kind=st.sampled_from(["add", "add", "modify", "remove"]), lasts_s=deadlines)
    def begin_job(self, data: st.DataObject, kind: str, lasts_s: float) -> None:
        name = self.absent(data) if kind == "add" else self.present(data)
        self.begin_one(kind, self.new_wish(data, name) if kind == "add" else self.change_wish(data, name), lasts_s)

    @precondition(lambda self: self.sight.instances and self.sight.networks)
    @rule(data=st.data(), lasts_s=deadlines)
    def begin_plain_change(self, data: st.DataObject, lasts_s: float) -> None:
        instance = data.draw(st.sampled_from(self.sight.instances))
        net, said = data.draw(plain_changes(instance, self.networks(), data.draw(pick_words)))
        self.begin_one("modify", Wish(instance.name, [net], [said], self.options(False, True)), lasts_s)

    def begin_one(self, kind: str, wish: Wish, lasts_s: float) -> None:
        """Plan a command, take what it needs, and leave it there."""
        before = self.sight
        answer = self.do(f"begin {kind} {wish} for {lasts_s}", self._begin(kind, wish, lasts_s))
        job = answer.value
        if answer.error is not None:
            check_refusal(before, answer.error, wish.said if kind != "remove" else [])
        if job is None:
            return
        self.jobs.append(job)
        self.told.wait(job.pending.values(), self.sight)
        if kind != "remove":
            self.check_picked(before, wish, job.instance)

    async def _begin(self, kind: str, wish: Wish, lasts_s: float) -> Job | None:
        if kind == "add":
            job: Job | None = await plan_add(self.ledger, wish.name, wish.nets, wish.options)
        elif kind == "modify":
            job = await plan_modify(self.ledger, wish.name, wish.nets, wish.options)
        else:
            job = await plan_remove(self.ledger, wish.name)
        if job is not None:
            await job.hold(lasts_s=lasts_s)
        return job

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), lingers_s=st.sampled_from([None, SOON_S, LATE_S, LATE_S]))
    def commit_job(self, data: st.DataObject, lingers_s: float | None) -> None:
        job = self.jobs[data.draw(st.integers(0, len(self.jobs) - 1), label="job")]
        self.commit(job, lingers_s)

    def commit(self, job: Job, lingers_s: float | None) -> None:
        """Commit a job, and note what came of it."""
        taken = list(job.pending.values())
        if self.do(f"commit {job.instance.name} {lingers_s=}", job.commit(lingers_s=lingers_s)).done:
            self.jobs.remove(job)
            self.committed += [job] if job.cooling else []
            self.told.settle(taken)
            self.told.instance(job.instance.name, job.after)
            self.told.cool(job.cooling, self.sight)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), what=st.sampled_from(["node", "instance", "network", "wires"]))
    def commit_job_that_is_in_trouble(self, data: st.DataObject, what: str) -> None:
        job = self.jobs[data.draw(st.integers(0, len(self.jobs) - 1), label="job")]
        wanted = [nic.network for nic in job.instance.nics if nic.network is not None]
        network = data.draw(st.sampled_from(wanted), label="network") if wanted else "net1"
        networks, name = Networks(self.ledger), job.instance.name
        if what == "node":
            self.do(f"remove node {job.instance.node}", Cluster(self.ledger).remove_node(job.instance.node))
        elif what == "instance" and self.do(f"remove instance {name}", Instances(self.ledger).remove(name)).done:
            self.told.instance(name, None)
        elif what in ("network", "wires"):
            self.clear(network, name)
            self.do(f"disconnect {network}", networks.disconnect(network))
            if what == "network":
                gone = self.do(f"remove {network}", networks.remove(network, cascade=True)).value
                self.told.forget_network("" if gone is None else gone.network.uuid)
        self.commit(job, None)

    def clear(self, network: str, but: str) -> None:
        """Remove the instances on a network, but one."""
        there = [each for each in self.sight.instances if any(nic.network == network for nic in each.nics)]
        for name in [each.name for each in there if each.name != but]:
            if self.do(f"remove instance {name}", Instances(self.ledger).remove(name)).done:
                self.told.instance(name, None)

    @precondition(lambda self: len(self.jobs) > 1)
    @rule(data=st.data(), lost=seldom())
    def give_up_job(self, data: st.DataObject, lost: bool) -> None:
        job = self.jobs.pop(data.draw(st.integers(0, len(self.jobs) - 1), label="job"))
        taken = list(job.pending.values())
        if not lost and self.do(f"fail {job.instance.name}", job.fail()).done:
            self.told.settle(taken)

    @precondition(lambda self: self.committed)
    @rule(data=st.data())
    def end_job(self, data: st.DataObject) -> None:
        job = self.committed.pop(data.draw(st.integers(0, len(self.committed) - 1), label="job"))
        given = list(job.cooling)
        if self.do(f"end {job.instance.name}", job.end()).done:
            self.told.settle(given)

    @rule(sweep=st.booleans())
    def let_deadlines_pass(self, sweep: bool) -> None:
        if self.url == MEMORY:
            self.clock_us += 1_000_000
        else:
            self.wait_for(asyncio.sleep(SOON_S + 0.005))
        if sweep:
            self.do("sweep", self.ledger.sweep())
            assert not any(self.overdue(until_us=h.row.until_us) for _, h in self.sight.rows)
