"""The writes of the controller that renders machines: each names what was read, and is in the caches at once (KP4)."""

from collections.abc import Callable
from dataclasses import dataclass

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import finalizers_of, is_terminating
from tenure.integrations.kubernetes.metal3_data.data_caches import Group
from tenure.integrations.kubernetes.runtime.api_client import GONE, MERGE_PATCH, ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable, ObjectMissing, WriteConflict
from tenure.integrations.kubernetes.runtime.discovery import is_served
from tenure.integrations.kubernetes.runtime.patches import Step, guarded, remove_finalizer, status_patch
from tenure.integrations.kubernetes.runtime.resource_types import SECRET, Key, Object, ResourceType, key_of
from tenure.integrations.kubernetes.runtime.terminating_namespaces import TerminatingNamespaces

PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""What is asked for of a secret: whose it is, and not what it holds."""
REFUSALS = (400, 403, 413, 422)
"""Answers about one object: a quota, a policy, a field that is refused. Others are the server's own trouble."""


class NamespaceGoing(Exception):
    """Nothing can be created in a namespace that is being deleted (KP8)."""


@dataclass
class DataWrites:
    """Writes on the session of the leader."""

    client: ApiClient
    check: Callable[[], None]
    """Raises if this process must not write; asked before every write."""
    terminating: TerminatingNamespaces

    async def create(self, group: Group, object: Object) -> Object:
        """Create an object of a kind that is followed; ``ObjectExists`` if there is one of its name."""
        made = await self._create(type_of(group), object)
        group.wrote(made)
        return made

    async def patch(self, group: Group, object: Object, steps: list[Step]) -> Object:
        """Change an object by steps; without steps nothing is sent."""
        if not steps:
            return object
        self.check()
        patched = await self.client.patch(type_of(group), object, guarded(object, *steps))
        group.wrote(patched)
        return patched

    async def say(self, group: Group, object: Object, status: Object) -> Object:
        """Write fields of an object's status."""
        self.check()
        patch = status_patch(object, status)
        patched = await self.client.patch(type_of(group), object, patch, content_type=MERGE_PATCH, subresource="status")
        group.wrote(patched)
        return patched

    async def release(self, group: Group, object: Object, finalizer: str) -> bool:
        """Delete an object and take a finalizer away from it; return whether it is gone.

        It is deleted first: from then on everybody sees that it is going.
        """
        try:
            return await self._release(group, object, finalizer)
        except ObjectMissing:
            group.deleted(object, GONE)
            return True

    async def drop_finalizer(self, group: Group, object: Object, finalizer: str) -> None:
        """Take a finalizer away from an object that is to go."""
        if finalizer not in finalizers_of(object):
            return
        self.check()
        try:
            answer = await self.client.patch(type_of(group), object, remove_finalizer(object, finalizer))
        except ObjectMissing:
            answer = GONE
        group.deleted(object, answer)

    async def read(self, kind: ResourceType, key: Key) -> Object | None:
        """Read an object from the server itself, or nothing."""
        try:
            return await self.client.get(kind.path(*key))
        except ObjectMissing:
            return None

    async def is_missing(self, kind: ResourceType, key: Key) -> bool:
        """Return whether the server has a kind, and not this object; no, where that may not be read."""
        try:
            await self.client.get(kind.path(*key))
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            # A server answers the path of a kind that it does not have, or not in this version, in the same way.
            return error.status == 404 and await is_served(self.client, kind)
        return False

    async def read_secret(self, key: Key) -> Object | None:
        """Read whose a secret is; nothing if there is none."""
        try:
            return await self.client.get(SECRET.path(*key), accept=PARTIAL)
        except ObjectMissing:
            return None

    async def create_secret(self, secret: Object) -> None:
        """Create a secret; ``ObjectExists`` if there is one of its name."""
        await self._create(SECRET, secret)

    async def delete_secret(self, secret: Object) -> None:
        """Delete a secret as it was read; one that is gone is passed over."""
        self.check()
        try:
            await self.client.delete(SECRET, secret)
        except ObjectMissing:
            return

    async def _create(self, kind: ResourceType, object: Object) -> Object:
        self.check()
        namespace = key_of(object)[0]
        try:
            made = await self.client.create(kind, object)
        except (ApiError, ApiUnreachable) as error:
            if self.terminating.note(namespace, error):
                raise NamespaceGoing(namespace) from None
            raise
        self.terminating.took(namespace)
        return made

    async def _release(self, group: Group, object: Object, finalizer: str) -> bool:
        if not is_terminating(object):
            self.check()
            answer = await self.client.delete(type_of(group), object)
            group.deleted(object, answer)
            if not is_terminating(answer) or not finalizers_of(answer):
                return True
            object = answer
        if finalizer in finalizers_of(object):
            self.check()
            answer = await self.client.patch(type_of(group), object, remove_finalizer(object, finalizer))
            group.deleted(object, answer)
            object = answer
        return not finalizers_of(object)


def refusal_text(error: ApiError) -> str:
    """Return what people are told where the server refuses an object; empty for what is only to be tried again."""
    if isinstance(error, WriteConflict) or error.status not in REFUSALS:
        return ""
    return f"the server refuses what is needed: {error.message}"


def type_of(group: Group) -> ResourceType:
    """Return the kind of a group, in the version that the server serves."""
    assert group.kind is not None, "objects of a kind that is not there are not written"
    return group.kind
