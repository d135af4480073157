"""Files of running instances: converted like the configuration, all else left as it is; held against a ledger."""

import copy
import json
from typing import Any

import pytest

import tenure
from tenure.integrations.ganeti.files.file_model import Form
from tenure.integrations.ganeti.files.runtime_files import convert_runtime, differences, read_runtime
from tenure.integrations.ganeti.instances import Instances
from tests.integrations.ganeti.files.documents import NET1, NET2, brought_in, nic, old_document

FORMS: tuple[Form, Form] = ("today", "revised")


def runtime() -> list[Any]:
    """Write a runtime file as today's Ganeti has it for web.example.org."""
    front, back, _ = old_document()["instances"]["eeeeeeee-0000-4000-8000-00000000000e"]["nics"]
    nics = [
        {**front, "netinfo": old_document()["networks"][NET1]},
        {**back, "netinfo": {"name": "net2", "uuid": NET2, "mac_prefix": "aa:00:00"}},
        nic(3, ip=None, hvinfo={"bus": "pci.0"}),
        nic(10),
    ]
    return [["kvm", "-name", "web.example.org"], nics, {"acpi": True}, [["disk", "/dev/x", {"ip": "no NIC"}]]]


def test_q21_ips_and_networks_are_converted_and_nothing_else_is() -> None:
    given = runtime()
    made = convert_runtime(copy.deepcopy(given), "revised")

    assert [each.get("ip") for each in made[1]] == [["192.0.2.4"], ["10.0.0.77"], [], None]
    assert "ip" not in made[1][3]
    assert [made[0], *made[2:]] == [given[0], *given[2:]]
    assert made[1][1]["netinfo"] == given[1][1]["netinfo"]
    network = made[1][0]["netinfo"]
    assert [subnet["cidr"] for subnet in network["subnets"]] == ["192.0.2.0/28", "2001:db8::/64"]
    assert network["subnets"][0]["pools"][0]["reservations"] == "0000111000000000"
    assert (network["unknown"], network["serial_no"]) == ({"deep": [1, 2.5, None]}, 7)
    assert [{**each, "ip": 0, "netinfo": 0} for each in made[1]] == [
        {**each, "ip": 0, "netinfo": 0} for each in given[1]
    ]


@pytest.mark.parametrize("form", FORMS)
def test_q10_q21_converting_twice_is_converting_once(form: Form) -> None:
    once = convert_runtime(runtime(), form)

    assert convert_runtime(once, form) == once
    assert convert_runtime(convert_runtime(once, "revised"), "today") == runtime()


def test_the_oldest_files_without_disks_are_converted() -> None:
    made = convert_runtime(runtime()[:3], "revised")

    assert len(made) == 3
    assert made[1][0]["ip"] == ["192.0.2.4"]


def test_what_today_cannot_say_is_refused() -> None:
    two = [[], [nic(1, ip=["192.0.2.4", "192.0.2.5"])], {}]
    wide = {"name": "n", "uuid": "u", "subnets": [{"cidr": "10.0.0.0/24"}]}
    with pytest.raises(tenure.Conflict, match=r"nics\[0\].ip: 2 IPs"):
        convert_runtime(two, "today")
    with pytest.raises(tenure.Conflict, match=r"nics\[0\].netinfo: today's form cannot say this: .* no pools"):
        convert_runtime([[], [nic(1, netinfo=wide)], {}], "today")


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({}, "file: a list of at least 3 members is needed"),
        ([[], []], "file: a list of at least 3 members is needed"),
        ([[], None, {}], "nics: a list is needed"),
        ([[], {}, {}], "nics: a list is needed"),
        ([[], [7], {}], "nics[0]: an object is needed, not 7"),
        ([[], [{"ip": 7}, {"ip": ["x"]}], {}], "nics[1].ip: 'x' is not an IPv4"),
    ],
)
def test_what_is_no_runtime_file_is_refused(document: Any, fault: str) -> None:
    with pytest.raises(tenure.Invalid) as refused:
        read_runtime(json.dumps(document).encode())

    assert fault in str(refused.value)


def test_a_network_that_cannot_be_read_is_refused_with_its_place() -> None:
    bad = {"network": "192.0.2.0/28", "reservations": "0"}
    with pytest.raises(tenure.Invalid) as refused:
        convert_runtime([[], [nic(1, netinfo=bad)], {}], "revised")

    for fault in ("netinfo.uuid: is missing", "netinfo.reservations: 1 characters, 16 are needed"):
        assert f"nics[0].{fault}" in str(refused.value)


async def test_a_running_instance_that_agrees_has_no_differences(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    web = old_document()["instances"]["eeeeeeee-0000-4000-8000-00000000000e"]

    for form in FORMS:
        running = convert_runtime([[], web["nics"], {}], form)
        assert differences(running, await Instances(ledger).find("web.example.org")) == []


async def test_nics_that_run_with_other_ips_are_told(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())
    await ledger.release("net2", "10.0.0.77", owner="instance/web.example.org")
    running = runtime()
    del running[1][0]["uuid"]
    running[1][0]["ip"] = "192.0.2.7"

    told = differences(running, await Instances(ledger).find("web.example.org"))
    assert [str(each) for each in told] == [
        "nics[0].ip: runs with 192.0.2.7, the ledger has 192.0.2.4",
        "nics[1].ip: runs with 10.0.0.77, the ledger has none",
        "nics[2].ip: runs with none, the ledger has 2001:db8::5",
        "nics[3]: instance web.example.org has no such NIC (aa:00:00:00:00:0a)",
    ]


async def test_a_nic_that_does_not_run_is_told(ledger: tenure.AsyncLedger) -> None:
    await brought_in(ledger, old_document())

    told = differences([[], runtime()[1][:2], {}], await Instances(ledger).find("web.example.org"))
    assert [str(each) for each in told] == [
        "nics: NIC 00000003-0000-4000-9000-000000000000 (aa:00:00:00:00:03) is not running"
    ]
