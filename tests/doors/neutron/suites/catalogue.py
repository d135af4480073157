"""Which of Neutron's suites are run, and what in them cannot be ours: each exception by name, with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field

WHITE_BOX = "calls a private method of the stock driver's subnet"
STOCK_MANAGER = "looks into the stock subnet's manager of rows"
MOCKED_CHECK = "forces its error with a mock in the stock class alone, so nothing is forced here"
NO_FILTERS = "the base plugin does not check filters"
UPSTREAM_RACES = "races threads whose errors get lost: some fail with the stock driver too, and upstream runs none"


@dataclass(frozen=True)
class Suite:
    """A suite: what to load, how many tests it has at least, and which of them are an exception.

    ``tied`` tests name the stock driver's code and must fail; ``hollow`` ones pass, but what they are about happens in
    the stock driver only; ``skipped`` ones are skipped by Neutron itself; ``left_out`` are classes that are not run. A
    test is called ``Class.test_name``. ``direct``: its tests make the stock classes themselves, so ours take the place
    of those as well.
    """

    name: str
    loads: tuple[str, ...]
    least: int
    direct: bool = False
    tied: Mapping[str, str] = field(default_factory=dict)
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
    tied={
        "TestMl2PortsV2.test_create_ports_bulk_with_wrong_fixed_ips": STOCK_MANAGER,
        "TestML2PluggableIPAM.test_create_subnet_delete_subnet_call_ipam_driver": (
            "puts a mock in the place of the stock class, by its path, and counts its calls"
        ),
    },
)

BLACK_BOX = Suite(
    name="black-box driver",
    loads=("neutron.tests.unit.ipam.drivers.neutrondb_ipam.test_driver",),
    least=33,
    direct=True,
    tied={
        "TestNeutronDbIpamSubnet.test__verify_ip_succeeds": WHITE_BOX,
        "TestNeutronDbIpamSubnet.test__verify_ip_not_in_subnet_fails": WHITE_BOX,
        "TestNeutronDbIpamSubnet.test__verify_ip_bcast_and_network_fail": WHITE_BOX,
        "TestNeutronDbIpamSubnet.test_update_allocation_pools_with_no_pool_change": STOCK_MANAGER,
        "TestNeutronDbIpamSubnet.test__no_pool_changes_negative": WHITE_BOX,
        "TestNeutronDbIpamSubnet.test__no_pool_changes_positive": WHITE_BOX,
    },
)

SUITES = {suite.name: suite for suite in (PLUGGABLE, BASE, ML2, BLACK_BOX)}
