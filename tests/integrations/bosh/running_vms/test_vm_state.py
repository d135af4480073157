"""What VMs say, as documents and from commands: everything that is wrong is told at once, with its place."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tenure.integrations.bosh.running_vms.match_vm_state import Hearing, listen
from tenure.integrations.bosh.running_vms.vm_state import Carries, VmState, ask_command, read_vm_state
from tenure.integrations.bosh.state.instance_state import DeploymentInstance
from tenure.kernel.addressing.ranges import parse_cidr

SAID = {"app/0": {"vm": "vm-1", "networks": {"lab": {"ip": "172.20.5.2"}}}, "app/1": None}


def told(text: str) -> list[tuple[BoshErrorKind, str, str]]:
    with pytest.raises(Rejected) as caught:
        read_vm_state(text, "state")
    return [(fault.kind, fault.message, str(fault.place)) for fault in caught.value.faults]


def carries(state: VmState) -> dict[str, tuple[str, str | None]]:
    return {name: (str(each.block), each.kind) for name, each in state.networks.items()}


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_is_read_however_it_is_laid_out(indent: int | str | None) -> None:
    state = read_vm_state(json.dumps(SAID, indent=indent), "state")

    assert (state["app/0"].vm, carries(state["app/0"])) == ("vm-1", {"lab": ("172.20.5.2/32", None)})
    assert (state["app/1"].vm, carries(state["app/1"])) == (None, {})


def test_yaml_is_read_too() -> None:
    text = """\
app/0:
  vm: vm-1
  networks:
    lab: {ip: 172.20.5.2, type: manual, netmask: 255.255.255.240, gateway: 172.20.5.1, dns: [10.0.0.1], default: [dns]}
    pods: {ip: 2001:db8:44:101::/64, prefix: "64"}
    edge: {type: dynamic}
    far: {type: dynamic, ip: 10.9.9.9}
"""
    state = read_vm_state(text, "state")

    assert carries(state["app/0"]) == {
        "lab": ("172.20.5.2/32", "manual"),
        "pods": ("2001:db8:44:101::/64", None),
        "far": ("10.9.9.9/32", "dynamic"),
    }


def test_all_that_is_wrong_is_told_at_once_with_its_place() -> None:
    text = """\
app: null
app/0/1: null
app/1: up
app/2: {networks: {lab: {ip: 172.20.5.300}, hub: {}, far: []}, ip: 10.0.0.1}
app/3: {vm: " vm", networks: {lab: {ip: 7, type: star}}}
app/4: {vm: vm-4}
"""

    assert [(message, place) for _, message, place in told(text)] == [
        ("'app' names no instance: write group/index or group/uuid", "state:1:6 (app)"),
        ("'app/0/1' names no instance: write group/index or group/uuid", "state:2:10 (app/0/1)"),
        ("Property 'app/1' must be a mapping, or null for a VM that did not answer", "state:3:8 (app/1)"),
        ("Unknown property 'app/2.ip'; known here: vm, networks", "state:4:68 (app/2.ip)"),
        ("Required property 'vm' was not specified", "state:4:8 (app/2)"),
        ("Invalid IP or CIDR format: 172.20.5.300", "state:4:30 (app/2.networks.lab.ip)"),
        ("Required property 'ip' was not specified", "state:4:50 (app/2.networks.hub)"),
        ("Property 'app/2.networks.far' must be a mapping", "state:4:59 (app/2.networks.far)"),
        ("app/3.vm: ' vm' begins or ends with white space", "state:5:13 (app/3.vm)"),
        ("Invalid network type 'star'", "state:5:50 (app/3.networks.lab.type)"),
        ("Property 'app/3.networks.lab.ip' must be text, not a whole number", "state:5:41 (app/3.networks.lab.ip)"),
        ("Required property 'networks' was not specified", "state:6:8 (app/4)"),
    ]


def test_a_misspelt_key_of_a_network_is_refused() -> None:
    [(_, message, place)] = told("app/0: {vm: vm-1, networks: {lab: {ip: 10.0.0.1, typ: manual}}}")

    assert message.startswith("Unknown property 'app/0.networks.lab.typ'; known here: ip, type, ")
    assert place == "state:1:55 (app/0.networks.lab.typ)"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"app/0": null, "app/0": null}', "a: b: c", "\t{"])
def test_what_is_no_document_is_refused(text: str) -> None:
    [(kind, message, _)] = told(text)

    assert kind is BoshErrorKind.GENERIC
    assert message.startswith("The document cannot be read")


def test_an_instance_is_meant_by_index_or_by_uuid() -> None:
    first, second = (
        DeploymentInstance("alpha", "app", "u1", 0, vm="vm-1"),
        DeploymentInstance("alpha", "app", "u2", 1, vm="vm-2"),
    )
    answer = VmState("vm-2", {"lab": Carries(parse_cidr("10.0.0.2/32"), None)})

    for name in ("app/u2", "app/1"):
        assert listen([first, second], Hearing({name: answer}), everybody=False).answers == {"u2": answer}


async def test_a_command_says_it_on_its_standard_output(tmp_path: Path) -> None:
    (tmp_path / "my state.json").write_text(json.dumps(SAID))
    state = await ask_command(f"cat '{tmp_path}/my state.json'")

    assert {name: each.vm for name, each in state.items()} == {"app/0": "vm-1", "app/1": None}


async def test_no_shell_reads_a_command() -> None:
    with pytest.raises(Rejected, match="output of echo:1:4"):
        await ask_command("echo '[]' ; touch /nowhere")


async def test_a_wrong_document_of_a_command_is_told_with_its_place() -> None:
    with pytest.raises(Rejected, match=r"output of echo:1:8 \(app/0\): Required property 'vm' was not specified"):
        await ask_command("""echo 'app/0: {networks: {}}' """)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "it is empty"),
        ("cat 'state", "No closing quotation"),
        ("/nowhere/ask --all", "cannot be started"),
        (f"{sys.executable} -c \"import sys; sys.exit('the director is down')\"", "ended with 1: the director is down"),
        (f"{sys.executable} -c 'print(\"#\" * 5_000_000)'", "writes more than 4194304 bytes"),
        (f"{sys.executable} -c 'import os; os.write(1, b\"a: \\xff\")'", "writes no UTF-8 (at byte 3)"),
    ],
)
async def test_a_command_that_says_nothing_of_use_is_refused(command: str, why: str) -> None:
    with pytest.raises(Refused) as caught:
        await ask_command(command)

    assert why in caught.value.message


async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    number = tmp_path / "number"
    command = f"sh -c 'sleep 600 & echo $! > {number}; wait'"
    with pytest.raises(Refused, match=r"did not end within 0\.5 s"):
        await ask_command(command, limit_s=0.5)
    await asyncio.sleep(0.05)

    assert not _runs(int(number.read_text()))


def _runs(process: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
