"""The pages on VM pools, played with the real ``kubectl`` on a fresh API server; and what they say of the code."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tools.build_kube import find_program

from tenure.integrations.vmpool.config_map_swap import StoredPool
from tenure.integrations.vmpool.lists.named_pools import POOLS_VARIABLE
from tenure.integrations.vmpool.machines.sftp_reboot import VARIABLES
from tenure.integrations.vmpool.pool_document import read_document
from tenure.integrations.vmpool.pool_log import PoolEvent
from tenure.integrations.vmpool.pool_metrics import PoolMeter
from tenure.integrations.vmpool.state.state_repair import PoolLine, RepairKind
from tenure.integrations.vmpool.vm_pool_settings import SOURCES, TOKEN_VARIABLE
from tests.doors.cli.test_reference import COMMANDS
from tests.house.page_player import ROOT, Command, commands_of, play, wrongs
from tests.infrastructure.free_port import free_port
from tests.infrastructure.kube import KubeServer, private_kube
from tests.infrastructure.kube_controllers import controller_manager

TUTORIAL, HOWTO, REFERENCE = (ROOT / "docs" / folder / "vm-pool.md" for folder in ("tutorial", "howto", "reference"))
SIZING = ROOT / "docs" / "howto" / "vm-pool-sizing.md"
MODES, README = ROOT / "docs" / "howto" / "vm-pool-modes.md", ROOT / "README.md"
README_LINES = ("kubectl create namespace confidential", "tenure vmpool")
OF_PROCESSES = ("byom_allocations", "byom_conflicts", "byom_operation")
"""How series begin that a process shows of itself: an agent does not allocate."""
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
    namespace, *commands = [
        each for each in commands_of(HOWTO.read_text("utf-8")) if not each.text.startswith(POD_LINES)
    ]
    first = Command("tenure vmpool allocate pod-1 --node-name worker-1 --pool-ips 192.0.2.10-192.0.2.29")
    (tmp_path / "id_rsa").write_text("a key", "utf-8")
    with private_kube() as server, controller_manager(server, ("resourcequota-controller",)):
        server.ask("POST", "/api/v1/nodes", NODE)
        assert played(server, [namespace, first, *commands], tmp_path) == []
        until = "until kubectl get quota pool-vms -o jsonpath='{.status.hard}' | grep -q vm; do sleep 0.2; done"
        pods = "for number in $(seq 21); do sed s/NUMBER/$number/ pod.yaml | kubectl create -f -; done > made 2>&1"
        (tmp_path / "pod.yaml").write_text(POD, "utf-8")
        told = [
            Command(until),
            Command(f"{pods}; grep -c created made; grep -o 'exceeded quota: pool-vms' made", QUOTA),
        ]
        assert played(server, told, tmp_path) == []


@pytest.mark.proof
def test_vs9_the_commands_of_the_page_on_sizing_let_a_pool_grow(tmp_path: Path) -> None:
    text = SIZING.read_text("utf-8").replace("--resize-every 1", f"--resize-every 1 --port {free_port()}")
    with private_kube() as server:
        assert "\n".join(played(server, commands_of(text), tmp_path)) == ""


@pytest.mark.proof
def test_the_first_commands_of_the_readme_work_as_they_are_pasted(tmp_path: Path) -> None:
    """On an empty cluster, which has no namespace for the pool."""
    commands = [each for each in commands_of(README.read_text("utf-8")) if each.text.startswith(README_LINES)]
    assert len(commands) == 3
    with private_kube() as server:
        assert played(server, commands, tmp_path) == []


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


def tenure(*words: str) -> list[str]:
    return [sys.executable, "-m", "tenure.doors.cli.main", "vmpool", *words]


def test_vs7_every_series_of_the_dashboard_is_served_by_a_real_agent_beside_real_commands(
    kube: KubeServer, namespace: str
) -> None:
    """The processes that run: an agent for long, and commands that come and go; nothing else is asked."""
    port = free_port()
    surroundings = os.environ | {
        "KUBECONFIG": str(kube.kubeconfig()), "POOL_NAMESPACE": namespace, "VM_POOL_IPS": "192.0.2.10-192.0.2.12",
        "NODE_NAME": "worker-1",
    }  # fmt: skip
    agent = subprocess.Popen(
        tenure("agent", "--port", str(port), "--every", "100ms", "--cleanup-command", "true", "--cleanup-wait", "0"),
        env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until_served(port, r"^byom_pool_ips\{.*state=\"available\"\} 3$")
        subprocess.run(tenure("allocate", "pod-1"), env=surroundings, check=True, capture_output=True, timeout=60)
        served = until_served(port, r"^byom_pool_allocations_total\{.*result=\"new\"\} 1$")
    finally:
        agent.terminate()
        agent.wait(30)

    named = set(re.findall(r"byom_\w+", DASHBOARD.read_text("utf-8")))
    of_others = {name for name in named_in_howto() - named if name.startswith(OF_PROCESSES)}
    shown = set(re.findall(r"^(byom_\w+)", served, re.MULTILINE))
    assert named | (named_in_howto() - of_others) <= shown
    for metric, expression in expressions().items():
        series = re.findall(r"byom_\w+", expression)
        assert series, metric
        assert all(re.search(rf"^{name}\{{pool=", served, re.MULTILINE) for name in series), metric
    assert re.search(r"^byom_pool_allocation_duration_seconds_count\{.*\} 1$", served, re.MULTILINE)
    assert re.search(r"^byom_pool_utilization_ratio\{.*\} 0\.33", served, re.MULTILINE)


def named_in_howto() -> set[str]:
    """Return the series that the page names, without the beginning of their names."""
    return {name for name in re.findall(r"byom_\w+", HOWTO.read_text("utf-8")) if not name.endswith("_")}


def until_served(port: int, line: str) -> str:
    """Ask an agent until it serves a line; return all that it serves."""
    deadline = time.monotonic() + 60
    text = ""
    while not re.search(line, text, re.MULTILINE):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            continue
    return text


def test_vs7_series_of_a_process_that_allocates_are_shown_by_its_meter() -> None:
    line = PoolLine(("192.0.2.1",))
    meter = PoolMeter("p", line)
    meter.read(read_document(StoredPool(), line))
    meter.operation("allocate", "new", 0.1, 1)
    shown = {sample.name for sample in meter.samples()}

    assert {name for name in named_in_howto() if name.startswith(OF_PROCESSES)} <= shown


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OTHER_OPTIONS = {"--subresource", "--type", "--from-file"}
"""Of kubectl."""
VARIABLE = re.compile(r"`((?:VM_|POOL_|NODE_|POD_|SSH_|MAX_|TENURE_|KUBECONFIG|OPERATION)[A-Z_]*)`")
OTHER_VARIABLES = {"TENURE_VM_IP", "TENURE_VM_ID", "KUBECONFIG", "POD_NAMESPACE", POOLS_VARIABLE, TOKEN_VARIABLE}


@pytest.mark.parametrize(
    "page", [TUTORIAL, HOWTO, MODES, REFERENCE], ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_every_option_and_variable_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text("utf-8")
    known = {
        flag
        for words, each in COMMANDS.items()
        if words[0] == "vmpool"
        for option in each.params
        for flag in option.opts
    }
    variables = {source.variable for source in SOURCES} | set(VARIABLES.values()) | OTHER_VARIABLES

    assert set(OPTION.findall(text)) - known - OTHER_OPTIONS <= {"--plot-vm-pools", "--only", "--json"}
    assert set(VARIABLE.findall(text)) - variables == set()


def test_the_howto_names_every_variable() -> None:
    page = HOWTO.read_text("utf-8")
    wanted = {source.variable for source in SOURCES} | set(VARIABLES.values()) | {POOLS_VARIABLE, "POD_NAMESPACE"}

    assert {name for name in wanted if f"`{name}`" not in page} == set()


def test_vs4_the_page_has_one_table_of_all_settings() -> None:
    page = REFERENCE.read_text("utf-8")
    rows = [f"| `{each.argument}` | `{each.flag}` | `{each.variable}` |" for each in SOURCES]

    assert [row for row in rows if page.count(row) != 1] == []


def test_the_page_names_every_repair_and_every_line_of_the_log() -> None:
    page = REFERENCE.read_text("utf-8")

    assert [kind for kind in RepairKind if f"`{kind}`" not in page] == []
    assert [event.name for event in PoolEvent if f"`{event.name}`" not in page] == []
