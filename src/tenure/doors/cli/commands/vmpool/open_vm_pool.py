"""What commands on VM pools share: the settings, each as an option, and the pool, opened for one command."""

import contextlib
import importlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenure.doors.cli.commands.operator.run_operator import MODULES, log_to_stderr
from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.session import run_alone
from tenure.integrations.vmpool.vm_pool_settings import SOURCES, SettingSource, VMPoolSettings
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install

if TYPE_CHECKING:
    from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
    from tenure.integrations.vmpool.pool_changes import PoolObserver

T = TypeVar("T")
Option = Callable[[Callable[..., Any]], Callable[..., Any]]

METAVARS = {
    "pool_ips": "A,B-C",
    "max_range_ips": "N",
    "operation_timeout_s": "SECONDS",
    "max_retries": "N",
    "retry_interval_s": "SECONDS",
}
"""What stands for a value, where it is not a name."""


def setting_option(source: SettingSource) -> Option:
    """Return the option of a setting; its text is read where its variable's is, so both may say the same."""
    metavar = METAVARS.get(source.argument, "WORD" if "'" in source.meaning else "NAME")
    help = f"{source.meaning[:1].upper()}{source.meaning[1:]}; else {source.variable}."
    return click.option(source.flag, source.argument, metavar=metavar, help=help)


def settings_options(*left_out: str) -> Option:
    """Return the options of all settings but some."""
    return with_options(*(setting_option(source) for source in SOURCES if source.argument not in left_out))


cluster_options = with_options(
    click.option(
        "--kubeconfig",
        metavar="FILE",
        help="How to reach the cluster [default: the pod's own account, else $KUBECONFIG].",
    ),
    click.option(
        "--context", "kube_context", metavar="NAME", help="Another context of the kubeconfig than its current one."
    ),
)
log_option = click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    help="Write log lines to standard error, and how they look [default: none].",
)
agent_options = with_options(settings_options("outside_pool"), cluster_options)
pool_options = with_options(agent_options, log_option)


def loaded(module: str, integration: str = "vmpool") -> Any:
    """Import a module of an integration; where a package is missing, say how to install it."""
    try:
        return importlib.import_module(f"tenure.integrations.{integration}.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in MODULES:
            raise
        raise Invalid(f"vmpool: {error.name} is missing: {how_to_install('vmpool')}") from None


def read_settings(said: dict[str, Any]) -> VMPoolSettings:
    """Read the settings of the options, the environment and the pod; how to reach the cluster is left in ``said``."""
    words = {source.argument: said.pop(source.argument, None) for source in SOURCES}
    found = loaded("node_identity").find_namespace(words["namespace"] or os.environ.get("POOL_NAMESPACE", "").strip())
    return VMPoolSettings.from_environment(**{**words, "namespace": found})


def run_on_pool(said: dict[str, Any], work: "Callable[[AsyncVMPool], Awaitable[T]]") -> T:
    """Open the pool that the options name, and do one piece of work on it."""
    log = said.pop("log")
    if log is None:
        # Without any handler Python itself would print warnings, among what scripts read.
        logging.getLogger("tenure").addHandler(logging.NullHandler())
    else:
        log_to_stderr(log, stamped=True)
    settings = read_settings(said)
    return run_alone(_on_pool(settings, work, **said))


async def _on_pool(
    settings: VMPoolSettings,
    work: "Callable[[AsyncVMPool], Awaitable[T]]",
    kubeconfig: str | None,
    kube_context: str | None,
) -> T:
    async with opened_pool(settings, kubeconfig, kube_context) as pool:
        return await work(pool)


@contextlib.asynccontextmanager
async def opened_pool(
    settings: VMPoolSettings, kubeconfig: str | None, kube_context: str | None, observer: "PoolObserver | None" = None
) -> "AsyncIterator[AsyncVMPool]":
    """Give the pool, with a client of its own."""
    credentials = loaded("runtime.credentials", "kubernetes")
    client = loaded("runtime.api_client", "kubernetes").ApiClient
    pools, identity = loaded("async_vm_pool"), loaded("node_identity")
    try:
        async with client(credentials.find_credentials(kubeconfig, kube_context), agent=pools.AGENT) as opened:
            pool = pools.AsyncVMPool(opened, settings, find_node_name=identity.find_node_name, observer=observer)
            try:
                yield pool
            finally:
                await pool.close()
    except credentials.CredentialsMissing as error:
        raise Invalid(f"--kubeconfig: {error}") from None
