"""``tenure neutron``: what OpenStack Neutron says, held against the driver's tables and the ledger; and repaired."""

import importlib
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import noun, with_options
from tenure.doors.cli.framework.exit_codes import FINDINGS
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install

if TYPE_CHECKING:
    from tenure.integrations.neutron.maintenance.drift import Drift, DriftReport

NAMED = 20
"""How many drifts of a kind are shown to people."""

MODES = ("database", "ledger")
BROUGHT_IN, WOULD_BE = "brought in", "would be brought in"

deployment_options = with_options(
    click.option(
        "--config-file",
        "files",
        multiple=True,
        metavar="FILE",
        help="Neutron's configuration; repeat for more. Else it is looked for where Neutron does.",
    ),
    click.option("--database", metavar="URL", help="Neutron's database, instead of [database] connection."),
    click.option("--mode", type=click.Choice(MODES), help="Where addresses are kept, instead of [tenure] mode."),
    click.option("--ledger", metavar="URL", help="The ledger of mode ledger, instead of [tenure] ledger."),
    click.option("--realm", metavar="NAME", help="The deployment's name in it, instead of [tenure] realm."),
)
grace_option = click.option(
    "--grace-s",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    help="How long a row may wait for a port that is made with many others; else 900.",
)
moving_options = with_options(
    click.option(
        "--take-over", is_flag=True, help="The ledger knows the realm from before Neutron's database was made anew."
    ),
    click.option(
        "--remove-held",
        is_flag=True,
        help="With --take-over: also remove networks that hold addresses and stand for no subnet of this database.",
    ),
    click.option(
        "--leave-conflicts",
        is_flag=True,
        help="Bring in and agree on all but the addresses of ports that somebody else holds; those are told.",
    ),
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only tell what would be done.")


@noun("neutron")
def neutron() -> None:
    """Bring an OpenStack Neutron in, compare it with what Tenure keeps for it, repair drift.

    For example:
      tenure neutron verify --config-file neutron.conf
    """


@neutron.command("verify")
@deployment_options
@grace_option
@click.pass_context
@pass_session
def verify(session: Session, context: click.Context, grace_s: int | None, **said: Any) -> None:
    """Compare the addresses of Neutron's ports with the driver's tables and the ledger; servers may go on meanwhile.

    Nothing is changed. Exit code 1 if something does not agree.

    For example:
      tenure neutron verify --config-file neutron.conf
    """
    with Bar(session, "comparing") as bar:
        report = _tended("verify", said, bar, **_grace(grace_s))
    _tell(session, context, report, ok=report.clean, verb="found")


@neutron.command("reconcile")
@deployment_options
@grace_option
@dry_run_option
@click.pass_context
@pass_session
def reconcile(session: Session, context: click.Context, dry_run: bool, grace_s: int | None, **said: Any) -> None:
    """Make the driver's tables and the ledger agree with the addresses of Neutron's ports; servers may go on meanwhile.

    What a transaction is still open behind is left to it, and so is an address whose port may yet come. Exit code 1 if
    something is left that cannot be repaired here: an address that a port carries and somebody else holds, a subnet
    that is mapped to another space.

    For example:
      tenure neutron reconcile --config-file neutron.conf --dry-run
    """
    with Bar(session, "reconciling") as bar:
        report = _tended("reconcile", said, bar, dry=dry_run, **_grace(grace_s))
    _tell(session, context, report, ok=report.clean, verb="would be repaired" if dry_run else "repaired")


@neutron.command("import")
@deployment_options
@dry_run_option
@moving_options
@click.pass_context
@pass_session
def import_neutron(
    session: Session,
    context: click.Context,
    dry_run: bool,
    take_over: bool,
    remove_held: bool,
    leave_conflicts: bool,
    **said: Any,
) -> None:
    """Bring in a Neutron that ran with another driver, or in the other mode; stop its servers before.

    The mode is what all servers must agree on from then on; restart every one. While an address is in the way that
    cannot be had, nothing is agreed on and the exit code is 1. An import that was broken off is simply run again.

    For example:
      tenure neutron import --config-file neutron.conf --dry-run
      tenure neutron import --config-file neutron.conf
    """
    with Bar(session, "importing") as bar:
        may = {"take_over": take_over, "remove_held": remove_held, "leave_conflicts": leave_conflicts}
        report = _tended("move_in", said, bar, dry=dry_run, **may)
    verb = WOULD_BE if dry_run or (report.left and not report.agreed) else BROUGHT_IN
    foreseen = dry_run and (not report.left or (leave_conflicts and report.leavable))
    _tell(session, context, report, ok=report.agreed or foreseen, verb=verb, agreeing=True)


def _tended(verb: str, said: dict[str, Any], bar: Bar, **more: int) -> "DriftReport":
    """Read the configuration, and go once round the deployment."""
    for name in ("oslo_db", "oslo_config"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    settings, rounds = _loaded("neutron_settings"), _loaded("run")
    files = said.pop("files")
    work: Callable[..., DriftReport] = getattr(rounds, verb)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(settings.read_settings(files, said), bar, **more)


def _grace(grace_s: int | None) -> dict[str, int]:
    return {} if grace_s is None else {"grace_s": grace_s}


def _loaded(name: str) -> Any:
    """Load a file of Neutron's door, quietly: what Neutron imports is deprecated in places."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(f"tenure.integrations.neutron.maintenance.{name}")
    except ModuleNotFoundError as error:
        # A module of ours that is not found is an error of ours, not a package to be installed.
        if (error.name or "").startswith("tenure"):
            raise
        raise Invalid(f"neutron: {error.name} is missing: {how_to_install('neutron')}") from None


def _tell(
    session: Session, context: click.Context, report: "DriftReport", *, ok: bool, verb: str, agreeing: bool = False
) -> None:
    answer(session, report.as_document(agreeing=agreeing), "\n".join(_lines(report, verb)))
    if not ok:
        context.exit(FINDINGS)


def _lines(report: "DriftReport", verb: str) -> Iterator[str]:
    kinds: dict[tuple[str, str], list[Drift]] = {}
    for drift, outcome in report.found:
        kinds.setdefault((str(outcome), drift.kind), []).append(drift)
    for (became, _), drifts in kinds.items():
        told = {"left": "left: ", "in-flight": "in flight: "}.get(became, "")
        yield from (f"{told}{drift}" for drift in drifts[:NAMED])
        if len(drifts) > NAMED:
            yield f"{told}{drifts[0].kind}: … and {len(drifts) - NAMED} more"
    compared = counted({"addresses": report.addresses, "subnets": report.subnets}) or "no addresses"
    done = [drift for drift, outcome in report.found if outcome in ("found", "repaired")]
    flying = report.in_flight
    found = {f"{len(done)} {verb}": done, f"{len(report.left)} left": report.left, f"{len(flying)} in flight": flying}
    yield f"compared {compared}: {', '.join(text for text, drifts in found.items() if drifts) or 'all agree'}"
    yield from report.notes
    yield from _moving_lines(report, verb)
    if report.agreed:
        yield f"agreed: every server of this deployment keeps its addresses in mode {report.mode!r} from now on"
        yield "restart every server of it"


def _moving_lines(report: "DriftReport", verb: str) -> Iterator[str]:
    """Tell what goes with an import, and what may be said to have it go on."""
    networks, addresses = report.removal
    if networks:
        lost = counted({"networks": networks}), counted({"held addresses": addresses})
        yield f"{lost[0]} with {lost[1]}{': REMOVED' if verb == BROUGHT_IN else ' would be REMOVED'}"
    if verb == WOULD_BE and report.left and report.leavable:
        yield "--leave-conflicts brings in and agrees on all but what is left"
