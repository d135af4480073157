"""Which pools there are, by name: ``VM_POOLS``, and what a caller names of them. The name is that of the ConfigMap."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.state.allocation_names import check_object_name
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings
from tenure.kernel.errors import Invalid

POOLS_VARIABLE = "VM_POOLS"
POOLS = "pools"
BETWEEN = re.compile(r"[;\s]+")


def read_named_pools(text: str, *, field: str = POOLS_VARIABLE) -> dict[str, str]:
    """Read ``NAME=ADDRESSES`` with semicolons or blanks between; return the addresses by name, in their order."""
    found: dict[str, str] = {}
    for entry in filter(None, BETWEEN.split(text)):
        name, sign, ips = entry.partition("=")
        if not sign or not ips:
            raise Invalid(f"{field}: {entry!r} is not NAME=ADDRESSES, such as gpu=192.0.2.10-192.0.2.19", field=field)
        if check_object_name(name, field=field) in found:
            raise Invalid(f"{field}: the pool {name!r} is there twice", field=field)
        found[name] = ips
    return found


def named_settings(
    names: Sequence[str], environment: Mapping[str, str] | None = None, **given: Any
) -> tuple[VMPoolSettings, ...]:
    """Return the settings of the pools that are named, in that order; of all of ``VM_POOLS`` if none is.

    A name may bring its addresses itself, as ``NAME=ADDRESSES``. All other settings are the same for all pools, and
    are read as by ``VMPoolSettings.from_environment``.
    """
    surroundings = os.environ if environment is None else environment
    known = read_named_pools(surroundings.get(POOLS_VARIABLE, ""))
    wanted = list(known) if not names else []
    for each in names:
        name, sign, _ = each.partition("=")
        if sign:
            known |= read_named_pools(each, field=POOLS)
        elif name not in known:
            there = f"there are {', '.join(known)}" if known else f"{POOLS_VARIABLE} names none"
            raise Invalid(f"{POOLS}: there is no pool {name!r}: {there}; or say NAME=ADDRESSES", field=POOLS)
        if name in wanted:
            raise Invalid(f"{POOLS}: the pool {name!r} is named twice", field=POOLS)
        wanted.append(name)
    settings = tuple(
        VMPoolSettings.from_environment(surroundings, **{**given, "config_map_name": name, "pool_ips": known[name]})
        for name in wanted
    )
    check_apart(settings)
    return settings


def check_apart(settings: Sequence[VMPoolSettings]) -> None:
    """Raise ``BadArgument`` if an address is in two pools: it would be given out twice."""
    first: dict[str, str] = {}
    for each in settings:
        for ip in each.line.ips:
            other = first.setdefault(ip, each.config_map_name)
            if other != each.config_map_name:
                raise BadArgument(f"{POOLS}: {ip} is in the pools {other!r} and {each.config_map_name!r}", field=POOLS)
