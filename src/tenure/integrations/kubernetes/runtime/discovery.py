"""Which kinds the server has, and in which versions: they come and go while an operator runs (KP6)."""

from collections.abc import Sequence

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ObjectMissing
from tenure.integrations.kubernetes.runtime.resource_types import ResourceType


async def find_kind(client: ApiClient, group: str, plural: str, versions: Sequence[str]) -> ResourceType | None:
    """Return a kind in the first of the wanted versions that the server serves, or nothing. Two or three reads."""
    try:
        document = await client.get(f"/apis/{group}")
    except ObjectMissing:
        return None
    served = {version["version"] for version in document.get("versions") or ()}
    for version in versions:
        if version in served and (kind := await _in_version(client, group, version, plural)):
            return kind
    return None


async def _in_version(client: ApiClient, group: str, version: str, plural: str) -> ResourceType | None:
    try:
        document = await client.get(f"/apis/{group}/{version}")
    except ObjectMissing:
        return None
    for each in document.get("resources") or ():
        if each["name"] == plural:
            return ResourceType(group, version, plural, each["kind"], bool(each["namespaced"]))
    return None
