"""The tutorial of a Metal3 machine: its first half without a cluster, the whole with a real ``kubectl`` on a server."""

from pathlib import Path

import pytest
import yaml
from tools.build_kube import find_program

from tests.house.page_player import ROOT, commands_of, play, wrongs
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import private_kube
from tests.infrastructure.quick_tenure import quick_path
from tests.integrations.kubernetes.metal3_data.capm3_definitions import published_definitions

PAGE = ROOT / "docs" / "tutorial" / "metal3-machine.md"
HALVES = "\n## In the cluster\n"


def test_the_tutorial_renders_a_machine_without_a_cluster(tmp_path: Path) -> None:
    commands = commands_of(PAGE.read_text("utf-8").split(HALVES)[0])
    with quick_path() as front:
        played = play([each.text for each in commands], tmp_path, front)

    assert wrongs(commands, played) == []


@pytest.mark.proof
def test_the_tutorial_leads_from_a_template_to_a_machine_s_secrets(tmp_path: Path) -> None:
    """With the published definitions; the page's port is exchanged for a free one, since others may have it."""
    port = free_port()
    text = PAGE.read_text("utf-8").replace(":8081", f":{port}")
    commands = commands_of(text.replace("tenure operator ", f"tenure operator --port {port} --log json "))
    (tmp_path / "kinds.yaml").write_text(yaml.safe_dump_all(published_definitions("v1beta2")), "utf-8")
    with private_kube() as server:
        kubectl = find_program("kubectl", build=False).parent
        played = play([each.text for each in commands], tmp_path, kubectl, KUBECONFIG=str(server.kubeconfig()))

    assert wrongs(commands, played) == []
