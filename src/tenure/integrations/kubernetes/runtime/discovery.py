"""Which kinds the server has, and in which versions: they come and go while an operator runs (KP6)."""

from collections.abc import Sequence

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType


class UnknownVersion(Exception):
    """The server has a kind, and serves it only in versions that nobody here can read."""


async def find_kind(client: ApiClient, group: str, plural: str, versions: Sequence[str]) -> ResourceType | None:
    """Return a kind in the first of the wanted versions that the server serves, or nothing. Two or three reads.

    The group of core kinds is empty. Raise ``UnknownVersion`` if the kind is there in other versions alone: its objects
    are not gone.
    """
    served = await _versions(client, group)
    for version in versions:
        if version in served and (kind := await _if_served(client, group, version, plural)):
            return kind
    for version in sorted(served.difference(versions)):
        if await _if_served(client, group, version, plural):
            raise UnknownVersion(f"{plural}.{group} is served in {version}, and not in {', '.join(versions)}")
    return None


async def is_served(client: ApiClient, kind: ResourceType) -> bool:
    """Return whether the server has a kind, by documents of the server; raise an error if it sends none."""
    if kind.version not in await _versions(client, kind.group):
        return False
    return await _in_version(client, kind.group, kind.version, kind.plural) is not None


async def _versions(client: ApiClient, group: str) -> set[str]:
    """Return the versions of a group; none if there is no such group.

    The list of all groups is read: a server answers the path of an unknown group like any wrong path, without a
    document, and so does a load balancer without a server.
    """
    match await client.get("/apis" if group else "/api"):
        case {"kind": "APIVersions", "versions": [*versions]}:
            return {str(version) for version in versions}
        case {"kind": "APIGroupList", "groups": [*groups]}:
            return {each["version"] for found in groups if found["name"] == group for each in found["versions"]}
    raise ApiUnreachable("the answer is no list of groups")


async def _if_served(client: ApiClient, group: str, version: str, plural: str) -> ResourceType | None:
    """Return a kind in a version; a version that comes or goes is listed a moment before or after it is served."""
    try:
        return await _in_version(client, group, version, plural)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


async def _in_version(client: ApiClient, group: str, version: str, plural: str) -> ResourceType | None:
    try:
        document: Object = await client.get(ResourceType(group, version, "", "").root)
    except ObjectMissing:
        return None
    if document.get("kind") != "APIResourceList":
        raise ApiUnreachable(f"the answer is no list of kinds of {group}/{version}")
    for each in document.get("resources") or ():
        if each["name"] == plural:
            return ResourceType(group, version, plural, each["kind"], bool(each["namespaced"]))
    return None
