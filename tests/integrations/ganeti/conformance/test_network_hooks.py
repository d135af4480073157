"""Hooks of networks: when they run, what they are told, and what a refusal leaves."""

from pathlib import Path

import pytest

from tests.integrations.ganeti.conformance.door import Door

OPERATIONS = ("add", "modify", "remove", "rename", "connect", "disconnect")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a hook directory in which every hook of networks notes what it gets."""
    for operation in OPERATIONS:
        for phase in ("pre", "post"):
            put(tmp_path, f"network-{operation}-{phase}.d", f"env | grep ^GANETI_ | sort >> {tmp_path}/told")
    return tmp_path


def put(folder: Path, directory: str, script: str) -> None:
    """Put a hook into a directory of a hook directory."""
    place = folder / "hooks" / directory
    place.mkdir(parents=True, exist_ok=True)
    (place / "10-note").write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    (place / "10-note").chmod(0o755)


def told(door: Door, folder: Path, line: str) -> list[dict[str, str]]:
    """Run a command with hooks; return the variables of each hook that ran, without what all have in common."""
    (folder / "told").write_text("", "utf-8")
    door.do(f"{line} --hooks {folder}/hooks")
    runs: list[dict[str, str]] = []
    for name, _, value in (row.partition("=") for row in (folder / "told").read_text("utf-8").splitlines()):
        if not runs or name in runs[-1]:
            runs.append({})
        runs[-1][name] = value
    return runs


def test_an_added_network_is_told_as_it_will_be_and_as_it_is(door: Door, folder: Path) -> None:
    words = "--subnet add:cidr=10.9.0.0/24,gateway=10.9.0.1 --subnet add:cidr=2001:db8:9::/64 --mac-prefix aa:00:09"
    before, after = told(door, folder, f"network add net9 {words} --tags dmz,x")

    assert before | {"GANETI_NETWORK_UUID": ""} == {
        "GANETI_HOOKS_PATH": "network-add", "GANETI_HOOKS_PHASE": "pre", "GANETI_HOOKS_VERSION": "2",
        "GANETI_OBJECT_TYPE": "NETWORK", "GANETI_OP_CODE": "OP_NETWORK_ADD", "GANETI_OP_TARGET": "net9",
        "GANETI_NETWORK_NAME": "net9", "GANETI_NETWORK_UUID": "", "GANETI_NETWORK_SUBNET": "10.9.0.0/24",
        "GANETI_NETWORK_GATEWAY": "10.9.0.1", "GANETI_NETWORK_SUBNET6": "2001:db8:9::/64",
        "GANETI_NETWORK_MAC_PREFIX": "aa:00:09", "GANETI_NETWORK_TAGS": "dmz x",
    }  # fmt: skip
    assert after["GANETI_POST_NETWORK_SUBNET"] == "10.9.0.0/24"
    assert before["GANETI_NETWORK_UUID"] == door.field("uuid", "net9")


def test_a_change_is_told_as_it_was_and_as_it_will_be(door: Door, folder: Path) -> None:
    before, after = told(door, folder, "network modify net1 --subnet subnet1:modify,gateway=192.0.2.5")

    assert before["GANETI_NETWORK_GATEWAY"] == after["GANETI_POST_NETWORK_GATEWAY"] == "192.0.2.5"
    assert before["GANETI_OLD_NETWORK_GATEWAY"] == "192.0.2.1"
    assert before["GANETI_NETWORK_SUBNET_1"] == "10.0.0.0/24"
    retired = told(door, folder, "network retire net1")
    assert [each["GANETI_OP_CODE"] for each in retired] == ["OP_NETWORK_SET_PARAMS"] * 2


def test_a_rename_is_told_by_both_names(door: Door, folder: Path) -> None:
    before, after = told(door, folder, "network rename net1 shop")

    assert (before["GANETI_OLD_NAME"], before["GANETI_NEW_NAME"]) == ("net1", "shop")
    assert before["GANETI_OP_TARGET"] == "net1"
    assert after["GANETI_POST_NETWORK_NAME"] == "shop"
    assert before["GANETI_OP_CODE"] == "OP_NETWORK_RENAME"


def test_hooks_of_connections_run_once_for_each_group(door: Door, folder: Path) -> None:
    door.do("group add rack2", "group add rack3")
    runs = told(door, folder, "network connect net1 -N mode=openvswitch,link=ovs1,vlan=.7")

    assert [(each["GANETI_HOOKS_PHASE"], each["GANETI_GROUP_NAME"]) for each in runs] == [
        ("pre", "rack2"), ("pre", "rack3"), ("post", "rack2"), ("post", "rack3"),
    ]  # fmt: skip
    wires = {key: value for key, value in runs[0].items() if key.startswith("GANETI_GROUP_NETWORK")}
    assert wires == {
        "GANETI_GROUP_NETWORK_MODE": "openvswitch", "GANETI_GROUP_NETWORK_LINK": "ovs1",
        "GANETI_GROUP_NETWORK_VLAN": ".7",
    }  # fmt: skip
    off = told(door, folder, "network disconnect net1 default")
    assert [(each["GANETI_GROUP_NAME"], each["GANETI_GROUP_NETWORK_LINK"]) for each in off] == [
        ("default", "br100")
    ] * 2
    assert "GANETI_GROUP_NETWORK_VLAN" not in off[0]
    assert told(door, folder, "network connect net1 rack2") == []  # it is connected
    assert told(door, folder, "network disconnect net1 default") == []  # it is not


def test_a_removed_network_is_told_as_it_was(door: Door, folder: Path) -> None:
    door.do("network disconnect net1")
    before, after = told(door, folder, "network remove net1")

    assert (before["GANETI_NETWORK_NAME"], before["GANETI_OP_CODE"]) == ("net1", "OP_NETWORK_REMOVE")
    assert not any(name.startswith("GANETI_POST_") for name in after)


@pytest.mark.parametrize(
    "line",
    [
        "network add net9",
        "network modify net1 --description x",
        "network rename net1 shop",
        "network connect net1 rack2",
        "network disconnect net1 default",
        "network remove net0",
    ],
)
def test_a_hook_that_refuses_leaves_everything_as_it_was(door: Door, tmp_path: Path, line: str) -> None:
    door.do("group add rack2", "network add net0")
    put(tmp_path, f"network-{line.split()[1]}-pre.d", "echo not today\nexit 1")

    message = door.refuse(f"{line} --hooks {tmp_path}/hooks", "a hook refused the operation")
    assert "not today" in message


def test_a_hook_that_fails_afterwards_is_a_finding_and_the_change_stands(door: Door, tmp_path: Path) -> None:
    put(tmp_path, "network-add-post.d", "exit 3")
    result = door.call(f"network add net9 --hooks {tmp_path}/hooks")

    assert result.exit_code == 1
    assert "network net9 is added all the same" in result.stderr
    assert door.field("name", "net9") == "net9"


def test_what_is_refused_anyway_runs_no_hook(door: Door, folder: Path) -> None:
    door.do("instance add web --net 0:network=net1")
    (folder / "told").write_text("", "utf-8")

    door.refuse(f"network disconnect net1 --hooks {folder}/hooks", "instance web")
    door.refuse(f"network remove net1 --hooks {folder}/hooks", "net1")
    door.refuse(f"network add net1 --hooks {folder}/hooks", "exists already")
    assert (folder / "told").read_text("utf-8") == ""


def test_answers_name_the_hooks_that_ran(door: Door, folder: Path) -> None:
    made = door.ask(f"network add net9 --hooks {folder}/hooks")
    gone = door.ask(f"network remove net9 --hooks {folder}/hooks")

    assert [each["outcome"] for each in made["hooks"]] == ["success", "success"]
    assert [each["name"] for each in gone["hooks"]] == ["10-note", "10-note"]
