"""The definitions of our kinds are deleted under a running operator, and made again (KP6)."""

import urllib.error

import pytest

from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_ADDRESS, IP_CLAIM, IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import CUSTOM_RESOURCE_DEFINITION
from tests.infrastructure.kube import KubeServer, fresh_namespace
from tests.integrations.kubernetes.metal3.metal3_manager import cut_definitions, install_beside
from tests.integrations.kubernetes.metal3.serving import Namespace, let_go, operator_in, until

pytestmark = pytest.mark.one_worker("private-kube")

KINDS = (IP_POOL, IP_CLAIM, IP_ADDRESS)
WITHIN_S = 60.0
"""A server takes its time to remove a definition, and an operator to look for it again."""


def is_there(server: KubeServer, path: str) -> bool:
    try:
        return bool(server.ask("GET", path))
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return False


def test_kp6_definitions_that_are_deleted_and_made_again_under_a_running_operator_are_survived(
    metal3_like_kube: KubeServer,
) -> None:
    """It lets go what the server deletes with them, says what is missing, and serves what comes after them."""
    server = metal3_like_kube
    paths = [CUSTOM_RESOURCE_DEFINITION.path(name=f"{kind.plural}.{kind.group}") for kind in KINDS]
    let_go(server, *KINDS)
    with fresh_namespace(server) as name, operator_in(server, name) as controller:
        space = Namespace(server, name)
        space.pool("p", "10.0.0.1-10.0.0.9")
        space.claim("c1")
        before = space.served("c1")["metadata"]["uid"]
        try:
            for path in paths:
                server.ask("DELETE", path)
            until(lambda: not any(is_there(server, path) for path in paths), WITHIN_S)
            missing = "the server does not have this kind: apply the definitions"
            until(lambda: {kind.plural: missing for kind in KINDS}.items() <= controller.not_ready().items(), WITHIN_S)
        finally:
            install_beside(server, cut_definitions())
        space.pool("p", "10.0.0.1-10.0.0.9")
        space.claim("c1")
        again = space.served("c1", WITHIN_S)

        assert (again["spec"]["address"], again["metadata"]["uid"] != before) == ("10.0.0.1", True)
        until(lambda: not controller.caches.objects.not_ready())
        space.delete(IP_CLAIM, "c1")
        space.gone(IP_CLAIM, "c1")
