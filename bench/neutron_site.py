"""Neutron in this process: its real models and plugin, one network with one subnet, filled behind the driver's back.

What is held was written in bulk. The stock driver finds it as it leaves it itself, the lowest addresses first, which
is what it is fastest with; ours finds it all over the pool, as its picks leave it.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import asyncpg
import netaddr
import sqlalchemy as sa
from neutron.common import config as neutron_config
from neutron.db import db_base_plugin_v2
from neutron.db.migration.models import head  # noqa: F401  # brings every table
from neutron.ipam import driver as ipam_driver
from neutron.ipam import requests as ipam_req
from neutron.ipam.drivers.neutrondb_ipam import db_models as stock_models
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib.db import model_base
from neutron_lib.plugins import constants as plugin_constants
from neutron_lib.plugins import directory
from oslo_config import cfg
from oslo_db import options as db_options

from bench.filling import RAW_COLUMNS, first_position, scattered, split_url
from bench.neutron_jobs import LEDGER, REALM, STOCK, Site
from tenure.doors.neutron import options
from tenure.doors.neutron.session_book import written
from tenure.doors.neutron.tables import AllocationRow, SubnetRow
from tenure.kernel.addresses import format_address, key
from tenure.kernel.values import State
from tenure.stores.statements import STATE_NUMBER
from tenure.wiring import open_store

GATEWAY = 1
FORMER = "unnamed/former."
SEED = 20240229


def configure(site: Site) -> None:
    """Configure this process as a server of the site's deployment."""
    db_options.set_defaults(cfg.CONF)
    neutron_config.register_common_config_options()
    options.register()
    cfg.CONF([], project="neutron", default_config_files=[])
    cfg.CONF.set_override("connection", site.database, "database")
    cfg.CONF.set_override("ipam_driver", "internal" if site.driver == STOCK else "tenure")
    cfg.CONF.set_override("notify_nova_on_port_status_changes", False)
    cfg.CONF.set_override("notify_nova_on_port_data_changes", False)
    if site.driver != STOCK:
        cfg.CONF.set_override("mode", site.driver, options.GROUP)
        cfg.CONF.set_override("ledger", site.ledger, options.GROUP)
        cfg.CONF.set_override("realm", REALM, options.GROUP)
    directory.add_plugin(plugin_constants.CORE, db_base_plugin_v2.NeutronDbPluginV2())
