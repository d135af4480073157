"""Errors as the command line tells them: a message, a hint on what to do next, and an exit code for scripts."""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import click

from tenure.doors.cli.session import Session
from tenure.kernel.errors import (
    AddressReserved,
    Conflict,
    CursorExpired,
    Invalid,
    NotFound,
    PoolExhausted,
    StillInUse,
    StoreUnavailable,
    TenureError,
)

FINDINGS, USAGE, INTERNAL, UNTOLD, INTERRUPTED, PIPE_CLOSED = 1, 2, 70, 74, 130, 141

EXITS: dict[type[TenureError], int] = {
    Invalid: USAGE,
    NotFound: 3,
    Conflict: 4,
    CursorExpired: 4,
    PoolExhausted: 5,
    StoreUnavailable: 6,
}

EXIT_MEANINGS = {
    0: "done",
    FINDINGS: "done, and there are findings: `verify`, `audit` or a dry run of an import found something, or a hook "
    "failed after an operation on an instance",
    USAGE: "the command line or what it says is wrong (`invalid`, `address_outside_subnet`); nothing was changed",
    3: "nothing goes by that name (`not_found`)",
    4: "the present state forbids it: `conflict`, `already_exists`, `address_in_use`, `address_reserved`, `overlap`, "
    "`still_in_use`, `not_owner`, `key_reused`, `cursor_expired`, `hook_failed`",
    5: "nothing is free (`pool_exhausted`)",
    6: "the store did not answer (`store_unavailable`)",
    INTERNAL: "a fault of Tenure itself; please report it with the text it printed",
    UNTOLD: "done, but the answer could not be written to standard output (a full disk, say); `tenure show` tells it",
    INTERRUPTED: "interrupted by Ctrl-C; what was waiting is withdrawn",
    PIPE_CLOSED: "whoever read the output went away",
    143: "asked to stop (SIGTERM); what was waiting is withdrawn",
}

HINTS = {
    "invalid": "`tenure {command} --help` shows what may be written",
    "address_outside_subnet": "`tenure subnet list {network}` shows its blocks; `tenure subnet add` adds one",
    "not_found": "`tenure show` lists what there is",
    "conflict": "read again with `tenure show`, then decide",
    "already_exists": "choose another name or slot, or use what exists: `tenure show`",
    "address_in_use": "`tenure why {address}` tells since when; name another address, or none to get the next free one",
    "address_reserved": "`--reserved allow` reaches reserved addresses, `--reserved force` kept-back ones, too",
    "overlap": "`tenure subnet list` and `tenure pool list` show what is there",
    "still_in_use": "release the holdings, retire it to let it run dry, or end them all with `--cascade`",
    "not_owner": "`tenure why {address}` tells who holds it since when",
    "pool_exhausted": "`tenure pool add` adds addresses, `tenure release` frees one, `--wait SECONDS` waits for one",
    "key_reused": "a key stands for one request: choose a new one for another",
    "hook_failed": "correct what the hook complains of, then run the command again",
    "cursor_expired": "read the present state with `tenure show`, then go on with `--after {oldest}`",
}

LEDGER_MISSING = "look at `--store` or TENURE_STORE; `tenure network add NAME` begins a new ledger"
ORIGINS = {"restore": "FILE is what `tenure backup FILE` wrote", "copy": "SOURCE is the URL of the ledger to copy"}
"""What to look at when the ledger to read is not there, in commands that fill another."""

RESERVED_HINTS = {
    "cooling": "wait until then, name another address, or none to get the next free one",
    "retired": "`--undo` of the command that retired it takes it back into use; or name another address",
    "waits": "name another address, or wait in line with `--wait SECONDS` and without `--address`",
}
"""What to do about an address that no reach of ``--reserved`` gets, by a word of the reason."""

LISTED = {
    "group": "`tenure group list` lists them",
    "node": "`tenure node list` lists them",
    "instance": "`tenure instance list` lists them",
    "NIC": "`tenure instance info NAME` shows its NICs",
    "tag": "`tenure network list-tags NETWORK` lists them",
    "field": "`list-fields` lists them",
}
"""Where to look for what is not found, by its kind."""

IN_USE_HINTS = {
    "group": "`tenure group list` shows what is in a group",
    "node": "`tenure node list -o name,inst_list` shows what is on a node",
    "network": "`tenure network info {name}` shows who is on it",
}
"""Where to look for what keeps a thing from going, if that is no holding."""

NODE_ADDRESS = "give the node another address, or pass `--no-conflicts-check`"

INSTANCE_HINTS = {
    "address_reserved": "`--force` lets externally reserved addresses be had, too",
    "pool_exhausted": "`tenure network modify --pool add:RANGE {network}` adds addresses",
    "already_exists": "choose another name: `tenure instance list` lists those there are",
}
"""What commands on instances say otherwise."""

WORDS = {
    "wait_s:": "--wait:",
    "lasts_s:": "--lasts:",
    "cooling_s:": "--cooling:",
    "ttl_s:": "--ttl:",
    "pass cascade=True": "pass --cascade",
    "with add_pool": "with `tenure pool add`",
}
"""Words of the library, and how the command line says them."""


def exit_code(error: TenureError) -> int:
    """Return the exit code of an error: that of the nearest class above it."""
    return next((EXITS[kind] for kind in type(error).__mro__ if kind in EXITS), USAGE)


def error_data(error: TenureError) -> dict[str, Any]:
    """Return what an error carries, under stable keys."""
    data = {name: _plain(value) for name, value in vars(error).items() if name not in ("message", "field")}
    return {"code": error.code, "message": translated(error.message), "field": error.field, **data}


def _plain(value: Any) -> Any:
    """Write what consists of fields as an object."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def translated(message: str) -> str:
    """Write a message of the library in words of the command line."""
    for word, ours in WORDS.items():
        message = message.replace(word, ours)
    return message


def hint(error: TenureError, command: str) -> str | None:
    """Say what to do next, in words of the command line."""
    special = _special_hint(error, command)
    if special is None and isinstance(error, StoreUnavailable):
        unknown = error.outcome == "unknown"
        return "repeat the same command to learn the outcome" if unknown else "look at `--store` or TENURE_STORE"
    text = special or HINTS.get(error.code)
    return None if text is None else text.format_map(_Words({"command": command, **vars(error)}))


def _special_hint(error: TenureError, command: str) -> str | None:
    """Say what helps in cases for which the hint of the code would lead astray."""
    if command in ORIGINS and error.field in ("path", "ledger"):
        return ORIGINS[command]
    if isinstance(error, NotFound) and error.kind == "ledger":
        return LEDGER_MISSING
    if isinstance(error, NotFound):
        return LISTED.get(error.kind)
    if isinstance(error, StillInUse) and (command == "node" or not all("/" in holder for holder in error.holders)):
        return IN_USE_HINTS.get(error.kind, NODE_ADDRESS)
    if isinstance(error, AddressReserved):
        words = error.reason.replace(",", " ").split()
        found = next((text for word, text in RESERVED_HINTS.items() if word in words), None)
        if found is not None:
            return found
    return INSTANCE_HINTS.get(error.code) if command == "instance" else None


class _Words(dict[str, Any]):
    """What a hint may name; a word that an error does not carry is left as a place to fill in."""

    def __missing__(self, name: str) -> str:
        return name.upper()


def warn(session: Session, warnings: Iterable[str], *, always: bool = False) -> None:
    """Write warnings to standard error; unless that is always wanted, scripts find them in the answer."""
    for text in warnings if always or not session.json else ():
        click.echo(click.style("tenure: warning: ", fg="yellow") + text, err=True, color=session.colour)


def file_problem(error: OSError) -> str:
    """Say what the system has against a file: which one, and why."""
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def tell(session: Session, data: dict[str, Any], next_step: str | None) -> None:
    """Write an error to standard error, for people or for scripts."""
    if session.json:
        document = {**data, **({"hint": next_step} if next_step else {})}
        click.echo(json.dumps({"error": document}, default=str), err=True)
        return
    click.echo(click.style("tenure: ", fg="red") + data["message"], err=True, color=session.colour)
    if next_step:
        click.echo(f"  {next_step}", err=True, color=session.colour)
