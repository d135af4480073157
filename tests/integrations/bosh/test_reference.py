"""The page on deployments says what the code does: keys that are read and ignored, errors, numbers and messages."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenure.integrations.bosh.documents import (
    azs,
    cloud_config,
    cloud_networks,
    group_networks,
    instance_groups,
    manifest,
    manifest_networks,
    manual_subnets,
    migrated_from,
)
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.integrations.bosh.running_vms import vm_state
from tests.integrations.bosh.documents import configs
from tests.integrations.bosh.model.test_bosh_errors import EVERY, UNRAISED

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "deployments.md").read_text("utf-8")
CODE = re.compile(r"`([^`]+)`")

READ: dict[str, Sequence[str]] = {
    "Cloud config": cloud_config.KEYS,
    "Availability zone": azs.KEYS,
    "Manual network": cloud_networks.MANUAL_KEYS,
    "Manual subnet": manual_subnets.KEYS,
    "Dynamic network": cloud_networks.DYNAMIC_KEYS,
    "Dynamic subnet": cloud_networks.DYNAMIC_SUBNET_KEYS,
    "VIP network": cloud_networks.VIP_KEYS,
    "VIP subnet": cloud_networks.VIP_SUBNET_KEYS,
    "Compilation": cloud_config.COMPILATION_KEYS,
    "Manifest": (*manifest.READ, *manifest_networks.KEYS, "jobs"),
    "Instance group": instance_groups.READ,
    "Network of a group": group_networks.KEYS,
    "Migrated from": migrated_from.KEYS,
    "What VMs say": vm_state.STATE_KEYS,
    "Network of a VM": vm_state.NETWORK_KEYS,
}
IGNORED: dict[str, Sequence[str]] = {
    "Cloud config": cloud_config.OTHER_KEYS,
    "Manifest": manifest.IGNORED,
    "Instance group": instance_groups.IGNORED,
    "Network of a VM": vm_state.OTHER_NETWORK_KEYS,
}


def section(title: str) -> str:
    """Return the first part of the page under a heading."""
    return PAGE.partition(f"\n### {title}\n")[2].partition("\n#")[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]


ERRORS = [row for row in rows(PAGE) if row[0].isdigit()]


@pytest.mark.parametrize("title", READ)
def test_every_key_that_is_read_is_on_the_page_and_no_other(title: str) -> None:
    told = [CODE.findall(row[0])[0] for row in rows(section(title)) if row[0] != "key"]

    assert sorted(told) == sorted(READ[title])


@pytest.mark.parametrize("title", IGNORED)
def test_every_key_that_is_ignored_is_on_the_page_and_no_other(title: str) -> None:
    told = section(title).partition("\nIgnored: ")[2].partition("\n\n")[0]

    assert sorted(CODE.findall(told)) == sorted(IGNORED[title])


def test_every_kind_of_fault_is_on_the_page_with_its_number_and_no_other() -> None:
    told = {(int(number), CODE.findall(name)[0]) for number, name, _, _ in ERRORS}

    assert told == {(kind.value, kind.title) for kind in BoshErrorKind}


def test_kinds_that_are_not_raised_are_said_to_be() -> None:
    told = {int(row[0]) for row in ERRORS if "*not raised here*" in row[2]}

    assert told == {kind.value for kind in UNRAISED}
    assert all(CODE.findall(row[3]) for row in ERRORS if int(row[0]) not in told)


def shapes(number: int) -> list[str]:
    """Return the messages that the page has for a number."""
    return [shape for row in ERRORS if int(row[0]) == number for shape in CODE.findall(row[3])]


def has_shape(message: str, shape: str) -> bool:
    """Tell whether a message is what the page says, with something in place of each ``{word}``."""
    pieces = [re.escape(piece) for piece in re.split(r"\{[^}]*\}", shape)]
    return re.fullmatch(".+".join(pieces), message) is not None


@pytest.mark.parametrize("told", [case.told for case in EVERY])
def test_a_message_has_a_shape_that_is_on_the_page(told: str) -> None:
    message, _, named = told.rpartition(" [")
    number = int(named.rstrip("]").rpartition(" ")[2])

    assert any(has_shape(message, shape) for shape in shapes(number))


def test_every_shape_on_the_page_is_told_by_somebody() -> None:
    messages = [case.told.rpartition(" [")[0] for case in EVERY]
    every = {shape for row in ERRORS for shape in CODE.findall(row[3])}

    assert [shape for shape in every if not any(has_shape(message, shape) for message in messages)] == []


@pytest.mark.parametrize(
    "subnet",
    [configs.on_lab(dns=["172.20.5.9"]), {"range": "172.20.5.0/31"}],
    ids=["name server", "two addresses"],
)
def test_a_warning_is_on_the_page(subnet: dict[str, object]) -> None:
    [warning] = configs.warned(subnet)[1]
    told = [CODE.findall(row[1])[0] for row in rows(section("Warnings"))[1:]]

    assert any(has_shape(warning.message, shape) for shape in told)
