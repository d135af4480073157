"""Node names and namespaces are found as the adaptor finds them (cases 51, 66 to 70), boots as the kernel has them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tenure.integrations.vmpool.node_identity import find_namespace, find_node_name, read_node_identity
from tenure.integrations.vmpool.pool_errors import NamespaceUnknown, NodeNameUnknown


@pytest.fixture
def account(tmp_path: Path) -> Path:
    return tmp_path / "namespace"


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


def test_a_boot_is_read_from_the_kernel() -> None:
    node = read_node_identity("n1")

    assert (node.node_name, len(node.boot_id)) == ("n1", 36)
    assert datetime(2000, 1, 1, tzinfo=UTC) < node.booted_at <= datetime.now(UTC)


def test_a_machine_that_does_not_show_its_hardware_has_no_system_id(tmp_path: Path) -> None:
    assert read_node_identity("n1", system_id=tmp_path / "none").system_id == ""
    (tmp_path / "uuid").write_text("4C4C4544-0050\n", "utf-8")
    assert read_node_identity("n1", system_id=tmp_path / "uuid").system_id == "4c4c4544-0050"
