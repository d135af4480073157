"""``tenure manifests``: what a Kubernetes cluster needs before the operator runs there."""

from urllib.parse import SplitResult, urlsplit

import click

from tenure.doors.cli.commands.operator.run_operator import MODULES, names_in, namespaces_in, some_namespaces
from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.output.print_answer import answer
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install


@command("manifests")
@click.option(
    "--only",
    metavar="A,B",
    default="",
    help="Print these parts: namespace, crds, rbac, render, in-cluster-crds, in-cluster, user-roles, webhooks, "
    "deployment, flow-schema [default: all but render, flow-schema and those for in-cluster pools].",
)
@click.option(
    "--own-namespace", metavar="NAME", default="tenure-system", show_default=True, help="Where the operator lives."
)
@click.option(
    "--namespaces",
    metavar="A,B",
    help="Let the operator work in these namespaces only, as its own option of this name [default: all].",
)
@click.option(
    "--webhook-url",
    metavar="URL",
    help="Where the API server reaches the webhooks of an operator that runs outside the cluster, such as "
    "https://127.0.0.1:9443. No Deployment is printed then: it would start a second operator inside.",
)
@click.option("--image", metavar="NAME", help="The image that the Deployment runs.")
@click.option(
    "--cert-manager", is_flag=True, help="Let cert-manager make the certificate of the webhooks, and not the operator."
)
@click.option("--metadata", is_flag=True, help="Print only the metadata.yaml of a provider, for clusterctl.")
@pass_session
def manifests(
    session: Session,
    only: str,
    own_namespace: str,
    namespaces: str | None,
    webhook_url: str | None,
    image: str | None,
    cert_manager: bool,
    metadata: bool,
) -> None:
    """Print the Kubernetes manifests of the operator, ready for `kubectl apply -f -`.

    They are the kinds IPPool, IPClaim and IPAddress (crds), the operator's rights (rbac), rights of people who may view
    or edit a namespace (user-roles), webhooks, and the operator itself (deployment). Only when named: its rights where
    it renders machines' data (render), rights and webhooks for the in-cluster provider's pools (in-cluster) and their
    kinds (in-cluster-crds), and a flow-schema. Deleting the crds deletes every pool, claim and address.
    For clusterctl, what is printed is ipam-components.yaml, and with --metadata metadata.yaml.

    For example:
      tenure manifests
      tenure manifests --only crds,rbac
      tenure manifests --only in-cluster-crds,in-cluster
      tenure manifests --webhook-url https://127.0.0.1:9443
      tenure manifests --metadata
    """
    try:
        from tenure.integrations.kubernetes import shipped_manifests as shipped
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in MODULES:
            raise
        raise Invalid(f"manifests: {error.name} is missing: {how_to_install('kubernetes')}") from None
    if metadata:
        document = shipped.provider_metadata()
        answer(session, document, shipped.written([document], head="").rstrip("\n"))
        return
    parts = names_in(only)
    if unknown := [name for name in parts if name not in shipped.PARTS]:
        raise Invalid(f"--only: there is no {unknown[0]!r}; there are: {', '.join(shipped.PARTS)}")
    if webhook_url is not None:
        _check_url(webhook_url)
        if "deployment" in parts:
            raise Invalid("--only: a Deployment has no use with --webhook-url: the operator runs outside the cluster")
        if cert_manager:
            raise Invalid("--cert-manager: it makes certificates for the Service, which --webhook-url does without")
    (own,) = namespaces_in("--own-namespace", (own_namespace,))
    documents = shipped.documents_of(
        parts or [name for name in shipped.USUAL if webhook_url is None or name != "deployment"],
        own_namespace=own,
        namespaces=some_namespaces(namespaces),
        webhook_url=webhook_url,
        image=image,
        cert_manager=cert_manager,
    )
    answer(session, {"apiVersion": "v1", "kind": "List", "items": documents}, shipped.written(documents).rstrip("\n"))


def _check_url(text: str) -> None:
    """Raise ``Invalid`` for a URL that an API server does not take for a webhook."""
    parts = _split(text)
    if parts is None or parts.scheme != "https" or not parts.hostname:
        raise Invalid(f"--webhook-url: {text!r} is no URL that begins with https:// and names a host")
    if parts.username is not None or "?" in text or "#" in text:
        raise Invalid("--webhook-url: an API server takes no user, query or fragment in the URL of a webhook")


def _split(text: str) -> SplitResult | None:
    """Return the parts of a URL; nothing where it has spaces, or no port behind its colon."""
    try:
        parts = urlsplit(text)
        has_port = parts.port != 0
    except ValueError:
        return None
    return parts if has_port and text.isprintable() and " " not in text else None
