"""The Secret that says where the ledger of a pool is: watched, so that another token counts at once (KP18)."""

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Callable
from typing import NamedTuple

from tenure.integrations.kubernetes.metal3.ledger_state import LedgerAway
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import mapping
from tenure.integrations.kubernetes.metal3.objects.pool_spec import LedgerBinding
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.informer import Informer
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Object

SCHEMES = ("postgresql://", "postgres://", "http://", "https://")
"""What a ledger that several clusters share is reached by; files of this process are none of them."""

FIRST_READ_S = 5.0
"""So long it is no trouble that the Secret was not read yet; afterwards, the operator may not be allowed to."""


class LedgerPlace(NamedTuple):
    """Where a ledger is, and what it is asked with."""

    url: str
    token: str = ""


class LedgerSecret:
    """One Secret, as the server last said."""

    def __init__(self, client: ApiClient, namespace: str, binding: LedgerBinding, changed: Callable[[], None]) -> None:
        self._binding = binding
        self._key = (namespace, binding.secret)
        self._read_until = asyncio.get_running_loop().time() + FIRST_READ_S
        # By its name: the operator may read this Secret and no other.
        self._informer = Informer(client, SECRET, namespace=namespace, fields=f"metadata.name={binding.secret}")
        self._informer.on_change(lambda delta: changed())

    async def follow(self) -> None:
        """Follow the server until cancelled."""
        await self._informer.run()

    async def first_read(self) -> None:
        """Wait until the server has said what the Secret is; at first only."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._read_until):
                await self._informer.synced.wait()

    def place(self) -> LedgerPlace:
        """Return where the ledger is; raise ``LedgerAway`` if the Secret does not say so."""
        name = "/".join(self._key)
        if not self._informer.synced.is_set():
            raise LedgerAway(f"Secret {name} was not read yet; may the operator read it?")
        secret = self._informer.cache.get(self._key)
        if secret is None:
            raise LedgerAway(f"there is no Secret {name}")
        url = self._binding.server or _field(secret, "url")
        if not url:
            raise LedgerAway(f"Secret {name} has no url, and spec.tenure.ledger.server is empty")
        if not url.startswith(SCHEMES):
            where = "spec.tenure.ledger.server" if self._binding.server else f"Secret {name}: url"
            raise LedgerAway(f"{where} is no URL of a PostgreSQL or a server ({', '.join(SCHEMES)})")
        return LedgerPlace(url, _field(secret, "token"))


def _field(secret: Object, name: str) -> str:
    """Return a field of a Secret as text; what is no text counts as none."""
    try:
        return base64.b64decode(str(mapping(secret, "data").get(name) or ""), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""
