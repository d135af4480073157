"""Connections of networks to groups of nodes, and DHCP on one subnet of each IP version, through the ledger."""

import pytest

import tenure
from tenure.service.apply.operations import Operation
from tests.contract.ledger.plan import small_plan
from tests.contract.ledger.timing import news, verbs

pytestmark = pytest.mark.every_store


@pytest.fixture(autouse=True)
async def plan(ledger: tenure.AsyncLedger) -> None:
    await small_plan(ledger)


def connect(group: str, **words: str) -> tenure.Connect:
    return tenure.Connect(network="net", group=group, **words)


async def test_a_network_is_connected_to_groups_and_that_is_read_back(ledger: tenure.AsyncLedger) -> None:
    cursor = await ledger.last_change()
    [first, second] = await ledger.apply([connect("rack1", link="br0"), connect("rack2", mode="routed", vlan="7")])

    assert isinstance(first, tenure.Network)
    assert first == second
    assert second == await ledger.network("net")
    found = await ledger.network("net")
    assert found.connections[1] == tenure.Connection("rack2", "routed", "", "7")
    assert found.connection("rack2") == found.connections[1]
    assert found.connection("rack3") is None
    told = await news(ledger, cursor)
    assert [(change.verb, change.network_name, change.details["group"]) for change in told] == [
        ("network.connect", "net", "rack1"),
        ("network.connect", "net", "rack2"),
    ]


async def test_a_connection_said_again_takes_the_place_of_the_first(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([connect("rack1"), connect("rack2")])
    await ledger.apply([connect("rack1", mode="openvswitch", link="ovs", vlan="9")])

    assert (await ledger.network("net")).connections == (
        tenure.Connection("rack1", "openvswitch", "ovs", "9"),
        tenure.Connection("rack2", "bridged", ""),
    )


async def test_a_network_is_disconnected_and_only_once(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([connect("rack1"), connect("rack2")])
    await ledger.apply([tenure.Disconnect(network="net", group="rack1")])

    assert [each.group for each in (await ledger.network("net")).connections] == ["rack2"]
    assert (await verbs(ledger))[-1] == "network.disconnect"
    with pytest.raises(tenure.NotFound, match="network 'net' is not connected to 'rack1'") as told:
        await ledger.apply([tenure.Disconnect(network="net", group="rack1")])
    assert told.value.field == "group"


async def test_a_connection_goes_only_while_nothing_uses_it(ledger: tenure.AsyncLedger) -> None:
    await ledger.apply([connect("rack1"), tenure.WritePaper(kind="nic", name="net/rack1/vm", document={})])
    leave: list[Operation] = [
        tenure.Disconnect(network="net", group="rack1"),
        tenure.ExpectNoPapers(kind="nic", prefix="net/rack1/"),
    ]

    with pytest.raises(tenure.StillInUse):
        await ledger.apply(leave)
    await ledger.apply([tenure.RemovePaper(kind="nic", name="net/rack1/vm", revision=1), *leave])
    assert (await ledger.network("net")).connections == ()


async def test_one_subnet_of_each_ip_version_has_dhcp(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_subnet("net", "block", dhcp=True)
    await ledger.add_subnet("net", "2001:db8::/64", dhcp=True)

    for call in (
        ledger.add_subnet("net", "10.0.0.0/24", dhcp=True),
        ledger.add_subnet("net", "2001:db8:1::/64", dhcp=True),
    ):
        with pytest.raises(tenure.Conflict, match="cannot both have DHCP") as told:
            await call
        assert told.value.field == "dhcp"

    assert [subnet.dhcp for subnet in (await ledger.network("net")).subnets] == [True, True]


async def test_dhcp_moves_from_one_subnet_to_another_in_one_apply(ledger: tenure.AsyncLedger) -> None:
    await ledger.modify_subnet("net", "block", dhcp=True)
    await ledger.apply(
        [
            tenure.AddSubnet(network="net", cidr="10.0.0.0/24", name="new", dhcp=True),
            tenure.ModifySubnet(network="net", subnet="block", dhcp=False),
        ]
    )

    assert [subnet.name for subnet in (await ledger.network("net")).subnets if subnet.dhcp] == ["new"]
