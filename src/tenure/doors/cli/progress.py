"""Progress bars: on standard error, and only where that is a terminal."""

import sys
from types import TracebackType
from typing import Any

import click

from tenure.doors.cli.session import Session


class Bar:
    """How far a long piece of work is, stage by stage. Silent unless somebody looks."""

    def __init__(self, session: Session, label: str, *, hidden: bool = False) -> None:
        self._label = label
        self._shown = sys.stderr.isatty() and not session.json and not hidden
        self._colour = session.colour
        self._stage: tuple[str, int | None] | None = None
        self._bar: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Take in how much is done, of how much where that is known."""
        self.stage(self._label, done, total)

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Take in how much of a named stage is done."""
        if not self._shown:
            return
        if self._stage != (name, total):
            self._end()
            self._begin(name, total)
        if total is None:
            click.echo(f"\r{name} {done:,}", nl=False, err=True)
        elif self._bar is not None:
            self._bar.update(done - self._bar.pos)

    def _begin(self, name: str, total: int | None) -> None:
        self._stage = (name, total)
        if total:
            self._bar = click.progressbar(length=total, label=name, file=sys.stderr, color=self._colour)
            self._bar.__enter__()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None
        elif self._stage is not None and self._stage[1] is None:
            click.echo(err=True)
        self._stage = None

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
