"""``tenure vmpool size`` and ``resize``: the list of a pool's addresses, and when it grows and shrinks by itself."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.commands.vmpool.open_vm_pool import pool_options, run_on_pool
from tenure.doors.cli.commands.vmpool.seconds_option import seconds_from_zero
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.json_documents import time_text
from tenure.doors.cli.output.print_answer import answer, fields
from tenure.doors.cli.session import Session, pass_session
from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.state.ip_list import MOST_IPS, read_ip_list
from tenure.integrations.vmpool.state.size_policy import SHRINK_AFTER_S, STEP, SizePolicy, read_watermark
from tenure.kernel.errors import Invalid

if TYPE_CHECKING:
    from tenure.integrations.vmpool.state.sized_list import SizedList, VMWork

CUT = "MAX_RANGE_IPS"
"""What is remarked of a range of which not all addresses are used."""
POLICY = ("low", "high", "least", "most", "step", "prefix", "shrink_after")
OPTIONS = {"least": "min", "most": "max", "prefix": "from", "shrink_after": "shrink-after"}
"""Options that have another name than the argument in Python."""


@command("size")
@pool_options
@pass_session
def size(session: Session, **said: Any) -> None:
    """Show the list of a pool that keeps it itself: how large it is, what comes and goes, and by which watermarks.

    For example:
      tenure vmpool size
    """
    found = run_on_pool(said, lambda pool: pool.sizing(), is_clustered=True)
    _show(session, found)


@command("resize")
@click.option("--add", metavar="A,B-C", help="Add these addresses to the pool: their VMs are there.")
@click.option("--remove", metavar="A,B-C", help="Take these addresses out; a pod keeps its VM until it releases it.")
@click.option("--low", metavar="N|N%", help="Grow when fewer VMs are free than so many, or such a share of the pool.")
@click.option("--high", metavar="N|N%", help="Shrink when more VMs are free than so many, or such a share.")
@click.option("--min", "least", metavar="N", type=int, help="The pool has at least so many VMs [default: 1].")
@click.option("--max", "most", metavar="N", type=int, help=f"The pool has at most so many VMs [default: {MOST_IPS}].")
@click.option("--step", metavar="N", type=int, help=f"Add or take out at most so many at a time [default: {STEP}].")
@click.option("--from", "prefix", metavar="PREFIX", help="Where new addresses come from, such as 192.0.2.0/24.")
@click.option(
    "--shrink-after",
    metavar="SECONDS",
    type=seconds_from_zero,
    help=f"For how long too many have to be free [default: {SHRINK_AFTER_S:g}].",
)
@click.option("--keep-size", is_flag=True, help="No more growing and shrinking: drop the watermarks.")
@pool_options
@pass_session
def resize(session: Session, add: str | None, remove: str | None, keep_size: bool, **said: Any) -> None:
    """Change the addresses of a pool while it is used, or say when it grows and shrinks by itself.

    The first time, the list of the settings becomes the pool's own; from then on every process follows that. An agent
    that runs with --resize does what the watermarks say.

    For example:
      tenure vmpool resize --add 192.0.2.30-192.0.2.39
      tenure vmpool resize --remove 192.0.2.29
      tenure vmpool resize --low 5 --high 15 --max 100 --from 192.0.2.0/24
    """
    policy = read_size_policy({name: said.pop(name) for name in POLICY})
    changes: dict[str, Any] = {"policy": policy, "stops": keep_size}
    for name, text in (("add", add), ("remove", remove)):
        changes[name] = () if text is None else _addresses(text, f"--{name}")
    if not (add or remove or policy or keep_size):
        raise Invalid("--add: nothing is to be changed; `tenure vmpool size` shows what is")
    if policy and keep_size:
        raise Invalid("--keep-size: it drops the watermarks, so none can be set beside it")
    found = run_on_pool(said, lambda pool: pool.resize(**changes), is_clustered=True)
    _show(session, found)


def _addresses(text: str, option: str) -> tuple[str, ...]:
    found = read_ip_list(text, max_range_ips=MOST_IPS, field=option)
    if not found.ips:
        raise Invalid(f"{option}: it names no address")
    if "-" in text and any(CUT in remark for remark in found.remarks):
        raise Invalid(f"{option}: a range of more than {MOST_IPS} addresses, which no pool has")
    return found.ips


def read_size_policy(words: dict[str, Any]) -> SizePolicy | None:
    """Read the watermarks; nothing if none are said."""
    said = {name: value for name, value in words.items() if value is not None}
    if not said:
        return None
    if missing := [name for name in ("low", "high") if name not in said]:
        raise Invalid(f"--{missing[0]}: a pool that grows and shrinks has a low and a high watermark")
    try:
        if "shrink_after" in said:
            said["shrink_after_s"] = said.pop("shrink_after")
        low, high = (read_watermark(said.pop(name), name) for name in ("low", "high"))
        return SizePolicy(low=low, high=high, **said)
    except BadArgument as error:
        name, _, reason = str(error).partition(": ")
        option = OPTIONS.get(name, name.replace("_", "-"))
        raise Invalid(f"--{option}: {reason}") from None


def _show(session: Session, found: "SizedList | None") -> None:
    if found is None:
        text = "the list is that of the settings (VM_POOL_IPS); `tenure vmpool resize` makes it the pool's own"
        answer(session, {"is_sized": False}, text)
        return
    policy = found.policy
    shown = {
        "size": len(found.ips),
        "generation": found.generation,
        "watermarks": f"{policy.low.text} to {policy.high.text} free" if policy else "none: it keeps its size",
        "limits": f"{policy.least} to {policy.most} VMs, {policy.step} at a time" if policy else None,
        "from": policy.prefix if policy and policy.prefix else None,
        "being made": list(_lines(found.making)),
        "retiring": list(_lines(found.retiring)),
        "problem": found.problem or None,
    }
    answer(session, size_document(found), fields(shown))


def _lines(work: "Mapping[str, VMWork]") -> Iterable[str]:
    for name, each in work.items():
        said = f" (failed {each.tries} times: {each.cause})" if each.tries else ""
        yield f"{name}{said or (' (being removed)' if each.is_begun else '')}"


def size_document(found: "SizedList") -> dict[str, Any]:
    """Write the list of a pool."""
    return {
        "is_sized": True,
        "ips": list(found.ips),
        "generation": found.generation,
        "policy": None if found.policy is None else found.policy.as_json(),
        "making": {name: work_document(each) for name, each in found.making.items()},
        "retiring": {ip: work_document(each) for ip, each in found.retiring.items()},
        "problem": found.problem or None,
    }


def work_document(work: "VMWork") -> dict[str, Any]:
    """Write what is done with a VM that comes or goes."""
    return {
        "since": time_text(work.since),
        "ip": work.ip or None,
        "is_begun": work.is_begun,
        "tries": work.tries,
        "cause": work.cause or None,
    }
