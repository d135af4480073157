"""The shape of every command: options that go anywhere, examples in its help, files loaded when they are needed."""

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tenure.doors.cli.session import SERVER_VARIABLE, STORE_VARIABLE, TOKEN_VARIABLE, Session
from tenure.wiring import DEFAULT_URL

F = TypeVar("F", bound=Callable[..., Any])


def _take_store(context: click.Context, _: click.Parameter, value: str | None) -> None:
    # A noun and its verb both read these options; the verb's silence must not empty what the noun was given.
    if value is not None:
        session = context.ensure_object(Session)
        session.store = value
        _check_one(context, session)


def _take_server(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        session = context.ensure_object(Session)
        session.server = value
        _check_one(context, session)


def _check_one(context: click.Context, session: Session) -> None:
    if session.store is not None and session.server is not None:
        raise click.UsageError("--store and --server: name one of them", context)


def _take_token_file(context: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        context.ensure_object(Session).token_file = value


def _take_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Session).json = True


def _take_plain(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Session).plain = True


EVERYWHERE = [
    click.Option(
        ["--store", "everywhere_store"],
        metavar="URL",
        expose_value=False,
        is_eager=True,
        callback=_take_store,
        help=f"The ledger to work on; else {STORE_VARIABLE}, else {DEFAULT_URL}.",
    ),
    click.Option(
        ["--server", "everywhere_server"],
        metavar="URL",
        expose_value=False,
        is_eager=True,
        callback=_take_server,
        help=f"The server to ask instead of a store; else {SERVER_VARIABLE}. Several: http://a:8123,b:8123.",
    ),
    click.Option(
        ["--token-file", "everywhere_token_file"],
        metavar="FILE",
        type=click.Path(path_type=Path),
        expose_value=False,
        is_eager=True,
        callback=_take_token_file,
        help=f"The file with the token for the server; else {TOKEN_VARIABLE}.",
    ),
    click.Option(
        ["--json", "everywhere_json"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_take_json,
        help="Answer with JSON documents.",
    ),
    click.Option(
        ["--no-color", "everywhere_plain"],
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_take_plain,
        help="No colours, not even on a terminal (as NO_COLOR).",
    ),
]
"""Options that may stand before a command or behind it; read first, so that what is wrong is told as they say."""


class _Anywhere(click.Command):
    """What commands and nouns have in common: the options that go anywhere, and examples kept as they are written."""

    def __init__(self, name: str | None = None, *, help: str | None = None, **named: Any) -> None:
        super().__init__(name, help=_with_examples(help), **named)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """List its own parameters, then those of every command."""
        return [*super().get_params(ctx), *EVERYWHERE]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note which command is read, so that what is wrong with it is told with its own help."""
        ctx.ensure_object(Session).command = ctx.command_path.removeprefix(f"{ctx.find_root().info_name} ")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its own options, then those that go anywhere, then its verbs."""
        own = [parameter for parameter in self.get_params(ctx) if parameter not in EVERYWHERE]
        for title, parameters in (("Options", own), ("Options anywhere", EVERYWHERE)):
            rows = [row for parameter in parameters if (row := parameter.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(rows)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


def _with_examples(help: str | None) -> str | None:
    """Mark the examples of a help text so that their lines stay as they are written (the mark is click's)."""
    return None if help is None else inspect.cleandoc(help).replace("\nFor example:\n", "\n\b\nFor example:\n")


class Command(_Anywhere):
    """A command of ours."""


class Noun(_Anywhere, click.Group):
    """A group of verbs on one thing; its verbs are commands of ours."""

    command_class = Command


class LazyNoun(Noun):
    """A group whose commands lie in files that are read when a command is wanted."""

    def __init__(self, name: str | None = None, *, sections: Mapping[str, Mapping[str, str]], **named: Any) -> None:
        super().__init__(name, **named)
        self._sections = sections
        self._places = {name: place for section in sections.values() for name, place in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, section by section."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command from its file."""
        if cmd_name not in self._places:
            return None
        module, _, name = self._places[cmd_name].partition(":")
        found = getattr(importlib.import_module(f"tenure.doors.cli.commands.{module}"), name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their one line of help, section by section."""
        for title, names in self._sections.items():
            rows = [(name, self._line(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=16)

    def _line(self, ctx: click.Context, name: str) -> str:
        found = self.get_command(ctx, name)
        return "" if found is None else found.get_short_help_str(limit=100)


def command(name: str) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command of ours."""
    return click.command(name, cls=Command)


def noun(name: str) -> Callable[[Callable[..., Any]], Noun]:
    """Make a function a group of verbs."""
    return click.group(name, cls=Noun)


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Put several options on a command, shown in the order given."""
    # Reversed, because click shows the option first that was laid on last.
    return lambda function: functools.reduce(lambda made, option: option(made), reversed(options), function)
