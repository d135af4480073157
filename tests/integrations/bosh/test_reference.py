"""The page on deployments says what the code does: keys that are read and ignored, errors, numbers and messages."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenure.doors.deployments import reports
from tenure.doors.deployments.documents import (
    azs,
    cloud,
    group_networks,
    groups,
    manifest,
    migrations,
    networks,
    own,
    subnets,
)
from tenure.doors.deployments.faults import Kind
from tests.doors.deployments.documents import configs
from tests.doors.deployments.test_errors import EVERY, UNRAISED

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "deployments.md").read_text("utf-8")
CODE = re.compile(r"`([^`]+)`")

READ: dict[str, Sequence[str]] = {
    "Cloud config": cloud.KEYS,
    "Availability zone": azs.KEYS,
    "Manual network": networks.MANUAL_KEYS,
    "Manual subnet": subnets.KEYS,
    "Dynamic network": networks.DYNAMIC_KEYS,
    "Dynamic subnet": networks.DYNAMIC_SUBNET_KEYS,
    "VIP network": networks.VIP_KEYS,
    "VIP subnet": networks.VIP_SUBNET_KEYS,
    "Compilation": cloud.COMPILATION_KEYS,
    "Manifest": (*manifest.READ, *own.KEYS, "jobs"),
    "Instance group": groups.READ,
    "Network of a group": group_networks.KEYS,
    "Migrated from": migrations.KEYS,
    "What VMs say": reports.STATE_KEYS,
    "Network of a VM": reports.NETWORK_KEYS,
}
IGNORED: dict[str, Sequence[str]] = {
    "Cloud config": cloud.OTHER_KEYS,
    "Manifest": manifest.IGNORED,
    "Instance group": groups.IGNORED,
    "Network of a VM": reports.OTHER_NETWORK_KEYS,
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

    assert told == {(kind.value, kind.title) for kind in Kind}


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
