"""Which of Neutron's suites are run, and what in them cannot be ours: each exception by name, with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field

WHITE_BOX = "calls a private method of the stock driver's subnet"
STOCK_MANAGER = "looks into the stock subnet's manager of rows"


@dataclass(frozen=True)
class Suite:
    """A suite: what to load, how many tests it has at least, and which of them are an exception.

    ``tied`` tests name the stock driver's code and must fail; ``skipped`` ones are skipped by Neutron itself;
    ``left_out`` are classes that are not run. A test is called ``Class.test_name``.
    """

    name: str
    loads: tuple[str, ...]
    least: int
    tied: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


PLUGGABLE = Suite(
    name="pluggable backend",
    loads=("neutron.tests.unit.db.test_ipam_pluggable_backend",),
    least=418,
)

BASE = Suite(
    name="base plugin",
    loads=("neutron.tests.common.test_db_base_plugin_v2",),
    least=400,
    left_out=dict.fromkeys(
        ("DbModelTenantTestCase", "DbModelProjectTestCase"),
        "races threads whose errors nobody raises again; up to 25 fail with the stock driver, and upstream does "
        "not run them",
    ),
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
