"""The ConfigMap of a pool: read it, create it if it is absent, and swap two of its values if it is as it was read.

A write names the version that was read, and has everything else in the object as it was read. Every refusal says what
it is: only another writer's change is a conflict. Cost: one request each; its size is that of the whole state.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import (
    ApiError,
    ApiUnreachable,
    ObjectExists,
    ObjectMissing,
    WriteConflict,
)
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType
from tenure.integrations.vmpool.pool_errors import (
    CONFIG_MAP_READ_FAILED,
    CONFIG_MAP_WRITE_FAILED,
    READ_FAILED,
    WRITE_FAILED,
    PoolForbidden,
    PoolNamespaceMissing,
    PoolStateUnreadable,
    PoolTooLarge,
    PoolWriteRefused,
    wrapped,
)
from tenure.integrations.vmpool.vm_pool_settings import LARGEST_CONFIG_MAP

CONFIG_MAP = ResourceType("", "v1", "configmaps", "ConfigMap")
STATE_KEY = "allocation-state"
NOTES_KEY = "tenure-notes"
LABELS = {
    "app.kubernetes.io/name": "cloud-api-adaptor",
    "app.kubernetes.io/component": "byom-ip-pool-state",
}
"""Set when the ConfigMap is created, and never again, as the Go managers do."""
TOO_LONG = "Too long"
"""What the API server says of values that are too large together (422)."""


class SwapLost(Exception):
    """Another writer was faster; nothing was written."""


class AnswerLost(Exception):
    """The request got no answer, or one that does not say whether it was done: read again (VS1)."""


@dataclass(frozen=True)
class StoredPool:
    """What was read: the object, or that there is none."""

    object: Object | None = None

    @property
    def state_text(self) -> str | None:
        """Return the text of the state; nothing where there is no ConfigMap, or no state in it yet."""
        return self._values.get(STATE_KEY)

    @property
    def notes_text(self) -> str | None:
        """Return the text of the notes, if there are any."""
        return self._values.get(NOTES_KEY)

    @property
    def version(self) -> str:
        """Return the resource version; empty where there is no ConfigMap."""
        return "" if self.object is None else str(self.object["metadata"]["resourceVersion"])

    @property
    def misplaced(self) -> Mapping[str, str]:
        """Return what is ours and lies under ``binaryData``, by its key, in base64: no manager looks there."""
        return {key: text for key, text in self._binary.items() if key in (STATE_KEY, NOTES_KEY)}

    def misplaced_text(self, key: str) -> str:
        """Return the text of a value under ``binaryData``; raise ``PoolStateUnreadable`` if it is none."""
        try:
            return base64.b64decode(self._binary[key]).decode("utf-8")
        except UnicodeDecodeError as error:
            raise PoolStateUnreadable(f"{key} is in binaryData, and is no text: {error}") from None

    @property
    def _values(self) -> Mapping[str, str]:
        return {} if self.object is None else self.object.get("data") or {}

    @property
    def _binary(self) -> Mapping[str, str]:
        return {} if self.object is None else self.object.get("binaryData") or {}

    def with_values(self, values: Mapping[str, str]) -> Object:
        """Return the object with other values; one that was under ``binaryData`` is under ``data`` alone."""
        assert self.object is not None
        changed = {**self.object, "data": {**self._values, **values}}
        if self._binary:
            changed["binaryData"] = {key: each for key, each in self._binary.items() if key not in values}
        return changed

    def size(self, values: Mapping[str, str] | None = None) -> int:
        """Return how large all values are together, with those that are to be written."""
        plain = {**self._values, **(values or {})}
        binary = [each for key, each in self._binary.items() if key not in plain]
        return sum(len(text.encode()) for text in plain.values()) + sum(len(base64.b64decode(each)) for each in binary)


@dataclass(frozen=True)
class ConfigMapSwap:
    """One ConfigMap of one namespace."""

    client: ApiClient
    namespace: str
    name: str

    async def read(self) -> StoredPool:
        """Read the ConfigMap. Raise ``AnswerLost`` where another try may help, else an error of the pool.

        Only a 404 of the API server itself means that there is none: all else must never make a state begin anew.
        """
        try:
            return StoredPool(await self.client.get(CONFIG_MAP.path(self.namespace, self.name)))
        except ObjectMissing:
            return StoredPool()
        except ApiUnreachable as error:
            raise AnswerLost(wrapped(READ_FAILED, CONFIG_MAP_READ_FAILED, error)) from error
        except ApiError as error:
            raise named_error(error, wrapped(READ_FAILED, CONFIG_MAP_READ_FAILED)) from error

    async def write(self, stored: StoredPool, values: Mapping[str, str]) -> StoredPool:
        """Write values on what was read, and return what is stored then.

        Raise ``SwapLost`` if it has changed since, ``AnswerLost`` if it is not known whether it was done.
        """
        if (size := stored.size(values)) > LARGEST_CONFIG_MAP:
            raise PoolTooLarge(size=size, limit=LARGEST_CONFIG_MAP)
        try:
            if stored.object is None:
                return StoredPool(await self.client.create(CONFIG_MAP, self._new(self.name, values, LABELS)))
            return StoredPool(await self.client.replace(CONFIG_MAP, stored.with_values(values)))
        except (WriteConflict, ObjectExists) as error:
            raise SwapLost(str(error)) from error
        except ObjectMissing as error:
            if stored.object is None:
                # A creation can miss nothing but the namespace.
                raise PoolNamespaceMissing(self.namespace, wrapped(WRITE_FAILED, CONFIG_MAP_WRITE_FAILED)) from error
            raise SwapLost("the ConfigMap was deleted meanwhile") from error
        except ApiUnreachable as error:
            raise AnswerLost(wrapped(WRITE_FAILED, CONFIG_MAP_WRITE_FAILED, error)) from error
        except ApiError as error:
            # There are two limits: that of the values together (422), and that of a request (413).
            if TOO_LONG in error.message or error.status == 413:
                raise PoolTooLarge(size=stored.size(values), limit=LARGEST_CONFIG_MAP) from error
            raise named_error(error, wrapped(WRITE_FAILED, CONFIG_MAP_WRITE_FAILED)) from error

    async def keep_copy(self, name: str, stored: StoredPool) -> None:
        """Create another ConfigMap with a copy of state and notes, which cannot be read (VD5)."""
        texts = {STATE_KEY: stored.state_text, NOTES_KEY: stored.notes_text}
        copy = self._new(name, {key: text for key, text in texts.items() if text is not None}, {})
        try:
            await self.client.create(CONFIG_MAP, {**copy, "binaryData": dict(stored.misplaced)})
        except ApiUnreachable as error:
            raise AnswerLost(wrapped(WRITE_FAILED, error)) from error
        except ApiError as error:
            raise named_error(error, wrapped(WRITE_FAILED, f"copy {name}")) from error

    def _new(self, name: str, values: Mapping[str, str], labels: Mapping[str, str]) -> Object:
        metadata = {"name": name, "namespace": self.namespace, "labels": dict(labels)}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(values)}


def named_error(error: ApiError, outer: str) -> Exception:
    """Return the error of the pool for a refusal of the API server."""
    if error.status == 429 or error.status >= 500:
        return AnswerLost(wrapped(outer, error))
    if error.status in (401, 403):
        return PoolForbidden(wrapped(outer, "forbidden", error))
    return PoolWriteRefused(wrapped(outer, error))
