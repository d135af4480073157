"""The cluster that a command of ``tenure ipam`` asks: its options, its errors as words, and the ledger of a pool."""

import base64
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tenure.doors.cli.commands.operator.run_operator import MODULES
from tenure.doors.cli.framework.click_base import with_options
from tenure.doors.cli.session import Session, run_alone
from tenure.kernel.errors import Invalid, NotFound, StoreUnavailable
from tenure.kernel.extras import how_to_install
from tenure.service.ledger.async_ledger import AsyncLedger
from tenure.wire.http_errors import Forbidden
from tenure.wiring import open_async

if TYPE_CHECKING:
    from tenure.integrations.kubernetes.metal3.objects.pool_spec import LedgerBinding
    from tenure.integrations.kubernetes.runtime.api_client import ApiClient

T = TypeVar("T")

cluster_options = with_options(
    click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster [default: $KUBECONFIG]."),
    click.option("--context", metavar="NAME", help="Another context of the kubeconfig than its current one."),
    click.option("--namespace", "-n", metavar="NAME", help="The namespace [default: that of the context]."),
)


class ReachedCluster(NamedTuple):
    """A cluster, and the namespace that is asked about."""

    client: "ApiClient"
    namespace: str


def run_on_cluster(
    kubeconfig: str | None, context: str | None, namespace: str | None, work: Callable[[ReachedCluster], Awaitable[T]]
) -> T:
    """Do work with a cluster; what it has against that becomes an error of ours."""
    try:
        from tenure.integrations.kubernetes.runtime.api_client import ApiClient
        from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable
        from tenure.integrations.kubernetes.runtime.credentials import (
            CredentialsMissing,
            context_namespace,
            find_credentials,
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in MODULES:
            raise
        raise Invalid(f"ipam: {error.name} is missing: {how_to_install('kubernetes')}") from None

    async def ask() -> T:
        async with ApiClient(find_credentials(kubeconfig, context), agent="kubectl-tenure") as client:
            return await work(ReachedCluster(client, namespace or context_namespace(kubeconfig, context)))

    try:
        return run_alone(ask())
    except CredentialsMissing as error:
        raise Invalid(f"--kubeconfig: {error}") from None
    except ApiUnreachable as error:
        raise StoreUnavailable(f"the cluster: {error}", outcome="none") from None
    except ApiError as error:
        if error.status in (401, 403):
            raise Forbidden(f"the cluster: {error.message}") from None
        if error.status == 404:
            raise NotFound("kind", "IPPool", hint="`tenure manifests` has the definitions", field="cluster") from None
        raise StoreUnavailable(f"the cluster: {error}", outcome="none") from None


async def open_ledger(
    session: Session, cluster: ReachedCluster, namespace: str, binding: "LedgerBinding"
) -> AsyncLedger:
    """Open the ledger that a pool is bound to: the one that the command names, else the one of the pool's Secret.

    Variables of the environment name no ledger here: they are about another one as easily as about this one.
    """
    from tenure.integrations.kubernetes.runtime.api_errors import ApiError
    from tenure.integrations.kubernetes.runtime.resource_types import SECRET

    if session.server is not None or session.store is not None:
        return await session.open()
    try:
        secret = await cluster.client.get(SECRET.path(namespace, binding.secret))
    except ApiError as error:
        hint = f"the Secret {namespace}/{binding.secret} cannot be read: {error.message}; name the ledger with --server"
        raise NotFound("ledger", binding.network, hint=hint) from None
    url = binding.server or _field(secret, "url")
    if not url:
        raise NotFound("ledger", binding.network, hint=f"the Secret {namespace}/{binding.secret} has no url")
    is_server = url.startswith(("http://", "https://"))
    return await open_async(url, token=_field(secret, "token") or None if is_server else None)


def _field(secret: dict[str, Any], name: str) -> str:
    return base64.b64decode(str((secret.get("data") or {}).get(name) or "")).decode("utf-8", "replace").strip()
