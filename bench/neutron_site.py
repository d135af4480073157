"""Neutron in this process: its real models and plugin, one network, one subnet. Configuration is global, so: one site.

One operation is what a request for a port does with its driver: a new context, a writer transaction, the driver, the
subnet, the address, the commit; with the retries that Neutron has around it.
"""

import time
from typing import Any

import sqlalchemy as sa
from neutron.common import config as neutron_config
from neutron.db import db_base_plugin_v2
from neutron.db.migration.models import head  # noqa: F401  # brings every table of Neutron's
from neutron.ipam import driver as ipam_driver
from neutron.ipam import requests as ipam_req
from neutron_lib import constants as n_const
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib.db import model_base
from neutron_lib.plugins import constants as plugin_constants
from neutron_lib.plugins import directory
from oslo_config import cfg
from oslo_db import options as db_options

from bench.jobs import Result
from bench.neutron_filling import allocations, fill
from bench.neutron_jobs import STOCK, Site
from bench.worker import summary
from tenure.integrations.neutron import options
from tenure.integrations.neutron.database import tables  # noqa: F401  # brings ours

PROJECT = "bench"


def configure(site: Site) -> None:
    """Make this process a server of the site's deployment."""
    neutron_config.register_common_config_options()
    db_options.set_defaults(cfg.CONF)
    section = options.register()
    cfg.CONF([], project="neutron", default_config_files=[])
    cfg.CONF.set_override("connection", site.database, "database")
    cfg.CONF.set_override("ipam_driver", "internal" if site.driver == STOCK else "tenure")
    for notice in ("notify_nova_on_port_status_changes", "notify_nova_on_port_data_changes"):
        cfg.CONF.set_override(notice, False)
    if site.driver != STOCK:
        cfg.CONF.set_override("mode", site.driver, options.GROUP)
        cfg.CONF.set_override("ledger", site.ledger, options.GROUP)
        assert section.mode == site.driver
    directory.add_plugin(plugin_constants.CORE, db_base_plugin_v2.NeutronDbPluginV2())


def make(site: Site) -> str:
    """Make the tables, a network and its subnet, and fill it; return the subnet's number."""
    engine = db_api.CONTEXT_WRITER.get_engine()
    model_base.BASEV2.metadata.create_all(engine)
    context, plugin = neutron_context.get_admin_context(), directory.get_plugin()
    network = {"name": "bench", "admin_state_up": True, "shared": False, "status": "ACTIVE", **_owned()}
    number = plugin.create_network(context, {"network": network})["id"]
    subnet = str(plugin.create_subnet(context, {"subnet": _subnet(number, site.pool)})["id"])
    fill(engine, site, subnet)
    return subnet


def _owned() -> dict[str, str]:
    return {"project_id": PROJECT, "tenant_id": PROJECT}


def _subnet(network: str, pool: str) -> dict[str, Any]:
    """Fill in what the interface of the server would."""
    unsaid = (
        "allocation_pools", "dns_nameservers", "host_routes", "prefixlen", "subnetpool_id", "gateway_ip",
        "ipv6_ra_mode", "ipv6_address_mode",
    )  # fmt: skip
    said = {"name": "bench", "network_id": network, "ip_version": 4, "cidr": pool, "enable_dhcp": False, **_owned()}
    return {**dict.fromkeys(unsaid, n_const.ATTR_NOT_SPECIFIED), **said}


@db_api.retry_if_session_inactive()  # type: ignore[untyped-decorator]  # Neutron's library has no types
def allocate(context: Any, subnet: str, request: Any) -> str:
    """Allocate one address, as a request for a port does."""
    with db_api.CONTEXT_WRITER.using(context):
        return str(ipam_driver.Pool.get_instance(None, context).get_subnet(subnet).allocate(request))


class Server:
    """One server of the deployment; it remembers what it allocated."""

    def __init__(self, site: Site) -> None:
        configure(site)
        self.subnet = site.subnet or make(site)
        self._driver = site.driver
        self._given: list[str] = []

    def allocate(self, count: int, *, lowest: bool) -> Result:
        """Allocate one after the other, and tell how it went."""
        wish = ipam_req.PreferNextAddressRequest if lowest else ipam_req.AnyAddressRequest
        taken: list[float] = []
        clock = time.perf_counter
        cpu, begin = time.process_time(), clock()
        for _ in range(count):
            start = clock()
            self._given.append(allocate(neutron_context.get_admin_context(), self.subnet, wish()))
            taken.append(clock() - start)
        return summary(taken, clock() - begin, time.process_time() - cpu)

    def give_back(self) -> None:
        """Let go of everything in one transaction, so that every round finds the same fill."""
        context = neutron_context.get_admin_context()
        with db_api.CONTEXT_WRITER.using(context):
            subnet = ipam_driver.Pool.get_instance(None, context).get_subnet(self.subnet)
            for address in self._given:
                subnet.deallocate(address)
        self._given.clear()

    def count(self) -> int:
        """Count what is held, by whomever, as the database has it."""
        with db_api.CONTEXT_READER.get_engine().connect() as connection:
            statement = sa.select(sa.func.count()).select_from(allocations(self._driver))
            return int(connection.execute(statement).scalar_one())
