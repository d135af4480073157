"""The command line: ``tenure COMMAND``. Each command lies in a file of its noun and is read when it is called."""

import contextlib
import errno
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from tenure.doors.cli import failing
from tenure.doors.cli.advising import next_step
from tenure.doors.cli.commands import Shelf
from tenure.doors.cli.printing import Untold
from tenure.doors.cli.session import Session
from tenure.kernel.errors import TenureError

SECTIONS = {
    "The address plan": {
        "network": "network:network",
        "subnet": "subnet:subnet",
        "pool": "pool:pool",
        "reserve": "reserve:reserve",
        "preallocation": "reserve:preallocation",
    },
    "Machines": {
        "instance": "instance:instance",
        "node": "node:node",
        "group": "group:group",
    },
    "Holdings": {
        "allocate": "allocating:allocate",
        "release": "holdings:release",
        "release-owner": "holdings:release_owner",
        "hold": "allocating:hold",
        "confirm": "holdings:confirm",
        "cancel": "holdings:cancel",
        "transfer": "holdings:transfer",
        "holding": "holdings:holding",
        "waiting": "waiting:waiting",
    },
    "Reading": {
        "show": "show:show",
        "search": "reading:search",
        "history": "reading:history",
        "why": "reading:why",
        "watch": "watch:watch",
    },
    "Moving in, out and on": {
        "import": "moving_in:import_files",
        "audit": "auditing:audit",
        "export": "moving_out:export",
        "render": "rendering:render",
        "backup": "copying:backup",
        "restore": "copying:restore",
        "copy": "copying:copy",
    },
    "Over the network": {
        "serve": "serve:serve",
        "token": "token:token",
    },
    "Orchestrators": {
        "deployment": "deployment:deployment",
        "neutron": "neutron:neutron",
    },
    "Care": {
        "verify": "care:verify",
        "sweep": "care:sweep",
        "archive": "care:archive",
        "bench": "bench:bench",
        "completion": "completion:completion",
    },
}


OUTPUT_PROBLEMS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Root(Shelf):
    """The whole command line; the one place where errors become words and exit codes."""

    def main(  # type: ignore[override]  # it always ends the process, whatever the mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run one command and end the process with its exit code."""
        extra.pop("standalone_mode", None)
        words = list(sys.argv[1:] if args is None else args)
        session = Session()
        _take_any_text()
        _quiet_libraries()
        try:
            code = super().main(words, prog_name or "tenure", standalone_mode=False, obj=session, **extra)
        except click.ClickException as error:
            session.json = session.json or "--json" in words  # what is wrong may stand before it
            code = _usage_error(session, error)
        except click.Abort:
            code = failing.INTERRUPTED
        except OSError as error:  # what stands before the command writes nothing but help
            code = _untold(session, error.strerror or str(error))
        except Exception:
            traceback.print_exc()
            code = failing.INTERNAL
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and tell what the ledger or the system had against it."""
        session = ctx.ensure_object(Session)
        try:
            return super().invoke(ctx)
        except TenureError as error:
            failing.tell(session, failing.error_data(error, session.command), next_step(session, error))
            ctx.exit(failing.exit_code(error))
        except BrokenPipeError:
            _forget_output()
            ctx.exit(failing.PIPE_CLOSED)
        except Untold as error:
            ctx.exit(_untold(session, str(error)))
        except OSError as error:
            if error.filename is None and error.errno in OUTPUT_PROBLEMS:  # a help text; files have names
                ctx.exit(_untold(session, str(error.strerror)))
            failing.tell(session, {"code": "file", "message": failing.file_problem(error), "field": None}, None)
            ctx.exit(failing.USAGE)


def _take_any_text() -> None:
    """Let names that the terminal's encoding lacks be written as escapes; nothing fails because of a letter."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _quiet_libraries() -> None:
    """Keep what libraries log to themselves: whatever matters to the user comes as an error of ours."""
    for name in ("asyncio", "asyncpg"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _untold(session: Session, problem: str) -> int:
    """Tell that the answer is lost, though the command is done."""
    _forget_output()
    message = f"standard output: {problem}; the command is done, only its answer could not be written"
    failing.tell(session, {"code": "output", "message": message, "field": None}, "`tenure show` tells what is there")
    return failing.UNTOLD


def _forget_output() -> None:
    """Let what is still to be written go nowhere, or the interpreter would complain once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage_error(session: Session, error: click.ClickException) -> int:
    """Tell that the command line itself is wrong."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    field = None if parameter is None else parameter.name
    path = "tenure" if context is None else context.command_path
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return failing.USAGE
    data = {"code": "usage", "message": error.format_message(), "field": field}
    failing.tell(session, data, f"`{path} --help` shows what may be written")
    return failing.USAGE


@click.group("tenure", cls=Root, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tenure", message="%(version)s")
def main() -> None:
    """One ledger of IP addresses: who holds which address, since when, on whose word.

    For example:
      tenure network add net3
      tenure subnet add net3 203.0.113.0/24 --gateway 203.0.113.1
      tenure pool add net3 203.0.113.10-203.0.113.100 --name pool1
      tenure allocate net3 instance/web-0
      tenure show net3 --map
    """


if __name__ == "__main__":
    main()
