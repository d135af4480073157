"""Options that say how VMs of a dead node are cleaned up, and when they count as back."""

from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.vmpool.open_vm_pool import loaded
from tenure.doors.cli.commands.vmpool.program_words import program_words
from tenure.doors.cli.commands.vmpool.seconds_option import seconds_above_zero, seconds_from_zero
from tenure.doors.cli.framework.click_base import with_options
from tenure.kernel.errors import Invalid

if TYPE_CHECKING:
    from tenure.integrations.vmpool.machines.cleanup_round import CleanupPlan
    from tenure.integrations.vmpool.machines.vm_cleanup import Cleanup
    from tenure.integrations.vmpool.machines.vm_return import ReturnPlan

SSH_PORT = 22

port_number = click.IntRange(1, 65535)

cleanup_options = with_options(
    click.option(
        "--mode",
        type=click.Choice(["keep", "release"]),
        help="What is done with allocations of a dead node [default: release with a cleanup, else keep].",
    ),
    click.option(
        "--cleanup-command",
        metavar="WORDS",
        help="Clean a VM up by a program, without a shell; {ip}, {id}, {node}, {pod} and {namespace} are replaced.",
    ),
    click.option("--cleanup-url", metavar="URL", help="Clean a VM up by a POST to this URL; {ip} and so on as above."),
    click.option(
        "--cleanup-sftp",
        is_flag=True,
        help="Clean a VM up by putting the reboot file on it, as the adaptor does: SSH_USERNAME, SSH_PRIV_KEY_PATH, "
        "SSH_TIMEOUT, SSH_HOST_KEY_ALLOWLIST_DIR say how.",
    ),
    click.option("--sftp-port", type=port_number, default=SSH_PORT, show_default=True, help="Where VMs serve sftp."),
    click.option(
        "--cleanup-timeout",
        metavar="SECONDS",
        type=seconds_above_zero,
        default=30.0,
        show_default=True,
        help="For each VM.",
    ),
    click.option(
        "--cleanup-at-once",
        metavar="N",
        type=click.IntRange(min=1),
        default=16,
        show_default=True,
        help="How many VMs are cleaned up at once.",
    ),
    click.option(
        "--cleanup-wait",
        metavar="SECONDS",
        type=seconds_from_zero,
        default=5.0,
        show_default=True,
        help="How long to wait after the last cleanup; once for all VMs.",
    ),
    click.option(
        "--await-return",
        metavar="SECONDS",
        type=seconds_above_zero,
        help="Instead of that: a VM counts as clean if its port was closed and is open again within this time.",
    ),
    click.option(
        "--probe-port",
        type=port_number,
        default=SSH_PORT,
        show_default=True,
        help="Which port of a VM is looked at with --await-return.",
    ),
)
NAMES = (
    "cleanup_command", "cleanup_url", "cleanup_sftp", "sftp_port", "cleanup_timeout", "cleanup_at_once",
    "cleanup_wait", "await_return", "probe_port",
)  # fmt: skip


def read_cleanup(said: dict[str, Any]) -> "CleanupPlan | None":
    """Take the options of a cleanup out of those that were said; return nothing if no cleanup was named."""
    words = {name: said.pop(name) for name in NAMES}
    named = [name for name in ("cleanup_command", "cleanup_url", "cleanup_sftp") if words[name] not in (None, False)]
    if len(named) > 1:
        raise Invalid(
            f"--{named[1].replace('_', '-')}: a VM has one cleanup, and --{named[0].replace('_', '-')} is one"
        )
    if not named:
        return None
    plan: CleanupPlan = loaded("machines.cleanup_round").CleanupPlan(
        _cleanup(words), _return(words), words["cleanup_at_once"], words["cleanup_timeout"]
    )
    return plan


def _cleanup(words: dict[str, Any]) -> "Cleanup":
    ready = loaded("machines.vm_cleanup")
    if words["cleanup_sftp"]:
        sftp = loaded("machines.sftp_reboot")
        found: Cleanup = sftp.sftp_reboot(sftp.SftpAccess.from_environment(port=words["sftp_port"]))
    elif words["cleanup_url"] is not None:
        found = ready.http_cleanup(words["cleanup_url"])
    else:
        found = ready.command_cleanup(program_words(words["cleanup_command"], "--cleanup-command"))
    return found


def _return(words: dict[str, Any]) -> "ReturnPlan":
    plans = loaded("machines.vm_return")
    if words["await_return"] is None:
        wait: ReturnPlan = plans.FixedWait(words["cleanup_wait"])
    else:
        wait = plans.AwaitReturn(words["probe_port"], words["await_return"])
    return wait
