"""``tenure manifests``: which documents are printed, and what is refused."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenure.doors.cli.commands.operator.print_manifests import manifests
from tenure.integrations.kubernetes.shipped_manifests import PARTS
from tests.doors.cli.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Give an empty folder: the command needs no ledger, and makes none."""
    return Site(tmp_path)


def printed(site: Site, *words: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(site.text("manifests", *words)))


def kinds(documents: list[dict[str, Any]]) -> set[str]:
    return {each["kind"] for each in documents}


def test_all_that_an_operator_in_the_cluster_needs_is_printed(site: Site) -> None:
    documents = printed(site)

    assert documents[0]["kind"] == "Namespace"
    assert {"CustomResourceDefinition", "ClusterRole", "MutatingWebhookConfiguration"} <= kinds(documents)
    assert {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"} <= kinds(documents)
    assert list(site.folder.iterdir()) == []


def test_json_is_one_list_of_the_same_documents(site: Site) -> None:
    listed = site.json("manifests")

    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == printed(site)


def test_parts_are_printed_on_their_own_and_in_the_order_of_a_server(site: Site) -> None:
    assert kinds(printed(site, "--only", "crds")) == {"CustomResourceDefinition"}
    assert [each["kind"] for each in printed(site, "--only", "flow-schema,namespace")] == ["Namespace", "FlowSchema"]


def test_the_help_names_every_part(site: Site) -> None:
    [only] = [each for each in manifests.params if each.name == "only"]

    assert f"{', '.join(PARTS)} [" in str(getattr(only, "help", ""))


def test_beside_an_operator_outside_the_cluster_none_is_started_inside(site: Site) -> None:
    documents = printed(site, "--webhook-url", "https://[2001:db8::1]:9443/hooks")
    urls = [each["webhooks"][0]["clientConfig"]["url"] for each in documents if "webhooks" in each]

    assert "Deployment" not in kinds(documents)
    assert urls == [f"https://[2001:db8::1]:9443/hooks/{path}" for path in ("mutate", "validate")]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--only", "crds,crd"], "--only: there is no 'crd'; there are: namespace, crds, rbac"),
        (["--only", "deployment", "--webhook-url", "https://h"], "--only: a Deployment has no use with --webhook-url"),
        (["--webhook-url", "http://127.0.0.1:9443"], "--webhook-url: 'http://127.0.0.1:9443' is no URL that begins"),
        (["--webhook-url", "https://"], "--webhook-url: 'https://' is no URL that begins"),
        (["--webhook-url", "https://h:x"], "--webhook-url: 'https://h:x' is no URL that begins"),
        (["--webhook-url", "https://h h"], "--webhook-url: 'https://h h' is no URL that begins"),
        (["--webhook-url", "https://me@h"], "--webhook-url: an API server takes no user"),
        (["--webhook-url", "https://h/?a=b"], "--webhook-url: an API server takes no user"),
        (["--own-namespace", "Tenure"], "--own-namespace: 'Tenure' is no namespace"),
        (["--namespaces", "a,b_c"], "--namespaces: 'b_c' is no namespace"),
    ],
)
def test_what_a_server_would_not_take_is_refused(site: Site, words: list[str], reason: str) -> None:
    code, error = site.error("manifests", *words)

    assert code != 0
    assert error["message"].startswith(reason)


def test_without_a_reader_of_yaml_the_message_says_what_to_install(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "tenure.integrations.kubernetes.shipped_manifests")
    monkeypatch.delattr("tenure.integrations.kubernetes.shipped_manifests")
    _, error = site.error("manifests")

    assert error["message"].startswith("manifests: yaml is missing: pip install 'tenure[kubernetes]'")


@pytest.mark.parametrize("given", ["", ",", " , "])
def test_namespaces_that_name_none_are_refused_since_none_would_be_all(site: Site, given: str) -> None:
    code, error = site.error("manifests", "--namespaces", given)

    assert code == 2
    assert "names none" in error["message"]
