"""Whether a caller may read something of this process: the API server knows the caller, and what the caller may do."""

import enum
import logging
from dataclasses import dataclass

from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType

LOG = logging.getLogger(__name__)

TOKEN_REVIEW = ResourceType("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEW = ResourceType(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


class ReviewOutcome(enum.IntEnum):
    """What becomes of a request, as HTTP says it."""

    ALLOWED = 200
    UNKNOWN = 401
    FORBIDDEN = 403
    UNDECIDED = 503


@dataclass(frozen=True)
class AccessReview:
    """Asks the API server who a caller is, and whether that user may get a path. Two requests for each question."""

    client: ApiClient
    """Must have no fence: replicas that do not lead are asked as well, and reviews change nothing."""

    async def judge(self, authorization: str, path: str) -> ReviewOutcome:
        """Judge a caller by the header ``Authorization``; without an answer of the API server nobody is let in."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ReviewOutcome.UNKNOWN
        try:
            user = await self._user_of(token.strip())
            if user is None:
                return ReviewOutcome.UNKNOWN
            return ReviewOutcome.ALLOWED if await self._may_get(user, path) else ReviewOutcome.FORBIDDEN
        except (ApiError, ApiUnreachable) as error:
            LOG.warning("a request for %s cannot be judged: %s", path, error)
            return ReviewOutcome.UNDECIDED

    async def _user_of(self, token: str) -> Object | None:
        """Return the user that a token is of; nothing if the API server does not know the token."""
        status = await self._reviewed(TOKEN_REVIEW, {"token": token})
        user: Object = status.get("user") or {}
        return user if status.get("authenticated") is True and user.get("username") else None

    async def _may_get(self, user: Object, path: str) -> bool:
        known = {name: user[name] for name in ("uid", "groups", "extra") if user.get(name)}
        asked = {"path": path, "verb": "get"}
        status = await self._reviewed(
            ACCESS_REVIEW, {"user": user["username"], **known, "nonResourceAttributes": asked}
        )
        return status.get("allowed") is True

    async def _reviewed(self, kind: ResourceType, spec: Object) -> Object:
        review = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
        status: Object = (await self.client.create(kind, review)).get("status") or {}
        return status
