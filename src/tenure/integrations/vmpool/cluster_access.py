"""Whether the nodes of a pool use a cluster, and how they reach it."""

import contextlib
import os
from collections.abc import Iterable

from tenure.integrations.kubernetes.runtime.credentials import CredentialsMissing, Loader, find_credentials
from tenure.integrations.vmpool.vm_pool_settings import VMPoolSettings

CLUSTER_VARIABLES = ("KUBERNETES_SERVICE_HOST", "KUBECONFIG")
"""Variables that say that there is a cluster, if no argument does."""


def find_cluster(
    settings: Iterable[VMPoolSettings],
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    is_needed: bool = False,
) -> Loader | None:
    """Return how to reach the cluster; nothing if all pools are in ledgers, and nothing says that there is one.

    A pool in a ledger uses a cluster that can be found: it notes there which ledger that is, and whether it was moved.
    A pod's account or ``$KUBECONFIG`` counts; a kubeconfig that merely exists in the home folder does not. Raise
    ``CredentialsMissing`` if a cluster is needed.
    """
    if is_needed or kubeconfig or context or any(each.pool_mode != "ledger" for each in settings):
        return find_credentials(kubeconfig, context)
    if any(name in os.environ for name in CLUSTER_VARIABLES):
        with contextlib.suppress(CredentialsMissing):
            return find_credentials()
    return None
