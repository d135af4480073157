"""The pages on VM pools, played with the real ``kubectl`` on a fresh API server; and what they say of the code."""

import json
import re
from pathlib import Path

import pytest
from tools.build_kube import find_program

from tenure.integrations.vmpool.config_map_swap import StoredPool
from tenure.integrations.vmpool.pool_document import read_document
from tenure.integrations.vmpool.pool_log import PoolEvent
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.state_repair import PoolLine, RepairKind
from tenure.integrations.vmpool.vm_pool_settings import SOURCES
from tests.house.page_player import ROOT, Command, commands_of, play, wrongs
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import KubeServer, private_kube
from tests.infrastructure.kube_controllers import controller_manager

TUTORIAL, HOWTO, REFERENCE = (ROOT / "docs" / folder / "vm-pool.md" for folder in ("tutorial", "howto", "reference"))
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
KEY_METRICS = (
    "pool utilization rate",
    "allocation success and failure rates",
    "conflict frequency",
    "average allocation time",
    "VM cleanup success rate",
)
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}}
POD_LINES = "kubectl logs"


def played(server: KubeServer, commands: list[Command], folder: Path, **more: str) -> list[str]:
    """Play commands, and return what is wrong."""
    kubectl = find_program("kubectl", build=False).parent
    done = play([each.text for each in commands], folder, kubectl, KUBECONFIG=str(server.kubeconfig()), **more)
    return wrongs(commands, done)


@pytest.mark.proof
def test_the_tutorial_leads_from_an_empty_cluster_to_a_recovered_node(tmp_path: Path) -> None:
    """Done-when 5. The page's port is exchanged for a free one, since others may have it."""
    text = TUTORIAL.read_text("utf-8").replace("8082", str(free_port()))
    with private_kube() as server:
        assert "\n".join(played(server, commands_of(text), tmp_path)) == ""


@pytest.mark.proof
def test_vs8_the_commands_of_the_howto_work_and_the_quota_refuses_the_pod_that_is_one_too_many(tmp_path: Path) -> None:
    """With Kubernetes' own controller of quotas. Logs are of pods, which no node runs here."""
    commands = [each for each in commands_of(HOWTO.read_text("utf-8")) if not each.text.startswith(POD_LINES)]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "confidential-containers-system"}}
    surroundings = {"VM_POOL_IPS": "192.0.2.10-192.0.2.29", "POOL_NAMESPACE": "confidential-containers-system"}
    first = Command("tenure vmpool allocate pod-1 --node-name worker-1")
    with private_kube() as server, controller_manager(server, ("resourcequota-controller",)):
        server.ask("POST", "/api/v1/namespaces", namespace)
        server.ask("POST", "/api/v1/nodes", NODE)
        assert played(server, [first, *commands], tmp_path, **surroundings) == []
        until = "until kubectl get quota pool-vms -o jsonpath='{.status.hard}' | grep -q vm; do sleep 0.2; done"
        pods = "for number in $(seq 21); do sed s/NUMBER/$number/ pod.yaml | kubectl create -f -; done > made 2>&1"
        (tmp_path / "pod.yaml").write_text(POD, "utf-8")
        told = [
            Command(until),
            Command(f"{pods}; grep -c created made; grep -o 'exceeded quota: pool-vms' made", QUOTA),
        ]
        assert played(server, told, tmp_path) == []


POD = """apiVersion: v1
kind: Pod
metadata: {name: pod-NUMBER}
spec:
  containers:
    - name: main
      image: none
      resources: {limits: {kata.peerpods.io/vm: 1}}
"""
QUOTA = "20\nexceeded quota: pool-vms\n"


def expressions() -> dict[str, str]:
    """Return the expression of each key metric in the howto."""
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \|$", HOWTO.read_text("utf-8"), re.MULTILINE)
    return {metric: expression for metric, expression in rows if "byom_" in expression}


def test_vs7_there_is_one_expression_for_each_key_metric_and_a_panel_with_it() -> None:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    drawn = {target["expr"].replace("$__rate_interval", "5m") for panel in panels for target in panel["targets"]}

    assert tuple(expressions()) == KEY_METRICS
    assert set(expressions().values()) <= drawn


def test_vs7_expressions_ask_only_for_metrics_that_there_are() -> None:
    line = PoolLine(("192.0.2.1",))
    meter = PoolMeter("p", line)
    meter.read(read_document(StoredPool(), line))
    meter.operation("allocate", "new", 0.1, 1)
    shown = {f"{sample.name}{sample.suffix}" for sample in meter.samples()}
    page = HOWTO.read_text("utf-8")
    asked = set(re.findall(r"byom_\w+", DASHBOARD.read_text("utf-8") + page))

    assert asked - shown == set()


def test_vs4_the_page_has_one_table_of_all_settings() -> None:
    page = REFERENCE.read_text("utf-8")
    rows = [f"| `{each.argument}` | `{each.flag}` | `{each.variable}` |" for each in SOURCES]

    assert [row for row in rows if page.count(row) != 1] == []


def test_the_page_names_every_repair_and_every_line_of_the_log() -> None:
    page = REFERENCE.read_text("utf-8")

    assert [kind for kind in RepairKind if f"`{kind}`" not in page] == []
    assert [event.name for event in PoolEvent if f"`{event.name}`" not in page] == []
