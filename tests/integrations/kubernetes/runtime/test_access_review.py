"""Who may read something of a process, by an API server that does not answer as it should.

What a real one answers: ``test_metrics_auth.py``.
"""

from typing import cast

import pytest

from tenure.integrations.kubernetes.runtime.access_review import (
    ACCESS_REVIEW,
    TOKEN_REVIEW,
    AccessReview,
    ReviewOutcome,
)
from tenure.integrations.kubernetes.runtime.api_client import ApiClient
from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
from tenure.integrations.kubernetes.runtime.resource_types import Object, ResourceType

KNOWN = {"authenticated": True, "user": {"username": "u", "groups": ["g"], "extra": {"e": ["1"]}}}


class Reviewer:
    """A server whose answers to reviews are given; an error is raised."""

    def __init__(self, **answers: object) -> None:
        self.answers = answers
        self.asked: list[Object] = []

    async def create(self, kind: ResourceType, object: Object) -> Object:
        self.asked.append(object["spec"])
        answer = self.answers[{TOKEN_REVIEW: "token", ACCESS_REVIEW: "access"}[kind]]
        if isinstance(answer, Exception):
            raise answer
        return {**object, "status": answer}


async def judged(reviewer: Reviewer) -> ReviewOutcome:
    return await AccessReview(cast(ApiClient, reviewer)).judge("Bearer t", "/metrics")


async def test_the_rights_are_asked_for_with_all_that_is_known_of_the_user() -> None:
    reviewer = Reviewer(token=KNOWN, access={"allowed": True})

    assert await judged(reviewer) is ReviewOutcome.ALLOWED
    assert reviewer.asked == [
        {"token": "t"},
        {
            "user": "u", "groups": ["g"], "extra": {"e": ["1"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("token", "access", "outcome"),
    [
        ({"authenticated": False, "user": KNOWN["user"]}, {"allowed": True}, ReviewOutcome.UNKNOWN),
        ({"authenticated": True}, {"allowed": True}, ReviewOutcome.UNKNOWN),
        (None, {"allowed": True}, ReviewOutcome.UNKNOWN),
        (KNOWN, {"allowed": False}, ReviewOutcome.FORBIDDEN),
        (KNOWN, None, ReviewOutcome.FORBIDDEN),
        (ApiUnreachable("away"), {"allowed": True}, ReviewOutcome.UNDECIDED),
        (KNOWN, ApiError(403, "Forbidden", "no rights to review"), ReviewOutcome.UNDECIDED),
    ],
)
async def test_only_a_clear_yes_lets_a_caller_in(token: object, access: object, outcome: ReviewOutcome) -> None:
    assert await judged(Reviewer(token=token, access=access)) is outcome
