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

from tenure.doors.cli.framework import exit_codes
from tenure.doors.cli.framework.click_base import LazyNoun
from tenure.doors.cli.framework.hints import next_step
from tenure.doors.cli.output.print_answer import Untold
from tenure.doors.cli.session import Session
from tenure.kernel.errors import TenureError

SECTIONS = {
    "The address plan": {
        "network": "network.network_group:network",
        "subnet": "subnet:subnet",
        "pool": "pool:pool",
        "reserve": "reserve:reserve",
        "preallocation": "reserve:preallocation",
    },
    "Machines": {
        "instance": "instance.instance_group:instance",
        "node": "node:node",
        "group": "group:group",
        "cluster": "cluster.master_address:cluster",
    },
    "Holdings": {
        "allocate": "allocate:allocate",
        "release": "holding:release",
        "release-owner": "holding:release_owner",
        "hold": "allocate:hold",
        "confirm": "holding:confirm",
        "cancel": "holding:cancel",
        "transfer": "holding:transfer",
        "holding": "holding:holding",
        "waiting": "waiting:waiting",
    },
    "Reading": {
        "show": "show:show",
        "search": "why_history_search:search",
        "history": "why_history_search:history",
        "why": "why_history_search:why",
        "watch": "watch:watch",
    },
    "Moving in, out and on": {
        "import": "import_files:import_files",
        "audit": "audit_sources:audit",
        "export": "export:export",
        "render": "render.render_network:render",
        "backup": "backup_copy:backup",
        "restore": "backup_copy:restore",
        "copy": "backup_copy:copy",
    },
    "Over the network": {
        "serve": "serve:serve",
        "token": "token:token",
    },
    "Orchestrators": {
        "deployment": "deployment.deployment_group:deployment",
        "neutron": "neutron:neutron",
        "operator": "operator.run_operator:operator",
        "manifests": "operator.print_manifests:manifests",
        "ipam": "ipam.ipam_group:ipam",
        "vmpool": "vmpool.vmpool_group:vmpool",
    },
    "Care": {
        "verify": "verify_sweep:verify",
        "sweep": "verify_sweep:sweep",
        "archive": "verify_sweep:archive",
        "bench": "bench:bench",
        "completion": "completion:completion",
    },
}


# The system answers a write with these where the disk is full or broken.
OUTPUT_PROBLEMS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Root(LazyNoun):
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
            code = exit_codes.INTERRUPTED
        except OSError as error:  # what stands before the command writes nothing but help
            code = _untold(session, error.strerror or str(error))
        except Exception:
            traceback.print_exc()
            code = exit_codes.INTERNAL
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and tell what the ledger or the system had against it."""
        session = ctx.ensure_object(Session)
        try:
            return super().invoke(ctx)
        except TenureError as error:
            exit_codes.tell(session, exit_codes.error_data(error, session.command), next_step(session, error))
            ctx.exit(exit_codes.exit_code(error))
        except BrokenPipeError:
            # Handled before OSError, its base class: a reader that went away (`| head`) is no error to print.
            _forget_output()
            ctx.exit(exit_codes.PIPE_CLOSED)
        except Untold as error:
            ctx.exit(_untold(session, str(error)))
        except OSError as error:
            if error.filename is None and error.errno in OUTPUT_PROBLEMS:  # a help text; files have names
                ctx.exit(_untold(session, str(error.strerror)))
            exit_codes.tell(session, {"code": "file", "message": exit_codes.file_problem(error), "field": None}, None)
            ctx.exit(exit_codes.USAGE)


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
    exit_codes.tell(session, {"code": "output", "message": message, "field": None}, "`tenure show` tells what is there")
    return exit_codes.UNTOLD


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
        return exit_codes.USAGE
    data = {"code": "usage", "message": error.format_message(), "field": field}
    exit_codes.tell(session, data, f"`{path} --help` shows what may be written")
    return exit_codes.USAGE


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


def kubectl_plug_in() -> NoReturn:
    """Run ``kubectl tenure WORDS``, which kubectl finds by the name of this program, as ``tenure ipam WORDS``."""
    main(["ipam", *sys.argv[1:]])
    raise AssertionError("a command line ends its process")


if __name__ == "__main__":
    main()
