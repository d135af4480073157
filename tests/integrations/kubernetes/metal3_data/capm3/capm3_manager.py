"""CAPM3's own manager, the program that makes machines of hosts, with its webhooks (KS11)."""

import base64
import contextlib
from collections.abc import Iterator

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import PLACES
from tests.integrations.kubernetes.cluster_api import CLUSTERS, MACHINES, definitions
from tests.integrations.kubernetes.go_manager import UNTHROTTLED, WebhookPlace, go_manager
from tests.integrations.kubernetes.metal3_data.capm3_definitions import (
    PROGRAM,
    Document,
    capm3_definitions,
    capm3_webhooks,
    host_definition,
)


def translated_definitions(place: WebhookPlace) -> list[Document]:
    """Return CAPM3's definitions in both versions; its manager translates between them, as in every cluster.

    Beside them hosts, and Cluster API's kinds in the version that CAPM3 reads.
    """
    found = capm3_definitions()
    for document in found:
        webhook = {"clientConfig": _client(place, "/convert"), "conversionReviewVersions": ["v1"]}
        document["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return [*found, host_definition(), *definitions(CLUSTERS, MACHINES, only="v1beta2")]


@contextlib.contextmanager
def capm3_manager(server: KubeServer, place: WebhookPlace, *words: str) -> Iterator[None]:
    """Run CAPM3's manager for as long as the block; it judges what is written to its kinds."""
    with go_manager(PROGRAM, server, place, *UNTHROTTLED, *words), _registered(server, place):
        yield


@contextlib.contextmanager
def _registered(server: KubeServer, place: WebhookPlace) -> Iterator[None]:
    documents = capm3_webhooks()
    for document in documents:
        document["metadata"]["name"] = f"capm3-{document['metadata']['name']}"
        for hook in document["webhooks"]:
            hook["clientConfig"] = _client(place, hook["clientConfig"]["service"]["path"])
        server.ask("POST", PLACES[document["kind"]], document)
    try:
        yield
    finally:
        for document in documents:
            server.ask("DELETE", f"{PLACES[document['kind']]}/{document['metadata']['name']}")


def _client(place: WebhookPlace, path: str) -> Document:
    return {"url": f"{place.url}{path}", "caBundle": base64.b64encode(place.authority).decode()}
