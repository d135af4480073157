"""What commands on VM pools share: the settings, each as an option, and the pool, opened for one command."""

import contextlib
import importlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenure.doors.cli.commands.operator.run_operator import MODULES, log_to_stderr
from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.session import run_alone
from tenure.integrations.vmpool.lists.named_pools import POOLS, POOLS_VARIABLE, named_settings
from tenure.integrations.vmpool.vm_pool_settings import SOURCES, SettingSource, VMPoolSettings
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install

if TYPE_CHECKING:
    from tenure.integrations.vmpool.async_vm_pool import AsyncVMPool
    from tenure.integrations.vmpool.lists.async_vm_pool_list import AsyncVMPoolList
    from tenure.integrations.vmpool.pool_changes import PoolObserver

T = TypeVar("T")
Option = Callable[[Callable[..., Any]], Callable[..., Any]]

METAVARS = {
    "pool_ips": "A,B-C",
    "max_range_ips": "N",
    "operation_timeout_s": "SECONDS",
    "max_retries": "N",
    "retry_interval_s": "SECONDS",
    "pool_shards": "N",
    "pool_ledger": "URL",
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
pools_option = click.option(
    "--pool",
    "pools",
    multiple=True,
    metavar="NAME[=A,B-C]",
    help="A pool by its name, the ConfigMap's; again for more, in the order in which they are tried; else VM_POOLS.",
)
log_option = click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    help="Write log lines to standard error, and how they look [default: none].",
)
agent_options = with_options(pools_option, settings_options("outside_pool"), cluster_options)
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
    """Read the settings of the one pool that is meant; how to reach the cluster is left in ``said``."""
    found = read_all_settings(said)
    if len(found) > 1:
        names = ", ".join(each.config_map_name for each in found)
        raise Invalid(f"--pool: one pool is needed here, and there are {names}: name one of them")
    return found[0]


def read_all_settings(said: dict[str, Any]) -> tuple[VMPoolSettings, ...]:
    """Read the settings of the options, the environment and the pod; how to reach the cluster is left in ``said``."""
    found = _settings_of_words(said)
    if any(each.pool_ledger.partition(":")[0] == "memory" for each in found):
        raise Invalid(
            "--pool-ledger: a ledger in memory ends with this process, and whoever asks next gets the same VMs; name "
            "one that all nodes reach (VM_POOL_LEDGER)"
        )
    return found


def _settings_of_words(said: dict[str, Any]) -> tuple[VMPoolSettings, ...]:
    names = said.pop("pools", ())
    words = {source.argument: said.pop(source.argument, None) for source in SOURCES}
    single = [flag for flag in ("pool_ips", "config_map_name") if words[flag] is not None]
    if names and single:
        raise Invalid("--pool: it stands in place of --pool-ips and --pool-configmap-name")
    if single or not (names or os.environ.get(POOLS_VARIABLE, "").strip()):
        return (VMPoolSettings.from_environment(**words),)
    if not names and os.environ.get("VM_POOL_IPS", "").strip():
        raise Invalid(
            f"{POOLS_VARIABLE}: it stands in place of VM_POOL_IPS; unset one of them, or name pools by --pool"
        )
    with _in_words_of_options():
        return named_settings(names, **words)


@contextlib.contextmanager
def _in_words_of_options() -> Iterator[None]:
    """Name the option where the library names its argument."""
    try:
        yield
    except Invalid as error:
        if error.field != POOLS:
            raise
        raise Invalid(f"--pool: {str(error).removeprefix(POOLS + ': ')}") from None


def run_on_pool(
    said: dict[str, Any], work: "Callable[[AsyncVMPool], Awaitable[T]]", *, is_clustered: bool = False
) -> T:
    """Open the one pool that the options name, and do one piece of work on it; some need a cluster in every mode."""
    _log(said.pop("log"))
    settings = read_settings(said)
    return run_alone(_on_pools((settings,), lambda pools: work(pools[0]), **said, is_clustered=is_clustered))


def run_on_pools(said: dict[str, Any], work: "Callable[[AsyncVMPoolList], Awaitable[T]]") -> T:
    """Open the pools that the options name, and do one piece of work on the list of them."""
    _log(said.pop("log"))
    settings = read_all_settings(said)

    async def on_list(pools: "Sequence[AsyncVMPool]") -> T:
        return await work(loaded("lists.async_vm_pool_list").AsyncVMPoolList(pools))

    with _in_words_of_options():
        return run_alone(_on_pools(settings, on_list, **said))


def _log(wanted: str | None) -> None:
    if wanted is None:
        # Without any handler Python itself would print warnings, among what scripts read.
        logging.getLogger("tenure").addHandler(logging.NullHandler())
    else:
        log_to_stderr(wanted, stamped=True)


async def _on_pools(
    settings: Sequence[VMPoolSettings],
    work: "Callable[[Sequence[AsyncVMPool]], Awaitable[T]]",
    kubeconfig: str | None,
    kube_context: str | None,
    is_clustered: bool = False,
) -> T:
    async with opened_pools(settings, kubeconfig, kube_context, is_clustered=is_clustered) as pools:
        return await work(pools)


@contextlib.asynccontextmanager
async def opened_pools(
    settings: Sequence[VMPoolSettings],
    kubeconfig: str | None,
    kube_context: str | None,
    observers: "Sequence[PoolObserver | None]" = (),
    *,
    is_clustered: bool = False,
) -> "AsyncIterator[list[AsyncVMPool]]":
    """Give pools, with a client of their own. Pools in a ledger need no cluster, but use one that can be found."""
    pools, clusters = loaded("async_vm_pool"), loaded("cluster_access")
    try:
        async with contextlib.AsyncExitStack() as stack:
            client = None
            found = clusters.find_cluster(settings, kubeconfig, kube_context, is_needed=is_clustered)
            if found is not None:
                kind = loaded("runtime.api_client", "kubernetes").ApiClient
                client = await stack.enter_async_context(kind(found, agent=pools.AGENT))
            opened = []
            for each, observer in zip_longest(settings, observers):
                pool = pools.AsyncVMPool(client, each, observer=observer)
                stack.push_async_callback(pool.close)
                opened.append(pool)
            yield opened
    except clusters.CredentialsMissing as error:
        raise Invalid(f"--kubeconfig: {error}") from None
