"""Edits of networks and subnets."""

import pytest

from tenure.kernel.errors import AlreadyExists, Invalid, NotFound, Overlap, TenureError
from tenure.kernel.plan import edits
from tenure.kernel.plan.apply_edit import edited
from tenure.kernel.plan.plan_model import KeepBack, NetworkKind
from tests.kernel.plans import net1, network, planned, pools


def modify(**changes: object) -> edits.ModifySubnet:
    return edits.ModifySubnet(network="net1", subnet="subnet1", **changes)  # type: ignore[arg-type]


def test_a_network_has_what_was_asked_for() -> None:
    asked = edits.AddNetwork(
        network="n", kind="vip", mac_prefix="AA:BB:0C", tags=["b", "a", "b"], labels={"k": "v"}, description="text"
    )

    added = planned(asked).network("n")

    assert (added.kind, added.mac_prefix, added.tags) == (NetworkKind.VIP, "aa:bb:0c", ("b", "a"))
    assert (added.notes.labels, added.notes.description) == ({"k": "v"}, "text")


def test_a_rename_keeps_everything_else_and_the_order_of_networks() -> None:
    plan = planned(*(edits.AddNetwork(network=name) for name in "abc"))

    renamed = planned(edits.ModifyNetwork(network="b", name="z"), on=plan)

    assert list(renamed.networks) == ["a", "z", "c"]
    assert renamed.network("z").id == plan.network("b").id
    assert renamed.network("z").uuid == plan.network("b").uuid


def test_a_rename_to_a_taken_name_is_refused_and_to_the_own_name_is_not() -> None:
    plan = planned(edits.AddNetwork(network="a"), edits.AddNetwork(network="b"))

    assert list(edited(plan, edits.ModifyNetwork(network="b", name="b")).networks) == ["a", "b"]
    with pytest.raises(AlreadyExists) as refusal:
        edited(plan, edits.ModifyNetwork(network="b", name="a"))
    assert refusal.value.kind == "network"


def test_modify_leaves_alone_what_it_does_not_name() -> None:
    plan = net1()

    assert edited(plan, edits.ModifyNetwork(network="net1")) == plan
    assert edited(plan, modify()) == plan
    assert edited(plan, edits.ModifyPool(network="net1", pool="pool1")) == plan


def test_a_network_can_be_retired_and_put_to_use_again() -> None:
    retired = net1(edits.ModifyNetwork(network="net1", retired=True))

    assert network(retired).retired
    assert not network(planned(edits.ModifyNetwork(network="net1", retired=False), on=retired)).retired


def test_a_removed_network_is_gone_and_unknown_ones_are_told() -> None:
    assert net1(edits.RemoveNetwork(network="net1")).networks == {}
    with pytest.raises(NotFound) as refusal:
        edited(net1(), edits.RemoveNetwork(network="net2"))
    assert (refusal.value.kind, refusal.value.name) == ("network", "net2")


def test_a_subnet_keeps_back_network_broadcast_and_gateway_unless_told_otherwise() -> None:
    plan = net1(
        edits.AddSubnet(network="net1", cidr="2001:db8::/64", name="six", uuid="u6"),
        edits.AddSubnet(network="net1", cidr="198.51.100.0/31", name="p2p", uuid="u31"),
        edits.AddSubnet(network="net1", cidr="198.51.100.8/29", name="bare", uuid="u29", keep_back=[]),
        edits.AddSubnet(network="net1", cidr="198.51.100.16/28", name="last", uuid="u28", keep_back=("last",)),
        edits.AddSubnet(network="net1", cidr="2001:db8:1::/48", name="units", uuid="u48", unit=64),
    )
    kept = {subnet.name: set(subnet.keep_back) for subnet in network(plan).subnets}

    assert kept["subnet1"] == {KeepBack.NETWORK, KeepBack.BROADCAST, KeepBack.GATEWAY}
    assert kept["six"] == {KeepBack.NETWORK, KeepBack.GATEWAY}
    assert kept["p2p"] == kept["units"] == {KeepBack.GATEWAY}
    assert kept["bare"] == set()
    assert kept["last"] == {KeepBack.LAST}


@pytest.mark.parametrize("ident", ["subnet2", "10.0.0.0/24", "u2"])
def test_a_subnet_is_found_by_name_block_and_uuid(ident: str) -> None:
    changed = net1(edits.ModifySubnet(network="net1", subnet=ident, dhcp=True))

    assert network(changed).subnet("subnet2").dhcp
    assert not network(changed).subnet("subnet1").dhcp


@pytest.mark.parametrize("cidr", ["192.0.2.0/24", "192.0.2.0/25", "192.0.0.0/16"])
def test_subnets_of_one_network_are_disjoint(cidr: str) -> None:
    with pytest.raises(Overlap) as refusal:
        net1(edits.AddSubnet(network="net1", cidr=cidr, uuid="u3"))

    assert refusal.value.field == "cidr"


def test_networks_of_one_space_may_lie_over_each_other() -> None:
    plan = net1(
        edits.AddNetwork(network="net2"), edits.AddSubnet(network="net2", cidr="192.0.2.0/24", name="subnet1", uuid="x")
    )

    assert plan.network("net2").subnet("subnet1").cidr == network(plan).subnet("subnet1").cidr


@pytest.mark.parametrize("name", ["subnet2", "10.0.0.0/24", "u2"])
def test_a_subnets_name_must_not_mean_another_subnet(name: str) -> None:
    with pytest.raises(AlreadyExists):
        net1(edits.AddSubnet(network="net1", cidr="198.51.100.0/24", name=name, uuid="u3"))
    with pytest.raises(AlreadyExists):
        net1(modify(name=name))


def test_two_subnets_never_share_a_uuid() -> None:
    with pytest.raises(AlreadyExists) as refusal:
        net1(edits.AddSubnet(network="net1", cidr="198.51.100.0/24", uuid="u1"))

    assert refusal.value.field == "uuid"


def test_a_subnet_may_lose_its_name_and_gateway() -> None:
    changed = network(net1(modify(name=None, gateway=None))).subnet("u1")

    assert (changed.name, changed.gateway) == (None, None)


@pytest.mark.parametrize(
    ("cidr", "gateway"), [("10.1.0.0/24", "10.1.1.1"), ("10.1.0.0/24", "fe80::1"), ("2001:db8::/64", "192.0.2.1")]
)
def test_a_gateway_outside_its_block_is_refused(cidr: str, gateway: str) -> None:
    with pytest.raises(Invalid) as refusal:
        net1(edits.AddSubnet(network="net1", cidr=cidr, gateway=gateway, uuid="u3"))

    assert refusal.value.field == "gateway"


def test_an_ipv6_gateway_may_be_link_local_and_then_keeps_nothing_back() -> None:
    plan = net1(edits.AddSubnet(network="net1", cidr="2001:db8::/64", gateway="fe80::1", name="six", uuid="u3"))

    assert KeepBack.GATEWAY not in {why for _, why in network(plan).subnet("six").kept_back()}


def test_a_subnet_grows_and_its_pools_stay() -> None:
    grown = net1(modify(cidr="192.0.2.0/23"))

    assert str(network(grown).subnet("subnet1").cidr) == "192.0.2.0/23"
    assert pools(grown) == pools(net1())


@pytest.mark.parametrize(
    ("before", "after"),
    [("192.0.2.10-192.0.2.100", "192.0.2.10-192.0.2.100"), ("192.0.2.10-192.0.2.200", "192.0.2.10-192.0.2.127")],
)
def test_a_shrinking_subnet_cuts_its_pools(before: str, after: str) -> None:
    plan = net1(edits.RemovePool(network="net1", pool="pool1"), edits.AddPool(network="net1", range=before))

    assert pools(planned(modify(cidr="192.0.2.0/25"), on=plan)) == [(None, after)]


def test_a_subnet_does_not_shrink_past_a_reserved_range() -> None:
    plan = net1(edits.Reserve(network="net1", range="192.0.2.200-192.0.2.210"))

    with pytest.raises(Overlap, match=r"192\.0\.2\.200") as refusal:
        planned(modify(cidr="192.0.2.0/25"), on=plan)
    assert refusal.value.field == "cidr"


@pytest.mark.parametrize("first", [True, False])
def test_a_subnet_shrinks_past_a_reserved_range_that_is_lifted_before_or_behind(first: bool) -> None:
    plan = net1(edits.Reserve(network="net1", range="192.0.2.200-192.0.2.210"))
    steps = [modify(cidr="192.0.2.0/25"), edits.Unreserve(network="net1", range="192.0.2.200-192.0.2.210")]

    shrunk = planned(*(reversed(steps) if first else steps), on=plan)

    assert network(shrunk).subnet("subnet1").reserved == ()


def test_a_subnet_does_not_move_away_from_its_pools() -> None:
    move = edits.ModifySubnet(network="net1", subnet="subnet1", cidr="198.51.100.0/24", gateway=None)

    with pytest.raises(Overlap, match="pool1") as refusal:
        planned(move, on=net1())
    assert refusal.value.field == "cidr"
    assert pools(planned(move, edits.RemovePool(network="net1", pool="pool1"), on=net1())) == []


def test_a_subnet_does_not_leave_its_gateway_behind() -> None:
    with pytest.raises(Invalid) as refusal:
        edited(net1(), modify(cidr="192.0.2.128/25"))

    assert refusal.value.field == "gateway"


def test_a_subnet_does_not_change_its_family_nor_shrink_below_its_unit() -> None:
    units = net1(edits.AddSubnet(network="net1", cidr="10.8.0.0/16", name="units", unit=24, uuid="u3"))

    with pytest.raises(Invalid):
        edited(units, modify(cidr="2001:db8::/64"))
    with pytest.raises(Invalid, match="/24"):
        edited(units, edits.ModifySubnet(network="net1", subnet="units", cidr="10.8.0.0/25"))


def test_a_removed_subnet_takes_its_pools_along() -> None:
    removed = net1(edits.RemoveSubnet(network="net1", subnet="subnet1"))

    assert [subnet.name for subnet in network(removed).subnets] == ["subnet2"]
    assert pools(removed) == []


@pytest.mark.parametrize("unit", [7, 23, 33, -1, True, 24.0, "28", 10**5000], ids=lambda unit: type(unit).__name__)
def test_a_unit_is_a_prefix_length_inside_the_block(unit: object) -> None:
    wrong = edits.AddSubnet(network="net1", cidr="198.51.100.0/24", unit=unit, uuid="u3")  # type: ignore[arg-type]

    with pytest.raises(Invalid) as refusal:
        edited(net1(), wrong)
    assert refusal.value.field == "unit"


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (edits.ModifySubnet(network="net1", subnet=None), "subnet"),  # type: ignore[arg-type]
        (edits.RemoveSubnet(network="net1", subnet=None), "subnet"),  # type: ignore[arg-type]
        (edits.RemoveSubnet(network="net1", subnet="subnet1", cascade="no"), "cascade"),  # type: ignore[arg-type]
        (edits.RemoveNetwork(network="net1", cascade=1), "cascade"),  # type: ignore[arg-type]
        (edits.ModifyNetwork(network="net1", retired="yes"), "retired"),  # type: ignore[arg-type]
        (edits.ModifyNetwork(network="net1", kind="other"), "kind"),
        (edits.ModifyNetwork(network="net1", mac_prefix="aa:"), "mac_prefix"),
        (edits.ModifyNetwork(network="net1", tags="ab"), "tags"),
        (edits.ModifyNetwork(network="net1", tags=[1]), "tags"),  # type: ignore[list-item]
        (edits.ModifyNetwork(network="net1", labels={"a": 1}), "labels[a]"),  # type: ignore[dict-item]
        (modify(dns=["x"]), "dns"),
        (modify(zones=5), "zones"),
        (modify(keep_back=["first"]), "keep_back"),
        (modify(description="\0"), "description"),
        (modify(cidr="192.0.2.0"), "cidr"),
    ],
)
def test_a_wrong_field_is_named(edit: edits.Edit, field: str) -> None:
    unnamed = net1(edits.AddSubnet(network="net1", cidr="203.0.113.0/24", uuid="u3"))

    with pytest.raises(TenureError) as refusal:
        edited(unnamed, edit)
    assert refusal.value.field == field
