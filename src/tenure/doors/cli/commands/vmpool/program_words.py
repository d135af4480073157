"""Options that name a program and its arguments, which is run without a shell."""

import shlex

from tenure.kernel.errors import Invalid


def program_words(text: str, option: str) -> list[str]:
    """Return a program and its arguments; raise ``Invalid`` with the name of the option."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise Invalid(f"{option}: {error}") from None
    if not words:
        raise Invalid(f"{option}: it names no program")
    return words
