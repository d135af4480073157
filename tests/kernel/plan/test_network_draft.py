"""A network that is edited many times as a draft becomes what the same edits make of it one by one."""

from collections.abc import Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.kernel.errors import NotFound, TenureError
from tenure.kernel.plan import edits
from tenure.kernel.plan.apply_edit import edit_draft, edited
from tenure.kernel.plan.network_draft import NetworkDraft
from tenure.kernel.plan.plan_model import Configuration, Network, Subnet
from tests.kernel.plans import net1, network

NET = "net1"
BLOCKS = ["10.0.0.0/24", "10.0.0.0/25", "10.0.1.0/24", "10.0.0.0/23", "192.0.2.0/24", "192.0.2.128/25"]
IDENTS = [*BLOCKS, "subnet1", "subnet2", "u1", "a", "b", "uuid-a", "uuid-b"]
NAMES = [None, "a", "b", "subnet1", "10.0.1.0/24"]
RANGES = ["10.0.0.9", "10.0.0.0/26", "10.0.1.7-10.0.1.9", "192.0.2.200", "192.0.2.0/25"]

add = st.builds(
    edits.AddSubnet,
    network=st.just(NET),
    cidr=st.sampled_from(BLOCKS),
    name=st.sampled_from(NAMES),
    uuid=st.sampled_from(["uuid-a", "uuid-b", "uuid-c", "a"]),
)
remove = st.builds(edits.RemoveSubnet, network=st.just(NET), subnet=st.sampled_from(IDENTS))
modify = st.builds(
    edits.ModifySubnet,
    network=st.just(NET),
    subnet=st.sampled_from(IDENTS),
    name=st.sampled_from([edits.KEEP, *NAMES]),
    cidr=st.sampled_from([edits.KEEP, *BLOCKS]),
)
pool = st.builds(
    edits.AddPool,
    network=st.just(NET),
    range=st.sampled_from(RANGES),
    name=st.sampled_from([None, "p", "q", "pool1"]),
    policy=st.sampled_from([None, "lowest", "random"]),
)
change_pool = st.builds(
    edits.ModifyPool,
    network=st.just(NET),
    pool=st.sampled_from(["p", "q", "pool1", *RANGES]),
    policy=st.sampled_from(["lowest", "random"]),
)
drop_pool = st.builds(edits.RemovePool, network=st.just(NET), pool=st.sampled_from(["p", "pool1", *RANGES]))
reserve = st.builds(edits.Reserve, network=st.just(NET), range=st.sampled_from(RANGES))
unreserve = st.builds(edits.Unreserve, network=st.just(NET), range=st.sampled_from(RANGES))
wait = st.builds(
    edits.Preallocate,
    network=st.just(NET),
    owner=st.sampled_from(["vm/a", "vm/b"]),
    address=st.sampled_from(["10.0.0.1", "10.0.0.2"]),
)
wait_no_more = st.builds(edits.RemovePreallocation, network=st.just(NET), owner=st.sampled_from(["vm/a", "vm/b"]))
link = st.builds(edits.Connect, network=st.just(NET), group=st.sampled_from(["g", "h"]), mode=st.just("bridged"))
steps = st.lists(
    st.one_of(
        add, remove, modify, pool, change_pool, drop_pool, reserve, unreserve, wait, wait_no_more, link
    ),
    max_size=12,
)  # fmt: skip


def drafted(draft: NetworkDraft, edit: edits.Edit) -> Network | str:
    try:
        edit_draft(draft, edit)
    except TenureError as error:
        return str(error)
    return draft.finished()


def alone(plan: Configuration, edit: edits.Edit) -> Network | str:
    try:
        return network(edited(plan, edit))
    except TenureError as error:
        return str(error)


@given(steps)
def test_edits_of_one_draft_do_and_refuse_what_they_do_one_by_one(given: Sequence[edits.Edit]) -> None:
    plan = net1()
    draft = NetworkDraft(network(plan))
    for edit in given:
        after = alone(plan, edit)

        assert drafted(draft, edit) == after
        plan = plan if isinstance(after, str) else replace(plan, networks={NET: after})
        assert draft.finished() == network(plan)


def test_a_subnet_is_added_to_many_without_a_look_at_each_of_them() -> None:
    draft = NetworkDraft(network(net1()))
    with patch.object(Subnet, "answers_to", side_effect=AssertionError("looked at")):
        for number in range(2000):
            block = f"172.16.{number // 64}.{number % 64 * 4}/30"
            edit_draft(draft, edits.AddSubnet(network=NET, cidr=block, name=f"s{number}", uuid=f"id-{number}"))
            edit_draft(draft, edits.AddPool(network=NET, range=block, name="wide"))
            edit_draft(draft, edits.ModifySubnet(network=NET, subnet=block, description="x"))
        edit_draft(draft, edits.RemoveSubnet(network=NET, subnet="s17"))

    assert len(draft.finished().subnets) == 2001


def test_a_draft_leaves_the_network_alone_that_it_was_made_of() -> None:
    before: Network = network(net1())
    draft = NetworkDraft(before)
    edit_draft(draft, edits.RemoveSubnet(network=NET, subnet="subnet1"))

    assert [subnet.name for subnet in before.subnets] == ["subnet1", "subnet2"]
    assert draft.finished() == replace(before, subnets=before.subnets[1:])
    with pytest.raises(NotFound):
        draft.find("u1")
