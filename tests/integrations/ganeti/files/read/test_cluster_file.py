"""Files that cannot be read are refused with every fault and its place; both forms are seen from their shape."""

import copy
import json
from typing import Any

import pytest

import tenure
from tenure.integrations.ganeti.files.read.cluster_file import examine, read_cluster, read_file
from tenure.integrations.ganeti.files.read.file_networks import read_range
from tests.integrations.ganeti.files.documents import (
    DB,
    DEFAULT,
    NET1,
    NET2,
    NODE1,
    WEB,
    Json,
    bits,
    new_document,
    nic,
    old_document,
    range_of,
)

N1, N2 = f"networks[{NET1}]", f"networks[{NET2}]"
S1 = f"{N1}.subnets[0]"
W, D = f"instances[{WEB}]", f"instances[{DB}]"

DROP = object()


def spoilt(document: Json, path: list[Any], value: Any) -> Json:
    """Return a document with one field changed or dropped."""
    made = copy.deepcopy(document)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    if value is DROP:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return made


OLD: list[tuple[list[Any], Any, str]] = [
    (["networks", NET1, "reservations"], "0" * 15, f"{N1}.reservations: 15 characters, 16 are needed"),
    (["networks", NET1, "ext_reservations"], "0" * 17, f"{N1}.ext_reservations: 17 characters, 16 are needed"),
    (["networks", NET1, "reservations"], "2" * 16, f"{N1}.reservations: a character other than 0 and 1"),
    (["networks", NET1, "reservations"], "٠" * 16, f"{N1}.reservations: a character other than 0 and 1"),
    (["networks", NET1, "reservations"], 7, f"{N1}.reservations: a string of 0 and 1 is needed, not 7"),
    (["networks", NET1, "network"], DROP, f"{N1}.network: is missing"),
    (["networks", NET1, "network"], "192.0.2.5/28", f"{N1}.network: '192.0.2.5/28' is not an address block"),
    (["networks", NET1, "network"], "2001:db8::/64", f"{N1}.network: 2001:db8::/64 is a block of IPv6"),
    (["networks", NET1, "network6"], "10.0.0.0/8", f"{N1}.network6: 10.0.0.0/8 is a block of IPv4"),
    (["networks", NET1, "network6"], DROP, f"{N1}.gateway6: stands without network6"),
    (["networks", NET1, "gateway"], "192.0.2.99", f"{N1}.gateway: 192.0.2.99 lies outside 192.0.2.0/28"),
    (
        ["networks", NET1, "gateway"],
        "192.0.2.0",
        (f"{N1}.gateway: 192.0.2.0 is the network or broadcast address of 192.0.2.0/28, so network net1 has no gateway"
        " there; give it another one (`gnt-network modify --gateway ADDRESS net1`)"),
    ),
    (["networks", NET1, "gateway"], "192.0.2.15", f"{N1}.gateway: 192.0.2.15 is the network or broadcast address"),
    (["networks", NET1, "gateway"], "router", f"{N1}.gateway: 'router' is not an IPv4 or IPv6 address"),
    (["networks", NET1, "mac_prefix"], "zz", f"{N1}.mac_prefix: 'zz' is not of the form aa:bb:cc"),
    (["networks", NET1, "mac_prefix"], "aa:bb", f"{N1}.mac_prefix: 'aa:bb' is not of the form aa:bb:cc"),
    (["networks", NET1, "mac_prefix"], "aa:bb:cc:dd", f"{N1}.mac_prefix: 'aa:bb:cc:dd' is not of the form aa:bb:cc"),
    (["networks", NET1, "tags"], "prod", f"{N1}.tags: a list is needed, not 'prod'"),
    (["networks", NET1, "tags"], [7], f"{N1}.tags: a name in text is needed, not int"),
    (["networks", NET1, "subnets"], [], f"{N1}.subnets: stands beside network"),
    (["networks", NET1, "name"], DROP, f"{N1}.name: is missing"),
    (["networks", NET1, "name"], "net2", f"{N2}.name: 'net2' stands twice"),
    (["networks", NET1, "uuid"], "other", f"{N1}.uuid: is other, the key is {NET1}"),
    (["networks", NET1], 5, f"{N1}: an object is needed, not 5"),
    (["networks"], [], "networks: an object is needed, not []"),
    (["nodegroups", DEFAULT, "networks", "nowhere"], {}, f"nodegroups[{DEFAULT}].networks[nowhere]: no network"),
    (["nodegroups", DEFAULT, "networks", NET1, "mode"], 3, f"nodegroups[{DEFAULT}].networks[{NET1}].mode: a name"),
    (["nodes", NODE1, "group"], "nowhere", f"nodes[{NODE1}].group: no node group nowhere"),
    (["nodes", NODE1, "group"], DROP, f"nodes[{NODE1}].group: is missing"),
    (["nodes", NODE1, "primary_ip"], "x", f"nodes[{NODE1}].primary_ip: 'x' is not an IPv4 or IPv6 address"),
    (["nodes", NODE1, "name"], "a/b", f"nodes[{NODE1}].name: a name of at most 127 letters"),
    (["instances", WEB, "primary_node"], "nowhere", f"{W}.primary_node: no node nowhere"),
    (["instances", WEB, "primary_node"], None, f"{W}.primary_node: is missing"),
    (["instances", WEB, "nics"], {}, f"{W}.nics: a list is needed"),
    (["instances", WEB, "nics", 0, "network"], "gone", f"{W}.nics[0].network: no network gone"),
    (["instances", WEB, "nics", 0, "network"], 3, f"{W}.nics[0].network: text is needed, not 3"),
    (["instances", WEB, "nics", 0, "ip"], "x", f"{W}.nics[0].ip: 'x' is not an IPv4 or IPv6 address"),
    (["instances", WEB, "nics", 0, "ip"], 7, f"{W}.nics[0].ip: an address or a list of addresses is needed, not 7"),
    (["instances", WEB, "nics", 0, "ip"], "203.0.113.1", f"{W}.nics[0].ip: 203.0.113.1 lies in no subnet of network"),
    (["instances", WEB, "nics", 0, "ip"], "192.0.2.5", f"{D}.nics[3].ip: 192.0.2.5 is used by instance web"),
    (["instances", WEB, "nics", 0, "mac"], "AA:00:00:00:00:02", f"{W}.nics[1].mac: aa:00:00:00:00:02 is used by inst"),
    (["instances", WEB, "nics", 0, "mac"], DROP, f"{W}.nics[0].mac: is missing"),
    (["instances", WEB, "nics", 0, "mac"], "aa", f"{W}.nics[0].mac: 'aa' is not a MAC address"),
    (["instances", WEB, "nics", 0, "nicparams"], [], f"{W}.nics[0].nicparams: an object is needed, not []"),
    (["instances", WEB, "nics", 1, "uuid"], "00000001-x", f"{W}.nics: two NICs whose uuids begin with 00000001"),
    (["cluster"], 3, "cluster: an object is needed, not 3"),
]  # fmt: skip

NEW: list[tuple[list[Any], Any, str]] = [
    (["cidr"], DROP, f"{S1}.cidr: is missing"),
    (["cidr"], "10.0.0.0/16", f"{N1}.subnets[0]: the subnets 10.0.0.0-10.0.0.255 and 10.0.0.0-10.0.255.255 overlap"),
    (["uuid"], "5ub00002", f"{N1}.subnets: two subnets have the uuid 5ub00002"),
    (["name"], "subnet2", f"{N1}.subnets: two subnets have the name subnet2"),
    (["name"], "192.0.2.5", f"{S1}.name: "),
    (["dhcp"], 1, f"{S1}.dhcp: true or false is needed, not 1"),
    (["gateway"], "192.0.2.0", f"{S1}.gateway: 192.0.2.0 is the network or broadcast address of 192.0.2.0/24"),
    (["gateway"], "10.0.0.1", f"{S1}.gateway: 10.0.0.1 lies outside 192.0.2.0/24"),
    (["pools"], "x", f"{S1}.pools: a list is needed"),
    (["pools", 0], "x", f"{S1}.pools[0]: an object is needed"),
    (["pools", 0, "name"], "pool", f"{S1}.pools[0].name: "),
    (["pools", 0, "range"], DROP, f"{S1}.pools[0].range: is missing"),
    (["pools", 0, "range"], "10.0.0.1-10.0.0.9", f"{S1}.pools[0].range: 10.0.0.1-10.0.0.9 lies outside 192.0.2.0/24"),
    (["pools", 0, "reservations"], "00000", f"{S1}.pools[0].reservations: 5 characters, 6 are needed"),
    (["pools", 0, "reservations"], ["192.0.2.16"], f"{S1}.pools[0].reservations[0]: 192.0.2.16 lies outside the pool"),
    (["reserved"], ["10.2.4.5"], f"{S1}.reserved[0]: 10.2.4.5 lies outside 192.0.2.0/24"),
    (["reserved"], ["192.0.2.1-192.0.2.5", "192.0.2.5"], f"{S1}.reserved: 192.0.2.1-192.0.2.5 and 192.0.2.5 overlap"),
    (["reserved"], "192.0.2.1", f"{S1}.reserved: a list of ranges is needed"),
    (["external"], [], f"{S1}.reserved: stands beside external"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("path", "value", "fault"), OLD)
def test_a_fault_of_todays_form_is_told_with_its_place(path: list[Any], value: Any, fault: str) -> None:
    faults = [str(found) for found in examine(spoilt(old_document(), path, value))[1].found]

    assert any(found.startswith(fault) for found in faults), faults


@pytest.mark.sampled
@pytest.mark.parametrize(("path", "value", "fault"), NEW)
def test_a_fault_of_the_revised_form_is_told_with_its_place(path: list[Any], value: Any, fault: str) -> None:
    document = spoilt(new_document(), ["networks", NET1, "subnets", 0, *path], value)
    faults = [str(found) for found in examine(document)[1].found]

    assert any(found.startswith(fault) for found in faults), faults


def test_pools_of_one_network_must_not_overlap() -> None:
    document = new_document()
    document["networks"][NET1]["subnets"][1]["pools"][1]["range"] = "10.0.0.15-10.0.0.20"

    assert [str(found) for found in examine(document)[1].found] == [
        f"{N1}.subnets[1].pools[1]: the pools 10.0.0.8-10.0.0.15 and 10.0.0.15-10.0.0.20 overlap"
    ]


def test_one_subnet_of_a_version_has_dhcp() -> None:
    document = new_document()
    document["networks"][NET1]["subnets"][1]["dhcp"] = True
    document["networks"][NET1]["subnets"][2]["dhcp"] = True

    assert [str(found) for found in examine(document)[1].found] == [f"{N1}.subnets: two subnets have dhcp for IPv4"]


def test_u30_an_address_twice_on_one_instance_is_a_fault() -> None:
    document = old_document()
    document["instances"][DB]["nics"] = [nic(4, ip=["192.0.2.5", "192.0.2.5"], network=NET1)]

    [fault] = examine(document)[1].found
    assert str(fault) == f"{D}.nics[0].ip: 192.0.2.5 is used by instance db.example.org as well"


def test_q11_u1_the_designs_own_example_has_one_bit_too_few() -> None:
    document = new_document()
    pool = {"range": range_of("192.0.2.10", 6, "192.0.2.15"), "reservations": "00000", "name": "pool1"}
    document["networks"][NET1]["subnets"][0]["pools"] = [pool]

    assert [str(found) for found in examine(document)[1].found] == [
        f"{S1}.pools[0].reservations: 5 characters, 6 are needed"
    ]


def test_q12_u2_the_designs_own_example_has_an_external_address_outside_its_subnet() -> None:
    document = new_document()
    subnet = document["networks"][NET1]["subnets"][1]
    subnet["external"] = [range_of("10.0.0.8", 8, "10.0.0.15"), "10.2.4.5"]

    assert [str(found) for found in examine(document)[1].found] == [
        f"{N1}.subnets[1].external[1]: 10.2.4.5 lies outside 10.0.0.0/24"
    ]


def test_u5_reserved_and_external_are_one_slot() -> None:
    first, second, _ = read_cluster(new_document()).networks[0].subnets

    assert [str(piece) for piece in first.external or ()] == ["192.0.2.0-192.0.2.1", "192.0.2.15", "192.0.2.255"]
    assert [str(piece) for piece in second.external or ()] == ["10.0.0.8-10.0.0.15", "10.0.0.99"]


def test_all_faults_are_told_at_once_and_the_first_is_the_field() -> None:
    document = old_document()
    document["networks"][NET1]["reservations"] = ""
    document["networks"][NET2]["network"] = "x"
    document["instances"][WEB]["nics"][1]["mac"] = None
    with pytest.raises(tenure.Invalid) as refused:
        read_cluster(document)

    assert refused.value.field == f"{N1}.reservations"
    for place in (f"{N1}.reservations: 0 characters", f"{N2}.network: ", f"{W}.nics[1].mac: is missing"):
        assert place in str(refused.value)


def test_of_very_many_faults_the_first_are_named_and_the_others_counted() -> None:
    document: Json = {"networks": {f"n{n}": 5 for n in range(500)}}
    with pytest.raises(tenure.Invalid, match="; and 480 more") as refused:
        read_cluster(document)

    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[]", "an object is needed"),
        (b"{}", "no Ganeti configuration"),
        (b'{"networks": {}, "networks": {}}', "the key 'networks' stands twice"),
        (b'{"networks": {}, "x": NaN}', "NaN is no finite number"),
        (b'{"networks": {}, "x": 1e999}', "1e999 is no finite number"),
        (b'{"x":' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000, "nested deeper than 64 levels"),
        (b'{"networks": ' + b"[" * 80 + b"]" * 80 + b"}", "nested deeper than 64 levels"),
    ],
)
def test_what_is_no_configuration_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(tenure.Invalid) as refused:
        read_file(data)

    assert refused.value.field == "file"
    assert reason in str(refused.value)


def test_the_form_is_seen_from_the_shape() -> None:
    mixed = old_document()
    mixed["instances"][DB]["nics"][3]["ip"] = ["192.0.2.5"]

    assert read_cluster(old_document()).form == "today"
    assert read_cluster(new_document()).form == "revised"
    assert read_cluster(mixed).form == "revised"
    assert [network.form for network in read_cluster(mixed).networks] == ["today", "today"]


def test_q13_one_ip_none_and_a_list_are_read_alike() -> None:
    document = old_document()
    document["instances"][DB]["nics"] = [
        nic(4, ip="192.0.2.5", network=NET1), nic(5, ip=None, network=NET1), nic(6, ip=["192.0.2.7"], network=NET1),
    ]  # fmt: skip

    _, db = read_cluster(document).instances
    assert [each.addresses for each in db.nics] == [["192.0.2.5"], [], ["192.0.2.7"]]


def test_u4_a_pool_wholly_covered_by_external_ranges_is_legal() -> None:
    subnet = read_cluster(new_document()).networks[0].subnets[1]

    assert subnet.external is not None
    assert subnet.external[0].covers(subnet.pools[0].range)


def test_u38_a_slash_20_has_two_strings_of_4096_characters() -> None:
    document = old_document()
    wide = {"network": "10.8.0.0/20", "gateway": None, "reservations": bits(4096), "ext_reservations": bits(4096, 0)}
    document["networks"][NET2].update(wide)
    document["instances"][WEB]["nics"] = []

    assert examine(document)[1].found == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("192.0.2.5", "192.0.2.5"),
        ("192.0.2.5-192.0.2.9", "192.0.2.5-192.0.2.9"),
        ("192.0.2.8/29", "192.0.2.8-192.0.2.15"),
        ({"start": "192.0.2.10", "size": 10}, "192.0.2.10-192.0.2.19"),
        ({"start": "192.0.2.10", "end": "192.0.2.19"}, "192.0.2.10-192.0.2.19"),
        ({"start": "192.0.2.10", "size": 10, "end": "192.0.2.19"}, "192.0.2.10-192.0.2.19"),
        ({"start": "2001:db8::", "size": 1 << 64}, "2001:db8::-2001:db8::ffff:ffff:ffff:ffff"),
    ],
)
def test_u31_u32_a_range_is_read_in_all_its_spellings(value: object, text: str) -> None:
    assert str(read_range(value, "range")) == text


@pytest.mark.sampled
@pytest.mark.parametrize(
    "value",
    [
        {"start": "192.0.2.10", "size": 10, "end": "192.0.2.20"}, {"start": "192.0.2.10", "end": "192.0.2.9"},
        {"start": "192.0.2.10", "end": "2001:db8::1"}, {"start": "192.0.2.10"}, {"size": 3}, {}, [], 5, None, "x",
        {"start": "192.0.2.10", "size": 0}, {"start": "192.0.2.10", "size": -1}, {"start": "192.0.2.10", "size": True},
        {"start": "192.0.2.10", "size": "9"}, {"start": 5, "size": 1}, {"start": "255.255.255.255", "size": 2},
        {"start": "192.0.2.1", "size": 1 << 200}, "192.0.2.9-192.0.2.1", "192.0.2.1/24",
    ],
)  # fmt: skip
def test_u32_an_inconsistent_range_is_refused(value: object) -> None:
    with pytest.raises(tenure.Invalid) as refused:
        read_range(value, "networks[x].range")

    assert refused.value.field == "networks[x].range"


def test_a_byte_order_mark_is_no_fault() -> None:
    assert read_file(b"\xef\xbb\xbf" + json.dumps(old_document()).encode()).form == "today"


def test_an_instance_with_the_uuid_of_a_node_is_a_fault() -> None:
    document = old_document()
    document["instances"][NODE1] = {**document["instances"].pop(WEB), "uuid": NODE1}

    assert f"instances[{NODE1}].uuid: {NODE1} stands twice" in map(str, examine(document)[1].found)


LONG = "n" * 60
RULE = "a uuid of at most 36 letters, digits, '.', '-', '_' is needed, beginning with a letter or digit, not"


@pytest.mark.parametrize("uuid", [LONG, "a/b", "-", "a b", "u" * 37])
def test_a_uuid_that_the_ledgers_index_cannot_hold_is_a_fault(uuid: str) -> None:
    document = old_document()
    document["networks"][uuid] = {**document["networks"].pop(NET2), "uuid": uuid}
    document["instances"][WEB]["nics"][0]["uuid"] = uuid

    found = [str(fault) for fault in examine(document)[1].found]
    assert f"networks[{uuid}].uuid: {RULE} {uuid!r}" in found
    assert f"{W}.nics[0].uuid: {RULE} {uuid!r}" in found


@pytest.mark.parametrize("section", ["nodegroups", "nodes", "instances"])
def test_every_object_needs_such_a_uuid(section: str) -> None:
    document = old_document()
    key = next(iter(document[section]))
    document[section]["a/b"] = {**document[section].pop(key), "uuid": "a/b"}

    assert f"{section}[a/b].uuid: {RULE} 'a/b'" in map(str, examine(document)[1].found)


def test_a_key_that_stands_for_a_missing_uuid_is_held_to_the_same_rule() -> None:
    document = old_document()
    document["networks"]["a/b"] = document["networks"].pop(NET2)
    del document["networks"]["a/b"]["uuid"]

    assert f"networks[a/b].uuid: {RULE} 'a/b'" in map(str, examine(document)[1].found)
