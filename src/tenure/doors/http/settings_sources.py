"""Where settings come from: flags, then the environment, then one file. What is wrong or unknown is refused by name."""

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tenure.doors.http.settings import Limits, Settings
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

PREFIX = "TENURE_SERVE_"
STORE_VARIABLE = "TENURE_STORE"
TABLE = "limits"
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

Field = dataclasses.Field[Any]


def own_fields() -> dict[str, Field]:
    """Return the settings of the server itself, by name."""
    return {each.name: each for each in dataclasses.fields(Settings) if each.name != TABLE}


def limit_fields() -> dict[str, Field]:
    """Return the limits, by name."""
    return {each.name: each for each in dataclasses.fields(Limits)}


def variable_of(name: str) -> str:
    """Name the environment variable of a setting."""
    return STORE_VARIABLE if name == "store" else f"{PREFIX}{name.upper()}"


def read_settings(flags: Mapping[str, Any], environment: Mapping[str, str], file: str | None = None) -> Settings:
    """Put settings together from all places, and check them."""
    own, limits = own_fields(), limit_fields()
    every = own | limits
    # In this order each place writes over the place before.
    said = {} if file is None else _of_file(file, own, limits)
    said |= _of_environment(environment, every)
    said |= {name: (value, f"--{name.replace('_', '-')}") for name, value in flags.items() if value is not None}
    read = {name: _checked(every[name], value, place) for name, (value, place) in said.items()}
    made = Settings(
        **{name: value for name, value in read.items() if name in own},
        limits=Limits(**{name: value for name, value in read.items() if name in limits}),
    )
    _check_together(made)
    return made


def _of_environment(environment: Mapping[str, str], fields: Mapping[str, Field]) -> dict[str, tuple[Any, str]]:
    said = {}
    for variable, value in environment.items():
        if variable.startswith(PREFIX):
            name = variable.removeprefix(PREFIX).lower()
            # The store has a variable of its own without the prefix, because every command reads that one.
            if name not in fields or name == "store":
                names = [variable_of(each) for each in fields]
                raise Invalid(f"{variable}: no setting goes by that name{_near(variable, names)}", field=variable)
            said[name] = (value, variable)
    # An empty variable counts as none, as it does in the other commands.
    if environment.get(STORE_VARIABLE):
        said["store"] = (environment[STORE_VARIABLE], STORE_VARIABLE)
    return said


def _of_file(file: str, own: Mapping[str, Field], limits: Mapping[str, Field]) -> dict[str, tuple[Any, str]]:
    try:
        document = tomllib.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise Invalid(f"--config: {file}: {error.strerror}", field="config") from None
    except ValueError as error:  # also plain ones, of numbers of thousands of digits
        raise Invalid(f"--config: {file} is not TOML: {error}", field="config") from None
    inner = document.pop(TABLE, {})
    if not isinstance(inner, dict):
        raise Invalid(f"{file}: {TABLE}: a table is needed, not {shown(inner)}", field=TABLE)
    said: dict[str, tuple[Any, str]] = {}
    for table, names, known in (("", document, own), (f"{TABLE}.", inner, limits)):
        for name, value in names.items():
            if name not in known:
                hint = f"; it belongs under [{TABLE}]" if name in limits else _near(name, known)
                raise Invalid(f"{file}: {table}{name}: no setting goes by that name{hint}", field=f"{table}{name}")
            said[name] = (value, f"{file}: {table}{name}")
    return said


def _near(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _checked(field: Field, value: Any, place: str) -> Any:
    """Return the value of a setting as its type says, or refuse it and name the place that says it."""
    if field.type is bool:
        return _yes_or_no(value, place, field.name)
    if field.type in (int, float, float | None):
        return _number(field, value, place)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise Invalid(f"{place}: text is needed, not {shown(value)}", field=field.name)
    words = field.metadata.get("words")
    if words and value not in words:
        raise Invalid(f"{place}: {' or '.join(words)} is needed, not {shown(value)}", field=field.name)
    return value


def _yes_or_no(value: Any, place: str, name: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in YES + NO:
        return value.lower() in YES
    raise Invalid(f"{place}: true or false is needed, not {shown(value)}", field=name)


def _number(field: Field, value: Any, place: str) -> float:
    least, most = field.metadata["least"], field.metadata["most"]
    kind, needed = (int, "a whole number") if field.type is int else (float, "a number")
    if isinstance(value, str) or type(value) is int:
        try:
            value = kind(value)
        except (ValueError, OverflowError):  # a float has no room for an int of 400 digits
            raise Invalid(f"{place}: {needed} is needed, not {shown(value)}", field=field.name) from None
    # Python counts a bool as an int, so `port = true` in the file would be port 1.
    if isinstance(value, bool) or not isinstance(value, kind) or (kind is float and not math.isfinite(value)):
        raise Invalid(f"{place}: {needed} is needed, not {shown(value)}", field=field.name)
    if (least is not None and value < least) or (most is not None and value > most):
        span = f"at least {least:g}" if most is None else f"from {least:g} to {most:g}"
        raise Invalid(f"{place}: {needed} {span} is needed, not {shown(value)}", field=field.name)
    return kind(value)


def _check_together(settings: Settings) -> None:
    """Refuse settings that do not go together."""
    if (settings.certificate is None) != (settings.certificate_key is None):
        missing = "certificate" if settings.certificate is None else "certificate_key"
        raise Invalid(f"{missing}: TLS needs both files, the certificate and its key", field=missing)
    if settings.workers > 1 and settings.store.startswith("memory:"):
        raise Invalid("workers: a ledger in memory is of one process; take 1, or another store", field="workers")
