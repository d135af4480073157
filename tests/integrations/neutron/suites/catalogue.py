"""Which of Neutron's suites are run, and what in them cannot be ours: each exception by name, with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tie:
    """Why a test is tied to the stock driver, and the words with which it must fail: any others are a fault."""

    reason: str
    sign: str


PRIVATE_CHECK = Tie("calls a private method of the stock driver's subnet", "no attribute '_verify_ip'")
ROWS = Tie("looks into the manager of rows that the stock driver's subnet has", "no attribute 'subnet_manager'")
MOCKED_POOL = Tie("mocks the stock driver by its path and waits for its calls", "Expected: allocate_subnet(<ANY>)")
MOCKED_CHECK = "forces its error with a mock in the stock class alone, so nothing is forced here"
NO_FILTERS = "this setting of the plugin does not check filters"
UPSTREAM_RACES = "races threads whose errors get lost: some fail with the stock driver too, and upstream runs none"


@dataclass(frozen=True)
class Suite:
    """A suite: what to load, how many tests it has at least, and which of them are an exception.

    ``tied`` tests need the stock driver's code and must fail; ``hollow`` ones pass, but what they are about happens in
    the stock driver only; ``skipped`` ones are skipped by Neutron itself; ``left_out`` are classes that are not run. A
    test is called ``Class.test_name``. ``direct``: its tests make the stock classes themselves, so ours take the place
    of those as well.
    """

    name: str
    loads: tuple[str, ...]
    least: int
    direct: bool = False
    tied: Mapping[str, Tie] = field(default_factory=dict)
    hollow: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


PLUGGABLE = Suite(
    name="pluggable backend",
    loads=("neutron.tests.unit.db.test_ipam_pluggable_backend",),
    least=418,
    skipped={"TestIpamSubnets.test_list_subnets_filtering_by_unknown_filter": NO_FILTERS},
    hollow={
        "TestIpamSubnets.test_create_subnet_dhcpv6_stateless_with_ip_already_allocated": MOCKED_CHECK,
        "TestIpamSubnets.test_create_subnet_ipv6_slaac_with_ip_already_allocated": MOCKED_CHECK,
    },
)

BASE = Suite(
    name="base plugin",
    loads=("neutron.tests.common.test_db_base_plugin_v2",),
    least=400,
    skipped={"TestSubnetsV2.test_list_subnets_filtering_by_unknown_filter": NO_FILTERS},
    hollow={
        "TestSubnetsV2.test_create_subnet_dhcpv6_stateless_with_ip_already_allocated": MOCKED_CHECK,
        "TestSubnetsV2.test_create_subnet_ipv6_slaac_with_ip_already_allocated": MOCKED_CHECK,
    },
    left_out={"DbModelTenantTestCase": UPSTREAM_RACES, "DbModelProjectTestCase": UPSTREAM_RACES},
)

ML2 = Suite(
    name="ML2 ports",
    loads=(
        "neutron.tests.unit.plugins.ml2.test_plugin.TestMl2PortsV2",
        "neutron.tests.unit.plugins.ml2.test_plugin.TestML2PluggableIPAM",
    ),
    least=341,
    skipped={"TestML2PluggableIPAM.test_list_subnets_filtering_by_unknown_filter": NO_FILTERS},
    hollow={
        "TestML2PluggableIPAM.test_create_subnet_dhcpv6_stateless_with_ip_already_allocated": MOCKED_CHECK,
        "TestML2PluggableIPAM.test_create_subnet_ipv6_slaac_with_ip_already_allocated": MOCKED_CHECK,
    },
    tied={
        "TestMl2PortsV2.test_create_ports_bulk_with_wrong_fixed_ips": ROWS,
        "TestML2PluggableIPAM.test_create_subnet_delete_subnet_call_ipam_driver": MOCKED_POOL,
    },
)

BLACK_BOX = Suite(
    name="black-box driver",
    loads=("neutron.tests.unit.ipam.drivers.neutrondb_ipam.test_driver",),
    least=33,
    direct=True,
    tied={
        "TestNeutronDbIpamSubnet.test__verify_ip_succeeds": PRIVATE_CHECK,
        "TestNeutronDbIpamSubnet.test__verify_ip_not_in_subnet_fails": PRIVATE_CHECK,
        "TestNeutronDbIpamSubnet.test__verify_ip_bcast_and_network_fail": PRIVATE_CHECK,
        "TestNeutronDbIpamSubnet.test_update_allocation_pools_with_no_pool_change": ROWS,
        "TestNeutronDbIpamSubnet.test__no_pool_changes_negative": ROWS,
        "TestNeutronDbIpamSubnet.test__no_pool_changes_positive": ROWS,
    },
)

SUITES = {suite.name: suite for suite in (PLUGGABLE, BASE, ML2, BLACK_BOX)}
