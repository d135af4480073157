"""``tenure completion``: scripts that teach a shell the commands."""

import click
from click.shell_completion import get_completion_class

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session

VARIABLE = "_TENURE_COMPLETE"


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
@pass_session
def completion(session: Session, context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and names of networks.

    For example:
      tenure completion bash
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "tenure", VARIABLE).source()
    answer(session, {"shell": shell, "script": script}, script)
