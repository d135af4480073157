"""Namespaces and node names are found as the adaptor finds them (cases 51, 66 to 70), by every program alike."""

from pathlib import Path

import pytest

from tenure.doors.cli.commands.vmpool.open_vm_pool import read_settings
from tenure.integrations.vmpool import pod_surroundings
from tenure.integrations.vmpool.lists.named_pools import named_settings
from tenure.integrations.vmpool.pod_surroundings import find_namespace, find_node_name
from tenure.integrations.vmpool.pool_errors import NamespaceUnknown, NodeNameUnknown
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tests.integrations.vmpool.pool_stage import TWO, PoolStage


@pytest.fixture
def account(tmp_path: Path) -> Path:
    return tmp_path / "namespace"


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the files of a pod in the namespace *of-the-pod*, on a node that is named by none yet."""
    for variable in ("POOL_NAMESPACE", "POD_NAMESPACE", "NODE_NAME", "VM_POOLS", "VM_POOL_IPS"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "namespace").write_text("of-the-pod\n", "utf-8")
    monkeypatch.setattr(pod_surroundings, "SERVICE_ACCOUNT_NAMESPACE", tmp_path / "namespace")
    monkeypatch.setattr(pod_surroundings, "NODE_NAME_FILES", (tmp_path / "nodename",))
    return tmp_path


def test_case_66_the_namespace_of_the_service_account_is_trimmed(account: Path) -> None:
    account.write_text("  test-namespace\n\t ", "utf-8")

    assert find_namespace(environment={"POD_NAMESPACE": "other"}, file=account) == "test-namespace"


def test_case_67_without_the_file_the_environment_names_the_namespace(account: Path) -> None:
    assert find_namespace(environment={"POD_NAMESPACE": " pods\n"}, file=account) == "pods"


def test_case_67_an_empty_file_names_none(account: Path) -> None:
    account.write_text(" \n", "utf-8")

    assert find_namespace(environment={"POD_NAMESPACE": "pods"}, file=account) == "pods"


def test_case_68_without_both_it_is_the_default_or_an_error(account: Path) -> None:
    assert find_namespace(environment={"POD_NAMESPACE": "  "}, file=account) == "confidential-containers-system"
    with pytest.raises(NamespaceUnknown):
        find_namespace(environment={}, file=account, default=None)


def test_case_69_a_named_namespace_is_used_as_it_is(account: Path) -> None:
    account.write_text("of-the-pod", "utf-8")

    assert find_namespace("named", environment={"POD_NAMESPACE": "pods"}, file=account) == "named"


@pytest.mark.parametrize("said", [" n1 ", "n1\n"])
def test_case_70_the_node_name_is_trimmed(said: str) -> None:
    assert find_node_name(environment={"NODE_NAME": said}) == "n1"


def test_case_70_a_name_of_blanks_is_none(tmp_path: Path) -> None:
    mounted, host = tmp_path / "nodename", tmp_path / "hostname"
    host.write_text("host-1\n", "utf-8")

    assert find_node_name(environment={"NODE_NAME": "   "}, files=(mounted, host)) == "host-1"
    mounted.write_text("node-1", "utf-8")
    assert find_node_name(environment={"NODE_NAME": "   "}, files=(mounted, host)) == "node-1"


def test_case_51_a_name_that_cannot_be_found_is_an_error_that_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NodeNameUnknown, match=r"^unable to determine node name: .*NODE_NAME.*hostname"):
        find_node_name(environment={}, files=(tmp_path / "hostname",))


@pytest.mark.usefixtures("pod")
def test_case_66_a_program_without_a_named_namespace_uses_that_of_its_pod() -> None:
    assert VMPoolSettings(pool_ips=TWO).namespace == "of-the-pod"
    assert VMPoolSettings.from_environment({}, pool_ips=TWO).namespace == "of-the-pod"
    assert named_settings(["gpu=10.1.0.1"], {})[0].namespace == "of-the-pod"


def test_case_67_a_program_without_the_file_uses_the_namespace_of_its_environment(pod: Path) -> None:
    (pod / "namespace").unlink()
    surroundings = {"POD_NAMESPACE": "pods"}

    assert VMPoolSettings.from_environment(surroundings, pool_ips=TWO).namespace == "pods"
    assert named_settings(["gpu=10.1.0.1"], surroundings)[0].namespace == "pods"


@pytest.mark.usefixtures("pod")
def test_case_69_a_namespace_that_a_program_or_its_environment_names_counts_before_that_of_the_pod() -> None:
    surroundings = {"POOL_NAMESPACE": "of-the-pool"}

    assert VMPoolSettings(pool_ips=TWO, namespace="named").namespace == "named"
    assert VMPoolSettings.from_environment(surroundings, pool_ips=TWO).namespace == "of-the-pool"
    assert VMPoolSettings.from_environment(surroundings, pool_ips=TWO, namespace="named").namespace == "named"


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize("named", [None, "of-the-pool"])
def test_commands_and_programs_use_one_namespace(named: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if named is not None:
        monkeypatch.setenv("POOL_NAMESPACE", named)

    by_command = read_settings({"pool_ips": ",".join(TWO)})

    assert by_command.namespace == (named or "of-the-pod")
    assert by_command.namespace == VMPoolSettings.from_environment(pool_ips=TWO).namespace


async def test_case_70_a_program_finds_the_name_of_its_node_by_the_file(stage: PoolStage, pod: Path) -> None:
    (pod / "nodename").write_text("worker-7\n", "utf-8")
    pool = await stage.pool(*TWO, node_name="")

    assert (await pool.allocate("a")).node_name == "worker-7"


async def test_case_70_the_environment_names_the_node_before_the_file(
    stage: PoolStage, pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pod / "nodename").write_text("worker-7\n", "utf-8")
    monkeypatch.setenv("NODE_NAME", "worker-8")
    pool = await stage.pool(*TWO, node_name="")

    assert (await pool.allocate("a")).node_name == "worker-8"
