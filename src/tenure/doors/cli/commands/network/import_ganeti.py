"""``tenure network import-ganeti``: a Ganeti configuration moved into the ledger."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import FINDINGS, translated
from tenure.doors.cli.output.print_answer import answer, counted
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Conflict, Invalid, NotFound
from tenure.service.ledger.async_ledger import AsyncLedger

if TYPE_CHECKING:
    from tenure.integrations.ganeti.files.file_model import ClusterConfiguration
    from tenure.integrations.ganeti.files.load.import_cluster import ImportPlan

    Remarks = Sequence[tuple[str, str]]

T = TypeVar("T")

SUFFIX = ".runtime"
NAMED = 10
"""How many names of a kind a dry run shows to people."""
WORDS = {"nodegroups": "groups", "orphans": "unexplained addresses"}

file_path = click.Path(path_type=Path, dir_okay=False)


@command("import-ganeti")
@click.argument("file", type=file_path)
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    type=file_path,
    metavar="FILE",
    help=f"The file of a running instance, NAME{SUFFIX}, to be compared; repeat for more.",
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be made, and what is in the way.")
@click.option(
    "--apply", "follows", is_flag=True, help="Follow what a later file has otherwise than the ledger, all in one step."
)
@click.pass_context
@pass_session
def import_ganeti(
    session: Session, context: click.Context, file: Path, runtimes: tuple[Path, ...], dry_run: bool, follows: bool
) -> None:
    """Move in networks, groups, nodes and instances from a Ganeti config.data, of today's form or the revised one.

    Nothing of the file is lost: `tenure network export-ganeti` writes it back. An import that was broken off is simply
    run again. A later file of the same cluster is compared with the ledger: --dry-run shows each difference, and the
    command that follows it. --apply follows all of them in one step, wholly or not at all, and no address that stays
    is given up; with --dry-run it says whether that can be done. Then the later file takes the place of the earlier.

    For example:
      tenure network import-ganeti config.data --dry-run
      tenure network import-ganeti config.data --apply
      tenure network import-ganeti config.data --runtime web-7.runtime
    """
    from tenure.integrations.ganeti.files.read.cluster_file import read_file

    cluster = read_named(file, read_file)
    running = _compared(cluster, runtimes)
    with Bar(session, "importing") as bar:
        plan = session.run(
            lambda ledger: _moved_in(ledger, cluster, bar, dry_run=dry_run, follows=follows),
            may_make=not dry_run,
            try_on_new=dry_run,
        )
    written = not dry_run and not plan.done
    answer(session, _document(plan, running, written), "\n".join(_lines(plan, running, written)))
    if plan.in_the_way:
        context.exit(FINDINGS)


def read_named(path: Path, read: Callable[[bytes], T]) -> T:
    """Read a file; what is wrong in it is told with the file's name."""
    data = path.read_bytes()
    try:
        return read(data)
    except (Invalid, Conflict) as error:
        # The same error with more words, so that its code, its field and its exit code stay.
        error.message = f"{path}: {error.message}"
        raise


def _compared(cluster: "ClusterConfiguration", runtimes: Sequence[Path]) -> "Remarks":
    """Tell how running instances differ from what the configuration says of them."""
    from tenure.integrations.ganeti.files.runtime_files import differences, read_runtime

    known = {instance.name: instance for instance in cluster.instances}
    found: list[tuple[str, str]] = []
    for path in runtimes:
        document, name = read_named(path, read_runtime), path.name.removesuffix(SUFFIX)
        if name not in known:
            raise NotFound("instance", name, hint=f"{path} is named after none in the configuration", field="runtime")
        found += [(f"{path}: {each.place}", each.reason) for each in differences(document, known[name])]
    return found


async def _moved_in(
    ledger: AsyncLedger, cluster: "ClusterConfiguration", bar: Bar, *, dry_run: bool, follows: bool
) -> "ImportPlan":
    from tenure.integrations.ganeti.files.load.follow_file import follow_import, try_to_follow
    from tenure.integrations.ganeti.files.load.import_cluster import plan_import, run_import

    if follows:
        return await (try_to_follow(ledger, cluster) if dry_run else follow_import(ledger, cluster, progress=bar))
    plan = await plan_import(cluster, ledger)
    if not dry_run:
        await run_import(ledger, plan, progress=bar)
    return plan


def _document(plan: "ImportPlan", running: "Remarks", written: bool) -> dict[str, Any]:
    return {
        "form": plan.settled.cluster.form,
        "ok": not plan.in_the_way,
        "written": written,
        "applied": written and plan.followed is not None,
        "counts": plan.counts,
        "new": {section: list(names) for section, names in plan.new.items()},
        "present": {section: list(names) for section, names in plan.present.items()},
        "findings": [{"place": place, "reason": reason} for place, reason in _remarks(plan, running)],
        "conflicts": _in_the_way(plan),
        "differences": [dataclasses.asdict(each) for each in plan.differences],
        "moved": None if plan.followed is None else dataclasses.asdict(plan.followed),
    }


def _in_the_way(plan: "ImportPlan") -> list[str]:
    """List what is in the way in the words in which a real run refuses it."""
    return [translated(conflict, "network import-ganeti") for conflict in plan.in_the_way]


def _remarks(plan: "ImportPlan", running: "Remarks") -> "Remarks":
    return [*((finding.place, finding.reason) for finding in plan.findings), *running]


def _lines(plan: "ImportPlan", running: "Remarks", written: bool) -> Iterator[str]:
    for conflict in _in_the_way(plan):
        yield f"in the way: {conflict}"
    for difference in plan.differences:
        yield f"followed: {difference.text}" if written else f"differs: {difference}"
    for place, reason in _remarks(plan, running):
        yield f"oddity: {place}: {reason}"
    for section, names in plan.present.items():
        if names:
            yield f"there already: {counted({WORDS.get(section, section): len(names)})}"
    for section, names in plan.new.items():
        if names and not written:
            yield f"  {WORDS.get(section, section)}: {_some(names)}"
    yield from ["nothing to do: this file was brought in before"] if plan.done else _end(plan, written)


def _end(plan: "ImportPlan", written: bool) -> Iterator[str]:
    """Say what became of all of it, or would become."""
    if plan.followed is not None:
        moved = {"handed over": plan.followed.handed_over, "released": plan.followed.released}
        said = ", ".join(f"{counted({'addresses': count})} {what}" for what, count in moved.items() if count)
        yield f"{'all followed' if written else 'all can be followed'} in one step{f': {said}' if said else ''}"
    if plan.again and not plan.in_the_way:
        yield f"the file {'takes' if written else 'would take'} the place of the one that was brought in before"
    counts = {WORDS.get(kind, kind): count for kind, count in plan.counts.items()}
    verb = "written" if written else "nothing can be written; new would be" if plan.in_the_way else "would be written"
    yield f"{verb}: {counted(counts) or 'nothing'}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f", … and {more} more" if more > 0 else "")
