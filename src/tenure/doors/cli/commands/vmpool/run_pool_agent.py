"""``tenure vmpool agent``: looks after a pool from one node, until it is stopped."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tenure.doors.cli.commands.operator.run_operator import log_to_stderr
from tenure.doors.cli.commands.vmpool.cleanup_options import cleanup_options, read_cleanup
from tenure.doors.cli.commands.vmpool.open_vm_pool import (
    agent_options,
    loaded,
    opened_pools,
    read_all_settings,
    setting_option,
)
from tenure.doors.cli.commands.vmpool.pool_care import OUTSIDE_POOL
from tenure.doors.cli.commands.vmpool.program_words import program_words
from tenure.doors.cli.commands.vmpool.seconds_option import seconds_above_zero
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer, echo, json_line
from tenure.doors.cli.session import Session, pass_session
from tenure.integrations.vmpool.vm_pool_settings import SOURCES, VMPoolSettings
from tenure.kernel.errors import Invalid


@command("agent")
@cleanup_options
@click.option(
    "--every", metavar="SECONDS", type=seconds_above_zero, default=30.0, show_default=True, help="How often it looks."
)
@click.option(
    "--retry-cleanup",
    metavar="SECONDS",
    type=seconds_above_zero,
    default=60.0,
    show_default=True,
    help="After how long a failed cleanup is tried again; after each further failure twice as long, an hour at most.",
)
@click.option(
    "--adaptor-start-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A file that the adaptor writes at its start, if VMs are dead then [default: VMs are dead after a boot only].",
)
@click.option(
    "--take-over", is_flag=True, help="This machine has taken the place of another one of its name: it is gone."
)
@click.option(
    "--resize", is_flag=True, help="Let the pool grow and shrink as `tenure vmpool resize` says; one agent does."
)
@click.option(
    "--resize-every",
    metavar="SECONDS",
    type=seconds_above_zero,
    default=10.0,
    show_default=True,
    help="How often the size is looked at.",
)
@click.option(
    "--make-command",
    metavar="WORDS",
    help="Make a VM by a program, without a shell; {pool}, {request} and {ip} are replaced. It prints the address.",
)
@click.option("--remove-command", metavar="WORDS", help="Remove a VM that has left the pool by a program; as above.")
@click.option(
    "--make-timeout",
    metavar="SECONDS",
    type=seconds_above_zero,
    default=600.0,
    show_default=True,
    help="For each VM that is made or removed.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where /livez, /readyz and /metrics are served.")
@click.option("--port", type=click.IntRange(0, 65535), default=8082, show_default=True, help="0 takes a free one.")
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How log lines look."
)
@click.option("--check", is_flag=True, help="Only check the settings, and print them.")
@agent_options
@setting_option(OUTSIDE_POOL)
@pass_session
def agent(
    session: Session,
    mode: str | None,
    every: float,
    retry_cleanup: float,
    adaptor_start_file: Path | None,
    take_over: bool,
    host: str,
    port: int,
    log: str,
    check: bool,
    **said: Any,
) -> None:
    """Look after a pool from one node, until SIGTERM or Ctrl-C: recover, repair, retry cleanups, serve /metrics.

    A node is recovered once after each boot, never because the agent itself was started again.

    For example:
      tenure vmpool agent --pool-ips 192.0.2.10-192.0.2.29 --node-name worker-1 --check
    """
    agents = loaded("pool_agent")
    settings = agents.AgentSettings(
        read_cleanup(said), mode, every, retry_cleanup, adaptor_start_file, host, port, take_over, read_decider(said)
    )
    # Behind the others: each reader takes its options out, and what is left says how to reach the cluster.
    pool_settings = read_all_settings(said)
    if check:
        _print_settings(session, pool_settings, settings)
        return
    log_to_stderr(log, stamped=True)
    asyncio.run(_run(session, pool_settings, settings, **said))


def read_decider(said: dict[str, Any]) -> Any:
    """Take the options of a decider out of those that were said; return nothing if this agent does not decide."""
    names = ("resize", "resize_every", "make_command", "remove_command", "make_timeout")
    decides, every_s, make, remove, timeout_s = (said.pop(name) for name in names)
    if not decides:
        if make is not None or remove is not None:
            option = "--remove-command" if make is None else "--make-command"
            raise Invalid(f"{option}: it is for an agent that decides: --resize")
        return None
    words = [
        () if text is None else program_words(text, option)
        for text, option in ((make, "--make-command"), (remove, "--remove-command"))
    ]
    programs = loaded("sizing.vm_programs").VMPrograms(*words, timeout_s=timeout_s)
    return loaded("sizing.size_decider").DeciderSettings(programs, every_s)


async def _run(
    session: Session, settings: Sequence[VMPoolSettings], agent_settings: Any, **cluster: str | None
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    kind = loaded("pool_metrics").PoolMeter
    meters = [kind(each.config_map_name, each.line) for each in settings]
    decides = agent_settings.decider is not None
    async with opened_pools(settings, observers=meters, **cluster, is_clustered=decides) as pools:
        await loaded("pool_agent").run_agent(
            pools, agent_settings, stopped, lambda port: _announce(session, pools, agent_settings.host, port)
        )


def _announce(session: Session, pools: Sequence[Any], host: str, port: int) -> None:
    place = ", ".join(f"{pool.settings.namespace}/{pool.settings.config_map_name}" for pool in pools)
    node, url = pools[0].node_name, f"http://{host}:{port}"
    if session.json:
        echo(session, json_line({"url": url, "pool": place, "node_name": node}))
    else:
        named = "pool" if len(pools) == 1 else "the pools"
        echo(session, f"The agent of {node} looks after {named} {place}, and answers probes at {url}")


def _print_settings(session: Session, settings: Sequence[VMPoolSettings], agent_settings: Any) -> None:
    """Print the settings as they are put together, pool by pool."""
    documents = [_settings_document(each, agent_settings) for each in settings]
    texts = (
        "\n".join(f"{name} = {','.join(value) if isinstance(value, list) else value}" for name, value in each.items())
        for each in documents
    )
    answer(session, documents[0] if len(documents) == 1 else documents, "\n\n".join(texts))


def _settings_document(settings: VMPoolSettings, agent_settings: Any) -> dict[str, Any]:
    document = {source.argument: getattr(settings, source.argument, None) for source in SOURCES}
    document = {name: value for name, value in document.items() if name != "max_range_ips"}
    document["pool_ips"] = list(settings.pool_ips)
    document["every_s"] = agent_settings.every_s
    document["mode"] = agent_settings.mode or ("release" if agent_settings.cleanup else "keep")
    return document
