"""Edits of connections, and the judgement on DHCP."""

import pytest

from tenure.kernel.errors import Conflict, NotFound, TenureError
from tenure.kernel.plan import edits
from tenure.kernel.plan.apply_edit import edited
from tenure.kernel.plan.plan_model import Connection
from tests.kernel.plans import net1, network, planned


def connect(group: str, **words: object) -> edits.Connect:
    return edits.Connect(network="net1", group=group, **words)  # type: ignore[arg-type]


def test_connections_stand_in_the_order_they_were_made() -> None:
    plan = net1(connect("b", mode="routed", link="eth1", vlan="7"), connect("a"))

    assert network(plan).connections == (Connection("b", "routed", "eth1", "7"), Connection("a", "bridged", ""))


def test_a_connection_said_again_is_replaced_in_its_place() -> None:
    plan = net1(connect("b"), connect("a"), connect("b", link="br1"))

    assert network(plan).connections == (Connection("b", "bridged", "br1"), Connection("a", "bridged", ""))


def test_a_connection_is_removed_and_the_others_stay() -> None:
    plan = net1(connect("b"), connect("a"), edits.Disconnect(network="net1", group="b"))

    assert [each.group for each in network(plan).connections] == ["a"]
    with pytest.raises(NotFound) as refusal:
        edited(plan, edits.Disconnect(network="net1", group="b"))
    assert (refusal.value.kind, refusal.value.field) == ("connection", "group")


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        (connect(""), "group"),
        (connect("g", mode=""), "mode"),
        (connect("g", link=None), "link"),
        (connect("g", vlan=7), "vlan"),
        (edits.Disconnect(network="net1", group=" g"), "group"),
    ],
)
def test_a_wrong_field_of_a_connection_is_named(edit: edits.Edit, field: str) -> None:
    with pytest.raises(TenureError) as refusal:
        edited(net1(), edit)
    assert refusal.value.field == field


def test_the_log_tells_of_a_connection_what_was_said() -> None:
    assert connect("g", link="br0").told() == {"network": "net1", "group": "g", "mode": "bridged", "link": "br0"}
    assert (edits.Connect.verb, edits.Disconnect.verb) == ("network.connect", "network.disconnect")


def dhcp(subnet: str, switch: bool) -> edits.ModifySubnet:
    return edits.ModifySubnet(network="net1", subnet=subnet, dhcp=switch)


def test_two_subnets_of_one_ip_version_cannot_both_have_dhcp() -> None:
    with pytest.raises(Conflict) as refusal:
        net1(dhcp("subnet1", True), dhcp("subnet2", True))

    assert refusal.value.field == "dhcp"
    assert refusal.value.message == (
        "subnets 192.0.2.0/24 and 10.0.0.0/24 of network 'net1' cannot both have DHCP; one subnet of IPv4 can"
    )


def test_a_subnet_of_each_ip_version_has_dhcp_and_other_networks_do_not_count() -> None:
    plan = net1(
        dhcp("subnet1", True),
        edits.AddSubnet(network="net1", cidr="2001:db8::/64", uuid="u6", dhcp=True),
        edits.AddNetwork(network="net2"),
        edits.AddSubnet(network="net2", cidr="10.0.0.0/24", uuid="u7", dhcp=True),
    )

    assert [subnet.dhcp for subnet in network(plan).subnets] == [True, False, True]
    with pytest.raises(Conflict, match="one subnet of IPv6 can"):
        planned(edits.AddSubnet(network="net1", cidr="2001:db8:1::/64", uuid="u8", dhcp=True), on=plan)


def test_dhcp_is_judged_by_the_final_state() -> None:
    before = net1(dhcp("subnet1", True))

    after = planned(dhcp("subnet2", True), dhcp("subnet1", False), on=before)

    assert [subnet.name for subnet in network(after).subnets if subnet.dhcp] == ["subnet2"]
