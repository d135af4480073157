"""The tutorial of the operator, played with the real ``kubectl`` on a fresh API server."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tools.build_kube import find_program

from tests.house.page_player import ROOT, commands_of, play, wrongs
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import private_kube

TUTORIAL, HOWTO = (ROOT / "docs" / folder / "kubernetes.md" for folder in ("tutorial", "howto"))


COLUMN = re.compile(r"[^ ]+(?: [^ ]+)*")


def tables(printed: str) -> Iterator[list[str]]:
    """Yield the tables that a command prints, an empty line between them."""
    yield from (table.splitlines() for table in printed.split("\n\n") if table.startswith("NAME "))


def loose_columns(table: list[str]) -> list[str]:
    """Return the columns that do not end three blanks behind what is widest in them, as kubectl writes them."""
    starts = [found.start() for found in COLUMN.finditer(table[0])]
    widths = [(start, end, max(len(row[start:end].rstrip()) for row in table)) for start, end in pairwise(starts)]
    return [table[0][start:end].strip() for start, end, width in widths if start + width + 3 != end]


def test_tables_of_kubectl_have_its_columns() -> None:
    """The player of pages takes any blanks for the same."""
    pages = {page.relative_to(ROOT): commands_of(page.read_text("utf-8")) for page in (ROOT / "docs").rglob("*.md")}
    printed = [
        (page, each.prints)
        for page, commands in pages.items()
        for each in commands
        if each.prints and each.text.startswith("kubectl ")
    ]
    found = [(page, table) for page, text in printed for table in tables(text)]

    assert TUTORIAL.relative_to(ROOT) in {page for page, _ in found}
    assert [(page, loose_columns(table)) for page, table in found if loose_columns(table)] == []


@pytest.mark.proof
def test_the_tutorial_leads_from_an_empty_cluster_to_a_claims_address(tmp_path: Path) -> None:
    """The page's ports are exchanged for free ones, since others may have them."""
    webhooks, probes = free_port(), free_port()
    text = TUTORIAL.read_text("utf-8").replace(":9443", f":{webhooks}").replace(":8081", f":{probes}")
    text = text.replace("tenure operator ", f"tenure operator --webhook-port {webhooks} --port {probes} --log json ")
    commands = commands_of(text)
    with private_kube() as server:
        kubectl = find_program("kubectl", build=False).parent
        played = play([each.text for each in commands], tmp_path, kubectl, KUBECONFIG=str(server.kubeconfig()))
    assert wrongs(commands, played) == []


@pytest.mark.proof
def test_the_commands_of_the_howto_work_on_a_fresh_server(tmp_path: Path) -> None:
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    commands = commands_of(HOWTO.read_text("utf-8"))
    with private_kube() as server:
        programs = [find_program(name, build=False).parent for name in ("kubectl", "helm")]
        played = play([each.text for each in commands], tmp_path, *programs, KUBECONFIG=str(server.kubeconfig()))
    assert len(played) == 8
    assert wrongs(commands, played) == []
