"""After changes in the ledger the written file tells the new state, and keeps what it has no word for."""

import pytest

import tenure
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
from tenure.integrations.ganeti.instances import Instances
from tenure.kernel.plan.edits import Edit
from tests.integrations.ganeti.files.documents import DB, NET1, NET2, WEB, brought_in, new_document, old_document


async def test_an_address_taken_elsewhere_is_marked_and_raises_the_serial_of_the_file(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())
    taken = await ledger.allocate("net1", owner="instance/elsewhere")

    written = await export_cluster(ledger, "today")
    old = old_document()
    assert taken.address == "192.0.2.2"
    assert written["networks"][NET1]["reservations"] == "0010111000000000"
    assert written["serial_no"] == old["serial_no"] + 1
    written["networks"][NET1]["reservations"] = old["networks"][NET1]["reservations"]
    assert {**written, "serial_no": 42} == old


async def test_an_edited_network_tells_its_new_plan_with_a_raised_serial(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.reserve("net1", "192.0.2.12")
    await ledger.modify_network("net1", name="front", mac_prefix=None)

    net1 = (await export_cluster(ledger, "today"))["networks"][NET1]
    old = old_document()["networks"][NET1]
    assert (net1["name"], net1["ext_reservations"], net1["serial_no"]) == ("front", "1100010001101001", 8)
    assert "mac_prefix" not in net1
    assert net1["mtime"] > old["mtime"]
    assert (net1["unknown"], net1["family"], net1["ctime"]) == (old["unknown"], 4, old["ctime"])
    assert (await export_cluster(ledger, "today"))["networks"][NET2] == old_document()["networks"][NET2]


async def test_an_address_released_behind_the_door_is_gone_from_its_nic(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.release("net1", "192.0.2.4", owner="instance/web.example.org")

    web = (await export_cluster(ledger, "today"))["instances"][WEB]
    assert "ip" not in web["nics"][0]
    assert web["nics"][0]["extra"] == "kept"
    assert web["serial_no"] == 4


async def test_an_instance_that_was_removed_is_not_written(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await Instances(ledger).remove("db.example.org")

    written = await export_cluster(ledger, "today")
    assert list(written["instances"]) == [WEB]
    assert written["networks"][NET1]["reservations"] == "0000101000000000"
    assert written["serial_no"] == 43


async def test_an_instance_that_was_modified_by_the_doors_commands_is_written_as_it_is_now(
    ledger: tenure.AsyncLedger,
) -> None:
    await brought_in(ledger, old_document())
    await Instances(ledger).modify("db.example.org", ["0:modify,ip=pool", "3:remove"], InstanceOptions())

    db, old = (await export_cluster(ledger, "today"))["instances"][DB], old_document()["instances"][DB]
    assert db["nics"] == [
        {**old["nics"][0], "ip": "192.0.2.2", "nicparams": {"mode": "routed", "link": "rt1", "vlan": ""}},
        old["nics"][1],
        old["nics"][2],
        old["nics"][4],
    ]
    assert {**db, "nics": 0} == {**old, "nics": 0, "serial_no": 2}


async def test_spellings_stay_where_their_field_still_means_the_same(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())
    await ledger.reserve("net1", "192.0.2.14")
    taken = await ledger.allocate("net1", owner="instance/elsewhere")

    old = new_document()["networks"][NET1]
    first, second, third = (await export_cluster(ledger, "revised"))["networks"][NET1]["subnets"]
    assert taken.address == "192.0.2.10"
    assert first["pools"][0] == {**old["subnets"][0]["pools"][0], "reservations": "110000"}
    assert [(piece["start"], piece["end"]) for piece in first["reserved"]] == [
        ("192.0.2.0", "192.0.2.1"), ("192.0.2.14", "192.0.2.15"), ("192.0.2.255", "192.0.2.255"),
    ]  # fmt: skip
    assert "external" not in first
    assert [second, third] == old["subnets"][1:]


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (tenure.AddSubnet(network="net1", cidr="198.51.100.0/24"), "2 IPv4 subnets"),
        (tenure.AddSubnet(network="net1", cidr="2001:db8:1::/64"), "2 IPv6 subnets"),
        (tenure.RemovePool(network="net1", pool="192.0.2.12"), "2 pools"),
        (tenure.RemovePool(network="net1", pool="192.0.2.0"), "is a part of subnet 192.0.2.0/28"),
        (tenure.RemovePool(network="net1", pool="192.0.2.0/28"), "has no pools"),
        (tenure.ModifyPool(network="net1", pool="192.0.2.0/28", name="p"), "has a name (p)"),
        (tenure.ModifySubnet(network="net1", subnet="192.0.2.0/28", name="s"), "has a name (s)"),
        (tenure.ModifySubnet(network="net1", subnet="192.0.2.0/28", dhcp=True), "has dhcp"),
        (tenure.AddPool(network="net1", range="2001:db8::/120"), "IPv6 subnet 2001:db8::/64 has a pool"),
        (tenure.Reserve(network="net1", range="2001:db8::7"), "external reservations of its own"),
        (tenure.AddNetwork(network="l2"), "network l2: no IPv4 subnets"),
    ],
)
async def test_today_refuses_what_it_cannot_say(edit: Edit, reason: str) -> None:
    async with await tenure.open_async("memory:") as ledger:
        await brought_in(ledger, old_document())
        await ledger.apply([edit])
        with pytest.raises(tenure.Conflict) as refused:
            await export_cluster(ledger, "today")
        assert (await export_cluster(ledger, "revised"))["version"] == 3010000

    assert refused.value.field == "form"
    assert reason in str(refused.value)


async def test_today_names_every_reason_at_once(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, new_document())

    with pytest.raises(tenure.Conflict) as refused:
        await export_cluster(ledger, "today")

    for reason in ("network net1: 2 IPv4", "net2: no IPv4", "has dhcp", "instance web.example.org: NIC 0 has 3 IPs"):
        assert reason in str(refused.value)


async def test_a_block_that_todays_ganeti_refuses_is_written_with_a_warning(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("wide")
    await ledger.add_subnet("wide", "10.0.0.0/15")
    await ledger.add_pool("wide", "10.0.0.0/15")
    warnings: list[str] = []
    written = await export_cluster(ledger, "today", warn=warnings.append)

    [network] = written["networks"].values()
    assert len(network["reservations"]) == 1 << 17
    assert warnings == ["network wide: 10.0.0.0/15: today's Ganeti allows /16 to /30"]


async def test_prefixes_are_no_business_of_ganeti(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("blocks")
    await ledger.add_subnet("blocks", "10.0.0.0/16", unit=28)

    with pytest.raises(tenure.Conflict, match="hands out /28"):
        await export_cluster(ledger, "revised")


async def test_an_unknown_form_is_refused(ledger: tenure.AsyncLedger) -> None:
    with pytest.raises(tenure.Invalid, match="form: 'next' is none of today, revised"):
        await export_cluster(ledger, "next")  # type: ignore[arg-type]


async def test_the_uuid_of_an_instance_decides_whose_rest_it_is(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    paper = await ledger.paper("instance", "db.example.org")
    other = {**paper.document, "uuid": "another"}
    await ledger.apply([tenure.WritePaper(kind="instance", name=paper.name, document=other, revision=1)])

    written = (await export_cluster(ledger, "today"))["instances"]
    assert DB not in written
    assert "disks" not in written["another"]


async def test_u27_a_pool_too_large_for_a_bit_string_lists_the_ranges_in_use(ledger: tenure.AsyncLedger) -> None:
    await ledger.add_network("wide")
    await ledger.add_subnet("wide", "2001:db8::/64")
    await ledger.add_pool("wide", "2001:db8::/112")
    await ledger.add_pool("wide", "2001:db8::1:0-2001:db8::2:0")
    for address in ("2001:db8::2", "2001:db8::1:7", "2001:db8::1:8"):
        await ledger.allocate("wide", owner="instance/a", slot=address, address=address)

    written = await export_cluster(ledger, "revised")
    [network] = written["networks"].values()
    small, large = (pool["reservations"] for pool in network["subnets"][0]["pools"])
    assert (len(small), small[:4]) == (65_536, "0010")
    assert large == [{"start": "2001:db8::1:7", "size": 2, "end": "2001:db8::1:8"}]
    async with await tenure.open_async("memory:") as other:
        await brought_in(other, written)
        assert await export_cluster(other, "revised") == written
