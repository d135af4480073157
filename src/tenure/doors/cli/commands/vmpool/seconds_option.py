"""The types of options that are durations: a number of seconds, or text such as 30s; never nan, inf or less than 0."""

import click

from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.state.argument_checks import read_seconds


def seconds_above_zero(said: str | float) -> float:
    """Read a duration that is not 0; click names the option where there is none."""
    return _read(said, may_be_zero=False)


def seconds_from_zero(said: str | float) -> float:
    """Read a duration that may be 0; click names the option where there is none."""
    return _read(said, may_be_zero=True)


def _read(said: str | float, *, may_be_zero: bool) -> float:
    try:
        return read_seconds(said, "", may_be_zero=may_be_zero)
    except BadArgument as error:
        raise click.BadParameter(str(error).removeprefix(": ")) from None
