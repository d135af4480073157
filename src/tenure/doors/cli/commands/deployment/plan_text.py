"""Plans, instances and settings of deployments as lines that people read; all of them are made from the documents."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tenure.doors.cli.output.print_answer import Document, cell_text, counted, table_lines, unicode_wanted

SIGNS = {"created": "+", "kept": "=", "recreated": "*", "changed": "~", "moved": "~", "leaves": "-"}
STEPS = {"WHAT": "what", "INSTANCE": "instance", "AZ": "az", "ADDRESSES": "addresses", "VM": "vm"}

COMMIT = "with the settings above, then `tenure deployment commit {deployment} {instance} --vm VM{of_plan}`"
MAKE = f"make its VM {COMMIT}"
REPLACE = "replace its VM {vm}, " + COMMIT
BESIDE = "make a VM beside {vm}, " + COMMIT
DEPLOY = "`tenure deployment apply FILE` reserves its addresses; then its VM can be made"
DELETE = "delete its VM {vm}, then `tenure deployment lose {deployment} {instance}`"
UNMADE = (
    "a VM is perhaps being made for it: see that there is none, then `tenure deployment lose {deployment} {instance}`"
)
WAIT = "it waits for {handed}; `tenure deployment show {deployment} {instance}` tells when it has its turn"
OR_DELETE = (
    ". Where two wait for each other, delete its VM {vm} first, then `tenure deployment lose {deployment} {instance}`"
)
LET_GO = "no VM of it is there or being made: `tenure deployment lose {deployment} {instance}` lets it go"
UNTOLD = (
    "{which} being made for it: see that there is none, then `tenure deployment fail {deployment} {instance}"
    "{of_earlier}`"
)
NO_PLAN = "no plan (in place of one that was lost, or one that was forgotten)"
EARLIER = "earlier VM of {whose}: nobody told what became of it; it may come up on {addresses}"
CALLED_OFF = "called off: the VM that {instance} waited for, of plan {calls_off}"
AGAIN = "`tenure deployment apply FILE` gives the VM that is to be made a plan, to tell it from an earlier one"
START = "it is stopped hard: `tenure deployment start {deployment} {instance}` when it is to run again"


def without_kept(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan without the instances that are kept as they are; they are counted all the same.

    Of whom a VM is still to be reported stays: nothing of that may be overlooked.
    """
    return {**plan, "instances": [step for step in plan["instances"] if not _is_settled(step)]}


def _is_settled(step: Document) -> bool:
    return step["action"] == "kept" and step["waits_for"] != "vm" and not step["earlier"]


def plan_lines(plan: Document) -> Iterator[str]:
    """Tell what a plan does, instance by instance, and how many of each there are."""
    if plan["instances"]:
        yield from table_lines([_row(step) for step in plan["instances"]], STEPS)
    yield counts_line(plan["counts"])
    yield from (CALLED_OFF.format_map(step) for step in plan["instances"] if step["calls_off"] is not None)
    if plan["ends_compile"] is not None:
        yield _ends_line(plan["ends_compile"])


def _ends_line(compiling: Document) -> str:
    """Warn of a compile that a plan ends: nobody may go on with it, and VMs that are known of keep their addresses."""
    workers = compiling["workers"]
    vms = [each["vm"] for each in workers if each["vm"] is not None]
    told = f"ends the compile for plan {compiling['plan']} ({counted({'workers': len(workers)})})"
    if not vms:
        return told
    return f"{told}; orphans then: `tenure deployment cleanup-orphans {shlex.join(vms)}` when they are deleted"


def counts_line(counts: Mapping[str, int]) -> str:
    """Tell how many instances are created, moved, and so on."""
    told = ", ".join(f"{count} {action}" for action, count in counts.items() if count)
    return f"{counted({'instances': sum(counts.values())}) or 'no instances'}{told and ': ' + told}"


def _row(step: Document) -> Document:
    return {
        "what": f"{SIGNS[step['action']]} {step['action']}",
        "instance": step["instance"],
        "az": step["az"],
        "addresses": "; ".join(_network(network, step["action"]) for network in step["networks"]),
        "vm": _vm(step),
    }


def _network(network: Document, action: str) -> str:
    """Write an address, or old and new ones; what an instance gains or gives up beside others is marked."""
    name, before, after = network["network"], ", ".join(network["before"]), network["after"]
    arrow = "→" if unicode_wanted() else "->"
    if network["type"] == "dynamic":
        return f"{name} by the IaaS" + (f" ({after})" if after else "")
    if after is None:
        text = f"{name} {before or 'none yet'}"
        return text if action == "leaves" or not before else f"{text} {arrow} none"
    gained = "none" if network["new"] and not before and action in ("changed", "moved") else before
    static = " (static)" if network["static"] else ""
    return f"{name} {gained and f'{gained} {arrow} '}{after}{static}"


def _vm(step: Document) -> str | None:
    vm, waits = step["vm"], step["waits_for"]
    if waits == "hand_over":
        return "wait" if vm is None else f"{vm}, wait"
    if waits == "vm":
        return "make it" if vm is None else f"{'beside' if step['swaps'] else 'replace'} {vm}"
    if waits == "deletion":
        return f"delete {'what is being made' if vm is None else vm}"
    return vm if isinstance(vm, str) else None


def settings_lines(said: Document, *, margin: str = "  ") -> Iterator[str]:
    """Write the network settings of an instance's or worker's VM, one network a line; or why there are none yet."""
    settings: Mapping[str, Any] | None = said["settings"]
    if settings is None:
        yield f"{margin}no settings yet: {_missing(said)}"
        return
    for network, said in settings.items():
        told = ", ".join(f"{key} {cell_text(value)}" for key, value in said.items() if value not in ({}, []))
        yield f"{margin}{network}: {told}"


def _missing(said: Document) -> str:
    """Tell why a VM has no settings. Of those in a plan only an errand at rest waits for nothing."""
    if said["waits_for"] is None and said.get("errand", True):
        return "its addresses are reserved when it runs"
    return "addresses are missing, the next deploy reserves them"


def planned_lines(plan: Document, does: str) -> Iterator[str]:
    """Tell a plan that was only tried, and the command that does it."""
    yield f"plan of deployment {plan['deployment']}; nothing is reserved yet"
    yield from plan_lines(plan)
    moved = [step["instance"] for step in plan["instances"] if step["action"] == "moved"]
    if moved:
        yield f"moved to another address: {', '.join(moved)}"
    has_to_do = plan["changes"] or plan["ends_compile"] is not None
    yield f"`{does}` does it" if has_to_do else "nothing to do"


def applied_lines(plan: Document, aborts: str) -> Iterator[str]:
    """Tell a plan that is applied: the settings of every VM, what to report next, and how it is taken back."""
    name = plan["deployment"]
    yield f"applied plan {plan['plan']} of deployment {name}"
    yield from plan_lines(plan)
    yield ""
    settings = list(step_lines(plan))
    if settings:
        yield from settings
        yield ""
    waiting = list(next_lines(name, plan["instances"]))
    if not waiting:
        yield "nothing to report: all VMs are as they should be"
        return
    yield "next:"
    yield from waiting
    yield from _footer(plan, aborts)


def _footer(plan: Document, aborts: str) -> Iterator[str]:
    """Tell how a plan ends otherwise; one that changes no instance has nothing to take back."""
    of_plan = " --plan PLAN" if any(step["needs_plan"] for step in plan["instances"]) else ""
    fails = f"`tenure deployment fail {plan['deployment']} INSTANCE{of_plan}` reports a VM that could not be made"
    if any(count for action, count in plan["counts"].items() if action != "kept"):
        yield f"{fails};"
        yield f"`{aborts}` takes back what no VM carries yet"
    else:
        yield fails


def step_lines(plan: Document) -> Iterator[str]:
    """Write the instances of a plan with the settings of their VMs."""
    for step in plan["instances"]:
        if step["action"] != "leaves":
            yield f"{step['instance']} ({step['uuid']}){in_zone(step)}"
            yield from settings_lines(step)


def in_zone(said: Document) -> str:
    """Tell the AZ, where there is one."""
    return "" if said["az"] is None else f" in {said['az']}"


def next_lines(deployment: str, waiting: Iterable[Document]) -> Iterator[str]:
    """Tell what is to be done and reported next, for everybody who waits for something."""
    for each in waiting:
        handed = ", ".join(f"{wait['address']} of {wait['of']}" for wait in each["hand_overs"])
        words = {**each, "deployment": deployment, "handed": handed, "of_plan": _of_plan(each)}
        form = _next_form(each)
        if form is not None:
            yield f"  {each['instance']}: " + form.format_map(words)
        yield from (f"  {each['instance']}: {UNTOLD.format_map({**words, **vm})}" for vm in _untold(each))


def _untold(said: Document) -> Iterator[Document]:
    """Name the earlier VMs of which it is to be said first what became of them, and how a report names each.

    One of no plan is named by none, so beside others it cannot be told from them: those come first.
    """
    if not _waits_for_others(said):
        return
    plans = list(dict.fromkeys(vm["plan"] for vm in said["earlier"]))
    for plan in plans:
        if plan is not None:
            yield {"which": "a VM of an earlier plan is perhaps", "of_earlier": f" --plan {plan}"}
    if said["waits_for"] in (None, "start") and len(said["earlier"]) == 1 and plans == [None]:
        yield {"which": "an earlier VM of no plan is perhaps there, or", "of_earlier": ""}


def _waits_for_others(said: Document) -> bool:
    """Tell whether it is to be said first what became of VMs of earlier plans: no report can name a later one."""
    return said["waits_for"] in (None, "start", "hand_over") or (said["waits_for"] == "vm" and _is_nameless(said))


def _is_nameless(said: Document) -> bool:
    """Tell whether a VM is waited for that has no plan, beside others."""
    return said["needs_plan"] and said["plan"] is None


def _of_plan(said: Document) -> str:
    """Write how a report says which plan a VM was made for, where it must."""
    return f" --plan {said['plan']}" if said["needs_plan"] else ""


def _next_form(said: Document) -> str | None:
    if said["waits_for"] == "vm" and _is_nameless(said):
        return AGAIN
    if said["waits_for"] == "hand_over":
        return WAIT if said["vm"] is None else WAIT + OR_DELETE
    if said["waits_for"] == "vm" and said.get("state") == "detached":
        return START
    # A document without settings asks for none; None says that addresses are missing.
    if said["waits_for"] == "vm" and said.get("settings", {}) is None:
        return DEPLOY
    if said["waits_for"] == "vm":
        return MAKE if said["vm"] is None else BESIDE if said.get("swaps") else REPLACE
    if said["waits_for"] == "deletion":
        return DELETE if said["vm"] is not None else UNMADE if said["earlier"] else LET_GO
    return START if said["waits_for"] == "start" else None


def earlier_lines(earlier: Iterable[Document]) -> Iterator[str]:
    """Tell of VMs that are not wanted any more, and that nobody told of."""
    for each in earlier:
        whose = NO_PLAN if each["plan"] is None else f"plan {each['plan']}"
        yield EARLIER.format(whose=whose, addresses=", ".join(each["addresses"]) or "no address that is held")


def ident(document: Document) -> str:
    """Name an instance by its group and index."""
    return f"{document['group']}/{document['index']}"


def addresses_text(document: Document) -> str:
    """Write what an instance holds; what it only keeps until its VM is another is marked."""
    told = (f"{each['network']} {each['address']}{_mark(each)}" for each in document["addresses"])
    return "; ".join(told) or "no address held"


def _mark(address: Document) -> str:
    return " (draining)" if address["state"] == "draining" else ""
