"""Deployments of a real Neutron, one of each kind for a whole run: tests make networks of their own in it."""

from collections.abc import Iterator

import pytest

from tests.integrations.neutron.stage.deployment import Deployment, deployed
from tests.integrations.neutron.stage.kinds import is_left_to_another, kinds
from tests.scale import PROOF


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run in ``make test`` each test on one kind of deployment."""
    if not PROOF:
        later = [item for item in items if is_left_to_another(item)]
        items[:] = [item for item in items if not is_left_to_another(item)]
        config.hook.pytest_deselected(items=later)


@pytest.fixture(scope="session", params=kinds())
def deployment(request: pytest.FixtureRequest) -> Iterator[Deployment]:
    """Give a deployment in each mode on each database."""
    with deployed(*request.param) as made:
        yield made
