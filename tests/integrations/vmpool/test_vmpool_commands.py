"""``tenure vmpool`` on a real API server: what is printed, what scripts read, and exit codes."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenure.doors.cli.output.vm_pool_json_keys import (
    VM_ALLOCATION,
    VM_POOL_FINDING,
    VM_POOL_RECOVERY,
    VM_POOL_SIZE,
    VM_POOL_STATUS,
)
from tenure.integrations.vmpool.vm_pool_settings import SOURCES, SettingSource
from tests.doors.cli.site import Site
from tests.doors.cli.test_reference import COMMANDS, IN_A_CLUSTER
from tests.infrastructure.kube import KubeServer
from tests.integrations.vmpool.pool_stage import PoolStage, entry, state_with

IPS = "192.168.3.10-192.168.3.15"
SIX = [f"192.168.3.{last}" for last in range(10, 16)]


@pytest.fixture
def site(kube: KubeServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give a command line whose surroundings name a pool of six."""
    for name, value in {
        "KUBECONFIG": str(kube.kubeconfig()), "POOL_NAMESPACE": namespace, "VM_POOL_IPS": IPS, "NODE_NAME": "worker-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return Site(tmp_path)


@pytest.fixture
def stage(kube: KubeServer, namespace: str) -> PoolStage:
    return PoolStage(kube, namespace)


def test_a_pool_is_filled_listed_and_given_back(site: Site, stage: PoolStage) -> None:
    printed = site.text("vmpool", "allocate", "pod-1", "--pod-name", "pod-1", "--pod-namespace", "default")
    again = site.json("vmpool", "allocate", "pod-1")
    site.text("vmpool", "allocate", "pod-2")

    assert printed == "192.168.3.13 is allocated to pod-1 on worker-1\n"
    assert again.keys() == VM_ALLOCATION.keys()
    assert (again["ip"], again["pod_name"], again["node_name"]) == ("192.168.3.13", "pod-1", "worker-1")
    assert [each["ip"] for each in site.json("vmpool", "list")] == ["192.168.3.13", "192.168.3.12"]
    assert site.text("vmpool", "deallocate", "pod-1") == "released pod-1\n"
    assert site.text("vmpool", "deallocate", "--ip", "192.168.3.12") == "released 192.168.3.12\n"
    assert site.json("vmpool", "deallocate", "pod-1") == {"released": False}
    assert site.text("vmpool", "list") == "no VM is allocated\n"
    assert stage.state()["version"] == 5
    assert not list(site.folder.iterdir()), "no ledger is needed, and none is made"


def test_one_allocation_is_found_by_its_id_and_by_its_address(site: Site) -> None:
    site.text("vmpool", "allocate", "pod-1")

    assert site.json("vmpool", "get", "pod-1") == site.json("vmpool", "get", "--ip", "192.168.3.13")
    assert "192.168.3.13" in site.text("vmpool", "get", "pod-1")
    code, error = site.error("vmpool", "get", "pod-9")
    assert (code, error["code"]) == (3, "not_found")
    assert site.error("vmpool", "get")[0] == site.error("vmpool", "get", "a", "--ip", "192.0.2.1")[0] == 2


def test_a_status_creates_nothing(site: Site, stage: PoolStage) -> None:
    status = site.json("vmpool", "status")

    assert status.keys() == VM_POOL_STATUS.keys()
    assert (status["total"], status["available"], status["in_use"], status["is_there"]) == (6, 6, 0, False)
    assert stage.object() is None
    assert "not there yet" in site.text("vmpool", "status")


def test_a_full_pool_has_an_exit_code_of_its_own(site: Site) -> None:
    for number in range(6):
        site.text("vmpool", "allocate", f"pod-{number}")

    code, error = site.error("vmpool", "allocate", "pod-7")

    assert (code, error["code"], error["message"]) == (5, "vm_pool_exhausted", "no available IPs in pool")
    assert "--wait" in error["hint"]


def test_a_ledger_in_memory_is_refused_since_the_next_command_would_give_the_same_vm(site: Site) -> None:
    for command in (("allocate", "pod-1"), ("agent", "--check"), ("move", "--to", "ledger")):
        code, error = site.error("vmpool", *command, "--pool-mode", "ledger", "--pool-ledger", "memory:")

        assert (code, error["code"]) == (2, "invalid")
        assert "--pool-ledger: a ledger in memory ends with this process" in error["message"]


def test_a_pool_that_is_in_another_mode_is_looked_at_by_its_own_commands(site: Site, stage: PoolStage) -> None:
    """Words of the ledger (`tenure show`) would lead astray: the pool has none."""
    stage.put(state_with(SIX[1:], entry("pod-1", SIX[0])))

    code, error = site.error("vmpool", "allocate", "pod-2", "--pool-mode", "per-ip")

    assert (code, error["code"]) == (4, "conflict")
    assert error["hint"] == "`tenure vmpool status` shows how the pool stands, and in which mode"


@pytest.mark.parametrize("option", ["--cleanup-command", "--cleanup-url"])
def test_an_empty_cleanup_is_refused_and_not_taken_for_none(site: Site, option: str) -> None:
    """It comes from a variable that was not set: the VMs would be released as they are."""
    site.text("vmpool", "allocate", "pod-1")

    code, error = site.error("vmpool", "recover", "--mode", "release", option, "")

    assert (code, error["code"]) in ((2, "invalid"), (2, "bad_argument"))
    assert [each["allocation_id"] for each in site.json("vmpool", "list")] == ["pod-1"]


def test_a_pool_without_allocations_is_said_to_be_moved_with_none(site: Site) -> None:
    assert site.text("vmpool", "move", "--to", "per-ip") == "moved from configmap to per-ip, with no allocation\n"


def test_findings_are_an_exit_code_and_a_repair_says_what_it_did(site: Site, stage: PoolStage) -> None:
    stage.put(state_with(["192.168.3.10", "192.168.3.10", "10.0.0.1"], entry("pod-1", "192.168.3.11")))

    found = site.json("vmpool", "verify", code=1)
    done = site.json("vmpool", "repair")

    assert found["ok"] is False
    assert {each["kind"] for each in found["findings"]} == {"duplicate", "unknown", "missing"}
    assert all(each.keys() == VM_POOL_FINDING.keys() for each in found["findings"])
    assert done["findings"] == found["findings"]
    assert site.text("vmpool", "verify") == "the state is consistent\n"
    assert site.text("vmpool", "repair") == "nothing to repair\n"


def test_a_state_that_cannot_be_read_is_replaced_on_the_operators_word_alone(site: Site, stage: PoolStage) -> None:
    stage.put("{broken")

    code, error = site.error("vmpool", "allocate", "pod-1")
    assert (code, error["code"]) == (4, "pool_state_unreadable")
    assert "--replace-unreadable" in error["hint"]
    assert site.error("vmpool", "repair")[0] == 4
    copy = site.json("vmpool", "repair", "--replace-unreadable")["copy"]
    assert stage.object(copy)["data"] == {"allocation-state": "{broken"}
    assert site.text("vmpool", "verify") == "the state is consistent\n"


def test_notes_that_are_replaced_are_not_said_to_be_allocations(site: Site, stage: PoolStage) -> None:
    """VD5: what is printed is what is so."""
    stage.put(state_with(SIX[1:], entry("pod-1", SIX[0])), **{"tenure-notes": "{"})

    found = site.json("vmpool", "verify", code=1)
    printed = site.text("vmpool", "repair", "--replace-unreadable")

    assert [each["kind"] for each in found["findings"]] == ["unreadable_notes"]
    assert "nothing is allocated" not in printed
    assert "the notes could not be read; a copy is in the ConfigMap byom-ip-pool-state-broken-" in printed
    assert printed.endswith("are noted anew; kept as they are: 1 allocation\n")
    assert site.json("vmpool", "get", "pod-1")["ip"] == SIX[0]


def test_a_state_in_binary_data_is_shown_and_moved(site: Site, stage: PoolStage) -> None:
    text = json.dumps(state_with(SIX[1:], entry("pod-1", SIX[0])))
    stage.put_object({"binaryData": {"allocation-state": base64.b64encode(text.encode()).decode()}})

    code, error = site.error("vmpool", "allocate", "pod-2")
    found = site.text("vmpool", "verify", code=1)
    printed = site.text("vmpool", "repair")

    assert (code, error["code"]) == (4, "pool_state_misplaced")
    assert "`tenure vmpool repair` moves it to data" in error["hint"]
    assert "is in binaryData" in found
    assert printed.endswith("repaired: 1 change\n")
    assert [each["ip"] for each in site.json("vmpool", "list")] == [SIX[0]]


@pytest.mark.parametrize("mode", ["configmap", "per-ip", "shards"])
def test_a_namespace_that_is_not_there_is_said_with_the_command_that_makes_it(site: Site, mode: str) -> None:
    code, error = site.error("vmpool", "allocate", "a", "--pool-namespace", "nowhere", "--pool-mode", mode)

    assert (code, error["code"]) == (4, "pool_namespace_missing")
    assert "there is no namespace 'nowhere': create it first (`kubectl create namespace nowhere`)" in error["message"]
    assert "`kubectl create namespace nowhere`" in error["hint"]


def test_vd7_pools_that_are_named_are_tried_in_order(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VM_POOL_IPS")
    monkeypatch.setenv("VM_POOLS", "gpu=10.1.0.1;spare=10.2.0.1-10.2.0.2")

    given = [site.json("vmpool", "allocate", id)["pool"] for id in ("a", "b", "a")]
    own = site.json("vmpool", "allocate", "c", "--pool", "own=10.3.0.1", "--pool", "gpu")

    assert (given, own["pool"]) == (["gpu", "spare", "gpu"], "own")
    assert site.json("vmpool", "get", "b")["pool"] == "spare"
    assert [each["pool"] for each in site.json("vmpool", "list")] == ["gpu", "spare"]
    assert "POOL" in site.text("vmpool", "list")
    assert [(each["pool"].partition("/")[2], each["in_use"]) for each in site.json("vmpool", "status")] == [
        ("gpu", 1),
        ("spare", 1),
    ]
    assert site.json("vmpool", "status", "--pool", "spare")["in_use"] == 1
    assert site.text("vmpool", "deallocate", "b") == "released b\n"
    assert site.error("vmpool", "allocate", "d", "--pool", "gpu")[1]["code"] == "vm_pool_exhausted"
    assert site.text("vmpool", "verify", "--pool", "spare") == "the state is consistent\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "--pool", "other"], "--pool: there is no pool 'other'"),
        (["status", "--pool", "a=10.0.0.1", "--pool", "b=10.0.0.1"], "10.0.0.1 is in the pools 'a' and 'b'"),
        (["status", "--pool", "a=10.0.0.1", "--pool-ips", "10.0.0.1"], "--pool: it stands in place of --pool-ips"),
        (["verify", "--pool", "a=10.0.0.1", "--pool", "b=10.0.0.2"], "--pool: one pool is needed here"),
        (
            ["allocate", "x", "--pool", "a=10.0.0.1", "--pool", "b=10.0.0.2", "--pool-mode", "per-ip"],
            "--pool: the first",
        ),
    ],
)
def test_pools_that_make_no_sense_are_refused(site: Site, words: Sequence[str], said: str) -> None:
    code, error = site.error("vmpool", *words)

    assert code == 2
    assert said in error["message"]


def test_two_variables_that_name_pools_are_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VM_POOLS", "gpu=10.1.0.1")

    assert "VM_POOLS: it stands in place of VM_POOL_IPS" in site.error("vmpool", "status")[1]["message"]
    assert site.json("vmpool", "status", "--pool", "gpu")["pool_size"] == 1


@pytest.mark.sampled
@pytest.mark.parametrize("said", ["nan", "inf", "-inf", "-1", "1e999"])
@pytest.mark.parametrize(
    "words",
    [
        ["allocate", "a", "--wait"], ["recover", "--cleanup-timeout"], ["recover", "--cleanup-wait"],
        ["recover", "--await-return"], ["agent", "--check", "--every"], ["agent", "--check", "--retry-cleanup"],
        ["status", "--operation-timeout"], ["status", "--retry-interval"],
    ],
    ids=lambda words: words[-1],
)  # fmt: skip
def test_an_option_that_is_no_duration_is_refused_by_its_name(site: Site, words: list[str], said: str) -> None:
    code, error = site.error("vmpool", *words[:-1], f"{words[-1]}={said}")

    assert code == 2
    assert words[-1].removeprefix("--").replace("-", "_") in error["message"].replace("-", "_")


def test_a_node_that_is_named_by_nothing_is_not_taken_for_this_one(site: Site) -> None:
    site.text("vmpool", "allocate", "pod-1")
    code, error = site.error("vmpool", "recover", "--node-name", "", "--mode", "release")

    assert (code, len(site.json("vmpool", "list"))) == (2, 1)
    assert "--node-name" in error["message"]


def test_a_node_is_recovered_as_it_is_asked_for(site: Site, tmp_path: Path) -> None:
    for id in ("pod-1", "pod-2"):
        site.text("vmpool", "allocate", id)

    kept = site.json("vmpool", "recover")
    failed = site.json("vmpool", "recover", "--cleanup-command", "false", "--cleanup-wait", "0", code=1)
    script = tmp_path / "clean"
    script.write_text('#!/bin/sh\necho "$1" >> "$0.log"\n', "utf-8")
    script.chmod(0o755)
    done = site.json("vmpool", "recover", "--cleanup-command", f"{script} {{ip}}", "--cleanup-wait", "0")

    assert kept.keys() == VM_POOL_RECOVERY.keys()
    assert (kept["mode"], len(kept["kept"])) == ("keep", 2)
    assert [each["cause"] for each in failed["failed"]] == ["false ended with 1"] * 2
    assert sorted(each["ip"] for each in done["released"]) == ["192.168.3.12", "192.168.3.13"]
    assert sorted((tmp_path / "clean.log").read_text("utf-8").split()) == ["192.168.3.12", "192.168.3.13"]
    assert site.json("vmpool", "list") == []


def test_a_role_that_does_not_allow_it_has_an_exit_code_of_its_own(kube: KubeServer, site: Site) -> None:
    code, error = site.error("vmpool", "status", "--kubeconfig", str(kube.kubeconfig("nobody-token")))

    assert (code, error["code"]) == (7, "pool_forbidden")
    assert "tenure vmpool manifests" in error["hint"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.argument)
def test_vs4_a_setting_is_an_option_with_a_variable(source: SettingSource) -> None:
    options = {flag: each for each in COMMANDS["vmpool", "repair"].params for flag in each.opts}

    assert source.variable in str(getattr(options[source.flag], "help", ""))


def test_vs4_an_option_counts_before_its_variable(site: Site, stage: PoolStage) -> None:
    words = ["--pool-configmap-name", "gpu-vms", "--pool-ips", "10.1.0.1,10.1.0.5-10.1.0.9", "--max-range-ips", "2"]

    status = site.json("vmpool", "status", *words)
    given = site.json("vmpool", "allocate", "a", *words, "--node-name", "n2", "--retry", "go", "--max-retries", "1")

    assert (status["pool_size"], status["pool"]) == (3, f"{stage.namespace}/gpu-vms")
    assert given["node_name"] == "n2"
    assert stage.object("gpu-vms") is not None
    assert stage.object() is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pool-ips", "10.0.0.1,x"], "invalid IP address"),
        (["--pool-ips", "10.0.0.9-10.0.0.1"], "must begin below its end"),
        (["--operation-timeout", "0"], "operation"),
        (["--max-retries", "many"], "max"),
        (["--retry", "never"], "'deadline' or 'go'"),
        (["--kubeconfig", "missing"], "--kubeconfig"),
        (["--pool-configmap-name", "A_b"], "no name in Kubernetes"),
    ],
)
def test_a_setting_that_is_wrong_is_refused(site: Site, words: Sequence[str], said: str) -> None:
    code, error = site.error("vmpool", "status", *words)

    assert code == 2
    assert said in error["message"]


@pytest.mark.parametrize("words", IN_A_CLUSTER, ids=" ".join)
def test_an_example_runs_and_answers_with_json(words: list[str], site: Site) -> None:
    site.text("vmpool", "allocate", "nginx-3f1c9d2e")
    more = [] if "--pool" in words else ["--pool-ips", f"{IPS},192.0.2.10-192.0.2.29"]
    first = site.call(*words, *more)
    site.text("vmpool", "allocate", "nginx-3f1c9d2e")
    second = site.call(*words, *more, "--json")

    assert (first.exit_code, second.exit_code) in {(0, 0), (1, 1), (3, 3)}, first.output
    assert json.loads(second.stdout or second.stderr)


def test_a_pool_is_moved_and_every_command_follows(site: Site) -> None:
    site.text("vmpool", "allocate", "pod-1")

    moved = site.json("vmpool", "move", "--to", "per-ip")

    assert moved == {"from": "configmap", "to": "per-ip", "allocations": 1, "is_moved": True}
    assert site.json("vmpool", "get", "pod-1")["ip"] == "192.168.3.13"
    status = site.json("vmpool", "status")
    assert status.keys() == VM_POOL_STATUS.keys()
    assert (status["mode"], status["in_use"], status["available"]) == ("per-ip", 1, 5)
    assert site.text("vmpool", "move", "--to", "per-ip") == "the pool is in mode per-ip already\n"


def test_a_pool_is_resized_and_every_command_follows(site: Site) -> None:
    assert site.json("vmpool", "size") == {"is_sized": False}
    site.text("vmpool", "allocate", "pod-1")

    sized = site.json("vmpool", "resize", "--add", "192.0.2.1-192.0.2.2", "--remove", "192.168.3.10-192.168.3.15")

    assert sized.keys() == VM_POOL_SIZE.keys()
    assert (sized["ips"], len(sized["retiring"])) == (["192.0.2.1", "192.0.2.2"], 6)
    assert site.json("vmpool", "allocate", "pod-2")["ip"] in sized["ips"]
    assert site.json("vmpool", "status")["draining"] == ["192.168.3.13"]
    code, error = site.error("vmpool", "resize", "--low", "2", "--high", "20%")
    assert (code, "--low: it has to be below high" in error["message"]) == (2, True)
    marks = site.json("vmpool", "resize", "--low", "1", "--high", "3", "--max", "9", "--from", "192.0.2.0/28")
    assert marks["policy"]["prefix"] == "192.0.2.0/28"
    assert "1 to 3 free" in site.text("vmpool", "size")
    code, error = site.error("vmpool", "resize", "--keep-size", "--low", "1", "--high", "2")
    assert (code, error["message"].partition(":")[0]) == (2, "--keep-size")
    assert site.json("vmpool", "resize", "--keep-size")["policy"] is None
