"""A boot of a machine is told from any other as the kernel and the hardware show it."""

from datetime import UTC, datetime
from pathlib import Path

from tenure.integrations.vmpool.node_identity import read_node_identity


def test_a_boot_is_read_from_the_kernel() -> None:
    node = read_node_identity("n1")

    assert (node.node_name, len(node.boot_id)) == ("n1", 36)
    assert datetime(2000, 1, 1, tzinfo=UTC) < node.booted_at <= datetime.now(UTC)


def test_a_machine_that_does_not_show_its_hardware_has_no_system_id(tmp_path: Path) -> None:
    assert read_node_identity("n1", system_id=tmp_path / "none").system_id == ""
    (tmp_path / "uuid").write_text("4C4C4544-0050\n", "utf-8")
    assert read_node_identity("n1", system_id=tmp_path / "uuid").system_id == "4c4c4544-0050"
