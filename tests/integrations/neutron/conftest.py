"""Deployments of a real Neutron, one of each kind for a whole run: tests make networks of their own in it."""

from collections.abc import Iterator

import pytest

from tests.integrations.neutron.stage.deployment import Deployment, deployed
from tests.integrations.neutron.stage.kinds import kinds


@pytest.fixture(scope="session", params=kinds())
def deployment(request: pytest.FixtureRequest) -> Iterator[Deployment]:
    """Give a deployment in each mode on each database."""
    with deployed(*request.param) as made:
        yield made
