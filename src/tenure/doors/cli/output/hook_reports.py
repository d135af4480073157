"""What commands that run hooks have in common: their options, and how they report what became of the hooks."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.framework.exit_codes import FINDINGS, warn
from tenure.doors.cli.output.print_answer import escaped
from tenure.doors.cli.session import Session

if TYPE_CHECKING:
    from tenure.integrations.ganeti.hooks import Hooking, HookResult

T = TypeVar("T")

HOOKS_VARIABLE = "TENURE_HOOKS"
STANDS = "interrupted while the hooks after the operation ran: the change stands, but not all of them were told"


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


def hooking_of(said: Mapping[str, Any]) -> "Hooking | None":
    """Return which hooks the options ask for."""
    from tenure.integrations.ganeti.hooks import LIMIT_S, Hooking

    limit_s = LIMIT_S if said["hook_timeout"] is None else said["hook_timeout"]
    return None if said["hooks"] is None else Hooking(said["hooks"], limit_s)


@contextmanager
def refusals_shown(session: Session) -> Iterator[None]:
    """Print what a hook printed that refuses the operation."""
    from tenure.integrations.ganeti.hooks import HookFailed

    try:
        yield
    except HookFailed as error:
        warn(session, hook_lines(error.results))
        raise


async def unless_interrupted(session: Session, work: Awaitable[T]) -> T:
    """Wait for an operation; if it is interrupted while hooks run behind it, say that the operation is done."""
    from tenure.integrations.ganeti.hooks import CALLED_OFF, POST

    try:
        return await work
    except asyncio.CancelledError as stop:
        # The note names the phase in which the hooks were called off; in the phase before, the change does not stand.
        if CALLED_OFF + POST in getattr(stop, "__notes__", ()):
            warn(session, [STANDS], always=True)
        raise


def end_with_findings(session: Session, context: click.Context, results: "Sequence[HookResult]", done: str) -> None:
    """End the command with the code of findings if a hook behind the operation failed; ``done`` says what stands."""
    from tenure.integrations.ganeti.hooks import failed

    if failed(results):
        warn(session, [f"{done} all the same: its hooks ran after it was done"])
        context.exit(FINDINGS)


def hook_documents(results: "Iterable[HookResult]") -> list[dict[str, Any]]:
    """Write what became of hooks."""
    return [dataclasses.asdict(result) for result in results]


def hook_lines(results: "Iterable[HookResult]") -> Sequence[str]:
    """Write a line for each hook that did not run well, with the end of what it printed."""
    return [_hook_line(result) for result in results if result.outcome != "success"]


def _hook_line(result: "HookResult") -> str:
    code = "" if result.code is None else f" (exit code {result.code})"
    printed = "".join(f"\n  {escaped(line)}" for line in result.output.splitlines())
    if result.outcome == "skipped":
        return f"hook {result.name}: skipped, {result.output}"
    return f"hook {result.name}: {result.outcome}{code}{printed}"
