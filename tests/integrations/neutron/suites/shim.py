"""Put our driver in the place of the stock one, before a suite is imported; the suites themselves stay as they are."""

from collections import Counter
from typing import Any

from neutron.ipam import driver as interface
from neutron.ipam.drivers.neutrondb_ipam import driver as stock
from oslo_config import cfg

from tenure.integrations.neutron.database import tables
from tenure.integrations.neutron.driver import TenurePool, TenureSubnet

STOCK, OURS = "internal", "tenure"

TABLES = (tables.SubnetRow, tables.AllocationRow)
"""Named here so that they are known when the suites make the schema."""

POOLS: Counter[str] = Counter()
"""How many drivers were made, by class: proof that it was ours which was tested."""


def install(*, classes: bool) -> None:
    """Turn the name of the stock driver into ours, or its classes as well, and count the drivers that are made."""
    _rename(cfg.ConfigOpts)
    if classes:
        stock.NeutronDbPool, stock.NeutronDbSubnet = TenurePool, TenureSubnet
    _count(interface.Pool)


def _rename(options: Any) -> None:
    plain = options.set_override

    def set_override(self: Any, name: str, override: Any, group: Any = None) -> None:
        ours = name == "ipam_driver" and override == STOCK
        plain(self, name, OURS if ours else override, group)

    options.set_override = set_override


def _count(pool: Any) -> None:
    plain = pool.__init__

    def __init__(self: Any, subnetpool: Any, context: Any) -> None:  # noqa: N807  # it takes the place of one
        POOLS[type(self).__name__] += 1
        plain(self, subnetpool, context)

    pool.__init__ = __init__
