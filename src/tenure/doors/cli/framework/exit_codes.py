"""Errors as the command line tells them: a message, a hint on what to do next, and an exit code for scripts."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

import click

from tenure.doors.cli.framework.hints import CASCADING
from tenure.doors.cli.session import Session
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tenure.integrations.vmpool.pool_errors import (
    PoolForbidden,
    PoolTooLarge,
    PoolWriteRefused,
    VMNotReady,
    VMWorkUnfinished,
)
from tenure.kernel.errors import (
    Conflict,
    CursorExpired,
    Invalid,
    NotFound,
    PoolExhausted,
    StoreUnavailable,
    TenureError,
)
from tenure.kernel.plan.plan_model import Network
from tenure.kernel.plan.side_effects import NOTHING_CHANGED
from tenure.wire import http_errors

# 70 and 74 are EX_SOFTWARE and EX_IOERR of sysexits.h; 130 and 141 are 128 + SIGINT and 128 + SIGPIPE, as in shells.
FINDINGS, USAGE, NOTHING_FREE, INTERNAL, UNTOLD, INTERRUPTED, PIPE_CLOSED = 1, 2, 5, 70, 74, 130, 141

EXITS: dict[type[TenureError], int] = {
    Invalid: USAGE,
    NotFound: 3,
    Conflict: 4,
    CursorExpired: 4,
    PoolExhausted: NOTHING_FREE,
    Rejected: USAGE,
    Refused: 4,
    StoreUnavailable: 6,
    **dict.fromkeys(http_errors.FOR_NOW, 6),
    **dict.fromkeys(http_errors.OF_PERSONS, 7),
    PoolForbidden: 7,
    PoolTooLarge: 4,
    PoolWriteRefused: 4,
    VMNotReady: 4,
    VMWorkUnfinished: 4,
    http_errors.TooLarge: USAGE,
    http_errors.NotInstalled: 6,
    http_errors.PreconditionFailed: 4,
    **dict.fromkeys(http_errors.OF_CLIENTS, INTERNAL),
    http_errors.Fault: INTERNAL,
}

EXIT_MEANINGS = {
    0: "done",
    FINDINGS: "done, and there are findings: `verify`, `audit` or a dry run of an import found something, something of "
    "a Neutron is left that cannot be repaired, a hook failed after an operation on an instance, a VM could not be "
    "cleaned up, or there is something to deploy (with `--exit-code`)",
    USAGE: "the command line or what it says is wrong (`invalid`, `address_outside_subnet`, `document_rejected`, "
    "`template_refused`, `bad_argument`), or too much at once (`too_large`); nothing was changed",
    3: "nothing goes by that name (`not_found`)",
    4: "the present state forbids it: `conflict`, `already_exists`, `address_in_use`, `address_reserved`, `overlap`, "
    "`still_in_use`, `not_owner`, `key_reused`, `cursor_expired`, `hook_failed`, `in_flight`, `unreadable`, "
    "`deployment_refused`, `pool_swap_conflict`, `pool_state_unreadable`, `pool_state_misplaced`, `pool_too_large`, "
    "`pool_write_refused`, `pool_namespace_missing`, "
    "`node_name_taken`, `node_mismatch`, `vm_not_ready`, `vm_work_unfinished`, `recovery_interrupted`",
    NOTHING_FREE: "nothing is free (`pool_exhausted`, `vm_pool_exhausted`; `deployment_refused` as "
    "NetworkReservationNotEnoughCapacity)",
    6: "the store or the server did not answer, has too much to do, or lacks what it needs (`store_unavailable`, "
    "`overloaded`, `rate_limited`, `share_used_up`, `too_slow`, `not_installed`, `pool_unavailable`)",
    7: "the server does not let you do that (`unauthorised`, `forbidden`, `pool_forbidden`)",
    INTERNAL: "a fault of Tenure itself, here or in the server (`internal`); please report it with the text it printed",
    UNTOLD: "done, but the answer could not be written to standard output (a full disk, say); `tenure show` tells it",
    INTERRUPTED: "interrupted by Ctrl-C; what was waiting is withdrawn",
    PIPE_CLOSED: "whoever read the output went away",
    143: "asked to stop (SIGTERM); what was waiting is withdrawn",
}

WORDS = {
    "wait_s:": "--wait:",
    "lasts_s:": "--lasts:",
    "cooling_s:": "--cooling:",
    "ttl_s:": "--ttl:",
    "pass space=": "pass --space=",
    "pass replaces=True": "pass --replace",
    "with add_pool": "with `tenure pool add`",
    "modify the holding to change that": "`tenure holding modify` changes that",
}
"""Words of the library, and how the command line says them."""

ALL_WAYS_OUT = "release them, retire it, or pass cascade=True"
"""What the library says of things in use; not every command can end what is held."""


def exit_code(error: TenureError) -> int:
    """Return the exit code of an error: that of the nearest class above it."""
    if isinstance(error, Refused) and error.kind is BoshErrorKind.NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY:
        return NOTHING_FREE
    return next((EXITS[kind] for kind in type(error).__mro__ if kind in EXITS), USAGE)


def error_data(error: TenureError, command: str) -> dict[str, Any]:
    """Return what an error carries, under stable keys."""
    if isinstance(error, Rejected | Refused):
        faults = error.faults if isinstance(error, Rejected) else [error.fault]
        message = "\n".join(map(str, faults))
        return {"code": error.code, "message": message, "field": None, "faults": [fault.told() for fault in faults]}
    data = {name: _plain(value) for name, value in vars(error).items() if name not in ("message", "field")}
    return {"code": error.code, "message": translated(error.message, command), "field": error.field, **data}


def _plain(value: Any) -> Any:
    """Write what consists of fields as an object."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def translated(message: str, command: str) -> str:
    """Write a message of the library in words of the command line."""
    ways_out = "release them, retire it, or pass --cascade" if command in CASCADING else "release them first"
    return with_options(message).replace(ALL_WAYS_OUT, ways_out)


def with_options(text: str) -> str:
    """Write what the library says of its parameters with the options of the command line."""
    for word, ours in WORDS.items():
        text = text.replace(word, ours)
    return text


def warn(session: Session, warnings: Iterable[str], *, always: bool = False) -> None:
    """Write warnings to standard error; unless that is always wanted, scripts find them in the answer."""
    for text in warnings if always or not session.json else ():
        click.echo(click.style("tenure: warning: ", fg="yellow") + text, err=True, color=session.colour)


def unless_nothing(text: str, network: Network) -> str:
    """Return what is printed of an edit: the text, unless nothing was changed."""
    return f"nothing to change in network {network.name}" if NOTHING_CHANGED in network.warnings else text


def warn_beside_list(session: Session, warnings: Sequence[str], hint: str | None = None) -> None:
    """Write warnings to standard error; for scripts as a document, because the answer is a list and has no place.

    A ``hint`` says what to do about them.
    """
    if session.json and warnings:
        click.echo(json.dumps({"warnings": list(warnings), **({"hint": hint} if hint else {})}), err=True)
    warn(session, warnings)
    if hint and not session.json:
        click.echo(f"  {hint}", err=True, color=session.colour)


def file_problem(error: OSError) -> str:
    """Say what the system has against a file: which one, and why."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def tell(session: Session, data: dict[str, Any], next_step: str | None) -> None:
    """Write an error to standard error, for people or for scripts."""
    if session.json:
        document = {**data, **({"hint": next_step} if next_step else {})}
        click.echo(json.dumps({"error": document}, default=str), err=True)
        return
    for line in data["message"].splitlines():
        click.echo(click.style("tenure: ", fg="red") + line, err=True, color=session.colour)
    if next_step:
        click.echo(f"  {next_step}", err=True, color=session.colour)
