"""The tutorial of two clusters on one plan, played with the real ``kubectl`` on two fresh API servers."""

import shutil
from pathlib import Path

import pytest
from tools.build_kube import find_program

from tests.house.page_player import ROOT, commands_of, play, wrongs
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import private_kube

PAGE = ROOT / "docs" / "tutorial" / "two-clusters.md"
PORTS = ("8123", "8081", "8082", "9443", "9444")


@pytest.mark.proof
def test_the_tutorial_leads_two_clusters_to_one_plan(tmp_path: Path) -> None:
    """The page's ports are exchanged for free ones, since others may have them."""
    text = PAGE.read_text("utf-8")
    ports = {port: str(free_port()) for port in PORTS}
    text = text.replace("tenure serve ", f"tenure serve --port {ports['8123']} ")
    for port, free in ports.items():
        text = text.replace(port, free)
    commands = commands_of(text)
    with private_kube() as east, private_kube() as west:
        for name, server in (("east", east), ("west", west)):
            shutil.copy(server.kubeconfig(), tmp_path / f"{name}.conf")
        kubectl = find_program("kubectl", build=False).parent
        played = play([each.text for each in commands], tmp_path, kubectl)
    assert wrongs(commands, played) == []
