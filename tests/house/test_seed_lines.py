"""Every command line of the networks design stands in the tutorial, and so is run by the test of its consoles."""

from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "tutorial" / "networks.md"

NETWORK_LINES = [
    "--subnet add:cidr=10.0.0.0/24,gateway=10.0.0.1,dhcp=true net1",
    "--subnet add:cidr=2001::/64,gateway=2001::1,dhcp=true net1",
    "--subnet some-ident:remove network1",
    "--subnet some-ident:modify,dhcp=false,name=foo network1",
    "--subnet some-ident:modify,cidr=192.0.2.0/22 net1",
    "--subnet some-ident:modify,cidr=192.0.2.32/28 net1",
    "--subnet some-ident:modify,gateway=192.0.2.40 net1",
    "--pool add:192.0.2.10-192.0.2.100,name=pool1 net1",
    "--pool add:10.0.0.7-10.0.0.20 net1",
    "--pool add:10.0.0.100 net1",
    "--subnet add:cidr=10.0.0.0/27,pool net1",
    "--pool add:subnet=some-ident",
    "--pool add:10.0.0.0/27 net1",
    "--pool remove:192.0.2.20-192.0.2.50 net1",
    "--add-reserved-ips 192.0.2.20-192.0.2.50 net1",
]
INSTANCE_LINES = [
    "add --net 0:ip0=192.0.2.4,ip1=pool,ip2=some-pool-name,network=network1 inst1",
    "add --net 0:ip=pool,network1 inst1",
    "modify --net 0:modify,ip1=1.2.3.10",
    "modify --net -1:add,ip0=pool,ip1=1.2.3.4,network=test",
    "modify --net 1:modify,ip1=none",
]


@pytest.mark.parametrize("line", NETWORK_LINES)
def test_a_line_on_networks_is_in_the_tutorial(line: str) -> None:
    assert f"$ tenure network modify {line}" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("line", INSTANCE_LINES)
def test_a_line_on_instances_is_in_the_tutorial(line: str) -> None:
    assert f"$ tenure instance {line}" in PAGE.read_text("utf-8")
