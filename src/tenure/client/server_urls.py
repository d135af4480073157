"""Where servers are: one URL that names one or several of them, and how they are to be asked.

``http://ledger.example.org:8123`` is one. ``http://a:8123,b:8123`` are two servers of one ledger, asked in turn when
one does not answer. Options stand behind a question mark, once for all of them: ``ca`` is a file with the certificate
that signed the servers', ``within_s`` how long a call is tried again before it fails.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

SCHEMES = ("http", "https")
OPTIONS = ("ca", "within_s")
WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Servers:
    """Servers of one ledger, in the order they are tried."""

    bases: tuple[str, ...]
    ca: Path | None = None
    within_s: float = WITHIN_S

    def __str__(self) -> str:
        return ",".join(self.bases)


def names_servers(url: object) -> bool:
    """Tell whether a URL names servers, and not a store."""
    return isinstance(url, str) and url.partition(":")[0].lower() in SCHEMES


def read_servers(url: str) -> Servers:
    """Read which servers a URL names, or say what is wrong with it; never what may be a secret in it."""
    places, _, query = url.partition("?")
    scheme = places.partition(":")[0].lower()
    parts = [part if "://" in part else f"{scheme}://{part}" for part in places.split(",")]
    said = _options(query)
    ca = None if "ca" not in said else Path(said["ca"])
    if ca is not None and scheme != "https":
        raise Invalid("url: ca is for https only", field="url")
    within_s = _seconds(said["within_s"]) if "within_s" in said else WITHIN_S
    return Servers(tuple(_base(part) for part in parts), ca, within_s)


def _base(part: str) -> str:
    try:
        parsed = urlsplit(part)
        # urlsplit looks at the port only when it is asked for, and raises then.
        port = parsed.port
    except ValueError as error:
        raise Invalid(f"url: not a URL ({error})", field="url") from None
    if parsed.username is not None or parsed.password is not None:
        raise Invalid("url: who asks is told by a token, not in the URL", field="url")
    if parsed.scheme.lower() not in SCHEMES or not parsed.hostname or parsed.fragment or port == 0:
        raise Invalid(f"url: {shown(part)} names no server; write http://host:8123", field="url")
    return part.rstrip("/")


def _options(query: str) -> dict[str, str]:
    said: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in OPTIONS:
            raise Invalid(f"url: {shown(name)} is no option; a server takes {', '.join(OPTIONS)}", field="url")
        said[name] = value
    return said


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86_400:
        raise Invalid(f"url: within_s: a number of seconds is needed, a day at most, not {shown(text)}", field="url")
    return seconds
