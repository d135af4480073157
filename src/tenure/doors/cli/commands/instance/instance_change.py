"""Commands that change an instance, with the hooks that run before and after."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.instance.instance_show import instance_document, instance_facts, nic_lines
from tenure.doors.cli.framework.click_base import command, with_options
from tenure.doors.cli.framework.complete_names import complete_instance, complete_node
from tenure.doors.cli.framework.exit_codes import FINDINGS, warn
from tenure.doors.cli.output.print_answer import answer, escaped
from tenure.doors.cli.session import Session, pass_session
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.integrations.ganeti.instance.hooks import HookResult
    from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions
    from tenure.integrations.ganeti.instances import Done, Instances
    from tenure.integrations.ganeti.query.machine_fields import InstanceFacts

    Work = Callable[[Instances], Awaitable[Done]]

HOOKS_VARIABLE = "TENURE_HOOKS"
STANDS = "interrupted while the hooks after the operation ran: the change stands, but not all of them were told"

nets_option = click.option(
    "--net",
    "nets",
    multiple=True,
    metavar="OPT",
    help="A NIC: 0:ip0=IP,ip1=pool,ip2=POOL,network=NETWORK with mac=MAC (or auto: made up), name=, mode=, link= "
    "(or its old word bridge=), vlan=; in a change also NIC:modify,…, NIC:add,…, NIC:remove; repeat for more.",
)
conflict_options = with_options(
    click.option("--force", is_flag=True, help="Let externally reserved addresses be had."),
    click.option(
        "--no-conflicts-check",
        "check",
        flag_value=False,
        default=True,
        help="As --force; and a NIC without network may have an address of a network.",
    ),
)


def read_hooks(context: click.Context, parameter: click.Parameter, text: str | None) -> Path | None:
    """Read the name of a hook directory; an empty one, of a variable that is not set, must not switch hooks off."""
    if text == "":
        raise click.BadParameter("the name of a directory is needed, not nothing", context, parameter)
    return None if text is None else Path(text)


hook_options = with_options(
    click.option(
        "--hooks",
        type=click.Path(),
        callback=read_hooks,
        metavar="DIR",
        help=f"Run the hooks of this directory; else of {HOOKS_VARIABLE}, else none.",
        envvar=HOOKS_VARIABLE,
    ),
    click.option("--hook-timeout", type=float, metavar="SECONDS", help="How long each hook may take; 60 unless said."),
)


@command("add")
@click.argument("name")
@nets_option
@click.option("--no-nics", is_flag=True, help="Make it without any NIC.")
@click.option("-n", "--node", shell_complete=complete_node, help="The node that carries it; else the first that can.")
@conflict_options
@hook_options
@click.pass_context
@pass_session
def add(session: Session, context: click.Context, name: str, no_nics: bool, **said: Any) -> None:
    """Add an instance with its NICs and their addresses, all or nothing.

    An address is written out, or picked: pool takes the first free one of the network, the name of a pool the first
    free one there. Without --net the instance has one NIC on no network.

    For example:
      tenure instance add web-2 --net 0:ip0=198.51.100.40,ip1=pool,network=lan
      tenure instance add web-3 --node node1 --net 0:ip=web,network=lan --net 1:network=lan
    """
    from tenure.integrations.ganeti.instance.plan_instance import DEFAULT_NIC

    nets = said["nets"]
    if no_nics and nets:
        raise click.UsageError("--no-nics and --net exclude each other")
    wanted = nets or ([] if no_nics else [DEFAULT_NIC])
    _run(session, context, said, "added", lambda instances: instances.add(name, wanted, _options(said)))


@command("modify")
@click.argument("name", shell_complete=complete_instance)
@nets_option
@conflict_options
@hook_options
@click.pass_context
@pass_session
def modify(session: Session, context: click.Context, name: str, **said: Any) -> None:
    """Change the NICs of an instance and their addresses, all or nothing.

    NIC is its index from 0, its name or its uuid; -1 is the last, and where one is added the place behind it. Addresses
    are counted as they were before the command: two of them can change places in one.

    For example:
      tenure instance modify --net 0:modify,ip1=pool web
      tenure instance modify --net -1:add,ip0=pool,network=lan web
    """
    if not said["nets"]:
        raise click.UsageError("nothing to change: say so with --net")
    _run(session, context, said, "changed", lambda instances: instances.modify(name, said["nets"], _options(said)))


@command("remove")
@click.argument("name", shell_complete=complete_instance)
@hook_options
@click.pass_context
@pass_session
def remove(session: Session, context: click.Context, name: str, **said: Any) -> None:
    """Remove an instance and give back all its addresses.

    For example:
      tenure instance remove web
    """
    _run(session, context, said, "removed", lambda instances: instances.remove(name))


def _options(said: dict[str, Any]) -> "InstanceOptions":
    from tenure.integrations.ganeti.instance.plan_instance import InstanceOptions

    return InstanceOptions(node=said.get("node"), force=said["force"], check=said["check"])


def _run(session: Session, context: click.Context, said: dict[str, Any], verb: str, work: "Work") -> None:
    """Run an operation with its hooks; tell what was done, and how the hooks went."""
    from tenure.integrations.ganeti.instance.hooks import failed
    from tenure.integrations.ganeti.instances import HookFailed

    try:
        done, facts = session.run(lambda ledger: _done(session, ledger, said, work))
    except HookFailed as error:
        warn(session, hook_lines(error.results))
        raise
    warn(session, hook_lines(done.hooks))
    _tell(session, done, facts, verb)
    if failed(done.hooks):
        warn(session, [f"instance {done.instance.name} is {verb} all the same: its hooks ran after it was done"])
        context.exit(FINDINGS)


async def _done(
    session: Session, ledger: AsyncLedger, said: dict[str, Any], work: "Work"
) -> "tuple[Done, InstanceFacts]":
    from tenure.integrations.ganeti.instance.hooks import CALLED_OFF, LIMIT_S
    from tenure.integrations.ganeti.instances import Hooking, Instances

    limit_s = LIMIT_S if said["hook_timeout"] is None else said["hook_timeout"]
    hooking = None if said["hooks"] is None else Hooking(said["hooks"], limit_s)
    try:
        done = await work(Instances(ledger, hooking))
    except asyncio.CancelledError as stop:
        # The note names the phase in which the hooks were called off; in the phase before, the change does not stand.
        if CALLED_OFF + "post" in getattr(stop, "__notes__", ()):
            warn(session, [STANDS], always=True)
        raise
    [facts] = await instance_facts(ledger, [done.instance])
    return done, facts


def _tell(session: Session, done: "Done", facts: "InstanceFacts", verb: str) -> None:
    hooks = [dataclasses.asdict(result) for result in done.hooks]
    document = {**instance_document(facts), "changed": done.changed, "hooks": hooks}
    where = f"instance {done.instance.name} on {done.instance.node}"
    head = f"{verb} {where}" if done.changed else f"nothing to change: {where}"
    answer(session, document, "\n".join([head, *nic_lines(facts)]))


def hook_lines(results: "Iterable[HookResult]") -> Sequence[str]:
    """Tell of the hooks that did not run well, with the end of what they printed."""
    return [_hook_line(result) for result in results if result.outcome != "success"]


def _hook_line(result: "HookResult") -> str:
    code = "" if result.code is None else f" (exit code {result.code})"
    printed = "".join(f"\n  {escaped(line)}" for line in result.output.splitlines())
    if result.outcome == "skipped":
        return f"hook {result.name}: skipped, {result.output}"
    return f"hook {result.name}: {result.outcome}{code}{printed}"
