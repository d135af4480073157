"""Progress: one line on standard error, only where that is a terminal, and gone when the work is done."""

import sys
from types import TracebackType

import click

from tenure.doors.cli.session import Session
from tenure.kernel.percent import percent


class Bar:
    """How far a long piece of work is, stage by stage. Silent unless somebody looks."""

    def __init__(self, session: Session, label: str, *, hidden: bool = False) -> None:
        self._label = label
        self._shown = sys.stderr.isatty() and not session.json and not hidden
        self._line = ""

    def __call__(self, done: int, total: int | None) -> None:
        """Take in how much is done, of how much where that is known."""
        self.stage(self._label, done, total)

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Take in how much of a named stage is done."""
        if total:
            self._show(f"{name} {percent(min(done, total), total, digits=0):>4}")
        else:
            self._show(f"{name} {done:,}" if done else f"{name} ...")

    def _show(self, line: str) -> None:
        """Write a line over the one before; plain spaces wipe it out on every terminal."""
        if self._shown and line != self._line:
            click.echo("\r" + line.ljust(len(self._line)), nl=False, err=True)
            self._line = line

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._line:
            click.echo("\r" + " " * len(self._line) + "\r", nl=False, err=True)
