"""A configuration survives the ledger: import, export, import again, in both forms and from one to the other."""

import copy
from typing import Any

import tenure
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tests.integrations.ganeti.files.documents import (
    DB,
    EMPTY,
    NET1,
    NODE2,
    WEB,
    Json,
    brought_in,
    new_document,
    old_document,
)


async def contents(ledger: tenure.AsyncLedger) -> list[Any]:
    """Read all that an import makes, without the times of its making."""
    networks = await ledger.networks()
    plan = [(n.name, n.uuid, n.tags, n.mac_prefix, n.subnets, n.connections, n.serial) for n in networks]
    kinds = ("ganeti", "group", "node", "instance", "nic", "mac", "placement", "cluster")
    papers = [paper for kind in kinds for paper in await ledger.papers(kind)]
    holdings = [
        (h.network, h.address, h.owner, h.slot, h.description) for n in networks for h in await ledger.holdings(n.name)
    ]
    return [plan, papers, holdings]


async def test_q10_u7_a_configuration_of_today_comes_back_equal(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())

    assert await export_cluster(ledger, "today") == old_document()


async def test_q10_a_revised_configuration_comes_back_equal(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())

    assert await export_cluster(ledger, "revised") == new_document()


async def test_a_second_import_of_what_was_exported_makes_the_same_ledger(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    written = await export_cluster(ledger, "today")

    async with await tenure.open_async("memory:") as other:
        await brought_in(other, written)
        assert await contents(other) == await contents(ledger)


async def test_today_to_revised_to_today_changes_nothing(ledger: tenure.AsyncLedger) -> None:
    old = old_document()
    del old["instances"][DB]["nics"][2]["ip"]  # a null; the revised form says [], and today's leaves it out
    await brought_in(ledger, copy.deepcopy(old))
    revised = await export_cluster(ledger, "revised")

    async with await tenure.open_async("memory:") as other:
        await brought_in(other, revised)
        assert await export_cluster(other, "revised") == revised
        assert await export_cluster(other, "today") == old


async def test_q07_q08_u28_a_network_of_today_becomes_a_subnet_with_a_pool_over_all_of_it(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())

    net1 = (await export_cluster(ledger, "revised"))["networks"][NET1]
    four, six = net1["subnets"]
    assert (four["cidr"], four["gateway"], four["dhcp"]) == ("192.0.2.0/28", "192.0.2.1", False)
    whole = {"start": "192.0.2.0", "size": 16, "end": "192.0.2.15"}
    assert four["pools"] == [{"range": whole, "reservations": "0000111000000000"}]
    assert [piece["start"] + "+" + str(piece["size"]) for piece in four["external"]] == [
        "192.0.2.0+2", "192.0.2.5+1", "192.0.2.9+2", "192.0.2.15+1",
    ]  # fmt: skip
    assert (six["cidr"], six["gateway"], six["pools"]) == ("2001:db8::/64", "2001:db8::1", [])
    assert net1["unknown"] == {"deep": [1, 2.5, None]}
    assert "network" not in net1


async def test_q13_u6_nics_get_lists_of_ips_and_keep_their_network(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())

    instances = (await export_cluster(ledger, "revised"))["instances"]
    assert [nic["ip"] for nic in instances[WEB]["nics"]] == [["192.0.2.4"], ["10.0.0.77"], ["2001:db8::5"]]
    assert [nic["ip"] for nic in instances[DB]["nics"]] == [[], ["172.16.0.9"], [], ["192.0.2.5"], []]
    assert [nic.get("network") for nic in instances[DB]["nics"]] == [NET1, None, None, NET1, None]


async def test_older_files_that_key_by_name_come_back_equal(ledger: tenure.AsyncLedger) -> None:
    old = old_document()
    for section in ("nodes", "instances"):
        old[section] = {each["name"]: each for each in old[section].values()}
    for instance in old["instances"].values():
        instance["primary_node"] = {NODE2: "node2"}.get(instance["primary_node"], "node1")
        del instance["uuid"]
        for nic in instance["nics"]:
            del nic["uuid"]
    old["networks"][NET1]["gateway6"] = "2001:0DB8::1"
    await brought_in(ledger, copy.deepcopy(old))

    assert await export_cluster(ledger, "today") == old


async def test_a_file_with_little_in_it_comes_back_equal(ledger: tenure.AsyncLedger) -> None:
    little: Json = {"nodegroups": {}, "nodes": None, "cluster": {}}
    await brought_in(ledger, little)

    assert await export_cluster(ledger, "today") == little


async def test_a_ledger_that_no_file_was_brought_into_can_be_written(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("net0")
    await ledger.add_subnet("net0", "192.0.2.0/29", gateway="192.0.2.1")
    await ledger.add_pool("net0", "192.0.2.0/29")
    await ledger.allocate("net0", owner="instance/elsewhere")

    [network] = (await export_cluster(ledger, "today"))["networks"].values()
    assert (network["network"], network["reservations"]) == ("192.0.2.0/29", "00100000")
    assert network["ext_reservations"] == "11000001"
    async with await tenure.open_async("memory:") as other:
        written = await export_cluster(ledger, "revised")
        await brought_in(other, written)
        assert await export_cluster(other, "revised") == written


async def test_a_network_without_blocks_is_kept(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())

    assert (await ledger.network("l2")).subnets == ()
    assert (await export_cluster(ledger, "revised"))["networks"][EMPTY] == new_document()["networks"][EMPTY]
