"""Errors that name the option they come from: which option, which piece of it, and why."""

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.kernel.errors import TenureError


def blame(error: TenureError, option: str, text: str) -> TenureError:
    """Put the option and its text before an error's message, unless it names the option already."""
    if not error.message.startswith("--"):
        error.message = f"{option} {text!r}: {error.message}"
        # The text of an exception is made of its arguments.
        error.args = (error.message,)
    error.field = option.lstrip("-").replace("-", "_")
    return error


@contextmanager
def blamed(option: str, text: str) -> Iterator[None]:
    """Let errors of what is done inside name the option it is done for."""
    try:
        yield
    except TenureError as error:
        raise blame(error, option, text) from None
