"""What is shipped is what a server accepts, field by field."""

from importlib.resources import files

import pytest
import yaml

from tests.infrastructure.kube import KubeServer
from tests.integrations.kubernetes.cluster import PLACES

MANIFESTS = files("tenure.integrations.kubernetes").joinpath("manifests")
NAMES = sorted(each.name for each in MANIFESTS.iterdir() if each.name.endswith(".yaml"))


def test_the_manifests_are_found() -> None:
    assert {"flow_schema.yaml", "rbac.yaml"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_server_accepts_every_field_of_a_manifest(kube: KubeServer, name: str) -> None:
    """The server judges a request to replace what is there, or to create what is not, and does nothing."""
    for document in yaml.safe_load_all(MANIFESTS.joinpath(name).read_text("utf-8")):
        place = PLACES[document["kind"]].format(namespace=document["metadata"].get("namespace", ""))
        document["metadata"] = {"generateName": "judged-", **document["metadata"]}
        del document["metadata"]["name"]
        answer = kube.ask("POST", f"{place}?dryRun=All&fieldValidation=Strict", document)
        assert answer["kind"] == document["kind"]


def test_a_field_that_is_misspelt_would_be_refused(kube: KubeServer) -> None:
    document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "judged", "label": {}}}

    with pytest.raises(OSError, match="400"):
        kube.ask("POST", "/api/v1/namespaces?dryRun=All&fieldValidation=Strict", document)
