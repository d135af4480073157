"""Fresh ledgers for lives that end early."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.infrastructure.postgres import schema_in_thread

STORES = ("sqlite", "postgres")
"""Stores that deployments can share."""


@contextmanager
def fresh(store: str) -> Iterator[str]:
    """Give the URL of an empty ledger, and clear it away afterwards."""
    if store == "postgres":
        with schema_in_thread() as url:
            yield url
        return
    with tempfile.TemporaryDirectory(prefix="tenure-kills-") as folder:
        yield f"sqlite:///{Path(folder) / 'tenure.db'}"
