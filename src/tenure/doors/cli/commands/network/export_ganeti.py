"""``tenure network export-ganeti`` and ``convert-runtime``: Ganeti's files written from the ledger, and into a form."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.network.import_ganeti import file_path, read_named
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.exit_codes import warn
from tenure.doors.cli.output.atomic_files import write_whole
from tenure.doors.cli.output.print_answer import answer, echo, json_text
from tenure.doors.cli.output.progress import Bar
from tenure.doors.cli.session import Session, pass_session

if TYPE_CHECKING:
    from tenure.integrations.ganeti.files.file_model import Form

FORMS = ("revised", "today")

form_option = click.option(
    "--form",
    type=click.Choice(FORMS),
    default=FORMS[0],
    show_default=True,
    help="One block and one IP a NIC (today), or several (revised).",
)


@command("export-ganeti")
@click.argument("file", required=False, type=file_path)
@form_option
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    type=file_path,
    metavar="FILE",
    help="The file of a running instance, to be rewritten in the same form; repeat for more.",
)
@pass_session
def export_ganeti(session: Session, file: Path | None, form: "Form", runtimes: tuple[Path, ...]) -> None:
    """Write the ledger as a Ganeti config.data, to a file or to standard output.

    What an imported file said beyond the ledger's words is put back. What today's form cannot say is named, and nothing
    is written.

    For example:
      tenure network export-ganeti
      tenure network export-ganeti config.new --form revised --runtime web-7.runtime
    """
    from tenure.integrations.ganeti.files.export_cluster import export_cluster

    warnings: list[str] = []
    # All files are converted before the first is written: a file that cannot be converted must stop the whole command.
    converted = {path: _converted(path, form) for path in runtimes}
    with Bar(session, "exporting", hidden=file is None):
        made = session.run(lambda ledger: export_cluster(ledger, form, warn=warnings.append))
    if file is not None:
        write_whole(file, json_text(made) + "\n")
    for path, document in converted.items():
        write_whole(path, json_text(document) + "\n")
    if file is None:
        # The document itself goes to standard output, so there is no answer that could carry the warnings.
        warn(session, warnings, always=True)
        echo(session, json_text(made))
        return
    warn(session, warnings)
    files = [str(path) for path in (file, *runtimes)]
    answer(session, {"files": files, "form": form, "warnings": warnings}, f"wrote {', '.join(files)}")


@command("convert-runtime")
@click.argument("file", type=file_path)
@form_option
@click.option("--output", "-o", type=file_path, help="Write to this file, whole or not at all.")
@pass_session
def convert(session: Session, file: Path, form: "Form", output: Path | None) -> None:
    """Write the file of a running instance (KVM) in today's form or the revised one; no ledger is asked.

    For example:
      tenure network convert-runtime web-7.runtime
      tenure network convert-runtime web-7.runtime --form today --output web-7.old
    """
    document = _converted(file, form)
    if output is None:
        echo(session, json_text(document))
        return
    write_whole(output, json_text(document) + "\n")
    answer(session, {"files": [str(output)], "form": form, "warnings": []}, f"wrote {output}")


def _converted(path: Path, form: "Form") -> list[Any]:
    from tenure.integrations.ganeti.files.runtime_files import convert_runtime, read_runtime

    return read_named(path, lambda data: convert_runtime(read_runtime(data), form))
