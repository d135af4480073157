"""What commands on VM pools share: the settings of the pool, each as an option, and the pool, opened for one command."""

import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenure.doors.cli.commands.operator.run_operator import MODULES
from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.session import run_alone
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install

if TYPE_CHECKING:
    from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
    from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings

T = TypeVar("T")

CLIENT = "tenure-vmpool"
"""What requests call themselves; the server names the manager of written fields so."""

CLUSTER = ("kubeconfig", "context")
"""Options that say how to reach the cluster; all others are settings of the pool."""

pool_name_options = with_options(
    click.option(
        "--pool-namespace", metavar="NAME", help="Where the ConfigMap is; else POOL_NAMESPACE, else the pod's namespace."
    ),
    click.option(
        "--pool-configmap-name",
        metavar="NAME",
        help="The ConfigMap; else POOL_CONFIGMAP_NAME, else byom-ip-pool-state.",
    ),
)
cluster_options = with_options(
    click.option(
        "--kubeconfig",
        metavar="FILE",
        help="How to reach the cluster [default: the pod's own account, else $KUBECONFIG].",
    ),
    click.option("--context", metavar="NAME", help="Another context of the kubeconfig than its current one."),
)
pool_options = with_options(
    click.option(
        "--vm-pool-ips", metavar="A,B-C", help="The addresses of the VMs, and ranges of them; else VM_POOL_IPS."
    ),
    click.option(
        "--max-range-ips",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many addresses of a range are taken; else MAX_RANGE_IPS, else 100.",
    ),
    pool_name_options,
    click.option("--node-name", metavar="NAME", help="The node to act for; else NODE_NAME, else the name of this host."),
    click.option(
        "--operation-timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="How long an operation may take; else OPERATION_TIMEOUT, else 30.",
    ),
    click.option(
        "--max-retries",
        type=click.IntRange(min=0),
        metavar="N",
        help="How often a conflict is retried; else MAX_RETRIES, else until the time-out.",
    ),
    click.option(
        "--retry-interval",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Base of the pauses between retries; else RETRY_INTERVAL, else 0.1.",
    ),
    click.option(
        "--retry",
        type=click.Choice(["deadline", "go"]),
        help="Retry until the time-out (deadline), or as Go managers do, 4 attempts (go); else RETRY.",
    ),
    cluster_options,
)


def loaded(module: str, integration: str = "vmpool") -> Any:
    """Import a module of an integration; where a package is missing, say how to install it."""
    try:
        return importlib.import_module(f"tenure.integrations.{integration}.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in MODULES:
            raise
        raise Invalid(f"vmpool: {error.name} is missing: {how_to_install('vmpool')}") from None
