"""The page says for each flag of Metal3's manager what takes its place here (KP16)."""

import re
import subprocess
from pathlib import Path

import pytest
from tools.build_kube import find_program

from tenure.doors.cli.commands.operator.run_operator import operator
from tests.integrations.kubernetes.metal3.metal3_manager import PROGRAM

PAGE = Path(__file__).parents[4] / "docs" / "howto" / "kubernetes.md"
FLAG = re.compile(r"(?<!\S)(?:-\w, )?(--[a-z][\w-]*)", re.MULTILINE)


def rows() -> list[tuple[str, str]]:
    """Return the rows of the table: Metal3's flags, and what the page says of them."""
    table = PAGE.read_text("utf-8").partition("| Metal3's flag |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    return [(flags, here) for flags, here in cells]


def flags_in(text: str) -> set[str]:
    """Return the flags of a text, in which they may be set as code."""
    return set(FLAG.findall(text.replace("`", " ")))


def test_kp16_what_the_page_names_is_an_option_of_the_operator() -> None:
    ours = {word for option in operator.params for word in option.opts}

    assert len(rows()) > 10
    assert flags_in(" ".join(here for _, here in rows())) <= ours


@pytest.mark.proof
def test_kp16_the_page_has_a_row_for_each_flag_of_metal3s_manager() -> None:
    command = [str(find_program(PROGRAM, build=False)), "--help"]
    asked = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=60)
    lines = [line for line in (asked.stdout + asked.stderr).splitlines() if line.lstrip().startswith("-")]

    assert flags_in(" ".join(flags for flags, _ in rows())) == {
        found[1] for line in lines if (found := FLAG.match(line.strip()))
    }
