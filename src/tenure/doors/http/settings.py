"""How a server is set up. Flags come before the environment, the environment before the file, the file before these.

Every field here is a setting: ``settings_sources`` reads it, the command line has a flag for it, and a test looks for
its page in the documents. Reading and checking need nothing but the standard library.
"""

from dataclasses import dataclass, field
from typing import Any


def setting(default: Any, about: str, *, least: float | None = None, most: float | None = None, **more: Any) -> Any:
    """Describe a field: its default, what it is for, and the numbers or words that it takes."""
    return field(default=default, metadata={"about": about, "least": least, "most": most, **more})


@dataclass(frozen=True, slots=True)
class Limits:
    """How large, how slow and how many requests may be. Counts are of one process."""

    body_bytes: int = setting(4 * 1024 * 1024, "Bytes of a request's body.", least=1024, most=1 << 30)
    body_s: float = setting(10.0, "Seconds in which a body must have come.", least=0.1, most=3600)
    head_bytes: int = setting(32 * 1024, "Bytes of a request's line and headers.", least=1024, most=1 << 20)
    head_s: float = setting(10.0, "Seconds in which they must have come.", least=0.1, most=3600)
    keep_alive_s: float = setting(30.0, "Seconds that a connection may be idle between requests.", least=1, most=3600)
    stall_s: float = setting(
        30.0, "Seconds that an answer may wait for a reader who does not read.", least=1, most=3600
    )
    requests_at_once: int = setting(1000, "Requests that are worked on at a time; more are refused.", least=1)
    requests_share: float = setting(0.5, "The part of them that one token may have.", least=0.001, most=1)
    waiting_at_once: int = setting(1000, "Calls that wait (wait_s) at a time; more are refused.", least=1)
    waiting_share: float = setting(0.25, "The part of them that one token may have.", least=0.001, most=1)
    connections: int = setting(4000, "Open connections; more are refused.", least=1)
    streams: int = setting(256, "Streams of events at a time; more are refused.", least=0)
    streams_share: float = setting(0.25, "The part of them that one token may have.", least=0.001, most=1)
    requests_per_s: float = setting(0.0, "Requests a second by one token; 0 is no limit.", least=0)
    failures: int = setting(30, "Wrong tokens from one address; then one a second is looked at.", least=1)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server needs to know."""

    store: str = setting("sqlite:///tenure.db", "The ledger to serve.")
    host: str = setting("127.0.0.1", "The address to listen on; one that is not loopback needs TLS or a proxy.")
    port: int = setting(8123, "The port to listen on; 0 takes any.", least=0, most=65535)
    workers: int = setting(1, "Processes that serve; each has the limits for itself.", least=1, most=256)
    certificate: str | None = setting(None, "TLS: the file with the certificate and what signs it, in PEM.")
    certificate_key: str | None = setting(None, "TLS: the file with the certificate's key, in PEM.")
    anonymous: bool = setting(False, "Let everybody on this machine read without a token.")
    log: str = setting("console", "How requests are logged, on standard error.", words=("console", "json"))
    grace_s: float = setting(10.0, "Seconds that a stop waits for requests which were accepted.", least=0, most=3600)
    first_token_file: str | None = setting(None, "Write the first admin token to this file, instead of showing it.")
    keep_changes: float | None = setting(
        None, "Days that changes stay in the log; older ones go to the archive. All stay if it is left out.",
        least=0.000001, most=36_525,
    )  # fmt: skip
    most_keys: int = setting(
        10_000_000, "Idempotency keys that are remembered; of more, the oldest are forgotten.", least=1000
    )
    limits: Limits = field(default_factory=Limits)
