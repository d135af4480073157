"""The numbers of the in-cluster provider's pools, beside those of IPPools."""

from functools import partial

from tenure.integrations.kubernetes.metal3.ipam_controller import IpamController
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import GLOBAL_POOL, IN_CLUSTER_POOL
from tests.integrations.kubernetes.metal3.in_cluster.in_cluster_stage import PoolUser
from tests.integrations.kubernetes.metal3.serving import until
from tests.integrations.kubernetes.test_metrics_page import Metric, on_page


def shown(controller: IpamController, pool: str, kind: str) -> dict[Metric, str]:
    """Return the metrics of a pool, with its namespace."""
    found = [
        each
        for each in controller.samples()
        if each.labels.get("pool") == pool and each.labels.get("kind", "IPPool") == kind
    ]
    return {Metric(each.name, each.type, tuple(each.labels), each.help): each.labels["namespace"] for each in found}


def of_pools(optional: str) -> set[Metric]:
    """Return what the page has of pools."""
    return {each for each in on_page("every", "leader", optional=optional) if "pool" in each.labels}


def test_kp14_series_of_other_pools_than_metal3s_carry_their_kind_as_the_page_says(
    user: PoolUser, controller: IpamController
) -> None:
    """Pools of one name, one of each kind, have series of their own; a pool of the whole cluster has no namespace."""
    name = user.space.name
    user.space.pool(name, "10.1.0.1-10.1.0.9")
    user.pool(name, "10.2.0.1-10.2.0.9")
    user.pool(name, "10.3.0.1-10.3.0.9", type=GLOBAL_POOL)
    for kind, optional, namespace in (
        ("IPPool", "", name), (IN_CLUSTER_POOL.kind, "kind", name), (GLOBAL_POOL.kind, "kind", ""),
    ):  # fmt: skip
        until(partial(_has_all, controller, name, kind, of_pools(optional)))
        assert set(shown(controller, name, kind).values()) == {namespace}


def _has_all(controller: IpamController, pool: str, kind: str, wanted: set[Metric]) -> bool:
    return shown(controller, pool, kind).keys() == wanted
